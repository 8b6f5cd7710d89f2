import { authorize, type Caller } from "../accounts/roles.ts";
import {
  FAILING_HOSTS_SHOWN_MAX,
  OVERVIEW_ACCOUNTS_MAX,
  OVERVIEW_FRESH_FACTOR,
  OVERVIEW_FRESH_MS_MAX,
  OVERVIEW_HOSTS_MAX,
  OVERVIEW_SCAN_ROWS_MAX,
  OVERVIEW_SLOT_MS,
  OVERVIEW_SLOTS,
  OVERVIEW_STEP_ROWS,
} from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ActionStore, ActivityPage, ScheduledRetries } from "../../db/store.ts";

/** What an account did in the last day. */
export interface Overview {
  /** Nothing before this is counted. */
  readonly since: Date;
  /** Oldest first, without gaps; the last one is not over yet. */
  readonly slots: readonly OverviewSlot[];
  /** Duration of all attempts; null: there was none. */
  readonly latency: { readonly p50Ms: number; readonly p95Ms: number; readonly p99Ms: number } | null;
  /** Most failures first. */
  readonly hosts: readonly FailingHost[];
}

/** The numbers of half an hour. */
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

/** A host where attempts failed. */
export interface FailingHost {
  readonly host: string;
  readonly failed: number;
  readonly attempts: number;
  readonly lastError: string;
  readonly lastFailedAt: Date;
}

interface OverviewDeps {
  readonly actions: Pick<ActionStore, "activity" | "position" | "scheduledRetries">;
  readonly clock: Pick<Clock, "now" | "monotonicMs">;
}

export type OverviewService = ReturnType<typeof createOverview>;

/**
 * Counts the timeline of the last day. For an account with 100,000 actions that takes half a second, in steps that let
 * other requests go first, for one account at a time. So an overview is kept for a multiple of the time that it took; most
 * take a few milliseconds.
 */
export function createOverview({ actions, clock }: OverviewDeps) {
  const counting = new Map<string, Promise<Overview>>();
  /** In the order in which they were counted. */
  const kept = new Map<string, KeptOverview>();
  let last: Promise<unknown> = Promise.resolve();

  const count = async (accountId: string): Promise<Overview> => {
    const beganMs = clock.monotonicMs();
    const overview = await countDay(actions, accountId, clock.now());
    const endedMs = clock.monotonicMs();
    kept.delete(accountId);
    for (const oldest of kept.keys()) {
      if (kept.size < OVERVIEW_ACCOUNTS_MAX) break;
      kept.delete(oldest);
    }
    const freshMs = Math.min(OVERVIEW_FRESH_MS_MAX, OVERVIEW_FRESH_FACTOR * (endedMs - beganMs));
    kept.set(accountId, { overview, freshUntilMs: endedMs + freshMs });
    return overview;
  };

  const read = async (accountId: string): Promise<Overview> => {
    const known = kept.get(accountId);
    if (known !== undefined && clock.monotonicMs() < known.freshUntilMs) return known.overview;
    const same = counting.get(accountId);
    if (same !== undefined) return same;
    const overview = last.then(() => count(accountId)).finally(() => counting.delete(accountId));
    counting.set(accountId, overview);
    last = overview.catch(() => {});
    return overview;
  };

  return {
    async read(caller: Caller): Promise<{ readonly overview: Overview; readonly retries: ScheduledRetries }> {
      authorize(caller, "read");
      const [overview, retries] = await Promise.all([
        read(caller.accountId),
        actions.scheduledRetries(caller.accountId, clock.now()),
      ]);
      return { overview, retries };
    },
  };
}

interface KeptOverview {
  readonly overview: Overview;
  readonly freshUntilMs: number;
}

