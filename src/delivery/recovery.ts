import type { RecoveryLease } from "../runtime/job-leases.ts";
import type { Claimed } from "../core/settle.ts";
import { LEASE_GRACE_MS, RECOVERY_ROWS_MAX, UNCONFIRMED_CLAIMS_MAX } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { errorName, type Log } from "../observability/log.ts";
import { type Queue, StoreUnavailable } from "../core/store.ts";

/** How rows end that no attempt of this process works on. */
export interface RowEnds<Row> {
  /** For a row that a dead process left active. False: another process has ended it already. */
  readonly recover: (row: Row) => Promise<boolean>;
  /** Returns a claim that was committed although its response was lost, or that found no free slot. */
  readonly unclaim: (row: Row, why: "in_doubt" | "busy") => Promise<void>;
  /** Called with the number of rows recovered, when there were any. */
  readonly onRescued: (count: number) => void;
}

/** What a rescue needs of the loop whose rows it ends. */
interface Rescue<Row> {
  /** What the rows are, for the log. */
  readonly name: string;
  readonly log: Pick<Log, "error">;
  readonly queue: Pick<Queue<Row>, "orphans">;
  readonly clock: Clock;
  readonly ends: Pick<RowEnds<Row>, "recover" | "onRescued">;
  /** Whether this process works on the row: a clock that jumped ahead must not end its lease. */
  readonly isOurs: (row: Row) => boolean;
  /** Null: no other process has rows in this store. */
  readonly lease: RecoveryLease | null;
}

/**
 * Ends what dead processes left active as interrupted attempts, so that retries follow the usual rules. `everything`: all active
 * rows, whatever their lease: at the start of the only process of a store. A row that can't be ended is logged, blocks no other, and
 * is tried again in the next pass. Rejects when the store is away. Does nothing while another node does it.
 */
export async function rescue<Row extends { readonly id: string }>(of: Rescue<Row>, everything: boolean): Promise<void> {
  const { queue, clock, ends, isOurs, lease } = of;
  let rescued = 0;
  // Taken when there is something to end, which is rare, renewed for each page, and released at the end.
  let isTaken = false;
  try {
    for (let after: Row | null = null; ;) {
      // Paged, so that rows of our own and rows that can't be written don't hide those behind them.
      const found: readonly Row[] = await queue.orphans(everything ? null : clock.now(), RECOVERY_ROWS_MAX, after);
      const last = found.at(-1) ?? null;
      // The cursor can't pass a row whose place in the order was altered. Such rows come last.
      if (last === null || last.id === after?.id) break;
      after = last;
      const orphans = found.filter((row) => !isOurs(row));
      if (orphans.length > 0 && lease !== null && !(isTaken = await lease.take())) break;
      const results = await Promise.allSettled(orphans.map((row) => recover(of, row)));
      rescued += results.filter((result) => result.status === "fulfilled" && result.value).length;
      const failed = results.find((result) => result.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    }
  } finally {
    // If it can't be released it ends by itself.
    if (isTaken) await lease?.release().catch(() => {});
    if (rescued > 0) ends.onRescued(rescued);
  }
}

async function recover<Row extends { readonly id: string }>(
  { name, log, ends }: Rescue<Row>,
  row: Row,
): Promise<boolean> {
  try {
    return await ends.recover(row);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    log.error("rescue.failed", { of: name, id: row.id, error: errorName(error) });
    return false;
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
  readonly nodeId: string | undefined;
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
