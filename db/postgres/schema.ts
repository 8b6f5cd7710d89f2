/** The tables as PostgreSQL has them, for `drizzle-kit` alone: statements are built with those of `tables.ts`. */
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
import { describeTables, type SQLITE } from "../tables.ts";

/** Text that sorts by its bytes, as in SQLite. */
const text = customType<{ data: string }>({ dataType: () => 'text collate "C"' });
const number = (name?: string) => (name === undefined ? bigint({ mode: "number" }) : bigint(name, { mode: "number" }));

/** How PostgreSQL builds what `SQLITE` of `tables.ts` does. */
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
  /** A function, since its numbers are in the order of commits, which those of a sequence are not. */
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

/**
 * One row: the number added to positions of the timeline, so that they keep rising after a move to another server or back to an
 * earlier state of this one, each of which begins another history of its log.
 */
export const positions = pgTable("positions", {
  id: smallint().primaryKey(),
  base: number("base").notNull(),
  history: text("history").notNull().default(""),
});

/** The processes that serve from this database. The times are by its clock. */
export const nodes = pgTable("nodes", {
  id: text().primaryKey(),
  version: text().notNull(),
  startedAt: number("started_at").notNull(),
  seenAt: number("seen_at").notNull(),
  /** The hosts, as hashes, to which it has more calls in progress than its share. */
  overHosts: text("over_hosts").notNull().default(""),
});

/** Which node may run a periodic job, and until when. */
export const jobs = pgTable("jobs", {
  name: text().primaryKey(),
  nodeId: text("node_id").notNull(),
  until: number("until").notNull(),
});
