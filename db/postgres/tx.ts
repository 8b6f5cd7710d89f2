import type { QueryResult } from "pg";
import { drizzle } from "drizzle-orm/pg-proxy";
import type { Tx } from "../commands/command.ts";
import type { SqlValue } from "../sql/sql.ts";
import { type Query, TELLS, valueOf } from "./chain.ts";
import { tables } from "./schema.ts";

/** A transaction of PostgreSQL as one command has it. Statements after `end` are refused: they would be part of another. */
export function openTx(execute: (query: Query) => Promise<QueryResult>): Tx & { end(): void } {
  let isOver = false;
  const db = drizzle(async (text, params) => {
    if (isOver) throw new Error("The command has ended.");
    // Safe: the columns of the tables encode their values as these.
    const values = (params as SqlValue[]).map(valueOf);
    // Without a name: how many texts there are depends on the lists in them, and the server would keep each.
    const { rows } = await execute({ name: "", text, values, parts: 1, isTold: TELLS.test(text), rowMode: "array" });
    return { rows };
  });
  // Safe: a command uses what the builders of both databases have.
  return { db: db as unknown as Tx["db"], tables, end: () => void (isOver = true) };
}
