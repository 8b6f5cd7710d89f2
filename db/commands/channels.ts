/** Channels, where an account asks for approval. Where they lead is sealed. */
import { eq } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import { type Channel, CHANNEL_KINDS, type ChannelStore, type ChannelTarget } from "../../src/core/channel.ts";
import { CHANNELS_MAX } from "../../src/core/limits.ts";
import { accountLock } from "../sql/locks.ts";
import { all, countRows, findRow, hasValues, qb } from "../sql/read.ts";
import type { ActionAccess } from "../sql/rows.ts";
import { channels } from "../tables.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command } from "./command.ts";
import { CHANNELS_VERSION, readVersion } from "./facts.ts";

type Row = typeof channels.$inferSelect;

export const addChannel = command(
  async (tx, row: Row, audit: AuditEntry) => {
    if ((await countRows(tx, channels, eq(channels.accountId, row.accountId))) >= CHANNELS_MAX) return "full";
    await tx.db.insert(channels).values(row);
    await addToAudit(tx, audit, CHANNELS_VERSION);
    return "written";
  },
  ({ accountId }) => [accountLock(accountId)],
);

type Change = Partial<Pick<Row, "name" | "sealedConfig" | "remindAfterMinutes" | "enabled">>;

export const changeChannel = command(
  async (tx, accountId: string, id: string, patch: Change, audit: AuditEntry | undefined) => {
    const isChannel = hasValues(channels, { accountId, id });
    const changed = tx.db.update(channels).set(patch).where(isChannel).returning();
    return addIfWritten(tx, changed, audit, CHANNELS_VERSION);
  },
);

export const removeChannel = command<ChannelStore["remove"]>(async (tx, accountId, id, audit) => {
  const removed = tx.db.delete(channels).where(hasValues(channels, { accountId, id })).returning();
  return addIfWritten(tx, removed, audit, CHANNELS_VERSION);
});

export function createChannelStore({ reader, writer, seal }: ActionAccess): ChannelStore {
  const openChannel = ({ sealedConfig, kind, ...row }: Row): Channel => {
    // If the kind was altered, there is no target to send to.
    const known = CHANNEL_KINDS.find((one) => one === kind);
    const target = known === undefined ? NOWHERE : openedTarget(sealedConfig, row.id, seal);
    return { ...row, kind: known ?? "webhook", ...target };
  };
  const sealed = (id: string, { to, url }: ChannelTarget) =>
    seal.seal(JSON.stringify({ to, url }), { ...PLACE, row: id });
  const find = async (accountId: string, id: string): Promise<Channel | null> => {
    const row = await findRow(reader, channels, { accountId, id });
    return row === null ? null : openChannel(row);
  };
  return {
    version: () => readVersion(reader, CHANNELS_VERSION),
    async list(accountId) {
      const isOfAccount = accountId === null ? undefined : eq(channels.accountId, accountId);
      const listed = qb.select().from(channels).where(isOfAccount);
      return (await all(reader, listed.orderBy(channels.accountId, channels.createdAt, channels.id))).map(openChannel);
    },
    find,
    put: ({ to, url, ...row }, audit) =>
      writer.run(addChannel, { ...row, sealedConfig: sealed(row.id, { to, url }) }, audit),
    async change(accountId, id, { target, ...members }, audit) {
      const patch = { ...members, ...(target === undefined ? {} : { sealedConfig: sealed(id, target) }) };
      if (Object.values(patch).every((value) => value === undefined)) return (await find(accountId, id)) !== null;
      return writer.run(changeChannel, accountId, id, patch, audit);
    },
    ...writer.methods({ remove: removeChannel }),
  };
}

const PLACE = { table: "channels", column: "sealed_config" } as const;

const NOWHERE: ChannelTarget = { to: [], url: null };

/** The target of a channel, or none if the row was altered or sealed under another key. */
function openedTarget(sealedConfig: string, id: string, seal: ActionAccess["seal"]): ChannelTarget {
  try {
    // Safe: `sealed` wrote it, and nobody else can seal a text.
    return JSON.parse(seal.open(sealedConfig, { ...PLACE, row: id }).toString("utf8")) as ChannelTarget;
  } catch {
    return NOWHERE;
  }
}
