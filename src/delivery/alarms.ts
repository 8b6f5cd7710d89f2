interface Alarm {
  readonly atMs: number;
  readonly name: string;
}

/**
 * Names by due time, earliest first: a binary heap, so that one timer serves any number of lanes. Entries are never
 * removed early; the caller checks whether one still applies.
 */
export class Alarms {
  readonly #heap: Alarm[] = [];

  /** The earliest time, in milliseconds; null when nothing is set. */
  get earliestMs(): number | null {
    return this.#heap[0]?.atMs ?? null;
  }

  set(name: string, atMs: number): void {
    const heap = this.#heap;
    let at = heap.push({ name, atMs }) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#timeAt(parent) <= this.#timeAt(at)) break;
      this.#swap(parent, at);
      at = parent;
    }
  }

  /** Removes and returns every name whose time has come. */
  run(nowMs: number): readonly string[] {
    const names: string[] = [];
    while ((this.earliestMs ?? Number.POSITIVE_INFINITY) <= nowMs) names.push(this.#takeFirst());
    return names;
  }

  #takeFirst(): string {
    const heap = this.#heap;
    const name = heap[0]?.name ?? "";
    const last = heap.pop();
    if (heap.length > 0 && last !== undefined) heap[0] = last;
    let at = 0;
    while (true) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const least = this.#timeAt(right) < this.#timeAt(left) ? right : left;
      if (this.#timeAt(at) <= this.#timeAt(least)) return name;
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
