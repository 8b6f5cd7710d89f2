import type { Action, ActionStatus, HttpMethod } from "../src/actions/action.ts";
import type { AuditEntry, AuditStore } from "../src/audit/audit.ts";
import type { Change, Refusal } from "../src/actions/changes.ts";
import type { Creator, Requester } from "../src/approvals/creator.ts";
import type { Claimed } from "../src/actions/settle.ts";
import type { KeyKind } from "../src/actions/dedupe.ts";
import type {
  Notification,
  NotificationChange,
  NotificationStatus,
  NewNotification,
  NotificationKind,
} from "../src/delivery/notification.ts";
import type { ScheduledRetry, Happened } from "../src/events/tally.ts";
import type { HostOfKey } from "../src/approvals/facts.ts";
import type { RejectionNote, RejectionStore } from "../src/approvals/rejections.ts";
import type { TimelineEvent, TimelineEntry } from "../src/actions/timeline.ts";
import type { AccountStore, PeopleStore, SealedStore, SigningStore } from "./account-store.ts";
import type { CallbackHostStore } from "../src/accounts/callback-hosts.ts";
import type { PauseStore } from "../src/pauses/pause.ts";
import type { ApprovalLink } from "../src/actions/status.ts";

/** The store can't be written or read now: the disk is full, the database is away. It heals by itself. */
export class StoreUnavailable extends Error {
  override readonly name: string = "StoreUnavailable";
}

/**
 * The store works, and more waits to be written than may: this write was not taken up. Whoever has time writes again in a
 * moment; nothing has to rest for it.
 */
export class StoreBusy extends StoreUnavailable {
  override readonly name = "StoreBusy";
}

/** Another process has the store by now: this one can write nothing any more, and has to end. */
export class StoreLost extends Error {
  override readonly name = "StoreLost";
}

/**
 * The store refuses to write this one row as it is, and would refuse it again: it was altered where it is stored. The row
 * is among those that `broken` finds from now on.
 */
export class RowRefused extends Error {
  override readonly name = "RowRefused";
  readonly id: string;

  constructor(id: string, options: ErrorOptions) {
    super(`The row ${id} can't be written as it is.`, options);
    this.id = id;
  }
}

/** A notification to be written in the same commit as the change that owes it. */
export interface OutboxRow {
  readonly id: string;
  readonly message: NewNotification;
  /** With the account and the key of the action the queue that it waits in. */
  readonly host: string;
  /** A callback's whole body, fixed at the moment of the change; null for a mail, which is written when it is sent. */
  readonly payload: string | null;
}

/** A new action with everything that its creation tells and owes. */
export interface Creation {
  readonly action: Action;
  readonly events: readonly TimelineEvent[];
  readonly outbox: readonly OutboxRow[];
  /**
   * Claims it in the same commit, when it is a new and pending one: the caller holds the slot for it. Where a pause covers
   * it by then it is stored unclaimed.
   */
  readonly claim: Claimed | null;
  /** Of one that is held: it is asked for, by somebody whom rejections bind. */
  readonly note?: RejectionNote | null;
}

/** What became of a create: a new row, claimed or not, or the older action that its key means. */
export type Created =
  | { readonly kind: "created"; readonly claimed: Action | null }
  | { readonly kind: "matched"; readonly by: KeyKind; readonly action: Action }
  /** `HELD_PER_KEY_MAX` actions of its key await approval already. */
  | { readonly kind: "too_many_held" }
  /** A person has rejected the same request, and it may not be asked for again in this way. */
  | { readonly kind: "rejected_before"; readonly refusal: Refusal };

/** A change with what it owes. `at` is the time that its timeline rows carry. */
export interface ChangeWrite {
  readonly change: Change;
  readonly at: Date;
  readonly outbox: readonly OutboxRow[];
  /** What the audit log tells of it, where somebody decided it. */
  readonly audit?: AuditEntry;
  /** What it means for the count of rejections. One that asks for what may not be asked for is not written. */
  readonly note?: RejectionNote | null;
}

/** A due row by name and fencing token: all that memory has to remember of it. */
export interface DueRow {
  readonly id: string;
  /** The action's revision; of a notification, the attempts it has had. */
  readonly revision: number;
  readonly dueAt: Date;
  /** What the attempt will hold in memory, where it is more than `SMALL_ROW_BYTES_MAX`. */
  readonly largeBytes?: number;
}

