import { ACTIVITY_NAMES_MAX, OVERVIEW_RANGES } from "./limits.ts";
import { addDuration, type Histogram } from "./histogram.ts";

export type OverviewRange = keyof typeof OVERVIEW_RANGES;

// Safe: the object has exactly these keys.
export const RANGE_NAMES = Object.keys(OVERVIEW_RANGES) as OverviewRange[];

/** When the oldest slot of a range begins. The newest one has not ended at `now`. */
export function firstSlot(range: OverviewRange, now: Date): Date {
  const { slotMinutes, slots } = OVERVIEW_RANGES[range];
  const slotMs = slotLengthMs(slotMinutes);
  return new Date((Math.floor(now.getTime() / slotMs) + 1 - slots) * slotMs);
}

export function slotLengthMs(slotMinutes: number): number {
  return slotMinutes * 60_000;
}

/** What a row counts: all of an account, one host or key of it, or those beyond `ACTIVITY_NAMES_MAX`. */
const ACTIVITY_KINDS = ["all", "host", "key", "other_hosts", "other_keys"] as const;

type ActivityKind = (typeof ACTIVITY_KINDS)[number];

/** What happened in a minute. Timeline rows that differ in nothing else are counted together. */
export interface ActivityGroup {
  readonly accountId: string;
  /** When its minute began. */
  readonly at: Date;
  /** Host name, and the port unless it is the scheme's default. */
  readonly host: string;
  /** Empty: no key created the actions. */
  readonly keyId: string;
  /** `retry`: an attempt after which the action is not final. */
  readonly kind: "created" | "completed" | "failed" | "retry" | "approved" | "rejected";
  /** How long the attempts took, or the decisions; null: not measured. Similar ones are averaged. */
  readonly ms: number | null;
  readonly count: number;
  /** How many of these were creates by an MCP client. */
  readonly byMcp: number;
  /** How many of these were attempts, and failed ones. A late result ends an action without a further attempt. */
  readonly attempts: number;
  readonly failedAttempts: number;
  /** The error of the last one that failed. */
  readonly lastError: string | null;
  readonly lastFailedAt: Date | null;
}

/** The figures of a slot, or of several. */
export interface ActivityFigures {
  readonly created: number;
  /** Actions that completed, and that failed. */
  readonly completed: number;
  readonly failed: number;
  readonly attempts: number;
  readonly failedAttempts: number;
  readonly approved: number;
  readonly rejected: number;
  /** Durations of attempts. */
  readonly latency: Histogram;
  /** The times from the request of an approval to its decision. */
  readonly waits: Histogram;
  readonly lastError: string | null;
  readonly lastFailedAt: Date | null;
}

/** One slot of one range. */
export interface ActivitySlot {
  readonly accountId: string;
  readonly slotMinutes: number;
  /** When the slot begins. */
  readonly at: Date;
}

/** What a host or key did in a range, or all those that no slot names. Latencies are read separately. */
export interface NameTotals extends Pick<
  ActivityFigures,
  "created" | "completed" | "failed" | "attempts" | "failedAttempts" | "lastError" | "lastFailedAt"
> {
  readonly kind: Exclude<ActivityKind, "all">;
  /** As in `ActivityRow`. */
  readonly name: string;
}

export interface ActivityRow extends ActivitySlot, ActivityFigures {
  readonly kind: ActivityKind;
  /** A host, the id of a key (empty: none), or empty for other kinds. */
  readonly name: string;
}

type Counted = { -readonly [Name in keyof ActivityRow]: ActivityRow[Name] } & {
  readonly latency: Map<number, number>;
  readonly waits: Map<number, number>;
};

/** Adds up what happened into the slots of all ranges. */
export class ActivityTally {
  readonly #firstSlots: ReadonlyMap<OverviewRange, Date>;
  readonly #rows = new Map<string, Counted>();
  readonly #changed = new Set<Counted>();
  /** How many hosts and keys each slot names. */
  readonly #named = new Map<string, number>();

  /** A range leaves out what is older than its first slot at `now`. */
  constructor(now: Date) {
    this.#firstSlots = new Map(RANGE_NAMES.map((range) => [range, firstSlot(range, now)]));
  }

