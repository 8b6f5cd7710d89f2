/** Why a TLS connection failed. `handshake`: the two sides did not agree, or the other side does not speak TLS. */
type TlsFailure =
  | "untrusted"
  | "expired"
  | "not_yet_valid"
  | "misnamed"
  /** Refused for another reason. */
  | "certificate"
  | "handshake";

/** What is wrong with a certificate, as the end of a sentence; empty if a reader could not act on it. */
export const CERTIFICATE_REASONS: Readonly<Record<Exclude<TlsFailure, "handshake">, string>> = {
  untrusted: ": no authority that this machine trusts has signed it (see NODE_EXTRA_CA_CERTS)",
  expired: ": it has expired",
  not_yet_valid: ": it is not valid yet",
  misnamed: ": it is for another name",
  certificate: "",
};

/**
 * Reads the code of an error or of its causes; null when it is not about TLS. Messages of libraries contain addresses
 * and are not shown.
 */
export function tlsFailure(error: unknown): TlsFailure | null {
  let link: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && typeof link === "object" && link !== null; depth += 1) {
    const code = "code" in link && typeof link.code === "string" ? link.code : "";
    const failure = FAILURES.get(code) ?? (code.startsWith("ERR_SSL_") ? "handshake" : undefined);
    if (failure !== undefined) return failure;
    link = "cause" in link ? link.cause : null;
  }
  return null;
}

/** The message for a client that can't reach Outgate because of TLS. */
export function describeTlsFailure(failure: TlsFailure, where: string): string {
  if (failure === "handshake") return `The TLS handshake with Outgate at ${where} failed: does it speak TLS there?`;
  return `The TLS certificate of Outgate at ${where} was not accepted${CERTIFICATE_REASONS[failure]}.`;
}

/** Causes of causes to look at: libraries wrap errors a few times at most. */
const CAUSES_MAX = 5;

/** Certificate errors by their names in OpenSSL and BoringSSL. All of them come before anything is written. */
const FAILURES: ReadonlyMap<string, TlsFailure> = new Map<string, TlsFailure>([
  ["EPROTO", "handshake"],
  ["CERT_HAS_EXPIRED", "expired"],
  ["CERT_NOT_YET_VALID", "not_yet_valid"],
  ...all("misnamed", "ERR_TLS_CERT_ALTNAME_INVALID HOSTNAME_MISMATCH IP_ADDRESS_MISMATCH"),
  ...all(
    "untrusted",
    `CERT_UNTRUSTED DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_VERIFY_LEAF_SIGNATURE
    UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_GET_ISSUER_CERT_LOCALLY`,
  ),
  ...all(
    "certificate",
    `CERT_REVOKED CERT_REJECTED CERT_CHAIN_TOO_LONG CERT_SIGNATURE_FAILURE UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY
    UNABLE_TO_DECRYPT_CERT_SIGNATURE ERROR_IN_CERT_NOT_BEFORE_FIELD ERROR_IN_CERT_NOT_AFTER_FIELD INVALID_CA INVALID_NON_CA
    INVALID_PURPOSE INVALID_EXTENSION PATH_LENGTH_EXCEEDED KEYUSAGE_NO_CERTSIGN SUBJECT_ISSUER_MISMATCH
    UNHANDLED_CRITICAL_EXTENSION PERMITTED_VIOLATION EXCLUDED_VIOLATION UNSUPPORTED_NAME_SYNTAX NAME_CONSTRAINTS_WITHOUT_SANS
    UNKNOWN_CERTIFICATE_VERIFICATION_ERROR`,
  ),
]);

function all(failure: TlsFailure, codes: string): readonly (readonly [string, TlsFailure])[] {
  return codes.split(/\s+/).map((code) => [code, failure]);
}
