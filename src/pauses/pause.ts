import type { Action } from "../actions/action.ts";
import { type Actor, SYSTEM } from "../accounts/roles.ts";
import type { TimelineEvent, TimelineEntry } from "../actions/timeline.ts";
import type { AuditEntry } from "../audit/audit.ts";

/** What a pause stops: a whole account, or what one key created; `sign_up`: an account that nobody has allowed. */
export const PAUSE_KINDS = ["account", "key", "sign_up"] as const;

export type PauseKind = (typeof PAUSE_KINDS)[number];

/** What becomes of the unfinished actions of a key that is revoked. */
export const UNFINISHED_ON_REVOKE = ["keep", "pause", "cancel"] as const;

export type UnfinishedOnRevoke = (typeof UNFINISHED_ON_REVOKE)[number];

/** An owner's stop: nothing that it covers is claimed while it is in force. */
export interface Pause {
  readonly id: string;
  readonly accountId: string;
  readonly kind: PauseKind;
  /** The id of the key, of the account for `sign_up`; empty for an account. */
  readonly subject: string;
  readonly reason: string | null;
  /** What it stops is cancelled; it ends by itself when nothing of it is left. */
  readonly cancels: boolean;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Null: it is in force. */
  readonly endedAt: Date | null;
  readonly endedBy: Actor | null;
}

/** Whose action it is, as far as pauses go. */
type PauseScope = Pick<Action, "accountId" | "keyId">;

/** The pause that stops an action of this account and key now; null: none does. */
export type PauseOf = (scope: PauseScope) => Pause | null;

/**
 * A timeline with a line where a pause began to stop the action, and one where it ended. `pauses` are all that ever covered
 * the action. Such a line is kept nowhere, since a pause counts at once for however many actions; it has the number of the
 * line before it.
 */
export function withPauses(entries: readonly TimelineEntry[], pauses: readonly Pause[]): readonly TimelineEntry[] {
  if (pauses.length === 0) return entries;
  const lines = waits(entries).flatMap((wait) => pauses.flatMap((pause) => linesOf(wait, pause)));
  const ordered = lines.toSorted((one, other) => one.at.getTime() - other.at.getTime());
  return entries.flatMap((entry) => [entry, ...ordered.filter(({ seq }) => seq === entry.seq)]);
}

/** The action waits to be sent from the first of these lines on; until null it still does. */
interface Wait {
  readonly lines: readonly TimelineEntry[];
  readonly until: Date | null;
}

/** Mails and callbacks are told of in the middle of a wait. */
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

/** What became of a pause: made, found in force already, or refused. */
type Paused =
  | { readonly kind: "paused" | "found"; readonly pause: Pause }
  | { readonly kind: "no_such_key" | "too_many" };

/** What a key has left behind. */
interface Unfinished {
  /** Actions that are neither final nor with their target: waiting to be sent, or for a person. */
  readonly ids: readonly string[];
  /** Some are being sent in this moment, and may come back. */
  readonly isSending: boolean;
}

/** What owners have stopped. From the commit of a pause on nothing that it covers is claimed. */
export interface PauseStore {
  /** Of one subject one is in force at most. Of a key only where the account has it. */
  pause(pause: Pause, audit: AuditEntry): Promise<Paused>;
  /** Ends a pause; one that has ended stays as it is. False: the account has none of this id. */
  end(accountId: string, id: string, end: PauseEnd): Promise<boolean>;
  find(accountId: string, id: string): Promise<Pause | null>;
  /** Those in force, of one account or of all, oldest first. */
  inForce(accountId: string | null): Promise<readonly Pause[]>;
  /** Every pause that ever covered an action, oldest first; beyond `PAUSES_TOLD_MAX` the newest. */
  ofAction(accountId: string, actionId: string): Promise<readonly Pause[]>;
  /** What a key of an account has left unfinished, so many at most. */
  unfinished(accountId: string, keyId: string, limit: number): Promise<Unfinished>;
  /** Forgets pauses that ended at this time or before, some at a time; true when there may be more. */
  prune(endedUntil: Date): Promise<boolean>;
}

/**
 * What is paused, as this process knows it: for the queues, which leave it out, and for answers, which say so. The claim asks
 * the store, which is the truth.
 */
export class PausedSet {
  readonly #store: Pick<PauseStore, "inForce">;
  /** By `nameOf`. */
  readonly #pauses = new Map<string, Pause>();
  /** Pauses that are being written: nothing of theirs is begun meanwhile. */
  readonly #blocked = new Map<string, number>();
  /** The newest read of each account that is under way, and how many there were of any. */
  readonly #reads = new Map<string, number>();
  #begun = 0;
  #onChange: (accountId: string) => void = () => {};

  constructor(store: Pick<PauseStore, "inForce">) {
    this.#store = store;
  }

  /** Takes in all that is in force: before anything is claimed, and again now and then. */
  async load(): Promise<void> {
    let began = this.#begun;
    let inForce = await this.#readAll();
    // What was read of one account meanwhile is newer than this.
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

  /** Tells one listener of accounts whose pauses have changed. */
  onChange(listener: (accountId: string) => void): void {
    this.#onChange = listener;
  }

  /** The pause that stops what this key of the account created; of several the one that is hardest to end. */
  readonly of = ({ accountId, keyId }: PauseScope): Pause | null => {
    if (this.#pauses.size === 0) return null;
    return (
      this.#pauses.get(`${accountId} ${accountId}`) ??
      this.#pauses.get(`${accountId} `) ??
      this.#pauses.get(`${accountId} ${keyId}`) ??
      null
    );
  };

  /** Whether the account was signed up, and nobody has allowed it. */
  readonly isStopped = (accountId: string): boolean => {
    return this.#pauses.size > 0 && this.#pauses.get(`${accountId} ${accountId}`)?.kind === "sign_up";
  };

  /** Whether nothing of it may be begun. */
  readonly stops = ({ accountId, keyId }: PauseScope): boolean => {
    if (this.#blocked.size > 0 && [`${accountId} `, `${accountId} ${keyId}`].some((name) => this.#blocked.has(name))) {
      return true;
    }
    return this.of({ accountId, keyId }) !== null;
  };

  /**
   * Has nothing of the subject begun while its pause is being written, then takes in what the store has by then: also where
   * the write failed.
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

  /** Takes in what the store has of an account, after a pause of it has ended. */
  async refresh(accountId: string): Promise<void> {
    await this.#read(accountId);
    this.#onChange(accountId);
  }

  async #read(accountId: string): Promise<void> {
    this.#begun += 1;
    const read = this.#begun;
    this.#reads.set(accountId, read);
    const inForce = await this.#store.inForce(accountId);
    // Of several under way the one that began last has seen the most.
    if (this.#reads.get(accountId) !== read) return;
    this.#reads.delete(accountId);
    for (const [name, pause] of this.#pauses) if (pause.accountId === accountId) this.#pauses.delete(name);
    for (const pause of inForce) this.#pauses.set(nameOf(pause), pause);
  }
}

/** Beyond this the next load takes it in. */
const LOAD_TRIES_MAX = 10;

/** Ids have no space in them; the subject of an account is empty, and of one that is stopped its own id. */
function nameOf({ accountId, subject }: Pick<Pause, "accountId" | "subject">): string {
  return `${accountId} ${subject}`;
}
