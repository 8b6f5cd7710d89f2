import { isTerminal } from "../../core/action.ts";
import { mayDo } from "../../core/roles.ts";
import { HTTP_METHODS } from "../../core/target.ts";
import type {
  AttemptList,
  BulkDryRun,
  BulkJob,
  BulkQuery,
  BulkResultQuery,
  ExportQuery,
  FilterQuery,
  ListQuery,
  StartBulk,
} from "../../client/api.ts";
import type { OutgateClient } from "../../client/client.ts";
import {
  describeDecision,
  describeTimeline,
  eventLine,
  failureIn,
  LISTED_COLUMNS,
  STATUS_COLOR,
} from "../action-text.ts";
import { type CliCommand, CliOption, JSON_OPTION } from "../command.ts";
import { given, oneOf, several, wholeNumber } from "../option-values.ts";
import { awaitEnd, EXIT_CODES_HELP, exitCode, findActionId, printAction } from "../one-action.ts";
import { EXIT, saysYes, UsageError } from "../io.ts";
import { textTable, type Cell } from "../table.ts";
import { listTable, type ListColumn, type Session } from "../session.ts";
import { OutgateError } from "../../client/transport.ts";
import { temporaryError, waitForEnd } from "../../client/wait.ts";
import { clockTime, visible } from "../../observability/terminal.ts";
import { setTimeout as pause } from "node:timers/promises";
import { visibleJson } from "../exact-json.ts";
import { explain, unsure } from "../failures.ts";
import { ERROR_KINDS, OUTCOMES } from "../../core/outcome.ts";

export function addReadCommands(program: CliCommand): void {
  program
    .serviceCommand("get <id>", "show an action, its timeline, or wait for its end")
    .alias("show")
    .option("--wait <seconds>", "wait up to this long for its end", wholeNumber("wait", 0))
    .option("--timeline", "show what happened to it, oldest first")
    .addHelpText("after", EXIT_CODES_HELP)
    .option(...JSON_OPTION)
    .sessionAction(
      async (
        session,
        id: string,
        { wait = 0, timeline = false }: { readonly wait?: number; readonly timeline?: boolean },
      ) => {
        const { client, print } = session;
        const action = await waitForEnd(
          client.getAction,
          await client.getAction(await findActionId(session, id)),
          wait,
        );
        if (timeline) {
          print(await client.getTimeline(action.id), (entries) => describeTimeline(entries, session));
          return EXIT.ok;
        }
        if (!session.isJson && action.status === "awaiting_approval") {
          session.say(describeDecision(action, await client.getDecisionFacts(action.id), session));
        }
        await printAction(session, action);
        return exitCode(action.status, wait > 0);
      },
    );
  addFilterOptions(program.serviceCommand("list", "list actions, newest first"))
    .choice("--status <status>", "may be given several times", STATUSES, statuses)
    .pages()
    .option("--count", "how many there are of each status, instead of the actions")
    .option(...JSON_OPTION)
    .sessionAction(async (session, { limit, cursor, count, ...filters }: ListOptions) => {
      const query = await filterQuery(session, filters);
      if (count === true) return countActions(session, query);
      const page = await session.client.listActions({ ...query, ...given({ limit, cursor }) });
      const more = page.searched_until;
      if (more !== undefined && !session.isJson) {
        session.io.err(`Searched back to ${more}; older actions may match too: go on with --cursor.\n`);
      }
      session.printList(page, "No actions found.", LISTED_COLUMNS);
    });
  program
    .serviceCommand("watch", "show every change as it happens, or follow one action to its end")
    .argument("[id]", "only this action, until it has ended; the exit code says how")
    .choice<readonly string[]>(
      "--status <status>",
      "only changes to this; may be given several times",
      STATUSES,
      // Checked here, because the service doesn't see it and a wrong one would never match.
      (text, earlier) => statuses(oneOf("status", STATUSES)(text), earlier),
    )
    .option("--after <event>", "continue after the event with this id, which --json prints")
    .option("--json", "print one line of JSON per event, also on a terminal")
    .sessionAction(async (session, id: string | undefined, options: WatchOptions) => {
      const release = new AbortController();
      const stopListening = session.io.onInterrupt?.(() => release.abort());
      try {
        return await watch(session, options, id, release.signal);
      } finally {
        stopListening?.();
        release.abort();
      }
    });
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
  text: string | undefined,
  signal: AbortSignal,
): Promise<number> {
  const { client, io, url, line, say, paint, isJson } = session;
  const id = text === undefined ? undefined : await findActionId(session, text);
  const onBreak = () => io.err(`Lost the event stream of ${url}; reconnecting.\n`);
  let onOpen = () => {};
  const isOpen = new Promise<void>((resolve) => (onOpen = resolve));
  const events = client.streamEvents({ after, signal, onBreak, onOpen: () => onOpen() });
  const first = events.next();
  // Opens the stream before it reads the action, so that it can't miss the end in between.
  await Promise.race([isOpen, first]);
  const known = id === undefined ? null : await client.getAction(id);
  if (known !== null && isTerminal(known.status)) return exitCode(known.status, false);
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
    if (id !== undefined && isTerminal(action.status)) return exitCode(action.status, false);
  }
  return EXIT.ok;
}

