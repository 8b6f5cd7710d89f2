import { setTimeout as pause } from "node:timers/promises";
import type { BulkJobJson, StartBulk } from "../../bulk/schemas.ts";
import type { ExportQuery, FilterQuery } from "../../actions/list-schemas.ts";
import { STATUS_COLOR } from "../action-text.ts";
import { type CliCommand, EXIT, UsageError, wholeNumber } from "../command.ts";
import { addFilterOptions, type FilterOptions, filterQueryOf, statuses } from "../filters.ts";
import { visible } from "../../observability/terminal.ts";
import type { Cell } from "../table.ts";
import { addServiceCommand, JSON_OPTION, printList, type Session, withSession } from "../session.ts";

type Operation = StartBulk["operation"];

export interface BulkOptions extends FilterOptions {
  readonly reason?: string;
  readonly wait?: number;
  readonly dryRun?: boolean;
  readonly failed?: boolean;
  readonly cancelled?: boolean;
  readonly pending?: boolean;
  readonly held?: boolean;
}

/** The statuses that an operation is for, as options. */
const CHOICES = {
  retry: [
    ["failed", "failed", "all that failed, in one job"],
    ["cancelled", "cancelled", "all that were cancelled, in one job"],
  ],
  cancel: [
    ["pending", "pending", "all that wait to be sent, in one job"],
    ["held", "awaiting_approval", "all that await approval, in one job"],
  ],
} as const;

/** Lets a command take a filter in place of an id. */
export function addBulkOptions(command: CliCommand, operation: Operation): CliCommand {
  for (const [name, , description] of CHOICES[operation]) command.option(`--${name}`, description);
  return addFilterOptions(command).option("--dry-run", "only say how many a job would cover");
}

/** Options that a command on one action would ignore. */
export function refuseFilters({
  reason: _reason,
  wait: _wait,
  ...options
}: BulkOptions & { readonly run?: number }): void {
  const { run: _run, ...others } = options;
  const [given] = Object.entries(others).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (given !== undefined) throw new UsageError("An id takes no filters: leave out one or the other.");
}

/** Begins a job on everything that the options find, and follows it for `--wait` seconds. */
export async function runBulk(session: Session, options: BulkOptions, operation: Operation): Promise<number> {
  const { reason, wait = 0, dryRun, failed, cancelled, pending, held, ...filters } = options;
  const asked: Readonly<Record<string, boolean | undefined>> = { failed, cancelled, pending, held };
  const status = CHOICES[operation].filter(([name]) => asked[name] === true).map(([, one]) => one);
  if (status.length === 0) {
    const choices = CHOICES[operation].map(([name]) => `--${name}`).join(" or ");
    throw new UsageError(`${operation} takes the id of an action, or ${choices} with filters.`);
  }
  const filter: FilterQuery = { ...filterQueryOf(filters), status };
  const bulk = { operation, filter, ...(reason === undefined ? {} : { reason }) };
  if (dryRun === true) return printDryRun(session, bulk);
  const job = await followed(session, await session.client.startBulk(bulk), wait);
  session.print(job, () => jobText(job));
  return exitCodeOf(job, wait > 0);
}

async function printDryRun(session: Session, bulk: Omit<StartBulk, "dry_run">): Promise<number> {
  const found = await session.client.startBulk({ ...bulk, dry_run: true });
  session.print(found, () => {
    const most = found.is_more ? "more than " : "";
    const unknown = found.unknown_outcomes;
    const warning = unknown === 0 ? "" : `${unknown} of them may have been carried out already by the target.\n`;
    return `${bulk.operation} would cover ${most}${found.matching} actions.\n${warning}`;
  });
  return EXIT.ok;
}

const LOOK_MS = 500;

/** The job when it has ended, or after so many seconds. */
async function followed({ client }: Session, job: BulkJobJson, seconds: number): Promise<BulkJobJson> {
  let now = job;
  for (let waitedMs = 0; now.status === "running" && waitedMs < seconds * 1_000; waitedMs += LOOK_MS) {
    await pause(LOOK_MS);
    now = await client.getBulk(job.id);
  }
  return now;
}

