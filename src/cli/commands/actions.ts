import { isTerminal } from "../../core/action.ts";
import type { FilterQuery, ListQuery, AttemptList } from "../../client/openapi.ts";
import type { OutgateClient } from "../../client/client.ts";
import { LISTED_COLUMNS, eventLine, findActionId, failureIn } from "../action-list.ts";
import {
  actionText,
  describeDecision,
  describeTimeline,
  EXIT_CODES_HELP,
  exitCodeOf,
  STATUS_COLOR,
} from "../action-text.ts";
import { addBulkOptions, type BulkOptions, refuseFilters, runBulk } from "./bulk.ts";
import { addFilterOptions, type FilterOptions, filterQueryOf, statuses } from "../filters.ts";
import { type CliCommand, CliOption, given, wholeNumber } from "../command.ts";
import { EXIT, saysYes, UsageError } from "../io.ts";
import { textTable, type Cell } from "../table.ts";
import { type ListColumn, openStream, printList, type Session } from "../session.ts";
import { waitForEnd } from "../../client/wait.ts";
import { clockTime, visible } from "../../observability/terminal.ts";

export function addDecisions(program: CliCommand): void {
  for (const verb of ["approve", "reject", "cancel", "retry", "send-now"] as const) addDecision(program, verb);
}

export function addReadCommands(program: CliCommand): void {
  program
    .service("get <id>", "show an action, its timeline, or wait for its end")
    .alias("show")
    .option("--wait <seconds>", "wait up to this long for its end", wholeNumber("wait", 0))
    .option("--timeline", "show what happened to it, oldest first")
    .addHelpText("after", EXIT_CODES_HELP)
    .prints(async (session, { wait = 0, timeline = false }: GetOptions, id) => {
      const { client, print } = session;
      const action = await waitForEnd(client.getAction, await client.getAction(await findActionId(session, id)), wait);
      if (timeline) {
        print(await client.getTimeline(action.id), (entries) => describeTimeline(entries, session));
        return EXIT.ok;
      }
      if (!session.isJson && action.status === "awaiting_approval") {
        session.say(describeDecision(action, await client.getDecisionFacts(action.id), session));
      }
      print(action, () => actionText(action, session));
      return exitCodeOf(action.status, wait > 0);
    });
  addFilterOptions(program.service("list", "list actions, newest first"))
    .choice("--status <status>", "may be given several times", STATUSES, statuses)
    .pages()
    .option("--count", "how many there are of each status, instead of the actions")
    .prints(async (session, { limit, cursor, count, ...filters }: ListOptions) => {
      const query = await filterQueryOf(session, filters);
      if (count === true) return countActions(session, query);
      const page = await session.client.listActions({ ...query, ...given({ limit, cursor }) });
      const more = page.searched_until;
      if (more !== undefined && !session.isJson) {
        session.io.err(`Searched back to ${more}; older actions may match too: go on with --cursor.\n`);
      }
      printList(session, page, LISTED_COLUMNS, { empty: "No actions found.", command: "outgate list" });
    });
  program
    .service("watch", "show every change as it happens, or follow one action to its end")
    .argument("[id]", "only this action, until it has ended; the exit code says how")
    .choice("--status <status>", "only changes to this; may be given several times", STATUSES, statuses)
    .option("--after <event>", "continue after the event with this id, which --json prints")
    .option("--json", "print one line of JSON per event, also on a terminal")
    .calls(async (session, options: WatchOptions, id?: string) => {
      const release = new AbortController();
      const stopListening = session.io.onInterrupt?.(() => release.abort());
      try {
        const only = id === undefined ? undefined : await findActionId(session, id);
        return await watch(session, options, { id: only, signal: release.signal });
      } finally {
        stopListening?.();
        release.abort();
      }
    });
}

interface GetOptions {
  readonly wait?: number;
  readonly timeline?: boolean;
}

type ListOptions = FilterOptions & Pick<ListQuery, "limit" | "cursor"> & { readonly count?: boolean };

const STATUSES = [...Object.keys(STATUS_COLOR), "held"];

async function countActions(session: Session, query: FilterQuery): Promise<void> {
  const counts = await session.client.countActions(query);
  session.print(counts, () => {
    const rows = counts.data.map(({ status, count, is_more: isMore }) => [
      { text: status, color: STATUS_COLOR[status] },
      `${count}${isMore ? "+" : ""}`,
    ]);
    const until = counts.counted_until;
    const note = until === null ? "" : `Complete for what was created after ${until}.\n`;
    return textTable(rows, session.paint, session.io.columns) + note;
  });
}

