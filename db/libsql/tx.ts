import { getTableName } from "drizzle-orm";
import { drizzle } from "drizzle-orm/sqlite-proxy";
import type { Tx } from "../commands/command.ts";
import { columnsOf, type InsertList, type Lists, type Named, type UpdateList, type Values } from "../commands/lists.ts";
import { compileSelect, once, type Prepared } from "../sql/read.ts";
import type { SqlValue } from "../sql/sql.ts";
import { claimAll } from "./claim.ts";
import { sqliteDialect } from "./dialect.ts";

/** What a statement did: its rows as lists of values, and how many rows it changed. */
export interface Executed {
  readonly rows: readonly (readonly unknown[])[];
  readonly changes: number;
}

/** What a caller needs of a statement. With `nothing`, a later statement may report its error. */
export type Answers = "rows" | "changes" | "nothing";

/** Runs a statement of a transaction once for each of the arguments. */
export type Execute = (sql: string, args: readonly Values[], answers: Answers) => Promise<readonly Executed[]>;

/** A transaction as one command sees it. After `end` it refuses statements, which would be part of another command. */
export function openTx(execute: Execute): Tx & { end(): void } {
  let isOver = false;
  const run: Execute = (sql, args, answers) => {
    if (isOver) throw new Error("The command has ended.");
    return execute(sql, args, answers);
  };
  const db = drizzle(async (sql, params, method) => {
    // Safe: columns encode their values to these types.
    const [outcome] = await run(sql, [params as SqlValue[]], method === "run" ? "changes" : "rows");
    const rows = outcome?.rows ?? [];
    return { rows: [...((method === "get" ? rows[0] : rows) ?? [])] };
  });
  const lists: Lists = {
    async find<Args extends Named, Row>(query: Prepared<Args, Row>, args: readonly Args[]) {
      if (args.length === 0) return [];
      const { text, names, decode } = FIND(query);
      const found = await run(
        text,
        args.map((arg) => names.map((name) => arg[name] ?? null)),
        "rows",
      );
      return found.map(({ rows }) => rows.map((row) => decode(row) as Row));
    },
    async insert(into, rows) {
      const textOf = INSERT(into);
      for (let from = 0; from < rows.length;) {
        const size = ROWS_AT_ONCE.find((each) => each <= rows.length - from) ?? 1;
        await run(textOf(size), [rows.slice(from, from + size).flat()], "nothing");
        from += size;
      }
    },
    async update(what, rows) {
      return rows.length === 0 ? [] : (await run(UPDATE(what), rows, "changes")).map(({ changes }) => changes > 0);
    },
  };
  const { addedOrder } = sqliteDialect;
  return { db, addedOrder, lists, claim: (claims) => claimAll(lists, claims), end: () => void (isOver = true) };
}

const FIND = once(({ build }: Pick<Prepared<never, unknown>, "build">) =>
  compileSelect(build(sqliteDialect), (_, number) => `?${number}`),
);

/** Rows that one statement inserts, each number with a text of its own: a statement costs as much as binding ten values. */
const ROWS_AT_ONCE = [16, 4, 1];

const INSERT = once(({ table, columns, onConflict }: InsertList) => {
  const names = columnsOf(table, columns).map(({ name }) => `"${name}"`);
  const row = `(${names.map(() => "?").join(", ")})`;
  const texts = new Map(
    ROWS_AT_ONCE.map((size) => [
      size,
      `insert into "${getTableName(table)}" (${names.join(", ")}) values ${Array(size).fill(row).join(", ")} ${onConflict}`,
    ]),
  );
  return (size: number) => texts.get(size) ?? "";
});

const UPDATE = once(({ table, set, where, onRefusal }: UpdateList) => {
  const placed = (names: readonly string[]) => columnsOf(table, names).map(({ name }) => `"${name}" = ?`);
  return `update ${onRefusal} "${getTableName(table)}" set ${placed(set).join(", ")} where ${placed(where).join(" and ")}`;
});
