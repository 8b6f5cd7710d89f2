import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { sign, signingSecret } from "../../src/crypto/secrets.ts";

const ROOT = new Uint8Array(32).fill(7);

const ORIGIN = "https://api.example.com";

test("a signature is what the Standard Webhooks library computes, for any text", () => {
  const seconds = fc.integer({ min: 0, max: 4_102_444_800 });
  const unit = fc.constantFrom("grapheme" as const, "binary" as const);
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      seconds,
      unit.chain((one) => fc.string({ unit: one })),
      (root, timestampSeconds, body) => {
        const secret = signingSecret(root, ORIGIN, "calls");
        const right = new Webhook(secret).sign("act_1", new Date(timestampSeconds * 1_000), body);
        expect(sign(secret, { id: "act_1", timestampSeconds, body })).toBe(right);
      },
    ),
  );
});

test("each account and each origin has a secret of its own, of 32 bytes, always the same", () => {
  const origins = [ORIGIN, "http://api.example.com", "https://api.example.com:8443", "https://example.com"];
  const roots = [ROOT, new Uint8Array(randomBytes(32))];
  const secrets = roots.flatMap((root) => origins.map((origin) => signingSecret(root, origin, "calls")));
  expect(new Set(secrets).size).toBe(secrets.length);
  expect(signingSecret(ROOT, ORIGIN, "calls")).toBe(signingSecret(ROOT, ORIGIN, "calls"));
  for (const secret of secrets) {
    expect(secret).toStartWith("whsec_");
    expect(Buffer.from(secret.slice(6), "base64")).toHaveLength(32);
  }
});

test("a secret that was given out stays what it is in every version", () => {
  expect(signingSecret(ROOT, ORIGIN, "calls")).toBe("whsec_uyOo1FRJ0/OTpDgjjEGzAz/9pdZa60eS0I9mG6NLhi8=");
});

test("a text that is no signing secret is refused", () => {
  expect(() => sign("secret", { id: "act_1", timestampSeconds: 0, body: "" })).toThrow("begins with whsec_");
});
