import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ActionRequest, Operation } from "../../src/core/action.ts";
import type { Caller, Role } from "../../src/core/roles.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import type { Sender } from "../../src/outbound/deadline.ts";
import { as } from "../actions/callers.ts";
import { actionOf } from "../actions/senders.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine, requestFor } from "../support/engine.ts";

/** What the people behind an action have said of it, kept apart from what the service believes. */
export interface Entry {
  readonly id: string;
  readonly isHeld: boolean;
  readonly retries: number;
  /** Whose key created it. */
  readonly role: Role;
  /** Whether it may be sent by what was acknowledged so far. */
  mayBeSent: boolean;
  /** Decisions under way that may let it be sent before their answer is here. */
  openings: number;
  /** Sends of this run. */
  sends: number;
}

/** What became of a decision: the revision that it made, or the code that refused it. */
export type Verdict = { readonly verb: Operation; readonly revision: number } | { readonly code: string };

interface Run {
  readonly id: string;
  readonly end: (outcome: Outcome) => void;
}

const INTERRUPTED: Outcome = { kind: "unknown", fault: "interrupted" };

/** The real engine on a real file, with a target that counts, answers when told to, and judges every call by the entries. */
export class World {
  readonly entries: Entry[] = [];
  readonly violations: string[] = [];
  readonly counts = { sends: 0, yes: 0, no: 0, crashes: 0 };
  /** Calls for actions whose create has not answered yet. */
  readonly #early = new Map<string, number>();
  readonly #folder = mkdtempSync(join(tmpdir(), "outgate-"));
  #runs: Run[] = [];
  #engine: Awaited<ReturnType<typeof openEngine>> | null = null;
  /** Counts up with every process: what a dead one still does, it would not have done. */
  #life = 0;

  async start(at?: Date): Promise<void> {
    const life = this.#life;
    const sender: Sender = {
      send: (request, { stop }) => {
        const { promise, resolve } = Promise.withResolvers<Outcome>();
        if (life !== this.#life) return promise;
        const id = actionOf(request);
        this.#checkTarget(id);
        this.#runs.push({ id, end: resolve });
        if (stop?.aborted === true) resolve(INTERRUPTED);
        stop?.addEventListener("abort", () => resolve(INTERRUPTED));
        return promise;
      },
    };
    const clock = at === undefined ? new FakeClock() : new FakeClock(at);
    this.#engine = await openEngine({ folder: this.#folder, sender, clock });
  }

  get engine() {
    if (this.#engine === null) throw new Error("The world has not begun.");
    return this.#engine;
  }

  async create(role: Role, request: Partial<ActionRequest>): Promise<void> {
    // Each a request of its own: what was rejected of one is nothing to the others.
    const whole = requestFor({ body: `{"n":${this.entries.length}}`, ...request });
    const { action } = await this.engine.actionService.create(as(role, this.engine.owner), whole);
    const sends = this.#early.get(action.id) ?? 0;
    const { approve, retries } = whole;
    if (approve && sends > 0) this.violations.push(`${action.id} was sent before anybody was asked`);
    this.entries.push({ id: action.id, role, isHeld: approve, retries, mayBeSent: !approve, openings: 0, sends });
  }

  /** Decisions on one action, all at once. Each is asked for by its role; what they said is written down afterwards. */
  async decide(entry: Entry, asked: readonly { readonly verb: Operation; readonly role: Role }[]) {
    const before = entry.sends;
    const openings = asked.filter(({ verb }) => verb === "approve" || (verb === "retry" && !entry.isHeld)).length;
    entry.openings += openings;
    const verdicts = await Promise.all(
      asked.map(({ verb, role }) => this.#ask(entry, verb, as(role, this.engine.owner))),
    );
    entry.openings -= openings;
    // In the order in which they came to be, whatever the order of the answers.
    const made = verdicts.flatMap((verdict) => ("revision" in verdict ? [verdict] : []));
    for (const { verb } of made.toSorted((a, b) => a.revision - b.revision)) this.#wasMade(entry, verb, before);
    const [last] = made.toSorted((a, b) => b.revision - a.revision);
    if (last?.verb === "cancel" && entry.sends > before)
      this.violations.push(`${entry.id} was sent, and then cancelled`);
    return verdicts;
  }

  /** The target answers the oldest call that is open. */
  async answer(outcome: Outcome): Promise<void> {
    const flight = this.#runs.shift();
    if (flight === undefined) return;
    flight.end(outcome);
    this.#wasTried(flight.id, outcome.kind === "answered" && outcome.code < 300);
    await this.#untilNot(flight.id, "active");
  }

  get isCalled(): boolean {
    return this.#runs.length > 0;
  }

  /** A kill, or a stop that lets nothing end; and the next start on the same file. */
  async restart(isKilled: boolean): Promise<void> {
    const { clock, loop } = this.engine;
    if (isKilled) this.#life += 1;
    else {
      const drained = loop.drain(1_000);
      clock.advance(1_000);
      await drained;
    }
    this.counts.crashes += 1;
    await this.engine.abandon();
    for (const { id } of this.#runs) this.#wasTried(id, false);
    this.#runs = [];
    this.#life += 1;
    await this.start(clock.now());
  }

  /** Waits until nothing is due that is not under way. */
  async rest(): Promise<void> {
    for (const { id } of this.entries) {
      for (let turns = 0; await this.#isDue(id); turns += 1) {
        if (turns > 2_000) throw new Error(`${id} is due and nobody takes it.`);
        await Bun.sleep(1);
      }
    }
  }

  async end(): Promise<void> {
    await this.engine[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #ask(entry: Entry, verb: Operation, caller: Caller): Promise<Verdict> {
    try {
      const { revision } = await this.engine.actionService[verb](
        caller,
        entry.id,
        verb === "retry" ? "Asked again." : null,
      );
      return { verb, revision };
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      return { code: error.code };
    }
  }

  #wasMade(entry: Entry, verb: Operation, sendsBefore: number): void {
    if (verb === "approve") this.counts.yes += 1;
    if (verb === "cancel") this.counts.no += 1;
    entry.mayBeSent = verb === "approve" || (verb === "retry" && !entry.isHeld);
    // A new run counts from here; the old one had ended, so all that was sent meanwhile is of the new one.
    if (verb === "retry") entry.sends -= sendsBefore;
  }

  /** An attempt is over: after a success, or the last one allowed, the run is too. */
  #wasTried(id: string, isDone: boolean): void {
    const entry = this.entries.find((one) => one.id === id);
    if (entry !== undefined && (isDone || entry.sends >= entry.retries)) entry.mayBeSent = false;
  }

  #checkTarget(id: string): void {
    this.counts.sends += 1;
    const entry = this.entries.find((one) => one.id === id);
    if (entry === undefined) {
      this.#early.set(id, (this.#early.get(id) ?? 0) + 1);
      return;
    }
    entry.sends += 1;
    if (!entry.mayBeSent && entry.openings === 0) this.violations.push(`${id} was sent without a yes`);
  }

  async #isDue(id: string): Promise<boolean> {
    const { actionService, owner, clock } = this.engine;
    const { status, dueAt } = await actionService.get(owner, id);
    return status === "pending" && dueAt !== null && dueAt <= clock.now();
  }

  async #untilNot(id: string, status: string): Promise<void> {
    const { actionService, owner } = this.engine;
    while ((await actionService.get(owner, id)).status === status) await Bun.sleep(1);
  }
}
