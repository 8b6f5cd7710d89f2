import type { HostLimits } from "../core/host-settings.ts";
import type { Clock } from "../core/clock.ts";
import { BEGIN_WAIT_MS_MAX, OWED_TURN_MS, RATE_EARLY_MS, RATE_SECOND_MS } from "../core/limits.ts";
import type { LaneName } from "../core/store.ts";
import type { NodeShare } from "../runtime/membership.ts";
import { accountHostName } from "./lane.ts";
import { forgetIdle } from "./token-bucket.ts";

/** An account and a host. */
type Called = Pick<LaneName, "accountId" | "host">;

/** The loops whose calls share the rate of a host. */
type RatedLoop = "actions" | "callbacks";

interface RateNeeds {
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
  readonly findLimits: (called: Called) => HostLimits;
  readonly share: Pick<NodeShare, "slotsFor" | "rateFor">;
  /** Slots of a host, all nodes together. */
  readonly perHost: number;
}

/**
 * Keeps the rates that accounts set for hosts, where it counts: when a request leaves. Lanes claim at the rate too, but a commit,
 * a name or a connection may take longer for one call than for the next, which brings calls closer together.
 */
export class CallRates {
  readonly #needs: RateNeeds;
  readonly #hosts = new Map<string, CallGate>();

  constructor(needs: RateNeeds) {
    this.#needs = needs;
  }

  /**
   * The turn of one call: whether it may leave, resolved when its turn has come. False: that is later than calls wait here. The call
   * asks again for its next address if it could not connect. Then it has not left, and keeps its turn: otherwise, a slow rate
   * would never let it reach a second address.
   */
  turnFor(called: Called, by: RatedLoop): () => Promise<boolean> {
    let leftMs: number | null = null;
    return async () => {
      const gate = this.#findGate(called);
      if (gate === null) return true;
      const mayBegin = (leftMs !== null && gate.leaveAgain(leftMs)) || (await gate.begin(by));
      leftMs = mayBegin ? gate.lastMs : null;
      return mayBegin;
    };
  }

  /** How long a call that is claimed now would wait for its turn. */
  readonly waitMs = (called: Called, by: RatedLoop = "actions"): number => this.#findGate(called)?.waitMs(by) ?? 0;

  /** Call it when an account has changed its limits, or (null) a node has come or gone. What waits keeps to the new ones. */
  changed(accountId: string | null): void {
    for (const gate of this.#hosts.values()) {
      if (accountId === null || gate.called.accountId === accountId) gate.setPace(this.#currentPace(gate.called));
    }
  }

  #findGate(called: Called): Pick<CallGate, "begin" | "lastMs" | "leaveAgain" | "waitMs"> | null {
    const pace = this.#currentPace(called);
    if (pace.perSecond === null) return null;
    if (pace.perSecond === 0) return CLOSED;
    const name = accountHostName(called);
    const known = this.#hosts.get(name);
    known?.setPace(pace);
    if (known !== undefined) return known;
    forgetIdle(this.#hosts, (gate) => gate.isIdle);
    const gate = new CallGate(this.#needs.clock, called, pace);
    this.#hosts.set(name, gate);
    return gate;
  }

  #currentPace(called: Called): Pace {
    const { findLimits, share, perHost } = this.#needs;
    const { maxPerSecond, maxConcurrent } = findLimits(called);
    const slots = Math.min(perHost, maxConcurrent ?? perHost);
    if (maxPerSecond === null) return { perSecond: null, slots };
    const name = accountHostName(called);
    // A node has joined since the call was claimed, and others call the host now.
    if (share.slotsFor(name, slots, maxPerSecond) === 0) return { perSecond: 0, slots };
    return { perSecond: share.rateFor(name, maxPerSecond, slots), slots };
  }
}

/** Lets no call leave. */
const CLOSED = {
  begin: () => false,
  lastMs: Number.NEGATIVE_INFINITY,
  leaveAgain: () => false,
  waitMs: () => Number.POSITIVE_INFINITY,
};

/** How fast calls may leave for a host. */
interface Pace {
  /** Null: it has no rate. 0: no call may leave. */
  readonly perSecond: number | null;
  readonly slots: number;
}

interface WaitingCall {
  readonly by: RatedLoop;
  /** Until when it waits. */
  readonly lateMs: number;
  readonly resolve: (mayBegin: boolean) => void;
}

/**
 * Lets the calls to a host leave one after another, at equal distances, in the order in which they ask. If a call of one loop is
 * given back because the other's is before it, the next turn is its loop's: otherwise, a long queue of actions would let no callback
 * leave.
 */
export class CallGate {
  readonly called: Called;
  readonly #clock: RateNeeds["clock"];
  #pace: Pace;
  /** When the last call would have left on time. */
  #lastMs = Number.NEGATIVE_INFINITY;
  #lastBy: RatedLoop = "actions";
  /** Whose turn is next, and until when the other loop waits for it. */
  #owed: { readonly to: RatedLoop; readonly untilMs: number } | null = null;
  readonly #waiting: WaitingCall[] = [];
  #cancelWake: () => void = () => {};

