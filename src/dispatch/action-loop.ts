import type { Action } from "../domain/action.ts";
import type { Bus } from "../ports/bus.ts";
import type { Dispatcher, Reservation } from "../ports/dispatcher.ts";
import type { LaneName, Store } from "../ports/store.ts";
import { largeBytesOf } from "../domain/size.ts";
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

  get isPaused(): boolean {
    return this.#loop.isPaused;
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

  /** As `Loop.pauseChanged`. */
  pauseChanged(accountId: string): void {
    this.#loop.pauseChanged(accountId);
  }

  reserve(name: LaneName & { readonly id: string }, largeBytes: number | undefined): Reservation | null {
    // A large one waits for its turn among the large ones.
    if (largeBytes !== undefined) return null;
    const slot = this.#loop.reserve(name);
    if (slot === null) return null;
    // A stop that comes before the commit waits for the attempt behind it.
    const used = Promise.withResolvers<void>();
    this.#loop.keep(used.promise);
    const claim = this.#loop.claimNow();
    const release = () => {
      this.#loop.claimed(name.id);
      this.#loop.release(slot);
      used.resolve();
    };
    return {
      claim,
      commit: (created, claimed) => {
        this.#boarding = created.id;
        this.#bus.publish(created);
        this.#boarding = null;
        this.#loop.run(claimed, slot);
        this.#loop.claimed(name.id);
        used.resolve();
      },
      release,
      fail: ({ id, revision, createdAt }) => {
        this.#loop.doubt([{ id, revision, dueAt: createdAt }], claim);
        release();
      },
    };
  }

  #hear(action: Action): void {
    const { id, revision, dueAt, status } = action;
    if (status !== "pending" || dueAt === null || id === this.#boarding) return;
    const largeBytes = largeBytesOf(action);
    this.#loop.add(action, { id, revision, dueAt, ...(largeBytes !== undefined && { largeBytes }) });
  }
}
