import { authorize, type Caller } from "../accounts/roles.ts";
import {
  ACTIVITY_STEP_ROWS,
  ACTIVITY_TAIL_ROWS_MAX,
  FAILING_HOSTS_SHOWN_MAX,
  OVERVIEW_ACCOUNTS_MAX,
  OVERVIEW_FRESH_FACTOR,
  OVERVIEW_FRESH_MS_MAX,
  OVERVIEW_NAMES_SHOWN_MAX,
  OVERVIEW_RANGES,
} from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { AccountStore } from "../../db/account-store.ts";
import type { ActivityPage, ActivityStore } from "../../db/activity-store.ts";
import type { ActionStore, ScheduledRetries, WaitingApprovals } from "../../db/store.ts";
import {
  type ActivityFigures,
  type ActivityRow,
  ActivityTally,
  firstSlotOf,
  type OverviewRange,
  slotMsOf,
} from "./activity.ts";
import { keptSince } from "./activity-job.ts";
import { mergeHistograms, percentilesOf } from "./histogram.ts";

/** What an account did in a range. */
export interface Overview {
  readonly range: OverviewRange;
  /** Nothing before this is counted. */
  readonly since: Date;
  /** Nothing after this is counted yet; null: everything is. */
  readonly countedUntil: Date | null;
  /** Oldest first, without gaps; the last one is not over yet. */
  readonly slots: readonly OverviewSlot[];
  /** Duration of all attempts; null: there was none. */
  readonly latency: { readonly p50Ms: number; readonly p95Ms: number; readonly p99Ms: number } | null;
  /** Where attempts failed, most failures first. */
  readonly failing: readonly FailingHost[];
  /** By host, and by the id of the key, the busiest first. */
  readonly hosts: Breakdown;
  readonly keys: Breakdown;
  /** What people decided, and how long it took. */
  readonly decisions: Decisions;
}

