import { and, getTableName, gt, sql } from "drizzle-orm";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type { SealedStore, SealedText } from "../../src/core/account-store.ts";
import { tables as sqliteTables } from "../libsql/schema.ts";
import type { StoreContext } from "../sql/context.ts";
import { read } from "../sql/read.ts";
import { command, type Tables } from "./command.ts";
import { type UpdateList, updateList } from "./lists.ts";

type SealedColumn = Readonly<Record<"id" | "sealed", SQLiteColumn>>;

/** A column with sealed texts. */
function sealedColumn(of: (tables: Tables) => SealedColumn, update: UpdateList) {
  const { sealed: named } = of(sqliteTables);
  return {
    update,
    table: getTableName(named.table),
    column: named.name,
    find: read({ after: "text", prefix: "text", limit: "number" }, ({ db, tables }, arg) => {
      const { id, sealed } = of(tables);
      const isOther = sql`${sealed} is not null and substr(${sealed}, 1, length(${arg.prefix})) <> ${arg.prefix}`;
      return db
        .select({ row: sql<string>`${id}`.as("row"), sealed: sql<string>`${sealed}`.as("sealed") })
        .from(sealed.table)
        .where(and(gt(id, arg.after), isOther))
        .orderBy(id)
        .limit(arg.limit);
    }),
  };
}

/** A later change is not overwritten: the old text is part of the condition. */
const UPDATES = {
  accounts: updateList("accounts", ["sealedRootSecret"], ["id", "sealedRootSecret"]),
  seeds: updateList("signingSeeds", ["sealedSeed"], ["id", "sealedSeed"]),
  actions: updateList("actions", ["sealedHeaders"], ["id", "sealedHeaders"]),
  channels: updateList("channels", ["sealedConfig"], ["id", "sealedConfig"]),
  credentials: updateList("credentials", ["sealedSecret"], ["id", "sealedSecret"]),
  oauth: updateList("oauthArtifacts", ["sealedPayload"], ["id", "sealedPayload"]),
};

/** All columns with sealed texts. A test finds missing ones. */
const SEALED = [
  sealedColumn(({ accounts: { id, sealedRootSecret: sealed } }) => ({ id, sealed }), UPDATES.accounts),
  sealedColumn(({ signingSeeds: { id, sealedSeed: sealed } }) => ({ id, sealed }), UPDATES.seeds),
  sealedColumn(({ actions: { id, sealedHeaders: sealed } }) => ({ id, sealed }), UPDATES.actions),
  sealedColumn(({ channels: { id, sealedConfig: sealed } }) => ({ id, sealed }), UPDATES.channels),
  sealedColumn(({ credentials: { id, sealedSecret: sealed } }) => ({ id, sealed }), UPDATES.credentials),
  sealedColumn(({ oauthArtifacts: { id, sealedPayload: sealed } }) => ({ id, sealed }), UPDATES.oauth),
] as const;

export const replace = command<SealedStore["replace"]>(async ({ lists }, replacements) => {
  for (const [{ update }, texts] of Map.groupBy(replacements, ({ place }) => columnOf(place))) {
    const rows = texts.map(({ place, sealed, by }) => [by, place.row, sealed]);
    await lists.update(update, rows);
  }
});

/** All sealed texts, for a change of the master key. */
export function createSealedStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): SealedStore {
  return {
    async find(keyId, after, limit) {
      const found: SealedText[] = [];
      const from = after === null ? 0 : SEALED.indexOf(columnOf(after));
      for (const [at, { table, column, find }] of SEALED.slice(from).entries()) {
        const values = { after: after !== null && at === 0 ? after.row : "", prefix: `${keyId}.` };
        const rows = await find.all(reader, { ...values, limit: limit - found.length });
        for (const { row, sealed } of rows) found.push({ place: { table, row, column }, sealed });
        if (found.length >= limit) break;
      }
      return found;
    },
    replace: writer.method(replace),
  };
}

function columnOf({ table, column }: SealedText["place"]): (typeof SEALED)[number] {
  const known = SEALED.find((sealed) => sealed.table === table && sealed.column === column);
  if (known === undefined) throw new Error(`${table}.${column} holds no sealed texts.`);
  return known;
}
