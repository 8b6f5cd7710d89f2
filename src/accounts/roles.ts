import { DomainError } from "../api/domain-error.ts";

/** What a key may do. */
export const ROLES = ["owner", "approver", "agent", "reader"] as const;

export type Role = (typeof ROLES)[number];

/** Which creates of a key are held for a person whatever their `approve` says. */
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

/** Who approves only what a client has put to its person in the same call. */
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

/** Whoever stands at a door: a key or a person, and through it an account. */
export interface Caller {
  readonly accountId: string;
  /** Null: a person, who has no key. */
  readonly keyId: string | null;
  /** What people call it: the name of the key, or the person's address. */
  readonly keyName: string;
  /** Of a person only. */
  readonly personId?: string;
  readonly role: Role;
  readonly hold: Hold;
  /** Of an agent's key; left out: its own actions alone. */
  readonly scope?: KeyScope;
  /** Keys whose actions were handed over to the caller's, which replaced them. */
  readonly replaced?: ReadonlySet<string>;
  /** As which the caller's decisions are written down. */
  readonly actor: Actor;
  /** The network address that the request came from, for the audit log. */
  readonly client?: string;
  /** It came in over MCP. */
  readonly isAgentCall?: boolean;
  /**
   * Set for the one decision that the caller's MCP client has put to its person: it shows that the client asked, not that
   * the person answered.
   */
  readonly via?: "elicitation";
  /** Aborted when the key is revoked, or the session ended, while its caller is still here; one that has none stays. */
  readonly revoked?: AbortSignal;
}

/** Who shares the streams, sessions and waits of the account: a key, or a person on the pages. */
export function holderOf({ keyId, personId }: Caller): string {
  return keyId ?? personId ?? "";
}

/** The same refusal whatever is missing or wrong, so that it tells nothing about keys. */
export function unauthorized(): DomainError {
  return new DomainError(
    "unauthorized",
    "Send an API key as `Authorization: Bearer <key>`. The first start of Outgate prints one; an owner key makes more.",
  );
}

/** Why nothing that an account wants sent is sent, and what to do about it. */
export function accountStopped(accountId: string): DomainError {
  return new DomainError(
    "forbidden",
    `Account ${accountId} was signed up before sign-ups closed here, and is stopped: its keys are refused, and nothing of ` +
      "it is sent. An owner of the first account of this service allows it: on the page Settings, Accounts, or with " +
      `\`outgate accounts allow ${accountId}\`.`,
  );
}

/**
 * Lets the caller pass or throws `forbidden`; `unauthorized` when the key was revoked since it came in, for a body may
 * take its time to arrive. Asked before anything is looked up, so that a refusal tells nothing about
 * what exists.
 */
export function authorize(caller: Caller, permission: Permission): void {
  if (caller.revoked?.aborted === true) throw unauthorized();
  if (mayDo(caller.role, permission)) return;
  if (permission === "approve" && caller.via === "elicitation" && mayApproveWhenAsked(caller.role)) return;
  throw new DomainError(
    "forbidden",
    `A key with the role ${caller.role} may not do this; it needs the role ${rolesThatMay(permission).join(" or ")}.`,
  );
}

/** Somebody or something that may change an action, as `approved_by` and the timeline name it. */
export type Actor = `email:${string}` | `user:${string}` | `key:${string}` | `mcp:${string}` | "system";

/** Acts for the service itself: the dispatcher, the rescue, the clock. */
export const SYSTEM: Actor = "system";

/** Who it is, and by which way they came in: what follows the first colon is a name that somebody chose. */
export function actorWords(actor: string): { readonly name: string; readonly way: string } {
  const colon = actor.indexOf(":");
  const name = actor.slice(colon + 1);
  const way = WAYS[actor.slice(0, Math.max(0, colon))];
  return way === undefined ? { name: "Outgate", way: "by its settings" } : { name, way };
}

const WAYS: Readonly<Record<string, string>> = {
  email: "by the link in the mail",
  user: "on the pages of Outgate",
  key: "over the API",
  mcp: "over MCP",
};