interface Decision {
  readonly summary: string;
  readonly call: (client: OutgateClient) => OutgateClient["approveAction"];
  /** The question on a terminal, after showing the request. */
  readonly question?: string;
  /** Whether it is only for held actions, though the service would accept others. */
  readonly isOfHeld?: true;
  readonly examples: readonly (readonly [line: string, what: string])[];
}

const DECISIONS = {
  approve: {
    summary: "approve an action that is awaiting approval",
    call: (client) => client.approveAction,
    question: "Approve this request?",
    examples: [["outgate approve 01m82and0zenh", "shows the request, and asks"]],
  },
  // Rejecting is cancelling an action that awaits approval.
  reject: {
    summary: "reject an action that is awaiting approval",
    call: (client) => client.cancelAction,
    question: "Reject this request?",
    isOfHeld: true,
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
    summary: "send an action now, if it waits for its time or its next attempt",
    call: (client) => client.sendActionNow,
    examples: [["outgate send-now 01m82and0zenh", "does not wait for the next attempt's time"]],
  },
} as const satisfies Record<string, Decision>;

interface DecideOptions extends FilterOptions {
  readonly reason?: string;
  readonly run?: number;
  readonly wait?: number;
  readonly yes?: boolean;
  readonly dry_run?: boolean;
}

export function addDecisions(program: CliCommand): void {
  for (const verb of ["approve", "reject", "cancel", "retry", "send-now"] as const) addDecision(program, verb);
}

function addDecision(program: CliCommand, verb: keyof typeof DECISIONS): void {
  const decision: Decision = DECISIONS[verb];
  const isBulk = verb === "retry" || verb === "cancel";
  const why =
    verb === "retry"
      ? "why; shown to the approver. Required for an agent's key within 24 hours of a rejection, when it may retry twice"
      : "why; shown in the timeline";
  const command = program
    .serviceCommand(`${verb} ${isBulk ? "[id]" : "<id>"}`, decision.summary)
    .option("--reason <text>", why)
    .option("--run <n>", "only in this run; a retry begins the next one", wholeNumber("run"))
    .option("--wait <seconds>", "then wait up to this long for its end", wholeNumber("wait"));
  if (decision.question !== undefined) command.option("--yes", "decide without showing the request and asking first");
  if (isBulk) addBulkOptions(command, verb);
  command
    .examples(decision.examples)
    .option(...JSON_OPTION)
    .sessionAction(async (session, id: string | undefined, options: DecideOptions) => {
      if (id === undefined && options.run !== undefined) throw new UsageError("--run is for one action: add its id.");
      if (id === undefined && isBulk) return runBulk(session, options, verb);
      if (id === undefined) throw new UsageError("<id> is missing.");
      if (isBulk) refuseFilters(options);
      return decide(session, options, await findActionId(session, id), decision);
    });
}

