import type { Outcome } from "../../src/core/outcome.ts";
import type { OutboundRequest, Sender, SendLimits } from "../../src/outbound/sender.ts";
import { actionOf } from "../actions/senders.ts";
import { answered } from "../support/factory.ts";
import type { Clients } from "./clients.ts";
import type { Process } from "./process.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

/** Where callbacks go. Everything else is called by actions. */
export const CALLBACK_URL = "http://127.0.0.1:7000/callback";

/** One request that reached the target. */
export interface Call {
  /** The action's id; of a callback that of its notification. */
  readonly id: string;
  readonly run: number;
  readonly attempt: number;
  readonly by: Process;
  readonly beganMs: number;
  /** When the sender gave up waiting for it, or will. */
  readonly endsMs: number;
  /** What the sender is told. */
  readonly outcome: Outcome;
  /** The process knows the outcome. */
  isKnown: boolean;
}

/** A callback as its receiver reads it. */
export interface Callback {
  readonly type: string;
  readonly actionId: string;
  readonly run: number;
  readonly calls: Call[];
  /** Attempts to call it, those among them that were refused. */
  tries: number;
}

/** How often each comes. */
const OUTCOMES = { ok: 50, late: 8, refused: 12, error: 10, busy: 5, hang: 8, closed: 7 } as const;

const BUSY = { ...answered(429), retryAfter: "3" };

/** Only the first attempt of a callback may fail: the pauses after further ones are minutes and hours. */
const FAILED_CALLBACKS_MAX = 1;

/**
 * Everybody who is called, and the way there: what becomes of a call is drawn when it begins. Here is checked what must hold
 * whenever a call begins.
 */
export class Target {
  readonly calls: Call[] = [];
  /** By `webhook-id`. */
  readonly callbacks = new Map<string, Callback>();
  readonly #world: World;
  readonly #clients: Clients;
  readonly #random: Random;
  /** One process at a time uses the database: what it knows, it knows until it ends. */
  readonly #isAlone: boolean;

  constructor(world: World, clients: Clients, isAlone: boolean) {
    this.#isAlone = isAlone;
    this.#world = world;
    this.#clients = clients;
    this.#random = world.random.fork();
  }

