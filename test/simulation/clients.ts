import type { Services } from "../../src/services/services.ts";
import type { Action, ActionRequest } from "../../src/core/action.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import type { TimelineEventType } from "../../src/core/timeline.ts";
import { requestFor } from "../support/engine.ts";
import type { Process } from "./process.ts";
import type { Random } from "./random.ts";
import { CALLBACK_URL } from "./target.ts";
import type { World } from "./world.ts";

/** What a client was told, and what must therefore be in the store at the end. */
export interface Accepted {
  readonly id: string;
  readonly request: ActionRequest;
}

/** A decision that was answered: its event must be in the timeline. */
export interface Decided {
  readonly id: string;
  readonly run: number;
  /** Its event, one of these. */
  readonly events: readonly TimelineEventType[];
}

/** A pause that a client knows of. */
interface Paused {
  readonly id: string;
  readonly kind: "account" | "key" | "host";
  readonly subject: string;
  readonly by: Process;
  readonly answeredMs: number;
  /** A client has asked for its end. */
  isEnding: boolean;
}

type Decision = "approve" | "cancel" | "retry" | "sendNow";

type Answer<T> =
  | { readonly kind: "answered"; readonly value: T; readonly by: Process }
  | { readonly kind: "refused" }
  /** It is open whether it was done. */
  | { readonly kind: "none" };

const EVENTS = {
  approve: ["approved"],
  // Of a held action it is a rejection.
  cancel: ["cancelled", "rejected"],
  retry: ["retried"],
  sendNow: ["sent_now"],
} as const satisfies Record<Decision, readonly TimelineEventType[]>;

/** How long a client waits for an answer, and how often it asks again. */
const PATIENCE_MS = 10_000;
const TRIES_MAX = 4;

const HOSTS = ["127.0.0.1:9001", "127.0.0.1:9002"] as const;

/** Everybody who uses the service: they create, decide and pause, and remember what they were answered. */
export class Clients {
  readonly accepted = new Map<string, Accepted>();
  readonly decided: Decided[] = [];
  readonly #world: World;
  readonly #random: Random;
  readonly #processes: () => readonly Process[];
  readonly #pauses: Paused[] = [];
  /** Ids of pauses that it has asked to end, perhaps before it was told that they began. */
  readonly #endings = new Set<string>();
  /** Approvals that were asked for, by action and run. */
  readonly #approved = new Set<string>();
  #count = 0;

  constructor(world: World, processes: () => readonly Process[]) {
    this.#world = world;
    this.#random = world.random.fork();
    this.#processes = processes;
  }

  hasApproved(id: string, run: number): boolean {
    return this.#approved.has(`${id} ${run}`);
  }

