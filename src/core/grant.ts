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
  /** The action whose approval it came with. */
  readonly actionId: string;
  /** Digest of all of the request that must be equal (`src/grants/likeness.ts`). */
  readonly likeness: string;
  /** Members of the body that may differ, by their paths, and the most that numbers among them may be. */
  readonly vary: readonly string[];
  readonly max: Readonly<Record<string, number>>;
  /** How many calls it lets pass, and how many it has. */
  readonly calls: number;
  readonly used: number;
  readonly expiresAt: Date;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Id of the person or key that made it: it ends where they may no longer approve. */
  readonly createdById: string;
  readonly endedAt: Date | null;
  readonly endedBy: Actor | null;
}

export interface GrantStore extends Pick<CachedSettingsStore<Grant>, "version"> {
  /** Those that may still let calls pass, newest first; null: of all accounts. */
  list(accountId: string | null, now: Date): Promise<readonly Grant[]>;
  /** Those that can be ended: first these, then the ones that are used up and have time left, each newest first. */
  listOpen(accountId: string, now: Date, limit: number): Promise<readonly Grant[]>;
  /** Whether one was ended before its time. */
  wasEnded(accountId: string, id: string): Promise<boolean>;
  /** Ends one that has time left, used up or not. Null: there is none. */
  end(accountId: string, id: string, how: GrantEnd): Promise<Grant | null>;
}

interface GrantEnd {
  readonly at: Date;
  readonly by: Actor;
  readonly audit: AuditEntry;
}

/** A create that a grant lets pass. Each use is an entry of the audit log, to which the store adds how often it was used. */
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
  /** One of the caller's key that lets the request pass, and is none of those that are over; null: there is none. */
  find(caller: Caller, request: ActionRequest, over: ReadonlySet<string>): Promise<Granted | null>;
}

/** What else an approval lets pass, as its route describes it. */
export interface GrantTerms {
  readonly minutes: number;
  readonly calls: number;
  readonly vary?: readonly string[];
  readonly max?: Readonly<Record<string, number>>;
}

/** The policy of an action that a grant lets pass, with how many calls it has let pass by then. */
export function atUse<Policy extends { readonly reason: string | null }>(
  policy: Policy,
  used: number,
  calls: number,
): Policy {
  return calls === 1 ? policy : { ...policy, reason: `${policy.reason ?? ""} This is ${used} of ${calls}.` };
}

/** Whether it may let a call pass; how often it was used is counted where the call is stored. */
export function isInForce({ endedAt, expiresAt, used, calls }: Grant, now: Date): boolean {
  return endedAt === null && expiresAt > now && used < calls;
}

/** Of an action that a grant lets pass. */
export function policyOfGrant({ id, calls, createdBy, expiresAt }: Grant): ActionPolicy {
  const name = createdBy.slice(createdBy.indexOf(":") + 1);
  const reason = `${name} allowed ${calls === 1 ? "one call" : `${calls} calls`} like this until ${expiresAt.toISOString()}.`;
  return { effect: "allow", by: "grant", id, name, version: null, reason };
}
