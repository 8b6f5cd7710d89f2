import type { Actor, Role } from "./roles.ts";
import type { Action, ActionStatus, Decision, LimitedCreator, ApprovalLink } from "./action.ts";
import type { ActionPolicy } from "./action-policy.ts";
import type { AuditEntry, AuditStore } from "./audit.ts";
import type { Change, KeptResponse } from "./changes.ts";
import type { ActionQuery, ActionRows, CountedRows, FilterValues, MatchedActions } from "./search.ts";
import type { KeyBudget } from "./key-limits.ts";
import type { Lease } from "./settle.ts";
import type { KeyKind } from "./dedupe.ts";
import type { Notification, NotificationChange, NotificationStatus } from "./notification.ts";
import type { RejectionCount, RejectionEntry, RejectionStore } from "./rejections.ts";
import type { TimelineEvent, TimelineEntry } from "./timeline.ts";
import type { ActivityStore, FirstStepStore } from "./activity.ts";
import type { AccountStore, PeopleStore, SealedStore, SigningStore, CallbackHostStore } from "./account-store.ts";
import type { BulkStore } from "./bulk-job.ts";
import type { TeamStore } from "./team-store.ts";
import type { ChannelStore } from "./channel.ts";
import type { CredentialRequestStore, CredentialStore } from "./credential.ts";
import type { RuleStore, RuleCount } from "./account-rules.ts";
import type { Grant, GrantStore, GrantUse } from "./grant.ts";
import type { OAuthStore } from "./oauth-store.ts";
import type { HostSettingsStore } from "./host-settings.ts";
import type { PauseStore } from "./pause.ts";
import type { NewNotification, NotificationKind } from "./notification-events.ts";

/** The store can't be read or written now: the disk is full or the database is unreachable. This may pass without help. */
export class StoreUnavailable extends Error {
  override readonly name: string = "StoreUnavailable";
  /** Why, in a few words for the log: never an address or a secret. */
  readonly reason: string;

  constructor(message?: string, { reason, ...options }: ErrorOptions & { readonly reason?: string } = {}) {
    super(message, options);
    this.reason = reason ?? "it could not be used";
  }
}

/** The store works, but its queue of writes is full, so it did not accept this write. Try again in a moment. */
export class StoreBusy extends StoreUnavailable {
  override readonly name = "StoreBusy";
}

/** Another process has taken over the store. This one can't write any more and must end. */
export class StoreLost extends Error {
  override readonly name = "StoreLost";
  /** Why the process ends. */
  readonly reason: string;

  constructor(message: string, reason = "only one service may send from a database") {
    super(message);
    this.reason = reason;
  }
}

/** A notification, written in the commit of the change that causes it. */
export interface OutboxRow {
  readonly id: string;
  readonly message: NewNotification;
  /** Part of the lane's name, with the account and the key of the action. */
  readonly host: string;
  /** A callback's whole body as of the change; null for a mail, which is built when it is sent. */
  readonly payload: string | null;
  /** When it is sent; absent: at once. */
  readonly dueAt?: Date;
}

/** A new action with its timeline and notifications. */
export interface Creation {
  readonly action: Action;
  readonly events: readonly TimelineEvent[];
  readonly outbox: readonly OutboxRow[];
  /**
   * Claims a new pending action in the same commit, since the caller has a slot for it. If a pause covers the action, it is
   * stored unclaimed.
   */
  readonly claim: Lease | null;
  /** Set if its creator is subject to the limit on rejected requests. */
  readonly rejection?: RejectionEntry | null;
  /** Set if its key has a daily limit. A create that is stored counts. */
  readonly budget?: Omit<KeyBudget, "keyId">;
  /** The version of the rules by which it was decided. */
  readonly rulesVersion: string;
  /** The grant that lets it pass. */
  readonly grant?: GrantUse | null;
  /** A rule refuses it, so it may only match an existing action. */
  readonly isRefused?: boolean;
  /** What it adds to counts of rules. If one of them would exceed its limit, nothing is created. */
  readonly counts?: readonly RuleCount[];
  /** The count beyond which it goes, so that a rule holds it, and the audit entry in case it is the first. */
  readonly beyond?: { readonly count: RuleCount; readonly audit: AuditEntry } | null;
}

/**
 * Result of a create: a new row, claimed or not, or the older action that its key names. `policy`: if a grant lets it pass, its
 * policy with the number of uses.
 */
