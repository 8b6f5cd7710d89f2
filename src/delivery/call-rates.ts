import type { HostLimits } from "../core/host-settings.ts";
import type { Clock } from "../core/clock.ts";
import { BEGIN_WAIT_MS_MAX, RATE_EARLY_MS, RATE_SECOND_MS } from "../core/limits.ts";
import type { LaneName } from "../core/store.ts";
import type { NodeShare } from "../runtime/membership.ts";
import { hostNameOf } from "./lane.ts";

/** An account and a host. */
type Called = Pick<LaneName, "accountId" | "host">;

interface RateNeeds {
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
  readonly limitsOf: (called: Called) => HostLimits;
  readonly share: Pick<NodeShare, "slotsOf" | "rateOf">;
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

  /** Whether a call may leave; resolves when its turn has come. False: that is later than calls wait here. */
  readonly mayBegin = (called: Called): boolean | Promise<boolean> => {
    const gate = this.#gateOf(called);
    return gate === null || gate.begin();
  };

  /** How long a call that is claimed now would wait in `mayBegin`. */
  readonly waitMs = (called: Called): number => this.#gateOf(called)?.waitMs() ?? 0;

  #gateOf(called: Called): Pick<CallGate, "begin" | "waitMs"> | null {
    const { clock, limitsOf, share, perHost } = this.#needs;
    const { maxPerSecond, maxConcurrent } = limitsOf(called);
    if (maxPerSecond === null) return null;
    const name = hostNameOf(called);
    const slots = Math.min(perHost, maxConcurrent ?? perHost);
    // A node has joined since the call was claimed, and others call the host now.
    if (share.slotsOf(name, slots, maxPerSecond) === 0) return CLOSED;
    const rate = share.rateOf(name, maxPerSecond, slots);
    const known = this.#hosts.get(name);
    if (known?.perSecond === rate) return known;
    for (const [other, gate] of this.#hosts) if (gate.isIdle) this.#hosts.delete(other);
    const gate = new CallGate(clock, rate, known);
    this.#hosts.set(name, gate);
    return gate;
  }
}

/** Lets no call leave. */
const CLOSED = { begin: () => false, waitMs: () => Number.POSITIVE_INFINITY };

/** Lets the calls to a host leave one after another, at equal distances, in the order in which they ask. */
export class CallGate {
  readonly perSecond: number;
  readonly #clock: RateNeeds["clock"];
  readonly #spacingMs: number;
  /** When the next call may leave, if all were on time. */
  #nextMs: number;
  readonly #waiting: ((mayBegin: true) => void)[] = [];

  /** `before`: the gate at another rate, whose last call still counts. */
  constructor(clock: RateNeeds["clock"], perSecond: number, before?: CallGate) {
    this.#clock = clock;
    this.perSecond = perSecond;
    this.#spacingMs = RATE_SECOND_MS / perSecond;
    this.#nextMs = before === undefined ? clock.monotonicMs() : before.#lastMs + this.#spacingMs;
  }

  /** When the last call would have left on time. */
  get #lastMs(): number {
    return this.#nextMs - this.#spacingMs;
  }

  /** Whether a new gate would do the same. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#nextMs <= this.#clock.monotonicMs();
  }

  /** How long one more call would wait. */
  waitMs(): number {
    const atMs = this.#nextMs + this.#waiting.length * this.#spacingMs - RATE_EARLY_MS;
    return Math.max(0, atMs - this.#clock.monotonicMs());
  }

  /** See `CallRates.mayBegin`. */
  begin(): boolean | Promise<true> {
    const waitMs = this.waitMs();
    if (waitMs > BEGIN_WAIT_MS_MAX) return false;
    if (waitMs === 0 && this.#waiting.length === 0) {
      this.#leave();
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<true>();
    if (this.#waiting.push(resolve) === 1) this.#wakeLater();
    return promise;
  }

  #wakeLater(): void {
    const waitMs = this.#nextMs - RATE_EARLY_MS - this.#clock.monotonicMs();
    this.#clock.after(Math.max(1, Math.ceil(waitMs)), () => {
      while (this.#waiting.length > 0 && this.#nextMs - RATE_EARLY_MS <= this.#clock.monotonicMs()) {
        this.#leave();
        this.#waiting.shift()?.(true);
      }
      if (this.#waiting.length > 0) this.#wakeLater();
    });
  }

  /** Counted when a call leaves and not when it was due, so that no stall of the process brings the next ones closer. */
  #leave(): void {
    this.#nextMs = Math.max(this.#clock.monotonicMs(), this.#nextMs) + this.#spacingMs;
  }
}
