import type { HeaderSeal } from "./rows.ts";
import type { Sql } from "./sql.ts";
import type { Writer } from "./writer.ts";
import type { Action } from "../../src/actions/action.ts";
import { REFUSED_ROWS_MAX, HELD_PER_KEY_MAX } from "../../src/config/limits.ts";

/** What the statements of this store work with: reads go to `sql`, every write through `writer`. */
export interface StoreContext {
  readonly sql: Sql;
  readonly writer: Writer;
  readonly seal: HeaderSeal;
  readonly recent: WrittenActions;
  readonly heldCounts: HeldCounts;
  readonly refused: Refused;
}

const ACTIONS_MAX = 2_000;

/** A larger body is read from the database when it is claimed, so that memory stays flat: 2,000 of these are 32 MiB. */
const BODY_CHARS_MAX = 16_384;

/**
 * Actions that were written a moment ago and will be claimed in the next. A revision never changes what it holds, so an
 * action of the revision that a claim won is that action: there is nothing here that could be out of date.
 */
export class WrittenActions {
  readonly #actions = new Map<string, Action>();

  /** Keeps a pending action as it was written, but for its last result: a claim does not show it, and it may be large. */
  keep(action: Action): void {
    if (action.dueAt === null || (action.body?.length ?? 0) > BODY_CHARS_MAX) return;
    this.#actions.set(action.id, { ...action, result: null });
    if (this.#actions.size <= ACTIONS_MAX) return;
    for (const oldest of this.#actions.keys()) {
      this.#actions.delete(oldest);
      return;
    }
  }

  /** Gives out an action of this very revision, once. */
  take(id: string, revision: number): Action | null {
    const action = this.#actions.get(id);
    if (action === undefined) return null;
    this.#actions.delete(id);
    return action.revision === revision ? action : null;
  }
}

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

/** Keys that are remembered; the rows of any other are counted anew. */
const KEYS_MAX = 10_000;

interface Count {
  /** No more of the key's actions wait than this, what is being written counted in. */
  atMost: number;
  /** Being written just now: the rows may have them or not. */
  inFlight: number;
  /** Fewer may wait than `atMost` says. */
  isStale: boolean;
  counting: Promise<void> | null;
}

/**
 * How many actions of each key await approval at most, so that a create need not count them: with ten thousand of them that
 * would be its dearest part. The rows are counted where the bound is reached and something has been decided since.
 */
export class HeldCounts {
  readonly #counts = new Map<string, Count>();
  readonly #countRows: (accountId: string, keyId: string) => Promise<number>;

  constructor(countRows: (accountId: string, keyId: string) => Promise<number>) {
    this.#countRows = countRows;
  }

  /**
   * Runs the insert of an action that is held, unless its key has as many waiting as it may: then null. `insert` resolves
   * with whether there is a row more by it.
   */
  async insert(action: Action, insert: () => Promise<boolean>): Promise<boolean | null> {
    const count = this.#of(action);
    // Whoever counts lets all that wait for it go on at once, and there may be room for some of them only.
    while (count.atMost >= HELD_PER_KEY_MAX) {
      if (count.counting === null && !count.isStale) return null;
      await (count.counting ??= this.#recount(action, count));
    }
    count.atMost += 1;
    count.inFlight += 1;
    try {
      const isInserted = await insert();
      if (!isInserted) count.atMost -= 1;
      return isInserted;
    } catch (error) {
      // It may have been written all the same.
      count.isStale = true;
      throw error;
    } finally {
      count.inFlight -= 1;
    }
  }

  /** Hears of a change that was written. */
  changed(before: Action, after: Action): void {
    const isHeld = after.status === "awaiting_approval";
    if (isHeld === (before.status === "awaiting_approval")) return;
    const count = this.#counts.get(nameOf(after));
    if (count === undefined) return;
    if (isHeld) count.atMost += 1;
    else count.isStale = true;
  }

  async #recount({ accountId, keyId }: Action, count: Count): Promise<void> {
    count.isStale = false;
    // Nothing begins to be written before this ends.
    const { inFlight } = count;
    try {
      count.atMost = inFlight + (await this.#countRows(accountId, keyId));
    } catch (error) {
      count.isStale = true;
      throw error;
    } finally {
      count.counting = null;
    }
  }

  #of(action: Action): Count {
    const name = nameOf(action);
    const known = this.#counts.get(name);
    if (known !== undefined) return known;
    const count = { atMost: Number.POSITIVE_INFINITY, inFlight: 0, isStale: true, counting: null };
    this.#counts.set(name, count);
    if (this.#counts.size > KEYS_MAX) this.#forgetOne(name);
    return count;
  }

  #forgetOne(newest: string): void {
    for (const [name, { inFlight, counting }] of this.#counts) {
      if (name === newest || inFlight > 0 || counting !== null) continue;
      this.#counts.delete(name);
      return;
    }
  }
}

function nameOf({ accountId, keyId }: Action): string {
  return `${accountId} ${keyId}`;
}
