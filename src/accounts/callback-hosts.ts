import type { AppContext } from "../runtime/app-context.ts";
import type { CheckTarget } from "../config/target-policy.ts";
import type { ListedHost } from "../core/account-store.ts";
import { auditEntry } from "../core/audit.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { DomainError, invalidField, invalidFields } from "../core/domain-error.ts";
import { CALLBACK_HOSTS_MAX, MESSAGE_TIMEOUT_MS } from "../core/limits.ts";
import { normalHost, normalTarget } from "../core/target.ts";
import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import { isListedHost, requireFree } from "../core/policy.ts";
import { describeOutcome, isSuccess } from "../core/outcome.ts";
import type { Header } from "../crypto/secrets.ts";
import { type AlterHeaders, type PostDeps, postNow } from "../delivery/callbacks.ts";
import { createMessageLimit } from "../runtime/message-limit.ts";
import { NO_EXTRAS } from "../core/action.ts";

interface CallbackHostNeeds extends PostDeps {
  readonly checkTarget: CheckTarget;
}

/** The hosts to which keys with a hold or a limit may send callbacks, and tests of receivers there. Takes normalized hosts. */
export type CallbackHostService = ReturnType<typeof createCallbackHostService>;

export function createCallbackHostService(app: AppContext, needs: CallbackHostNeeds) {
  const { clock } = app;
  const { callbackHosts, firstSteps, audit } = app.store;
  const countTest = createMessageLimit(clock, "This account has just tested callbacks.");
  const auditChange = (caller: Caller, host: string, change: "added" | "removed", at: Date) =>
    auditEntry(caller, { kind: "callback_hosts_changed", subject: host, detail: { change } }, at);
  const send = async (accountId: string, url: string, alter: AlterHeaders): Promise<CallbackTry> => {
    const data = { message: "This is a test callback of Outgate. It is about no action." };
    const body = JSON.stringify({ type: "callback.test", timestamp: clock.now().toISOString(), data });
    const startedMs = clock.monotonicMs();
    const outcome = await postNow(app, needs, { accountId, url, body, isSigned: true }, alter);
    // Only the status of the receiver's answer is used.
    return {
      response_code: outcome.kind === "answered" ? outcome.code : null,
      duration_ms: Math.round(clock.monotonicMs() - startedMs),
      error: isSuccess(outcome, "POST") ? null : describeOutcome(outcome, MESSAGE_TIMEOUT_MS),
    };
  };

  return {
    async list(caller: Caller): Promise<readonly ListedHost[]> {
      authorize(caller, "manage");
      return callbackHosts.list(caller.accountId);
    },

    /** Idempotent. Throws `validation_error` if the account lists too many hosts. */
    async add(caller: Caller, host: string): Promise<ListedHost> {
      authorize(caller, "manage");
      const { accountId } = caller;
      const row = { accountId, host, createdAt: clock.now() };
      if ((await callbackHosts.put(row, auditChange(caller, host, "added", row.createdAt))) === "full") {
        throw invalidField("host", `An account lists at most ${CALLBACK_HOSTS_MAX} hosts. Remove one first.`);
      }
      return (await callbackHosts.list(accountId)).find((one) => one.host === host) ?? row;
    },

    /** Waiting callbacks to the host are dropped when they are due. Throws `not_found` if it is not listed. */
    async remove(caller: Caller, host: string): Promise<void> {
      authorize(caller, "manage");
      if (await callbackHosts.remove(caller.accountId, host, auditChange(caller, host, "removed", clock.now()))) return;
      throw new DomainError("not_found", "This host is not listed.");
    },

    /**
     * Sends a callback with a fixed body to a URL on a listed host at once; with `wrong_signature`, also one with a wrong
     * signature. A receiver that refuses it verifies signatures. Throws `forbidden` for keys with a hold or a limit on hosts,
     * `validation_error` for URLs to which callbacks may not go, and `RetryLater`.
     */
    async test(
      caller: Caller,
      { url, wrong_signature: withWrong = false }: TestCallbackBody,
    ): Promise<CallbackTestJson> {
      authorize(caller, "manage");
      // The body is our own, but it is still a call.
      requireFree(caller, { method: "POST", url, headers: null, body: null, extras: NO_EXTRAS }, HELD);
      const { accountId } = caller;
      const checked = needs.checkTarget(url);
      if ("refused" in checked) throw invalidFields([{ field: "url", message: checked.refused }]);
      const listed = (await callbackHosts.list(accountId)).map(({ host }) => host);
      if (!isListedHost(url, listed)) throw invalidFields([{ field: "url", message: NOT_LISTED }]);
      countTest(accountId);
      const signed = await send(accountId, url, (headers) => headers);
      const wrong = withWrong && signed.error === null ? await send(accountId, url, withWrongSignature) : null;
      const verifies = wrong === null ? null : verifiesBy(wrong);
      const at = clock.now();
      const detail = { delivered: signed.error === null, ...(verifies === null ? {} : { verifies }) };
      const subject = normalTarget(url)?.host ?? "";
      await audit.record(auditEntry(caller, { kind: "callback_tested", subject, detail }, at));
      if (verifies === true) await firstSteps.add({ accountId, personId: "", step: "signature", at });
      return { delivered: signed.error === null, verifies, signed, wrong_signature: wrong };
    },
  };
}

