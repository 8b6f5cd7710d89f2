import { setImmediate as nextTurn } from "node:timers/promises";
import type { Caller } from "../core/roles.ts";
import { DomainError } from "../core/domain-error.ts";
import { EXPORT_PAGE_ACTIONS, EXPORTS_PER_ACCOUNT_MAX, IDLE_EXPORT_SECONDS } from "../core/limits.ts";
import type { RequestContext } from "../http/request.ts";
import { toStream } from "../http/response.ts";
import type { ActionSerializer } from "../receipts/action-json.ts";
import { seeAll } from "../receipts/see.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { nextRetryAt, TEXT_EXTRAS } from "../core/action.ts";
import { OpenPerAccount } from "../runtime/fair-share.ts";
import type { ActionService, CountFilter } from "./service.ts";

const EXPORT_FORMATS = ["ndjson", "csv"] as const;

type ExportFormat = (typeof EXPORT_FORMATS)[number];

interface ExportRequest {
  readonly format: ExportFormat;
  readonly filter: CountFilter;
}

/**
 * Streams every action that a filter finds, newest first, masked for the caller as a list is. Calls `left` once it has ended, or
 * can't begin.
 */
export type ExportActions = (
  context: RequestContext,
  caller: Caller,
  request: ExportRequest,
  left?: () => void,
) => Promise<Response>;

/**
 * Creates exports. An action that was stored at the start and matches throughout comes exactly once; later ones may be left out. A
 * client that leaves ends the export. An error, a revoked key, the end of a session or a stop of the service breaks off the connection, which a client sees.
 */
export function createExportActions(
  actionService: Pick<ActionService, "list">,
  serialize: ActionSerializer,
  draining: AbortSignal,
): ExportActions {
  const refusal = `The account has ${EXPORTS_PER_ACCOUNT_MAX} exports open. Wait for one to end.`;
  const open = new OpenPerAccount(EXPORTS_PER_ACCOUNT_MAX, refusal);
  let last: Promise<unknown> = Promise.resolve();

  /** Makes one page at a time for all exports, since each blocks the event loop for a moment. */
  const inTurn = <Page>(make: () => Promise<Page>): Promise<Page> => {
    const made = last.then(() => nextTurn()).then(make);
    last = made.catch(() => {});
    return made;
  };

  /** The pages of an export. Throws what the list throws, also while it runs. */
  async function* exportPages(caller: Caller, { format, filter }: ExportRequest): AsyncGenerator<string> {
    if (format === "csv") yield csvLine(COLUMNS.map(([name]) => name));
    let before: string | null = null;
    do {
      const from = before;
      const { text, next } = await inTurn(async () => {
        if (draining.aborted) throw new DomainError("unavailable", "The service is stopping.");
        const page = await actionService.list(caller, { ...filter, before: from, limit: EXPORT_PAGE_ACTIONS });
        const seen = await seeAll(page.actions, caller);
        const lines = seen.map((action) =>
          format === "csv"
            ? csvLine(COLUMNS.map(([, value]) => value(action)))
            : // Line breaks in a stored body can only be white space of its JSON.
              `${serialize(caller, action).replaceAll(/[\r\n]+/g, " ")}\n`,
        );
        return { text: lines.join(""), next: page.before };
      });
      if (text !== "") yield text;
      before = next;
    } while (before !== null);
  }

  async function* writeExport(caller: Caller, request: ExportRequest, left: () => void): AsyncGenerator<string> {
    try {
      yield* open.during(caller.accountId, exportPages(caller, request));
    } finally {
      left();
    }
  }

  return async (context, caller, request, left = () => {}) => {
    // A search may take longer than an idle connection is kept.
    context.server?.timeout(context.request, IDLE_EXPORT_SECONDS);
    const stream = await toStream(writeExport(caller, request, left));
    context.kind = "stream";
    return new Response(stream, { headers: headersFor(request.format) });
  };
}

function headersFor(format: ExportFormat): Readonly<Record<string, string>> {
  const type = format === "csv" ? "text/csv" : "application/x-ndjson";
  return {
    "content-type": type,
    "content-disposition": `attachment; filename="actions.${format}"`,
    "cache-control": "no-store",
  };
}

type Cell = string | number | boolean | null;

const timeText = (at: Date | null) => at?.toISOString() ?? null;

const textCell = (text: string | object | undefined) =>
  typeof text === "object" ? JSON.stringify(text) : (text ?? null);

/** The columns of a CSV export: what the list shows, and what it filters by. */
const COLUMNS: readonly (readonly [name: string, value: (action: SeenAction) => Cell])[] = [
  ["id", ({ id }) => id],
  ["status", ({ status }) => status],
  ["title", ({ title }) => title],
  ["method", ({ method }) => method],
  ["host", ({ host }) => host],
  ["url", ({ url }) => url],
  ["dedupe", ({ dedupe }) => dedupe],
  ["run", ({ run }) => run],
  ["attempts", ({ attempts }) => attempts],
  ["retries", ({ retries }) => retries],
  ["created_at", ({ createdAt }) => timeText(createdAt)],
  ["created_by_id", ({ keyId }) => (keyId === "" ? null : keyId)],
  ["created_by", ({ createdBy }) => createdBy.slice(createdBy.indexOf(":") + 1)],
  ["started_at", ({ startedAt }) => timeText(startedAt)],
  ["finished_at", ({ finishedAt }) => timeText(finishedAt)],
  ["next_retry_at", (action) => timeText(nextRetryAt(action))],
  ["response_code", ({ result }) => result?.responseCode ?? null],
  ["last_error", ({ result }) => result?.lastError ?? null],
  ["duration_ms", ({ result }) => result?.durationMs ?? null],
  ["late_result_run", ({ lateResult }) => lateResult?.run ?? null],
  ["late_result_code", ({ lateResult }) => lateResult?.responseCode ?? null],
  ["approve", ({ approve }) => approve],
  ["approved_at", ({ approvedAt }) => timeText(approvedAt)],
  ["approved_by", ({ approvedBy }) => approvedBy],
  ...TEXT_EXTRAS.map((name) => [name, ({ extras }: SeenAction) => textCell(extras[name])] as const),
];

/** A line of CSV (RFC 4180). */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/**
 * Adds an apostrophe to what spreadsheets would take for a formula, also after blanks and quotes (OWASP, "CSV Injection"), and after
 * a semicolon, at which they split lines where a comma is the decimal point. Numbers are our own, so they need none.
 */
function csvCell(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell !== "string") return String(cell);
  return `"${cell.replace(FORMULAS, "$1'").replaceAll('"', '""')}"`;
}

const FORMULAS = /(^|;)(?=[\s"']*[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20])/g;