/** The queue of what one key of an account sends to one host. */
export interface LaneName {
  readonly accountId: string;
  readonly host: string;
  /** Empty for what no key created. */
  readonly keyId: string;
}

export interface LaneHead extends LaneName {
  readonly dueAt: Date;
}

/** Rows that wait to be attempted, in lanes. A loop turns over one such queue. */
export interface Queue<Row> {
  /** Lanes that hold pending rows, with the earliest due time of each, in a fixed order after `after`. */
  lanes(after: LaneName | null, limit: number): Promise<readonly LaneHead[]>;
  /** The earliest pending rows of a lane, due or not yet due, in order of due time. */
  pending(lane: LaneName, limit: number): Promise<readonly DueRow[]>;
  /**
   * Makes due rows active, one attempt counted and leased, and returns those won (an action without its last result).
   * A claim is durable when it resolves: only then may a byte leave. An action that a pause covers is never won.
   */
  claim(due: readonly DueRow[], at: Claimed): Promise<readonly Row[]>;
  /**
   * Active rows whose lease ended before the time given (null: all of them, whoever holds the lease), in a fixed order, behind
   * the one given, which is the last of the page before (null: from the first). Bounded in bytes too: only an empty page is
   * the last.
   */
  orphans(leaseBefore: Date | null, limit: number, after: Row | null): Promise<readonly Row[]>;
  /** Those of the due rows that are active under this very claim: what became of it where nobody was told. */
  claimed(due: readonly DueRow[], at: Claimed): Promise<readonly Row[]>;
  /**
   * Rows that are not final and hold a value that this service never writes there, or that the store refused to write:
   * with legal values in place of the others, and `isAltered`. By id, behind the one given (empty: from the first). Costs
   * nothing while there is none.
   */
  broken(limit: number, after: string): Promise<readonly Row[]>;
  /**
   * Brings pending rows whose due time was written before the clock was set back to where their schedule has them: never
   * before now, and never further away than the step that they were given. Tells how many, at most so many.
   */
  reschedule(setBack: SetBack, limit: number): Promise<number>;
}

/** The wall clock was set back. */
export interface SetBack {
  readonly now: Date;
  /** By so much; 0 when nobody saw it, because it happened before this process. */
  readonly byMs: number;
}

export interface ActionQuery {
  readonly accountId: string;
  /** Empty: any. */
  readonly statuses: readonly ActionStatus[];
  readonly method: HttpMethod | null;
  /** A host name (any port), or a host name with a port. */
  readonly host: string | null;
  readonly dedupe: string | null;
  /** Id of a key. */
  readonly createdBy: string | null;
  readonly createdAfter: Date | null;
  readonly createdBefore: Date | null;
  /** Only actions older than this id. */
  readonly before: string | null;
  readonly limit: number;
  /** Bytes of bodies and headers on the page, where fewer than `LIST_BYTES_MAX` are wanted; one action always fits. */
  readonly bytesMax?: number;
}

export interface ActionPage {
  /** Newest first. */
  readonly actions: readonly Action[];
  /** Where the next page begins; null when there is none. A page may hold fewer than `limit` and still go on. */
  readonly before: string | null;
}

/** How many actions a query finds, as far as somebody counts. */
export interface Counted {
  readonly count: number;
  /** There may be more than that. */
  readonly isMore: boolean;
}

/** One change of an action's status. */
export interface ToldChange {
  /** Its position among all changes of the store. */
  readonly seq: number;
  readonly at: Date;
  /** As it was after the change; without the body of an answer that a later attempt has replaced. */
  readonly action: Action;
}

export interface ChangePage {
  /** In the order of their commits. */
  readonly changes: readonly ToldChange[];
  /** Where the next page begins. */
  readonly position: number;
  /** Whether the page ends with the newest that the store has. A page may be empty and still go on. */
  readonly isLast: boolean;
}

/** What the overview counts, read back. */
export interface HistoryPage {
  /** Newest first. A page may be empty and still go on. */
  readonly counted: readonly Happened[];
  /** Where the next page begins; null when nothing is older. */
  readonly until: number | null;
}

export interface HeldPage {
  /** Oldest first. */
  readonly actions: readonly Action[];
  /** Behind which the next page begins; null when there is none. */
  readonly after: string | null;
}

