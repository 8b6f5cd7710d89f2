import { expect, test } from "bun:test";
import { describeTlsFailure, tlsFailure } from "../../src/core/tls.ts";

const error = (code: string, cause?: unknown) => Object.assign(new Error(code, { cause }), { code });

test.each([
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "untrusted"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "untrusted"],
  ["CERT_HAS_EXPIRED", "expired"],
  ["CERT_NOT_YET_VALID", "not_yet_valid"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "misnamed"],
  ["CERT_REVOKED", "certificate"],
  ["EPROTO", "handshake"],
  ["ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", "handshake"],
] as const)("%s is told as %s, also where another error is wrapped around it", (code, failure) => {
  expect(tlsFailure(error(code))).toBe(failure);
  expect(tlsFailure(new TypeError("fetch failed", { cause: error("", error(code)) }))).toBe(failure);
  expect(describeTlsFailure(failure, "https://a.example")).toMatch(
    /^The TLS (certificate|handshake) [^]*a\.example [^]*[.?]$/,
  );
});

test("what was not TLS is none of it, and an error that is its own cause ends the search", () => {
  const round = error("ECONNRESET");
  round.cause = round;
  for (const other of [round, error("ECONNREFUSED"), "EPROTO", null, undefined]) expect(tlsFailure(other)).toBeNull();
});
