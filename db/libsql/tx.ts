import { drizzle } from "drizzle-orm/sqlite-proxy";
import type { Tx } from "../commands/command.ts";
import type { SqlValue, Statement } from "../sql/sql.ts";
import { tables } from "./schema.ts";

/** Runs a statement of a transaction; its rows are lists of values in the order of the columns. */
type Execute = (statement: Statement, method: "run" | "all") => Promise<readonly (readonly unknown[])[]>;

/** A transaction of SQLite as one command has it. Statements after `end` are refused: they would be part of another. */
export function openTx(execute: Execute): Tx & { end(): void } {
  let isOver = false;
  const db = drizzle(async (sql, params, method) => {
    if (isOver) throw new Error("The command has ended.");
    // Safe: the columns of the tables encode their values as these.
    const rows = await execute({ sql, args: params as SqlValue[] }, method === "run" ? "run" : "all");
    return { rows: [...((method === "get" ? rows[0] : rows) ?? [])] };
  });
  return { db, tables, end: () => void (isOver = true) };
}