const HELD = "A key with a hold can’t send test callbacks. Ask an owner whose calls are not held.";

const NOT_LISTED =
  "Its host is not on the list for callbacks. Add the host first, with its port unless that is the default.";

/** Inverts all bits of every digest, so that it has the right form and is never valid. */
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

/** Statuses that say only that the receiver was busy, and nothing about the signature. */
const BUSY: ReadonlySet<number> = new Set([408, 425, 429]);

/** Whether a receiver with this answer to a wrong signature verifies signatures; null: unknown. */
function verifiesBy({ response_code: code, error }: CallbackTry): boolean | null {
  if (error === null) return false;
  return code !== null && code >= 400 && code < 500 && !BUSY.has(code) ? true : null;
}

const entry = {
  host: t.hostSchema("Host name. With a port: that port only; without: the default port of the callback's scheme."),
  created_at: t.dateTime("When it was listed."),
};

export const CallbackHostJson = t.answerObject(
  "CallbackHost",
  "A host to which callbacks of keys with a hold or a limit, and of agents where the account has rules, may go.",
  entry,
);

export const CallbackHostListJson = t.answerObject(
  "CallbackHostList",
  "The hosts that this account lists for callbacks.",
  {
    data: Type.Array(CallbackHostJson, {
      description: `The hosts in alphabetical order, at most ${CALLBACK_HOSTS_MAX}.`,
    }),
  },
);

export const AddCallbackHostBody = t.requestObject("AddCallbackHost", "The host to list.", { host: entry.host });

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

export type TestCallbackBody = Static<typeof TestCallbackBody>;

type CallbackTry = Static<typeof CallbackTry>;

export type CallbackTestJson = Static<typeof CallbackTestJson>;

/** The normal form of a host. Throws `code` if the text is no host, such as a URL or a pattern. */
export function checkCallbackHost(text: string, code: "validation_error" | "invalid_query"): string {
  const host = text.includes("*") ? null : normalHost(text);
  if (host !== null) return host;
  const message =
    "Must be a host name or an IP address, with or without a port, like hooks.example.com or 10.0.0.7:8080.";
  throw new DomainError(code, "The host is not valid.", [{ field: "host", message }]);
}

export function callbackHostRoutes({ callbackHosts }: { readonly callbackHosts: CallbackHostService }) {
  return createApiRoutes()
    .get(
      "/v1/callback-hosts",
      async ({ caller }) => jsonResponse(toJson(CallbackHostListJson, { data: await callbackHosts.list(caller) })),
      operation({
        operationId: "listCallbackHosts",
        permission: "manage",
        summary: "List the callback hosts",
        description:
          "Lists the hosts to which callbacks of keys with a hold or a limit, and of agents where the account has rules, may go.",
        notes: ["Callbacks of all others may go to other hosts too."],
        answers: { 200: { description: "The hosts.", schema: CallbackHostListJson } },
      }),
    )
    .post(
      "/v1/callback-hosts",
      async ({ caller, body }) => {
        const host = checkCallbackHost(body.host, "validation_error");
        return jsonResponse(toJson(CallbackHostJson, await callbackHosts.add(caller, host)));
      },
      operation({
        operationId: "addCallbackHost",
        permission: "manage",
        summary: "Add a callback host",
        description: "Adds a host to those to which callbacks of every key may go.",
        notes: ["Adding a listed host changes nothing.", `An account can list up to ${CALLBACK_HOSTS_MAX} hosts.`],
        body: jsonBody(AddCallbackHostBody),
        answers: { 200: { description: "The host, listed.", schema: CallbackHostJson } },
      }),
    )
    .delete(
      "/v1/callback-hosts",
      ({ caller, query }) => noContent(callbackHosts.remove(caller, checkCallbackHost(query.host, "invalid_query"))),
      operation({
        operationId: "removeCallbackHost",
        permission: "manage",
        summary: "Remove a callback host",
        description:
          "Removes a host at once. Waiting callbacks to it are given up at their next attempt, and the timeline says so.",
        query: t.closedObject({ host: entry.host }),
        answers: { 204: { description: "The host was removed from the list.", schema: null } },
        errors: ["not_found"],
      }),
    )
    .post(
      "/v1/callback-hosts/test",
      async ({ caller, body }) => jsonResponse(await callbackHosts.test(caller, body)),
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
