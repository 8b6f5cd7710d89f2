import { afterAll, describe, expect, test } from "bun:test";
import type { Fault, Outcome } from "../../src/core/outcome.ts";
import { createSender } from "../../src/outbound/send.ts";
import { type Certificate, TestAuthority } from "../outbound/certificates.ts";
import { answers, openRawTarget } from "../support/raw-target.ts";
import { LOCAL, requestTo } from "../outbound/policies.ts";

const authority = new TestAuthority();

const trusting = createSender(LOCAL, { ca: authority.ca });

const LIMITS = { timeoutMs: 2_000 };

const refusedAs = (fault: Fault): Outcome => ({ kind: "not_sent", fault });

afterAll(() => authority[Symbol.dispose]());

/** How one attempt at `https://<host>` ends, and what the target saw of it. */
async function attempt(certificate: Certificate, host: string, sender = trusting) {
  await using target = await openRawTarget(answers(200, "{}"), { tls: certificate });
  const outcome = await sender.send(requestTo(target.url("/secret", host)), LIMITS);
  return { outcome, requests: target.requests, stray: target.stray };
}

describe("a target's certificate", () => {
  test("is accepted for the name that the caller wrote, although an address is dialled", async () => {
    const { outcome, requests } = await attempt(authority.issue("DNS:a.localhost"), "a.localhost");
    expect(outcome).toMatchObject({ kind: "answered", code: 200, body: "{}" });
    expect(requests[0]).toMatch(/^POST \/secret HTTP\/1\.1\r\n[^]*Host: a\.localhost:/);
  });

  test.each([
    ["one level under its star", "DNS:*.a.localhost", "b.a.localhost"],
    ["for an address that stands in it", "IP:127.0.0.1", "127.0.0.1"],
  ])("is accepted %s", async (_what, names, host) => {
    expect((await attempt(authority.issue(names), host)).outcome.kind).toBe("answered");
  });

  test.each<[string, Fault, () => Certificate, string]>([
    ["of another name", "certificate_misnamed", () => authority.issue("DNS:b.localhost"), "a.localhost"],
    ["of the dialled address only", "certificate_misnamed", () => authority.issue("IP:127.0.0.1"), "a.localhost"],
    [
      "of a name, where an address was written",
      "certificate_misnamed",
      () => authority.issue("DNS:127.0.0.1,DNS:localhost"),
      "127.0.0.1",
    ],
    ["expired", "certificate_expired", () => authority.issueExpired("DNS:a.localhost"), "a.localhost"],
    ["self-signed", "certificate_untrusted", () => authority.selfSigned("DNS:a.localhost"), "a.localhost"],
    ["one level too far down", "certificate_misnamed", () => authority.issue("DNS:*.a.localhost"), "c.b.a.localhost"],
    ["one level, at its root", "certificate_misnamed", () => authority.issue("DNS:*.a.localhost"), "a.localhost"],
  ])("%s: not accepted (%s), and not a byte of the request was sent", async (_name, fault, certificate, host) => {
    expect(await attempt(certificate(), host)).toEqual({ outcome: refusedAs(fault), requests: [], stray: "" });
  });

  test("of an authority that is not trusted is not accepted: trust comes from the option alone", async () => {
    const certificate = authority.issue("DNS:a.localhost");
    expect(await attempt(certificate, "a.localhost", createSender(LOCAL))).toEqual({
      outcome: refusedAs("certificate_untrusted"),
      requests: [],
      stray: "",
    });
  });
});