  /** The slots that these groups belong to. */
  slotsFor(groups: readonly ActivityGroup[]): readonly ActivitySlot[] {
    const found = new Map<string, ActivitySlot>();
    for (const group of groups) for (const slot of this.#slotsFor(group)) found.set(slotKey(slot), slot);
    return [...found.values()];
  }

  /** Loads what these slots have counted so far. Call it before `add`. */
  load(rows: readonly ActivityRow[]): void {
    for (const row of rows) {
      this.#rows.set(rowName(row, row.kind, row.name), {
        ...row,
        latency: new Map(row.latency),
        waits: new Map(row.waits),
      });
      if (row.kind === "host" || row.kind === "key") this.#countName(row, row.kind);
    }
  }

  add(group: ActivityGroup): void {
    for (const slot of this.#slotsFor(group)) {
      this.#addTo(this.#findRow(slot, "all", ""), group);
      this.#addTo(this.#namedRow(slot, "host", group.host), group);
      this.#addTo(this.#namedRow(slot, "key", group.keyId), group);
    }
  }

  get changed(): readonly ActivityRow[] {
    return [...this.#changed];
  }

  *#slotsFor({ accountId, at }: ActivityGroup): Generator<ActivitySlot> {
    for (const [range, first] of this.#firstSlots) {
      const { slotMinutes } = OVERVIEW_RANGES[range];
      const slotMs = slotLengthMs(slotMinutes);
      const slotAt = new Date(Math.floor(at.getTime() / slotMs) * slotMs);
      if (slotAt >= first) yield { accountId, slotMinutes, at: slotAt };
    }
  }

  #namedRow(slot: ActivitySlot, kind: "host" | "key", name: string): Counted {
    const known = this.#rows.get(rowName(slot, kind, name));
    if (known !== undefined) return known;
    if ((this.#named.get(`${slotKey(slot)} ${kind}`) ?? 0) >= ACTIVITY_NAMES_MAX) {
      return this.#findRow(slot, kind === "host" ? "other_hosts" : "other_keys", "");
    }
    this.#countName(slot, kind);
    return this.#findRow(slot, kind, name);
  }

  #countName(slot: ActivitySlot, kind: "host" | "key"): void {
    const place = `${slotKey(slot)} ${kind}`;
    this.#named.set(place, (this.#named.get(place) ?? 0) + 1);
  }

  #findRow({ accountId, slotMinutes, at }: ActivitySlot, kind: ActivityKind, name: string): Counted {
    const place = rowName({ accountId, slotMinutes, at }, kind, name);
    const row = this.#rows.get(place) ?? { accountId, slotMinutes, at, kind, name, ...nothing() };
    this.#rows.set(place, row);
    return row;
  }

  #addTo(row: Counted, group: ActivityGroup): void {
    const { kind, ms, count, attempts, failedAttempts, lastError, lastFailedAt } = group;
    this.#changed.add(row);
    if (kind !== "retry") row[kind] += count;
    if (kind === "approved" || kind === "rejected") {
      if (ms !== null) addDuration(row.waits, ms, count);
      return;
    }
    if (kind === "created") return;
    row.attempts += attempts;
    row.failedAttempts += failedAttempts;
    if (ms !== null) addDuration(row.latency, ms, count);
    // Only hosts show their last error.
    if (row.kind !== "host" || lastFailedAt === null) return;
    if (row.lastFailedAt !== null && row.lastFailedAt > lastFailedAt) return;
    row.lastError = lastError;
    row.lastFailedAt = lastFailedAt;
  }
}

function nothing() {
  const counts = { created: 0, completed: 0, failed: 0, attempts: 0, failedAttempts: 0, approved: 0, rejected: 0 };
  const durations = { latency: new Map<number, number>(), waits: new Map<number, number>() };
  return { ...counts, ...durations, lastError: null, lastFailedAt: null };
}

function slotKey({ accountId, slotMinutes, at }: ActivitySlot): string {
  return `${accountId} ${slotMinutes} ${at.getTime()}`;
}

function rowName(slot: ActivitySlot, kind: ActivityKind, name: string): string {
  return `${slotKey(slot)} ${kind} ${name}`;
}

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
