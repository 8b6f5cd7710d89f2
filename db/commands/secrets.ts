/** All sealed texts of the database, for a change of the master key. */
import { and, asc, getTableColumns, getTableName, gt, sql } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { SealedStore, SealedText } from "../../src/core/account-store.ts";
import { all, qb } from "../sql/read.ts";
import type { StoreAccess } from "../sql/writer.ts";
import { tables } from "../tables.ts";
import { command, type UpdateList } from "./command.ts";

/** All columns with sealed texts: those named `sealed_…`, in tables with an id. */
const SEALED = Object.values<SQLiteTable>(tables).flatMap((table) => {
  const columns = getTableColumns(table);
  return Object.entries(columns).flatMap(([member, column]) => {
    const { id } = columns;
    if (id === undefined || !column.name.startsWith("sealed_")) return [];
    // The condition includes the old text, so that a later change is not overwritten.
    const update: UpdateList = { table, set: [member], where: ["id", member], onRefusal: "" };
    return [{ table, id, column, update, place: { table: getTableName(table), column: column.name } }];
  });
});

export const replaceSealedTexts = command<SealedStore["replace"]>(async ({ lists }, replacements) => {
  for (const [{ update }, texts] of Map.groupBy(replacements, ({ place }) => sealedAt(place))) {
    await lists.update(
      update,
      texts.map(({ place, sealed, by }) => [by, place.row, sealed]),
    );
  }
});

export function createSealedStore({ reader, writer }: StoreAccess): SealedStore {
  return {
    ...writer.methods({ replace: replaceSealedTexts }),
    async find(keyId, after, limit) {
      const prefix = `${keyId}.`;
      const found: SealedText[] = [];
      const from = after === null ? 0 : SEALED.indexOf(sealedAt(after));
      for (const [at, { table, id, column, place }] of SEALED.slice(from).entries()) {
        const isOther = sql`${column} is not null and substr(${column}, 1, ${prefix.length}) <> ${prefix}`;
        const others = qb
          .select({ row: sql<string>`${id}`.as("row"), sealed: sql<string>`${column}`.as("sealed") })
          .from(table)
          .where(and(gt(id, after !== null && at === 0 ? after.row : ""), isOther));
        for (const one of await all(reader, others.orderBy(asc(id)).limit(limit - found.length))) {
          found.push({ place: { ...place, row: one.row }, sealed: one.sealed });
        }
        if (found.length >= limit) break;
      }
      return found;
    },
  };
}

function sealedAt({ table, column }: SealedText["place"]): (typeof SEALED)[number] {
  const known = SEALED.find(({ place }) => place.table === table && place.column === column);
  if (known === undefined) throw new Error(`${table}.${column} holds no sealed texts.`);
  return known;
}
