import { isSound, readCopy } from "./database.ts";
import { broken, type FaultReport } from "./report.ts";

/** One call as the target saw it: of which action, and the status that it was answered with. */
export interface Called {
  readonly id: string;
  readonly status: number;
}

interface Told {
  readonly action_id: string;
  readonly run: number;
  readonly type: string;
  readonly status: string;
  readonly retries: number;
}

/** The state machine (spec "States and transitions"), as what may follow on what. */
const LEGAL: Readonly<Record<string, readonly string[]>> = {
  "": ["pending", "awaiting_approval"],
  awaiting_approval: ["awaiting_approval", "pending", "cancelled"],
  pending: ["pending", "active", "cancelled"],
  active: ["active", "pending", "completed", "failed"],
  completed: ["completed"],
  failed: ["failed", "pending", "awaiting_approval"],
  cancelled: ["cancelled", "pending", "awaiting_approval"],
};
const STEPS = new Set([
  "created",
  "held",
  "started",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "attempt",
  "completed",
  "failed",
]);

/** Actions and notifications that are not over and do not wait for a person. */
export function aliveNow(folder: string): number {
  return readCopy(folder, (db) => {
    const count = (table: string) =>
      Number(db.query(`SELECT count(*) AS n FROM ${table} WHERE status IN ('pending', 'active')`).values()[0]?.[0]);
    return count("actions") + count("outbox");
  });
}

/** Holds the rows against what was acknowledged and what the target saw. */
export function judgeHistory(
  folder: string,
  acknowledged: ReadonlySet<string>,
  called: readonly Called[],
): FaultReport {
  return readCopy(folder, (db) => {
    const rows = db.query<{ id: string; status: string }, []>("SELECT id, status FROM actions").all();
    const status = new Map(rows.map((row) => [row.id, row.status]));
    const told = db
      .query<Told, []>(
        `SELECT t.action_id, t.run, t.type, t.status, a.retries FROM timeline t JOIN actions a ON a.id = t.action_id ORDER BY t.seq`,
      )
      .all()
      .filter(({ type }) => STEPS.has(type));
    const calls = Map.groupBy(called, ({ id }) => id);
    const illegal = [...Map.groupBy(told, (one) => one.action_id)].flatMap(([id, steps]) => stepsOutOfLine(id, steps));
    const starts = Map.groupBy(
      told.filter(({ type }) => type === "started"),
      (one) => one.action_id,
    );
    const oversent = [...calls].filter(([id, all]) => all.length > (starts.get(id)?.length ?? 0));
    const overrun = [
      ...Map.groupBy(
        told.filter(({ type }) => type === "started"),
        ({ action_id: id, run }) => `${id} ${run}`,
      ),
    ].filter(([, all]) => all.length > (all[0]?.retries ?? 0));
    const untrue = rows.filter(
      ({ id, status: is }) => is === "completed" && !calls.get(id)?.some((call) => call.status < 300),
    );
    const notifications = db
      .query<{ n: number; open: number }, []>(
        `SELECT count(*) AS n, sum(o.status NOT IN ('delivered', 'given_up')) AS open FROM outbox o`,
      )
      .get();
    const uncalled = db
      .query<{ action_id: string }, []>(
        `SELECT t.action_id FROM timeline t WHERE t.type IN ('completed', 'failed') AND NOT EXISTS
        (SELECT 1 FROM outbox o WHERE o.action_id = t.action_id AND o.revision = t.revision AND o.event = 'action.' || t.type)`,
      )
      .all();
    const lost = [...acknowledged].filter((id) => !status.has(id));
    return {
      figures: { actions: rows.length, lost: lost.length, callbacks: notifications?.n ?? 0 },
      problems: broken({
        "the file is sound": isSound(db),
        [`none that was acknowledged is missing: ${lost.slice(0, 3).join()}`]: lost.length === 0,
        [`legal states only: ${illegal.slice(0, 3).join("; ")}`]: illegal.length === 0,
        [`no more sends than were counted: ${oversent
          .slice(0, 3)
          .map(([id]) => id)
          .join()}`]: oversent.length === 0,
        [`no more attempts in a run than allowed: ${overrun
          .slice(0, 3)
          .map(([id]) => id)
          .join()}`]: overrun.length === 0,
        [`completed means that the target said so: ${untrue
          .slice(0, 3)
          .map(({ id }) => id)
          .join()}`]: untrue.length === 0,
        [`one callback for every end: ${uncalled
          .slice(0, 3)
          .map((one) => one.action_id)
          .join()}`]: uncalled.length === 0,
        "every callback is over": (notifications?.open ?? 0) === 0,
      }),
    };
  });
}

function stepsOutOfLine(id: string, steps: readonly Told[]): readonly string[] {
  let before = "";
  return steps.flatMap(({ status }) => {
    const isLegal = LEGAL[before]?.includes(status) ?? false;
    const said = isLegal ? [] : [`${id}: ${before} -> ${status}`];
    before = status;
    return said;
  });
}
