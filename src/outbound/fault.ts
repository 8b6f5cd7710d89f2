import type { NotSent, Outcome, Unknown } from "../domain/outcome.ts";
import type { Cut } from "./deadline.ts";

/**
 * What a failed call means, from the error's code alone: its message holds the address and the query string, and goes
 * nowhere (hostile 4). What is not known to have stayed here is `unknown`.
 */
export function outcomeOf(error: unknown, cut: Cut): NotSent | Unknown {
  const known = OUTCOMES.get(codeOf(error));
  if (known !== undefined) return known;
  return cut === null ? CLOSED : { kind: "unknown", fault: cut };
}

/** Whether the next address may be tried: no connection came about, so no byte was sent (hostile 3). */
export function isUnconnected(outcome: Outcome): boolean {
  return outcome === REFUSED || outcome === UNREACHABLE;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

const CLOSED: Unknown = { kind: "unknown", fault: "closed" };
const REFUSED: NotSent = { kind: "not_sent", fault: "refused" };
const UNREACHABLE: NotSent = { kind: "not_sent", fault: "unreachable" };
const CERTIFICATE: NotSent = { kind: "not_sent", fault: "certificate" };
/** After a TLS 1.3 handshake the target may still break it off, having read the request. */
const TLS_HANDSHAKE: Unknown = { kind: "unknown", fault: "tls_handshake" };
const NOT_HTTP: Unknown = { kind: "unknown", fault: "not_http" };
const HEADERS_TOO_LARGE: Unknown = { kind: "unknown", fault: "headers_too_large" };
/** The engine's own idle timer, five minutes: only a longer deadline of ours lets it fire. */
const TIMED_OUT: Unknown = { kind: "unknown", fault: "timed_out" };

/** What the verification of a certificate can say (BoringSSL's names). It comes before the request is written. */
const CERTIFICATE_CODES = [
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "CERT_REVOKED",
  "CERT_REJECTED",
  "CERT_UNTRUSTED",
  "CERT_CHAIN_TOO_LONG",
  "CERT_SIGNATURE_FAILURE",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY",
  "UNABLE_TO_DECRYPT_CERT_SIGNATURE",
  "ERROR_IN_CERT_NOT_BEFORE_FIELD",
  "ERROR_IN_CERT_NOT_AFTER_FIELD",
  "HOSTNAME_MISMATCH",
  "IP_ADDRESS_MISMATCH",
  "INVALID_CA",
  "INVALID_NON_CA",
  "INVALID_PURPOSE",
  "INVALID_EXTENSION",
  "PATH_LENGTH_EXCEEDED",
  "KEYUSAGE_NO_CERTSIGN",
  "SUBJECT_ISSUER_MISMATCH",
  "UNHANDLED_CRITICAL_EXTENSION",
  "PERMITTED_VIOLATION",
  "EXCLUDED_VIOLATION",
  "UNSUPPORTED_NAME_SYNTAX",
  "NAME_CONSTRAINTS_WITHOUT_SANS",
  "UNKNOWN_CERTIFICATE_VERIFICATION_ERROR",
];

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
  ...CERTIFICATE_CODES.map((code) => [code, CERTIFICATE] as const),
  ["EPROTO", TLS_HANDSHAKE],
  ["Malformed_HTTP_Response", NOT_HTTP],
  ["InvalidContentLength", NOT_HTTP],
  ["InvalidHTTPResponse", NOT_HTTP],
  ["UnrequestedUpgrade", NOT_HTTP],
  ["ResponseHeadersTooLarge", HEADERS_TOO_LARGE],
  ["23", TIMED_OUT],
]);