export type Created =
  | { readonly kind: "created"; readonly claimed: Action | null; readonly policy?: ActionPolicy | null }
  | { readonly kind: "matched"; readonly by: KeyKind; readonly action: Action }
  | CreateRefusal;

/** Why a create was not stored. */
export type CreateRefusal =
  /** `HELD_PER_KEY_MAX` actions of its key await approval. */
  | { readonly kind: "too_many_held" }
  /** A rule refuses it, and it matches no action. */
  | { readonly kind: "refused" }
  /** The grant that let it pass is used up, or has ended. */
  | { readonly kind: "grant_over" }
  /** Rules were written after the version by which it was decided. */
  | { readonly kind: "rules_changed" }
  /** These counts of rules would exceed their limits. */
  | { readonly kind: "beyond"; readonly counts: readonly RuleCount[] }
  /** Its key has reached its daily limit. */
  | { readonly kind: "budget_spent" }
  /** A key names an action that can't be read: it was altered in the database. */
  | { readonly kind: "unreadable"; readonly by: KeyKind; readonly id: string }
  /** A person rejected the same request, and it may not be requested again now. */
  | { readonly kind: "rejected_before"; readonly rejections: RejectionCount };

/** A person who decides, with the roles that may, a key, or whoever has the link of this decision, which had this end. */
export type Decider =
  | { readonly of: "person"; readonly personId: string; readonly roles: readonly Role[] }
  | { readonly of: "key"; readonly keyId: string }
  | { readonly of: "link"; readonly decision: Decision; readonly expiresAt: Date };

/** A change with its notifications. `at` is the time of its timeline rows. */
export interface ChangeWrite {
  readonly change: Change;
  readonly at: Date;
  readonly outbox: readonly OutboxRow[];
  /** The audit entry, if a person decided. */
  readonly audit?: AuditEntry;
  /** Its effect on the count of rejections. If it may not be requested again, nothing is written. */
  readonly rejection?: RejectionEntry | null;
  /** The grant that comes with an approval. */
  readonly grant?: Grant | null;
  /** For a retry by a key with a daily limit. A written retry counts; if the limit is reached, nothing is written. */
  readonly budget?: KeyBudget;
  /** What a retry adds to counts of rules. If one would exceed its limit, nothing is written. */
  readonly counts?: readonly RuleCount[];
  /** Who decided it. If they may not any more, because they have left or have another role, or it was revoked, nothing is written. */
  readonly decider?: Decider | null;
}

/** The queue of what one key of an account sends to one host. */
export interface LaneName {
  readonly accountId: string;
  readonly host: string;
  /** Empty if no key created it. */
  readonly keyId: string;
}

export interface LaneHead extends LaneName {
  readonly dueAt: Date;
}

/** A request for due rows. */
export interface ClaimedLane extends LaneName {
  readonly limit: number;
  /**
   * Rows due before this time, in milliseconds, may be ignored; default: none. PostgreSQL's index keeps entries of rows that
   * are no longer pending until a vacuum, and each claim would read them again.
   */
  readonly dueFromMs?: number;
}

export interface Claim {
  /** In the order of their turns, with the number of rows that each may have. */
  readonly lanes: readonly ClaimedLane[];
  /** Bytes of all rows together; one row always fits. */
  readonly bytesMax: number;
  /** False: each lane ends before its first row of more than `SMALL_ROW_BYTES_MAX`. */
  readonly takesLarge: boolean;
  readonly lease: Lease;
}

interface ClaimedRow<Row> {
  readonly row: Row;
  /** Memory that the attempt takes; 0 for a row of at most `SMALL_ROW_BYTES_MAX`. */
  readonly largeBytes: number;
}

/** The earliest row of a lane that is still pending after a claim, due or not. */
export interface NextRow extends LaneHead {
  readonly isLarge: boolean;
}

export interface ClaimedRows<Row> {
  readonly rows: readonly ClaimedRow<Row>[];
  /** None for a lane that is empty or paused. */
  readonly next: readonly NextRow[];
}

