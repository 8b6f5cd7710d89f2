import type { AuditEntry } from "./audit.ts";
import type { CachedSettingsStore } from "./account-settings.ts";
import type { ActionRequest } from "./action.ts";
import type { Actor, Caller } from "./roles.ts";
import type { ActionPolicy } from "./action-policy.ts";

/** What a person allows an agent for a while: calls like one that they approved. */
export interface Grant {
  readonly id: string;
  readonly accountId: string;
  /** The key whose calls it lets pass. */
  readonly keyId: string;
  /** The action with whose approval it was made. */
  readonly actionId: string;
  /** Digest of everything that must be equal in the request (`src/grants/grants.ts`). */
  readonly likeness: string;
  /** The paths of body members that may differ, and the maximum for numbers among them. */
  readonly vary: readonly string[];
  readonly max: Readonly<Record<string, number>>;
  /** How many calls it lets pass, and how many it has let pass. */
  readonly calls: number;
  readonly used: number;
  readonly expiresAt: Date;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Id of the person or key that made it. It ends when they may no longer approve. */
  readonly createdById: string;
  readonly endedAt: Date | null;
  readonly endedBy: Actor | null;
}

export interface GrantStore extends Pick<CachedSettingsStore<Grant>, "version"> {
  /** Those that may still let calls pass, newest first; null: of all accounts. */
  list(accountId: string | null, now: Date): Promise<readonly Grant[]>;
  /** The grants that can be ended: those that still let calls pass, then used-up ones with time left, each newest first. */
  listOpen(accountId: string, now: Date, limit: number): Promise<readonly Grant[]>;
  /** Whether a grant was ended before its time. */
  wasEnded(accountId: string, id: string): Promise<boolean>;
  /** Ends a grant that has time left, even if it is used up. Null: there is none. */
  end(accountId: string, id: string, how: GrantEnd): Promise<Grant | null>;
  /**
   * Deletes some grants whose time was over by then. Keeps those that were ended before their time while something waits that they
   * let pass, which must not be sent. Returns whether there may be more.
   */
  prune(until: Date): Promise<boolean>;
}

interface GrantEnd {
  readonly at: Date;
  readonly by: Actor;
  readonly audit: AuditEntry;
}

/** The use of a grant by a create. Each use is an audit entry, to which the store adds the number of uses. */
export interface GrantUse {
  readonly id: string;
  readonly audit: AuditEntry;
}

/** A grant that lets a request pass, and the use of it. */
export interface Granted {
  readonly grant: Grant;
  readonly use: GrantUse;
}

/** The grants of keys, for what decides on requests. */
export interface FindGrant {
  /** A grant of the caller's key that lets the request pass and is not among those that are over; null: there is none. */
  find(caller: Caller, request: ActionRequest, over: ReadonlySet<string>): Promise<Granted | null>;
}

/** What else an approval lets pass. Its route describes the members. */
export interface GrantTerms {
  readonly minutes: number;
  readonly calls: number;
  readonly vary?: readonly string[];
  readonly max?: Readonly<Record<string, number>>;
}

/** The policy of an action that a grant lets pass, with the number of calls so far. */
export function atUse<Policy extends { readonly reason: string | null }>(
  policy: Policy,
  used: number,
  calls: number,
): Policy {
  return calls === 1 ? policy : { ...policy, reason: `${policy.reason ?? ""} This is ${used} of ${calls}.` };
}

/** Whether it may let a call pass, by what is known here: the commit of the call counts the uses. */
export function isInForce({ endedAt, expiresAt, used, calls }: Grant, now: Date): boolean {
  return endedAt === null && expiresAt > now && used < calls;
}

/** The policy of an action that a grant lets pass. */
export function policyOfGrant({ id, calls, createdBy, expiresAt }: Grant): ActionPolicy {
  const name = createdBy.slice(createdBy.indexOf(":") + 1);
  const reason = `${name} allowed ${calls === 1 ? "one call" : `${calls} calls`} like this until ${expiresAt.toISOString()}.`;
  return { effect: "allow", by: "grant", id, name, version: null, reason };
}
