import type { Action } from "../../src/core/action.ts";
import { mayBeSentBefore } from "../../src/core/changes.ts";
import { OVERVIEW_RANGES } from "../../src/core/limits.ts";
import type { TimelineEntry, TimelineEvent } from "../../src/core/timeline.ts";
import type { ActionChange, Store } from "../../src/core/store.ts";
import { createCountActivity } from "../../src/events/activity-job.ts";
import type { Clients } from "./clients.ts";
import type { Call, Target } from "./target.ts";
import type { World } from "./world.ts";

/** An action and all that happened to it. */
interface Past {
  readonly action: Action;
  readonly entries: readonly TimelineEntry[];
}

/** What must hold when everything has ended. What must hold whenever a call begins is checked in `target.ts`. */
export async function checkEnd(world: World, clients: Clients, target: Target): Promise<void> {
  const store = world.openStore();
  const pasts = await readPasts(world, store);
  checkAccepted(world, clients, pasts);
  for (const past of pasts.values()) {
    checkClaims(world, past);
    checkCallbacks(world, past, target);
  }
  for (const call of target.calls) checkRecorded(world, call, pasts.get(call.id));
  await checkStreams(world, store);
  await checkFigures(world, store, pasts);
}

async function readPasts(world: World, { actions }: Store): Promise<ReadonlyMap<string, Past>> {
  const { accountId } = world.caller("owner");
  const pasts = new Map<string, Past>();
  for (const row of world.look("SELECT id FROM actions ORDER BY id")) {
    const id = String(row["id"]);
    const action = await actions.findById(id);
    if (action !== null) pasts.set(id, { action, entries: await actions.timeline(accountId, id) });
  }
  return pasts;
}

/** Whatever a client was told is there. */
function checkAccepted(world: World, { accepted, decided }: Clients, pasts: ReadonlyMap<string, Past>): void {
  for (const { id, request } of accepted.values()) {
    const action = pasts.get(id)?.action;
    const isSame = action?.url === request.url && action.body === request.body && action.title === request.title;
    if (!isSame) world.violate("nothing accepted is missing", request.title ?? "");
  }
  for (const { id, run, events } of decided) {
    const entries = pasts.get(id)?.entries ?? [];
    const isThere = entries.some((entry) => entry.run === run && events.includes(entry.event.type));
    if (!isThere)
      world.violate("no answered decision is missing", `${events.join(" or ")} in run ${run} of ${world.nameOf(id)}`);
  }
}

/** The claims of each run, and what the last one came to. */
function checkClaims(world: World, { action, entries }: Past): void {
  const runs = Map.groupBy(entries, runOf);
  for (const [run, ofRun] of runs) checkRun(world, `${world.nameOf(action.id)} run ${run}`, action, ofRun);
  const attempts = (runs.get(action.run) ?? []).flatMap(({ event }) => (event.type === "attempt" ? [event] : []));
  const last = attempts.findLast(({ late }) => late === undefined || late === "settled");
  if (last?.response_code === 200 && action.status !== "completed") {
    world.violate("a success stays", world.nameOf(action.id));
  }
}

const ENDS: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "rejected"]);

/** Each claim follows an approval where one is needed, ends before the next begins, and none follows a success or the end. */
function checkRun(world: World, name: string, { approve, retries }: Action, entries: readonly TimelineEntry[]): void {
  let [claims, isOpen, isDone, isApproved, isOver] = [0, false, false, !approve, false];
  for (const { event } of entries) {
    if (event.type === "approved") isApproved = true;
    isOver ||= ENDS.has(event.type);
    if (event.type === "not_started") [claims, isOpen] = [claims - 1, false];
    if (event.type === "attempt" && event.late === undefined) isOpen = false;
    if (event.type === "attempt") isDone ||= event.response_code === 200;
    if (event.type !== "started") continue;
    if (!isApproved) world.violate("nothing is claimed unapproved", name);
    if (isOpen) world.violate("possible doubles are marked", `${name}: a claim has no end`);
    if (isDone) world.violate("nothing is sent after a success", name);
    if (isOver) world.violate("nothing is claimed after its end", name);
    [claims, isOpen] = [claims + 1, true];
  }
  if (claims > retries) world.violate("no more sends than allowed", `${name}: ${claims}`);
}

/** The run that an entry is about: of a late result that of its attempt. */
function runOf({ event, run }: TimelineEntry): number {
  return event.type === "attempt" ? (event.run ?? run) : run;
}