  constructor(clock: RateNeeds["clock"], called: Called, pace: Pace) {
    this.#clock = clock;
    this.called = called;
    this.#pace = pace;
  }

  get #spacingMs(): number {
    return this.#pace.perSecond === null ? 0 : RATE_SECOND_MS / this.#pace.perSecond;
  }

  get lastMs(): number {
    return this.#lastMs;
  }

  /** Lets the call that left at this time, but could not connect, leave now instead. False: another one has left since. */
  leaveAgain(leftMs: number): boolean {
    if (this.#lastMs !== leftMs) return false;
    this.#lastMs = Math.max(this.#clock.monotonicMs(), leftMs);
    this.#giveBack();
    return true;
  }

  /** When the next call may leave, if all are on time. */
  get #nextMs(): number {
    return this.#lastMs + this.#spacingMs;
  }

  /** Whether a new gate would do the same. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#nextMs <= this.#clock.monotonicMs();
  }

  /** Changes the pace: the last call still counts. Calls that would wait too long now, or have no slot any more, are given back. */
  setPace(pace: Pace): void {
    const { perSecond, slots } = this.#pace;
    if (pace.perSecond === perSecond && pace.slots === slots) return;
    this.#owed = null;
    const isClosed = pace.perSecond === 0 || pace.slots < slots;
    // While no call may leave, the last pace says how long the last call counts.
    if (pace.perSecond !== 0) this.#pace = pace;
    this.#giveBack(isClosed);
  }

  /** Gives back calls that would wait too long now, or all. */
  #giveBack(all = false): void {
    const nowMs = this.#clock.monotonicMs();
    for (const call of this.#waiting.splice(0)) {
      if (all || nowMs + this.#waitMs(this.#waiting.length) > call.lateMs) call.resolve(false);
      else this.#waiting.push(call);
    }
    this.#wakeLater();
  }

  /** How long one more call would wait. */
  waitMs(by: RatedLoop = "actions"): number {
    const waitMs = this.#waitMs(this.#waiting.length);
    if (this.#owed === null || this.#owed.to === by) return waitMs;
    return Math.max(waitMs, this.#owed.untilMs - this.#clock.monotonicMs());
  }

  /** How long a call waits that so many are before. */
  #waitMs(others: number): number {
    return Math.max(0, this.#nextMs + others * this.#spacingMs - RATE_EARLY_MS - this.#clock.monotonicMs());
  }

  /** See `CallRates.turnFor`. */
  begin(by: RatedLoop = "actions"): boolean | Promise<boolean> {
    const waitMs = this.waitMs(by);
    if (waitMs > BEGIN_WAIT_MS_MAX) {
      this.#owe(by, waitMs);
      return false;
    }
    if (waitMs === 0 && this.#waiting.length === 0) {
      this.#leave(by);
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const lateMs = this.#clock.monotonicMs() + BEGIN_WAIT_MS_MAX;
    if (this.#waiting.push({ by, lateMs, resolve }) === 1) this.#wakeLater();
    return promise;
  }

  #owe(to: RatedLoop, waitMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    const before = this.#waiting.at(-1)?.by ?? this.#lastBy;
    if (before === to) return;
    this.#owed = { to, untilMs: nowMs + waitMs + Math.min(this.#spacingMs, OWED_TURN_MS) };
  }

  #wakeLater(): void {
    this.#cancelWake();
    if (this.#waiting.length === 0) return;
    this.#cancelWake = this.#clock.after(Math.max(1, Math.ceil(this.#waitMs(0))), () => {
      while (this.#waiting.length > 0 && this.#waitMs(0) === 0) {
        const first = this.#waiting.shift();
        if (first === undefined) break;
        this.#leave(first.by);
        first.resolve(true);
      }
      this.#wakeLater();
    });
  }

  /** Counted when a call leaves and not when it was due, so that no stall of the process brings the next ones closer. */
  #leave(by: RatedLoop): void {
    this.#lastBy = by;
    this.#lastMs = Math.max(this.#clock.monotonicMs(), this.#nextMs);
  }
}
