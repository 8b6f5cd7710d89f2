import type { Clock } from "../core/clock.ts";
import { CREATE_WAIT_MS, CREATES_WAITING_MAX, LEASE_GRACE_MS, UNCONFIRMED_CLAIMS_MAX } from "../core/limits.ts";
import type { Lease } from "../core/settle.ts";
import type { LaneName } from "../core/store.ts";
import { NEVER } from "./alarms.ts";
import type { WorkInFlight } from "./in-flight.ts";
import { type Lane, laneName } from "./lane.ts";
import type { Lanes } from "./lanes.ts";

/** A slot for a row that is about to be stored: the commit that creates it claims it too. */
export interface Reservation<Row> {
  readonly claim: Lease;
  /** Call it when the row is stored and claimed: sends it. */
  commit(claimed: Row): void;
  /** Call it when nothing was claimed: releases the slot. */
  release(): void;
  /** Call it when the store's answer was lost: releases the slot, and asks the store later whether the row is claimed. */
  fail(): void;
}

/** A row that is about to be stored. */
type NewRow = LaneName & { readonly id: string };

/** A create that waits for a slot. */
interface WaitingCreate<Row> {
  readonly row: NewRow;
  readonly timeoutMs: number;
  /** It waits until then, by the monotonic clock. */
  readonly untilMs: number;
  readonly resolve: (reservation: Reservation<Row> | null) => void;
}

/** What reservations need of their loop. */
interface Loop<Row> {
  readonly clock: Clock;
  readonly lanes: Lanes;
  readonly leases: Leases;
  readonly work: WorkInFlight;
  /** Makes the attempt of a stored row in the slot of its lane. */
  readonly attempt: (row: Row, lane: Lane) => Promise<void>;
  /** Called when a slot was given back. */
  readonly onFree: () => void;
}

/** After so many lanes without a slot, waiting creates are left for later: each check looks at all lanes of a host. */
const LANES_REFUSED_MAX = 8;

/** Slots for rows that are not stored yet: one commit that stores and claims a row costs much less than two commits. */
export class Reservations<Row> {
  readonly #loop: Loop<Row>;
  /** Rows that are being created with a slot. */
  readonly #reserved = new Set<string>();
  /** Creates that wait for a slot, by lane, oldest first. The first lane has the next turn. */
  readonly #waiting = new Map<string, WaitingCreate<Row>[]>();
  #waitingCount = 0;
  #cancelCheck: () => void = () => {};

  constructor(loop: Loop<Row>) {
    this.#loop = loop;
  }

  /** Whether a row is being created with a slot, so that it must not be queued or rescued as well. */
  has(id: string): boolean {
    return this.#reserved.has(id);
  }

  /**
   * Takes a slot. Null if other rows of its lane come first. If no slot is free, the create waits briefly, as long as recent
   * creates got one that fast.
   */
  reserve(row: NewRow, timeoutMs: number): Reservation<Row> | null | Promise<Reservation<Row> | null> {
    const name = laneName(row);
    const queue = this.#waiting.get(name) ?? [];
    // Creates that already wait in this lane come first.
    const reservation = queue.length === 0 ? this.#take(row, timeoutMs) : null;
    if (reservation !== null || this.#waitingCount >= CREATES_WAITING_MAX) return reservation;
    const { clock, lanes } = this.#loop;
    const waitMs = lanes.waitMs(row);
    if (waitMs === 0) return null;
    const { promise, resolve } = Promise.withResolvers<Reservation<Row> | null>();
    queue.push({ row, timeoutMs, untilMs: clock.monotonicMs() + waitMs, resolve });
    this.#waiting.set(name, queue);
    this.#waitingCount += 1;
    if (this.#waitingCount === 1) this.#checkLater();
    return promise;
  }

  /** Gives free slots to waiting creates, one per lane in turn, until too many lanes in a row get none. */
  admit(): void {
    for (let refused = 0; refused < Math.min(this.#waiting.size, LANES_REFUSED_MAX);) {
      const [[name, queue] = []] = this.#waiting;
      const [first] = queue ?? [];
      if (name === undefined || queue === undefined || first === undefined) return;
      this.#waiting.delete(name);
      this.#waiting.set(name, queue);
      const reservation = this.#take(first.row, first.timeoutMs);
      refused = reservation === null ? refused + 1 : 0;
      if (reservation !== null) this.#endWait(name, queue, reservation);
    }
  }

  /** Lets all waiting creates go on without a slot. */
  stop(): void {
    this.#endWaits(NEVER);
  }

  #checkLater(): void {
    const { clock } = this.#loop;
    this.#cancelCheck = clock.after(CREATE_WAIT_MS, () => {
      this.#endWaits(clock.monotonicMs());
      if (this.#waitingCount > 0) this.#checkLater();
    });
  }

  /** Lets creates that have waited long enough go on without a slot. */
  #endWaits(nowMs: number): void {
    for (const [name, queue] of this.#waiting) {
      while (queue[0] !== undefined && queue[0].untilMs <= nowMs) this.#endWait(name, queue, null);
    }
  }

  #endWait(name: string, queue: WaitingCreate<Row>[], reservation: Reservation<Row> | null): void {
    queue.shift()?.resolve(reservation);
    if (queue.length === 0) this.#waiting.delete(name);
    this.#waitingCount -= 1;
    if (this.#waitingCount === 0) this.#cancelCheck();
  }

  #take(row: NewRow, timeoutMs: number): Reservation<Row> | null {
    const { clock, lanes, leases, work, attempt, onFree } = this.#loop;
    const lane = lanes.reserve(row);
    if (lane === null) return null;
    const claim = leases.begin(timeoutMs);
    const reservedMs = clock.monotonicMs();
    // A stop must wait for the create and for the attempt that follows it.
    const { promise, resolve } = Promise.withResolvers<void>();
    work.keep(promise);
    this.#reserved.add(row.id);
    const end = () => {
      this.#reserved.delete(row.id);
      resolve();
    };
    const giveBack = () => {
      lanes.unreserve(lane);
      onFree();
      end();
    };
    return {
      claim,
      commit: (claimed) => {
        lanes.began(lane, reservedMs);
        work.keep(attempt(claimed, lane));
        leases.end(claim);
        end();
      },
      release: () => {
        leases.end(claim);
        giveBack();
      },
      fail: () => {
        leases.lose({ accountIds: [row.accountId], lease: claim });
        giveBack();
      },
    };
  }
}

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
