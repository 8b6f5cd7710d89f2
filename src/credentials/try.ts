import { USER_AGENT } from "../config/config.ts";
import type { CheckTarget } from "../config/target-policy.ts";
import { NO_EXTRAS } from "../core/extras.ts";
import { DomainError, invalidField } from "../core/domain-error.ts";
import { CREDENTIAL_TEST_BODY_CHARS_MAX, MESSAGE_TIMEOUT_MS } from "../core/limits.ts";
import { describeOutcome, isSuccess, type Outcome } from "../core/outcome.ts";
import { requireFree } from "../core/policy.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { OutboundRequest, Sender } from "../outbound/sender.ts";
import type { ActivePauses } from "../pauses/pauses.ts";
import { maskResponseHeaders, maskText } from "../receipts/masking.ts";
import { readHeaders } from "../receipts/response-headers.ts";
import type { CredentialTestJson } from "./schemas.ts";
import type { CredentialUse } from "./use.ts";

export interface TryNeeds {
  readonly credentialUse: Pick<CredentialUse, "forTry">;
  readonly sender: Sender;
  readonly paused: Pick<ActivePauses, "isPaused">;
  readonly checkTarget: CheckTarget;
  /** Counts a try of the account. Throws `RetryLater` after too many. */
  readonly countTry: (accountId: string) => void;
}

/**
 * Sends a GET with a credential at once and waits for at most `MESSAGE_TIMEOUT_MS`. Throws `not_found`, `validation_error` for a URL
 * to which calls may not go, and `forbidden` outside the bounds, under a pause, and for keys with a hold or a limit.
 */
export async function tryCredential(
  { credentialUse, sender, paused, checkTarget, countTry }: TryNeeds,
  caller: Caller,
  name: string,
  url: string,
): Promise<CredentialTestJson> {
  authorize(caller, "manage");
  const request = { url, method: "GET", headers: null, body: null, extras: NO_EXTRAS } as const;
  const checked = checkTarget(url);
  if ("refused" in checked) throw invalidField("url", checked.refused);
  requireFree(caller, request, HELD);
  const { host } = checked;
  const attempt = await credentialUse.forTry(caller, name, { ...request, host });
  const lane = { accountId: caller.accountId, keyId: caller.keyId ?? "", host };
  if (paused.isPaused(lane)) throw new DomainError("forbidden", PAUSED);
  countTry(caller.accountId);
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
}

const HELD = "A key whose calls are held can't try credentials. Ask an owner whose calls are not held.";

const PAUSED = "Calls to this host are paused, and so are tries of credentials. Resume them first.";

/** Masks anything else that looks like a secret. The credential itself was masked before anything was cut. */
function seen(outcome: Outcome): CredentialTestJson {
  const error = isSuccess(outcome, "GET") ? null : describeOutcome(outcome, MESSAGE_TIMEOUT_MS);
  if (outcome.kind !== "answered") return { status: null, error, headers: {}, body: null, truncated: false };
  const { code, headers, body, truncated } = outcome;
  const text = body === null ? null : receivedText(body);
  // Mask before cutting, which might cut a secret in two.
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

/** The received text, from the form of `response_body`. */
function receivedText(json: string): string {
  const value: unknown = json.startsWith('"') ? JSON.parse(json) : json;
  return typeof value === "string" ? value : json;
}
