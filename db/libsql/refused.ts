import { REFUSED_ROWS_MAX } from "../../src/domain/limits.ts";

/** Ids of rows that the database refused to write as they are: they are ended before long, with those that it can find. */
export class Refused {
  readonly #ids = new Set<string>();

  add(id: string): void {
    // Of more than these the others are refused again at their next claim.
    if (this.#ids.size < REFUSED_ROWS_MAX) this.#ids.add(id);
  }

  delete(id: string): void {
    this.#ids.delete(id);
  }

  /** In their order, behind the one given. */
  after(id: string, limit: number): readonly string[] {
    if (this.#ids.size === 0) return [];
    return [...this.#ids]
      .filter((one) => one > id)
      .toSorted()
      .slice(0, limit);
  }
}
