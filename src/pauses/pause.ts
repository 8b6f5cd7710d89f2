import type { Action } from "../actions/action.ts";
import { type Actor, SYSTEM } from "../accounts/roles.ts";
import type { TimelineEvent, TimelineEntry } from "../actions/timeline.ts";
import type { AuditEntry } from "../audit/audit.ts";

/** What a pause stops: an account, or the actions of one key; `sign_up`: an account that the operator has not allowed. */
export const PAUSE_KINDS = ["account", "key", "sign_up"] as const;

export type PauseKind = (typeof PAUSE_KINDS)[number];

/** What happens to the unfinished actions of a revoked key. */
export const UNFINISHED_ON_REVOKE = ["keep", "pause", "cancel"] as const;

export type UnfinishedOnRevoke = (typeof UNFINISHED_ON_REVOKE)[number];

/** While a pause is in force, no action that it covers is claimed. */
export interface Pause {
  readonly id: string;
  readonly accountId: string;
  readonly kind: PauseKind;
  /** The id of the key, of the account for `sign_up`; empty for an account. */
  readonly subject: string;
  readonly reason: string | null;
  /** The covered actions are being cancelled; the pause ends by itself when none is left. */
  readonly cancels: boolean;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Null: it is in force. */
  readonly endedAt: Date | null;
  readonly endedBy: Actor | null;
}

type PauseScope = Pick<Action, "accountId" | "keyId">;

/** The pause that stops an action of this account and key now; null: none does. */
export type PauseOf = (scope: PauseScope) => Pause | null;

/**
 * A timeline with entries where a pause began and stopped to hold up the action. `pauses` are all that ever covered it.
 * These entries are computed and not stored, since one pause affects any number of actions; each has the `seq` of the entry
 * before it.
 */
export function withPauses(entries: readonly TimelineEntry[], pauses: readonly Pause[]): readonly TimelineEntry[] {
  if (pauses.length === 0) return entries;
  const lines = waits(entries).flatMap((wait) => pauses.flatMap((pause) => linesOf(wait, pause)));
  const ordered = lines.toSorted((one, other) => one.at.getTime() - other.at.getTime());
  return entries.flatMap((entry) => [entry, ...ordered.filter(({ seq }) => seq === entry.seq)]);
}

/** The action is pending from the first of these entries on; `until` null: it still is. */
interface Wait {
  readonly lines: readonly TimelineEntry[];
  readonly until: Date | null;
}

/** The times when the action was pending. Entries of mails and callbacks may stand within one. */
function waits(entries: readonly TimelineEntry[]): readonly Wait[] {
  const found: Wait[] = [];
  let lines: TimelineEntry[] = [];
  for (const entry of entries) {
    if (entry.status === "pending") lines.push(entry);
    else if (lines.length > 0) {
      found.push({ lines, until: entry.at });
      lines = [];
    }
  }
  return lines.length === 0 ? found : [...found, { lines, until: null }];
}

function linesOf({ lines, until }: Wait, pause: Pause): readonly TimelineEntry[] {
  const [first] = lines;
  const { createdAt, createdBy, endedAt, endedBy, reason } = pause;
  if (first === undefined || (endedAt !== null && endedAt <= first.at)) return [];
  if (until !== null && createdAt >= until) return [];
  const lineAt = (at: Date, event: TimelineEvent): TimelineEntry => {
    const before = lines.findLast((line) => line.at <= at) ?? first;
    return { seq: before.seq, at, run: before.run, status: before.status, event };
  };
  const began = createdAt > first.at ? createdAt : first.at;
  const paused = lineAt(began, { type: "paused", actor: createdBy, reason });
  if (endedAt === null || (until !== null && endedAt > until)) return [paused];
  return [paused, lineAt(endedAt, { type: "resumed", actor: endedBy ?? SYSTEM, reason: null })];
}

/** How a pause ends. */
export interface PauseEnd {
  readonly at: Date;
  readonly by: Actor;
  readonly audit: AuditEntry;
}

/** `found`: the same pause was in force already. */
type Paused =
  | { readonly kind: "paused" | "found"; readonly pause: Pause }
  | { readonly kind: "no_such_key" | "too_many" };

/** The unfinished actions of a key. */
interface Unfinished {
  /** Pending and held actions. */
  readonly ids: readonly string[];
  /** Some are active and may become pending again. */
  readonly isSending: boolean;
}

/** Stores pauses. From the commit of a pause on, no action that it covers is claimed. */
export interface PauseStore {
  /** At most one pause of a subject is in force. A key must belong to the account. */
  pause(pause: Pause, audit: AuditEntry): Promise<Paused>;
  /** Ends a pause; one that has ended stays as it is. False: the account has no pause with this id. */
  end(accountId: string, id: string, end: PauseEnd): Promise<boolean>;
  find(accountId: string, id: string): Promise<Pause | null>;
  /** Those in force, of one account or of all, oldest first. */
  inForce(accountId: string | null): Promise<readonly Pause[]>;
  /** Every pause that ever covered an action, oldest first; at most the newest `PAUSES_TOLD_MAX`. */
  ofAction(accountId: string, actionId: string): Promise<readonly Pause[]>;
  /** At most `limit` unfinished actions of a key. */
  unfinished(accountId: string, keyId: string, limit: number): Promise<Unfinished>;
  /** Deletes some pauses that ended at this time or earlier; true: there may be more. */
  prune(endedUntil: Date): Promise<boolean>;
}

