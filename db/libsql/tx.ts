/** The transaction of a command on SQLite: for a file (`file.ts`) and for a server (`remote.ts`). */
import { getTableName } from "drizzle-orm";
import { drizzle } from "drizzle-orm/sqlite-proxy";
import { columnsOf, type InsertList, type Named, type Tx, type UpdateList, type Values } from "../commands/command.ts";
import { rowsOf, sqliteDialect, type SqlValue, type Statement, type StatementResult } from "../sql/dialect.ts";
import { compileSelect, once, type Prepared } from "../sql/read.ts";

/** What a statement did: its rows as lists of values, and how many rows it returned or, without any, changed. */
export interface Executed {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  readonly changes: number;
}

/** Runs a statement once for each of the arguments. If it is not awaited, a later statement may report its error. */
export type Execute = (sql: string, args: readonly Values[], isAwaited: boolean) => Promise<readonly Executed[]>;

/** The transaction for one command. After `end`, it refuses statements, which would be part of another command. */
export function openTx(execute: Execute): Tx & { end(): void } {
  let isOver = false;
  const runEach: Execute = (sql, args, isAwaited) => {
    if (isOver) throw new Error("The command has ended.");
    return execute(sql, args, isAwaited);
  };
  const run = async ({ sql, args }: Statement): Promise<StatementResult> => {
    const [done = NOTHING] = await runEach(sql, [args], true);
    return { rows: rowsOf(done.columns, done.rows), changes: done.changes };
  };
  const db = drizzle(async (sql, params) => {
    // Safe: columns encode their values to these types.
    const [done = NOTHING] = await runEach(sql, [params as SqlValue[]], true);
    return { rows: [...done.rows] };
  });
  return {
    dialect: sqliteDialect,
    read: async (statement) => (await run(statement)).rows,
    run,
    db,
    lists: {
      async find<Args extends Named, Row>(query: Prepared<Args, Row>, args: readonly Args[]) {
        if (args.length === 0) return [];
        const { text, names, decode } = FIND(query);
        const values = args.map((arg) => names.map((name) => arg[name] ?? null));
        const found = await runEach(text, values, true);
        return found.map(({ rows }) => rows.map((row) => decode(row) as Row));
      },
      async insert(into, rows) {
        const insertText = INSERT(into);
        for (let from = 0; from < rows.length;) {
          const size = ROWS_AT_ONCE.find((each) => each <= rows.length - from) ?? 1;
          await runEach(insertText(size), [rows.slice(from, from + size).flat()], false);
          from += size;
        }
      },
      async update(what, rows) {
        return rows.length === 0 ? [] : (await runEach(UPDATE(what), rows, true)).map(({ changes }) => changes > 0);
      },
    },
    claim: null,
    end: () => void (isOver = true),
  };
}

const NOTHING: Executed = { columns: [], rows: [], changes: 0 };

const FIND = once(({ build }: Pick<Prepared<never, unknown>, "build">) =>
  compileSelect(build(sqliteDialect), (_, number) => `?${number}`),
);

/** How many rows one statement inserts, with a text for each number: a statement costs as much as binding ten values. */
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