/** Rows that wait for an attempt, in lanes. Each scheduler has one queue. */
export interface Queue<Row> {
  /** Lanes with pending rows and their earliest due times, in a fixed order after `after`. */
  lanes(after: LaneName | null, limit: number): Promise<readonly LaneHead[]>;
  /**
   * Makes due rows active with a lease, counts the attempt, and returns them (actions without their last result): the earliest of each
   * lane, lanes in turn. The claim is durable when this resolves; nothing may be sent before. Paused rows are not claimed.
   */
  claimDue(claim: Claim): Promise<ClaimedRows<Row>>;
  /**
   * Active rows whose lease ended before this time, or ends later than any can (null: all active rows), in a fixed order after
   * `after`, the last row of the page before (null: from the first). Pages are also bounded in bytes, so only an empty page is the last.
   */
  orphans(leaseBefore: Date | null, limit: number, after: Row | null): Promise<readonly Row[]>;
  /** Rows of these accounts that are active under exactly this claim: for claims whose response was lost. */
  claimed(accountIds: readonly string[], lease: Lease): Promise<readonly Row[]>;

  /**
   * Moves the due times of pending rows that were scheduled before the clock was set back: never before now, and never later
   * than their original delay from now. Returns how many, at most `limit`.
   */
  reschedule(setBack: SetBack, limit: number): Promise<number>;
}

/** The wall clock was set back. */
export interface SetBack {
  readonly now: Date;
  /** By how much; 0 if unknown, because it happened before this process. */
  readonly byMs: number;
}

/** One change of an action's status. */
export interface ActionChange {
  /** Its position among all changes of the store. */
  readonly seq: number;
  readonly at: Date;
  /** The action after the change, without a response body that a later attempt has replaced. */
  readonly action: Action;
  /** It got a late result and kept its status. */
  readonly isLateResult?: true;
}

export interface ChangePage {
  /** In commit order. */
  readonly changes: readonly ActionChange[];
  /** Where the next page begins. */
  readonly position: number;
  /** Whether the page reaches the newest change. A page may be empty and not be the last. */
  readonly isLast: boolean;
}

/** The actions of an account that await approval. */
export interface WaitingApprovals {
  readonly count: number;
  /** There may be more than were counted. */
  readonly isCut: boolean;
  /** When the oldest was created; null: none waits. */
  readonly oldestAt: Date | null;
  /** How many of them were created longer ago; each counted as far as `count`. */
  readonly overAnHour: number;
  readonly overADay: number;
}

/** The retries of an account that wait for their time. */
export interface ScheduledRetries {
  readonly count: number;
  /** How many are due already and wait for a free slot. */
  readonly due: number;
  /** Since when the first of these is due; null: none is. */
  readonly dueSince: Date | null;
  /** There may be more: only a bounded number was read. */
  readonly isCut: boolean;
  /** The hosts whose next retry comes first. */
  readonly hosts: readonly { readonly host: string; readonly count: number; readonly nextAt: Date }[];
}

/** Which held actions to find. Null: any. */
export interface HeldFilter {
  /** Empty: actions of no key. */
  readonly keyId: string | null;
  /** With the port, unless it is the scheme's default. */
  readonly host: string | null;
  /** Created before this time. */
  readonly before: Date | null;
}

export const NO_FILTER: HeldFilter = { keyId: null, host: null, before: null };

/** A host with actions that await approval. */
export interface WaitingHost {
  readonly host: string;
  /** Up to `COUNTED_MAX`. */
  readonly count: number;
}

/** A key with actions that await approval. */
interface HeldRequester {
  /** Empty: a person, or no key was stored. */
  readonly keyId: string;
  /** As its oldest held action names it. */
  readonly createdBy: Actor;
  /** Up to `COUNTED_MAX`. */
  readonly count: number;
}

export interface HeldPage {
  /** Oldest first. */
  readonly actions: readonly Action[];
  /** `after` of the next page; null when there is none. */
  readonly after: string | null;
}

type HostOfKey = Pick<Action, "keyId" | "hostname">;

/** A map key for a key id and a host name. */
export function hostOfKey({ keyId, hostname }: HostOfKey): string {
  return JSON.stringify([keyId, hostname]);
}

