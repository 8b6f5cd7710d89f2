import { READY_FRESH_MS, READY_MS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import { StoreBusy } from "../ports/store.ts";

export interface ReadinessDeps {
  /** Rejects while the store can't be written. */
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
}

/**
 * Tells whether the store can be written, within `READY_MS_MAX`: false where it has not answered by then. Nobody needs a key
 * to ask, and a probe is a durable write: so however many ask, there is one at a time, and one a second.
 */
export function createReadiness({ probe, clock }: ReadinessDeps): () => Promise<boolean> {
  let known: { readonly isReady: boolean; readonly atMs: number } | null = null;
  let asking: Promise<boolean> | null = null;

  const ask = async (): Promise<boolean> => {
    // A store that has too much to write can be written.
    const isReady = await probe().then(
      () => true,
      (error: unknown) => error instanceof StoreBusy,
    );
    known = { isReady, atMs: clock.monotonicMs() };
    asking = null;
    return isReady;
  };

  return async () => {
    if (known !== null && clock.monotonicMs() - known.atMs < READY_FRESH_MS) return known.isReady;
    const late = Promise.withResolvers<false>();
    const cancel = clock.after(READY_MS_MAX, () => late.resolve(false));
    const isReady = await Promise.race([(asking ??= ask()), late.promise]);
    cancel();
    return isReady;
  };
}
