import type { Action } from "./action.ts";
import { type Actor, type Made, SYSTEM } from "./roles.ts";
import type { TimelineEvent, TimelineEntry } from "./timeline.ts";
import type { AuditDetail, Audited, AuditEntry } from "./audit.ts";

/**
 * What a pause stops: an account, the actions of one key, or the calls to one host; `sign_up`: an account that the
 * operator has not allowed.
 */
export const PAUSE_KINDS = ["account", "key", "host", "sign_up"] as const;

/** What happens to the unfinished actions of a revoked key. */
export const UNFINISHED_ON_REVOKE = ["keep", "pause", "cancel"] as const;

export type UnfinishedOnRevoke = (typeof UNFINISHED_ON_REVOKE)[number];

/** While a pause is in force, no action that it covers is claimed. */
export interface Pause {
  readonly id: string;
  readonly accountId: string;
  readonly kind: (typeof PAUSE_KINDS)[number];
  /** The id of the key, the host as in an action's lane, or the id of the account for `sign_up`; empty for an account. */
  readonly subject: string;
  readonly reason: string | null;
  /** The covered actions are being cancelled. The pause ends when none is left. */
  readonly cancels: boolean;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Null: it is in force. */
  readonly endedAt: Date | null;
  readonly endedBy: Actor | null;
}

/** What the audit log says of the end of a pause. */
export function resumed(pause: Pause): Audited {
  return { kind: "resumed", subject: pause.id, detail: pauseDetail(pause) };
}

/** What the audit log says of what a pause stops. */
export function pauseDetail({ kind, subject }: Pause): AuditDetail {
  if (kind === "host") return { of: "host", host: subject };
  return kind === "key" ? { of: "key", key_id: subject } : { of: "account" };
}

/** The lane of an action. */
export type PauseScope = Pick<Action, "accountId" | "keyId" | "host">;

export type PauseSubject = Pick<Pause, "accountId" | "kind" | "subject">;

/** The subjects whose pauses hold back the actions of a lane, widest first. */
export function pausingSubjects({ accountId, keyId, host }: PauseScope): readonly PauseSubject[] {
  return [
    ...stoppingSubjects({ accountId }),
    { accountId, kind: "account", subject: "" },
    { accountId, kind: "key", subject: keyId },
    { accountId, kind: "host", subject: host },
  ];
}

/** The subject whose pause also holds back notifications: a stopped account. */
export function stoppingSubjects({ accountId }: Pick<Pause, "accountId">): readonly PauseSubject[] {
  return [{ accountId, kind: "sign_up", subject: accountId }];
}

/** Ids and kinds have no space, so that no two subjects have the same key. */
export function subjectKey({ accountId, kind, subject }: PauseSubject): string {
  return `${accountId} ${kind} ${subject}`;
}

/** The pause that stops an action of this lane now; null: none does. */
export type FindPause = (scope: PauseScope) => Pause | null;

export interface PauseEnd {
  readonly at: Date;
  readonly by: Actor;
  readonly audit: AuditEntry;
  /** Who must still manage the account; left out: that doesn't matter. */
  readonly made?: Made;
}

/** `found`: the same pause was in force already. */
export type Paused =
  | { readonly kind: "paused" | "found"; readonly pause: Pause }
  | { readonly kind: "no_such_key" | "too_many" };

/** Stores pauses. From the commit of a pause on, no action that it covers is claimed. */
export interface PauseStore {
  /** At most one pause of a subject is in force. A key must belong to the account. */
  pause(pause: Pause, audit: AuditEntry): Promise<Paused>;
  /**
   * Ends a pause; one that has ended stays as it is. False: the account has no pause with this id. `not_manager`: `made` manages the
   * account no more, and nothing is written.
   */
  end(accountId: string, id: string, end: PauseEnd): Promise<boolean | "not_manager">;
  find(accountId: string, id: string): Promise<Pause | null>;
  /** Those in force, of one account or of all, oldest first. */
  inForce(accountId: string | null): Promise<readonly Pause[]>;
  /** Every pause that ever covered an action, oldest first; at most the newest `TIMELINE_PAUSES_MAX`. */
  ofAction(accountId: string, actionId: string): Promise<readonly Pause[]>;
  /** At most `limit` pending and held actions of a key; `isSending`: some are active and may become pending again. */
  unfinished(
    accountId: string,
    keyId: string,
    limit: number,
  ): Promise<{ readonly ids: readonly string[]; readonly isSending: boolean }>;
  /** Deletes some pauses that ended at this time or earlier; true: there may be more. */
  prune(endedUntil: Date): Promise<boolean>;
}

/**
 * A timeline with added entries where a pause began or stopped holding up the action. `pauses` are all that ever covered it. These
 * entries are computed, not stored, since one pause affects any number of actions. Each has the `seq` of the entry before it.
 */
export function withPauses(entries: readonly TimelineEntry[], pauses: readonly Pause[]): readonly TimelineEntry[] {
  if (pauses.length === 0) return entries;
  const added = findWaits(entries).flatMap((wait) => pauses.flatMap((pause) => pauseEntries(wait, pause)));
  const ordered = added.toSorted((one, other) => one.at.getTime() - other.at.getTime());
  return entries.flatMap((entry) => [entry, ...ordered.filter(({ seq }) => seq === entry.seq)]);
}

/** The action is pending from the first of these entries on; `until` null: it still is. */
interface Wait {
  readonly entries: readonly TimelineEntry[];
  readonly until: Date | null;
}

/** The times when the action was pending. Entries of mails and callbacks may fall within such a time. */
function findWaits(entries: readonly TimelineEntry[]): readonly Wait[] {
  const waits: Wait[] = [];
  let pending: TimelineEntry[] = [];
  for (const entry of entries) {
    if (entry.status === "pending") pending.push(entry);
    else if (pending.length > 0) {
      waits.push({ entries: pending, until: entry.at });
      pending = [];
    }
  }
  return pending.length === 0 ? waits : [...waits, { entries: pending, until: null }];
}

function pauseEntries({ entries, until }: Wait, pause: Pause): readonly TimelineEntry[] {
  const [first] = entries;
  const { createdAt, createdBy, endedAt, endedBy } = pause;
  if (first === undefined || (endedAt !== null && endedAt <= first.at)) return [];
  if (until !== null && createdAt >= until) return [];
  const entryAt = (at: Date, event: TimelineEvent): TimelineEntry => {
    const { seq, run, status } = entries.findLast((entry) => entry.at <= at) ?? first;
    return { seq, at, run, status, event };
  };
  const beganAt = createdAt > first.at ? createdAt : first.at;
  const paused = entryAt(beganAt, { type: "paused", actor: createdBy, reason: pause.reason });
  if (endedAt === null || (until !== null && endedAt > until)) return [paused];
  return [paused, entryAt(endedAt, { type: "resumed", actor: endedBy ?? SYSTEM, reason: null })];
}
