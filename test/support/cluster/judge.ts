import { judgeRows, some, type HistoryRows } from "../faults/history.ts";
import { broken, type FaultReport } from "../faults/report.ts";
import type { Follower } from "./follower.ts";
import type { Load } from "./load.ts";
import type { Arrival, Witness } from "./witness.ts";

interface Judged {
  readonly rows: HistoryRows;
  readonly load: Pick<Load, "acknowledged" | "approvedMs" | "decisions" | "problems" | "impatient" | "statuses">;
  readonly witness: Pick<Witness, "arrivals" | "callbacks">;
}

/** The first event of each change: what the stream tells. */
const CHANGES = new Set([
  "created",
  "started",
  "not_started",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "attempt",
]);

type Told = HistoryRows["timeline"][number];

/**
 * What many nodes on one database promise together, held against what clients were answered, what the target and the
 * receiver of callbacks saw, and what is stored. For a load whose actions nobody retries by hand.
 */
export function judgeCluster({ rows, load, witness }: Judged): FaultReport {
  const { arrivals, callbacks } = witness;
  const told = Map.groupBy(rows.timeline, ({ action_id: id }) => id);
  const calls = Map.groupBy(arrivals, ({ id }) => id);
  const retries = new Map(rows.actions.map((row) => [row.id, row.retries]));
  const acknowledged = new Set(load.acknowledged.values());
  const common = judgeRows(rows, acknowledged, arrivals);

  const over = idsOf(calls, (id, all) => all.length > (retries.get(id) ?? 0));
  const twice = idsOf(calls, (_, all) => new Set(all.map(({ attempt }) => attempt)).size < all.length);
  const unmarked = idsOf(calls, (id, all) => !isMarked(all, told.get(id) ?? []));
  const unapproved = idsOf(calls, (id, all) => !isApproved(id, all, told.get(id) ?? [], load.approvedMs));
  const winners = [...told]
    .filter(([, all]) => all.filter(({ type }) => type === "approved" || type === "rejected").length > 1)
    .map(([id]) => id);
  const untrue = load.decisions
    .filter(({ id, answers }) => !answersAreTrue(answers, told.get(id) ?? []))
    .map(({ id }) => id);
  const misplaced = [...told].filter(([, all]) => isOutOfOrder(all)).map(([id]) => id);
  const heard = Map.groupBy(callbacks, ({ event, actionId }) => `${event} ${actionId}`);
  const doubled = [...heard].filter(([, all]) => new Set(all.map(({ webhookId }) => webhookId)).size > 1);
  const unheard = rows.outbox
    .filter(({ status, event, action_id: id }) => status === "delivered" && !heard.has(`${event} ${id}`))
    .map(({ action_id: id }) => id);
  const keys = Map.groupBy(load.acknowledged, ([, id]) => id);
  const shared = [...keys].filter(([, all]) => all.length > 1).map(([id]) => id);

  const doubles = [...calls.values()].reduce((sum, all) => sum + doublesOf(all), 0);
  const count = (status: string) => rows.actions.filter((row) => row.status === status).length;
  return {
    figures: {
      ...common.figures,
      acknowledged: acknowledged.size,
      sends: arrivals.length,
      doubles,
      overRetries: over.length,
      twoWinners: winners.length,
      withoutApproval: unapproved.length,
      decided: load.decisions.length,
      completed: count("completed"),
      failed: count("failed"),
      cancelled: count("cancelled"),
      answers: [...load.statuses].map(([status, times]) => `${status}: ${times}`).join(", "),
    },
    problems: [
      ...common.problems,
      ...Array.from(load.problems, ([sentence, of]) => `${sentence}: ${some([...of])}`),
      ...broken({
        [`no more sends than retries: ${some(over)}`]: over.length === 0,
        [`one send for each attempt: ${some(twice)}`]: twice.length === 0,
        [`whatever was sent again after a 2xx is marked as unknown: ${some(unmarked)}`]: unmarked.length === 0,
        [`nothing is sent without approval: ${some(unapproved)}`]: unapproved.length === 0,
        [`one winner of two decisions: ${some(winners)}`]: winners.length === 0,
        [`whoever was told that they decided did: ${some(untrue)}`]: untrue.length === 0,
        [`the events of an action are in their order: ${some(misplaced)}`]: misplaced.length === 0,
        [`one id for a callback however often it comes: ${some(doubled.map(([of]) => of))}`]: doubled.length === 0,
        [`a callback that is called delivered was received: ${some(unheard)}`]: unheard.length === 0,
        [`two keys are two actions: ${some(shared)}`]: shared.length === 0,
        "whoever is told to come later is told when": load.impatient === 0,
      }),
    ],
  };
}

