/** What a key may do (decisions 7). */
export const ROLES = ["owner", "approver", "agent", "reader"] as const;
export type Role = (typeof ROLES)[number];

/** Which creates of a key are held for a person whatever their `approve` says (decisions 3). */
export const HOLDS = ["none", "writes", "all"] as const;
export type Hold = (typeof HOLDS)[number];

/** One thing that a caller may be allowed to do. An operation names exactly one. */
export const PERMISSIONS = ["read", "create", "approve", "cancel", "retry", "manage"] as const;
export type Permission = (typeof PERMISSIONS)[number];

const GRANTS: Readonly<Record<Role, readonly Permission[]>> = {
  owner: PERMISSIONS,
  approver: ["read", "approve", "cancel"],
  agent: ["read", "create", "cancel", "retry"],
  reader: ["read"],
};

/** Whether the role holds the permission; the one place that decides it. */
export function mayDo(role: Role, permission: Permission): boolean {
  return GRANTS[role].includes(permission);
}

/** The roles that hold a permission, for the sentence that refuses the others. */
export function rolesThatMay(permission: Permission): readonly Role[] {
  return ROLES.filter((role) => mayDo(role, permission));
}

/** Who approves only what a client has put to its person in the same call (decisions 7). */
const APPROVES_WHEN_ASKED: Readonly<Record<Role, boolean>> = {
  owner: true,
  approver: true,
  agent: true,
  reader: false,
};

/** Whether a key of the role may approve through an elicitation; the one place that decides it. */
export function mayApproveWhenAsked(role: Role): boolean {
  return APPROVES_WHEN_ASKED[role];
}

/** Whether a person of the role may have secrets shown: whoever has to decide. */
export function mayReveal(role: Role): boolean {
  return mayDo(role, "approve");
}

/** For whom an action is masked: for anybody, or for somebody who has to see what they approve. */
export const VIEWERS = ["public", "decider"] as const;
export type Viewer = (typeof VIEWERS)[number];

/** For whom it is masked where a caller of the role looks and does not see it whole. */
export function viewerOf(role: Role): Viewer {
  return mayDo(role, "approve") ? "decider" : "public";
}

/** Whether a key's `hold` puts what it sends by this method before a person. */
export function isHeld(hold: Hold, method: string): boolean {
  return hold === "all" || (hold === "writes" && method !== "GET");
}

/** Whether a hold lets more calls go by without a person than another one does. */
export function isWeakerHold(hold: Hold, than: Hold): boolean {
  return HOLDS.indexOf(hold) < HOLDS.indexOf(than);
}

/** On which actions of its account an agent's key acts, and whose secrets it sees: those that it created, or all. */
export const KEY_SCOPES = ["own", "account"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/** Only keys of agents have a scope: what the other keys may see and do is said by their role alone. */
export function hasScope(role: Role): boolean {
  return role === "agent";
}
