import { type Action, largeBytesOf } from "../actions/action.ts";
import type { Bus } from "../events/bus.ts";
import type { Dispatcher, Reservation } from "./slots.ts";
import { type LaneName, type Store, StoreUnavailable } from "../../db/store.ts";
import { Loop, type LoopDeps } from "./scheduler.ts";
import type { NotStartedReason } from "../actions/settle.ts";
import { attemptMs, type Fault } from "../actions/outcome.ts";
import { type HashOf, matchesApproval } from "../actions/dedupe.ts";
import type { Clock } from "../runtime/clock.ts";
import type { OutboundRequest, Sender } from "../outbound/deadline.ts";
import { UnreadableSecret } from "../crypto/secrets.ts";
import type { Attempt } from "./in-flight.ts";
import type { Settlement } from "./settlement.ts";
import type { Header, SignedHeaders } from "./signing.ts";

export interface ActionLoopDeps extends Omit<LoopDeps<Action>, "name" | "store" | "queue"> {
  readonly store: Pick<Store, "actions" | "probe" | "isAlone">;
  readonly bus: Bus;
}

/** Sends actions: subscribes to the bus for new ones, and reserves slots for actions that are about to be created. */
export class ActionLoop implements Dispatcher {
  readonly #bus: Bus;
  readonly #loop: Loop<Action>;
  /** The action that is being published as created. It is claimed already, so it must not be queued again. */
  #beingCreated: string | null = null;
  #unsubscribe: () => void = () => {};

  constructor({ bus, attempt, ...deps }: ActionLoopDeps) {
    this.#bus = bus;
    this.#loop = new Loop({
      ...deps,
      name: "actions",
      queue: deps.store.actions,
      attempt: (action, run) => {
        // The claim has made it active.
        bus.publish(action);
        return attempt(action, run);
      },
    });
  }

  /** Attempts in run, for the metrics. */
  get inFlight(): number {
    return this.#loop.inFlight;
  }

  get isPaused(): boolean {
    return this.#loop.isPaused;
  }

  /** As `Loop.start`. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#bus.subscribe((action) => this.#onChange(action));
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
    // Large actions are claimed one small batch at a time, never at create.
    if (largeBytes !== undefined) return null;
    const slot = this.#loop.reserve(name);
    if (slot === null) return null;
    // `drain` must wait for the create and for the attempt that follows it.
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
        this.#beingCreated = created.id;
        this.#bus.publish(created);
        this.#beingCreated = null;
        this.#loop.run(claimed, slot);
        this.#loop.claimed(name.id);
        used.resolve();
      },
      release,
      fail: ({ id, revision, createdAt }) => {
        this.#loop.claimLost([{ id, revision, dueAt: createdAt }], claim);
        release();
      },
    };
  }

  #onChange(action: Action): void {
    const { id, revision, dueAt, status } = action;
    if (status !== "pending" || dueAt === null || id === this.#beingCreated) return;
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
 * Prepare, send, settle. The claim is committed before this runs, and the outcome is committed before it resolves. When
 * no byte can have left, the claim is returned and the attempt does not count.
 */
export function createAttempt(deps: AttemptDeps): Attempt<Action> {
  const { sender, clock, requestOf, settlement, hashOf, attemptTimeoutMs } = deps;

  return async (action, { stop, releaseSlot }) => {
    const refuse = (fault: Fault, cause?: unknown) => {
      releaseSlot();
      return settlement.settle(action, { outcome: { kind: "not_sent", fault }, durationMs: 0, cause });
    };
    const giveBack = (why: NotStartedReason) => {
      releaseSlot();
      return settlement.unclaim(action, why);
    };
    if (!matchesApproval(action, hashOf)) return refuse("altered");
    const request = await requestOf(action, clock.now()).catch(async (error: unknown) => {
      if (error instanceof StoreUnavailable) {
        await giveBack("store_away");
        throw error;
      }
      // A secret that can't be read can be replaced by a rotation, so a later attempt may succeed. Any other error
      // means that the row was altered (an invalid URL, an account that is gone): retrying would not help.
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
 * The exact bytes and headers of one attempt: the approved request plus our own headers. It is signed (Standard
 * Webhooks) with the secret of the account and the target's origin. `webhook-id` and `Idempotency-Key` are the same for
 * all attempts, so that the target can detect a repeat.
 */
export function createRequestOf({ signedHeaders, userAgent }: RequestDeps) {
  return async (action: Action, now: Date): Promise<OutboundRequest> => {
    const { id, accountId, url } = action;
    const signed = await signedHeaders({ accountId, url, id, body: action.body ?? "" }, now);
    const ownHeaders: readonly Header[] = [...signed, ["X-Outgate-Attempt", String(action.attempts)]];
    const isReserved = (name: string) => ownHeaders.some(([our]) => our.toLowerCase() === name.toLowerCase());
    // The API refuses these names. One in an altered row would give the target two values of the same header.
    const requestHeaders = Object.entries(action.headers ?? {})
      .filter(([name]) => !isReserved(name))
      .map(([name, value]): Header => [name, name.toLowerCase() === "user-agent" ? `${value} ${userAgent}` : value]);
    const has = (name: string) => requestHeaders.some(([their]) => their.toLowerCase() === name);
    const defaults: readonly Header[] = [
      ["User-Agent", userAgent],
      ["Accept", "*/*"],
      ["Idempotency-Key", action.id],
      ...(action.body === null ? [] : [["Content-Type", "application/json"] as const]),
    ];
    const headers = [...defaults.filter(([name]) => !has(name.toLowerCase())), ...requestHeaders, ...ownHeaders];
    return { url: action.url, method: action.method, headers, body: action.body };
  };
}
