import { and, asc, eq } from "drizzle-orm";
import { type Channel, CHANNEL_KINDS, type ChannelStore, type ChannelTarget } from "../../src/core/channel.ts";
import type { StoreContext } from "./context.ts";
import * as commands from "../commands/channels.ts";
import { CHANNELS_VERSION } from "../commands/facts.ts";
import { type Args, prepare, query } from "./query.ts";
import { channels, facts } from "../libsql/schema.ts";

const VERSION = prepare(() => query.select().from(facts).where(eq(facts.name, CHANNELS_VERSION)));

const { accountId: account, id: channelId, createdAt } = channels;

const ALL = prepare(() => query.select().from(channels).orderBy(asc(account), asc(createdAt), asc(channelId)));

const OF_ACCOUNT = prepare((arg: Args<"accountId">) =>
  query.select().from(channels).where(eq(account, arg.accountId)).orderBy(asc(createdAt), asc(channelId)),
);

const isRow = (arg: Args<"accountId" | "id">) => and(eq(account, arg.accountId), eq(channelId, arg.id));

const FIND = prepare((arg: Args<"accountId" | "id">) => query.select().from(channels).where(isRow(arg)));

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
  const find = async (accountId: string, id: string): Promise<Channel | null> => {
    const [row] = await FIND.read(reader, { accountId, id });
    return row === undefined ? null : channelOf(row);
  };
  return {
    version: async () => (await VERSION.read(reader, {}))[0]?.value ?? "",
    list: async (accountId) =>
      (await (accountId === null ? ALL.read(reader, {}) : OF_ACCOUNT.read(reader, { accountId }))).map(channelOf),
    find,
    async put({ to, url, ...row }, audit) {
      const isAdded = await writer.run(commands.add, {
        row: { ...row, sealedConfig: sealed(row.id, { to, url }) },
        audit,
        version: crypto.randomUUID(),
      });
      return isAdded ? "written" : "full";
    },
    async change(accountId, id, { target, ...members }, audit) {
      const patch = { ...members, ...(target === undefined ? {} : { sealedConfig: sealed(id, target) }) };
      if (Object.values(patch).every((value) => value === undefined)) return (await find(accountId, id)) !== null;
      return writer.run(commands.change, { accountId, id, patch, audit, version: crypto.randomUUID() });
    },
    remove: (accountId, id, audit) =>
      writer.run(commands.remove, { accountId, id, audit, version: crypto.randomUUID() }),
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
