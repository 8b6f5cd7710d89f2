import { CLOCK_TOLERANCE_MS } from "../../src/domain/limits.ts";
import type { NotificationKind } from "../../src/domain/owed.ts";
import type { SetBack } from "../../src/ports/store.ts";
import type { Statement } from "./sql.ts";
import type { Writer } from "./writer.ts";

/**
 * A row whose time was written at a moment that is still to come was scheduled before the clock was set back. It is due as
 * much earlier as the clock went back, never before now, and never further away than the step that it was given.
 */
const EARLIER = "due_at = max(?1, min(due_at - ?2, ?1 + due_at - scheduled_at)), scheduled_at = ?1";
const ACTIONS = `UPDATE actions SET ${EARLIER} WHERE status = 'pending' AND id IN
  (SELECT id FROM actions WHERE status = 'pending' AND scheduled_at > ?3 LIMIT ?4)`;
const OUTBOX = `UPDATE outbox SET ${EARLIER} WHERE status = 'pending' AND id IN
  (SELECT id FROM outbox WHERE status = 'pending' AND kind = ?5 AND scheduled_at > ?3 LIMIT ?4)`;

export function rescheduleActions(writer: Writer, setBack: SetBack, limit: number): Promise<number> {
  return written(writer, { sql: ACTIONS, args: argsOf(setBack, limit) });
}

export function rescheduleNotifications(
  writer: Writer,
  kind: NotificationKind,
  setBack: SetBack,
  limit: number,
): Promise<number> {
  return written(writer, { sql: OUTBOX, args: [...argsOf(setBack, limit), kind] });
}

function argsOf({ now, byMs }: SetBack, limit: number): readonly number[] {
  const nowMs = now.getTime();
  // Where nobody saw it happen, a clock that is a little behind was corrected a little.
  return [nowMs, byMs, nowMs + (byMs === 0 ? CLOCK_TOLERANCE_MS : 0), limit];
}

async function written(writer: Writer, statement: Statement): Promise<number> {
  const [done] = await writer.write([statement]);
  return done?.changes ?? 0;
}
