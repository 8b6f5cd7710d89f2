import { describe, expect, test } from "bun:test";
import { maskedFacts, NO_HISTORY } from "../../src/approvals/facts.ts";
import { EARLIER_REJECTIONS_SHOWN_MAX } from "../../src/core/limits.ts";
import type { EarlierRejection } from "../../src/core/rejections.ts";
import { anAction, NOON } from "../support/factory.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

const entry = (kind: EarlierRejection["kind"]): EarlierRejection => ({ kind, at: NOON, by: "key:ann", reason: null });

const countIn = (run: number, rejections: readonly EarlierRejection[]) =>
  maskedFacts(maskAction(anAction({ run }), "decider"), { ...NO_HISTORY, rejections }, "").facts.find(
    ({ name }) => name === "rejections",
  )?.value;

describe("the number of earlier rejections", () => {
  test("leaves out what was asked since, and says where some may have been forgotten", () => {
    expect(countIn(2, [entry("rejected"), entry("asked")])).toBe("1");
    const most = Array.from({ length: EARLIER_REJECTIONS_SHOWN_MAX }, () => entry("rejected"));
    expect(countIn(2, most)).toBe("At least 10");
  });

  test("is left out where there is none, also of a run that was begun again", () => {
    expect(countIn(1, [])).toBeUndefined();
    expect(countIn(2, [])).toBeUndefined();
    expect(countIn(2, [entry("asked")])).toBeUndefined();
  });
});

test("what was said before is masked as the action is, in its fact and in its risk", () => {
  const reason = "Not with password=Zq8Xw2Lr5Tn9Vb4Kc please.";
  const history = {
    ...NO_HISTORY,
    rejections: [{ ...entry("rejected"), by: "key:ghp_canary0Name1x9Kq2Lm8Vb3Zt7Rw4Yp5Ab6C" as const, reason }],
  };
  const { facts, risks } = maskedFacts(maskAction(anAction({ run: 2 }), "decider"), history, "");
  const told = [facts.find(({ name }) => name === "rejected")?.value, risks[0]?.text];
  for (const text of told) expect(text).toContain("Not with password=••••(password,17-chars,…b4Kc) please.");
  expect(JSON.stringify([facts, risks])).not.toContain("canary");
});

test("what is sent comes first, then what the requester says, then the rest; what says nothing is left out", () => {
  const namesOf = (action: Parameters<typeof anAction>[0], history = NO_HISTORY) =>
    maskedFacts(maskAction(anAction(action), "decider"), history, "").facts.map(({ name }) => name);
  expect(namesOf({})).toEqual(["method", "url", "body", "requester", "requested_at", "attempts", "action"]);
  const more = { title: "Pay Ann", run: 2, callback: "https://api.example.com/news", extras: { metadata: { a: "b" } } };
  expect(namesOf(more, { ...NO_HISTORY, reason: "Order 7", rejections: [entry("rejected")] })).toEqual([
    "method",
    "url",
    "body",
    "title",
    "reason",
    "metadata",
    "requester",
    "requested_at",
    "run",
    "rejections",
    "rejected",
    "callback",
    "attempts",
    "action",
  ]);
});

test("values that are hidden are a risk, but for those of headers", () => {
  const risksOf = (action: Parameters<typeof anAction>[0]) =>
    maskedFacts(maskAction(anAction(action), "decider"), NO_HISTORY, "").risks.map(
      ({ level, text }) => `${level}: ${text}`,
    );
  const token = "ghp_a1b2C3d4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
  const headers = { Authorization: `Bearer ${token}` };
  expect(risksOf({ headers })).toEqual([]);
  expect(risksOf({ headers, body: JSON.stringify({ token }) })).toEqual([
    "warning: 1 value outside the headers is hidden.",
  ]);
  expect(risksOf({ url: `https://api.example.com/${token}?token=${token}`, method: "DELETE" })).toEqual([
    "warning: 2 values outside the headers are hidden.",
    "warning: It deletes: the method is DELETE.",
  ]);
});
