import { describe, expect, test } from "bun:test";
import {
  type Actor,
  isWeakerHold,
  KEY_SCOPES,
  type KeyScope,
  type Role,
  ROLES,
  mayChange,
  requireMayChange,
  seesWhole,
  type ScopedCaller,
} from "../../src/accounts/roles.ts";

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

test("the table has every role with every scope", () => {
  expect(RULES.map(([role, scope]) => [role, scope])).toEqual(ROLES.flatMap((r) => KEY_SCOPES.map((s) => [r, s])));
});

// Whether a role may change anything at all is said by `authorize`.

// Whether a role may change anything at all is said by `authorize`.
test.each(RULES)("role %s, scope %s: sees whole %p, may change %p", (role, scope, whole, changes) => {
  const of = viewer(role, scope);
  expect(WHOSE.filter((whose) => seesWhole(of, ACTIONS[whose]))).toEqual([...whole]);
  expect(WHOSE.filter((whose) => mayChange(of, ACTIONS[whose]))).toEqual([...changes]);
});

describe("an agent", () => {
  test("whose scope nobody has said acts on its own actions alone", () => {
    const { scope: _, replaced: _none, ...bare } = viewer("agent", "own");
    expect(WHOSE.filter((whose) => seesWhole(bare, ACTIONS[whose]))).toEqual(["own"]);
    expect(WHOSE.filter((whose) => mayChange(bare, ACTIONS[whose]))).toEqual(["own"]);
  });

  test("is not taken for a key by its name", () => {
    const namesake = { keyId: "key_a", createdBy: "key:b" } as const;
    expect(seesWhole(viewer("agent", "own"), namesake)).toBe(false);
  });

  test("without a key acts on what its like created, and on nothing of a key or of a person", () => {
    const local: ScopedCaller = { role: "agent", keyId: null, actor: "key:stdio" };
    expect(seesWhole(local, { keyId: "", createdBy: "key:stdio" })).toBe(true);
    expect(seesWhole(local, { keyId: "key_a", createdBy: "key:stdio" })).toBe(false);
    expect(mayChange(local, { keyId: "", createdBy: "user:ann@example.com" })).toBe(false);
  });

  test("is told who can do it in its place", () => {
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
