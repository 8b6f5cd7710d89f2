import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { systemIds } from "../../src/core/ids.ts";
import { createSecrets } from "../../src/crypto/secrets.ts";

const secrets = createSecrets(new Uint8Array(randomBytes(32)), randomBytes);

const ID = systemIds.action(new Date());

test("a receipt token opens the receipt of its action, and fits into a path as it is", () => {
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
  const token = secrets.receiptToken(ID);
  for (let at = 0; at < token.length; at += 1) {
    for (const put of ["x", "0", "A", "", `${token[at]}0`, "é"]) {
      if (put === token[at]) continue;
      expect(secrets.readReceiptToken(token.slice(0, at) + put + token.slice(at + 1))).toBeNull();
    }
  }
});

test("the token of one action does not open another, nor a part of it, nor the id alone, nor garbage", () => {
  const token = secrets.receiptToken(ID);
  const [id, code] = [token.slice(0, -32), token.slice(-32)];
  const other = systemIds.action(new Date()).slice(4);
  const parts = [other + code, ID, ID.slice(4), code, `act_${token}`, token.toUpperCase(), id + code.toUpperCase()];
  const garbage = ["../../etc/passwd", "a".repeat(100_000), "\0".repeat(58), "é".repeat(58), "%00", ""];
  for (const text of [...parts, ...garbage]) expect(secrets.readReceiptToken(text)).toBeNull();
});

test("a token made under another master key opens nothing", () => {
  const others = createSecrets(new Uint8Array(randomBytes(32)), randomBytes);
  expect(secrets.readReceiptToken(others.receiptToken(ID))).toBeNull();
});

test("a device is known by its token, unaltered, until it expires", () => {
  const expiresAt = new Date(1_000);
  const device = { personId: "per_1", deviceId: "ab".repeat(16), expiresAt };
  const token = secrets.deviceToken(device);
  expect(secrets.readDeviceToken(token, new Date(999))).toEqual(device);
  expect(secrets.readDeviceToken(token, expiresAt)).toBeNull();
  for (const other of [null, "", token.replace("per_1", "per_2"), token.replace(".1000.", ".2000."), `${token}x`]) {
    expect(secrets.readDeviceToken(other, new Date(0))).toBeNull();
  }
});

test("a link that was given out works in every version", () => {
  const early = createSecrets(new Uint8Array(32).fill(7), randomBytes);
  expect(early.receiptToken("act_01jd2zkqy8e9v0w6n3x4b5c7d8")).toBe(
    "01jd2zkqy8e9v0w6n3x4b5c7d8fdb2f7dbf05c88e8c0933c082703c56c",
  );
});

describe("the token of an approval link", () => {
  const link = { actionId: ID, run: 1, decision: "approve" } as const;

  test("has 256 bits of its own, is made again alike, and says what it is for", () => {
    const token = secrets.approvalToken(link);
    expect(token).toMatch(/^[0-9a-z]{26}-a1-[0-9a-f]{64}$/);
    expect(secrets.approvalToken(link)).toBe(token);
    expect(secrets.readApprovalToken(token)).toEqual(link);
  });

  test("is another one for each decision, run, action and master key", () => {
    const others = createSecrets(new Uint8Array(randomBytes(32)), randomBytes);
    const tokens = [
      secrets.approvalToken(link),
      secrets.approvalToken({ ...link, decision: "reject" }),
      secrets.approvalToken({ ...link, run: 2 }),
      secrets.approvalToken({ ...link, run: 12 }),
      secrets.approvalToken({ ...link, actionId: `${ID}1` }),
      others.approvalToken(link),
    ];
    expect(new Set(tokens.map((token) => token.slice(-64))).size).toBe(tokens.length);
  });

  test("of any id that an action may have is read", () => {
    for (const actionId of ["act_1", "act_a-b_c", "act_x-a1-", `act_${"z".repeat(64)}`]) {
      const other = { actionId, run: 407, decision: "reject" } as const;
      expect(secrets.readApprovalToken(secrets.approvalToken(other))).toEqual(other);
    }
  });

  test.each([
    [""],
    [secrets.receiptToken(ID)],
    [secrets.approvalToken(link).slice(1)],
    [secrets.approvalToken(link).toUpperCase()],
    [`${secrets.approvalToken(link)}0`],
    [secrets.approvalToken(link).replace("-a1-", "-x1-")],
    [secrets.approvalToken(link).replace("-a1-", "-a0-")],
    [secrets.approvalToken(link).replace("-a1-", "-a9999999999-")],
    [`${"a".repeat(100_000)}-a1-${"0".repeat(64)}`],
    ["../../etc/passwd"],
  ])("is not garbage (%#)", (text) => {
    const read = secrets.readApprovalToken(text);
    expect(read === null || read.actionId !== ID).toBe(true);
  });

  test("is proven by its hash alone", () => {
    const token = secrets.approvalToken(link);
    expect(secrets.isOfHash(token, secrets.hash(token))).toBe(true);
    expect(secrets.isOfHash(`${token} `, secrets.hash(token))).toBe(false);
    expect(secrets.isOfHash(token, "")).toBe(false);
    expect(secrets.isOfHash(token, "not hex")).toBe(false);
  });
});

test("a question's token is for the very text that it was made for, under the very key", () => {
  const token = secrets.questionToken("this");
  expect(token).toMatch(/^[\w-]{43}$/);
  expect(secrets.isQuestionToken("this", token)).toBe(true);
  expect(secrets.isQuestionToken("that", token)).toBe(false);
  for (const altered of ["", token.slice(1), `${token}A`, `A${token.slice(1)}`, token.toUpperCase()]) {
    if (altered !== token) expect(secrets.isQuestionToken("this", altered)).toBe(false);
  }
  const others = createSecrets(new Uint8Array(randomBytes(32)), randomBytes);
  expect(others.isQuestionToken("this", token)).toBe(false);
});