async function decide(
  session: Session,
  { reason, run, wait, yes }: DecideOptions,
  id: string,
  { call, question, isOfHeld }: Decision,
): Promise<number> {
  const { client, io } = session;
  const asks = question !== undefined && io.canAnswer === true && yes !== true;
  const shown = asks || isOfHeld === true ? await client.getAction(id) : null;
  const isHeld = shown?.status === "awaiting_approval";
  if (isOfHeld === true && !isHeld) {
    const other = shown?.status === "pending" ? " `outgate cancel` cancels it." : "";
    throw new Error(
      `Action ${id} is ${shown?.status} and cannot be rejected; only an action that is awaiting_approval can.${other}`,
    );
  }
  // The service refuses an action that isn't held, and a key that may not decide.
  const permission = isOfHeld === true ? "cancel" : "approve";
  if (asks && shown !== null && isHeld && mayDo((await client.getAccount()).key.role, permission)) {
    const request = describeDecision(shown, await client.getDecisionFacts(id), session);
    if (!(await saysYes(`${request}${question}`, io))) {
      io.err("Nothing was decided.\n");
      return EXIT.failed;
    }
  }
  // Decides on the run that was shown.
  const decided = await call(client)(id, given({ reason, run: run ?? shown?.run })).catch(
    unsure(`It may have been done: see \`outgate get ${id}\` before you repeat it.`),
  );
  const action = await awaitEnd(session, decided, wait ?? 0);
  await printAction(session, action);
  // Without --wait, the exit code only says that the decision was made.
  return wait === undefined ? EXIT.ok : exitCode(action.status, true);
}

/** `outgate open`: opens the page of an action, or the console, in this machine's browser. */
export function addOpen(program: CliCommand): void {
  program
    .serviceCommand("open [id]", "print the URL of an action's page, or of the console, and open it in a browser")
    .option("--print", "only print the URL")
    .examples([
      ["outgate open 01m82and0zenh", "the page of this action"],
      ["outgate open", "what awaits approval"],
    ])
    .sessionAction(async (session, id: string | undefined, { print = false }: { readonly print?: boolean }) => {
      const { io, url } = session;
      const page = url + (id === undefined ? "/" : `/actions/${encodeURIComponent(await findActionId(session, id))}`);
      session.say(page);
      // In a pipe, the URL is the result.
      if (print || !io.isTty) return;
      const isOpened = (await io.openBrowser?.(page)) === true;
      if (!isOpened) io.err("No browser could be opened here.\n");
    });
}

/** `outgate attempts`: the responses to an action's newest attempts. */
export function addAttempts(program: CliCommand): void {
  program
    .serviceCommand("attempts <id>", "show the newest attempts of an action, and what came back of each")
    .examples([
      ["outgate attempts 01m82and0zenh", "the newest 5, oldest first"],
      ["outgate attempts 01m82and0zenh | jq .response_body", "what each was answered with"],
    ])
    .option(...JSON_OPTION)
    .sessionAction(async (session, id: string) =>
      session.printList(
        await session.client.getAttempts(await findActionId(session, id)),
        "No attempt has ended yet.",
        ATTEMPT_COLUMNS,
      ),
    );
}

type AttemptItem = AttemptList["data"][number];

const ATTEMPT_COLUMNS: readonly ListColumn<AttemptItem>[] = [
  ["RUN", ({ run }) => String(run), { leaves: 1 }],
  ["TRY", ({ attempt }) => String(attempt)],
  ["ENDED", ({ at }) => ({ text: `${at.slice(0, 10)} ${clockTime(new Date(at))}`, color: "grey" })],
  ["OUTCOME", outcomeCell],
  ["TOOK", ({ duration_ms: ms }) => (ms === null ? "" : `${ms} ms`)],
  ["ANSWER", (attempt) => answerText(attempt), { min: 20 }],
];

