import type { Action, ErrorSource, Result } from "./action.ts";
import { CERTIFICATE_REASONS } from "./tls.ts";
import { ATTEMPT_MS_MIN, LEASE_WRITE_MS } from "./limits.ts";
import type { HttpMethod } from "./target.ts";

/** Why no answer arrived. Each has a fixed sentence; messages of libraries are never shown. */
export type Fault = "timed_out" | keyof typeof FAULTS;

/** The target answered with a status. `brokenBy`: its body did not arrive whole. */
export interface Answered {
  readonly kind: "answered";
  /** 200..599. */
  readonly code: number;
  /** JSON text of `response_body`; null: no body. */
  readonly body: string | null;
  /** JSON text of `keptHeaders`; null: none. */
  readonly headers: string | null;
  readonly truncated: boolean;
  readonly brokenBy: "timed_out" | "closed" | null;
  readonly retryAfter: string | null;
  readonly location: string | null;
}

/** No byte of the request reached the target. */
export interface NotSent {
  readonly kind: "not_sent";
  readonly fault: Fault;
}

/** Bytes may have been sent and no answer arrived: the target may have received the request. */
export interface Unknown {
  readonly kind: "unknown";
  readonly fault: Fault;
}

/** How one attempt ended; a value, never an exception. */
export type Outcome = Answered | NotSent | Unknown;

/** The names of outcomes in the timeline. */
export const OUTCOMES = ["answered", "not_sent", "unknown"] as const satisfies readonly Outcome["kind"][];

export type OutcomeKind = Outcome["kind"];

/** Success is a 2xx status. Only a GET, which is safe to repeat, also needs its whole body. */
export function isSuccess(outcome: Outcome, method: HttpMethod): boolean {
  if (outcome.kind !== "answered" || outcome.code < 200 || outcome.code > 299) return false;
  return outcome.brokenBy === null || method !== "GET";
}

/** Whether Outgate itself refused to send. It ends the action: another attempt would be refused too. */
export function isPolicyRefusal(outcome: Outcome): boolean {
  return outcome.kind === "not_sent" && OWN_REFUSALS.has(outcome.fault);
}

/** Whether this process could open no connection: the call waits, and its attempt does not count. */
export function isWithoutFile(outcome: Outcome): boolean {
  return outcome.kind === "not_sent" && outcome.fault === "no_file";
}

const OWN_REFUSALS: ReadonlySet<Fault> = new Set([
  "address_never",
  "address_private",
  "altered",
  "credential_deleted",
  "credential_disabled",
  "credential_expired",
  "credential_bounds",
  "credential_key",
  "credential_plain",
]);

/**
 * Whether an attempt may use a connection that earlier calls left open. If such a connection breaks, the outcome is more often
 * unknown, so only attempts that would be retried after an unknown outcome use one.
 */
export function mayUseKept({
  attempts,
  retries,
  onUnknown,
}: Pick<Action, "attempts" | "retries" | "onUnknown">): boolean {
  return attempts < retries && onUnknown === "retry";
}

/** `target`: it answered with an error status; `dispatch`: no whole answer arrived. */
export function outcomeSource(outcome: Outcome): ErrorSource {
  return outcome.kind === "answered" && !isBrokenSuccess(outcome) ? "target" : "dispatch";
}

/** The sentence for `last_error`; `timeoutMs` is the deadline of this attempt. */
export function describeOutcome(outcome: Outcome, timeoutMs: number): string {
  if (outcome.kind !== "answered") return faultSentence(outcome.fault, timeoutMs);
  if (isBrokenSuccess(outcome)) return faultSentence(outcome.brokenBy ?? "closed", timeoutMs);
  if (outcome.code >= 300 && outcome.code < 400) {
    return `The target answered with a redirect (${outcome.code}); redirects are never followed.`;
  }
  return statusSentence(outcome.code);
}

export function statusSentence(code: number): string {
  return `The target answered with status ${code}.`;
}

function isBrokenSuccess(outcome: Answered): boolean {
  return outcome.code >= 200 && outcome.code <= 299 && outcome.brokenBy !== null;
}

function faultSentence(fault: Fault, timeoutMs: number): string {
  if (fault === "timed_out") return `${TIMED_OUT}${seconds(timeoutMs)}.`;
  return FAULTS[fault][1];
}

const TIMED_OUT = "The target did not answer within ";

/** Kinds of failures, as lists filter by them. */
export const ERROR_KINDS = [
  "target",
  "timed_out",
  "closed",
  "refused",
  "unreachable",
  "dns",
  "certificate",
  "not_allowed",
  "interrupted",
  "other",
] as const;

export type ErrorKind = (typeof ERROR_KINDS)[number];

