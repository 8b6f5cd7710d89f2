import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import { USER_AGENT } from "../config/config.ts";
import { DomainError, invalidField } from "../core/domain-error.ts";
import { NO_EXTRAS } from "../core/action.ts";
import { CREDENTIAL_TEST_BODY_CHARS_MAX, MESSAGE_TIMEOUT_MS } from "../core/limits.ts";
import { requireFree } from "../core/policy.ts";
import { describeOutcome, isSuccess, type Outcome } from "../core/outcome.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { OutboundRequest, Sender } from "../outbound/deadline.ts";
import type { ActivePauses } from "../pauses/pauses.ts";
import { maskResponseHeaders, maskText } from "../receipts/masking.ts";
import { readHeaders } from "../receipts/response-headers.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { createMessageLimit } from "../runtime/message-limit.ts";
import type { CredentialUse } from "./use.ts";

export const TestCredential = t.requestObject(
  "TestCredential",
  "A GET to try a credential with.",
  { url: t.targetUrl("Where the GET goes; it must lie within the bounds.", "https://api.stripe.com/v1/charges") },
  { examples: [{ url: "https://api.stripe.com/v1/charges" }] },
);

export const CredentialTest = t.answerObject("CredentialTest", "The answer to a GET with a credential, masked.", {
  status: t.nullable(Type.Integer({ description: "The status of the answer; null: there was none.", examples: [200] })),
  error: t.nullable(
    t.plainText("What went wrong; null: the answer was a 2xx.", "The target answered with status 401."),
  ),
  headers: t.stringMap("Headers of the answer, without secrets. Values of unknown names are masked.", {
    examples: [{ "content-type": "application/json" }],
  }),
  body: t.nullable(
    t.plainText(
      `The beginning of the body, without secrets: at most ${CREDENTIAL_TEST_BODY_CHARS_MAX} characters; null: it was empty.`,
      '{"object":"list"}',
    ),
  ),
  truncated: t.yesNo("Whether the body was longer.", false),
});

export type CredentialTest = Static<typeof CredentialTest>;

interface CredentialTestNeeds {
  readonly credentialUse: Pick<CredentialUse, "forTry">;
  readonly sender: Sender;
  readonly paused: Pick<ActivePauses, "isPaused">;
  readonly checkTarget: (url: string) => { readonly refused: string } | { readonly host: string };
}

export type CredentialTestService = ReturnType<typeof createCredentialTestService>;

export function createCredentialTestService({ clock }: AppContext, needs: CredentialTestNeeds) {
  const { credentialUse, sender, paused, checkTarget } = needs;
  const count = createMessageLimit(clock, "This account has just tried credentials.");
  return {
    /**
     * Sends a GET with a credential at once, and waits for at most `MESSAGE_TIMEOUT_MS`. Throws `not_found`, `validation_error` for a
     * URL that calls may not go to, `forbidden` outside of the bounds and for keys with a hold or a limit, and `RetryLater`.
     */
    async test(caller: Caller, name: string, url: string): Promise<CredentialTest> {
      authorize(caller, "manage");
      const request = { url, method: "GET", headers: null, body: null, extras: NO_EXTRAS } as const;
      const checked = checkTarget(url);
      if ("refused" in checked) throw invalidField("url", checked.refused);
      requireFree(caller, request, HELD);
      const { host } = checked;
      const attempt = await credentialUse.forTry(caller, name, { ...request, host });
      const lane = { accountId: caller.accountId, keyId: caller.keyId ?? "", host };
      if (paused.isPaused(lane)) throw new DomainError("forbidden", PAUSED);
      count(caller.accountId);
      const sent: OutboundRequest = {
        url,
        method: "GET",
        headers: [
          ["User-Agent", USER_AGENT],
          ["Accept", "*/*"],
        ],
        body: null,
      };
      const outcome = await sender.send(sent, {
        timeoutMs: MESSAGE_TIMEOUT_MS,
        mayBegin: () => !paused.isPaused(lane),
        async complete(route) {
          const completed = await attempt.complete(sent, route);
          return typeof completed === "string" ? { kind: "not_sent", fault: completed } : completed;
        },
      });
      await attempt.answered();
      if (outcome.kind === "stopped") throw new DomainError("forbidden", PAUSED);
      return seen(outcome);
    },
  };
}

const HELD = "A key whose calls are held can't try credentials. Ask an owner whose calls are not held.";

const PAUSED = "Calls to this host are paused, and so are tries of credentials. Resume them first.";

/** Masks what else looks like a secret; the credential itself was masked before anything was cut. */
function seen(outcome: Outcome): CredentialTest {
  const error = isSuccess(outcome, "GET") ? null : describeOutcome(outcome, MESSAGE_TIMEOUT_MS);
  if (outcome.kind !== "answered") return { status: null, error, headers: {}, body: null, truncated: false };
  const { code, headers, body, truncated } = outcome;
  const text = body === null ? null : textOf(body);
  // Masked before the end is cut off, which may cut a secret in two.
  const masked = text === null ? null : maskText(text.slice(0, 2 * CREDENTIAL_TEST_BODY_CHARS_MAX), "decider");
  const shown = masked?.slice(0, CREDENTIAL_TEST_BODY_CHARS_MAX).toWellFormed() ?? null;
  return {
    status: code,
    error,
    headers: Object.fromEntries(readHeaders(headers === null ? null : maskResponseHeaders(headers, "decider"))),
    body: shown,
    truncated: truncated || (text !== null && text.length > CREDENTIAL_TEST_BODY_CHARS_MAX),
  };
}

/** What was received, in the form of `response_body`. */
function textOf(json: string): string {
  const value: unknown = json.startsWith('"') ? JSON.parse(json) : json;
  return typeof value === "string" ? value : json;
}
