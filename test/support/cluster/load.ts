import { OWNER_KEY } from "../service.ts";
import type { Balancer } from "./balancer.ts";
import type { Witness } from "./witness.ts";

/** A client gives up on an answer later than the load balancer. */
const ANSWER_MS_MAX = 20_000;
const ASK_AGAIN_MS = 50;

export interface LoadOptions {
  readonly balancer: Balancer;
  readonly witness: Witness;
  readonly chance: () => number;
  readonly clients: number;
  readonly retries: number;
  /** The share of actions that wait for approval and are then decided on two nodes at once. */
  readonly held: number;
  /** The share of creates that two nodes get at once, under one key. */
  readonly twice: number;
  /** The share of actions with a callback. */
  readonly callbacks: number;
  /** Between two actions of a client; 0: as fast as it is answered. */
  readonly pauseMs?: number;
  /** The most actions that are created. */
  readonly count?: number;
}

type Decision = "approve" | "cancel";

/** Two decisions on one action, made on two nodes at once. */
export interface Decided {
  readonly id: string;
  readonly answers: readonly { readonly decision: Decision; readonly status: number; readonly tries: number }[];
}

interface Answer {
  readonly status: number;
  readonly tries: number;
  readonly id: string;
}

/**
 * Clients that behave: whoever gets no answer, or one that says "later", asks the next node again under the same key, for as
 * long as it takes. What was acknowledged, asked for and answered is written down.
 */
export class Load {
  readonly #options: LoadOptions;
  /** The id by key. */
  readonly acknowledged = new Map<string, string>();
  /** When approval of an action was first asked for. */
  readonly approvedMs = new Map<string, number>();
  readonly decisions: Decided[] = [];
  /** What was not as it should be, and of which actions. */
  readonly problems = new Map<string, Set<string>>();
  /** Milliseconds of every create that was answered at the first try. */
  readonly createMs: number[] = [];
  readonly statuses = new Map<number, number>();
  /** Answers of 503 without `Retry-After`. */
  impatient = 0;
  #begun = 0;
  #isOver = false;
  #clients: readonly Promise<void>[] = [];

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#clients = Array.from({ length: this.#options.clients }, (_, n) => this.#client(n));
  }

  /** Lets the clients finish what they have begun. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  /** Resolves when one more create than now is acknowledged, after so many milliseconds. */
  async goesOn(): Promise<number> {
    const [startedMs, before] = [performance.now(), this.acknowledged.size];
    while (this.acknowledged.size === before) await Bun.sleep(5);
    return performance.now() - startedMs;
  }

  /** Resolves when `count` actions have been created. */
  async done(): Promise<void> {
    await Promise.all(this.#clients);
  }

  async #client(number: number): Promise<void> {
    const {
      chance,
      held,
      twice,
      callbacks,
      retries,
      witness,
      pauseMs = 0,
      count = Number.POSITIVE_INFINITY,
    } = this.#options;
    for (let n = 0; !this.#isOver && this.#begun < count; n += 1) {
      this.#begun += 1;
      const key = `client-${number}-${n}`;
      const isHeld = chance() < held;
      const request = {
        url: witness.targetUrl,
        retries,
        approve: isHeld,
        body: { key },
        ...(chance() < callbacks ? { callback: witness.callbackUrl } : {}),
      };
      const times = chance() < twice ? 2 : 1;
      const answers = await Promise.all(
        Array.from({ length: times }, () => this.#ask("/v1/actions", request, key, [200, 201])),
      );
      for (const { id } of answers) this.#acknowledge(key, id);
      if (isHeld) await this.#decide(answers[0]?.id ?? "");
      if (pauseMs > 0) await Bun.sleep(pauseMs);
    }
  }

  #acknowledge(key: string, id: string): void {
    const known = this.acknowledged.get(key);
    if (known !== undefined && known !== id) this.#problem("one key makes one action", id);
    this.acknowledged.set(key, id);
  }

  #problem(sentence: string, of: string): void {
    this.problems.set(sentence, (this.problems.get(sentence) ?? new Set()).add(of));
  }

  async #decide(id: string): Promise<void> {
    const { chance } = this.#options;
    const either = (): Decision => (chance() < 0.5 ? "approve" : "cancel");
    const asked = [either(), either()];
    if (asked.includes("approve")) this.approvedMs.set(id, performance.now());
    const answers = await Promise.all(
      asked.map(async (decision) => {
        const { status, tries } = await this.#ask(`/v1/actions/${id}/${decision}`, {}, null, [200, 409]);
        return { decision, status, tries };
      }),
    );
    this.decisions.push({ id, answers });
  }

  /** Asks one node after the other until one gives an answer that is none of its troubles. */
  async #ask(path: string, body: object, key: string | null, expected: readonly number[]): Promise<Answer> {
    const startedMs = performance.now();
    for (let tries = 1; ; tries += 1) {
      const answer = await this.#askOnce(path, body, key);
      this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1);
      if (expected.includes(answer.status)) {
        if (tries === 1 && key !== null) this.createMs.push(performance.now() - startedMs);
        return { ...answer, tries };
      }
      if (![0, 502, 503, 504].includes(answer.status)) {
        this.#problem("every answer is one that was asked for", `${answer.status} ${answer.text.slice(0, 300)}`);
        return { ...answer, tries };
      }
      await Bun.sleep(ASK_AGAIN_MS);
    }
  }

  async #askOnce(path: string, body: object, key: string | null) {
    try {
      const answer = await fetch(this.#options.balancer.url + path, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${OWNER_KEY}`,
          "Content-Type": "application/json",
          ...(key === null ? {} : { "Idempotency-Key": key }),
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      const text = await answer.text();
      if (answer.status === 503 && !answer.headers.has("retry-after")) this.impatient += 1;
      const { id = "" } = answer.ok ? (JSON.parse(text) as { id?: string }) : {};
      return { status: answer.status, id, text };
    } catch {
      return { status: 0, id: "", text: "" };
    }
  }
}
