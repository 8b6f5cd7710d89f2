import { and, type Column, gt, inArray, ne, type SQL, sql } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import type { Notification, NotificationKind } from "../../src/core/notification.ts";
import type { StoreContext } from "./context.ts";
import { isOneOf, readable } from "./dialect.ts";
import { NOTIFICATION_COLUMNS, notificationOf } from "./outbox-rows.ts";
import { type Args, byDialect, prepare, query } from "./query.ts";
import { ACTION_COLUMNS, actionOf } from "./rows.ts";
import { isBrokenAction, isBrokenNotification } from "../tables.ts";
import { actions, outbox } from "../libsql/schema.ts";
import type { Row, SqlValue } from "./sql.ts";
import { POSTGRES_VALUES, SQLITE_VALUES } from "./values.ts";

function allReadable(columns: Readonly<Record<string, Column>>): Readonly<Record<string, SQL.Aliased<SqlValue>>> {
  return Object.fromEntries(
    Object.entries(columns).map(([name, column]) => [name, readable(column).as(column.name)] as const),
  );
}

const IS_BROKEN = byDialect({
  sqlite: isBrokenAction(actions, SQLITE_VALUES),
  postgres: isBrokenAction(actions, POSTGRES_VALUES),
});

const IS_BROKEN_NOTIFICATION = byDialect({
  sqlite: isBrokenNotification(outbox, SQLITE_VALUES),
  postgres: isBrokenNotification(outbox, POSTGRES_VALUES),
});

const BROKEN = prepare((arg: Args<"after" | "limit">) => {
  const broken = query
    .select(allReadable(ACTION_COLUMNS))
    .from(actions)
    .where(and(IS_BROKEN, gt(actions.id, arg.after)));
  return broken.orderBy(actions.id).limit(arg.limit);
});

/** Rows of an unknown kind belong to the callbacks: otherwise no scheduler would find them. */
const BROKEN_NOTIFICATIONS = prepare((arg: Args<"kind" | "after" | "limit">) => {
  const isOfKind = sql`case when ${outbox.kind} in ('mail', 'message') then ${outbox.kind} else 'callback' end = ${arg.kind}`;
  const broken = query.select(allReadable(NOTIFICATION_COLUMNS)).from(outbox);
  return broken
    .where(and(IS_BROKEN_NOTIFICATION, isOfKind, gt(outbox.id, arg.after)))
    .orderBy(outbox.id)
    .limit(arg.limit);
});

const UNFINISHED = prepare((arg: Args<"ids">) =>
  query
    .select(allReadable(ACTION_COLUMNS))
    .from(actions)
    .where(and(isOneOf(actions.id, arg.ids), inArray(actions.status, ["pending", "active", "awaiting_approval"]))),
);

/** An id that is not text can't be addressed: it gets one that can. */
const NAME = prepare(() => {
  const broken = query
    .select({ rowid: sql`rowid`.as("rowid") })
    .from(actions)
    .where(isBrokenAction(actions, SQLITE_VALUES));
  return query
    .update(actions)
    .set({ id: sql`'act_' || lower(hex(${actions.id}))` })
    .where(
      and(
        sql`typeof(${actions.id}) <> 'text'`,
        ne(actions.status, "completed"),
        inArray(sql`${actions}.rowid`, broken),
      ),
    );
});

const NAME_NOTIFICATIONS = prepare(() => {
  const broken = query
    .select({ rowid: sql`rowid`.as("rowid") })
    .from(outbox)
    .where(isBrokenNotification(outbox, SQLITE_VALUES));
  return query
    .update(outbox)
    .set({ id: sql`'row_' || lower(hex(${outbox.id}))` })
    .where(
      and(sql`typeof(${outbox.id}) <> 'text'`, ne(outbox.status, "delivered"), inArray(sql`${outbox}.rowid`, broken)),
    );
});

/** See `Queue.broken`. */
export async function findBroken(
  { sql: reader, writer, seal, refused }: StoreContext,
  limit: number,
  after: string,
): Promise<readonly Action[]> {
  let rows = await BROKEN.readRaw(reader, { limit, after });
  if (rows.some(isNameless)) {
    await writer.write([NAME.bind({})]);
    rows = await BROKEN.readRaw(reader, { limit, after });
  }
  const others = await findRefused({ sql: reader, refused }, limit, after);
  const byId = new Map([...rows, ...others].map((row) => [String(row[actions.id.name]), row]));
  return [...byId.entries()]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .slice(0, limit)
    .map(([, row]) => ({ ...actionOf(row, seal), isAltered: true }));
}

/** See `Queue.broken`. */
export async function findBrokenNotifications(
  { sql: reader, writer }: Pick<StoreContext, "sql" | "writer">,
  kind: NotificationKind,
  { limit, after }: { readonly limit: number; readonly after: string },
): Promise<readonly Notification[]> {
  const values = { kind, limit, after };
  let rows = await BROKEN_NOTIFICATIONS.readRaw(reader, values);
  if (rows.some(isNameless)) {
    await writer.write([NAME_NOTIFICATIONS.bind({})]);
    rows = await BROKEN_NOTIFICATIONS.readRaw(reader, values);
  }
  return rows.map((row) => ({ ...notificationOf(row), isAltered: true }));
}

function isNameless(row: Row): boolean {
  return typeof row[actions.id.name] !== "string";
}

/** Rows that the database refused to write and that are not final. */
async function findRefused(
  { sql: reader, refused }: Pick<StoreContext, "sql" | "refused">,
  limit: number,
  after: string,
) {
  const ids = refused.after(after, limit);
  if (ids.length === 0) return [];
  const rows = await UNFINISHED.readRaw(reader, { ids: JSON.stringify(ids) });
  const found = new Set(rows.map((row) => row[actions.id.name]));
  for (const id of ids) if (!found.has(id)) refused.delete(id);
  return rows;
}
