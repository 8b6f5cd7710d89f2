/** How much is open under each name: how many things, or how many bytes. A name with nothing takes no memory. */
export class Counts {
  readonly #counts = new Map<string, number>();

  /** How many names have something. */
  get size(): number {
    return this.#counts.size;
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  has(name: string): boolean {
    return this.#counts.has(name);
  }

  add(name: string, amount = 1): void {
    this.#counts.set(name, this.of(name) + amount);
  }

  remove(name: string, amount = 1): void {
    const left = this.of(name) - amount;
    if (left > 0) this.#counts.set(name, left);
    else this.#counts.delete(name);
  }
}

/** A map with the entries that were set last, at most so many: setting one makes it the newest and may drop the oldest. */
export class RecentMap<Value> extends Map<string, Value> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override set(name: string, value: Value): this {
    this.delete(name);
    super.set(name, value);
    if (this.size <= this.#max) return this;
    const [oldest] = this.keys();
    if (oldest !== undefined) this.delete(oldest);
    return this;
  }
}