/**
 * What reached the target is in the timeline: as its answer if the process that knew it lived on, else as its answer or as
 * unknown, so that nobody takes it for not sent.
 */
function checkRecorded(world: World, { id, run, attempt, outcome, isKnown, by }: Call, past: Past | undefined): void {
  const made = (past?.entries ?? []).flatMap((entry) => {
    const { event } = entry;
    return event.type === "attempt" && event.attempt === attempt && runOf(entry) === run ? [event] : [];
  });
  const code = outcome.kind === "answered" ? outcome.code : null;
  const isRecorded = made.some((event) => event.outcome === outcome.kind && event.response_code === code);
  const name = `${world.nameOf(id)} run ${run} attempt ${attempt}`;
  if (isKnown && !by.isDead && !isRecorded) world.violate("a known result is kept", `${name}: ${outcome.kind} ${code}`);
  const isMarked = isRecorded || made.some((event) => event.outcome === "unknown");
  if (!isMarked) world.violate("possible doubles are marked", name);
  const isBefore = past !== undefined && run < past.action.run;
  if (isBefore && !mayBeSentBefore(past.action)) world.violate("later runs tell of earlier sends", name);
}

/** One callback for each final state and each late result, and it arrives. */
function checkCallbacks(world: World, { action, entries }: Past, target: Target): void {
  const owed = action.callback === null ? [] : entries.flatMap(callbackFor);
  const made = [...target.callbacks.values()].filter(({ actionId }) => actionId === action.id);
  const sent = made.map(({ type, run }) => `${type} in run ${run}`);
  if (owed.toSorted().join() !== sent.toSorted().join()) {
    const what = `${world.nameOf(action.id)} owes ${owed.join(", ")} and sent ${sent.join(", ")}`;
    world.violate("one callback for each final state and late result", what);
  }
  for (const { type, calls } of made) {
    const isDelivered = calls.some(({ outcome }) => outcome.kind === "answered" && outcome.code === 200);
    if (!isDelivered) world.violate("each callback arrives", `${type} of ${world.nameOf(action.id)}`);
  }
}

const CALLBACKS = {
  held: "awaiting_approval",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  rejected: "cancelled",
} as const;

function callbackFor({ event, run }: TimelineEntry): readonly string[] {
  if (event.type === "attempt") return event.late === "result" ? [`action.late_result in run ${run}`] : [];
  return event.type in CALLBACKS ? [`action.${CALLBACKS[event.type as keyof typeof CALLBACKS]} in run ${run}`] : [];
}

/** Every reader has every change once and in order, whichever processes it read from. */
async function checkStreams(world: World, { actions }: Store): Promise<void> {
  const all: ActionChange[] = [];
  for (let after = 0, isLast = false; !isLast;) {
    const page = await actions.changes(world.caller("owner").accountId, after);
    all.push(...page.changes);
    ({ position: after, isLast } = page);
  }
  const expected = all.map(({ seq }) => seq);
  for (const [name, { changes }] of world.readers) {
    const seen = changes.map(({ seq }) => seq);
    if (seen.join() === expected.join()) continue;
    const missing = expected.filter((seq) => !seen.includes(seq));
    const what = `the reader of ${name} misses ${missing.join()} and has ${seen.join()}`;
    world.violate("the stream is complete and in order", what);
  }
}

const FIGURES = ["created", "attempts", "completed", "failed", "approved", "rejected"] as const;

/** The overview has each of them once, although two nodes count at the same time. */
async function checkFigures(world: World, store: Store, pasts: ReadonlyMap<string, Past>): Promise<void> {
  const nodes = [1, 2].map(() => createCountActivity({ store, clock: world.clock }));
  await Promise.all(nodes.map((node) => node.upToNow()));
  const span = { slotMinutes: OVERVIEW_RANGES["30d"].slotMinutes, since: new Date(0), until: new Date(8.64e15) };
  const { slots } = await store.activity.read({ ...span, accountId: world.caller("owner").accountId });
  const events = [...pasts.values()].flatMap(({ entries }) => entries.map(({ event }) => event));
  for (const name of FIGURES) {
    const counted = slots.reduce((sum, slot) => sum + slot[name], 0);
    const isIt = (event: TimelineEvent) =>
      name === "attempts" ? event.type === "attempt" && event.late === undefined : event.type === name;
    const happened = events.filter(isIt).length;
    if (counted !== happened) world.violate("the overview counts all once", `${name}: ${counted}, not ${happened}`);
  }
}
