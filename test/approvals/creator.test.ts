import { describe, expect, test } from "bun:test";
import {
  isHeldByKey,
  isNamedIn,
  mayApproveIt,
  needsKnownRecipient,
  needsListedCallback,
} from "../../src/approvals/creator.ts";
import { HOLDS, ROLES } from "../../src/accounts/roles.ts";

describe("the rules of whoever created an action", () => {
  test("bind the callbacks of every hold, also of a method that the hold lets through", () => {
    for (const role of ROLES) {
      for (const hold of HOLDS) expect(needsListedCallback({ role, hold })).toBe(hold !== "none");
    }
    expect(isHeldByKey({ creator: { role: "agent", hold: "writes" }, method: "GET" })).toBe(false);
  });

  test("let only an owner key without a hold ask anybody, and only while no approvers are set", () => {
    const free = ROLES.flatMap((role) => HOLDS.map((hold) => ({ role, hold }))).filter(
      (creator) => !needsKnownRecipient(creator, []),
    );
    expect(free).toEqual([{ role: "owner", hold: "none" }]);
    expect(needsKnownRecipient({ role: "owner", hold: "none" }, ["ann@example.com"])).toBe(true);
  });

  test("let no agent approve what a hold holds; owners and approvers as before", () => {
    const held = { creator: { role: "agent", hold: "all" }, method: "GET" } as const;
    const asked = { creator: { role: "agent", hold: "none" }, method: "POST" } as const;
    expect(ROLES.filter((role) => mayApproveIt(role, held))).toEqual(["owner", "approver"]);
    expect(ROLES.filter((role) => mayApproveIt(role, asked))).toEqual([...ROLES]);
  });
});

test.each([
  ["ann@example.com", true],
  ["ANN@EXAMPLE.com", true],
  ["bob@OPS.example", true],
  ["eve@example.com", false],
  ["jo-ann@example.com", false],
  ["bob@dev-ops.example", false],
  ["bob@sub.ops.example", false],
  ["bob@ops.example@evil.example", false],
  ["bob@ops.example.evil.example", false],
])("approvers name %s: %j", (email, isNamed) => {
  expect(isNamedIn(["Ann@Example.com", "@ops.example"], email)).toBe(isNamed);
});
