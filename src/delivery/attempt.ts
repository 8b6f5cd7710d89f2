import { type Action, largeBytesOf } from "../actions/action.ts";
import type { Bus } from "../events/bus.ts";
import type { Dispatcher, Reservation } from "./slots.ts";
import { type LaneName, type Store, StoreUnavailable } from "../../db/store.ts";
import { Loop, type LoopDeps } from "./scheduler.ts";
import type { NotStarted } from "../actions/settle.ts";
import { attemptMs, type Fault } from "../actions/outcome.ts";
import { type HashOf, isAsApproved } from "../actions/dedupe.ts";
import type { Clock } from "../runtime/clock.ts";
import type { OutboundRequest, Sender } from "../outbound/deadline.ts";
import { UnreadableSecret } from "../crypto/types.ts";
import type { Attempt } from "./in-flight.ts";
import type { Settlement } from "./settlement.ts";
import type { Header, SignedHeaders } from "./signing.ts";

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

export interface AttemptDeps {
  readonly sender: Sender;
  readonly clock: Clock;
  readonly requestOf: (action: Action, now: Date) => Promise<OutboundRequest>;
  readonly settlement: Pick<Settlement, "settle" | "unclaim">;
  readonly hashOf: HashOf;
  readonly attemptTimeoutMs: number;
}

/**
 * Prepare, send, settle. The claim is on disk before this begins; the end is on disk before this resolves. Where no byte can
 * have left the claim is given back.
 */
export function createAttempt(deps: AttemptDeps): Attempt<Action> {
  const { sender, clock, requestOf, settlement, hashOf, attemptTimeoutMs } = deps;

  return async (action, { stop, releaseSlot }) => {
    const refuse = (fault: Fault, cause?: unknown) => {
      releaseSlot();
      return settlement.settle(action, { outcome: { kind: "not_sent", fault }, durationMs: 0, cause });
    };
    const giveBack = (why: NotStarted) => {
      releaseSlot();
      return settlement.unclaim(action, why);
    };
    if (!isAsApproved(action, hashOf)) return refuse("altered");
    const request = await requestOf(action, clock.now()).catch(async (error: unknown) => {
      if (error instanceof StoreUnavailable) {
        await giveBack("store_away");
        throw error;
      }
      // The one can be mended while attempts remain, by a rotation. Else it is a row by hand, with a URL that is none or an
      // account that is gone: it would be no better at the next attempt.
      await refuse(error instanceof UnreadableSecret ? "unsignable" : "altered", error);
      return null;
    });
    if (request === null) return;
    const timeoutMs = attemptMs(action, clock.now(), attemptTimeoutMs);
    if (timeoutMs === 0) return giveBack("late");
    const startedMs = clock.monotonicMs();
    const outcome = await sender.send(request, { timeoutMs, stop });
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    if (outcome.kind === "stopped") return giveBack("stopping");
    releaseSlot();
    await settlement.settle(action, { outcome, durationMs, timeoutMs });
  };
}

export interface RequestDeps {
  readonly signedHeaders: SignedHeaders;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
}

/**
 * The exact bytes and headers of one attempt: what was approved, and ours over it. Signed by Standard Webhooks with the
 * secret of the account and the target's origin; `webhook-id` and `Idempotency-Key` stay the same over all attempts, so
 * that the target can tell a repeat (decisions 4 and 6).
 */
export function createRequestOf({ signedHeaders, userAgent }: RequestDeps) {
  return async (action: Action, now: Date): Promise<OutboundRequest> => {
    const { id, accountId, url } = action;
    const signed = await signedHeaders({ accountId, url, id, body: action.body ?? "" }, now);
    const ours: readonly Header[] = [...signed, ["X-Outgate-Attempt", String(action.attempts)]];
    const isOurs = (name: string) => ours.some(([our]) => our.toLowerCase() === name.toLowerCase());
    // Refused at the door already; a name that slipped through would make the target read two values of it.
    const theirs = Object.entries(action.headers ?? {})
      .filter(([name]) => !isOurs(name))
      .map(([name, value]): Header => [name, name.toLowerCase() === "user-agent" ? `${value} ${userAgent}` : value]);
    const has = (name: string) => theirs.some(([their]) => their.toLowerCase() === name);
    const defaults: readonly Header[] = [
      ["User-Agent", userAgent],
      ["Accept", "*/*"],
      ["Idempotency-Key", action.id],
      ...(action.body === null ? [] : [["Content-Type", "application/json"] as const]),
    ];
    const headers = [...defaults.filter(([name]) => !has(name.toLowerCase())), ...theirs, ...ours];
    return { url: action.url, method: action.method, headers, body: action.body };
  };
}