interface WatchOptions {
  readonly after?: string;
  readonly status?: readonly string[];
}

async function watch(
  session: Session,
  { after, status = [] }: WatchOptions,
  { id, signal }: { readonly id: string | undefined; readonly signal: AbortSignal },
): Promise<number> {
  const { client, io, url, line, say, paint, isJson } = session;
  const onBreak = () => io.err(`Lost the event stream of ${url}; reconnecting.\n`);
  const { events, first } = await openStream(client, { after, signal, onBreak });
  // Open the stream before reading the action, so that its end can't be missed in between.
  const known = id === undefined ? null : await client.getAction(id);
  if (known !== null && isTerminal(known.status)) return exitCodeOf(known.status, false);
  io.err(
    `Watching ${id ?? `all actions of ${url}`}${id === undefined ? "" : " until it ends"}. Ctrl-C stops watching.\n`,
  );
  for (let next = await first; next.done !== true; next = await events.next()) {
    const { data: action } = next.value;
    if (id !== undefined && action.id !== id) continue;
    if (status.length === 0 || status.includes(action.status)) {
      if (isJson) line(next.value);
      else say(eventLine({ at: new Date(next.value.timestamp), action }, paint, io.columns));
    }
    if (id !== undefined && isTerminal(action.status)) return exitCodeOf(action.status, false);
  }
  return EXIT.ok;
}

interface Decision {
  readonly summary: string;
  readonly call: (client: OutgateClient) => OutgateClient["approveAction"];
  /** Asked on a terminal, after showing the request. */
  readonly question?: string;
  readonly examples: readonly (readonly [line: string, what: string])[];
}

const DECISIONS = {
  approve: {
    summary: "approve an action that is awaiting approval",
    call: (client) => client.approveAction,
    question: "Approve this request?",
    examples: [["outgate approve 01m82and0zenh", "shows the request, and asks"]],
  },
  // To reject is to cancel an action that is awaiting approval.
  reject: {
    summary: "reject an action that is awaiting approval",
    call: (client) => client.cancelAction,
    question: "Reject this request?",
    examples: [['outgate reject 01m82and0zenh --reason "wrong customer"', "the agent reads the reason"]],
  },
  cancel: {
    summary: "cancel an action that has not been sent, or all that match",
    call: (client) => client.cancelAction,
    examples: [
      ["outgate cancel 01m82and0zenh", "one action"],
      ["outgate cancel --status held --created-by key_…", "all that this key asks approval for; asks first"],
    ],
  },
  retry: {
    summary: "send a failed or cancelled action again, or all that match",
    call: (client) => client.retryAction,
    examples: [
      ["outgate retry 01m82and0zenh --wait 60", "one action, and waits for its end"],
      ["outgate retry --status failed --host api.example.com --dry-run", "how many failed at this host"],
      ["outgate retry --status failed --code 5xx --after 2026-03-04T12:00:00Z", "all of them; asks first"],
    ],
  },
  "send-now": {
    summary: "send an action now that waits for its time or for its next attempt",
    call: (client) => client.sendActionNow,
    examples: [["outgate send-now 01m82and0zenh", "does not wait for the next attempt's time"]],
  },
} as const satisfies Record<string, Decision>;

interface DecideOptions extends BulkOptions {
  readonly reason?: string;
  readonly run?: number;
  readonly wait?: number;
  readonly yes?: boolean;
}

function addDecision(program: CliCommand, verb: keyof typeof DECISIONS): void {
  const decision: Decision = DECISIONS[verb];
  const isRetry = verb === "retry";
  const isBulk = verb === "retry" || verb === "cancel";
  const hasNoRun = isRetry || verb === "send-now";
  const why = isRetry
    ? "why; shown to the approver. Required for an agent's key within 24 hours of a rejection, when it may retry twice"
    : "why; shown in the timeline";
  const run = new CliOption("--run <n>", "only in this run; a retry begins the next one").argParser(wholeNumber("run"));
  const command = program
    .service(`${verb} ${isBulk ? "[id]" : "<id>"}`, decision.summary)
    .option("--reason <text>", why)
    .addOption(hasNoRun ? run.hideHelp() : run)
    .option("--wait <seconds>", "then wait up to this long for its end", wholeNumber("wait"));
  if (decision.question !== undefined) command.option("--yes", "decide without showing the request and asking first");
  if (isBulk) addBulkOptions(command, verb).option("--yes", "begin a bulk job without asking first");
  command.examples(decision.examples);
  command.prints(async (session, options: DecideOptions, id?: string) => {
    if (hasNoRun && options.run !== undefined) {
      throw new UsageError(`${verb} takes no --run${isRetry ? ": it begins a new run" : ""}.`);
    }
    if (id === undefined && options.run !== undefined) throw new UsageError("--run is for one action: add its id.");
    if (id === undefined && isBulk) return runBulk(session, options, verb);
    if (id === undefined) throw new UsageError("<id> is missing.");
    if (isBulk) refuseFilters(options);
    return decide(session, { ...options, actionId: await findActionId(session, id) }, decision);
  });
}

