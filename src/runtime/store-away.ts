import { STORE_RETRY_MS } from "../core/limits.ts";
import type { Log } from "../observability/log.ts";
import { StoreBusy, StoreUnavailable } from "../core/store.ts";
import type { Clock } from "../core/clock.ts";

/**
 * Runs a step of the start, and again every `STORE_RETRY_MS` while it finds the store unavailable, which `onAway` hears each time.
 * Null: the service was stopped meanwhile, which aborts `stopping`. Rejects with any other error.
 */
export async function repeatWhileAway<T>(
  step: () => Promise<T>,
  { clock, stopping }: { readonly clock: Pick<Clock, "after">; readonly stopping: AbortSignal },
  onAway: (error: StoreUnavailable) => void,
): Promise<T | null> {
  while (!stopping.aborted) {
    try {
      return await step();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      onAway(error);
    }
    await rest(clock, stopping);
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

async function rest(clock: Pick<Clock, "after">, stopping: AbortSignal): Promise<void> {
  if (stopping.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  const cancel = clock.after(STORE_RETRY_MS, end);
  stopping.addEventListener("abort", end, { once: true });
  await promise;
  cancel();
  stopping.removeEventListener("abort", end);
}

/**
 * Logs an outage of the store once, and again if the reason becomes another one, however many calls find it unavailable, and once that
 * it is over because the store can be written again. So code that finds the store unavailable need not log it.
 */
export class Outage {
  readonly #clock: Pick<Clock, "after" | "monotonicMs">;
  readonly #log: Pick<Log, "error" | "info">;
  readonly #database: string;
  #probe: (() => Promise<void>) | null = null;
  #sinceMs: number | null = null;
  /** The reasons that were logged of this outage. */
  readonly #reasons = new Set<string>();
  /** Whether a call has failed since the last look. On a full disk, a small write may succeed where others don't. */
  #failsStill = false;
  #cancel: () => void = () => {};

  /** `database`: where it is, without user and password. */
  constructor(clock: Pick<Clock, "after" | "monotonicMs">, log: Pick<Log, "error" | "info">, database: string) {
    this.#clock = clock;
    this.#log = log;
    this.#database = database;
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
    this.#sinceMs = this.#clock.monotonicMs();
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
    if (!this.#reasons.has(reason)) this.#log.error("store.away", { reason, database: this.#database });
    this.#reasons.add(reason);
  }

  #askLater(): void {
    this.#cancel = this.#clock.after(STORE_RETRY_MS, () => void this.#ask());
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
    const awayMs = Math.round(this.#clock.monotonicMs() - this.#sinceMs);
    this.#sinceMs = null;
    this.#log.info("store.back", { away_ms: awayMs });
  }
}
