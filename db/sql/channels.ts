import { and, asc, eq, sql } from "drizzle-orm";
import {
  type Channel,
  CHANNEL_KINDS,
  type ChannelPatch,
  type ChannelStore,
  type ChannelTarget,
} from "../../src/core/channel.ts";
import { CHANNELS_MAX } from "../../src/core/limits.ts";
import { auditChange } from "./audit.ts";
import type { StoreContext } from "./context.ts";
import { countOf, randomText } from "./dialect.ts";
import { channelLock } from "./locks.ts";
import { type Args, changed, insertWhere, prepare, query, valuesOf } from "./query.ts";
import { channels, facts } from "../libsql/schema.ts";
import type { Statement } from "./sql.ts";

/** The fact that changes with every write, for nodes that cache the channels. */
const VERSION_FACT = "channels";

const VERSION = prepare(() => query.select().from(facts).where(eq(facts.name, VERSION_FACT)));

const NEXT_VERSION = prepare(() =>
  insertWhere(facts, changed, { name: VERSION_FACT, value: randomText }).onConflictDoUpdate({
    target: facts.name,
    set: { value: randomText },
  }),
);

const { accountId: account, id: channelId, createdAt } = channels;

const ALL = prepare(() => query.select().from(channels).orderBy(asc(account), asc(createdAt), asc(channelId)));

const OF_ACCOUNT = prepare((arg: Args<"accountId">) =>
  query.select().from(channels).where(eq(account, arg.accountId)).orderBy(asc(createdAt), asc(channelId)),
);

const isRow = (arg: Args<"accountId" | "id">) => and(eq(account, arg.accountId), eq(channelId, arg.id));

const FIND = prepare((arg: Args<"accountId" | "id">) => query.select().from(channels).where(isRow(arg)));

const ROW = [
  ...(["id", "accountId", "name", "kind", "sealedConfig"] as const),
  ...(["remindAfterMinutes", "enabled", "createdAt", "createdBy"] as const),
] as const;

/** The limit is part of the statement, so racing creates can't exceed it. */
const ADD = prepare((arg: Args<(typeof ROW)[number]>) => {
  const others = sql`(select 1 from ${channels} where ${account} = ${arg.accountId} limit ${CHANNELS_MAX})`;
  return insertWhere(channels, sql`${countOf(others)} < ${CHANNELS_MAX}`, valuesOf(arg, ROW));
});

/** One statement for each member, so that two changes of different members keep each other's. */
const SET_NAME = prepare((arg: Args<"accountId" | "id" | "name">) =>
  query
    .update(channels)
    .set({ name: sql`${arg.name}` })
    .where(isRow(arg)),
);

const SET_CONFIG = prepare((arg: Args<"accountId" | "id" | "sealedConfig">) =>
  query
    .update(channels)
    .set({ sealedConfig: sql`${arg.sealedConfig}` })
    .where(isRow(arg)),
);

const SET_REMINDER = prepare((arg: Args<"accountId" | "id" | "remindAfterMinutes">) =>
  query
    .update(channels)
    .set({ remindAfterMinutes: sql`${arg.remindAfterMinutes}` })
    .where(isRow(arg)),
);

const SET_ENABLED = prepare((arg: Args<"accountId" | "id" | "enabled">) =>
  query
    .update(channels)
    .set({ enabled: sql`${arg.enabled}` })
    .where(isRow(arg)),
);

const REMOVE = prepare((arg: Args<"accountId" | "id">) => query.delete(channels).where(isRow(arg)));

type Row = typeof channels.$inferSelect;

/** Where accounts ask for approval. */
export function createChannelStore({
  sql: reader,
  writer,
  seal,
}: Pick<StoreContext, "sql" | "writer" | "seal">): ChannelStore {
  const channelOf = ({ sealedConfig, kind, ...row }: Row): Channel => {
    // An altered kind leaves nowhere to send to.
    const known = CHANNEL_KINDS.find((one) => one === kind);
    const target = known === undefined ? NOWHERE : openedTarget(sealedConfig, row.id, seal);
    return { ...row, kind: known ?? "webhook", ...target };
  };
  const sealed = (id: string, { to, url }: ChannelTarget) =>
    seal.seal(JSON.stringify({ to, url }), { ...PLACE, row: id });
  /** Whether the first statement wrote a row. */
  const isWritten = async ([first, ...others]: readonly Statement[]): Promise<boolean> => {
    if (first === undefined) return false;
    const [written] = await writer.write([first, ...others, NEXT_VERSION.bind({})]);
    return written?.changes === 1;
  };
  const setters = (accountId: string, id: string, patch: ChannelPatch): readonly Statement[] => {
    const { name, target, remindAfterMinutes, enabled } = patch;
    const row = { accountId, id };
    return [
      ...(name === undefined ? [] : [SET_NAME.bind({ ...row, name })]),
      ...(target === undefined ? [] : [SET_CONFIG.bind({ ...row, sealedConfig: sealed(id, target) })]),
      ...(remindAfterMinutes === undefined ? [] : [SET_REMINDER.bind({ ...row, remindAfterMinutes })]),
      ...(enabled === undefined ? [] : [SET_ENABLED.bind({ ...row, enabled })]),
    ];
  };
  const find = async (accountId: string, id: string): Promise<Channel | null> => {
    const [row] = await FIND.read(reader, { accountId, id });
    return row === undefined ? null : channelOf(row);
  };
  return {
    version: async () => (await VERSION.read(reader, {}))[0]?.value ?? "",
    list: async (accountId) =>
      (await (accountId === null ? ALL.read(reader, {}) : OF_ACCOUNT.read(reader, { accountId }))).map(channelOf),
    find,
    async add({ to, url, ...row }, audit) {
      const added = ADD.bind({ ...row, sealedConfig: sealed(row.id, { to, url }) });
      const [written] = await writer.write(
        [added, ...auditChange(audit), NEXT_VERSION.bind({})],
        [channelLock(row.accountId)],
      );
      return written?.changes === 1 ? "added" : "full";
    },
    async change(accountId, id, patch, audit) {
      const changes = setters(accountId, id, patch);
      if (changes.length === 0) return (await find(accountId, id)) !== null;
      return isWritten([...changes, ...auditChange(audit)]);
    },
    remove: (accountId, id, audit) => isWritten([REMOVE.bind({ accountId, id }), ...auditChange(audit)]),
  };
}

const PLACE = { table: "channels", column: "sealed_config" } as const;

const NOWHERE: ChannelTarget = { to: [], url: null };

/** Where it goes; nowhere if the row was altered or sealed under another key. */
function openedTarget(sealedConfig: string, id: string, seal: StoreContext["seal"]): ChannelTarget {
  try {
    // Safe: written by `sealed` above, and nobody else can seal a text.
    return JSON.parse(seal.open(sealedConfig, { ...PLACE, row: id }).toString("utf8")) as ChannelTarget;
  } catch {
    return NOWHERE;
  }
}
