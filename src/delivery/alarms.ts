/** As the time of an alarm: none is set. */
export const NEVER = Number.POSITIVE_INFINITY;

/**
 * What waits for a time, earliest first: a binary heap, so that one timer serves any number of lanes. An item has one alarm at
 * most, however often it is set. Only this changes `wakesAtMs`.
 */
export class Alarms<Item extends { wakesAtMs: number }> {
  readonly #heap: Item[] = [];
  /** The place of each item in the heap. */
  readonly #places = new Map<Item, number>();

  /** The earliest time, in milliseconds; null when nothing is set. */
  get earliestMs(): number | null {
    return this.#heap[0]?.wakesAtMs ?? null;
  }

  /** Sets the alarm of an item, unless an earlier one is set. */
  set(item: Item, atMs: number): void {
    if (atMs >= item.wakesAtMs) return;
    item.wakesAtMs = atMs;
    const place = this.#places.get(item) ?? this.#heap.push(item) - 1;
    this.#places.set(item, place);
    this.#moveUp(place);
  }

  /** Removes the alarm of an item, if one is set. */
  remove(item: Item): void {
    const place = this.#places.get(item);
    if (place === undefined) return;
    this.#swap(place, this.#heap.length - 1);
    this.#heap.pop();
    this.#places.delete(item);
    item.wakesAtMs = NEVER;
    // Another item is at this place now, from anywhere in the heap.
    this.#moveUp(place);
    this.#moveDown(place);
  }

  /**
   * Ends the alarms whose time has come, and gives their items in turn: the alarms of those that follow are still set, so that no
   * lane is taken for idle before its turn.
   */
  *run(nowMs: number): Generator<Item> {
    for (let first = this.#heap[0]; first !== undefined && first.wakesAtMs <= nowMs; first = this.#heap[0]) {
      this.remove(first);
      yield first;
    }
  }

  #moveUp(from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#timeAt(parent) <= this.#timeAt(at)) return;
      this.#swap(parent, at);
      at = parent;
    }
  }

  #moveDown(from: number): void {
    let at = from;
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
    return this.#heap[at]?.wakesAtMs ?? NEVER;
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return;
    this.#heap[one] = b;
    this.#heap[other] = a;
    this.#places.set(b, one).set(a, other);
  }
}
