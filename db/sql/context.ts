import type { HeaderSeal } from "./rows.ts";
import type { Sql } from "./sql.ts";
import type { Writer } from "./writer.ts";
import { type Action, largeBytesOf } from "../../src/core/action.ts";
import { HELD_PER_KEY_MAX } from "../../src/core/limits.ts";

/** What the store's functions share: reads use `sql`, every write goes through `writer`. */
export interface StoreContext {
  readonly sql: Sql;
  readonly writer: Writer;
  readonly seal: HeaderSeal;
  /** Null: other processes create too, so that each create counts by itself. */
  readonly heldCounts: HeldCounts | null;
  readonly written: WrittenActions;
}

/** 32 MiB at most: large actions are read again at the claim. */
const WRITTEN_ACTIONS_MAX = 2_000;

/**
 * Actions that were just written and will be claimed next: reading them back, and opening their headers, would cost more
 * than the rest of a claim (0.04 of the bench's share). A revision never changes, so an entry of the claimed one is never stale.
 */
export class WrittenActions {
  readonly #actions = new Map<string, Action>();

  /** Keeps a pending action without its last result, which a claim does not return and which may be large. */
  keep(action: Action): void {
    if (action.dueAt === null || largeBytesOf(action) !== undefined) return;
    this.#actions.set(action.id, { ...action, result: null });
    if (this.#actions.size <= WRITTEN_ACTIONS_MAX) return;
    for (const oldest of this.#actions.keys()) {
      this.#actions.delete(oldest);
      return;
    }
  }

  /** Removes and returns an action of exactly this revision. */
  take(id: string, revision: number): Action | null {
    const action = this.#actions.get(id);
    if (action === undefined) return null;
    this.#actions.delete(id);
    return action.revision === revision ? action : null;
  }
}

/** Keys that are cached; for others the rows are counted again. */
const KEYS_MAX = 10_000;

interface Count {
  /** Upper bound of the key's held actions, including those being written. */
  atMost: number;
  /** Being written now: a count of rows may or may not include them. */
  inFlight: number;
  /** There may be fewer than `atMost`. */
  isStale: boolean;
  counting: Promise<void> | null;
}

/**
 * Upper bounds of how many actions of each key await approval. Counting rows at every create would be its most
 * expensive part, so they are counted only when the bound is reached and a decision was made since.
 */
export class HeldCounts {
  readonly #counts = new Map<string, Count>();
  readonly #countRows: (accountId: string, keyId: string) => Promise<number>;

  constructor(countRows: (accountId: string, keyId: string) => Promise<number>) {
    this.#countRows = countRows;
  }

  /**
   * Runs the create of a held action; null without running it when its key has `HELD_PER_KEY_MAX` held actions.
   */
  async create<Outcome extends { readonly kind: string }>(
    action: Action,
    create: () => Promise<Outcome>,
  ): Promise<Outcome | null> {
    const count = this.#of(action);
    // All waiters continue after a count, and there may be room for some of them only.
    while (count.atMost >= HELD_PER_KEY_MAX) {
      if (count.counting === null && !count.isStale) return null;
      await (count.counting ??= this.#recount(action, count));
    }
    count.atMost += 1;
    count.inFlight += 1;
    try {
      const outcome = await create();
      if (outcome.kind !== "created") count.atMost -= 1;
      return outcome;
    } catch (error) {
      // It may have been committed all the same.
      count.isStale = true;
      throw error;
    } finally {
      count.inFlight -= 1;
    }
  }

  /** Call it after every written change. */
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
    // No insert of this key begins before this ends.
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
