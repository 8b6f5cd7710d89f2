import type { Log } from "../ports/log.ts";
import type { Store } from "../ports/store.ts";

export interface PauseDeps {
  /** What rests, in the log. */
  readonly name: string;
  readonly store: Pick<Store, "probe">;
  readonly log: Log;
  /** Rings once, unless nobody wants it any more. */
  readonly later: (delayMs: number, run: () => void) => void;
  /** Has whoever drains wait for this too. */
  readonly keep: (work: Promise<unknown>) => void;
  /** Goes on where it stopped. Where that rejects it rests on. */
  readonly resume: () => Promise<void>;
  /** Hears of what went wrong in `resume`. */
  readonly onError: (error: unknown) => void;
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

  /** Begins to rest; `reason` is for the log. */
  begin(reason: string): void {
    if (this.#isOn) return;
    this.#isOn = true;
    const { log, name } = this.#deps;
    this.#probeLater();
    log.error("dispatch.paused", { of: name, reason });
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
      log.info("dispatch.resumed", { of: name });
      await resume();
    } catch (error) {
      onError(error);
      this.begin("it could not go on");
    }
  }
}