export interface ActionStore extends Queue<Action> {
  /** Durable when it resolves. Of racing creates with the same key, exactly one is `created`; the others match it. */
  create(creation: Creation): Promise<Created>;
  /**
   * Writes the change, its timeline and notifications, or nothing. False: another change came first, its request was made too often
   * meanwhile, or its decider may not decide any more.
   */
  apply(write: ChangeWrite): Promise<boolean>;
  /** Whether the store has this change, even if others followed: for a write whose response was lost. */
  isApplied(write: ChangeWrite): Promise<boolean>;
  /** Sets when the claim of an active action ends. False: it has another revision by now. */
  extendLease(action: Action, leaseUntil: Date): Promise<boolean>;
  find(accountId: string, id: string): Promise<Action | null>;
  /** Finds an action of any account, for holders of a token of the action. */
  findById(id: string): Promise<Action | null>;
  /** The action that a key names now, by the rules of `src/core/dedupe.ts`. */
  keyHolder(accountId: string, kind: KeyKind, key: string, now: Date): Promise<Pick<Action, "id" | "status"> | null>;
  list(query: ActionQuery): Promise<ActionRows>;
  /** How many actions `list` would find, up to the query's limit and among so many rows. */
  count(query: ActionQuery, rowsMax: number): Promise<CountedRows>;
  /** Which actions `list` would find, the same way. */
  matching(query: ActionQuery, rowsMax: number): Promise<MatchedActions>;
  /** Hosts that the account called, and keys that created actions, so many of each in a fixed order. */
  filterValues(accountId: string, limit: number): Promise<FilterValues>;
  /** Which of these actions had an attempt in any run that the target may have received without an answer. */
  withUnknown(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /** Which of these actions have a late result with a 2xx status. */
  withLateSuccess(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Which of these hosts received an approved call of the key that completed, by `hostOfKey`.
   */
  approvedHosts(accountId: string, asked: readonly HostOfKey[]): Promise<ReadonlySet<string>>;
  /**
   * Actions awaiting approval in an account after `after` (a page's `after`, or an action id). With several keys a page
   * takes the oldest of each key in turn.
   */
  held(accountId: string, after: string | null, limit: number, filter?: HeldFilter): Promise<HeldPage>;
  /** How many actions of an account await approval, at most `limit`. */
  heldTotal(accountId: string, filter: HeldFilter, limit: number): Promise<number>;
  /** Hosts with actions awaiting approval, the first by name: one more than `HELD_HOSTS_SHOWN_MAX` if there are more. */
  heldHosts(accountId: string): Promise<readonly WaitingHost[]>;
  /** Those of the actions that await approval in the account, oldest first, of `LIST_BYTES_MAX` bytes at most. */
  heldAmong(accountId: string, ids: readonly string[]): Promise<readonly Action[]>;
  /** Keys with actions awaiting approval, at most `HELD_REQUESTERS_SHOWN_MAX`, the longest waiting first. */
  requesters(accountId: string): Promise<readonly HeldRequester[]>;
  /** Whether a key may create or retry more on the day. */
  hasBudgetLeft(budget: KeyBudget): Promise<boolean>;
  /** Which of these counts of rules would exceed their limits. */
  beyondCounts(counts: readonly RuleCount[]): Promise<readonly RuleCount[]>;
  /** The stored responses of earlier attempts of an action, at most the newest `ATTEMPTS_KEPT`. */
  responses(accountId: string, id: string): Promise<readonly KeptResponse[]>;
  /** Oldest first; the newest `TIMELINE_ROWS_MAX` rows. */
  timeline(accountId: string, id: string): Promise<readonly TimelineEntry[]>;
  /**
   * Changes of status of the account's actions after a position. Later commits have higher positions, so consecutive
   * pages neither miss nor repeat a change.
   */
  changes(accountId: string, after: number): Promise<ChangePage>;
  /** The newest position; 0 while there is none. */
  position(): Promise<number>;
  /** Whether the position exists, and neither it nor a later one was pruned. */
  knowsPosition(position: number): Promise<boolean>;
  /** The actions of an account that await approval, counted up to `COUNTED_MAX`. */
  waitingApprovals(accountId: string, now: Date): Promise<WaitingApprovals>;
  scheduledRetries(accountId: string, now: Date): Promise<ScheduledRetries>;
  /**
   * Due time of the earliest pending action; null: none is pending, except paused ones. It looks at a bounded number of
   * lanes.
   */
  firstDueAt(): Promise<Date | null>;
  /** Number of actions by status that is not final, for the metrics. */
  waiting(): Promise<Readonly<Partial<Record<ActionStatus, number>>>>;
}

/** A row of the outbox as its account sees it. */
export interface OutboxEntry extends Notification {
  readonly status: NotificationStatus;
  readonly createdAt: Date;
  /** Time of the next attempt; null when it is active or final. */
  readonly dueAt: Date | null;
  readonly lastError: string | null;
}

/** Callbacks and mails of actions. Nothing here changes the state of an action. */
export interface OutboxStore {
  readonly callbacks: Queue<Notification>;
  readonly mails: Queue<Notification>;
  /** Messages to channels. */
  readonly messages: Queue<Notification>;
  /** The body of a callback; null once it was delivered, and for a mail. */
  payload(id: string): Promise<string | null>;
  /**
   * Role and hold of the action's creator, and whether their key has limits, even if the key was revoked or its row is gone.
   * Null: the action is gone.
   */
  findCreator(id: string): Promise<LimitedCreator | null>;
  /**
   * Counts a mail as sent now. False: its recipient or account has reached the hourly limit, so it must not be sent. A retry
   * replaces its earlier count.
   */
  permitMail(mail: Notification, at: Date): Promise<boolean>;
  /** Writes how an attempt ended, and its timeline row. False: the row has changed since. */
  settle(change: NotificationChange, at: Date): Promise<boolean>;
  /** Whether the store has this result: for a write whose response was lost. */
  isSettled(change: NotificationChange, at: Date): Promise<boolean>;
  /** An account's rows, newest first, older than the row `before`. */
  list(accountId: string, before: string | null, limit: number): Promise<readonly OutboxEntry[]>;
  /** Number of rows that are not final, for the metrics. */
  waiting(): Promise<Readonly<Record<NotificationKind, number>>>;
}

/** An approval link as stored, without the link itself. */
export interface StoredLink extends ApprovalLink {
  /** SHA-256 of its token, hex. */
  readonly hash: string;
}

/** Links of approval mails. They are kept as long as their action, since old ones lead to its receipt. */
export interface LinkStore {
  /** Stores the links of one run and returns their expiry: that of the first time they were stored. */
  keep(links: readonly StoredLink[], expiresAt: Date): Promise<Date>;
  find(link: ApprovalLink): Promise<(StoredLink & { readonly expiresAt: Date }) | null>;
  /** Invalidates all links, and deletes invitations with theirs. */
  forgetAll(): Promise<void>;
}

/** The fact that says that a copy into this database (`outgate migrate`) is incomplete, so that no service may open it. */
export const TRANSFER_FACT = "transfer";

/** Facts about the store, such as the check value of the master key. */
export interface FactStore {
  read(name: string): Promise<string | null>;
  /** Writes facts in one commit; null deletes one. */
  write(values: Readonly<Record<string, string | null>>): Promise<void>;
}

/** A process that serves from the same database as others. */
export interface NodeRow {
  readonly id: string;
  readonly startedAt: Date;
  readonly version: string;
}

/** A node that lives, with the time of its last beat by the database's clock. */
export interface LiveNode extends NodeRow {
  readonly beatAt: Date;
  /** The hosts, as hashes, to which it had more calls in progress then than its share. */
  readonly overHosts: readonly string[];
}

/** A row of the timeline, of any account. */
export interface ChangedAction {
  readonly seq: number;
  readonly actionId: string;
  readonly accountId: string;
  /** The action's revision after the change. */
  readonly revision: number;
}

export interface ChangedPage {
  /** In the order of their positions. */
  readonly changes: readonly ChangedAction[];
  /**
   * Where the next page begins: nothing more can appear up to here. A transaction that may still commit holds it back; changes
   * after it are returned as soon as they are visible, and again in the next page.
   */
  readonly position: number;
  /** Whether nothing is visible after these changes, and nothing holds the position back. */
  readonly isLast: boolean;
}

/** What several nodes on one database need from it. */
export interface ClusterStore {
  /** The time of the database's clock. */
  now(): Promise<Date>;
  /** Registers the node or renews it, and returns all live nodes. A node counts as dead `livesMs` after its last beat. */
  beat(node: NodeRow, livesMs: number, overHosts?: readonly string[]): Promise<readonly LiveNode[]>;
  leave(nodeId: string): Promise<void>;
  /** Takes or renews the right to run a job, for this long. False: another node has it. */
  takeJob(name: string, nodeId: string, lastsMs: number): Promise<boolean>;
  releaseJob(name: string, nodeId: string): Promise<void>;
  /** Rows of the timeline of all accounts after a position. */
  changedSince(position: number, limit: number): Promise<ChangedPage>;
  /** The revisions of these actions, of any account. Actions that are gone are left out. */
  findRevisions(actionIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /**
   * Calls `onHint` for each hint of another node's commit, and `onGap` after a lost connection, when hints may have been
   * missed. Resolves with a function that stops it. Null: this database sends no hints.
   */
  listen(onHint: () => void, onGap: () => void): Promise<(() => Promise<void>) | null>;
}

/** An action that awaits approval. */
export interface HeldAction {
  readonly id: string;
  readonly accountId: string;
  /** The run that is held. */
  readonly run: number;
  readonly heldAt: Date;
}

/** One step of pruning. */
interface PruneStep {
  readonly deleted: number;
  /** `after` of the next step; null: everything was scanned. */
  readonly next: string | null;
}

interface PruneTimes {
  readonly now: Date;
  /** Actions that finished at this time or before may be deleted. */
  readonly finishedUntil: Date;
}

/** An action that has expired and is not cancelled yet. */
export interface ExpiredAction {
  readonly id: string;
  readonly accountId: string;
  readonly expiresAt: Date;
}

/** Work of periodic jobs. Each call is a bounded step that does not block others for long. */
export interface UpkeepStore {
  /**
   * Held actions created at this time or before, and perhaps slightly later ones, by id, after `after` (empty: from the
   * first).
   */
  held(createdUntil: Date, after: string, limit: number): Promise<readonly HeldAction[]>;
  /** Pending and held actions that expired at this time or before, by time and id, after `after` (null: from the first). */
  expired(until: Date, after: ExpiredAction | null, limit: number): Promise<readonly ExpiredAction[]>;
  /**
   * Deletes actions that finished by then, with their timeline, notifications and links, after the id `after` (empty: from the
   * first). It never deletes an action that is not final, has a pending notification or may still be named by an idempotency
   * key; nor the newest position of the event stream, which would be given out again.
   */
  prune(times: PruneTimes, after: string): Promise<PruneStep>;
  /** Deletes keys whose window is over, and old counts of keys and rules; true when there are more. */
  pruneKeys(now: Date): Promise<boolean>;
}

/** The size of a database file. */
export interface DatabaseSize {
  /** Without the log. */
  readonly bytes: number;
  /** Bytes of free pages, which the next rows use. */
  readonly freeBytes: number;
  /** An estimate of what deleting the actions that finished by then would free. */
  readonly deletableBytes: number;
  /** Whether free pages can be given back to the system. A file of version 0.1 can't. */
  readonly canShrink: boolean;
}

export interface FileStore {
  /** A bounded read, whatever the size. */
  size(finishedUntil: Date): Promise<DatabaseSize>;
  /** Gives some free pages back to the system. Resolves with how many more there are. */
  shrink(): Promise<number>;
}

/** The database. `test/db/conformance` tests every implementation. */
export interface Store {
  readonly actions: ActionStore;
  readonly outbox: OutboxStore;
  readonly accounts: AccountStore;
  readonly callbackHosts: CallbackHostStore;
  readonly hostSettings: HostSettingsStore;
  readonly rules: RuleStore;
  readonly grants: GrantStore;
  readonly credentials: CredentialStore;
  readonly credentialRequests: CredentialRequestStore;
  readonly oauth: OAuthStore;
  readonly channels: ChannelStore;
  readonly links: LinkStore;
  readonly people: PeopleStore;
  readonly team: TeamStore;
  readonly signing: SigningStore;
  readonly pauses: PauseStore;
  readonly rejections: RejectionStore;
  readonly audit: AuditStore;
  readonly bulk: BulkStore;
  readonly activity: ActivityStore;
  readonly firstSteps: FirstStepStore;
  readonly sealed: SealedStore;
  readonly upkeep: UpkeepStore;
  /** Null: the database is not a file opened by this process. */
  readonly file: FileStore | null;
  readonly facts: FactStore;
  /** Null: no other process may use the database at the same time. */
  readonly cluster: ClusterStore | null;
  /** Whether no other process can hold a lease: everything active at the start is an orphan. */
  readonly isOnlyProcess: boolean;
  /** Whether the last write found the store unavailable. */
  readonly isUnavailable: boolean;
  /** Resolves when the store can be written; rejects with `StoreUnavailable` when not. */
  probe(): Promise<void>;
  /** Finishes waiting writes and closes the database. */
  close(): Promise<void>;
}
