import { readKey } from "../../src/config/values.ts";
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { fingerprint, subkey } from "../../src/crypto/master-key.ts";

const KEY = new Uint8Array(randomBytes(32));

test.each([
  ["base64", "base64"],
  ["URL-safe base64 without padding", "base64url"],
  ["hex", "hex"],
] as const)("a key is read as %s", (_, encoding) => {
  expect(readKey(Buffer.from(KEY).toString(encoding))).toEqual(KEY);
});

test("a key in capital hex is the same key", () => {
  expect(readKey(Buffer.from(KEY).toString("hex").toUpperCase())).toEqual(KEY);
});

test.each([
  ["nothing", ""],
  ["31 bytes", randomBytes(31).toString("base64")],
  ["33 bytes", randomBytes(33).toString("base64")],
  ["63 hex digits", "a".repeat(63)],
  [
    "a foreign character that a decoder would skip",
    `${randomBytes(32).toString("base64").slice(0, 20)}!${"A".repeat(23)}=`,
  ],
  ["a last character with bits that belong to no byte", `${"A".repeat(42)}B=`],
  ["words", "correct horse battery staple"],
])("%s is no key", (_, text) => {
  expect(readKey(text)).toBeNull();
});

test("each purpose has a key of its own, always the same", () => {
  const keys = [subkey(KEY, "seal"), subkey(KEY, "receipt"), subkey(KEY, "fingerprint"), Buffer.from(KEY)];
  expect(new Set(keys.map((key) => key.toString("hex"))).size).toBe(4);
  expect(subkey(KEY, "seal")).toEqual(subkey(KEY, "seal"));
});

test("a subkey is HKDF-SHA-256, as another implementation computes it", async () => {
  const key = await crypto.subtle.importKey("raw", KEY, "HKDF", false, ["deriveBits"]);
  const info = new TextEncoder().encode("outgate/seal/1");
  const bits = await crypto.subtle.deriveBits(
    { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info },
    key,
    256,
  );
  expect(subkey(KEY, "seal")).toEqual(Buffer.from(bits));
});

test("a master key of another length is refused", () => {
  for (const key of [KEY.subarray(1), Buffer.concat([KEY, KEY])])
    expect(() => subkey(key, "seal")).toThrow("must be 32 bytes");
});

test("the fingerprint tells keys apart and holds nothing of them", () => {
  const other = new Uint8Array(KEY);
  other[31] = (KEY[31] ?? 0) ^ 1;
  expect(fingerprint(KEY)).toMatch(/^[0-9a-f]{32}$/);
  expect(fingerprint(other)).not.toBe(fingerprint(KEY));
  expect(Buffer.from(KEY).toString("hex")).not.toContain(fingerprint(KEY));
});
