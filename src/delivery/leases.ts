import type { Clock } from "../core/clock.ts";
import { LEASE_GRACE_MS, UNCONFIRMED_CLAIMS_MAX } from "../core/limits.ts";
import type { Lease } from "../core/settle.ts";

/** A claim whose response was lost: the store may have rows of these accounts as active under it. */
interface LostClaim {
  readonly accountIds: readonly string[];
  readonly lease: Lease;
}

/** How much later than requested a lease may end in order to be unique. If the clock was set back by more, begin anew. */
const LEASE_SPREAD_MS = 1_000;

/** The leases of claims that are being written or whose response was lost. */
export class Leases {
  readonly #clock: Clock;
  readonly #attemptTimeoutMs: number;
  readonly #nodeId: string | undefined;
  /** When these leases end, in milliseconds. */
  readonly #open = new Set<number>();
  /** The oldest first. */
  #lost: readonly LostClaim[] = [];
  #lastEndMs = 0;

  /** `nodeId`: the node that claims; undefined: there is only one process. */
  constructor(clock: Clock, attemptTimeoutMs: number, nodeId: string | undefined) {
    this.#clock = clock;
    this.#attemptTimeoutMs = attemptTimeoutMs;
    this.#nodeId = nodeId;
  }

  /**
   * Begins a claim now, for attempts that take up to `timeoutMs` or the server's timeout, whichever is longer. No two claims
   * of a node have the same lease end, so node and lease end identify a claim.
   */
  begin(timeoutMs = 0): Lease {
    const now = this.#clock.now();
    const by = this.#nodeId;
    const endMs = now.getTime() + Math.max(this.#attemptTimeoutMs, timeoutMs) + LEASE_GRACE_MS;
    const isTaken = endMs <= this.#lastEndMs && this.#lastEndMs - endMs < LEASE_SPREAD_MS;
    this.#lastEndMs = isTaken ? this.#lastEndMs + 1 : endMs;
    this.#open.add(this.#lastEndMs);
    return { now, leaseUntil: new Date(this.#lastEndMs), ...(by !== undefined && { by }) };
  }

  /** Call it when the store has answered: what it has claimed is known. */
  end({ leaseUntil }: Lease): void {
    this.#open.delete(leaseUntil.getTime());
  }

  /** Call it when the response was lost: `resolveLost` asks the store about it later. */
  lose(claim: LostClaim): void {
    this.#lost = [...this.#lost, claim];
    const [oldest] = this.#lost;
    // Forget the oldest, whose lease ends first.
    if (oldest !== undefined && this.#lost.length > UNCONFIRMED_CLAIMS_MAX) this.#forget(oldest);
  }

  /** Whether a row with this lease may belong to a claim that is being written or was lost. */
  isOpen(leaseUntil: Date | null): boolean {
    return leaseUntil !== null && this.#open.has(leaseUntil.getTime());
  }

  /** Calls `resolve` for each lost claim. If it rejects, that claim and those after it are kept. */
  async resolveLost(resolve: (lost: LostClaim) => Promise<void>): Promise<void> {
    for (const lost of this.#lost) {
      await resolve(lost);
      this.#forget(lost);
    }
  }

  #forget(lost: LostClaim): void {
    this.#lost = this.#lost.filter((other) => other !== lost);
    this.end(lost.lease);
  }
}
