import type { ActionService } from "../src/actions/desk.ts";
import type { Action } from "../src/domain/action.ts";
import { PROGRESS_EVERY_MS, SILENT_WAIT_SECONDS_MAX } from "../src/domain/limits.ts";
import type { Bus } from "../src/ports/bus.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Progress, ToolCall } from "./call.ts";

export interface WaitDeps {
  readonly actionService: Pick<ActionService, "wait">;
  readonly bus: Pick<Bus, "watch">;
  readonly clock: Clock;
}

/**
 * The action when it has ended, or as it is when the wait is over. A client that asked for progress hears of every change
 * and every few seconds, so that it does not take the call for dead; one that did not is answered sooner.
 */
export async function waitForEnd(deps: WaitDeps, call: ToolCall, id: string, seconds: number): Promise<Action> {
  const { actionService, bus, clock } = deps;
  const { tell, stop } = call;
  if (tell === null) {
    const waitMs = Math.min(seconds, SILENT_WAIT_SECONDS_MAX) * 1_000;
    return actionService.wait(call.caller(), id, { waitMs, stop });
  }
  const beat = new Beat(clock, tell, seconds);
  const unwatch = bus.watch(id, (action) => beat.news(action));
  beat.start();
  try {
    return await actionService.wait(call.caller(), id, { waitMs: seconds * 1_000, stop });
  } finally {
    unwatch();
    beat.stop();
  }
}

/** Tells how long a wait has lasted; its number always grows, as the protocol wants it. */
class Beat {
  readonly #clock: Clock;
  readonly #tell: (progress: Progress) => void;
  readonly #total: number;
  readonly #startedMs: number;
  #told = -1;
  #cancelTimer = () => {};

  constructor(clock: Clock, tell: (progress: Progress) => void, total: number) {
    this.#clock = clock;
    this.#tell = tell;
    this.#total = total;
    this.#startedMs = clock.monotonicMs();
  }

  start(): void {
    this.#say("waiting");
    this.#cancelTimer = this.#clock.after(PROGRESS_EVERY_MS, () => this.start());
  }

  news({ status, attempts, retries }: Action): void {
    this.#say(attempts === 0 ? status : `${status}, attempt ${attempts} of ${retries}`);
  }

  stop(): void {
    this.#cancelTimer();
  }

  #say(message: string): void {
    const seconds = Math.round(this.#clock.monotonicMs() - this.#startedMs) / 1_000;
    // Two changes may come in the same millisecond.
    this.#told = Math.max(seconds, this.#told + 0.001);
    this.#tell({ progress: this.#told, total: Math.max(this.#total, this.#told), message });
  }
}
