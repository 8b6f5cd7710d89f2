import type { SigningUse } from "../../src/domain/signing-use.ts";
import type { SigningSeed, SigningStore } from "../../src/ports/signing-store.ts";
import { auditChange } from "./audit.ts";
import type { StoreContext } from "./hands.ts";
import type { Row } from "./sql.ts";

/** One signs and one is about to go: no origin has more. */
const SEEDS_KEPT = 2;
/** How the rows of all origins name theirs: of calls and callbacks, or of one of them. */
const EVERYTHING = "";
const EVERY_ORIGIN = { calls: "calls", callbacks: "callbacks" } as const satisfies Record<SigningUse, string>;
/** Stands before an origin of callbacks; an origin of calls stands as it is, and is none of the words above. */
const CALLBACKS_TO = "callbacks ";

const ADD = `INSERT INTO signing_seeds (id, account_id, origin, sealed_seed, rotated_at) VALUES (?, ?, ?, ?, ?)`;
const FORGET = `DELETE FROM signing_seeds WHERE account_id = ? AND origin = ? AND seq <=
  (SELECT seq FROM signing_seeds WHERE account_id = ? AND origin = ? ORDER BY seq DESC LIMIT 1 OFFSET ${SEEDS_KEPT})`;
const OF_ORIGIN = `SELECT * FROM (SELECT * FROM signing_seeds WHERE account_id = ? AND origin = ? ORDER BY seq DESC LIMIT ${SEEDS_KEPT})`;
const NEWEST = `${OF_ORIGIN} UNION ALL ${OF_ORIGIN} UNION ALL ${OF_ORIGIN}`;
const OVERLAP = "SELECT until FROM callback_overlaps WHERE account_id = ? AND origin = ?";

/** Seeds of signing secrets. A rotation is one commit: a crash leaves the old secrets or the new. */
export function createSigningStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): SigningStore {
  return {
    async rotate({ id, accountId, origin, use, sealedSeed, rotatedAt }, audit) {
      const place = [accountId, placeOf(origin, use)];
      await writer.write([
        { sql: ADD, args: [id, ...place, sealedSeed, rotatedAt.getTime()] },
        ...auditChange(audit),
        { sql: FORGET, args: [...place, ...place] },
      ]);
    },
    async seeds(accountId, origin, use) {
      const places = [placeOf(origin, use), EVERY_ORIGIN[use], EVERYTHING];
      const rows = await sql.read({ sql: NEWEST, args: places.flatMap((place) => [accountId, place]) });
      const newestFirst = rows.toSorted((one, other) => Number(other["seq"]) - Number(one["seq"]));
      return newestFirst.slice(0, SEEDS_KEPT).map(seedOf);
    },
    async callbackOverlap(accountId, origin) {
      const [row] = await sql.read({ sql: OVERLAP, args: [accountId, origin] });
      return row === undefined ? null : new Date(Number(row["until"]));
    },
  };
}

function placeOf(origin: string | null, use: SigningUse | null): string {
  if (origin === null) return use === null ? EVERYTHING : EVERY_ORIGIN[use];
  return use === "callbacks" ? CALLBACKS_TO + origin : origin;
}

/** What `placeOf` was asked for. */
function meantBy(place: string): Pick<SigningSeed, "origin" | "use"> {
  if (place === EVERYTHING) return { origin: null, use: null };
  if (place === EVERY_ORIGIN.calls || place === EVERY_ORIGIN.callbacks) return { origin: null, use: place };
  if (place.startsWith(CALLBACKS_TO)) return { origin: place.slice(CALLBACKS_TO.length), use: "callbacks" };
  return { origin: place, use: "calls" };
}

function seedOf(row: Row): SigningSeed {
  return {
    id: String(row["id"]),
    accountId: String(row["account_id"]),
    ...meantBy(String(row["origin"])),
    sealedSeed: String(row["sealed_seed"]),
    rotatedAt: new Date(Number(row["rotated_at"])),
  };
}
