/** As the time of an alarm: none is set. */
export const NEVER = Number.POSITIVE_INFINITY;

interface Alarm<Item> {
  readonly atMs: number;
  readonly item: Item;
}

/**
 * What waits for a time, earliest first: a binary heap, so that one timer serves any number of lanes. Entries are never
 * removed early, so an item may have several; the time in the item applies.
 */
export class Alarms<Item extends { wakesAtMs: number }> {
  readonly #heap: Alarm<Item>[] = [];

  /** The earliest time, in milliseconds; null when nothing is set. */
  get earliestMs(): number | null {
    return this.#heap[0]?.atMs ?? null;
  }

  /** Sets the alarm of an item, unless an earlier one is set. */
  set(item: Item, atMs: number): void {
    if (atMs >= item.wakesAtMs) return;
    item.wakesAtMs = atMs;
    const heap = this.#heap;
    let at = heap.push({ item, atMs }) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#timeAt(parent) <= this.#timeAt(at)) break;
      this.#swap(parent, at);
      at = parent;
    }
  }

  /**
   * Ends the alarms whose time has come, and gives their items in turn: the alarms of those that follow are still set, so that no
   * lane is taken for idle before its turn.
   */
  *run(nowMs: number): Generator<Item> {
    for (let first = this.#heap[0]; first !== undefined && first.atMs <= nowMs; first = this.#heap[0]) {
      this.#removeFirst();
      if (first.item.wakesAtMs > nowMs) continue;
      first.item.wakesAtMs = NEVER;
      yield first.item;
    }
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (heap.length > 0 && last !== undefined) heap[0] = last;
    let at = 0;
    while (true) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const least = this.#timeAt(right) < this.#timeAt(left) ? right : left;
      if (this.#timeAt(at) <= this.#timeAt(least)) return;
      this.#swap(at, least);
      at = least;
    }
  }

  /** Infinity beyond the end of the heap. */
  #timeAt(at: number): number {
    return this.#heap[at]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return;
    this.#heap[one] = b;
    this.#heap[other] = a;
  }
}
