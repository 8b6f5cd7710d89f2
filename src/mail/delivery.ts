import { retryAfterMs } from "../domain/backoff.ts";
import type { Delivery } from "../domain/notification.ts";
import type { Stopped } from "../ports/sender.ts";
import { type Answered, describe, isPolicyRefusal, type Outcome } from "../domain/outcome.ts";

/**
 * What the provider's answer means for a mail. Only what is said of the mail itself is final: a key, a domain or a region
 * that is wrong is the operator's to mend, while the mail waits. Sentences are ours, and never hold what was answered.
 */
export function deliveryOf(outcome: Outcome | Stopped, now: Date, timeoutMs: number): Delivery {
  if (outcome.kind === "stopped") return { kind: "not_started", why: "stopping" };
  if (outcome.kind !== "answered") {
    const error = describe(outcome, timeoutMs).replaceAll("target", "mail provider");
    if (isPolicyRefusal(outcome)) return { kind: "refused", error };
    return outcome.fault === "interrupted"
      ? { kind: "interrupted", error }
      : { kind: "failed", error, notBeforeMs: null };
  }
  const { code } = outcome;
  if (code >= 200 && code <= 299) return isTaken(outcome) ? { kind: "delivered" } : { ...FAILED, error: NOT_MAILGUN };
  if (code === 400 || code === 413) return { kind: "refused", error: `The mail provider refused the mail (${code}).` };
  return { kind: "failed", error: sentenceOf(code), notBeforeMs: retryAfterMs(outcome.retryAfter, now) };
}

const FAILED = { kind: "failed", notBeforeMs: null } as const;
const NOT_MAILGUN = "The mail provider's answer was not Mailgun's: check MAILGUN_URL.";

/** Mailgun names the message that it has taken; whoever else answers with 200 has taken nothing. */
function isTaken({ body, truncated, brokenBy }: Answered): boolean {
  // The head has decided (decisions 4): what is missing of the body can't be held against it.
  if (truncated || brokenBy !== null) return true;
  const answer: unknown = JSON.parse(body ?? "null");
  return typeof answer === "object" && answer !== null && "id" in answer;
}

function sentenceOf(code: number): string {
  return SENTENCES[code] ?? `The mail provider answered with status ${code}.`;
}

const SENTENCES: Readonly<Record<number, string>> = {
  401: "The mail provider did not accept the key (401): check MAILGUN_API_KEY, and MAILGUN_URL for the region.",
  403: "The mail provider refused to send (403): check MAILGUN_DOMAIN; a sandbox domain sends to authorised recipients only.",
  404: "The mail provider does not know the domain (404): check MAILGUN_DOMAIN, and MAILGUN_URL for the region.",
  429: "The mail provider asked to wait (429).",
};