async function decide(
  session: Session,
  { actionId: id, reason, run, wait, yes }: DecideOptions & { readonly actionId: string },
  { call, question }: Decision,
): Promise<number> {
  const { client, io } = session;
  const mustAsk = question !== undefined && io.canAnswer === true && yes !== true;
  const confirmation = mustAsk ? await confirm(id, question, session) : null;
  if (confirmation?.isConfirmed === false) {
    io.err("Nothing was decided.\n");
    return EXIT.failed;
  }
  const decided = await call(client)(id, given({ reason, run: run ?? confirmation?.run }));
  const action = await waitForEnd(client.getAction, decided, wait ?? 0);
  session.print(action, () => actionText(action, session));
  // Without --wait the exit code only says that the decision was made.
  return wait === undefined ? EXIT.ok : exitCodeOf(action.status, true);
}

/** Shows the request and asks; the decision is bound to the run that was shown. An action that isn't held is left to the service to refuse. */
async function confirm(id: string, question: string, session: Session) {
  const { client, io } = session;
  const action = await client.getAction(id);
  const { run } = action;
  if (action.status !== "awaiting_approval") return { isConfirmed: true, run };
  const facts = await client.getDecisionFacts(id);
  return { isConfirmed: await saysYes(`${describeDecision(action, facts, session)}${question}`, io), run };
}

/** `outgate open`: the page of an action, or the console, in the browser of this machine. */
export function addOpen(program: CliCommand): void {
  program
    .service("open [id]", "print the URL of an action's page, or of the console, and open it in a browser")
    .option("--print", "only print the URL")
    .examples([
      ["outgate open 01m82and0zenh", "the page of this action"],
      ["outgate open", "what awaits approval"],
    ])
    .calls(async (session, { print = false }: { readonly print?: boolean }, id?: string) => {
      const { io, url } = session;
      const page = url + (id === undefined ? "/" : `/actions/${encodeURIComponent(await findActionId(session, id))}`);
      session.say(page);
      // In a pipe the URL is what is wanted.
      if (print || !io.isTty) return;
      const isOpened = (await io.openBrowser?.(page)) === true;
      if (!isOpened) io.err("No browser could be opened here.\n");
    });
}

/** `outgate attempts`: what came back of the newest attempts of an action. */
export function addAttempts(program: CliCommand): void {
  program
    .service("attempts <id>", "show the newest attempts of an action, and what came back of each")
    .examples([
      ["outgate attempts 01m82and0zenh", "the newest 5, oldest first"],
      ["outgate attempts 01m82and0zenh | jq .response_body", "what each was answered with"],
    ])
    .prints(async (session, _options, id) =>
      printList(session, await session.client.getAttempts(await findActionId(session, id)), ATTEMPT_COLUMNS, {
        empty: "No attempt has ended yet.",
      }),
    );
}

type AttemptItem = AttemptList["data"][number];

const ATTEMPT_COLUMNS: readonly ListColumn<AttemptItem>[] = [
  ["RUN", ({ run }) => String(run), { leaves: 1 }],
  ["TRY", ({ attempt }) => String(attempt)],
  ["ENDED", ({ at }) => ({ text: `${at.slice(0, 10)} ${clockTime(new Date(at))}`, color: "grey" })],
  ["OUTCOME", outcomeOf],
  ["TOOK", ({ duration_ms: ms }) => (ms === null ? "" : `${ms} ms`)],
  ["ANSWER", (attempt) => visible(answerOf(attempt)), { min: 20 }],
];

function outcomeOf({ outcome, response_code: code, error }: AttemptItem): Cell {
  if (outcome === "unknown") return { text: "unknown", color: "yellow" };
  if (code === null) return { text: "not sent", color: "red" };
  return { text: String(code), color: error === null ? "green" : "red" };
}

/** What the target says, or why it failed. */
function answerOf({ response_body: body, error, location, response_truncated: isCut }: AttemptItem): string {
  const failure = failureIn({ response_body: body, last_error: error });
  if (failure !== null) return failure;
  if (location !== null) return `to ${location}`;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return body === null ? "" : `${text}${isCut === true ? "…" : ""}`;
}
