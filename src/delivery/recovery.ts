import type { RecoveryLease } from "../runtime/job-leases.ts";
import type { Claimed } from "../core/settle.ts";
import {
  UNCONFIRMED_CLAIMS_MAX,
  CLOCK_TOLERANCE_MS,
  LEASE_GRACE_MS,
  RESCHEDULE_ROWS_MAX,
  RECOVERY_ROWS_MAX,
} from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../observability/log.ts";
import { type Queue, type Store, StoreUnavailable } from "../core/store.ts";

/** How rows end that this process has no attempt of. */
export interface RowEnds<Row> {
  /** For a row that a dead process left active. False: another process has ended it already. */
  readonly recover: (row: Row) => Promise<boolean>;
  /** Returns a claim that was committed although its response was lost, or that found no free slot. */
  readonly unclaim: (row: Row, why: "in_doubt" | "busy") => Promise<void>;
  /** Called with the number of rows recovered, when there were any. */
  readonly onRescued: (count: number) => void;
}

interface RecoveryDeps<Row> {
  /** What the rows are, for the log. */
  readonly name: string;
  readonly log: Pick<Log, "error">;
  readonly queue: Pick<Queue<Row>, "orphans">;
  readonly clock: Clock;
  readonly ends: Pick<RowEnds<Row>, "recover" | "onRescued">;
  /** Null: no other process has rows in this store. */
  readonly recoveryLease?: RecoveryLease | null;
}

/** Which active rows nobody is working on. */
interface Orphaned<Row> {
  /** All active rows, whatever their lease: at the start of the only process of this store. */
  readonly everything: boolean;
  /** Rows that this process works on: a clock that jumped ahead must not end their leases. */
  readonly isOurs: (row: Row) => boolean;
}

/** Takes or renews the lease; false: this process may end nothing now. */
type MayEnd = () => Promise<boolean>;

/** Ends rows of dead processes. A row that can't be ended is logged, left to the next time, and blocks no other. */
export class Recovery<Row extends { readonly id: string }> {
  readonly #deps: RecoveryDeps<Row>;

  constructor(deps: RecoveryDeps<Row>) {
    this.#deps = deps;
  }

  /**
   * Ends what dead processes left active as interrupted attempts, so that retries follow the usual rules. Returns how many
   * it ended. Rejects when the store is away; the rest is left for the next time, as all is while another node ends them.
   */
  async rescue(orphaned: Orphaned<Row>): Promise<number> {
    const lease = this.#deps.recoveryLease ?? null;
    if (lease === null) return this.#rescue(orphaned, () => Promise.resolve(true));
    let isTaken = false;
    try {
      // Taken when there is something to end, which is rare, renewed for each page, and released at the end.
      return await this.#rescue(orphaned, async () => (isTaken = await lease.take()));
    } finally {
      // If it can't be released it ends by itself.
      if (isTaken) await lease.release().catch(() => {});
    }
  }

  async #rescue({ everything, isOurs }: Orphaned<Row>, mayEnd: MayEnd): Promise<number> {
    const { queue, clock, ends } = this.#deps;
    let rescued = 0;
    try {
      for (let after: Row | null = null; ;) {
        // Paged, so that rows of our own and rows that can't be written don't hide those behind them.
        const found: readonly Row[] = await queue.orphans(everything ? null : clock.now(), RECOVERY_ROWS_MAX, after);
        const last = found.at(-1) ?? null;
        // A row whose place in the order was altered: the cursor can't pass it. Such rows come last.
        if (last === null || last.id === after?.id) break;
        after = last;
        const orphans = found.filter((row) => !isOurs(row));
        if (orphans.length > 0 && !(await mayEnd())) break;
        const results = await Promise.allSettled(orphans.map((row) => this.#recover(row)));
        rescued += results.filter((result) => result.status === "fulfilled" && result.value).length;
        const failed = results.find((result) => result.status === "rejected");
        if (failed !== undefined) throw failed.reason;
      }
    } finally {
      if (rescued > 0) ends.onRescued(rescued);
    }
    return rescued;
  }

  async #recover(row: Row): Promise<boolean> {
    const { name, log, ends } = this.#deps;
    try {
      return await ends.recover(row);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      log.error("rescue.failed", { of: name, id: row.id, error: errorName(error) });
      return false;
    }
  }
}

/** The name of an error, for the log: its message may hold what was sent. */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}

interface WatchDeps {
  /** The scheduler's name, for the log. */
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Detects that the wall clock was set back, by the monotonic clock. Due times are wall-clock times, since they outlive
 * the process; after a set-back everything would wait longer.
 */
export class ClockWatch {
  readonly #deps: WatchDeps;
  /** Wall clock minus monotonic clock. */
  #aheadMs: number;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
    this.#aheadMs = this.#measure();
  }

  /**
   * Milliseconds by which the wall clock was set back since the last call; 0 when it was not, or by less than the
   * tolerance. A clock set forward or a suspended machine only makes rows due earlier, which needs nothing.
   */
  setBackMs(): number {
    const aheadMs = this.#measure();
    const setBackMs = Math.round(this.#aheadMs - aheadMs);
    // Not forgotten: small steps add up.
    if (setBackMs > 0 && setBackMs <= CLOCK_TOLERANCE_MS) return 0;
    this.#aheadMs = aheadMs;
    if (setBackMs <= 0) return 0;
    this.#deps.log.warn("clock.set_back", { of: this.#deps.name, by_ms: setBackMs });
    return setBackMs;
  }

  #measure(): number {
    const { clock } = this.#deps;
    return clock.now().getTime() - clock.monotonicMs();
  }
}