/** The numbers of a slot. */
export interface OverviewSlot {
  readonly at: Date;
  readonly created: number;
  /** Actions that completed in it. */
  readonly completed: number;
  readonly failed: number;
  readonly attempts: number;
  /** Duration of attempts in milliseconds; null: there was none. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** The figures of hosts or keys. */
export interface Breakdown {
  readonly named: readonly NamedFigures[];
  /** All others together; null: there are none. */
  readonly others: ShareOfAll | null;
}

interface ShareOfAll extends Omit<OverviewSlot, "at"> {
  readonly failedAttempts: number;
}

export interface NamedFigures extends ShareOfAll {
  readonly name: string;
}

/** A host where attempts failed. */
export interface FailingHost {
  readonly host: string;
  readonly failed: number;
  readonly attempts: number;
  readonly lastError: string;
  readonly lastFailedAt: Date;
}

interface Decisions {
  readonly approved: number;
  readonly rejected: number;
  /** From the request to the decision; null: there was none. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** The overview, and what waits at the moment. */
export interface OverviewAnswer {
  readonly overview: Overview;
  readonly retries: ScheduledRetries;
  readonly waiting: WaitingApprovals;
  /** Of the keys in it, by id; a key that is gone has none. */
  readonly keyNames: ReadonlyMap<string, string>;
}

interface OverviewDeps {
  readonly actions: Pick<ActionStore, "scheduledRetries" | "waitingApprovals">;
  readonly activity: Pick<ActivityStore, "read" | "groups">;
  readonly accounts: Pick<AccountStore, "findKey">;
  readonly clock: Pick<Clock, "now" | "monotonicMs">;
  /** Null: everything is kept. */
  readonly retentionDays: number | null;
}

export type OverviewService = ReturnType<typeof createOverview>;

/**
 * Reads the slots of a range, of which there is a bounded number, and what is not counted into them yet. It is kept for a
 * multiple of the time that it took; most take a few milliseconds.
 */
export function createOverview(deps: OverviewDeps) {
  const { actions, accounts, clock } = deps;
  const counting = new Map<string, Promise<Overview>>();
  /** In the order in which they were counted. */
  const kept = new Map<string, KeptOverview>();
  let last: Promise<unknown> = Promise.resolve();

  const count = async (name: string, accountId: string, range: OverviewRange): Promise<Overview> => {
    const beganMs = clock.monotonicMs();
    const overview = await readOverview(deps, accountId, range);
    const endedMs = clock.monotonicMs();
    kept.delete(name);
    for (const oldest of kept.keys()) {
      if (kept.size < OVERVIEW_ACCOUNTS_MAX) break;
      kept.delete(oldest);
    }
    const freshMs = Math.min(OVERVIEW_FRESH_MS_MAX, OVERVIEW_FRESH_FACTOR * (endedMs - beganMs));
    kept.set(name, { overview, freshUntilMs: endedMs + freshMs });
    return overview;
  };

  const read = async (accountId: string, range: OverviewRange): Promise<Overview> => {
    const name = `${accountId} ${range}`;
    const known = kept.get(name);
    if (known !== undefined && clock.monotonicMs() < known.freshUntilMs) return known.overview;
    const same = counting.get(name);
    if (same !== undefined) return same;
    const overview = last.then(() => count(name, accountId, range)).finally(() => counting.delete(name));
    counting.set(name, overview);
    last = overview.catch(() => {});
    return overview;
  };

  return {
    async read(caller: Caller, range: OverviewRange): Promise<OverviewAnswer> {
      authorize(caller, "read");
      const { accountId } = caller;
      const [overview, retries, waiting] = await Promise.all([
        read(accountId, range),
        actions.scheduledRetries(accountId, clock.now()),
        actions.waitingApprovals(accountId),
      ]);
      const keyIds = overview.keys.named.map(({ name }) => name).filter((name) => name !== "");
      const keys = await Promise.all(keyIds.map((id) => accounts.findKey(accountId, id)));
      const keyNames = new Map(keys.flatMap((key) => (key === null ? [] : [[key.id, key.name] as const])));
      return { overview, retries, waiting, keyNames };
    },
  };
}

interface KeptOverview {
  readonly overview: Overview;
  readonly freshUntilMs: number;
}

/** The slots that are stored, and what happened since they were counted, up to a bounded number of rows. */
async function readOverview(
  { activity, clock, retentionDays }: OverviewDeps,
  accountId: string,
  range: OverviewRange,
): Promise<Overview> {
  const now = clock.now();
  const first = firstSlotOf(range, now);
  const { slotMinutes } = OVERVIEW_RANGES[range];
  const { position, rows } = await activity.read({ accountId, slotMinutes, at: first });
  const tally = new ActivityTally(now, [range]);
  tally.load(rows);
  let after = position;
  let countedUntil: Date | null = null;
  for (let read = 0; read < ACTIVITY_TAIL_ROWS_MAX; read += ACTIVITY_STEP_ROWS) {
    const page: ActivityPage = await activity.groups(after, { accountId, since: first, limit: ACTIVITY_STEP_ROWS });
    for (const group of page.groups) tally.add(group);
    after = page.position;
    countedUntil = page.isLast ? null : page.at;
    if (page.isLast) break;
    // Reads block this thread: let requests go first.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { range, since: keptSince(first, retentionDays, now), countedUntil, ...figuresOf(tally.rows, range, first) };
}

function figuresOf(
  counted: readonly ActivityRow[],
  range: OverviewRange,
  first: Date,
): Omit<Overview, "range" | "since" | "countedUntil"> {
  const { slotMinutes, slots: count } = OVERVIEW_RANGES[range];
  const endMs = first.getTime() + count * slotMsOf(slotMinutes);
  // What is later than now is from before the clock was set back.
  const rows = counted.filter(({ at }) => at.getTime() < endMs);
  const ofAll = rows.filter(({ kind }) => kind === "all");
  const byTime = new Map(ofAll.map((row) => [row.at.getTime(), row]));
  const slots = Array.from({ length: count }, (_, index) => {
    const at = new Date(first.getTime() + index * slotMsOf(slotMinutes));
    const row = byTime.get(at.getTime());
    const { failedAttempts: _failed, ...figures } = shareOf(row === undefined ? [] : [row]);
    return { at, ...figures };
  });
  const [p50Ms, p95Ms, p99Ms] = percentilesOf(mergeHistograms(ofAll.map(({ latency }) => latency)), [0.5, 0.95, 0.99]);
  const isMeasured = p50Ms !== undefined && p95Ms !== undefined && p99Ms !== undefined;
  const hosts = byName(rows.filter(({ kind }) => kind === "host"));
  return {
    slots,
    latency: isMeasured ? { p50Ms, p95Ms, p99Ms } : null,
    failing: failingOf(hosts),
    hosts: breakdownOf(
      hosts,
      rows.filter(({ kind }) => kind === "other_hosts"),
    ),
    keys: breakdownOf(
      byName(rows.filter(({ kind }) => kind === "key")),
      rows.filter(({ kind }) => kind === "other_keys"),
    ),
    decisions: decisionsOf(ofAll),
  };
}

type ByName = ReadonlyMap<string, readonly ActivityRow[]>;

function byName(rows: readonly ActivityRow[]): ByName {
  return Map.groupBy(rows, ({ name }) => name);
}

function total(
  rows: readonly ActivityFigures[],
  name: "created" | "completed" | "failed" | "attempts" | "failedAttempts" | "approved" | "rejected",
) {
  return rows.reduce((sum, row) => sum + row[name], 0);
}

function shareOf(rows: readonly ActivityFigures[]): ShareOfAll {
  const [p50Ms = null, p95Ms = null] = percentilesOf(mergeHistograms(rows.map(({ latency }) => latency)), [0.5, 0.95]);
  return {
    created: total(rows, "created"),
    completed: total(rows, "completed"),
    failed: total(rows, "failed"),
    attempts: total(rows, "attempts"),
    failedAttempts: total(rows, "failedAttempts"),
    p50Ms,
    p95Ms,
  };
}

function breakdownOf(named: ByName, unnamed: readonly ActivityRow[]): Breakdown {
  const busiest = [...named]
    .map(([name, rows]) => ({ name, rows, size: Math.max(total(rows, "created"), total(rows, "attempts")) }))
    .toSorted((one, other) => other.size - one.size || (one.name < other.name ? -1 : 1));
  const rest = [...busiest.slice(OVERVIEW_NAMES_SHOWN_MAX).flatMap(({ rows }) => rows), ...unnamed];
  return {
    named: busiest.slice(0, OVERVIEW_NAMES_SHOWN_MAX).map(({ name, rows }) => ({ name, ...shareOf(rows) })),
    others: rest.length === 0 ? null : shareOf(rest),
  };
}

function failingOf(hosts: ByName): readonly FailingHost[] {
  const failing = [...hosts].flatMap(([host, rows]) => {
    const failed = total(rows, "failedAttempts");
    const newest = rows.reduce((one, other) => ((other.lastFailedAt ?? 0) > (one.lastFailedAt ?? 0) ? other : one));
    const { lastError, lastFailedAt } = newest;
    if (failed === 0 || lastFailedAt === null) return [];
    return [{ host, failed, attempts: total(rows, "attempts"), lastError: lastError ?? "", lastFailedAt }];
  });
  return failing
    .toSorted((a, b) => b.failed - a.failed || b.lastFailedAt.getTime() - a.lastFailedAt.getTime())
    .slice(0, FAILING_HOSTS_SHOWN_MAX);
}

function decisionsOf(rows: readonly ActivityRow[]): Decisions {
  const waits = mergeHistograms(rows.map((row) => row.waits));
  const [p50Ms = null, p95Ms = null] = percentilesOf(waits, [0.5, 0.95]);
  return { approved: total(rows, "approved"), rejected: total(rows, "rejected"), p50Ms, p95Ms };
}
