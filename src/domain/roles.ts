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

/** Who reads back what was sent as it was. The others decide or look on, and see secrets masked (hostile 6). */
const SEES_SECRETS: Readonly<Record<Role, boolean>> = { owner: true, approver: false, agent: true, reader: false };

/** Whether a key of the role sees an action whole; the one place that decides it. */
export function seesSecrets(role: Role): boolean {
  return SEES_SECRETS[role];
}

/** Whether a person of the role may have secrets shown: whoever sees them anyway, and whoever has to decide. */
export function mayReveal(role: Role): boolean {
  return seesSecrets(role) || mayDo(role, "approve");
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
