import { and, eq } from "drizzle-orm";
import { command, type Tables } from "./command.ts";
import { insertList, type Values } from "./lists.ts";

/** The fact that says up to which position of the timeline the figures of the overview are counted. */
export const POSITION_FACT = "activity";

/** The columns of a row of figures. */
export const FIGURES = [
  ...(["accountId", "slotMinutes", "at", "kind", "name", "created", "completed", "failed", "attempts"] as const),
  ...(["failedAttempts", "approved", "rejected", "latency", "waits", "lastError", "lastFailedAt"] as const),
] as const;

const PUT = insertList(
  "activity",
  FIGURES,
  `on conflict (account_id, slot_minutes, at, kind, name) do update set created = excluded.created,
    completed = excluded.completed, failed = excluded.failed, attempts = excluded.attempts,
    failed_attempts = excluded.failed_attempts, approved = excluded.approved, rejected = excluded.rejected,
    latency = excluded.latency, waits = excluded.waits, last_error = excluded.last_error,
    last_failed_at = excluded.last_failed_at`,
);

interface Counted {
  /** The positions from and to which the rows were counted. */
  readonly from: number;
  readonly to: number;
  readonly rows: readonly Values[];
  readonly steps: readonly Tables["firstSteps"]["$inferInsert"][];
}

/** Writes the figures of a part of the timeline; false: another node has counted it. */
export const put = command(async ({ db, tables: { facts, firstSteps }, lists }, { from, to, rows, steps }: Counted) => {
  await db.insert(facts).values({ name: POSITION_FACT, value: "0" }).onConflictDoNothing({ target: facts.name });
  const isNext = and(eq(facts.name, POSITION_FACT), eq(facts.value, String(from)));
  const moved = await db
    .update(facts)
    .set({ value: String(to) })
    .where(isNext)
    .returning({ name: facts.name });
  if (moved.length === 0) return false;
  await lists.insert(PUT, rows);
  if (steps.length > 0)
    await db
      .insert(firstSteps)
      .values([...steps])
      .onConflictDoNothing();
  return true;
});
