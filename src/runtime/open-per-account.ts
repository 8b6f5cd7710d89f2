import { DomainError } from "../core/domain-error.ts";

/** What accounts read step by step: each has at most so many open at a time. */
export class OpenPerAccount {
  readonly #max: number;
  readonly #refusal: string;
  readonly #counts = new Map<string, number>();

  /** `refusal`: what is said of one more. */
  constructor(max: number, refusal: string) {
    this.#max = max;
    this.#refusal = refusal;
  }

  /** The same steps. Throws `rate_limited` at the first. */
  async *during<Step>(accountId: string, steps: AsyncGenerator<Step>): AsyncGenerator<Step> {
    const count = this.#counts.get(accountId) ?? 0;
    if (count >= this.#max) throw new DomainError("rate_limited", this.#refusal);
    this.#counts.set(accountId, count + 1);
    try {
      yield* steps;
    } finally {
      const left = (this.#counts.get(accountId) ?? 1) - 1;
      if (left === 0) this.#counts.delete(accountId);
      else this.#counts.set(accountId, left);
    }
  }
}
