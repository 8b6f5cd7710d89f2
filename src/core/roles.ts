import { DomainError } from "./domain-error.ts";
import type { HttpMethod } from "./target.ts";

export const ROLES = ["owner", "approver", "agent", "reader"] as const;

export type Role = (typeof ROLES)[number];

/** The roles of people. Only keys are agents. */
export const MEMBER_ROLES = ["owner", "approver", "reader"] as const satisfies readonly Role[];

export type MemberRole = (typeof MEMBER_ROLES)[number];

/** Which creates of a key are held for approval regardless of `approve`: none, all but GET, or all. */
export const HOLDS = ["none", "writes", "all"] as const;

export type Hold = (typeof HOLDS)[number];

/** Every operation requires exactly one permission. */
export const PERMISSIONS = ["read", "create", "approve", "cancel", "retry", "manage"] as const;

export type Permission = (typeof PERMISSIONS)[number];

const GRANTS: Readonly<Record<Role, readonly Permission[]>> = {
  owner: PERMISSIONS,
  approver: ["read", "approve", "cancel"],
  agent: ["read", "create", "cancel", "retry"],
  reader: ["read"],
};

export function mayDo(role: Role, permission: Permission): boolean {
  return GRANTS[role].includes(permission);
}

/** The roles that have a permission, for error messages. */
export function rolesThatMay(permission: Permission): readonly Role[] {
  return ROLES.filter((role) => mayDo(role, permission));
}

/** Whether keys of the role may approve if the client asked its person in the same call (MCP elicitation). */
export function mayApproveWhenAsked(role: Role): boolean {
  return mayDo(role, "approve") || role === "agent";
}

/**
 * Whether a cancel by this caller withdraws a held request and so is no rejection: it comes from a revocation, or from a key
 * that may not approve, such as an agent's, without a person's answer.
 */
export function isWithdrawal({ role, via, clearsUp }: Pick<Caller, "role" | "via" | "clearsUp">): boolean {
  return clearsUp === true || !(mayDo(role, "approve") || via === "elicitation");
}

/**
 * For whom an action is masked. A decider sees more, since they must know what they approve. A mail stays where it was sent, as
 * does a question in an agent's client, so it shows no header value that may be a secret.
 */
export const VIEWERS = ["public", "mail", "decider"] as const;

export type Viewer = (typeof VIEWERS)[number];

/** The viewer for callers with this role who don't see the action whole. */
export function roleViewer(role: Role): Exclude<Viewer, "mail"> {
  return mayDo(role, "approve") ? "decider" : "public";
}

/** Whether a hold requires approval for calls with this method. */
export function isHeld(hold: Hold, method: string): boolean {
  return hold === "all" || (hold === "writes" && method !== "GET");
}

/** Whether a hold lets more calls pass without approval than another one. */
export function isWeakerHold(hold: Hold, than: Hold): boolean {
  return HOLDS.indexOf(hold) < HOLDS.indexOf(than);
}

/** Which actions an agent's key may change and see unmasked: only those that it created, or all of the account. */
export const KEY_SCOPES = ["own", "account"] as const;

export type KeyScope = (typeof KEY_SCOPES)[number];

/** Only agents have a scope. For other keys, the role alone decides. */
export function hasScope(role: Role): boolean {
  return role === "agent";
}

/** What a key may do at most; null: no limit. */
export interface KeyLimits {
  /** Host names, with a port or for any; `*.example.com` means every name below. */
  readonly hosts: readonly string[] | null;
  readonly methods: readonly HttpMethod[] | null;
  /** Creates a day, UTC. */
  readonly dailyActions: number | null;
  /** Refused from then on. */
  readonly expiresAt: Date | null;
}

export const NO_KEY_LIMITS: KeyLimits = { hosts: null, methods: null, dailyActions: null, expiresAt: null };

/** The members that are limits, of a key or of the table of keys. */
export function keyLimits<Key extends Readonly<Record<keyof KeyLimits, unknown>>>(
  key: Key,
): Pick<Key, keyof KeyLimits> {
  const { hosts, methods, dailyActions, expiresAt } = key;
  return { hosts, methods, dailyActions, expiresAt };
}

export function isLimited(key: KeyLimits): boolean {
  return Object.values(keyLimits(key)).some((limit) => limit !== null);
}

/** Who makes a request: a key or a person, and their account. */
export interface Caller {
  readonly accountId: string;
  /** Null: a person. */
  readonly keyId: string | null;
  /** The name of the key, or the person's address. */
  readonly keyName: string;
  /** Only for a person. */
  readonly personId?: string;
  readonly role: Role;
  readonly hold: Hold;
  /** Absent: none. */
  readonly limits?: KeyLimits;
  /** For an agent's key; absent: `own`. */
  readonly scope?: KeyScope;
  /** Ids of the keys that the caller's key replaced, directly or through others, the newest first. */
  readonly replaced?: ReadonlySet<string>;
  /** The name under which decisions of the caller are recorded. */
  readonly actor: Actor;
  /** The network address that the request came from, for the audit log. */
  readonly client?: string;
  /** The request came over MCP. */
  readonly isAgentCall?: boolean;
  /**
   * Set for one decision if the caller's MCP client asked its person. It proves that the client asked, not that the person
   * answered.
   */
  readonly via?: "elicitation";
  /** Set if the service cancels what a revoked key has left, which is no decision about the requests. */
  readonly clearsUp?: boolean;
  /** Aborted when the key is revoked or the session ends while the request is open. */
  readonly revoked?: AbortSignal;
}

/** The id that limits on streams, sessions and waits count by: the key's or the person's. */
export function holderId({ keyId, personId }: Caller): string {
  return keyId ?? personId ?? "";
}

