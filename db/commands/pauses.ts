import { and, eq, inArray, isNull, lte } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import { PAUSES_MAX } from "../../src/core/limits.ts";
import type { Pause, PauseEnd, Paused } from "../../src/core/pause.ts";
import { pauseLock } from "../sql/locks.ts";
import { addToAudit } from "./audit.ts";
import { command, countRows, hasRow } from "./command.ts";
import { findInForce } from "./in-force.ts";

/** Adds a pause unless one of the same subject is in force. */
export const add = command(
  async (tx, { pause, audit }: Readonly<{ pause: Pause; audit: AuditEntry }>): Promise<Paused> => {
    const { apiKeys, pauses } = tx.tables;
    const { accountId, kind, subject } = pause;
    const found = await findInForce(tx, pause);
    if (found !== undefined) return { kind: "found", pause: found };
    const isInForce = and(eq(pauses.accountId, accountId), isNull(pauses.endedAt));
    if ((await countRows(tx, pauses, isInForce)) >= PAUSES_MAX) return { kind: "too_many" };
    const isKey = and(eq(apiKeys.id, subject), eq(apiKeys.accountId, accountId));
    if (kind === "key" && !(await hasRow(tx, apiKeys, isKey))) return { kind: "no_such_key" };
    await tx.db.insert(pauses).values(pause);
    await addToAudit(tx, audit);
    return { kind: "paused", pause };
  },
  ({ pause }) => [pauseLock(pause.accountId)],
);

/** Ends a pause; returns whether there is such a pause. */
export const end = command(
  async (tx, { accountId, id, at, by, audit }: PauseEnd & Readonly<{ accountId: string; id: string }>) => {
    const { pauses } = tx.tables;
    const isPause = and(eq(pauses.id, id), eq(pauses.accountId, accountId));
    const ended = await tx.db
      .update(pauses)
      .set({ endedAt: at, endedBy: by })
      .where(and(isPause, isNull(pauses.endedAt)))
      .returning({ id: pauses.id });
    if (ended.length === 0) return hasRow(tx, pauses, isPause);
    await addToAudit(tx, audit);
    return true;
  },
);

const PRUNE_ROWS = 500;

/** Deletes pauses that ended until then; returns whether there may be more. */
export const prune = command(async ({ db, tables: { pauses } }, { until }: Readonly<{ until: Date }>) => {
  const ended = db.select({ id: pauses.id }).from(pauses).where(lte(pauses.endedAt, until)).limit(PRUNE_ROWS);
  const pruned = await db.delete(pauses).where(inArray(pauses.id, ended)).returning({ id: pauses.id });
  return pruned.length === PRUNE_ROWS;
});
