import { COUNTED_MAX, HELD_PER_KEY_MAX, HELD_REQUESTERS_SHOWN_MAX } from "../../src/config/limits.ts";
import type { Actor } from "../../src/accounts/roles.ts";
import type { HeldPage, Requester } from "../store.ts";
import { BYTES } from "./find.ts";
import type { StoreContext } from "./context.ts";
import { actionsOf, fittingIds } from "./list.ts";
import type { Sql } from "./sql.ts";

// The extra terms make SQLite use the partial index.
const HELD = `SELECT a.id, ${BYTES} AS bytes FROM actions a
  WHERE a.account_id = ? AND a.status = 'awaiting_approval' AND a.status <> 'completed' AND a.status <> 'active'
  AND a.id > ? ORDER BY a.id LIMIT ?`;

const HELD_BY_KEY = `SELECT a.id, ${BYTES} AS bytes FROM actions a
  WHERE a.account_id = ? AND a.key_id = ? AND a.status = 'awaiting_approval' AND a.id > ? ORDER BY a.id LIMIT ?`;

const IDS_BY_KEY = `SELECT id FROM actions
  WHERE account_id = ? AND key_id = ? AND status = 'awaiting_approval' ORDER BY id LIMIT ? OFFSET ?`;

const COUNT_BY_KEY = `SELECT count(*) AS count FROM (SELECT 1 FROM actions
  WHERE account_id = ? AND key_id = ? AND status = 'awaiting_approval' LIMIT ?)`;

const HEAD_BY_KEY = `SELECT a.id, a.created_by FROM actions a
  WHERE a.account_id = ? AND a.key_id = ? AND a.status = 'awaiting_approval' ORDER BY a.id LIMIT 1`;

/**
 * Actions awaiting approval, oldest first and bounded in bytes; with a key only those of that key. With several keys a
 * page takes the oldest of each in turn, so that none buries the others.
 */
export async function findHeld(
  db: Pick<StoreContext, "sql" | "seal">,
  accountId: string,
  { after, keyId }: { readonly after: string | null; readonly keyId: string | null },
  limit: number,
): Promise<HeldPage> {
  const { sql } = db;
  const from = placeOf(after);
  const keyIds = keyId === null && (after === null || from !== null) ? await holdingKeys(sql, accountId) : [];
  if (from !== null || keyIds.length > 1) {
    return fairPage(db, { accountId, keyIds, from: from ?? { turn: 1, id: "" } }, limit);
  }
  const found =
    keyId === null
      ? await sql.read({ sql: HELD, args: [accountId, after ?? "", limit + 1] })
      : await sql.read({ sql: HELD_BY_KEY, args: [accountId, keyId, after ?? "", limit + 1] });
  const ids = fittingIds(found, limit);
  const actions = (await actionsOf(db, ids)).toReversed();
  return { actions, after: found.length > ids.length ? (ids.at(-1) ?? null) : null };
}

/** How many actions of each key await approval, up to a bound; the longest waiting key first. */
export async function findRequesters(sql: Sql, accountId: string): Promise<readonly Requester[]> {
  const heads: { readonly id: string; readonly keyId: string; readonly createdBy: Actor }[] = [];
  for (const keyId of await holdingKeys(sql, accountId)) {
    const [head] = await sql.read({ sql: HEAD_BY_KEY, args: [accountId, keyId] });
    if (head !== undefined) heads.push({ id: String(head["id"]), keyId, createdBy: head["created_by"] as Actor });
  }
  const first = heads.toSorted((a, b) => (a.id < b.id ? -1 : 1)).slice(0, HELD_REQUESTERS_SHOWN_MAX);
  return Promise.all(
    first.map(async ({ keyId, createdBy }) => ({
      keyId,
      createdBy,
      count: await countHeld(sql, accountId, keyId, COUNTED_MAX),
    })),
  );
}

/** How many actions of a key await approval, at most `max`. */
export async function countHeld(
  sql: Sql,
  accountId: string,
  keyId: string,
  max: number = HELD_PER_KEY_MAX,
): Promise<number> {
  const [counted] = await sql.read({ sql: COUNT_BY_KEY, args: [accountId, keyId, max] });
  return Number(counted?.["count"] ?? 0);
}

/** A position in the fair order: the first action of every key, then the second of every key, and so on. */
interface Place {
  /** From 1. */
  readonly turn: number;
  readonly id: string;
}

function placeOf(after: string | null): Place | null {
  const [, turn, id] = /^(\d{1,9})\.(.+)$/.exec(after ?? "") ?? [];
  return turn === undefined || id === undefined ? null : { turn: Math.max(1, Number(turn)), id };
}

interface FairQuery {
  readonly accountId: string;
  readonly keyIds: readonly string[];
  readonly from: Place;
}

async function fairPage(
  db: Pick<StoreContext, "sql" | "seal">,
  { accountId, keyIds, from }: FairQuery,
  limit: number,
): Promise<HeldPage> {
  const { sql } = db;
  const places: Place[] = [];
  // A page, one to know whether more follow, and the position itself.
  for (const keyId of keyIds) {
    const rows = await sql.read({ sql: IDS_BY_KEY, args: [accountId, keyId, limit + 2, from.turn - 1] });
    rows.forEach((row, at) => places.push({ turn: from.turn + at, id: String(row["id"]) }));
  }
  const next = places
    .filter(({ turn, id }) => turn > from.turn || id > from.id)
    .toSorted((a, b) => a.turn - b.turn || (a.id < b.id ? -1 : 1))
    .slice(0, limit + 1);
  if (next.length === 0) return { actions: [], after: null };
  const sizes = await sql.read({
    sql: `SELECT a.id, ${BYTES} AS bytes FROM actions a WHERE a.id IN (${next.map(() => "?").join(", ")})`,
    args: next.map(({ id }) => id),
  });
  const byId = new Map(sizes.map((row) => [String(row["id"]), row]));
  const rows = next.map(({ id }) => byId.get(id)).filter((row) => row !== undefined);
  const ids = fittingIds(rows, limit);
  const last = next.findLast(({ id }) => id === ids.at(-1));
  const actions = (await actionsOf(db, ids)).toReversed();
  return { actions, after: last !== undefined && next.length > ids.length ? `${last.turn}.${last.id}` : null };
}

/** The keys with held actions: one index lookup per key. */
async function holdingKeys(sql: Sql, accountId: string): Promise<readonly string[]> {
  const keyIds: string[] = [];
  for (let comparison = ">="; ; comparison = ">") {
    const [row] = await sql.read({
      sql: `SELECT key_id FROM actions WHERE account_id = ? AND status = 'awaiting_approval' AND key_id ${comparison} ?
        ORDER BY key_id LIMIT 1`,
      args: [accountId, keyIds.at(-1) ?? ""],
    });
    if (row === undefined) return keyIds;
    keyIds.push(String(row["key_id"]));
  }
}
