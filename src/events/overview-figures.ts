import { DAY_MS, FAILING_HOSTS_SHOWN_MAX, HOUR_MS, OVERVIEW_NAMES_SHOWN_MAX, OVERVIEW_RANGES } from "../core/limits.ts";
import {
  type ActivityName,
  type HostSlot,
  type NameLatency,
  type ActivityFigures,
  type ActivityRow,
  type NameTotals,
  type OverviewRange,
  slotLengthMs,
} from "../core/activity.ts";
import { type Histogram, mergeHistograms, findPercentiles, withoutHistograms } from "../core/histogram.ts";

export interface OverviewFigures {
  readonly range: OverviewRange;
  /** When the range begins. */
  readonly since: Date;
  /** Events after this time are not counted yet; null: all are. */
  readonly countedUntil: Date | null;
  /** Oldest first, without gaps. The last one is still running. */
  readonly slots: readonly OverviewSlot[];
  /** Duration of all attempts; null if there were none. */
  readonly latency: { readonly p50Ms: number; readonly p95Ms: number; readonly p99Ms: number } | null;
  /** The hosts where actions failed, most failures first. */
  readonly failing: readonly FailingHost[];
  /** The last 24 hours of each host named here, whatever the range. Oldest first; the last hour is still running. */
  readonly hostHours: ReadonlyMap<string, readonly HostHour[]>;
  /** By host and by key id, busiest first. */
  readonly hosts: Breakdown;
  readonly keys: Breakdown;
  /** How people decided, and how long it took. */
  readonly decisions: Decisions;
}

export interface OverviewSlot extends Pick<ActivityFigures, "created" | "completed" | "failed" | "attempts"> {
  readonly at: Date;
  /** Duration of attempts in milliseconds; null if there were none. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface Breakdown {
  readonly named: readonly NamedFigures[];
  /** All others together; null if there are none. */
  readonly others: ShareOfAll | null;
}

interface ShareOfAll extends Omit<OverviewSlot, "at"> {
  readonly failedAttempts: number;
}

export interface NamedFigures extends ShareOfAll {
  readonly name: string;
}

/** A host where actions failed, or where attempts failed and none has completed. */
export interface FailingHost extends Pick<NameTotals, "completed" | "failed" | "attempts" | "failedAttempts"> {
  readonly host: string;
  /** The error of the last failed attempt. */
  readonly lastError: string;
  readonly lastFailedAt: Date;
}

export type HostHour = Omit<HostSlot, "host">;