export interface ActionStore extends Queue<Action> {
  /** Durable when it resolves. Of racing creates with one key exactly one is `created`, the others match it. */
  create(creation: Creation): Promise<Created>;
  /**
   * Writes the change, its timeline and what it owes, or nothing at all. False: another change came first, or its request was
   * asked for too often meanwhile. Rejects with
   * `RowRefused` where the row can't be written as it is.
   */
  apply(write: ChangeWrite): Promise<boolean>;
  /** Whether the store has this change by now, whatever came after it: for whoever was not told how its write ended. */
  isApplied(write: ChangeWrite): Promise<boolean>;
  /**
   * Writes a change over a row that `apply` refuses, or that `broken` has found, with everything else of its state. It gets
   * a revision behind all that its timeline tells. False: another change came first.
   */
  force(write: ChangeWrite): Promise<boolean>;
  find(accountId: string, id: string): Promise<Action | null>;
  /** Whoever's it is: for those who hold a token of the action in place of a key. */
  findById(id: string): Promise<Action | null>;
  /** The action that a key means now, by the rules of `domain/dedupe.ts`. */
  holderOf(accountId: string, kind: KeyKind, key: string, now: Date): Promise<Action | null>;
  list(query: ActionQuery): Promise<ActionPage>;
  /** How many a list would find, up to the query's limit and within the rows that one page looks at. */
  count(query: ActionQuery): Promise<Counted>;
  /**
   * To which of these hosts a held call of the key was approved and has completed, as `hostOfKey` names them, as far as the
   * newest actions of the account for each host tell.
   */
  approvedHosts(accountId: string, asked: readonly HostOfKey[]): Promise<ReadonlySet<string>>;
  /**
   * What awaits approval in an account, or of one key alone, behind what a page before has named or an action. Where
   * several keys ask, a page takes in turns the oldest of each.
   */
  held(accountId: string, after: string | null, limit: number, keyId?: string): Promise<HeldPage>;
  /** The keys that have something waiting, at most `HELD_REQUESTERS_SHOWN_MAX`, whoever has waited longest first. */
  requesters(accountId: string): Promise<readonly Requester[]>;
  /** How many actions of a key await approval, up to `HELD_PER_KEY_MAX`. */
  heldCount(accountId: string, keyId: string): Promise<number>;
  /** Oldest first, at most `TIMELINE_ROWS_MAX`, the newest kept. */
  timeline(accountId: string, id: string): Promise<readonly TimelineEntry[]>;
  /**
   * Changes of status of the account's actions behind a position. Whatever is committed later has a later position, so
   * that pages one behind the other miss nothing and repeat nothing.
   */
  changes(accountId: string, after: number): Promise<ChangePage>;
  /** The newest position; 0 while there is none. */
  position(): Promise<number>;
  /** Whether a position was given out and nothing that stood there has been forgotten since. */
  knowsPosition(position: number): Promise<boolean>;
  /** Creations and attempts of all accounts up to a position, of so many rows of the timeline. */
  history(until: number, limit: number): Promise<HistoryPage>;
  /** The retries of an account that wait for their time. */
  scheduledRetries(accountId: string, now: Date): Promise<ScheduledRetry>;
  /** Forgets keys of a window that is over; true when there are more. */
  pruneKeys(now: Date): Promise<boolean>;
  /**
   * When the pending action that is due first was or will be due; null: none is pending but what is paused. Of many lanes
   * only the first are looked at.
   */
  firstDueAt(): Promise<Date | null>;
  /** How many actions are in each status that is not final: what the metrics show. */
  waiting(): Promise<Readonly<Partial<Record<ActionStatus, number>>>>;
}

/** A row of the outbox as it is told of to its account. */
export interface OutboxEntry extends Notification {
  readonly status: NotificationStatus;
  readonly createdAt: Date;
  /** When it is tried next; null when it is under way or over. */
  readonly dueAt: Date | null;
  readonly lastError: string | null;
}

