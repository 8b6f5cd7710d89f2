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
import type { SQLITE } from "../libsql/schema.ts";
import { describeTables } from "../tables.ts";

/** Texts are in the order of their bytes, as in SQLite. */
const TEXT = 'text collate "C"';
const text = customType<{ data: string }>({ dataType: () => TEXT });
const number = (name?: string) => (name === undefined ? bigint({ mode: "number" }) : bigint(name, { mode: "number" }));
const time = customType<{ data: Date; driverData: number }>({
  dataType: () => "bigint",
  toDriver: (value) => value.getTime(),
  fromDriver: (value) => new Date(value),
});
const flag = customType<{ data: boolean; driverData: number }>({
  dataType: () => "smallint",
  toDriver: Number,
  fromDriver: Boolean,
});
const json = customType<{ data: unknown; driverData: string }>({
  dataType: () => TEXT,
  toDriver: (value) => JSON.stringify(value),
  fromDriver: (value): unknown => JSON.parse(value),
});

/** How PostgreSQL writes the tables of `tables.ts`. */
const POSTGRES = {
  table: pgTable,
  index,
  uniqueIndex,
  primaryKey,
  check,
  text: (name?: unknown) => (typeof name === "string" ? text(name) : text()),
  number,
  time,
  flag,
  json: () => json(),
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

// Safe: the builders of both databases have the same methods, and a column the same type of value.
export const tables = describeTables(POSTGRES as unknown as typeof SQLITE);

/** One row: what is added to the positions of the timeline, so that they rise after a move to another server too. */
export const positions = pgTable("positions", { id: smallint().primaryKey(), base: number("base").notNull() });

/** The processes that serve from this database. Its clock gives the times. */
export const nodes = pgTable("nodes", {
  id: text().primaryKey(),
  version: text().notNull(),
  startedAt: time("started_at").notNull(),
  seenAt: time("seen_at").notNull(),
});

/** Which node runs a periodic job, and until when. */
export const jobs = pgTable("jobs", {
  name: text().primaryKey(),
  nodeId: text("node_id").notNull(),
  until: time("until").notNull(),
});