function outcomeCell({ outcome, response_code: code, error }: AttemptItem): Cell {
  if (outcome === "unknown") return { text: "unknown", color: "yellow" };
  if (code === null) return { text: "not sent", color: "red" };
  return { text: String(code), color: error === null ? "green" : "red" };
}

/** What the target said, or why the attempt failed. */
function answerText({ response_body: body, error, location, response_truncated: isCut }: AttemptItem): string {
  const failure = failureIn({ response_body: body, last_error: error });
  if (failure !== null) return failure;
  if (location !== null) return `to ${location}`;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return body === null ? "" : `${text}${isCut === true ? "…" : ""}`;
}

const BULK = {
  retry: { statuses: ["failed", "cancelled"], verb: "Retry", done: "retried" },
  cancel: { statuses: ["pending", "held"], verb: "Cancel", done: "cancelled" },
} as const;

/** Lets a command take filters instead of an id. */
function addBulkOptions(command: CliCommand, operation: StartBulk["operation"]): void {
  const words = BULK[operation].statuses;
  const what = "all of this status that match, in one job; may be given several times";
  command.choice("--status <status>", what, words, statuses);
  for (const word of words) {
    const option = new CliOption(`--${word}`, `the same as --status ${word}`, "status");
    command.addOption(option.preset(word).argParser(statuses));
  }
  addFilterOptions(command)
    .option("--dry-run", "only say how many a job would cover, and the newest of them")
    .option("--yes", "begin a bulk job without asking first");
}

const OF_ONE = new Set(["reason", "wait", "run", "yes"]);

/** Refuses options that a command on one action would ignore. */
function refuseFilters(options: object): void {
  if (Object.keys(options).some((name) => !OF_ONE.has(name)))
    throw new UsageError("An id takes no filters: leave out one or the other.");
}

/** Begins a job and follows it for `--wait` seconds. On a terminal, shows a dry run first and asks. */
async function runBulk(
  session: Session,
  { reason, wait = 0, dry_run: dryRun, yes, run: _run, ...filters }: DecideOptions,
  operation: StartBulk["operation"],
): Promise<number> {
  const { client, io, url } = session;
  if (filters.status === undefined && filters.id === undefined) {
    const words = BULK[operation].statuses.map((word) => `--status ${word}`).join(" or ");
    throw new UsageError(`${operation} takes the id of an action, or ${words} with filters, or --id several times.`);
  }
  const filter = await filterQuery(session, filters);
  const bulk = { operation, filter, ...given({ reason }) };
  if (dryRun === true) {
    const found = await client.startBulk({ ...bulk, dry_run: true });
    const text = session.isJson ? "" : await foundText(session, bulk, found);
    session.print(found, () => text);
    return EXIT.ok;
  }
  const shown = io.canAnswer === true && yes !== true ? await confirmedCount(session, bulk) : undefined;
  if (shown === null) return EXIT.failed;
  const begun = await client
    .startBulk({ ...bulk, ...given({ at_most: shown }) })
    .catch(unsure("The job may have begun: see `outgate bulk list` before you repeat it."));
  const job = await followed(session, begun, wait).catch((error: unknown) => {
    io.err(`${explain(error, url).message}\nJob ${begun.id} has begun: see \`outgate bulk get ${begun.id}\`.\n`);
    return begun;
  });
  session.print(job, () => {
    const next = job.status === "running" ? `Follow it: outgate bulk get ${job.id} --wait 60\n` : "";
    return `${jobText(job)}\n${next}`;
  });
  return jobExitCode(job, wait > 0);
}

type Bulk = Omit<StartBulk, "dry_run">;

