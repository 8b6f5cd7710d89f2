import type { BulkDryRun, BulkJob, BulkQuery, BulkResultQuery, ExportQuery, StartBulk } from "../../client/openapi.ts";
import { setTimeout as pause } from "node:timers/promises";
import { LISTED_COLUMNS } from "../action-list.ts";
import { STATUS_COLOR } from "../action-text.ts";
import { type CliCommand, given, wholeNumber } from "../command.ts";
import { EXIT, saysYes, UsageError } from "../io.ts";
import { addFilterOptions, type FilterOptions, filterQueryOf, statuses } from "../filters.ts";
import { visible } from "../../observability/terminal.ts";
import { visibleJson } from "../output.ts";
import { listTable, printList, type Session } from "../session.ts";

type Operation = StartBulk["operation"];

export interface BulkOptions extends FilterOptions {
  readonly reason?: string;
  readonly wait?: number;
  readonly dry_run?: boolean;
  readonly yes?: boolean;
  readonly failed?: boolean;
  readonly cancelled?: boolean;
  readonly pending?: boolean;
  readonly held?: boolean;
}

const CHOICES = {
  retry: [
    ["failed", "failed", "the same as --status failed"],
    ["cancelled", "cancelled", "the same as --status cancelled"],
  ],
  cancel: [
    ["pending", "pending", "the same as --status pending"],
    ["held", "awaiting_approval", "the same as --status held"],
  ],
} as const;

const WORDS = {
  retry: { verb: "Retry", done: "retried" },
  cancel: { verb: "Cancel", done: "cancelled" },
} as const;

/** Lets a command take filters in place of an id. */
export function addBulkOptions(command: CliCommand, operation: Operation): CliCommand {
  const words = CHOICES[operation].map(([name, status]) => (name === "held" ? name : status));
  command.choice(
    "--status <status>",
    "all of this status that match, in one job; may be given several times",
    words,
    statuses,
  );
  for (const [name, , description] of CHOICES[operation]) command.option(`--${name}`, description);
  return addFilterOptions(command).option("--dry-run", "only say how many a job would cover, and the newest of them");
}

const OF_ONE = new Set(["reason", "wait", "run", "yes"]);

/** Options that a command on one action would ignore. */
export function refuseFilters(options: object): void {
  if (Object.keys(options).some((name) => !OF_ONE.has(name)))
    throw new UsageError("An id takes no filters: leave out one or the other.");
}

/** Begins a job and follows it for `--wait` seconds. On a terminal it first shows a dry run, and asks. */
export async function runBulk(session: Session, options: BulkOptions, operation: Operation): Promise<number> {
  const { reason, wait = 0, dry_run: dryRun, yes, failed, cancelled, pending, held, status = [], ...filters } = options;
  const { client, io } = session;
  const asked: Readonly<Record<string, boolean | undefined>> = { failed, cancelled, pending, held };
  const named = CHOICES[operation].filter(([name]) => asked[name] === true).map(([, one]) => one);
  const all = [...new Set([...status, ...named])];
  if (all.length === 0 && filters.id === undefined) {
    const words = CHOICES[operation].map(([name]) => `--status ${name}`).join(" or ");
    throw new UsageError(`${operation} takes the id of an action, or ${words} with filters, or --id several times.`);
  }
  const filter = await filterQueryOf(session, { ...filters, ...(all.length > 0 && { status: all }) });
  const bulk = { operation, filter, ...given({ reason }) };
  if (dryRun === true) {
    const found = await client.startBulk({ ...bulk, dry_run: true });
    const text = session.isJson ? "" : await foundText(session, bulk, found);
    session.print(found, () => text);
    return EXIT.ok;
  }
  if (io.canAnswer === true && yes !== true && !(await isConfirmed(session, bulk))) return EXIT.failed;
  const job = await followed(session, await client.startBulk(bulk), wait);
  session.print(job, () => {
    const next = job.status === "running" ? `Follow it: outgate bulk get ${job.id} --wait 60\n` : "";
    return `${jobText(job)}\n${next}`;
  });
  return exitCodeOf(job, wait > 0);
}

type Bulk = Omit<StartBulk, "dry_run">;

/** Shows what a job would cover, and asks whether to begin it. */
async function isConfirmed(session: Session, bulk: Bulk): Promise<boolean> {
  const { client, io } = session;
  const found = await client.startBulk({ ...bulk, dry_run: true });
  io.err(await foundText(session, bulk, found));
  if (found.matching === 0) return false;
  const isYes = await saysYes(`${WORDS[bulk.operation].verb} ${countText(found)}?`, io);
  if (!isYes) io.err("Nothing was begun.\n");
  return isYes;
}

