import type { Action } from "../domain/action.ts";
import type { Bus } from "../ports/bus.ts";
import type { Dispatcher, Seat } from "../ports/dispatcher.ts";
import type { LaneName, Store } from "../ports/store.ts";
import { Loop, type LoopDeps } from "./loop.ts";

export interface ActionLoopDeps extends Omit<LoopDeps<Action>, "name" | "store" | "queue"> {
  readonly store: Pick<Store, "actions" | "probe" | "isAlone">;
  readonly bus: Bus;
}

/** The wheel of actions: hears of them from the bus, and keeps seats for those that are about to be created. */
export class ActionLoop implements Dispatcher {
  readonly #bus: Bus;
  readonly #loop: Loop<Action>;
  /** The action that is being told of as it was created, although it is claimed by now. */
  #boarding: string | null = null;
  #unsubscribe: () => void = () => {};

  constructor({ bus, attempt, ...deps }: ActionLoopDeps) {
    this.#bus = bus;
    this.#loop = new Loop({
      ...deps,
      name: "actions",
      queue: deps.store.actions,
      attempt: (action, flight) => {
        // Claimed: it has become active.
        bus.publish(action);
        return attempt(action, flight);
      },
    });
  }

  /** Attempts in flight, for the metrics. */
  get inFlight(): number {
    return this.#loop.inFlight;
  }

  /** As `Loop.start`. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#bus.subscribe((action) => this.#hear(action));
    await this.#loop.start();
  }

  /** As `Loop.drain`: an attempt that is interrupted ends as `unknown`. */
  async drain(limitMs: number): Promise<void> {
    this.#unsubscribe();
    await this.#loop.drain(limitMs);
  }

  reserve(name: LaneName): Seat | null {
    const slot = this.#loop.reserve(name);
    if (slot === null) return null;
    // A stop that comes before the commit waits for the attempt behind it.
    const used = Promise.withResolvers<void>();
    this.#loop.keep(used.promise);
    return {
      claim: this.#loop.claimNow(),
      board: (created, claimed) => {
        this.#boarding = created.id;
        this.#bus.publish(created);
        this.#boarding = null;
        this.#loop.fly(claimed, slot);
        used.resolve();
      },
      leave: () => {
        this.#loop.release(slot);
        used.resolve();
      },
    };
  }

  #hear(action: Action): void {
    const { id, revision, dueAt, status } = action;
    if (status !== "pending" || dueAt === null || id === this.#boarding) return;
    this.#loop.add(action, { id, revision, dueAt });
  }
}
