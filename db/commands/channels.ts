import { asc, eq } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import { type Channel, CHANNEL_KINDS, type ChannelStore, type ChannelTarget } from "../../src/core/channel.ts";
import { CHANNELS_MAX } from "../../src/core/limits.ts";
import type { StoreContext } from "../sql/context.ts";
import { hasValues } from "../sql/dialect.ts";
import { accountLock } from "../sql/locks.ts";
import { read } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, countRows, type Tables } from "./command.ts";
import { CHANNELS_VERSION, readFact, setFact } from "./facts.ts";

type Row = Tables["channels"]["$inferSelect"];

interface Written {
  readonly audit: AuditEntry | undefined;
  /** A new random value. */
  readonly version: string;
}

interface Place {
  readonly accountId: string;
  readonly id: string;
}

/** Adds a channel if the account has room for one more; returns whether. */
export const add = command(
  async (tx, { row, audit, version }: Written & { readonly row: Row }) => {
    const { channels } = tx.tables;
    if ((await countRows(tx, channels, eq(channels.accountId, row.accountId))) >= CHANNELS_MAX) return false;
    await tx.db.insert(channels).values(row);
    await addToAudit(tx, audit);
    await setFact(tx, CHANNELS_VERSION, version);
    return true;
  },
  ({ row }) => [accountLock(row.accountId)],
);

type Change = Partial<Pick<Row, "name" | "sealedConfig" | "remindAfterMinutes" | "enabled">>;

/** Changes some members of a channel; returns whether there is such a channel. */
export const change = command(
  async (tx, { accountId, id, patch, audit, version }: Written & Place & { readonly patch: Change }) => {
    const { channels } = tx.tables;
    const isChannel = hasValues(channels, { accountId, id });
    const changed = await tx.db.update(channels).set(patch).where(isChannel).returning({ id: channels.id });
    if (!(await addIfWritten(tx, changed, audit))) return false;
    await setFact(tx, CHANNELS_VERSION, version);
    return true;
  },
);

/** Deletes a channel; returns whether there was one. */
export const remove = command(async (tx, { accountId, id, audit, version }: Written & Place) => {
  const { channels } = tx.tables;
  const removed = await tx.db
    .delete(channels)
    .where(hasValues(channels, { accountId, id }))
    .returning({ id: channels.id });
  if (!(await addIfWritten(tx, removed, audit))) return false;
  await setFact(tx, CHANNELS_VERSION, version);
  return true;
});

const ALL = read({}, ({ db, tables: { channels } }) =>
  db.select().from(channels).orderBy(asc(channels.accountId), asc(channels.createdAt), asc(channels.id)),
);

const OF_ACCOUNT = read({ accountId: "text" }, ({ db, tables: { channels } }, arg) => {
  const ofAccount = db.select().from(channels).where(hasValues(channels, arg));
  return ofAccount.orderBy(asc(channels.createdAt), asc(channels.id));
});

const FIND = read({ accountId: "text", id: "text" }, ({ db, tables: { channels } }, arg) =>
  db.select().from(channels).where(hasValues(channels, arg)),
);

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
  const version = () => crypto.randomUUID();
  return {
    version: async () => (await readFact(reader, CHANNELS_VERSION)) ?? "",
    list: async (accountId) =>
      (await (accountId === null ? ALL.all(reader, {}) : OF_ACCOUNT.all(reader, { accountId }))).map(channelOf),
    find,
    async put({ to, url, ...row }, audit) {
      const sealedRow = { ...row, sealedConfig: sealed(row.id, { to, url }) };
      return (await writer.run(add, { row: sealedRow, audit, version: version() })) ? "written" : "full";
    },
    async change(accountId, id, { target, ...members }, audit) {
      const patch = { ...members, ...(target === undefined ? {} : { sealedConfig: sealed(id, target) }) };
      if (Object.values(patch).every((value) => value === undefined)) return (await find(accountId, id)) !== null;
      return writer.run(change, { accountId, id, patch, audit, version: version() });
    },
    remove: (accountId, id, audit) => writer.run(remove, { accountId, id, audit, version: version() }),
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