const ROWS_SHOWN_MAX = 5;

/** What a dry run says to a person: how many, a warning, and the newest of them. */
async function foundText(session: Session, { operation, filter }: Bulk, found: BulkDryRun): Promise<string> {
  const { client, paint } = session;
  if (found.matching === 0) return "No action matches.\n";
  const page = await client.listActions({ ...filter, limit: ROWS_SHOWN_MAX });
  const left = found.matching - page.data.length;
  const { unknown_outcomes: unknown, late_results: late } = found;
  const warning = `${unknown} of them may have been carried out already by the target.`;
  const done = `${late} of them were carried out by the target, which answered too late.`;
  return [
    `${countText(found)} would be ${WORDS[operation].done}.\n`,
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

/** The job when it has ended, or after so many seconds. */
async function followed({ client }: Session, job: BulkJob, seconds: number): Promise<BulkJob> {
  let now = job;
  for (let waitedMs = 0; now.status === "running" && waitedMs < seconds * 1_000; waitedMs += LOOK_MS) {
    await pause(LOOK_MS);
    now = await client.getBulk(job.id);
  }
  return now;
}

function exitCodeOf({ status, failed }: BulkJob, hasWaited: boolean): number {
  if (status === "running") return hasWaited ? EXIT.timeout : EXIT.ok;
  return failed === 0 && status === "finished" ? EXIT.ok : EXIT.failed;
}

function jobText({ id, operation, status, matching, done, failed }: BulkJob): string {
  return `${id}  ${operation} ${status}: ${done} of ${matching} done, ${failed} refused`;
}

export function addBulkCommands(program: CliCommand): void {
  const bulk = program.command("bulk").description("bulk jobs: what became of them, and to stop one");
  bulk
    .service("list", "list bulk jobs, newest first")
    .pages()
    .lists(
      (client, query: BulkQuery) => client.listBulk(query),
      [
        ["ID", ({ id }) => id],
        ["JOB", ({ operation }) => operation],
        ["STATUS", ({ status }) => status],
        ["DONE", ({ done }) => `${done}`],
        ["REFUSED", ({ failed }) => `${failed}`],
        ["OF", ({ matching }) => `${matching}`],
        ["BY", ({ created_by: by }) => visible(by)],
      ],
      { empty: "No bulk jobs.", command: "outgate bulk list" },
    );
  bulk
    .service("get <id>", "show a bulk job and how far it is")
    .option("--wait <seconds>", "wait up to this long for its end", wholeNumber("wait"))
    .prints(async (session, { wait = 0 }: { readonly wait?: number }, id: string) => {
      const job = await followed(session, await session.client.getBulk(id), wait);
      session.print(job, jobText);
      return exitCodeOf(job, wait > 0);
    });
  bulk
    .service("results <id>", "list what became of each action of a bulk job")
    .choice("--status <status>", "only these", ["waiting", "done", "failed"])
    .pages()
    .prints(async (session, query: BulkResultQuery, id) =>
      printList(
        session,
        await session.client.listBulkResults(id, query),
        [
          ["ID", (result) => result.id],
          ["STATUS", ({ status }) => status],
          ["NOW", ({ action_status: now }) => now ?? ""],
          ["ERROR", ({ error }) => visible(error?.message ?? "")],
        ],
        { empty: "No results.", command: `outgate bulk results ${id}` },
      ),
    );
  bulk
    .service("stop <id>", "stop a bulk job; what is done stays done")
    .calls(async ({ client, say }, _options: object, id: string) => {
      await client.stopBulk(id);
      say(`Stopped ${id}.`);
    });
}

export function addExport(program: CliCommand): void {
  addFilterOptions(program.service("export", "write all actions that match, as NDJSON or CSV"))
    .choice("--status <status>", "may be given several times", [...Object.keys(STATUS_COLOR), "held"], statuses)
    .choice("--format <format>", "default: ndjson", ["ndjson", "csv"])
    .calls(async (session, { format, ...filters }: FilterOptions & Pick<ExportQuery, "format">) => {
      const { client, io } = session;
      const query: ExportQuery = { ...(await filterQueryOf(session, filters)), ...given({ format }) };
      // A file gets the export as it is; in CSV, a line ends with a carriage return too.
      const visibleText = (text: string) =>
        format === "csv" ? visible(text.replaceAll("\r", ""), true) : visibleJson(text);
      const print = (text: string) => io.out(io.isTty ? visibleText(text) : text);
      const decoder = new TextDecoder();
      for await (const chunk of client.exportActions(query)) print(decoder.decode(chunk, { stream: true }));
      print(decoder.decode());
    });
}
