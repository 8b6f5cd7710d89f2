import { describe, expect, test } from "bun:test";
import { HTTP_METHODS, type HttpMethod } from "../../src/actions/action.ts";
import {
  authorize,
  type Caller,
  type Hold,
  HOLDS,
  isHeld,
  mayDo,
  type Permission,
  PERMISSIONS,
  type Role,
  ROLES,
  rolesThatMay,
} from "../../src/accounts/roles.ts";
import { DomainError } from "../../src/api/domain-error.ts";

/** Who may do what, as the decisions say it (7). */
const MAY: Readonly<Record<Role, Readonly<Record<Permission, boolean>>>> = {
  owner: { read: true, create: true, approve: true, cancel: true, retry: true, manage: true },
  approver: { read: true, create: false, approve: true, cancel: true, retry: false, manage: false },
  agent: { read: true, create: true, approve: false, cancel: true, retry: true, manage: false },
  reader: { read: true, create: false, approve: false, cancel: false, retry: false, manage: false },
};

const HELD: Readonly<Record<Hold, readonly HttpMethod[]>> = {
  none: [],
  writes: ["POST", "PUT", "PATCH", "DELETE"],
  all: HTTP_METHODS,
};

function callerWith(role: Role): Caller {
  return { accountId: "acc_one", keyId: "key_one", keyName: "one", role, hold: "none", actor: "key:one" };
}

function refusalOf(role: Role, permission: Permission): unknown {
  try {
    authorize(callerWith(role), permission);
    return null;
  } catch (error) {
    return error;
  }
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

describe.each(ROLES)("the role %s", (role) => {
  test("may do what the table says, and nothing else", () => {
    expect(Object.fromEntries(PERMISSIONS.map((permission) => [permission, mayDo(role, permission)]))).toEqual(
      MAY[role],
    );
  });

  test("is let pass or refused by it, and the refusal says which role it takes", () => {
    for (const permission of PERMISSIONS) {
      const refusal = refusalOf(role, permission);
      if (MAY[role][permission]) expect(refusal).toBeNull();
      else {
        const needed = ROLES.filter((other) => MAY[other][permission]).join(" or ");
        expect(refusal).toEqual(
          new DomainError("forbidden", `A key with the role ${role} may not do this; it needs the role ${needed}.`),
        );
        expect(refusal).toMatchObject({ code: "forbidden", issues: [] });
      }
    }
  });
});

test("the roles that may do a thing are those of the table", () => {
  for (const permission of PERMISSIONS) {
    expect(rolesThatMay(permission)).toEqual(ROLES.filter((role) => MAY[role][permission]));
  }
});

test.each(HOLDS)("a key with hold %s has held what the decisions say", (hold) => {
  expect(HTTP_METHODS.filter((method) => isHeld(hold, method))).toEqual(
    HELD[hold].toSorted((a, b) => order(a) - order(b)),
  );
});

function order(method: HttpMethod): number {
  return HTTP_METHODS.indexOf(method);
}
