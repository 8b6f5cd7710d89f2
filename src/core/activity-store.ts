import type { ActivityGroup, ActivityRow, ActivitySlot, NameTotals } from "./activity.ts";
import type { Histogram } from "./histogram.ts";

/** Which rows of the timeline to group. */
interface ActivityQuery {
  /** Nothing earlier is counted. */
  readonly since: Date;
  /** Rows of the timeline of all accounts to read. */
  readonly limit: number;
}

export interface ActivityPage {
  readonly groups: readonly ActivityGroup[];
  /** Everything up to this position was read. */
  readonly position: number;
  /** When the last row that was read happened; null: the page reaches the newest one. */
  readonly at: Date | null;
  readonly isLast: boolean;
}

/** What counting a stretch of the timeline has changed. */
interface ActivityWrite {
  /** Written only if the stored position is still this one, so that nothing is counted twice. */
  readonly from: number;
  readonly to: number;
  /** The totals of the slots, not what was added. */
  readonly rows: readonly ActivityRow[];
  readonly steps: readonly FirstStep[];
}

/** Slots of one length of an account, without those that begin at `until` or later. */
export interface ActivitySpan {
  readonly accountId: string;
  readonly slotMinutes: number;
  readonly since: Date;
  readonly until: Date;
}

/** What is counted of a span. */
interface CountedActivity {
  /** Those of the kind `all`. */
  readonly slots: readonly ActivityRow[];
  /** Totals for the whole span, in no order. */
  readonly names: readonly NameTotals[];
}

/** A host or key of a span. */
export type ActivityName = Pick<NameTotals, "kind" | "name">;

export interface NameLatency extends ActivityName {
  readonly latency: Histogram;
}

export interface HostSlot extends Pick<
  ActivityRow,
  "at" | "created" | "completed" | "failed" | "attempts" | "failedAttempts"
> {
  readonly host: string;
}

/** What the overview counts. */
export interface ActivityStore {
  /** Everything in the timeline up to here is counted. */
  position(): Promise<number>;
  /** What happened after a position. */
  groups(after: number, query: ActivityQuery): Promise<ActivityPage>;
  stored(slots: readonly ActivitySlot[]): Promise<readonly ActivityRow[]>;
  read(span: ActivitySpan): Promise<CountedActivity>;
  /** The latencies of some hosts and keys. Those without any are left out. */
  latencies(span: ActivitySpan, names: readonly ActivityName[]): Promise<readonly NameLatency[]>;
  /** What some hosts did in each slot of a span in which they did anything. */
  hostSlots(span: ActivitySpan, hosts: readonly string[]): Promise<readonly HostSlot[]>;
  /** Writes rows and position in one commit. False: another node has counted meanwhile, and nothing is written. */
  put(write: ActivityWrite): Promise<boolean>;
  /** Deletes slots of one length that began earlier; true when there may be more. */
  prune(slotMinutes: number, before: Date): Promise<boolean>;
}

/** A step that an account takes once at its beginning. `hidden`: a person has hidden the list of steps. */
export type FirstStepName = "action" | "approval" | "agent" | "signature" | "hidden";

export interface FirstStep {
  readonly accountId: string;
  readonly step: FirstStepName;
  readonly at: Date;
}

/** What an action shows about the first steps of its account. */
export interface NewestAction {
  readonly createdBy: string;
  /** Null: nobody had to approve it, or nobody has. */
  readonly approvedBy: string | null;
}

export interface FirstStepStore {
  /** The steps of an account and of this person. */
  done(accountId: string, personId: string): Promise<readonly { readonly step: FirstStepName; readonly at: Date }[]>;
  /** The newest actions of an account, at most `FIRST_ACTIONS_READ_MAX`. */
  newest(accountId: string): Promise<readonly NewestAction[]>;
  /** Adds a step. A stored step keeps its time. `personId` is empty except for `hidden`. */
  add(step: FirstStep & { readonly personId: string }): Promise<void>;
  /** Idempotent. */
  remove(step: Omit<FirstStep, "at"> & { readonly personId: string }): Promise<void>;
}
