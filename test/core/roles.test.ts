import { describe, expect, test } from "bun:test";
import {
  type Actor,
  authorize,
  type Caller,
  isWeakerHold,
  KEY_SCOPES,
  type KeyScope,
  mayChange,
  type Permission,
  PERMISSIONS,
  requireMayChange,
  type Role,
  ROLES,
  type ScopedCaller,
  callerView,
} from "../../src/core/roles.ts";

/** Which role has which permissions. */
const MAY: Readonly<Record<Role, Readonly<Record<Permission, boolean>>>> = {
  owner: { read: true, create: true, approve: true, cancel: true, retry: true, manage: true },
  approver: { read: true, create: false, approve: true, cancel: true, retry: false, manage: false },
  agent: { read: true, create: true, approve: false, cancel: true, retry: true, manage: false },
  reader: { read: true, create: false, approve: false, cancel: false, retry: false, manage: false },
};

function callerWith(role: Role): Caller {
  return { accountId: "acc_one", keyId: "key_one", keyName: "one", role, hold: "none", actor: "key:one" };
}

test("what a client has put to its person lets everybody approve but a reader, and nothing else than approve", () => {
  for (const role of ROLES) {
    const asked: Caller = { ...callerWith(role), via: "elicitation" };
    for (const permission of PERMISSIONS) {
      const isAsked = permission === "approve" && role !== "reader";
      const isAllowed = isAsked || MAY[role][permission];
      const tries = () => authorize(asked, permission);
      if (isAllowed) expect(tries).not.toThrow();
      else expect(tries).toThrow(`A key with the role ${role} may not do this`);
    }
  }
});

test.each(ROLES)("the role %s is let pass or refused, and the refusal says which role it takes", (role) => {
  for (const permission of PERMISSIONS) {
    const tries = () => authorize(callerWith(role), permission);
    const needed = ROLES.filter((other) => MAY[other][permission]).join(" or ");
    const message = `A key with the role ${role} may not do this; it needs the role ${needed}.`;
    if (MAY[role][permission]) expect(tries).not.toThrow();
    else expect(tries).toThrow(expect.objectContaining({ code: "forbidden", message, issues: [] }));
  }
});

/** Whose action it is, seen from the viewer. */
const WHOSE = ["own", "replaced", "other"] as const;

type Whose = (typeof WHOSE)[number];

const ACTIONS: Readonly<Record<Whose, { readonly keyId: string; readonly createdBy: Actor }>> = {
  own: { keyId: "key_b", createdBy: "key:b" },
  replaced: { keyId: "key_old", createdBy: "key:old" },
  other: { keyId: "key_a", createdBy: "key:a" },
};

/** Role and scope: of whose actions it sees the secrets, and of whose it may change. */
const RULES: readonly (readonly [Role, KeyScope, whole: readonly Whose[], changes: readonly Whose[]])[] = [
  ["owner", "own", WHOSE, WHOSE],
  ["owner", "account", WHOSE, WHOSE],
  ["approver", "own", [], WHOSE],
  ["approver", "account", [], WHOSE],
  ["agent", "own", ["own", "replaced"], ["own", "replaced"]],
  ["agent", "account", WHOSE, WHOSE],
  ["reader", "own", [], WHOSE],
  ["reader", "account", [], WHOSE],
];

const viewer = (role: Role, scope: KeyScope): ScopedCaller => ({
  role,
  scope,
  keyId: "key_b",
  actor: "key:b",
  replaced: new Set(["key_older", "key_old"]),
});

test("the table of scopes has every role with every scope", () => {
  expect(RULES.map(([role, scope]) => [role, scope])).toEqual(ROLES.flatMap((r) => KEY_SCOPES.map((s) => [r, s])));
});

// Whether a role may change anything at all is the matter of `authorize`.
test.each(RULES)("role %s, scope %s: sees whole %p, may change %p", (role, scope, whole, changes) => {
  const of = viewer(role, scope);
  expect(WHOSE.filter((whose) => callerView(of, ACTIONS[whose]) === "whole")).toEqual([...whole]);
  expect(WHOSE.filter((whose) => mayChange(of, ACTIONS[whose]))).toEqual([...changes]);
});

describe("an agent", () => {
  test("whose scope nobody has said acts on its own actions alone", () => {
    const { scope: _, replaced: _none, ...bare } = viewer("agent", "own");
    expect(WHOSE.filter((whose) => callerView(bare, ACTIONS[whose]) === "whole")).toEqual(["own"]);
    expect(WHOSE.filter((whose) => mayChange(bare, ACTIONS[whose]))).toEqual(["own"]);
  });

  test("is not taken for a key by its name", () => {
    const namesake = { keyId: "key_a", createdBy: "key:b" } as const;
    expect(callerView(viewer("agent", "own"), namesake)).toBe("public");
  });

  test("without a key acts on what its like created, and on nothing of a key or of a person", () => {
    const local: ScopedCaller = { role: "agent", keyId: null, actor: "key:stdio" };
    expect(callerView(local, { keyId: "", createdBy: "key:stdio" })).toBe("whole");
    expect(callerView(local, { keyId: "key_a", createdBy: "key:stdio" })).toBe("public");
    expect(mayChange(local, { keyId: "", createdBy: "user:ann@example.com" })).toBe(false);
  });

  test("is refused with a message that says who can do it", () => {
    const refused = () => requireMayChange(viewer("agent", "own"), { ...ACTIONS.other, id: "act_1" });
    expect(refused).toThrow(
      "Action act_1 was created by another key, and this key may change only its own actions. Ask an owner",
    );
    expect(() => requireMayChange(viewer("agent", "own"), { ...ACTIONS.own, id: "act_1" })).not.toThrow();
  });
});

test("a hold is weaker where fewer calls wait", () => {
  expect(isWeakerHold("none", "writes")).toBe(true);
  expect(isWeakerHold("writes", "all")).toBe(true);
  expect(isWeakerHold("all", "all")).toBe(false);
  expect(isWeakerHold("all", "writes")).toBe(false);
});