interface PauseDeps {
  /** The scheduler's name, for the log. */
  readonly name: string;
  readonly store: Pick<Store, "probe">;
  readonly log: Log;
  /** Runs `run` once after the delay, unless the scheduler has stopped. */
  readonly later: (delayMs: number, run: () => void) => void;
  /** Makes `drain` wait for this too. */
  readonly keep: (work: Promise<unknown>) => void;
  /** Resumes the scheduler. If it rejects, the pause goes on. */
  readonly resume: () => Promise<void>;
  /** Called with an error of `resume`. */
  readonly onError: (error: unknown) => void;
}

const PROBE_EVERY_MS = 1_000;

/**
 * While the store can't be written nothing is claimed, since its result could not be recorded. The store is probed once
 * a second. `Outage` tells the operator of it, once for all schedulers.
 */
export class StorePause {
  readonly #deps: PauseDeps;
  #isOn = false;

  constructor(deps: PauseDeps) {
    this.#deps = deps;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Begins the pause; `reason` is for the log. */
  begin(reason: string): void {
    if (this.#isOn) return;
    this.#isOn = true;
    const { log, name } = this.#deps;
    this.#probeLater();
    log.debug("dispatch.paused", { of: name, reason });
  }

  #probeLater(): void {
    const { later, keep } = this.#deps;
    later(PROBE_EVERY_MS, () => keep(this.#probe()));
  }

  async #probe(): Promise<void> {
    const { store, log, name, resume, onError } = this.#deps;
    try {
      await store.probe();
    } catch {
      return this.#probeLater();
    }
    this.#isOn = false;
    try {
      log.debug("dispatch.resumed", { of: name });
      await resume();
    } catch (error) {
      onError(error);
      this.begin("it could not go on");
    }
  }
}

/** Moves the due times of all rows that were scheduled before the clock was set back by `byMs`, while `isWanted`. */
export async function reschedule(
  queue: Pick<Queue<unknown>, "reschedule">,
  clock: Clock,
  byMs: number,
  isWanted: () => boolean,
): Promise<void> {
  while (isWanted()) {
    const count = await queue.reschedule({ now: clock.now(), byMs }, RESCHEDULE_ROWS_MAX);
    if (count < RESCHEDULE_ROWS_MAX) return;
  }
}

/** A claim whose response was lost: the store may have rows of these accounts as active under it. */
interface LostClaim {
  readonly accountIds: readonly string[];
  readonly at: Claimed;
}

interface LeaseDeps {
  readonly clock: Clock;
  readonly attemptTimeoutMs: number;
  /** The node that claims, where there may be several. */
  readonly nodeId?: string;
}

/**
 * How much later than requested a lease may end, to be unique. If the clock was set back by more, counting starts anew.
 */
const LEASE_SPREAD_MS = 1_000;

/** The leases of claims that are being written or whose response was lost. */
export class Leases {
  readonly #deps: LeaseDeps;
  /** Their ends, in milliseconds. */
  readonly #open = new Set<number>();
  /** The oldest first. */
  #lost: readonly LostClaim[] = [];
  #lastEndMs = 0;

  constructor(deps: LeaseDeps) {
    this.#deps = deps;
  }

  /**
   * A claim that starts now, for attempts of at most this length, or that of the server. No two claims of a node have the same
   * lease end, so node and lease identify a claim.
   */
  begin(timeoutMs = 0): Claimed {
    const { clock, attemptTimeoutMs, nodeId } = this.#deps;
    const now = clock.now();
    const endMs = now.getTime() + Math.max(attemptTimeoutMs, timeoutMs) + LEASE_GRACE_MS;
    const isTaken = endMs <= this.#lastEndMs && this.#lastEndMs - endMs < LEASE_SPREAD_MS;
    this.#lastEndMs = isTaken ? this.#lastEndMs + 1 : endMs;
    this.#open.add(this.#lastEndMs);
    return { now, leaseUntil: new Date(this.#lastEndMs), ...(nodeId !== undefined && { by: nodeId }) };
  }

  /** The store has answered: what it has claimed is known. */
  end({ leaseUntil }: Claimed): void {
    this.#open.delete(leaseUntil.getTime());
  }

  /** The response was lost; the store is asked about it later. */
  lose(claim: LostClaim): void {
    this.#lost = [...this.#lost, claim];
    const [oldest] = this.#lost;
    // Keep the newest: the leases of the others end first.
    if (oldest !== undefined && this.#lost.length > UNCONFIRMED_CLAIMS_MAX) this.#forget(oldest);
  }

  /** Whether a row with this lease may be of such a claim. */
  isOpen(leaseUntil: Date | null): boolean {
    return leaseUntil !== null && this.#open.has(leaseUntil.getTime());
  }

  /** Asks about each lost claim; the one whose question rejects is kept, with those after it. */
  async resolveLost(resolve: (lost: LostClaim) => Promise<void>): Promise<void> {
    for (const lost of this.#lost) {
      await resolve(lost);
      this.#forget(lost);
    }
  }

  #forget(lost: LostClaim): void {
    this.#lost = this.#lost.filter((other) => other !== lost);
    this.end(lost.at);
  }
}
