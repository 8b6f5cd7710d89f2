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
