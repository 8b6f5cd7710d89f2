import type { SealedStore, SealedText } from "../../src/ports/sealed-store.ts";
import type { StoreContext } from "./hands.ts";

/** Every column that holds sealed texts, each in a table whose rows are named by `id`; a test finds one that is missing. */
const SEALED = [
  { table: "accounts", column: "sealed_root_secret" },
  { table: "signing_seeds", column: "sealed_seed" },
  { table: "actions", column: "sealed_headers" },
] as const;

/** Sealed texts wherever they stand, for a change of the key. */
export function createSealedStore({ sql, writer }: Pick<StoreContext, "sql" | "writer">): SealedStore {
  return {
    async find(keyId, after, limit) {
      const found: SealedText[] = [];
      for (const { table, column } of SEALED.slice(Math.max(0, placeAt(after)))) {
        const isBegun = after !== null && after.table === table && after.column === column;
        const rows = await sql.read({
          sql: `SELECT id, ${column} AS sealed FROM ${table}
            WHERE id > ? AND ${column} IS NOT NULL AND substr(${column}, 1, ?) <> ? ORDER BY id LIMIT ?`,
          args: [isBegun ? after.row : "", keyId.length + 1, `${keyId}.`, limit - found.length],
        });
        for (const { id, sealed } of rows)
          found.push({ place: { table, row: String(id), column }, sealed: String(sealed) });
        if (found.length >= limit) break;
      }
      return found;
    },
    async replace(replacements) {
      const statements = replacements.map(({ place, sealed, by }) => {
        const { table, column } = columnOf(place);
        // The old text is the guard: what has changed meanwhile is not written over.
        const text = `UPDATE ${table} SET ${column} = ? WHERE id = ? AND ${column} = ?`;
        return { sql: text, args: [by, place.row, sealed] };
      });
      await writer.write(statements);
    },
  };
}

function placeAt(place: SealedText["place"] | null): number {
  return SEALED.findIndex(({ table, column }) => table === place?.table && column === place.column);
}

/** From the table above: a name of a table or column is never an argument of a statement. */
function columnOf(place: SealedText["place"]): (typeof SEALED)[number] {
  const known = SEALED[placeAt(place)];
  if (known === undefined) throw new Error(`${place.table}.${place.column} holds no sealed texts.`);
  return known;
}