/** Each fault: its kind, and its sentence. */
const FAULTS = {
  name_not_resolved: ["dns", "The target's name could not be resolved."],
  refused: ["refused", "The target refused the connection."],
  unreachable: ["unreachable", "The target could not be reached."],
  certificate: ["certificate", certificateSentence("certificate")],
  certificate_untrusted: ["certificate", certificateSentence("untrusted")],
  certificate_expired: ["certificate", certificateSentence("expired")],
  certificate_not_yet_valid: ["certificate", certificateSentence("not_yet_valid")],
  certificate_misnamed: ["certificate", certificateSentence("misnamed")],
  tls_handshake: ["other", "The TLS handshake with the target failed."],
  closed: ["closed", "The target closed the connection before the whole answer came."],
  not_http: ["other", "The target's answer was not valid HTTP."],
  headers_too_large: ["other", "The headers of the target's answer were too large."],
  address_never: ["not_allowed", "The target's address is not allowed."],
  address_private: ["not_allowed", "The target's address is not allowed (see ALLOWED_PRIVATE_TARGETS)."],
  no_file: ["other", "Outgate has too many files and connections open, so nothing was sent. Try again in a moment."],
  altered: ["other", "The request was altered after it was created or approved, so it was not sent."],
  unsignable: ["other", "The call could not be signed, so it was not sent; the log of the service says why."],
  interrupted: ["interrupted", "The attempt was interrupted; the target may have received it."],
  credential_deleted: [
    "not_allowed",
    "The credential of this call was deleted, so nothing was sent: ask an owner of the account, and request the call with another one.",
  ],
  credential_disabled: [
    "not_allowed",
    "The credential of this call is disabled, so nothing was sent: ask an owner of the account to enable it, then retry.",
  ],
  credential_expired: [
    "not_allowed",
    "The credential of this call has expired, so nothing was sent: ask an owner of the account to renew it, then retry.",
  ],
  credential_bounds: [
    "not_allowed",
    "The call lies outside of where its credential may go now, so nothing was sent: ask an owner of the account.",
  ],
  credential_key: [
    "not_allowed",
    "The key that requested this call may no longer use its credential, so nothing was sent: ask an owner of the account.",
  ],
  credential_plain: [
    "not_allowed",
    "A credential goes without TLS only to loopback and private addresses, so nothing was sent: use HTTPS.",
  ],
  credential_unreadable: [
    "other",
    "The credential of this call could not be read, so nothing was sent; the log of the service says why.",
  ],
} as const satisfies Readonly<Record<string, readonly [kind: ErrorKind, sentence: string]>>;

/** The kind of a fault by its sentence, which is all that is stored of it. */
const KIND_OF_SENTENCE: ReadonlyMap<string, ErrorKind> = new Map(
  Object.values(FAULTS).map(([kind, sentence]) => [sentence, kind]),
);

/** The kind of failure that a result is; null: it is no failure. */
export function errorKind({ errorSource, lastError }: Pick<Result, "errorSource" | "lastError">): ErrorKind | null {
  if (errorSource === null) return null;
  if (errorSource === "target") return "target";
  if (lastError?.startsWith(TIMED_OUT) === true) return "timed_out";
  return KIND_OF_SENTENCE.get(lastError ?? "") ?? "other";
}

function certificateSentence(failure: keyof typeof CERTIFICATE_REASONS): string {
  return `The target's TLS certificate was not accepted${CERTIFICATE_REASONS[failure]}.`;
}

function seconds(timeoutMs: number): string {
  // A deadline cut by the lease is an odd number of milliseconds: round it to tenths of a second.
  const value = timeoutMs < 1_000 ? timeoutMs / 1_000 : Math.round(timeoutMs / 100) / 10;
  return value === 1 ? "1 second" : `${value} seconds`;
}

/** Whether the lease is too short for an attempt of this length that begins now, but can still be extended in time. */
export function isLeaseTooShort(
  { leaseUntil }: { readonly leaseUntil: Date | null },
  now: Date,
  timeoutMs: number,
): boolean {
  if (leaseUntil === null) return false;
  const leftMs = leaseUntil.getTime() - now.getTime() - LEASE_WRITE_MS;
  return leftMs > 0 && leftMs < timeoutMs;
}

/**
 * Milliseconds that an attempt may take if it begins now: its timeout, cut so that the result can be written before the
 * lease ends (a lease begins before the claim is on disk). 0: too little of the lease is left.
 */
export function attemptMs(
  { leaseUntil }: { readonly leaseUntil: Date | null },
  now: Date,
  attemptTimeoutMs: number,
): number {
  if (leaseUntil === null) return 0;
  const leftMs = leaseUntil.getTime() - now.getTime() - LEASE_WRITE_MS;
  return leftMs < Math.min(attemptTimeoutMs, ATTEMPT_MS_MIN) ? 0 : Math.min(attemptTimeoutMs, leftMs);
}
