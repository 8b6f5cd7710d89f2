import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { sign, signingSecret } from "../../src/crypto/secrets.ts";

const ROOT = new Uint8Array(32).fill(7);

const ORIGIN = "https://api.example.com";

function headersOf(id: string, timestampSeconds: number, signature: string) {
  return { "webhook-id": id, "webhook-timestamp": String(timestampSeconds), "webhook-signature": signature };
}

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

test("the library accepts a message as we sign it, and none that was changed", () => {
  const secret = signingSecret(ROOT, ORIGIN, "calls");
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const body = JSON.stringify({ amount: 12, note: "grüße" });
  const signature = sign(secret, { id: "act_1", timestampSeconds, body });
  const library = new Webhook(secret);
  expect(signature).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
  expect(library.verify(body, headersOf("act_1", timestampSeconds, signature))).toEqual({ amount: 12, note: "grüße" });
  expect(() => library.verify(body.replace("12", "13"), headersOf("act_1", timestampSeconds, signature))).toThrow();
  expect(() => library.verify(body, headersOf("act_2", timestampSeconds, signature))).toThrow();
  expect(() => library.verify(body, headersOf("act_1", timestampSeconds - 1, signature))).toThrow();
});

test("two signatures side by side are accepted under the old secret and the new", () => {
  const secrets = [signingSecret(ROOT, ORIGIN, "calls"), signingSecret(new Uint8Array(32), ORIGIN, "calls")];
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const list = secrets.map((secret) => sign(secret, { id: "act_1", timestampSeconds, body: "{}" })).join(" ");
  for (const secret of secrets) {
    expect(new Webhook(secret).verify("{}", headersOf("act_1", timestampSeconds, list))).toEqual({});
  }
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

test("one target's secret does not verify what another gets", () => {
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const signature = sign(signingSecret(ROOT, ORIGIN, "calls"), { id: "act_1", timestampSeconds, body: "{}" });
  const other = new Webhook(signingSecret(ROOT, "https://other.example.com", "calls"));
  expect(() => other.verify("{}", headersOf("act_1", timestampSeconds, signature))).toThrow();
});

test("a secret that was given out stays what it is in every version", () => {
  expect(signingSecret(ROOT, ORIGIN, "calls")).toBe("whsec_uyOo1FRJ0/OTpDgjjEGzAz/9pdZa60eS0I9mG6NLhi8=");
});

test("a text that is no signing secret is refused", () => {
  expect(() => sign("secret", { id: "act_1", timestampSeconds: 0, body: "" })).toThrow("begins with whsec_");
});
