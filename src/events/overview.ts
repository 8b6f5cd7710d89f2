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

/** What went through an account in the last day, and what it has asleep. */
interface OverviewAnswer {
  readonly overview: Overview;
  readonly scheduledRetries: ScheduledRetry;
}

export interface OverviewService {
  /** Begins to count, and to read back what was before, in its own time. To be called before anything is delivered. */
  start(): Promise<void>;
  /** Resolves when nothing is being read any more. */
  stop(): Promise<void>;
  /** Resolves when what was before the start is read. */
  ready(): Promise<void>;
  read(caller: Caller): Promise<OverviewAnswer>;
}

/**
 * Counts in memory what the bus tells, so that nothing is written for it and a look at it scans nothing, however many
 * actions there are. A start reads back the newest rows of the timeline, a bounded number; where they do not reach back a
 * day, and of accounts that were forgotten for others, it says since when it has counted. Only what this process delivers
 * is counted.
 */
export function createOverview({ actions, bus, clock, log }: OverviewDeps): OverviewService {
  const book = new Book(clock);
  let reading = Promise.resolve();
  let isOver = false;
  let unsubscribe = () => {};

  const readBack = async (position: number): Promise<void> => {
    let until: number | null = position;
    for (let rows = 0; rows < HISTORY_ROWS_MAX && until !== null && !isOver; rows += HISTORY_PAGE_ROWS) {
      const page = await actions.history(until, HISTORY_PAGE_ROWS);
      if (!book.addPast(page.counted) || page.until === null) return book.hasReadAll();
      until = page.until;
      // The store reads in this thread: whoever waits comes first.
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  return {
    async start() {
      book.begin();
      unsubscribe = bus.subscribe((action) => {
        const counted = countedOf(action, clock.now());
        if (counted !== null) book.add(counted);
      });
      const position = actions.position();
      reading = position
        .then(readBack)
        .catch(() => log.warn("overview.unread", { message: "What was before the start could not be read back." }))
        .finally(() => book.endReading());
      // What is delivered from here on is behind it. Where the store is away nothing of before is read, and no start fails.
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
        overview: book.view(caller.accountId, now),
        scheduledRetries: await actions.scheduledRetries(caller.accountId, now),
      };
    },
  };
}

interface Entry {
  readonly tally: AccountTally;
  /** Not counted before, since the account may have been forgotten. */
  readonly sinceMs: number;
  heardMs: number;
}

/** The tallies of all accounts, and since when they hold. */
class Book {
  readonly #clock: Pick<Clock, "now">;
  /** In the order in which they were heard of last. */
  readonly #tallies = new Map<string, Entry>();
  /** Everything since then has been heard of or read. */
  #reachesMs: number;
  /** The last time that an account was forgotten for another. */
  #forgotMs = Number.NEGATIVE_INFINITY;
  #isReading = false;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.#reachesMs = clock.now().getTime();
  }

  begin(): void {
    this.#reachesMs = this.#clock.now().getTime();
    this.#isReading = true;
  }

  add(counted: Happened): void {
    const { accountId } = counted;
    const found = this.#tallies.get(accountId);
    this.#tallies.delete(accountId);
    if (found === undefined) this.#makeRoom();
    const heardMs = counted.at.getTime();
    const entry = found ?? { tally: new AccountTally(counted.at), sinceMs: this.#forgotMs, heardMs };
    this.#tallies.set(accountId, entry);
    entry.heardMs = heardMs;
    entry.tally.advance(counted.at);
    entry.tally.add(counted);
  }

  /** Newest first. False: it has come to what is too old to be shown. */
  addPast(past: readonly Happened[]): boolean {
    const now = this.#clock.now();
    for (const counted of past) {
      if (slotOf(counted.at) <= slotOf(now) - OVERVIEW_SLOTS) return false;
      this.#addPast(counted, now);
      this.#reachesMs = Math.min(this.#reachesMs, counted.at.getTime());
    }
    return true;
  }

  hasReadAll(): void {
    this.#reachesMs = Number.NEGATIVE_INFINITY;
  }

  endReading(): void {
    this.#isReading = false;
    const inOrder = [...this.#tallies].toSorted(([, a], [, b]) => a.heardMs - b.heardMs);
    this.#tallies.clear();
    for (const [accountId, entry] of inOrder) this.#tallies.set(accountId, entry);
  }

  view(accountId: string, now: Date): Overview {
    const { tally, sinceMs } = this.#tallies.get(accountId) ?? {
      tally: new AccountTally(now),
      sinceMs: this.#forgotMs,
    };
    const view = tally.view(now);
    const first = view.slots[0]?.at.getTime() ?? now.getTime();
    const since = new Date(Math.max(first, sinceMs, this.#reachesMs));
    return { ...view, since, isReading: this.#isReading, slotMs: OVERVIEW_SLOT_MS };
  }

  /** What is past makes nobody forgotten: where there is no more room, it is left out. */
  #addPast(counted: Happened, now: Date): void {
    const { accountId } = counted;
    let entry = this.#tallies.get(accountId);
    if (entry === undefined) {
      if (this.#tallies.size >= OVERVIEW_ACCOUNTS_MAX) {
        this.#forgotMs = Math.max(this.#forgotMs, counted.at.getTime());
        return;
      }
      entry = { tally: new AccountTally(now), sinceMs: this.#forgotMs, heardMs: counted.at.getTime() };
      this.#tallies.set(accountId, entry);
    }
    entry.tally.add(counted);
  }

  #makeRoom(): void {
    if (this.#tallies.size < OVERVIEW_ACCOUNTS_MAX) return;
    const [quietest] = this.#tallies.keys();
    if (quietest !== undefined) this.#tallies.delete(quietest);
    this.#forgotMs = this.#clock.now().getTime();
  }
}