  /**
   * An answered pause that covers a call which begins now; null: none does. Another process may still make a call that it claimed
   * before the pause was answered.
   */
  findPause(
    lane: { keyId: string; host: string },
    { by, claimedMs }: { by: Process; claimedMs: number },
  ): string | null {
    const pause = this.#pauses.find(({ kind, subject, isEnding, ...paused }) => {
      const isCovered = kind === "account" || subject === lane.keyId || subject === lane.host;
      const isTold = paused.by === by || (claimedMs > paused.answeredMs && !this.#world.wasClockSet);
      return isCovered && isTold && !isEnding;
    });
    return pause === undefined ? null : `${pause.kind} ${pause.subject}`;
  }

  /** Does something that a client might do now. */
  act(): void {
    const does = this.#random.choose({ create: 45, decide: 40, race: 5, pause: 10 });
    if (does === "create") this.#world.keep(this.#create());
    else if (does === "pause") this.#world.keep(this.#pause());
    else this.decide(does === "race" ? 2 : 1);
  }

  async #create(): Promise<void> {
    const random = this.#random;
    this.#count += 1;
    const title = `a${this.#count}`;
    const key = random.chance(0.6) ? "owner" : "agent";
    const host = random.pick(HOSTS) ?? HOSTS[0];
    const request = requestFor({
      url: `http://${host}/${title}`,
      title,
      body: `{"n":${this.#count}}`,
      retries: random.between(1, 3),
      onUnknown: random.chance(0.25) ? "stop" : "retry",
      approve: random.chance(0.3),
      callback: random.chance(0.6) ? CALLBACK_URL : null,
      idempotencyKey: random.chance(0.7) ? title : null,
    });
    const { approve, retries, onUnknown } = request;
    const how = `${approve ? "held, " : ""}${retries} attempts, ${onUnknown} on unknown`;
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const answer = await this.#ask(`creates ${title} (${how})`, ({ actionService }) =>
        actionService.create(this.#world.caller(key), request),
      );
      if (answer.kind === "refused") return;
      if (answer.kind === "answered") this.#accept(answer.value.action, request);
      // Now and then one asks again although it was answered. Without a key nobody may.
      const asksAgain = answer.kind === "none" || random.chance(0.1);
      if (!asksAgain || request.idempotencyKey === null) return;
      await this.#rest();
    }
  }

  #accept({ id }: Action, request: ActionRequest): void {
    const before = [...this.accepted.values()].find((other) => other.request === request);
    if (before !== undefined && before.id !== id) {
      this.#world.violate("a key names one action", `${request.title ?? ""}: ${before.id} and ${id}`);
    }
    this.accepted.set(id, { id, request });
  }

  /** Decides on some action as it is now, through so many processes at once. */
  decide(times = 1): void {
    const rows = this.#world.look(
      "SELECT id, run, status FROM actions WHERE status NOT IN ('active', 'completed') ORDER BY id",
    );
    const row = this.#random.pick(rows);
    if (row === undefined) return;
    // Some decide by what they saw before the last retry.
    const run = Math.max(1, Number(row["run"]) - (this.#random.chance(0.2) ? 1 : 0));
    for (let n = 0; n < times; n += 1) {
      const decision = this.#decisionFor(String(row["status"]));
      this.#world.keep(this.#decide(decision, String(row["id"]), run));
    }
  }

  #decisionFor(status: string): Decision {
    if (status === "awaiting_approval") return this.#random.choose({ approve: 70, cancel: 30 });
    return status === "pending" ? this.#random.choose({ sendNow: 70, cancel: 30 }) : "retry";
  }

  async #decide(decision: Decision, id: string, run: number): Promise<void> {
    const expected = { run, isHeld: decision === "approve" };
    // An agent may approve nothing, and change only what its own key created.
    const key = this.#random.chance(0.15) ? "agent" : "owner";
    if (decision === "approve" && key === "owner") this.#approved.add(`${id} ${run}`);
    const what = `asks as ${key} to ${decision} ${this.#world.nameOf(id)} run ${run}`;
    const answer = await this.#ask(what, ({ actionService }) =>
      actionService[decision](this.#world.caller(key), id, null, expected),
    );
    if (answer.kind !== "answered") return;
    this.decided.push({ id, run: answer.value.run, events: EVENTS[decision] });
  }

  async #pause(): Promise<void> {
    const kind = this.#random.choose({ account: 40, host: 40, key: 20 });
    const host = this.#random.pick(HOSTS) ?? HOSTS[0];
    const [owner, agent] = [this.#world.caller("owner"), this.#world.caller("agent")];
    const keyId = kind === "key" ? agent.keyId : null;
    const request = { keyId, host: kind === "host" ? host : null, reason: null };
    const answer = await this.#ask(`pauses the ${kind}`, ({ pauseService }) => pauseService.pause(owner, request));
    if (answer.kind !== "answered") return;
    const { id, subject } = answer.value.pause;
    // The same pause may be asked for twice; it has one end.
    if (this.#pauses.some((pause) => pause.id === id)) return;
    const pause = {
      id,
      kind,
      subject,
      by: answer.by,
      answeredMs: this.#world.clock.now().getTime(),
      isEnding: this.#endings.has(id),
    };
    this.#pauses.push(pause);
    this.#world.clock.after(this.#random.between(500, 20_000), () => this.#world.keep(this.#resume(pause)));
  }

  async #resume(pause: Paused): Promise<void> {
    // Another process may end it at once.
    pause.isEnding = true;
    const owner = this.#world.caller("owner");
    const what = `ends the pause of ${pause.kind} ${pause.subject}`;
    for (let isEnded = false; !isEnded;) {
      const answer = await this.#ask(what, ({ pauseService }) => pauseService.resume(owner, pause.id));
      isEnded = answer.kind !== "none";
      await this.#rest();
    }
  }

  /** Ends every pause in force, one that nobody was told of too, and decides on everything that is held. */
  async tidyUp(): Promise<void> {
    const owner = this.#world.caller("owner");
    for (const row of this.#world.look("SELECT id FROM pauses WHERE ended_at IS NULL")) {
      const id = String(row["id"]);
      this.#endings.add(id);
      for (const pause of this.#pauses) if (pause.id === id) pause.isEnding = true;
      await this.#ask("ends a pause", ({ pauseService }) => pauseService.resume(owner, id));
    }
    for (const row of this.#world.look("SELECT id, run FROM actions WHERE status = 'awaiting_approval'")) {
      await this.#decide("approve", String(row["id"]), Number(row["run"]));
    }
  }

  /** Asks one of the processes, whichever the client reaches. */
  async #ask<T>(what: string, work: (services: Services) => Promise<T>): Promise<Answer<T>> {
    const world = this.#world;
    const process = this.#random.pick(this.#processes());
    if (process === undefined) {
      world.tell("client", `${what}: reaches nobody`);
      return { kind: "none" };
    }
    world.tell("client", `${what}, at ${process.name}`);
    const { promise, resolve } = Promise.withResolvers<Answer<T>>();
    const cancel = world.clock.after(PATIENCE_MS, () => {
      world.tell("client", `${what}: no answer`);
      resolve({ kind: "none" });
    });
    process.serve(work, (result) => {
      cancel();
      resolve(this.#answerOf(what, process, result));
    });
    return promise;
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => void this.#world.clock.after(1_000, resolve));
  }

  #answerOf<T>(what: string, by: Process, result: PromiseSettledResult<T>): Answer<T> {
    if (result.status === "fulfilled") {
      this.#world.tell("client", `${what}: done`);
      return { kind: "answered", value: result.value, by };
    }
    const error: unknown = result.reason;
    if (!(error instanceof DomainError || error instanceof StoreUnavailable)) throw error;
    if (/altered/.test(error.message)) this.#world.violate("no row is taken for altered", error.message);
    const isRefused = error instanceof DomainError && error.code !== "unavailable";
    this.#world.tell("client", `${what}: ${isRefused ? error.code : "unavailable"}`);
    return isRefused ? { kind: "refused" } : { kind: "none" };
  }
}
