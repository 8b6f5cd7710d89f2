import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { systemIds } from "../../src/ids.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { verifies } from "../spec/verifies.ts";

const secrets = createSecrets(new Uint8Array(randomBytes(32)), randomBytes);
const ID = systemIds.action(new Date());

test("a receipt token opens the receipt of its action, and fits into a path as it is", () => {
  verifies("spec.receipt.unguessable");
  const token = secrets.receiptToken(ID);
  expect(token).toMatch(/^[0-9a-z]{58}$/);
  expect(secrets.readReceiptToken(token)).toBe(ID);
  expect(secrets.receiptToken(ID)).toBe(token);
});

test("ids of any form that an action may have come back", () => {
  for (const id of ["act_1", "act_a-b_c", `act_${"z".repeat(64)}`]) {
    expect(secrets.readReceiptToken(secrets.receiptToken(id))).toBe(id);
  }
});

test("a token with any character changed, removed or added opens nothing", () => {
  verifies("spec.receipt.unguessable");
  const token = secrets.receiptToken(ID);
  for (let at = 0; at < token.length; at += 1) {
    for (const put of ["x", "0", "A", "", `${token[at]}0`, "é"]) {
      if (put === token[at]) continue;
      expect(secrets.readReceiptToken(token.slice(0, at) + put + token.slice(at + 1))).toBeNull();
    }
  }
});

test("the token of one action does not open another, nor a part of it, nor the id alone", () => {
  verifies("spec.receipt.unguessable");
  const token = secrets.receiptToken(ID);
  const other = systemIds.action(new Date()).slice(4);
  for (const text of [
    other + token.slice(-32),
    ID,
    ID.slice(4),
    token.slice(-32),
    `act_${token}`,
    token.toUpperCase(),
    token.slice(0, -32) + token.slice(-32).toUpperCase(),
    "",
  ]) {
    expect(secrets.readReceiptToken(text)).toBeNull();
  }
});

test.each([["../../etc/passwd"], ["a".repeat(100_000)], ["\0".repeat(58)], ["é".repeat(58)], ["%00"]])(
  "garbage opens nothing (%#)",
  (text) => {
    expect(secrets.readReceiptToken(text)).toBeNull();
  },
);

test("a token made under another master key opens nothing", () => {
  const others = createSecrets(new Uint8Array(randomBytes(32)), randomBytes);
  expect(secrets.readReceiptToken(others.receiptToken(ID))).toBeNull();
});

test("a link that was given out works in every version", () => {
  const early = createSecrets(new Uint8Array(32).fill(7), randomBytes);
  expect(early.receiptToken("act_01jd2zkqy8e9v0w6n3x4b5c7d8")).toBe(
    "01jd2zkqy8e9v0w6n3x4b5c7d8c8c81ddbea9028abe140ca43883aa5fe",
  );
});