/** The same error for every reason, so that it reveals nothing about keys. */
export function unauthorized(): DomainError {
  return new DomainError(
    "unauthorized",
    "Send a valid API key as `Authorization: Bearer <key>`: it is missing, mistyped, revoked or expired. The first start of Outgate prints one; an owner key makes more.",
  );
}

/** Who made a key or an invitation, or changes something. */
export interface Made {
  /** Null: not known. */
  readonly createdBy: Actor | null;
  /** Id of the person or key; null: neither did, or it is not known. */
  readonly createdById: string | null;
}

export function madeBy(caller: Caller) {
  return { createdBy: caller.actor, createdById: holderId(caller) };
}

/** The error for callers who lost the right to manage the account after their request began. */
export function notManager({ keyId }: Caller): DomainError {
  if (keyId !== null) return unauthorized();
  return new DomainError("forbidden", "You no longer own this account. Nothing was changed.");
}

/** The error for accounts that the operator has not allowed, and what to do about it. */
export function accountStopped(accountId: string): DomainError {
  return new DomainError(
    "forbidden",
    `Account ${accountId} signed up before sign-ups were closed and is stopped: its keys are refused, and none of its ` +
      "actions is sent. An owner of the first account of this service can allow it: on the page Settings, Accounts, or " +
      `with \`outgate accounts allow ${accountId}\`.`,
  );
}

/**
 * Throws `forbidden` if the caller lacks the permission, and `unauthorized` if the key was revoked since the request began.
 * Call it before looking anything up, so that the error reveals nothing about what exists.
 */
export function authorize(caller: Caller, permission: Permission): void {
  if (caller.revoked?.aborted === true) throw unauthorized();
  if (mayDo(caller.role, permission)) return;
  if (permission === "approve" && caller.via === "elicitation" && mayApproveWhenAsked(caller.role)) return;
  if (caller.keyId === null && caller.personId !== undefined) {
    const needed = MEMBER_ROLES.filter((role) => mayDo(role, permission)).join(" or ");
    throw new DomainError(
      "forbidden",
      `Your role in this account, ${caller.role}, doesn't allow this; it needs the role ${needed}. Ask an owner of the account.`,
    );
  }
  throw new DomainError(
    "forbidden",
    `A key with the role ${caller.role} may not do this; it needs the role ${rolesThatMay(permission).join(" or ")}.`,
  );
}

/** The part of a caller that decides which actions they see unmasked and may change. */
export type ScopedCaller = Pick<Caller, "role" | "scope" | "keyId" | "actor" | "replaced" | "personId">;

/** The key that created an action, "" if none did, and the name of its creator. */
interface CreatedBy {
  readonly keyId: string;
  readonly createdBy: string;
}

/**
 * How a caller sees an action: whole, or masked for a viewer. Approvers, readers and people see every action masked: owners show
 * secrets one by one, with an entry in the audit log each, and by more than their cookie, which other ports may know.
 */
export function callerView(caller: ScopedCaller, action: CreatedBy): "whole" | ReturnType<typeof roleViewer> {
  const isKey = caller.personId === undefined;
  const isWhole = isKey && (caller.role === "owner" || (hasScope(caller.role) && mayChange(caller, action)));
  return isWhole ? "whole" : roleViewer(caller.role);
}

/** Whether the caller may cancel or retry this action, or let its client ask a person about it, if its role allows that. */
export function mayChange(caller: ScopedCaller, action: CreatedBy): boolean {
  return !hasScope(caller.role) || caller.scope === "account" || isOwn(caller, action);
}

/** Throws `forbidden` unless `mayChange`. */
export function requireMayChange(caller: ScopedCaller, action: CreatedBy & { readonly id: string }): void {
  if (mayChange(caller, action)) return;
  throw new DomainError(
    "forbidden",
    `Action ${action.id} was created by another key, and this key may change only its own actions. Ask an owner to do it, ` +
      'or to create a key with the scope "account" or one that replaces the key that created it.',
  );
}

/** Created by the caller's key, or by one that it replaced; callers without a key are compared by name. */
function isOwn({ keyId, actor, replaced }: ScopedCaller, action: CreatedBy): boolean {
  if (keyId === null) return action.keyId === "" && action.createdBy === actor;
  return action.keyId === keyId || replaced?.has(action.keyId) === true;
}

type ActorKind = "email" | "user" | "key" | "mcp";

/** Who changed an action, as in `approved_by` and the timeline. Receipts show only the kind. */
export type Actor = `${ActorKind}:${string}` | ActorKind | "system";

/** The service itself. */
export const SYSTEM: Actor = "system";

/** The actor without a name. */
export function kindOfActor(actor: Actor): Actor {
  const colon = actor.indexOf(":");
  // Safe: the part before the colon is a kind.
  return colon === -1 ? actor : (actor.slice(0, colon) as ActorKind);
}

/** The name of an actor and how they connected, in words. The name is untrusted text. */
export function describeActor(actor: string): { readonly name: string; readonly way: string } {
  const colon = actor.indexOf(":");
  const kind = KINDS[colon === -1 ? actor : actor.slice(0, colon)];
  if (kind === undefined) return { name: "Outgate", way: "by its settings" };
  return { name: colon === -1 ? kind.nobody : actor.slice(colon + 1), way: kind.way };
}

/** `nobody`: shown if there is no name. */
const KINDS: Readonly<Record<string, { readonly way: string; readonly nobody: string }>> = {
  email: { way: "by the link in the mail", nobody: "a person" },
  user: { way: "in the console", nobody: "a person" },
  key: { way: "over the API", nobody: "a key" },
  mcp: { way: "over MCP", nobody: "a key" },
};
