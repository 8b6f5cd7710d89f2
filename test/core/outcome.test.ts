import { describe, expect, test } from "bun:test";
import { type Answered, describeOutcome as sentenceOf, type Fault } from "../../src/core/outcome.ts";
import { answered } from "../support/factory.ts";

const ANSWERED: Answered = {
  ...answered(500, '"secret answer"'),
  retryAfter: "120",
  location: "http://10.1.2.3/secret",
};

/** One sentence for each thing that can stand in the way of an answer. */
const SENTENCES: Readonly<Record<Fault, string>> = {
  timed_out: "The target did not answer within 30 seconds.",
  name_not_resolved: "The target's name could not be resolved.",
  refused: "The target refused the connection.",
  unreachable: "The target could not be reached.",
  certificate: "The target's TLS certificate was not accepted.",
  certificate_untrusted:
    "The target's TLS certificate was not accepted: no authority that this machine trusts has signed it (see NODE_EXTRA_CA_CERTS).",
  certificate_expired: "The target's TLS certificate was not accepted: it has expired.",
  certificate_not_yet_valid: "The target's TLS certificate was not accepted: it is not valid yet.",
  certificate_misnamed: "The target's TLS certificate was not accepted: it is for another name.",
  tls_handshake: "The TLS handshake with the target failed.",
  closed: "The target closed the connection before the whole answer came.",
  not_http: "The target's answer was not valid HTTP.",
  headers_too_large: "The headers of the target's answer were too large.",
  address_never: "The target's address is not allowed.",
  address_private: "The target's address is not allowed (see ALLOWED_PRIVATE_TARGETS).",
  no_file: "Outgate has too many files and connections open, so nothing was sent. Try again in a moment.",
  altered: "The request was altered after it was created or approved, so it was not sent.",
  unsignable: "The call could not be signed, so it was not sent; the log of the service says why.",
  interrupted: "The attempt was interrupted; the target may have received it.",
  credential_deleted:
    "The credential of this call was deleted, so nothing was sent: ask an owner of the account, and request the call with another one.",
  credential_disabled:
    "The credential of this call is disabled, so nothing was sent: ask an owner of the account to enable it, then retry.",
  credential_expired:
    "The credential of this call has expired, so nothing was sent: ask an owner of the account to renew it, then retry.",
  credential_bounds:
    "The call lies outside of where its credential may go now, so nothing was sent: ask an owner of the account.",
  credential_key:
    "The key that requested this call may no longer use its credential, so nothing was sent: ask an owner of the account.",
  credential_plain:
    "A credential goes without TLS only to loopback and private addresses, so nothing was sent: use HTTPS.",
  credential_unreadable:
    "The credential of this call could not be read, so nothing was sent; the log of the service says why.",
};

// Safe: the keys of a literal whose type has exactly these.
const FAULTS = Object.keys(SENTENCES) as Fault[];

describe("the sentence", () => {
  test.each(FAULTS)("for %s is its own, sent or not", (fault) => {
    expect(sentenceOf({ kind: "not_sent", fault }, 30_000)).toBe(SENTENCES[fault]);
    expect(sentenceOf({ kind: "unknown", fault }, 30_000)).toBe(SENTENCES[fault]);
  });

  test.each([
    [400, "The target answered with status 400."],
    [599, "The target answered with status 599."],
    [300, "The target answered with a redirect (300); redirects are never followed."],
    [304, "The target answered with a redirect (304); redirects are never followed."],
    [399, "The target answered with a redirect (399); redirects are never followed."],
  ])("for an answer with status %i names the status only", (code, sentence) => {
    expect(sentenceOf({ ...ANSWERED, code }, 30_000)).toBe(sentence);
    expect(sentenceOf({ ...ANSWERED, code, brokenBy: "closed" }, 30_000)).toBe(sentence);
  });

  test.each(["closed", "timed_out"] as const)("for a success whose body was %s is the one of the fault", (brokenBy) => {
    expect(sentenceOf({ ...ANSWERED, code: 200, brokenBy }, 30_000)).toBe(SENTENCES[brokenBy]);
  });

  test.each([
    [1, "0.001 seconds"],
    [1_000, "1 second"],
    [1_500, "1.5 seconds"],
    [28_437, "28.4 seconds"],
    [30_000, "30 seconds"],
  ])("for a deadline of %i ms says how long it was", (timeoutMs, told) => {
    const sentence = `The target did not answer within ${told}.`;
    expect(sentenceOf({ kind: "unknown", fault: "timed_out" }, timeoutMs)).toBe(sentence);
  });
});