/** The callbacks and mails that actions owe. Nothing in here touches the state of an action. */
export interface OutboxStore {
  readonly callbacks: Queue<Notification>;
  readonly mails: Queue<Notification>;
  /** The body of a callback; null once it was delivered, and for a mail. */
  payload(id: string): Promise<string | null>;
  /** Under which rules the action was created that owes it; null: it is gone. */
  creatorOf(id: string): Promise<Creator | null>;
  /**
   * Counts a mail as sent now, unless so many of the hour's were to its recipient or of its account already. False: it
   * must not be sent. A mail that is tried again is counted again, in place of its last time.
   */
  permitMail(mail: Notification, at: Date): Promise<boolean>;
  /** Writes how an attempt ended, and what its action's timeline tells of it. False: the row has moved on since. */
  settle(change: NotificationChange, at: Date): Promise<boolean>;
  /** Whether the store has this end by now: for whoever was not told how its write ended. */
  isSettled(change: NotificationChange, at: Date): Promise<boolean>;
  /** Ends a row that `broken` has found, whatever it holds. False: it is not broken any more. */
  force(change: NotificationChange, at: Date): Promise<boolean>;
  /** What an account is or was owed, newest first, older than the row named by `before`. */
  list(accountId: string, before: string | null, limit: number): Promise<readonly OutboxEntry[]>;
  /** How many are neither delivered nor given up: what the metrics show. */
  waiting(): Promise<Readonly<Record<NotificationKind, number>>>;
}

/** What the store says of itself: the check value of the master key. */
export interface FactStore {
  read(name: string): Promise<string | null>;
  write(name: string, value: string): Promise<void>;
  /** Several in one commit; null forgets one. */
  writeAll(values: Readonly<Record<string, string | null>>): Promise<void>;
}

/** Where everything is kept. `test/db/conformance` is the judge of every implementation. */
export interface Store {
  readonly actions: ActionStore;
  readonly outbox: OutboxStore;
  readonly accounts: AccountStore;
  readonly callbackHosts: CallbackHostStore;
  readonly links: LinkStore;
  readonly people: PeopleStore;
  readonly signing: SigningStore;
  readonly pauses: PauseStore;
  readonly rejections: RejectionStore;
  readonly audit: AuditStore;
  readonly sealed: SealedStore;
  readonly upkeep: UpkeepStore;
  readonly facts: FactStore;
  /** True when no other process can hold a lease: everything active at start is an orphan. */
  readonly isAlone: boolean;
  /** Whether the last write found that nothing can be written. */
  readonly isAway: boolean;
  /** Resolves when the store can be written; rejects with `StoreUnavailable` when not. */
  probe(): Promise<void>;
  /** Ends what waits to be written and lets the file go. */
  close(): Promise<void>;
}

/** An action that waits for a person. */
export interface HeldAction {
  readonly id: string;
  readonly accountId: string;
  /** The run that is held. */
  readonly run: number;
  readonly heldAt: Date;
}

/** One step of deleting what is old. */
export interface PruneStep {
  readonly deleted: number;
  /** Where the next step begins; null: everything has been looked at. */
  readonly next: string | null;
}

export interface PruneTimes {
  readonly now: Date;
  /** What finished at this time or before may go. */
  readonly finishedUntil: Date;
}

/** What the service does for itself by the clock. Each call is a bounded step that holds up nobody for long. */
export interface UpkeepStore {
  /**
   * Held actions that were created at this time or before, and perhaps some that are a little younger, by id, behind the
   * one given (empty: from the first).
   */
  held(createdUntil: Date, after: string, limit: number): Promise<readonly HeldAction[]>;
  /**
   * Deletes actions that finished at this time or before, with everything that hangs on them, behind the id given (empty:
   * from the first). Never one that is not finished, that still owes a notification or that an Idempotency-Key may still
   * mean, and never a position of the event stream that could be given out again.
   */
  prune(times: PruneTimes, after: string): Promise<PruneStep>;
}

/** An approval link as it is kept: never the link itself. */
export interface KeptLink extends ApprovalLink {
  /** SHA-256 of its token, hex. */
  readonly hash: string;
}

/** Links of approval mails. Old ones are kept as long as their action, for they lead to its receipt. */
export interface LinkStore {
  /** Keeps links of one run, and tells until when they decide: as it was said when they were kept first. */
  keep(links: readonly KeptLink[], expiresAt: Date): Promise<Date>;
  find(link: ApprovalLink): Promise<(KeptLink & { readonly expiresAt: Date }) | null>;
  /** Makes every link worthless that was given out so far. */
  forgetAll(): Promise<void>;
}
