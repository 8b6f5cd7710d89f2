import { and, asc, eq } from "drizzle-orm";
import { type Channel, CHANNEL_KINDS, type ChannelStore, type ChannelTarget } from "../../src/core/channel.ts";
import type { StoreContext } from "./context.ts";
import * as commands from "../commands/channels.ts";
import { CHANNELS_VERSION } from "../commands/facts.ts";
import { readFact } from "./facts.ts";
import { read } from "./read.ts";
import type { Tables } from "../commands/command.ts";

const ALL = read({}, ({ db, tables: { channels } }) =>
  db.select().from(channels).orderBy(asc(channels.accountId), asc(channels.createdAt), asc(channels.id)),
);

const OF_ACCOUNT = read({ accountId: "text" }, ({ db, tables: { channels } }, arg) =>
  db
    .select()
    .from(channels)
    .where(eq(channels.accountId, arg.accountId))
    .orderBy(asc(channels.createdAt), asc(channels.id)),
);

const FIND = read({ accountId: "text", id: "text" }, ({ db, tables: { channels } }, arg) =>
  db
    .select()
    .from(channels)
    .where(and(eq(channels.accountId, arg.accountId), eq(channels.id, arg.id))),
);

type Row = Tables["channels"]["$inferSelect"];

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
    const row = await FIND.get(reader, { accountId, id });
    return row === null ? null : channelOf(row);
  };
  return {
    version: async () => (await readFact(reader, CHANNELS_VERSION)) ?? "",
    list: async (accountId) =>
      (await (accountId === null ? ALL.all(reader, {}) : OF_ACCOUNT.all(reader, { accountId }))).map(channelOf),
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
