import { expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { isWellFormedApiKey } from "../support/api-key.ts";
import { newApiKey } from "../../src/crypto/tokens.ts";
import { createSecrets } from "../../src/crypto/secrets.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

test("a key is og_, 30 base62 characters and the checksum of these", () => {
  for (let count = 0; count < 1_000; count += 1) {
    const key = newApiKey(randomBytes);
    expect(key).toMatch(/^og_[0-9A-Za-z]{36}$/);
    expect(isWellFormedApiKey(key)).toBe(true);
  }
});

test("every character is as likely as any other", () => {
  const counts = new Map<string, number>();
  const keys = 10_000;
  for (let count = 0; count < keys; count += 1) {
    for (const email of newApiKey(randomBytes).slice(3, 33)) counts.set(email, (counts.get(email) ?? 0) + 1);
  }
  const expected = (keys * 30) / 62;
  const chiSquare = ALPHABET.split("").reduce(
    (sum, email) => sum + ((counts.get(email) ?? 0) - expected) ** 2 / expected,
    0,
  );
  // 61 degrees of freedom: a fair generator passes 140 once in 10^8 runs; bytes modulo 62 give about 1,900.
  expect(chiSquare).toBeLessThan(140);
});

test("bytes that would make the first letters likelier are thrown away", () => {
  const served = [new Uint8Array(30).fill(255), new Uint8Array(30).fill(248), new Uint8Array(30).fill(247)];
  expect(newApiKey(() => served.shift() ?? new Uint8Array()).slice(3, 33)).toBe("z".repeat(30));
});

test("a typo is no well-formed key", () => {
  const key = newApiKey(randomBytes);
  for (let at = 0; at < key.length; at += 1) {
    const typo = key.slice(0, at) + (key[at] === "x" ? "y" : "x") + key.slice(at + 1);
    expect(isWellFormedApiKey(typo)).toBe(false);
  }
  for (const text of ["", key.slice(1), `${key}0`, ` ${key}`, `${key}\n`, key.toUpperCase()]) {
    expect(isWellFormedApiKey(text)).toBe(false);
  }
});

test("keys are kept as SHA-256 in hex", () => {
  const secrets = createSecrets(new Uint8Array(32), randomBytes);
  const key = secrets.newApiKey();
  expect(isWellFormedApiKey(key)).toBe(true);
  expect(secrets.hash(key)).toBe(createHash("sha256").update(key).digest("hex"));
  expect(secrets.hash("grüße")).toBe(createHash("sha256").update(Buffer.from("grüße")).digest("hex"));
});
