import type { AppContext } from "../runtime/app-context.ts";
import { isListedHost, requireFree } from "../core/policy.ts";
import Type, { type Static } from "typebox";
import { describeOutcome, isSuccess } from "../core/outcome.ts";
import { invalidFields } from "../core/domain-error.ts";
import * as t from "../api/schema-helpers.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonOf } from "../http/response.ts";
import { auditOf } from "../core/audit.ts";
import { MESSAGE_TIMEOUT_MS } from "../core/limits.ts";
import type { Header } from "../delivery/attempt.ts";
import { type AlterHeaders, type PostDeps, postNow } from "../delivery/deliver.ts";
import { createMessageLimit } from "../runtime/message-limit.ts";
import { normalTarget } from "../core/target.ts";
import { NO_EXTRAS } from "../core/action.ts";
import { authorize, type Caller } from "../core/roles.ts";

export const TestCallbackBody = t.requestObject("TestCallback", "Which receiver of callbacks to test.", {
  url: t.targetUrl("Where to send it: a URL on a listed host.", "https://app.example.com/outgate"),
  wrong_signature: Type.Optional(
    Type.Boolean({
      description: "Whether to send another one whose signature is wrong: a receiver that verifies refuses it.",
      default: false,
      examples: [true],
    }),
  ),
});

const CallbackTry = t.answerObject("CallbackTry", "A callback that was sent.", {
  response_code: t.nullable(Type.Integer({ description: "The status; null: no answer came.", examples: [200] })),
  duration_ms: t.quantity("How long it took.", 41),
  error: t.nullable(
    t.plainText("Why it failed; null: it was answered with 2xx.", "The target answered with status 404."),
  ),
});

export const CallbackTestJson = t.answerObject("CallbackTest", "How a receiver of callbacks fared.", {
  delivered: t.yesNo("Whether the receiver took the callback.", true),
  verifies: t.nullable(
    t.yesNo(
      "Whether it then refused the one with a wrong signature, by a status 400 to 499; null: not tried, or unknown.",
      true,
    ),
  ),
  signed: CallbackTry,
  wrong_signature: Type.Union([CallbackTry, Type.Null()], {
    description: "The one whose signature is wrong; null: it was not sent.",
    examples: [{ response_code: 401, duration_ms: 12, error: "The target answered with status 401." }],
  }),
});

type CallbackTry = Static<typeof CallbackTry>;

export type CallbackTestJson = Static<typeof CallbackTestJson>;

interface CallbackTestNeeds extends PostDeps {
  readonly checkTarget: (url: string) => { readonly refused: string } | object;
}

export type CallbackTestService = ReturnType<typeof createCallbackTestService>;

export function createCallbackTestService(app: AppContext, needs: CallbackTestNeeds) {
  const { clock } = app;
  const { callbackHosts, firstSteps, audit } = app.store;
  const count = createMessageLimit(clock, "This account has just tested callbacks.");

  const send = async (accountId: string, url: string, alter: AlterHeaders): Promise<CallbackTry> => {
    const data = { message: "This is a test callback of Outgate. It is about no action." };
    const body = JSON.stringify({ type: "callback.test", timestamp: clock.now().toISOString(), data });
    const channel = { accountId, kind: "webhook" } as const;
    const startedMs = clock.monotonicMs();
    const outcome = await postNow(app, needs, { channel, url, body }, alter);
    // Of the receiver's answer only the status is read.
    return {
      response_code: outcome.kind === "answered" ? outcome.code : null,
      duration_ms: Math.round(clock.monotonicMs() - startedMs),
      error: isSuccess(outcome, "POST") ? null : describeOutcome(outcome, MESSAGE_TIMEOUT_MS),
    };
  };

  return {
    /**
     * Sends a callback with a fixed body to a URL on a listed host at once, and with `withWrong` another one whose signature
     * is wrong, which a receiver should refuse. One that does has verified a signature. Throws `forbidden` for keys with
     * a hold or a limit on hosts, `validation_error` for URLs that callbacks may not go to, and `RetryLater`.
     */
    async test(caller: Caller, url: string, withWrong: boolean): Promise<CallbackTestJson> {
      authorize(caller, "manage");
      // What is sent carries our own body, but it is a call all the same.
      requireFree(caller, { method: "POST", url, headers: null, body: null, extras: NO_EXTRAS }, HELD);
      const { accountId } = caller;
      const checked = needs.checkTarget(url);
      if ("refused" in checked) throw invalidFields([{ field: "url", message: checked.refused }]);
      const listed = (await callbackHosts.list(accountId)).map(({ host }) => host);
      if (!isListedHost(url, listed)) throw invalidFields([{ field: "url", message: NOT_LISTED }]);
      count(accountId);
      const signed = await send(accountId, url, (headers) => headers);
      const wrong = withWrong && signed.error === null ? await send(accountId, url, withWrongSignature) : null;
      const verifies = wrong === null ? null : verifiesBy(wrong);
      const at = clock.now();
      const detail = { delivered: signed.error === null, ...(verifies === null ? {} : { verifies }) };
      const subject = normalTarget(url)?.host ?? "";
      await audit.record(auditOf(caller, { kind: "callback_tested", subject, detail }, at));
      if (verifies === true) await firstSteps.add({ accountId, personId: "", step: "signature", at });
      return { delivered: signed.error === null, verifies, signed, wrong_signature: wrong };
    },
  };
}

const HELD = "A key with a hold can’t send test callbacks. Ask an owner whose calls are not held.";

const NOT_LISTED =
  "Its host is not on the list for callbacks. Add the host first, with its port unless that is the default.";

/** Every digest with all its bits turned over: of the right form, and never valid. */
function withWrongSignature(headers: readonly Header[]): readonly Header[] {
  return headers.map(([name, value]) => {
    if (name !== "webhook-signature") return [name, value];
    const wrong = value.split(" ").map((one) => {
      const digest = Buffer.from(one.slice(one.indexOf(",") + 1), "base64");
      return `v1,${Buffer.from(digest.map((byte) => 255 - byte)).toString("base64")}`;
    });
    return [name, wrong.join(" ")];
  });
}

/** Statuses that say that the receiver was busy, and nothing about the signature. */
const BUSY: ReadonlySet<number> = new Set([408, 425, 429]);

/** Whether a receiver that answered so to a wrong signature verifies; null: that is not known. */
function verifiesBy({ response_code: code, error }: CallbackTry): boolean | null {
  if (error === null) return false;
  return code !== null && code >= 400 && code < 500 && !BUSY.has(code) ? true : null;
}

export function callbackTestRoutes({ callbackTests }: { readonly callbackTests: CallbackTestService }) {
  return createApiRoutes().post(
    "/v1/callback-hosts/test",
    async ({ caller, body: { url, wrong_signature: withWrong = false } }) =>
      jsonOf(await callbackTests.test(caller, url, withWrong)),
    operation({
      operationId: "testCallback",
      permission: "manage",
      summary: "Send a test callback to a URL on a listed host",
      description: "Sends a signed test callback to a listed host at once, and waits for at most 10 seconds.",
      notes: [
        "Its body is fixed, and it is signed as every callback.",
        "With `wrong_signature` it then sends another one whose signature is wrong, to see whether the receiver verifies.",
        "Keys with a hold get 403.",
        "At most one test a second and 30 an hour.",
      ],
      body: jsonBody(TestCallbackBody),
      answers: { 200: { description: "How it fared.", schema: CallbackTestJson } },
    }),
  );
}
