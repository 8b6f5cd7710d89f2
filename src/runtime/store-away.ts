import { STORE_RETRY_MS } from "../core/limits.ts";
import type { Log } from "../observability/log.ts";
import { StoreBusy, StoreUnavailable } from "../core/store.ts";
import type { Clock } from "../core/clock.ts";

interface WaitDeps {
  readonly clock: Pick<Clock, "after">;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
  /** Called each time that the step finds the store unavailable. */
  readonly onAway: (error: StoreUnavailable) => void;
}

/**
 * Runs a step of the start, and again every `STORE_RETRY_MS` while it finds the store unavailable. Null: the service was
 * stopped meanwhile. Rejects with any other error.
 */
export async function repeatWhileAway<T>(step: () => Promise<T>, deps: WaitDeps): Promise<T | null> {
  while (!deps.stopping.aborted) {
    try {
      return await step();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      deps.onAway(error);
    }
    await rest(deps);
  }
  return null;
}

/** Logs why the start waits, and for which database: once, and again if the reason changes, however often it tries. */
export function createWaitingLog(log: Pick<Log, "warn">, database: string): (reason: string) => void {
  let last: string | null = null;
  return (reason) => {
    if (reason !== last) log.warn("service.waiting", { reason, database });
    last = reason;
  };
}

async function rest({ clock, stopping }: Omit<WaitDeps, "onAway">): Promise<void> {
  if (stopping.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  const cancel = clock.after(STORE_RETRY_MS, end);
  stopping.addEventListener("abort", end, { once: true });
  await promise;
  cancel();
  stopping.removeEventListener("abort", end);
}

interface OutageDeps {
  readonly clock: Pick<Clock, "after" | "monotonicMs">;
  readonly log: Pick<Log, "error" | "info">;
  /** Where it is, without user and password. */
  readonly database: string;
}

/**
 * Logs an outage of the store once, and again if the reason becomes another one, however many calls find it unavailable, and once that
 * it is over because the store can be written again. So code that finds the store unavailable need not log it.
 */
export class Outage {
  readonly #deps: OutageDeps;
  #probe: (() => Promise<void>) | null = null;
  #sinceMs: number | null = null;
  /** The reasons that were logged of this outage. */
  readonly #reasons = new Set<string>();
  /** Whether a call has failed since the last look. On a full disk, a small write may succeed where others don't. */
  #failsStill = false;
  #cancel: () => void = () => {};

  constructor(deps: OutageDeps) {
    this.#deps = deps;
  }

  /** Logs outages from now on. `probe` resolves when the store can be written. */
  watch(probe: () => Promise<void>): void {
    this.#probe = probe;
  }

  /** Call it each time that a call finds the store unavailable. */
  begin({ reason }: StoreUnavailable): void {
    this.#failsStill = true;
    if (this.#probe === null || this.#sinceMs !== null) return;
    this.#failsStill = false;
    this.#sinceMs = this.#deps.clock.monotonicMs();
    this.#reasons.clear();
    this.#tell(reason);
    this.#askLater();
  }

  /** Call it before the store is closed. */
  stop(): void {
    this.#probe = null;
    this.#cancel();
  }

  #tell(reason: string): void {
    const { log, database } = this.#deps;
    if (!this.#reasons.has(reason)) log.error("store.away", { reason, database });
    this.#reasons.add(reason);
  }

  #askLater(): void {
    this.#cancel = this.#deps.clock.after(STORE_RETRY_MS, () => void this.#ask());
  }

  async #ask(): Promise<void> {
    const probe = this.#probe;
    if (probe === null) return;
    const error: unknown = await probe().then(
      () => null,
      (reason: unknown) => reason,
    );
    if (this.#probe === null || this.#sinceMs === null) return;
    // A full queue of writes is no outage.
    const isAway = error !== null && !(error instanceof StoreBusy);
    if (isAway && error instanceof StoreUnavailable) this.#tell(error.reason);
    if (isAway || this.#failsStill) {
      this.#failsStill = false;
      return this.#askLater();
    }
    const { clock, log } = this.#deps;
    const awayMs = Math.round(clock.monotonicMs() - this.#sinceMs);
    this.#sinceMs = null;
    log.info("store.back", { away_ms: awayMs });
  }
}