/** Reads back from the newest row of the timeline, for a day or a bounded number of rows. */
async function countDay(actions: OverviewDeps["actions"], accountId: string, now: Date): Promise<Overview> {
  const counts = new DayCounts(now);
  let since = now;
  let until: number | null = await actions.position();
  for (let rows = 0; rows < OVERVIEW_SCAN_ROWS_MAX; rows += OVERVIEW_STEP_ROWS) {
    const page: ActivityPage = await actions.activity(accountId, {
      since: counts.since,
      until,
      limit: OVERVIEW_STEP_ROWS,
    });
    counts.add(page);
    if (page.next === null || page.oldestAt <= counts.since) return counts.result(counts.since);
    since = page.oldestAt;
    until = page.next;
    // Reads block this thread: let requests go first.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return counts.result(since);
}

interface SlotCounts {
  created: number;
  completed: number;
  failed: number;
  attempts: number;
  readonly durations: Duration[];
}

/** Attempts that took about as long. */
interface Duration {
  readonly ms: number;
  readonly count: number;
}

/** Adds up the pages of a day. */
class DayCounts {
  /** The start of the first slot. */
  readonly since: Date;
  readonly #slots: readonly SlotCounts[];
  readonly #hosts = new Map<string, FailingHost>();

  constructor(now: Date) {
    const newest = Math.floor(now.getTime() / OVERVIEW_SLOT_MS);
    this.since = new Date((newest + 1 - OVERVIEW_SLOTS) * OVERVIEW_SLOT_MS);
    this.#slots = Array.from({ length: OVERVIEW_SLOTS }, () => {
      return { created: 0, completed: 0, failed: 0, attempts: 0, durations: [] };
    });
  }

  add({ counts, hosts }: ActivityPage): void {
    for (const { at, kind, durationMs, count } of counts) {
      const slot = this.#slots[(at.getTime() - this.since.getTime()) / OVERVIEW_SLOT_MS];
      // Later than now: the clock was set back.
      if (slot === undefined) continue;
      if (kind !== "retry") slot[kind] += count;
      if (kind !== "created") slot.attempts += count;
      if (durationMs !== null) slot.durations.push({ ms: durationMs, count });
    }
    for (const found of hosts) {
      const known = this.#hosts.get(found.host);
      if (known === undefined && this.#hosts.size >= OVERVIEW_HOSTS_MAX) continue;
      this.#hosts.set(found.host, known === undefined ? found : sumOf(known, found));
    }
  }

  result(since: Date): Overview {
    const slots = this.#slots.map(({ durations, ...counts }, index) => {
      const at = new Date(this.since.getTime() + index * OVERVIEW_SLOT_MS);
      const [p50Ms = null, p95Ms = null] = percentiles(durations, [0.5, 0.95]);
      return { at, ...counts, p50Ms, p95Ms };
    });
    const all = this.#slots.flatMap(({ durations }) => durations);
    const [p50Ms, p95Ms, p99Ms] = percentiles(all, [0.5, 0.95, 0.99]);
    const isMeasured = p50Ms !== undefined && p95Ms !== undefined && p99Ms !== undefined;
    const hosts = [...this.#hosts.values()]
      .filter(({ failed }) => failed > 0)
      .toSorted((a, b) => b.failed - a.failed || b.lastFailedAt.getTime() - a.lastFailedAt.getTime())
      .slice(0, FAILING_HOSTS_SHOWN_MAX);
    return { since, slots, latency: isMeasured ? { p50Ms, p95Ms, p99Ms } : null, hosts };
  }
}

function sumOf(one: FailingHost, other: FailingHost): FailingHost {
  const { lastError, lastFailedAt } = one.lastFailedAt < other.lastFailedAt ? other : one;
  const { host } = one;
  return { host, failed: one.failed + other.failed, attempts: one.attempts + other.attempts, lastError, lastFailedAt };
}

/** The durations that these shares of all attempts do not exceed, in milliseconds; empty: there was no attempt. */
function percentiles(durations: readonly Duration[], shares: readonly number[]): readonly number[] {
  const all = durations.reduce((sum, { count }) => sum + count, 0);
  if (all === 0) return [];
  const ordered = durations.toSorted((a, b) => a.ms - b.ms);
  return shares.map((share) => {
    let seen = 0;
    return ordered.find(({ count }) => (seen += count) >= all * share)?.ms ?? 0;
  });
}