function exitCodeOf({ status, failed }: BulkJobJson, hasWaited: boolean): number {
  if (status === "running") return hasWaited ? EXIT.timeout : EXIT.ok;
  return failed === 0 && status === "finished" ? EXIT.ok : EXIT.failed;
}

function jobText({ id, operation, status, matching, done, failed }: BulkJobJson): string {
  return `${id}  ${operation} ${status}: ${done} of ${matching} done, ${failed} refused`;
}

interface ResultOptions {
  readonly status?: "waiting" | "done" | "failed";
  readonly limit?: number;
  readonly cursor?: string;
}

/** `outgate bulk` and `outgate export`. */
export function addBulkCommands(program: CliCommand): void {
  const bulk = program.command("bulk").description("bulk jobs: what became of them, and to stop one");
  addServiceCommand(bulk, "list", "list bulk jobs, newest first")
    .option(...JSON_OPTION)
    .runs(withSession(listJobs));
  addServiceCommand(bulk, "get <id>", "show a bulk job and how far it is")
    .option("--wait <seconds>", "wait up to this long for its end", wholeNumber("wait"))
    .option(...JSON_OPTION)
    .runs(
      withSession(async (session, { wait = 0 }: { readonly wait?: number }, id: string) => {
        const job = await followed(session, await session.client.getBulk(id), wait);
        session.print(job, () => jobText(job));
        return exitCodeOf(job, wait > 0);
      }),
    );
  addServiceCommand(bulk, "results <id>", "list what became of each action of a bulk job")
    .choice("--status <status>", "only these", ["waiting", "done", "failed"])
    .option("--limit <n>", "1 to 100; default 20", wholeNumber("limit"))
    .option("--cursor <cursor>", "the next page, by the cursor that the last page printed")
    .option(...JSON_OPTION)
    .runs(withSession(listResults));
  addServiceCommand(bulk, "stop <id>", "stop a bulk job; what is done stays done").runs(
    withSession(async ({ client, say }, _options: object, id: string) => {
      await client.stopBulk(id);
      say(`Stopped ${id}.`);
      return EXIT.ok;
    }),
  );
  addFilterOptions(addServiceCommand(program, "export", "write all actions that match, as NDJSON or CSV"))
    .choice("--status <status>", "may be given several times", [...Object.keys(STATUS_COLOR), "held"], statuses)
    .choice("--format <format>", "default: ndjson", ["ndjson", "csv"])
    .runs(withSession(exportActions));
}

async function listJobs(session: Session): Promise<number> {
  return printList(session, await session.client.listBulk(), {
    headings: ["ID", "JOB", "STATUS", "DONE", "REFUSED", "OF", "BY"],
    rowOf: (job): readonly Cell[] => [
      job.id,
      job.operation,
      job.status,
      `${job.done}`,
      `${job.failed}`,
      `${job.matching}`,
      visible(job.created_by),
    ],
    empty: "No bulk jobs.",
    command: "outgate bulk list",
  });
}

async function listResults(session: Session, query: ResultOptions, id: string): Promise<number> {
  return printList(session, await session.client.listBulkResults(id, query), {
    headings: ["ID", "STATUS", "NOW", "ERROR"],
    rowOf: (result): readonly Cell[] => [
      result.id,
      result.status,
      result.action_status ?? "",
      visible(result.error?.message ?? ""),
    ],
    empty: "No results.",
    command: `outgate bulk results ${id}`,
  });
}

type ExportOptions = FilterOptions & Pick<ExportQuery, "format">;

async function exportActions({ client, io }: Session, { format, ...filters }: ExportOptions): Promise<number> {
  const query: ExportQuery = { ...filterQueryOf(filters), ...(format === undefined ? {} : { format }) };
  const decoder = new TextDecoder();
  for await (const chunk of client.exportActions(query)) io.out(decoder.decode(chunk, { stream: true }));
  io.out(decoder.decode());
  return EXIT.ok;
}