/** Shows what a job would cover and asks whether to begin it. Returns how many actions were shown; null: it is not to begin. */
async function confirmedCount(session: Session, bulk: Bulk): Promise<number | null> {
  const { client, io } = session;
  const found = await client.startBulk({ ...bulk, dry_run: true });
  io.err(await foundText(session, bulk, found));
  if (found.matching === 0) return null;
  if (await saysYes(`${BULK[bulk.operation].verb} ${countText(found)}?`, io)) return found.matching;
  io.err("Nothing was begun.\n");
  return null;
}

const ROWS_SHOWN_MAX = 5;

/** A dry run in words: how many actions, a warning, and the newest of them. */
async function foundText(session: Session, { operation, filter }: Bulk, found: BulkDryRun): Promise<string> {
  const { client, paint } = session;
  if (found.matching === 0) return "No action matches.\n";
  const page = await client.listActions({ ...filter, limit: ROWS_SHOWN_MAX });
  const left = found.matching - page.data.length;
  const { unknown_outcomes: unknown, late_results: late } = found;
  const warning = `${unknown} of them may have been carried out already by the target.`;
  const done = `${late} of them were carried out by the target, which answered too late.`;
  return [
    `${countText(found)} would be ${BULK[operation].done}.\n`,
    unknown === 0 ? "" : `${paint(warning, "yellow")}\n`,
    late === 0 ? "" : `${paint(done, "red")}\n`,
    listTable(session, page.data, LISTED_COLUMNS),
    left > 0 ? `${paint(`and ${left} more`, "grey")}\n` : "",
  ].join("");
}

function countText({ matching, is_more: isMore }: BulkDryRun): string {
  return `${isMore ? "more than " : ""}${matching} ${matching === 1 ? "action" : "actions"}`;
}

const LOOK_MS = 500;

/** Follows a job until it has ended, at most so many seconds, also while the service is away for a time. */
async function followed({ client }: Session, job: BulkJob, seconds: number): Promise<BulkJob> {
  const untilMs = performance.now() + seconds * 1_000;
  let now = job;
  while (now.status === "running" && performance.now() < untilMs) {
    await pause(LOOK_MS);
    const latest = await client.getBulk(job.id).catch(temporaryError);
    if (!(latest instanceof OutgateError)) now = latest;
    else if (performance.now() >= untilMs) throw latest;
  }
  return now;
}

function jobExitCode({ status, failed }: BulkJob, hasWaited: boolean): number {
  if (status === "running") return hasWaited ? EXIT.timeout : EXIT.ok;
  return failed === 0 && status === "finished" ? EXIT.ok : EXIT.failed;
}

function jobText({ id, operation, status, matching, done, failed }: BulkJob): string {
  return `${id}  ${operation} ${status}: ${done} of ${matching} done, ${failed} refused`;
}

export function addBulkCommands(program: CliCommand): void {
  const bulk = program.command("bulk").description("show bulk jobs and what became of each action, or stop one");
  bulk
    .serviceCommand("list", "list bulk jobs, newest first")
    .pages()
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }, query: BulkQuery) =>
      printList(await client.listBulk(query), "No bulk jobs.", [
        ["ID", ({ id }) => id],
        ["JOB", ({ operation }) => operation],
        ["STATUS", ({ status }) => status],
        ["DONE", ({ done }) => `${done}`],
        ["REFUSED", ({ failed }) => `${failed}`],
        ["OF", ({ matching }) => `${matching}`],
        ["BY", ({ created_by: by }) => by],
      ]),
    );
  bulk
    .serviceCommand("get <id>", "show a bulk job and how far it is")
    .option("--wait <seconds>", "wait up to this long for its end", wholeNumber("wait"))
    .option(...JSON_OPTION)
    .sessionAction(async (session, id: string, { wait = 0 }: { readonly wait?: number }) => {
      const job = await followed(session, await session.client.getBulk(id), wait);
      session.print(job, jobText);
      return jobExitCode(job, wait > 0);
    });
  bulk
    .serviceCommand("results <id>", "list what became of each action of a bulk job")
    .choice("--status <status>", "only these", ["waiting", "done", "failed"])
    .pages()
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }, id: string, query: BulkResultQuery) =>
      printList(await client.listBulkResults(id, query), "No results.", [
        ["ID", (result) => result.id],
        ["STATUS", ({ status }) => status],
        ["NOW", ({ action_status: now }) => now ?? ""],
        ["ERROR", ({ error }) => error?.message ?? ""],
      ]),
    );
  bulk
    .serviceCommand("stop <id>", "stop a bulk job; what is done stays done")
    .sessionAction(async ({ client, say }, id: string) => {
      await client.stopBulk(id);
      say(`Stopped ${id}.`);
    });
}

