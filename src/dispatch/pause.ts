import type { Log } from "../ports/log.ts";
import { type Store, StoreUnavailable } from "../ports/store.ts";

export interface PauseDeps {
  /** What rests, in the log. */
  readonly name: string;
  readonly store: Pick<Store, "probe">;
  readonly log: Log;
  /** Rings once, unless nobody wants it any more. */
  readonly later: (delayMs: number, ring: () => void) => void;
  /** Has whoever drains wait for this too. */
  readonly keep: (work: Promise<unknown>) => void;
  /** Goes on where it stopped. */
  readonly resume: () => Promise<void>;
}

const PROBE_EVERY_MS = 1_000;

/** What can't be recorded is not sent: while the store can't be written nothing is claimed, and once a second it is asked. */
export class Pause {
  readonly #deps: PauseDeps;
  #isOn = false;

  constructor(deps: PauseDeps) {
    this.#deps = deps;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Takes what went wrong: begins to rest where the store is away, and else writes a bug down. */
  stumble(error: unknown): void {
    const { log, name } = this.#deps;
    if (!(error instanceof StoreUnavailable)) {
      log.error("dispatch.failed", { of: name, error: error instanceof Error ? error.name : "unknown" });
      return;
    }
    if (this.#isOn) return;
    this.#isOn = true;
    log.error("dispatch.paused", { of: name, reason: "the store cannot be used" });
    this.#probeLater();
  }

  #probeLater(): void {
    const { later, store, log, name, keep, resume } = this.#deps;
    later(PROBE_EVERY_MS, () => {
      const probe = store.probe().then(
        () => {
          this.#isOn = false;
          log.info("dispatch.resumed", { of: name });
          return resume();
        },
        () => this.#probeLater(),
      );
      keep(probe);
    });
  }
}
