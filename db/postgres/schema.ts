import { sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  check,
  customType,
  type ExtraConfigColumn,
  index,
  type PgColumn,
  pgTable,
  primaryKey,
  smallint,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { describeTables } from "../tables.ts";
import type { SQLITE } from "../libsql/columns.ts";

/** Texts are in the order of their bytes, as in SQLite. */
const text = customType<{ data: string }>({ dataType: () => 'text collate "C"' });
const number = (name?: string) => (name === undefined ? bigint({ mode: "number" }) : bigint(name, { mode: "number" }));

/** How PostgreSQL writes the tables of `tables.ts`, for its migrations: statements are built with those of SQLite. */
const POSTGRES = {
  table: pgTable,
  index,
  uniqueIndex,
  primaryKey,
  check,
  text: (name?: unknown) => (typeof name === "string" ? text(name) : text()),
  number,
  time: number,
  flag: (name: string) => smallint(name),
  json: () => text(),
  serial: () => bigserial({ mode: "number" }).primaryKey(),
  /** The order of a sequence is not the order of commits; this function's is. */
  position: () =>
    bigint({ mode: "number" })
      .primaryKey()
      .default(sql`next_position()`),
  addedOrder: { seq: bigserial({ mode: "number" }).notNull().unique() },
  nullsFirst: (column: ExtraConfigColumn) => column.asc().nullsFirst(),
  inOrder: (id: PgColumn) => [id],
};

// Safe: the builders of both databases have the same methods, and no value is encoded with these.
export const tables = describeTables(POSTGRES as unknown as typeof SQLITE);

/** One row: what is added to the positions of the timeline, so that they rise after a move to another server too. */
export const positions = pgTable("positions", { id: smallint().primaryKey(), base: number("base").notNull() });

/** The processes that serve from this database. Its clock gives the times. */
export const nodes = pgTable("nodes", {
  id: text().primaryKey(),
  version: text().notNull(),
  startedAt: number("started_at").notNull(),
  seenAt: number("seen_at").notNull(),
});

/** Which node runs a periodic job, and until when. */
export const jobs = pgTable("jobs", {
  name: text().primaryKey(),
  nodeId: text("node_id").notNull(),
  until: number("until").notNull(),
});