  readonly senderOf = (process: Process): Sender => ({
    send: (request, limits) => {
      const { promise, resolve } = Promise.withResolvers<Outcome | { readonly kind: "stopped" }>();
      const startedMs = this.#world.nowMs;
      // Resolving and connecting.
      const connected = async () => {
        if (limits.stop?.aborted === true || (await limits.mayBegin?.()) === false) return resolve({ kind: "stopped" });
        const leftMs = limits.timeoutMs - (this.#world.nowMs - startedMs);
        if (leftMs <= 0) return resolve({ kind: "not_sent", fault: "timed_out" });
        this.#begin(process, request, { ...limits, timeoutMs: leftMs }, resolve);
      };
      process.clock.after(this.#random.between(1, this.#random.chance(0.1) ? 900 : 30), () => void connected());
      return promise;
    },
  });

  #begin(
    process: Process,
    request: OutboundRequest,
    { timeoutMs, stop }: SendLimits,
    resolve: (outcome: Outcome) => void,
  ): void {
    const isCallback = request.url === CALLBACK_URL;
    const id = actionOf(request);
    const callback = isCallback ? this.#callbackOf(id, request) : null;
    if (callback !== null) callback.tries += 1;
    const { outcome, afterMs } = this.#draw(timeoutMs, callback);
    const { run, attempt } = callback === null ? this.#claimOf(id, request) : { run: callback.run, attempt: 0 };
    const beganMs = this.#world.nowMs;
    const call: Call = { id, run, attempt, by: process, beganMs, endsMs: beganMs + afterMs, outcome, isKnown: false };
    const kind = outcome.kind === "answered" ? `answers ${outcome.code}` : `${outcome.kind} (${outcome.fault})`;
    const what = callback === null ? `calls for ${this.#world.nameOf(id)} run ${run} attempt ${attempt}` : "";
    const told = callback && `calls back ${this.#world.nameOf(callback.actionId)} run ${run} ${callback.type}`;
    this.#world.tell(process.name, `${told ?? what}: ${kind} after ${afterMs} ms`);
    if (callback === null) this.#checkCall(call);
    else this.#checkCallback(callback, call);
    const ambush = callback === null ? this.#world.ambushes.shift() : undefined;
    if (ambush !== undefined) this.#world.clock.after(afterMs / 2, () => ambush(process));
    // A connection that is refused carries nothing.
    if (outcome.kind !== "not_sent") (callback?.calls ?? this.calls).push(call);
    const end = (known: Outcome) => {
      call.isKnown = known === outcome && !process.isDead;
      resolve(known);
    };
    const interrupt = () => end({ kind: "unknown", fault: "interrupted" });
    process.clock.after(afterMs, () => {
      stop?.removeEventListener("abort", interrupt);
      end(outcome);
    });
    stop?.addEventListener("abort", interrupt);
  }

  #draw(timeoutMs: number, callback: Callback | null): { readonly outcome: Outcome; readonly afterMs: number } {
    const soonMs = Math.min(timeoutMs, this.#random.between(1, 200));
    // Just before the sender gives up.
    const lateMs = Math.max(1, timeoutMs - this.#random.between(1, 900));
    const drawn = this.#random.choose(OUTCOMES);
    const isSpared = callback !== null && callback.tries > FAILED_CALLBACKS_MAX;
    const outcomes = {
      ok: { outcome: answered(200, '"done"'), afterMs: soonMs },
      late: { outcome: answered(200, '"done"'), afterMs: lateMs },
      refused: { outcome: { kind: "not_sent", fault: "refused" }, afterMs: soonMs },
      error: { outcome: answered(500), afterMs: soonMs },
      busy: { outcome: BUSY, afterMs: soonMs },
      hang: { outcome: { kind: "unknown", fault: "timed_out" }, afterMs: timeoutMs },
      closed: { outcome: { kind: "unknown", fault: "closed" }, afterMs: soonMs },
    } as const;
    return outcomes[isSpared ? "ok" : drawn];
  }

  /** The claim under which the store has the action now. */
  #claimOf(id: string, { headers }: OutboundRequest): { readonly run: number; readonly attempt: number } {
    const attempt = Number(headers.find(([name]) => name === "X-Outgate-Attempt")?.[1]);
    const [row] = this.#world.look("SELECT status, run, attempts FROM actions WHERE id = ?", id);
    const run = Number(row?.["run"] ?? 0);
    if (row?.["status"] !== "active" || row["attempts"] !== attempt) {
      const stored =
        row === undefined ? "has no row" : `is ${String(row["status"])}, attempt ${String(row["attempts"])}`;
      this.#world.violate("nothing is sent without a claim", `${this.#world.nameOf(id)} attempt ${attempt} ${stored}`);
    }
    return { run, attempt };
  }

  #checkCall(call: Call): void {
    const { id, run, attempt, by, beganMs } = call;
    const world = this.#world;
    const name = `${world.nameOf(id)} run ${run} attempt ${attempt}`;
    const [row] = world.look("SELECT approve, retries, key_id, host FROM actions WHERE id = ?", id);
    const ofRun = this.calls.filter((other) => other.id === id && other.run === run);
    if (ofRun.length >= Number(row?.["retries"])) world.violate("no more sends than allowed", name);
    if (ofRun.some((other) => other.attempt === attempt)) world.violate("an attempt is one send", name);
    const isOpen = (other: Call) => other.endsMs > beganMs && !other.by.isDead;
    if (this.calls.some((other) => other.id === id && isOpen(other))) world.violate("one send at a time", name);
    if (ofRun.some((other) => this.#knowsSuccess(by, other))) world.violate("nothing is sent after a success", name);
    if (row?.["approve"] === 1 && !this.#clients.hasApproved(id, run))
      world.violate("nothing is sent unapproved", name);
    const lane = { keyId: String(row?.["key_id"]), host: String(row?.["host"]) };
    const [started] = world.look("SELECT max(at) AS at FROM timeline WHERE action_id = ? AND type = 'started'", id);
    const pause = this.#clients.findPause(lane, { by, claimedMs: Number(started?.["at"]) });
    if (pause !== null) world.violate("no send after an answered pause", `${name}, pause of ${pause}`);
  }

  #callbackOf(id: string, { body }: OutboundRequest): Callback {
    const known = this.callbacks.get(id);
    if (known !== undefined) return known;
    // Safe: `callbackJson` wrote it, and a missing member fails the comparison with the timeline.
    const event = JSON.parse(String(body)) as { type: string; data: { id: string; run: number } };
    const callback = { type: event.type, actionId: event.data.id, run: event.data.run, calls: [], tries: 0 };
    this.callbacks.set(id, callback);
    return callback;
  }

  #checkCallback({ calls, type, actionId }: Callback, { by, beganMs }: Call): void {
    const name = `${type} of ${this.#world.nameOf(actionId)}`;
    const isOpen = (other: Call) => other.endsMs > beganMs && !other.by.isDead;
    if (calls.some(isOpen)) this.#world.violate("one callback at a time", name);
    if (calls.some((other) => this.#knowsSuccess(by, other)))
      this.#world.violate("no callback after it was delivered", name);
  }

  /** Beside other nodes it may have lost the claim before it could write what it knew. */
  #knowsSuccess(process: Process, { by, isKnown, outcome }: Call): boolean {
    return this.#isAlone && by === process && isKnown && outcome.kind === "answered" && outcome.code === 200;
  }
}