function idsOf(calls: ReadonlyMap<string, readonly Arrival[]>, isSo: (id: string, all: readonly Arrival[]) => boolean) {
  return [...calls].filter(([id, all]) => isSo(id, all)).map(([id]) => id);
}

/** Calls of an action after one that the target had answered with success. */
function doublesOf(all: readonly Arrival[]): number {
  const first = all.findIndex(({ status }) => status < 300);
  return first === -1 ? 0 : all.length - first - 1;
}

/** Whether each answer of success that something was sent after is known to be one that nobody got. */
function isMarked(all: readonly Arrival[], told: readonly Told[]): boolean {
  const unknown = told
    .filter(({ type }) => type === "attempt")
    .map(({ detail }) => JSON.parse(detail) as { readonly attempt: number; readonly outcome: string })
    .filter(({ outcome }) => outcome === "unknown");
  const unheard = new Set(unknown.map(({ attempt }) => attempt));
  return all.slice(0, -1).every(({ status, attempt }) => status >= 300 || unheard.has(attempt));
}

function isApproved(
  id: string,
  calls: readonly Arrival[],
  told: readonly Told[],
  approvedMs: ReadonlyMap<string, number>,
): boolean {
  if (!told.some(({ type }) => type === "held")) return true;
  const askedMs = approvedMs.get(id) ?? Number.POSITIVE_INFINITY;
  return told.some(({ type }) => type === "approved") && calls.every(({ atMs }) => atMs > askedMs);
}

/** An answer that came at the first try is the truth; after one that got lost, 409 may be about the client's own decision. */
function answersAreTrue(answers: Load["decisions"][number]["answers"], told: readonly Told[]): boolean {
  const has = (...types: readonly string[]) => told.some(({ type }) => types.includes(type));
  const won = answers.filter(({ status }) => status === 200);
  const claimed = (decision: string) => won.filter((answer) => answer.decision === decision).length;
  if (claimed("approve") > 1 || claimed("cancel") > 1) return false;
  if (claimed("approve") === 1 && !has("approved")) return false;
  if (claimed("cancel") === 1 && !has("rejected", "cancelled")) return false;
  // Somebody has to have decided when both are told that it was too late.
  return won.length > 0 || has("approved", "rejected", "cancelled");
}

/** Whether a reader of the stream would get an older state of an action after a newer one. */
function isOutOfOrder(told: readonly Told[]): boolean {
  // An attempt of a callback has the revision of the event that it tells of.
  const steps = told.filter(({ type }) => type !== "callback" && type !== "mail");
  const bySeq = steps.toSorted((a, b) => a.seq - b.seq);
  return bySeq.some(({ revision }, at) => at > 0 && revision < (bySeq[at - 1]?.revision ?? 0));
}

/** The positions that a reader of the whole stream has to get. */
export function positionsOf({ timeline }: Pick<HistoryRows, "timeline">): readonly number[] {
  return timeline.filter(({ type }) => CHANGES.has(type)).map(({ seq }) => seq);
}

/** Holds what a reader of the stream got against what is stored. */
export function judgeStream(
  rows: Pick<HistoryRows, "timeline">,
  { seen, disordered, resumed, refusals }: Pick<Follower, "seen" | "disordered" | "resumed" | "refusals">,
): FaultReport {
  const positions = new Set(positionsOf(rows));
  const missed = [...positions].filter((position) => !seen.has(position)).map(String);
  const unknown = [...seen.keys()].filter((position) => !positions.has(position)).map(String);
  const repeated = [...seen].filter(([, times]) => times > 1).map(([position]) => String(position));
  return {
    figures: {
      events: seen.size,
      missedEvents: missed.length,
      newestEvent: [...seen.keys()].at(-1) ?? 0,
      repeatedEvents: repeated.length,
      resumed,
    },
    problems: broken({
      [`the stream misses nothing: ${some(missed)}`]: missed.length === 0,
      [`the stream tells of nothing that is not stored: ${some(unknown)}`]: unknown.length === 0,
      [`the stream repeats nothing: ${some(repeated)}`]: repeated.length === 0,
      "the stream is in order": disordered === 0,
      "every position that was given out can be resumed from": refusals === 0,
    }),
  };
}