interface Decisions {
  readonly approved: number;
  readonly rejected: number;
  /** From the request to the decision; null if there were none. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

type Summed = Pick<ActivityFigures, "created" | "completed" | "failed" | "attempts" | "failedAttempts">;

function nameKey({ kind, name }: ActivityName): string {
  return `${kind} ${name}`;
}

function countsBy(count: (name: keyof Summed) => number): Summed {
  const [created, completed, failed] = [count("created"), count("completed"), count("failed")];
  return { created, completed, failed, attempts: count("attempts"), failedAttempts: count("failedAttempts") };
}

function sumAll(all: readonly Summed[]): Summed {
  return countsBy((name) => all.reduce((sum, one) => sum + one[name], 0));
}

/** The busiest hosts and keys. Only these are shown, and only they need a latency. */
export function shownNames(names: readonly NameTotals[]): readonly NameTotals[] {
  return (["host", "key"] as const).flatMap((kind) =>
    names
      .filter((one) => one.kind === kind)
      .map((one) => ({ one, size: Math.max(one.created, one.attempts) }))
      .toSorted((a, b) => b.size - a.size || (a.one.name < b.one.name ? -1 : 1))
      .slice(0, OVERVIEW_NAMES_SHOWN_MAX)
      .map(({ one }) => one),
  );
}

interface Counted {
  readonly range: OverviewRange;
  readonly since: Date;
  /** Slots of the kind `all`. */
  readonly slots: readonly ActivityRow[];
  readonly names: readonly NameTotals[];
  readonly shown: readonly NameTotals[];
  readonly failing: readonly FailingHost[];
  readonly latencies: readonly NameLatency[];
}

export function overviewFigures(
  counted: Counted,
): Omit<OverviewFigures, "range" | "since" | "countedUntil" | "hostHours"> {
  const { range, since, failing, slots: ofAll } = counted;
  const latency = mergeHistograms(ofAll.map((row) => row.latency));
  const [p50Ms, p95Ms, p99Ms] = findPercentiles(latency, [0.5, 0.95, 0.99]);
  const isMeasured = p50Ms !== undefined && p95Ms !== undefined && p99Ms !== undefined;
  const all = { ...sumAll(ofAll), latency };
  return {
    slots: overviewSlots(range, since, ofAll),
    latency: isMeasured ? { p50Ms, p95Ms, p99Ms } : null,
    failing,
    hosts: toBreakdown("host", counted, all),
    keys: toBreakdown("key", counted, all),
    decisions: sumDecisions(ofAll),
  };
}

function overviewSlots(range: OverviewRange, since: Date, ofAll: readonly ActivityRow[]): readonly OverviewSlot[] {
  const { slotMinutes, slots } = OVERVIEW_RANGES[range];
  const byTime = Map.groupBy(ofAll, ({ at }) => at.getTime());
  return Array.from({ length: slots }, (_, index) => {
    const at = new Date(since.getTime() + index * slotLengthMs(slotMinutes));
    const rows = byTime.get(at.getTime()) ?? [];
    const latency = mergeHistograms(rows.map((row) => row.latency));
    const { failedAttempts: _failed, ...figures } = toShare({ ...sumAll(rows), latency });
    return { at, ...figures };
  });
}

type Share = Summed & { readonly latency: Histogram };

function toShare({ created, completed, failed, attempts, failedAttempts, latency }: Share): ShareOfAll {
  const [p50Ms = null, p95Ms = null] = findPercentiles(latency, [0.5, 0.95]);
  return { created, completed, failed, attempts, failedAttempts, p50Ms, p95Ms };
}

const OTHERS = { host: "other_hosts", key: "other_keys" } as const;

/** The named ones, and all others as the total minus those: every call counts for one host and one key. */
function toBreakdown(kind: "host" | "key", { names, shown, latencies }: Counted, all: Share): Breakdown {
  const stored = new Map(latencies.map((one) => [nameKey(one), one.latency]));
  const named = shown
    .filter((one) => one.kind === kind)
    .map((one) => ({ ...one, latency: stored.get(nameKey(one)) ?? new Map() }));
  const count = names.filter((one) => one.kind === kind || one.kind === OTHERS[kind]).length;
  return {
    named: named.map((one) => ({ name: one.name, ...toShare(one) })),
    others: count === named.length ? null : toShare(without(all, named)),
  };
}

function without(all: Share, named: readonly Share[]): Share {
  const sum = sumAll(named);
  // Not below 0: more may be counted between two reads.
  const left = countsBy((name) => Math.max(0, all[name] - sum[name]));
  const latencies = named.map(({ latency }) => latency);
  return { ...left, latency: withoutHistograms(all.latency, latencies) };
}

/** The failing hosts. Failed attempts alone count only if none has completed: a successful retry is no failure. */
export function failingHosts(names: readonly NameTotals[]): readonly FailingHost[] {
  const failing = names.flatMap(({ kind, name: host, lastError, lastFailedAt, ...figures }) => {
    const { completed, failed, attempts, failedAttempts } = figures;
    const isFailing = failed > 0 || (failedAttempts > 0 && completed === 0);
    if (kind !== "host" || !isFailing || lastFailedAt === null) return [];
    return [{ host, completed, failed, attempts, failedAttempts, lastError: lastError ?? "", lastFailedAt }];
  });
  return failing
    .toSorted(
      (a, b) =>
        b.failed - a.failed ||
        b.failedAttempts - a.failedAttempts ||
        b.lastFailedAt.getTime() - a.lastFailedAt.getTime(),
    )
    .slice(0, FAILING_HOSTS_SHOWN_MAX);
}

/** The hours since `since` of each of these hosts, from its slots. A host without slots did nothing. */
export function sumHostHours(
  hosts: readonly string[],
  slots: readonly HostSlot[],
  since: Date,
): ReadonlyMap<string, readonly HostHour[]> {
  const byHost = Map.groupBy(slots, ({ host }) => host);
  return new Map(
    hosts.map((host) => {
      const byHour = Map.groupBy(byHost.get(host) ?? [], ({ at }) =>
        Math.floor((at.getTime() - since.getTime()) / HOUR_MS),
      );
      const hours = Array.from({ length: DAY_MS / HOUR_MS }, (_, index) => {
        const at = new Date(since.getTime() + index * HOUR_MS);
        return { at, ...sumAll(byHour.get(index) ?? []) };
      });
      return [host, hours] as const;
    }),
  );
}

function sumDecisions(rows: readonly ActivityRow[]): Decisions {
  const total = (name: "approved" | "rejected") => rows.reduce((sum, row) => sum + row[name], 0);
  const waits = mergeHistograms(rows.map((row) => row.waits));
  const [p50Ms = null, p95Ms = null] = findPercentiles(waits, [0.5, 0.95]);
  return { approved: total("approved"), rejected: total("rejected"), p50Ms, p95Ms };
}
