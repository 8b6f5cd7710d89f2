import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { createSecrets } from "../../src/crypto/secrets.ts";

const KEY = new Uint8Array(randomBytes(32));

const secrets = createSecrets(KEY, randomBytes);

const PLACE = { table: "actions", row: "act_1", column: "headers" };

test("what is sealed opens again, byte for byte, whatever it is", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 4_096 }), (plain) => {
      expect(secrets.open(secrets.seal(plain, PLACE), PLACE)).toEqual(Buffer.from(plain));
    }),
  );
});

test("a text is sealed as UTF-8 and becomes printable ASCII that holds nothing of it", () => {
  const sealed = secrets.seal("Bearer grüße-canary", PLACE);
  expect(sealed).toMatch(/^[0-9a-f]{8}\.[A-Za-z0-9+/]+=*$/);
  expect(sealed).not.toContain("canary");
  expect(Buffer.from(sealed.slice(9), "base64").toString("latin1")).not.toContain("canary");
  expect(secrets.open(sealed, PLACE).toString()).toBe("Bearer grüße-canary");
});

test("the same text is never sealed alike", () => {
  const sealed = new Set(Array.from({ length: 1_000 }, () => secrets.seal("x", PLACE)));
  expect(sealed.size).toBe(1_000);
});

test("a text does not open at another place, even one that reads the same when joined", () => {
  const parts = ["a", "|", ",", '"', "\0", "b", ""];
  const place = fc.record({ table: fc.constantFrom(...parts), row: fc.string(), column: fc.constantFrom(...parts) });
  const shifted = { table: "a|b", row: "c", column: '","' };
  expect(() => secrets.open(secrets.seal("x", { table: "a", row: "b|c", column: '","' }), shifted)).toThrow();
  fc.assert(
    fc.property(place, place, (one, other) => {
      fc.pre(one.table !== other.table || one.row !== other.row || one.column !== other.column);
      expect(() => secrets.open(secrets.seal("x", one), other)).toThrow("altered or belongs to another row");
    }),
  );
});

test("a text with any character changed, removed or added does not open", () => {
  const sealed = secrets.seal("0123456789", PLACE);
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = sealed[at] === "A" ? "B" : "A";
    for (const put of [changed, "", "!", `${sealed[at]}A`]) {
      const altered = sealed.slice(0, at) + put + sealed.slice(at + 1);
      expect(() => secrets.open(altered, PLACE)).toThrow("The sealed headers of actions act_1");
    }
  }
});

test.each(["", ".", "x", "AAAA"])("%j does not open", (text) => {
  expect(() => secrets.open(text, PLACE)).toThrow("The sealed headers");
});

test("a text sealed under another key says so", () => {
  const others = createSecrets(new Uint8Array(randomBytes(32)), randomBytes);
  expect(() => secrets.open(others.seal("x", PLACE), PLACE)).toThrow("was sealed under another key");
});

test("it is AES-256-GCM, as another implementation opens it", async () => {
  const bytes = Buffer.from(secrets.seal("canary", PLACE).slice(9), "base64");
  const master = await crypto.subtle.importKey("raw", KEY, "HKDF", false, ["deriveKey"]);
  const info = new TextEncoder().encode("outgate/seal/1");
  const hkdf = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  const key = await crypto.subtle.deriveKey(hkdf, master, { name: "AES-GCM", length: 256 }, false, ["decrypt"]);
  // WebCrypto wants the tag behind the text.
  const cipher = Buffer.concat([bytes.subarray(28), bytes.subarray(12, 28)]);
  const additionalData = new TextEncoder().encode('["actions","act_1","headers"]');
  const open = { name: "AES-GCM", iv: bytes.subarray(0, 12), additionalData };
  expect(Buffer.from(await crypto.subtle.decrypt(open, key, cipher)).toString()).toBe("canary");
});

test("a text that an earlier version sealed opens", () => {
  const early = createSecrets(new Uint8Array(32).fill(7), randomBytes);
  const sealed = "dec5661d.VmryYqfq/Uf4B8+oZPPeeXJQNCqJ20oJcxKn9EId01m8sQ==";
  expect(early.open(sealed, PLACE).toString()).toBe("canary");
});