export function addExport(program: CliCommand): void {
  addFilterOptions(program.serviceCommand("export", "write all actions that match, as NDJSON or CSV"))
    .choice("--status <status>", "may be given several times", STATUSES, statuses)
    .choice("--format <format>", "default: ndjson", ["ndjson", "csv"])
    .sessionAction(async (session, { format, ...filters }: FilterOptions & Pick<ExportQuery, "format">) => {
      const { client, io } = session;
      const query: ExportQuery = { ...(await filterQuery(session, filters)), ...given({ format }) };
      // Lines of CSV end with a carriage return too, which a terminal must not show. A file gets the export unchanged.
      const visibleText = (text: string) =>
        format === "csv" ? visible(text.replaceAll("\r", ""), true) : visibleJson(text);
      const print = async (text: string) => {
        const shown = io.isTty ? visibleText(text) : text;
        if (io.stream === undefined) io.out(shown);
        else await io.stream(shown);
      };
      const decoder = new TextDecoder();
      for await (const chunk of client.exportActions(query)) await print(decoder.decode(chunk, { stream: true }));
      await print(decoder.decode());
    });
}

/** The options of `addFilterOptions`: the API's filters, with beginnings of ids. */
interface FilterOptions extends Omit<FilterQuery, "reason"> {
  readonly reason_text?: string;
}

/** Collects statuses; `held` is short for `awaiting_approval`. */
function statuses(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...new Set([...earlier, text === "held" ? "awaiting_approval" : text])];
}

/** Adds the API's filters as options, except for the status, which each command handles in its own way. */
function addFilterOptions(command: CliCommand): CliCommand {
  return command
    .option("--id <id>", "only these actions; may be given several times", several)
    .member("q", "--search <text>", "in host, path or title, or the start of an id")
    .choice("--method <method>", "of the call", HTTP_METHODS, (text) => text.toUpperCase())
    .option("--host <host>", "host name, with a port or for any port")
    .option("--path <path>", "the start of the target's path")
    .option("--dedupe <key>", "the dedupe key of the create")
    .option("--created-by <id>", "id of the key that created them")
    .member("created_after", "--after <time>", "created later than this, such as 2026-03-04T12:00:00Z")
    .member("created_before", "--before <time>", "created earlier than this")
    .member(
      "response_code",
      "--code <status>",
      "status of the target or a class such as 5xx; may be given several times",
      several,
    )
    .choice("--outcome <outcome>", "of the newest attempt", OUTCOMES)
    .choice("--error <kind>", "of the newest attempt's failure", ERROR_KINDS)
    .option("--title <text>", "in the title")
    .option("--reason-text <text>", "in the requester's reason")
    .option("--metadata <name:value>", "a value, or any value of a name; all of several", several);
}

/** Turns filter options into a query for the API, with whole ids. */
async function filterQuery(
  session: Session,
  { id: texts, reason_text: reason, ...query }: FilterOptions,
): Promise<FilterQuery> {
  const ids: string[] = [];
  // One after another, so that an ambiguous id is reported before the rest are looked up.
  for (const text of texts ?? []) ids.push(await findActionId(session, text));
  return { ...query, ...given({ reason, id: texts && ids }) };
}
