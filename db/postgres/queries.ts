/** Queries as PostgreSQL gets them: names of prepared statements, texts, locks. */
import { RESTORED_POSITIONS } from "../../src/core/limits.ts";
import type { Lock } from "../sql/locks.ts";
import type { SqlValue, Statement } from "../sql/dialect.ts";

export interface Query {
  /** The name of a prepared statement, or empty. A digest of its text, so that no pooler has another with this name. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly (SqlValue | readonly (string | null)[])[];
  /** Rows as lists of values instead of objects. */
  readonly rowMode?: "array";
}

export function toQuery({ sql, args, isVaried = false }: Statement): Query {
  const isPrepared = !isVaried || mayPrepare(sql);
  return isPrepared ? { ...named(sql), values: args.map(escapeValue) } : unprepared(sql, args);
}

export function unprepared(text: string, args: readonly SqlValue[] = []): Query {
  return { name: "", text, values: args.map(escapeValue) };
}

/**
 * How many statements are prepared whose texts depend on what callers ask for. A connection of PostgreSQL keeps 0.1 MB for each text,
 * and there are thousands of combinations of filters. Planning one each time costs a millisecond or two.
 */
const VARIED_PREPARED_MAX = 100;

const variedPrepared = new Set<string>();

function mayPrepare(text: string): boolean {
  if (variedPrepared.size < VARIED_PREPARED_MAX) variedPrepared.add(text);
  return variedPrepared.has(text);
}

/** How many characters of the digest a name has. PostgreSQL reads 63 characters of a name. */
const NAME_CHARS = 32;

const names = new Map<string, string>();

/** More names than the store has statements. */
const NAMES_MAX = 2_000;

export function named(text: string): Pick<Query, "name" | "text"> {
  const name =
    names.get(text) ?? `og_${new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, NAME_CHARS)}`;
  if (names.size < NAMES_MAX) names.set(text, name);
  return { name, text };
}

/**
 * Hides the length of an array from the planner. If it saw a short one, it would take a plan for these values to be cheaper
 * than a general one, and plan the statement at each run, which takes longer than running it.
 */
export function unseen(array: string): string {
  return `(select ${array})`;
}

export function escapeValue(value: SqlValue): SqlValue {
  return typeof value === "string" ? escapeText(value) : value;
}

/**
 * PostgreSQL's texts can't contain U+0000. It is stored as U+001A and "0", and U+001A itself, which is as rare, as U+001A and
 * "1". So different texts stay different, and every text is read back as it was.
 */
const ESCAPE = "\u001a";

export function escapeText(text: string): string {
  if (!text.includes("\0") && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll("\0", `${ESCAPE}0`);
}

export function unescapeText(text: string): string {
  if (!text.includes(ESCAPE)) return text;
  return text.replaceAll(`${ESCAPE}0`, "\0").replaceAll(`${ESCAPE}1`, ESCAPE);
}

const TEXT = `select case when l.is_exclusive then pg_advisory_xact_lock(l.key) else pg_advisory_xact_lock_shared(l.key) end
  from unnest($1::bigint[], $2::boolean[]) as l(key, is_exclusive)`;

const NAME = "og_locks";

/**
 * Takes the locks of a transaction in a fixed order, so that no two transactions wait for each other, and holds them until its
 * end. A lock is a number from the digest of its name; two names with the same number would only wait needlessly.
 */
export function lockQuery(locks: readonly Lock[]): Query | null {
  if (locks.length === 0) return null;
  const isExclusive = new Map<bigint, boolean>();
  for (const { name, mode } of locks) {
    const key = lockKey(name);
    isExclusive.set(key, mode === "exclusive" || isExclusive.get(key) === true);
  }
  const sorted = [...isExclusive].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const values = [sorted.map(([key]) => String(key)), sorted.map(([, exclusive]) => (exclusive ? "t" : "f"))];
  return { name: NAME, text: TEXT, values };
}

function lockKey(name: string): bigint {
  return new Bun.CryptoHasher("sha256").update(name).digest().readBigInt64BE();
}

/** The lock for migrations and the base of positions, taken at a start. */
export const START_LOCK = String(lockKey("start"));

/**
 * Keeps positions rising: a database that was restored on another server, where transactions have lower numbers, goes on far after
 * its newest position, past those that were given out since the backup.
 */
export const RAISE_BASE = `update positions set base = newest.seq + ${RESTORED_POSITIONS} - newest.xid * 4096
  from (select max(seq) as seq, pg_current_xact_id()::text::bigint as xid from timeline) newest
  where newest.seq >= base + newest.xid * 4096`;
