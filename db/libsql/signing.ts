import type { SigningSeed, SigningStore } from "../../src/ports/signing-store.ts";
import type { Hands } from "./hands.ts";
import type { Row } from "./sql.ts";

/** One signs and one is about to go: no origin has more. */
const SEEDS_KEPT = 2;
/** How the rows of all origins name theirs. */
const EVERY_ORIGIN = "";

const ADD = `INSERT INTO signing_seeds (id, account_id, origin, sealed_seed, rotated_at) VALUES (?, ?, ?, ?, ?)`;
const FORGET = `DELETE FROM signing_seeds WHERE account_id = ? AND origin = ? AND seq <=
  (SELECT seq FROM signing_seeds WHERE account_id = ? AND origin = ? ORDER BY seq DESC LIMIT 1 OFFSET ${SEEDS_KEPT})`;
const OF_ORIGIN = `SELECT * FROM (SELECT * FROM signing_seeds WHERE account_id = ? AND origin = ? ORDER BY seq DESC LIMIT ${SEEDS_KEPT})`;
const NEWEST = `${OF_ORIGIN} UNION ALL ${OF_ORIGIN}`;

/** Seeds of signing secrets. A rotation is one commit: a crash leaves the old secrets or the new. */
export function createSigningStore({ sql, writer }: Pick<Hands, "sql" | "writer">): SigningStore {
  return {
    async rotate({ id, accountId, origin, sealedSeed, rotatedAt }) {
      const place = [accountId, origin ?? EVERY_ORIGIN];
      await writer.write([
        { sql: ADD, args: [id, ...place, sealedSeed, rotatedAt.getTime()] },
        { sql: FORGET, args: [...place, ...place] },
      ]);
    },
    async seeds(accountId, origin) {
      const rows = await sql.read({ sql: NEWEST, args: [accountId, origin, accountId, EVERY_ORIGIN] });
      const newestFirst = rows.toSorted((one, other) => Number(other["seq"]) - Number(one["seq"]));
      return newestFirst.slice(0, SEEDS_KEPT).map(seedOf);
    },
  };
}

function seedOf(row: Row): SigningSeed {
  return {
    id: String(row["id"]),
    accountId: String(row["account_id"]),
    origin: row["origin"] === EVERY_ORIGIN ? null : String(row["origin"]),
    sealedSeed: String(row["sealed_seed"]),
    rotatedAt: new Date(Number(row["rotated_at"])),
  };
}