/** The pauses in force, cached for the delivery queues and for answers. A claim checks the store, which is authoritative. */
export class PausedSet {
  readonly #store: Pick<PauseStore, "inForce">;
  /** By `nameOf`. */
  readonly #pauses = new Map<string, Pause>();
  /** Subjects whose pause is being written, with a count: nothing of theirs is started meanwhile. */
  readonly #blocked = new Map<string, number>();
  /** The number of the newest read in progress, by account; `#begun` counts the reads of all accounts. */
  readonly #reads = new Map<string, number>();
  #begun = 0;
  #onChange: (accountId: string) => void = () => {};

  constructor(store: Pick<PauseStore, "inForce">) {
    this.#store = store;
  }

  /** Loads all pauses in force: before anything is claimed, and periodically. */
  async load(): Promise<void> {
    let began = this.#begun;
    let inForce = await this.#readAll();
    // An account was read meanwhile, and what that read returned may be newer: load again.
    for (let tries = 1; began !== this.#begun; tries += 1) {
      if (tries >= LOAD_TRIES_MAX) return;
      began = this.#begun;
      inForce = await this.#readAll();
    }
    const all = [...this.#pauses.values(), ...inForce.values()];
    const changed = all.filter((pause) => this.#pauses.get(nameOf(pause))?.id !== inForce.get(nameOf(pause))?.id);
    this.#pauses.clear();
    for (const [name, pause] of inForce) this.#pauses.set(name, pause);
    for (const accountId of new Set(changed.map((pause) => pause.accountId))) this.#onChange(accountId);
  }

  async #readAll(): Promise<ReadonlyMap<string, Pause>> {
    return new Map((await this.#store.inForce(null)).map((pause) => [nameOf(pause), pause]));
  }

  /** Sets the one listener, called with each account whose pauses have changed. */
  onChange(listener: (accountId: string) => void): void {
    this.#onChange = listener;
  }

  /** The pause that stops actions of this key; of several the widest: of the service, of the account, of the key. */
  readonly of = ({ accountId, keyId }: PauseScope): Pause | null => {
    if (this.#pauses.size === 0) return null;
    return (
      this.#pauses.get(`${accountId} ${accountId}`) ??
      this.#pauses.get(`${accountId} `) ??
      this.#pauses.get(`${accountId} ${keyId}`) ??
      null
    );
  };

  /** Whether the account signed up by itself and the operator has not allowed it. */
  readonly isStopped = (accountId: string): boolean => {
    return this.#pauses.size > 0 && this.#pauses.get(`${accountId} ${accountId}`)?.kind === "sign_up";
  };

  /** Whether no attempt of this key may start. */
  readonly stops = ({ accountId, keyId }: PauseScope): boolean => {
    if (this.#blocked.size > 0 && [`${accountId} `, `${accountId} ${keyId}`].some((name) => this.#blocked.has(name))) {
      return true;
    }
    return this.of({ accountId, keyId }) !== null;
  };

  /**
   * Starts nothing of the subject while `write` runs, then reads the account's pauses again, also if the write failed.
   */
  async while<T>(subject: Pick<Pause, "accountId" | "subject">, write: () => Promise<T>): Promise<T> {
    const name = nameOf(subject);
    this.#blocked.set(name, (this.#blocked.get(name) ?? 0) + 1);
    try {
      return await write();
    } finally {
      await this.#read(subject.accountId).finally(() => {
        const left = (this.#blocked.get(name) ?? 1) - 1;
        if (left === 0) this.#blocked.delete(name);
        else this.#blocked.set(name, left);
        this.#onChange(subject.accountId);
      });
    }
  }

  /** Reads the pauses of an account again, after one has ended. */
  async refresh(accountId: string): Promise<void> {
    await this.#read(accountId);
    this.#onChange(accountId);
  }

  async #read(accountId: string): Promise<void> {
    this.#begun += 1;
    const read = this.#begun;
    this.#reads.set(accountId, read);
    const inForce = await this.#store.inForce(accountId);
    // Of concurrent reads, the one that began last has the newest rows.
    if (this.#reads.get(accountId) !== read) return;
    this.#reads.delete(accountId);
    for (const [name, pause] of this.#pauses) if (pause.accountId === accountId) this.#pauses.delete(name);
    for (const pause of inForce) this.#pauses.set(nameOf(pause), pause);
  }
}

/** After so many tries `load` gives up; the next periodic load catches up. */
const LOAD_TRIES_MAX = 10;

/** The map key of a pause. Ids have no space; the subject of an account pause is empty, of a `sign_up` pause the account id. */
function nameOf({ accountId, subject }: Pick<Pause, "accountId" | "subject">): string {
  return `${accountId} ${subject}`;
}
