import { and, eq } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import { CHANNELS_MAX } from "../../src/core/limits.ts";
import { channelLock } from "../sql/locks.ts";
import { addToAudit } from "./audit.ts";
import { command, countRows, type Tables } from "./command.ts";
import { CHANNELS_VERSION, setFact } from "./facts.ts";

type Row = Tables["channels"]["$inferInsert"];

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
  ({ row }) => [channelLock(row.accountId)],
);

type Change = Partial<Pick<Row, "name" | "sealedConfig" | "remindAfterMinutes" | "enabled">>;

/** Changes some members of a channel; returns whether there is such a channel. */
export const change = command(
  async (tx, { accountId, id, patch, audit, version }: Written & Place & { readonly patch: Change }) => {
    const { channels } = tx.tables;
    const isChannel = and(eq(channels.accountId, accountId), eq(channels.id, id));
    const changed = await tx.db.update(channels).set(patch).where(isChannel).returning({ id: channels.id });
    if (changed.length === 0) return false;
    await addToAudit(tx, audit);
    await setFact(tx, CHANNELS_VERSION, version);
    return true;
  },
);

/** Deletes a channel; returns whether there was one. */
export const remove = command(async (tx, { accountId, id, audit, version }: Written & Place) => {
  const { channels } = tx.tables;
  const isChannel = and(eq(channels.accountId, accountId), eq(channels.id, id));
  const removed = await tx.db.delete(channels).where(isChannel).returning({ id: channels.id });
  if (removed.length === 0) return false;
  await addToAudit(tx, audit);
  await setFact(tx, CHANNELS_VERSION, version);
  return true;
});
