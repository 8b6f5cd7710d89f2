import type { Lock } from "../sql/sql.ts";
import type { Query } from "./queries.ts";

const TEXT = `select case when l.is_exclusive then pg_advisory_xact_lock(l.key) else pg_advisory_xact_lock_shared(l.key) end
  from unnest($1::bigint[], $2::boolean[]) as l(key, is_exclusive)`;

const NAME = "og_locks";

/**
 * Takes all locks of a transaction until it ends, in one order, so that two transactions never wait for each other. A
 * lock is the number that a digest of its name begins with: two names with one number only wait more than they need.
 */
export function lockQuery(locks: readonly Lock[]): Query | null {
  if (locks.length === 0) return null;
  const isExclusive = new Map<bigint, boolean>();
  for (const { name, mode } of locks) {
    const key = keyOf(name);
    isExclusive.set(key, mode === "exclusive" || isExclusive.get(key) === true);
  }
  const sorted = [...isExclusive].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const values = [sorted.map(([key]) => String(key)), sorted.map(([, exclusive]) => (exclusive ? "t" : "f"))];
  return { name: NAME, text: TEXT, values };
}

function keyOf(name: string): bigint {
  return new Bun.CryptoHasher("sha256").update(name).digest().readBigInt64BE();
}

/** The lock of a start: migrations, and the base of positions. */
export const START_LOCK = String(keyOf("start"));
