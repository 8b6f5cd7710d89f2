import type { Clock } from "../core/clock.ts";
import { NO_FILE_LOOK_MS } from "../core/limits.ts";
import type { Log } from "../observability/log.ts";
import { hasFreeFile } from "../outbound/connections.ts";

const NO_FREE_FILE =
  "Calls wait for a free file: raise the limit of open files (ulimit -n), or lower DISPATCH_CONCURRENCY.";

/** Whether calls find a free file. While they don't, nothing is claimed, since it could not be sent. */
export class OpenFiles {
  readonly #clock: Clock;
  readonly #log: Pick<Log, "warn">;
  readonly #onFree = new Set<() => void>();
  #areUsedUp = false;
  #isLogged = false;

  constructor(clock: Clock, log: Pick<Log, "warn">) {
    this.#clock = clock;
    this.#log = log;
  }

  get areUsedUp(): boolean {
    return this.#areUsedUp;
  }

  /** `run` is called whenever files are free again. */
  onFree(run: () => void): void {
    this.#onFree.add(run);
  }

  /** Call it when a call found no free file. Logged once in the life of a process, whose limit does not change. */
  lack(): void {
    if (!this.#isLogged) this.#log.warn("dispatch.no_files", { message: NO_FREE_FILE });
    this.#isLogged = true;
    if (this.#areUsedUp) return;
    this.#areUsedUp = true;
    this.#lookLater();
  }

  #lookLater(): void {
    this.#clock.after(NO_FILE_LOOK_MS, () => {
      if (!hasFreeFile()) return this.#lookLater();
      this.#areUsedUp = false;
      for (const run of this.#onFree) run();
    });
  }
}
