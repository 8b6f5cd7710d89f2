import { authorize, type Caller } from "../core/roles.ts";
import {
  ACTIVITY_STEP_ROWS,
  ACTIVITY_TAIL_ROWS_MAX,
  OVERVIEW_ACCOUNTS_MAX,
  OVERVIEW_FRESH_FACTOR,
  OVERVIEW_FRESH_MS_MAX,
  OVERVIEW_RANGES,
  OVERVIEW_READS_MAX,
} from "../core/limits.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { AccountStore } from "../core/account-store.ts";
import type { ActivityPage, ActivitySpan, ActivityStore } from "../core/activity-store.ts";
import type { ActionStore, ScheduledRetries, WaitingApprovals } from "../core/store.ts";
import { type ActivityRow, ActivityTally, firstSlotOf, type OverviewRange, slotMsOf } from "../core/activity.ts";
import { keptSince } from "./activity-job.ts";
import { failingOf, figuresOf, hoursOf, namesOf, type Overview, shownNames } from "./overview-figures.ts";

/** The overview, and what waits at the moment. */
export interface OverviewAnswer {
  readonly overview: Overview;
  readonly retries: ScheduledRetries;
  readonly waiting: WaitingApprovals;
  /** Of the keys in it, by id; a key that is gone has none. */
  readonly keyNames: ReadonlyMap<string, string>;
}

interface OverviewApp {
  readonly clock: Pick<Clock, "now" | "monotonicMs">;
  readonly config: Pick<Config, "retentionDays">;
  readonly store: {
    readonly actions: Pick<ActionStore, "scheduledRetries" | "waitingApprovals">;
    readonly activity: Pick<ActivityStore, "read" | "latencies" | "hostSlots" | "groups">;
    readonly accounts: Pick<AccountStore, "findKey">;
  };
}

export type OverviewService = ReturnType<typeof createOverview>;

/** Reads what is counted of a range, and counts the rest. Cached for a multiple of the time that this took. */
export function createOverview(app: OverviewApp) {
  const { clock } = app;
  const { actions, accounts } = app.store;
  const counting = new Map<string, Promise<Overview>>();
  /** In the order in which they were counted. */
  const kept = new Map<string, { readonly overview: Overview; readonly freshUntilMs: number }>();
  let last: Promise<unknown> = Promise.resolve();

  const count = async (name: string, accountId: string, range: OverviewRange): Promise<Overview> => {
    const beganMs = clock.monotonicMs();
    const overview = await readOverview(app, accountId, range);
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
        actions.waitingApprovals(accountId, clock.now()),
      ]);
      const keyIds = overview.keys.named.map(({ name }) => name).filter((name) => name !== "");
      const keys = await Promise.all(keyIds.map((id) => accounts.findKey(accountId, id)));
      const keyNames = new Map(keys.flatMap((key) => (key === null ? [] : [[key.id, key.name] as const])));
      return { overview, retries, waiting, keyNames };
    },
  };
}

/** The stored counts of a range, and a bounded number of events since then. */
async function readOverview(app: OverviewApp, accountId: string, range: OverviewRange): Promise<Overview> {
  const { clock } = app;
  const { activity } = app.store;
  const now = clock.now();
  const span = spanOf(accountId, range, now);
  const { since } = span;
  const day = spanOf(accountId, "24h", now);
  for (let reads = 1; ; reads += 1) {
    const counted = await activity.read(span);
    const { rows, countedUntil } = await readTail(activity, { spans: [span, day], range, now }, counted.position);
    const tail = rows.filter((row) => isIn(row, span));
    const names = namesOf(counted.names, tail);
    const shown = shownNames(names);
    const failing = failingOf(names);
    const hosts = [...new Set([...shown.flatMap(hostIn), ...failing.map(({ host }) => host)])];
    const [named, hourly] = [await activity.latencies(span, shown), await activity.hostSlots(day, hosts)];
    // Otherwise more was counted meanwhile, and the later reads have calls that are also in the tail.
    const isOfOneMoment = [named, hourly].every(({ position }) => position === counted.position);
    if (!isOfOneMoment && reads < OVERVIEW_READS_MAX) continue;
    const { latencies } = named;
    const figures = figuresOf({ range, since, slots: counted.slots, names, shown, failing, latencies, tail });
    const fresh = rows.flatMap((row) => (isIn(row, day) ? hostIn(row).map((host) => ({ ...row, host })) : []));
    const hostHours = hoursOf(hosts, [...hourly.slots, ...fresh], day.since);
    return { range, since: keptSince(since, app.config.retentionDays, now), countedUntil, ...figures, hostHours };
  }
}

/** The slots of a range. Later ones are from before the clock was set back. */
function spanOf(accountId: string, range: OverviewRange, now: Date): ActivitySpan {
  const since = firstSlotOf(range, now);
  const { slotMinutes, slots } = OVERVIEW_RANGES[range];
  const until = new Date(since.getTime() + slots * slotMsOf(slotMinutes));
  return { accountId, slotMinutes, since, until };
}

function isIn({ slotMinutes, at }: ActivityRow, span: ActivitySpan): boolean {
  return slotMinutes === span.slotMinutes && at < span.until;
}

function hostIn({ kind, name }: Pick<ActivityRow, "kind" | "name">): readonly string[] {
  return kind === "host" ? [name] : [];
}

interface TailQuery {
  /** That of the range, and the last day for the hours of hosts. */
  readonly spans: readonly [ActivitySpan, ActivitySpan];
  readonly range: OverviewRange;
  readonly now: Date;
}

/** Counts what happened after a position. `countedUntil`: where reading stopped early; null: it read to the end. */
async function readTail(
  activity: Pick<ActivityStore, "groups">,
  { spans, range, now }: TailQuery,
  position: number,
): Promise<{ readonly rows: readonly ActivityRow[]; readonly countedUntil: Date | null }> {
  const tally = new ActivityTally(now, [...new Set([range, "24h"] as const)]);
  const [{ accountId }] = spans;
  const since = new Date(Math.min(...spans.map((span) => span.since.getTime())));
  let after = position;
  let countedUntil: Date | null = null;
  for (let read = 0; read < ACTIVITY_TAIL_ROWS_MAX; read += ACTIVITY_STEP_ROWS) {
    const page: ActivityPage = await activity.groups(after, { accountId, since, limit: ACTIVITY_STEP_ROWS });
    for (const group of page.groups) tally.add(group);
    after = page.position;
    countedUntil = page.isLast ? null : page.at;
    if (page.isLast) break;
    // Reads block this thread: let requests go first.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { rows: tally.rows, countedUntil };
}
