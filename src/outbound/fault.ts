import type { Fault, NotSent, Outcome, Unknown } from "../domain/outcome.ts";
import { type TlsFailure, tlsFailureOf } from "../domain/tls.ts";
import type { Cut } from "./deadline.ts";

/**
 * What a failed call means, from the error's code alone: its message holds the address and the query string, and goes
 * nowhere (hostile 4). What is not known to have stayed here is `unknown`.
 */
export function outcomeOf(error: unknown, cut: Cut): NotSent | Unknown {
  const known = OUTCOMES.get(codeOf(error)) ?? tlsOutcome(error);
  if (known !== null) return known;
  return cut === null ? CLOSED : { kind: "unknown", fault: cut };
}

/** Whether the next address may be tried: no connection came about, so no byte was sent (hostile 3). */
export function isUnconnected(outcome: Outcome): boolean {
  return outcome === REFUSED || outcome === UNREACHABLE;
}

/** A certificate is judged before the request is written. */
function tlsOutcome(error: unknown): NotSent | Unknown | null {
  const failure = tlsFailureOf(error);
  if (failure === null) return null;
  return failure === "handshake" ? TLS_HANDSHAKE : { kind: "not_sent", fault: CERTIFICATE_FAULTS[failure] };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

const CLOSED: Unknown = { kind: "unknown", fault: "closed" };
/** No connection came about; `unreachable` where not every address said no. */
export const REFUSED: NotSent = { kind: "not_sent", fault: "refused" };
export const UNREACHABLE: NotSent = { kind: "not_sent", fault: "unreachable" };
const CERTIFICATE_FAULTS = {
  untrusted: "certificate_untrusted",
  expired: "certificate_expired",
  not_yet_valid: "certificate_not_yet_valid",
  misnamed: "certificate_misnamed",
  certificate: "certificate",
} as const satisfies Record<Exclude<TlsFailure, "handshake">, Fault>;
/** After a TLS 1.3 handshake the target may still break it off, having read the request. */
const TLS_HANDSHAKE: Unknown = { kind: "unknown", fault: "tls_handshake" };
const NOT_HTTP: Unknown = { kind: "unknown", fault: "not_http" };
const HEADERS_TOO_LARGE: Unknown = { kind: "unknown", fault: "headers_too_large" };
/** The engine's own idle timer, five minutes: only a longer deadline of ours lets it fire. */
const TIMED_OUT: Unknown = { kind: "unknown", fault: "timed_out" };

const OUTCOMES: ReadonlyMap<string, NotSent | Unknown> = new Map<string, NotSent | Unknown>([
  ["ECONNREFUSED", REFUSED],
  ["ENETUNREACH", UNREACHABLE],
  ["EHOSTUNREACH", UNREACHABLE],
  // A firewall here that says no, and this machine out of ports or files: the connection was never begun.
  ["EACCES", UNREACHABLE],
  ["EPERM", UNREACHABLE],
  ["EADDRNOTAVAIL", UNREACHABLE],
  ["EMFILE", UNREACHABLE],
  ["ENFILE", UNREACHABLE],
  ["Malformed_HTTP_Response", NOT_HTTP],
  ["InvalidContentLength", NOT_HTTP],
  ["InvalidHTTPResponse", NOT_HTTP],
  ["UnrequestedUpgrade", NOT_HTTP],
  ["ResponseHeadersTooLarge", HEADERS_TOO_LARGE],
  ["23", TIMED_OUT],
]);
