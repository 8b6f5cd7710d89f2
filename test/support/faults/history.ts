import { broken, type FaultReport } from "./report.ts";
import { words } from "../words.ts";

/** One call as the target saw it: of which action, and the status that it was answered with. */
export interface Called {
  readonly id: string;
  readonly status: number;
}

interface Told {
  readonly seq: number;
  readonly action_id: string;
  readonly run: number;
  readonly revision: number;
  readonly type: string;
  readonly status: string;
  /** JSON of what the event says. */
  readonly detail: string;
}

/** The rows that the promises are judged by; the timeline in the order of its actions' revisions. */
export interface HistoryRows {
  readonly actions: readonly {
    readonly id: string;
    readonly status: string;
    readonly retries: number;
    readonly callback: string | null;
  }[];
  readonly timeline: readonly Told[];
  /** Callbacks alone. */
  readonly outbox: readonly {
    readonly action_id: string;
    readonly revision: number;
    readonly event: string;
    readonly status: string;
  }[];
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
const STEPS = new Set(
  words("created held started not_started approved rejected cancelled retried attempt completed failed"),
);

/** The rows that say what an attempt was answered, in time or late. */
const ANSWERS = new Set(["attempt", "late", "late_result"]);

/** The events that end a run, and the status of their callback. */
const ENDS = new Map([
  ["completed", "completed"],
  ["failed", "failed"],
  ["cancelled", "cancelled"],
  ["rejected", "cancelled"],
]);

/** Holds rows against what was acknowledged and what the target saw. */
export function judgeRows(
  { actions, timeline, outbox }: HistoryRows,
  acknowledged: ReadonlySet<string>,
  called: readonly Called[],
): FaultReport {
  const known = new Map(actions.map((row) => [row.id, row]));
  const told = timeline.filter(({ type }) => STEPS.has(type));
  const calls = Map.groupBy(called, ({ id }) => id);
  const illegal = [...Map.groupBy(told, (one) => one.action_id)].flatMap(([id, steps]) => stepsOutOfLine(id, steps));
  const started = told.filter(({ type }) => type === "started");
  const starts = Map.groupBy(started, (one) => one.action_id);
  const oversent = [...calls].filter(([id, all]) => all.length > (starts.get(id)?.length ?? 0)).map(([id]) => id);
  const withdrawn = Map.groupBy(
    timeline.filter(({ type }) => type === "not_started"),
    runOf,
  );
  const overrun = [...Map.groupBy(started, runOf)]
    .filter(([run, all]) => {
      const allowed = known.get(all[0]?.action_id ?? "")?.retries ?? 0;
      return all.length - (withdrawn.get(run)?.length ?? 0) > allowed;
    })
    .map(([run]) => run);
  const untrue = actions
    .filter(({ id, status }) => status === "completed" && !calls.get(id)?.some((call) => call.status < 300))
    .map(({ id }) => id);
  const owed = new Set(outbox.map(({ action_id: id, revision, event }) => `${id} ${revision} ${event}`));
  const uncalled = timeline
    .filter(({ action_id: id }) => (known.get(id)?.callback ?? null) !== null)
    .filter(({ action_id: id, revision, type }) => {
      const end = ENDS.get(type);
      return end !== undefined && !owed.has(`${id} ${revision} action.${end}`);
    });
  const answers = Map.groupBy(
    timeline.filter(({ type, detail }) => ANSWERS.has(type) && detail.includes('"outcome":"answered"')),
    (one) => one.action_id,
  );
  const untold = [...calls].filter(([id, all]) => all.length > (answers.get(id)?.length ?? 0)).length;
  const open = outbox.filter(({ status }) => status !== "delivered" && status !== "given_up").length;
  const lost = [...acknowledged].filter((id) => !known.has(id));
  return {
    figures: { actions: actions.length, lost: lost.length, callbacks: outbox.length, untold },
    problems: broken({
      [`none that was acknowledged is missing: ${some(lost)}`]: lost.length === 0,
      [`legal states only: ${some(illegal)}`]: illegal.length === 0,
      [`no more sends than were counted: ${some(oversent)}`]: oversent.length === 0,
      [`no more attempts in a run than allowed: ${some(overrun)}`]: overrun.length === 0,
      [`completed means that the target said so: ${some(untrue)}`]: untrue.length === 0,
      [`one callback for every end: ${some(uncalled.map((one) => one.action_id))}`]: uncalled.length === 0,
      "every callback is over": open === 0,
    }),
  };
}

function runOf({ action_id: id, run }: Told): string {
  return `${id} ${run}`;
}

/** The first few of them, for a sentence. */
export function some(all: readonly string[]): string {
  return `${all.slice(0, 3).join("; ")}${all.length > 3 ? ` and ${all.length - 3} more` : ""}`;
}

function stepsOutOfLine(id: string, steps: readonly Told[]): readonly string[] {
  let before = "";
  return steps.flatMap(({ status, detail }) => {
    // A late result undoes that its attempt was closed: what follows it is what follows an attempt under way.
    if (detail.includes('"late":"settled"')) before = "active";
    const isLegal = LEGAL[before]?.includes(status) ?? false;
    const said = isLegal ? [] : [`${id}: ${before} -> ${status} in ${steps.map(stepText).join(", ")}`];
    before = status;
    return said;
  });
}

function stepText({ seq, revision, type, status }: Told): string {
  return `${revision} ${type} ${status} at ${seq}`;
}
