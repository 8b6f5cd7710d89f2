import { RecentMap } from "../core/maps.ts";
import { authorize, type Caller } from "../core/roles.ts";
import {
  OVERVIEW_ACCOUNTS_MAX,
  OVERVIEW_FRESH_FACTOR,
  OVERVIEW_FRESH_MS_MAX,
  OVERVIEW_RANGES,
} from "../core/limits.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { AccountStore } from "../core/account-store.ts";
import {
  type ActivityName,
  type ActivitySpan,
  type ActivityStore,
  firstSlotOf,
  type OverviewRange,
  slotMsOf,
} from "../core/activity.ts";
import type { ActionStore, ScheduledRetries, WaitingApprovals } from "../core/store.ts";
import { type CountActivity, keptSince } from "./activity-job.ts";
import { failingHosts, overviewFigures, sumHostHours, type OverviewFigures, shownNames } from "./overview-figures.ts";

/** The overview, and what is waiting now. */
export interface OverviewAnswer {
  readonly overview: OverviewFigures;
  readonly retries: ScheduledRetries;
  readonly waiting: WaitingApprovals;
  /** Names of its keys by id. A deleted key has none. */
  readonly keyNames: ReadonlyMap<string, string>;
}

interface OverviewApp {
  readonly clock: Pick<Clock, "now" | "monotonicMs">;
  readonly config: Pick<Config, "retentionDays">;
  readonly store: {
    readonly actions: Pick<ActionStore, "scheduledRetries" | "waitingApprovals">;
    readonly activity: Pick<ActivityStore, "read" | "latencies" | "hostSlots">;
    readonly accounts: Pick<AccountStore, "findKey">;
  };
  readonly countActivity: Pick<CountActivity, "upToNow">;
}

export type OverviewService = ReturnType<typeof createOverview>;

/** Reads the counts of a range. Caches them for a multiple of the time that the read took. */
export function createOverview(app: OverviewApp) {
  const { clock } = app;
  const { actions, accounts } = app.store;
  const counting = new Map<string, Promise<OverviewFigures>>();
  const kept = new RecentMap<{ readonly overview: OverviewFigures; readonly freshUntilMs: number }>(
    OVERVIEW_ACCOUNTS_MAX,
  );
  let last: Promise<unknown> = Promise.resolve();

  const count = async (name: string, accountId: string, range: OverviewRange): Promise<OverviewFigures> => {
    const beganMs = clock.monotonicMs();
    const overview = await readOverview(app, accountId, range);
    const endedMs = clock.monotonicMs();
    const freshMs = Math.min(OVERVIEW_FRESH_MS_MAX, OVERVIEW_FRESH_FACTOR * (endedMs - beganMs));
    kept.set(name, { overview, freshUntilMs: endedMs + freshMs });
    return overview;
  };

  const read = async (accountId: string, range: OverviewRange): Promise<OverviewFigures> => {
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

/** Counts new events, up to a bound, and reads the counts of a range. */
async function readOverview(
  { clock, config, store, countActivity }: OverviewApp,
  accountId: string,
  range: OverviewRange,
): Promise<OverviewFigures> {
  const { activity } = store;
  const countedUntil = await countActivity.upToNow();
  const now = clock.now();
  const span = overviewSpan(accountId, range, now);
  const { since } = span;
  const day = overviewSpan(accountId, "24h", now);
  const { slots, names } = await activity.read(span);
  const shown = shownNames(names);
  const failing = failingHosts(names);
  const hosts = [...new Set([...shown.flatMap(hostIn), ...failing.map(({ host }) => host)])];
  const latencies = await activity.latencies(span, shown);
  const hostHours = sumHostHours(hosts, await activity.hostSlots(day, hosts), day.since);
  const figures = overviewFigures({ range, since, slots, names, shown, failing, latencies });
  return { range, since: keptSince(since, config.retentionDays, now), countedUntil, ...figures, hostHours };
}

/** The slots of a range. Leaves out later ones, from before the clock was set back. */
function overviewSpan(accountId: string, range: OverviewRange, now: Date): ActivitySpan {
  const since = firstSlotOf(range, now);
  const { slotMinutes, slots } = OVERVIEW_RANGES[range];
  const until = new Date(since.getTime() + slots * slotMsOf(slotMinutes));
  return { accountId, slotMinutes, since, until };
}

function hostIn({ kind, name }: ActivityName): readonly string[] {
  return kind === "host" ? [name] : [];
}
