import { authorize, type Caller } from "../accounts/roles.ts";
import {
  HISTORY_PAGE_ROWS,
  HISTORY_ROWS_MAX,
  OVERVIEW_ACCOUNTS_MAX,
  OVERVIEW_SLOT_MS,
  OVERVIEW_SLOTS,
} from "../config/limits.ts";
import { type ScheduledRetry, type Happened, countedOf, type Overview, AccountTally, slotOf } from "./tally.ts";
import type { Bus } from "./bus.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../observability/log.ts";
import type { ActionStore } from "../../db/store.ts";

export interface OverviewDeps {
  readonly actions: Pick<ActionStore, "history" | "position" | "scheduledRetries">;
  readonly bus: Pick<Bus, "subscribe">;
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "warn">;
}

/** What an account did in the last day, and its scheduled retries. */
interface OverviewAnswer {
  readonly overview: Overview;
  readonly scheduledRetries: ScheduledRetry;
}

export interface OverviewService {
  /** Begins to count, and to read older changes in the background. Call it before anything is delivered. */
  start(): Promise<void>;
  /** Stops counting and resolves when nothing is being read any more. */
  stop(): Promise<void>;
  /** Resolves when the changes before the start are read. */
  ready(): Promise<void>;
  read(caller: Caller): Promise<OverviewAnswer>;
}

/**
 * Counts in memory what the bus announces: nothing is written for it, and reading it scans nothing, however many
 * actions there are. At the start it reads the newest rows of the timeline, a bounded number. Where these do not cover
 * a day, and for accounts that were evicted, `since` says from when on it has counted. It counts only what this process
 * delivers.
 */
export function createOverview({ actions, bus, clock, log }: OverviewDeps): OverviewService {
  const tallies = new Tallies(clock);
  let reading = Promise.resolve();
  let isOver = false;
  let unsubscribe = () => {};

  const readBack = async (position: number): Promise<void> => {
    let until: number | null = position;
    for (let rows = 0; rows < HISTORY_ROWS_MAX && until !== null && !isOver; rows += HISTORY_PAGE_ROWS) {
      const page = await actions.history(until, HISTORY_PAGE_ROWS);
      if (!tallies.addPast(page.counted) || page.until === null) return tallies.hasReadAll();
      until = page.until;
      // Reads block this thread: let requests go first.
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  return {
    async start() {
      tallies.begin();
      unsubscribe = bus.subscribe((action) => {
        const counted = countedOf(action, clock.now());
        if (counted !== null) tallies.add(counted);
      });
      const position = actions.position();
      reading = position
        .then(readBack)
        .catch(() => log.warn("overview.unread", { message: "What was before the start could not be read back." }))
        .finally(() => tallies.endReading());
      // Everything delivered from now on comes after this position. If the store is away nothing older is read, and the
      // start does not fail.
      await Promise.allSettled([position]);
    },
    async stop() {
      isOver = true;
      unsubscribe();
      await reading;
    },
    ready: () => reading,
    async read(caller) {
      authorize(caller, "read");
      const now = clock.now();
      return {
        overview: tallies.view(caller.accountId, now),
        scheduledRetries: await actions.scheduledRetries(caller.accountId, now),
      };
    },
  };
}

interface Entry {
  readonly tally: AccountTally;
  /** Not counted before this, since the account may have been evicted. */
  readonly sinceMs: number;
  changedMs: number;
}

/** The tallies of all accounts, and since when they are complete. */
class Tallies {
  readonly #clock: Pick<Clock, "now">;
  /** In the order of their latest change. */
  readonly #tallies = new Map<string, Entry>();
  /** Everything since then has been counted. */
  #completeSinceMs: number;
  /** The last time that an account was evicted. */
  #evictedMs = Number.NEGATIVE_INFINITY;
  #isReading = false;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.#completeSinceMs = clock.now().getTime();
  }

  begin(): void {
    this.#completeSinceMs = this.#clock.now().getTime();
    this.#isReading = true;
  }

  add(counted: Happened): void {
    const { accountId } = counted;
    const found = this.#tallies.get(accountId);
    this.#tallies.delete(accountId);
    if (found === undefined) this.#makeRoom();
    const changedMs = counted.at.getTime();
    const entry = found ?? { tally: new AccountTally(counted.at), sinceMs: this.#evictedMs, changedMs };
    this.#tallies.set(accountId, entry);
    entry.changedMs = changedMs;
    entry.tally.advance(counted.at);
    entry.tally.add(counted);
  }

  /** Newest first. False: it has reached changes that are too old to show. */
  addPast(past: readonly Happened[]): boolean {
    const now = this.#clock.now();
    for (const counted of past) {
      if (slotOf(counted.at) <= slotOf(now) - OVERVIEW_SLOTS) return false;
      this.#addPast(counted, now);
      this.#completeSinceMs = Math.min(this.#completeSinceMs, counted.at.getTime());
    }
    return true;
  }

  hasReadAll(): void {
    this.#completeSinceMs = Number.NEGATIVE_INFINITY;
  }

  endReading(): void {
    this.#isReading = false;
    const inOrder = [...this.#tallies].toSorted(([, a], [, b]) => a.changedMs - b.changedMs);
    this.#tallies.clear();
    for (const [accountId, entry] of inOrder) this.#tallies.set(accountId, entry);
  }

  view(accountId: string, now: Date): Overview {
    const { tally, sinceMs } = this.#tallies.get(accountId) ?? {
      tally: new AccountTally(now),
      sinceMs: this.#evictedMs,
    };
    const view = tally.view(now);
    const first = view.slots[0]?.at.getTime() ?? now.getTime();
    const since = new Date(Math.max(first, sinceMs, this.#completeSinceMs));
    return { ...view, since, isReading: this.#isReading, slotMs: OVERVIEW_SLOT_MS };
  }

  /** Older changes evict no account: without room they are left out. */
  #addPast(counted: Happened, now: Date): void {
    const { accountId } = counted;
    let entry = this.#tallies.get(accountId);
    if (entry === undefined) {
      if (this.#tallies.size >= OVERVIEW_ACCOUNTS_MAX) {
        this.#evictedMs = Math.max(this.#evictedMs, counted.at.getTime());
        return;
      }
      entry = { tally: new AccountTally(now), sinceMs: this.#evictedMs, changedMs: counted.at.getTime() };
      this.#tallies.set(accountId, entry);
    }
    entry.tally.add(counted);
  }

  #makeRoom(): void {
    if (this.#tallies.size < OVERVIEW_ACCOUNTS_MAX) return;
    const [leastRecent] = this.#tallies.keys();
    if (leastRecent !== undefined) this.#tallies.delete(leastRecent);
    this.#evictedMs = this.#clock.now().getTime();
  }
}
