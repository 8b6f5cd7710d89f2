import type { NotificationList, NotificationQuery, Overview, OverviewQuery, Server } from "../../client/openapi.ts";
import { type Color, visible } from "../../observability/terminal.ts";
import { type CliCommand, EXIT, given, wholeNumber } from "../command.ts";
import { addServiceCommand, JSON_OPTION, printList, type Session, withSession } from "../session.ts";
import { type Cell, table, tableOf } from "../table.ts";

export function addOverview(program: CliCommand): void {
  addServiceCommand(program, "overview", "show the figures of an hour, a day, a week or 30 days")
    .choice("--range <range>", "how far back; default 24h", RANGES)
    .option(...JSON_OPTION)
    .runs(withSession(showOverview));
}

/** The commands that show notifications and the server. */
export function addNotificationsAndServer(program: CliCommand): void {
  addServiceCommand(program, "notifications", "list callbacks, mails and messages, newest first (owner key)")
    .option("--limit <n>", "1 to 100; default 20", wholeNumber("limit"))
    .option("--cursor <cursor>", "the next page, by the cursor that the last page printed")
    .option(...JSON_OPTION)
    .runs(withSession(listNotifications));
  const server = addServiceCommand(
    program,
    "server",
    "show the settings of the server, or test its mail (owner key)",
  ).usage("[show] | server test-mail <address>");
  addServiceCommand(server, "show", "show what is in force; secrets are shown nowhere", { isDefault: true })
    .option(...JSON_OPTION)
    .runs(withSession(showServer));
  addServiceCommand(server, "test-mail <address>", "send a test mail to a person of the account")
    .option(...JSON_OPTION)
    .runs(withSession(sendTestMail));
}

const RANGES = ["1h", "24h", "7d", "30d"] as const satisfies readonly OverviewQuery["range"][];

async function showOverview({ client, print, paint, io }: Session, { range }: OverviewQuery): Promise<void> {
  const overview = await client.getOverview(given({ range }));
  print(overview, () => overviewText(overview, paint, io.columns));
}

function overviewText(overview: Overview, paint: Session["paint"], room: number | undefined): string {
  const { range, slots, latency, approvals, hosts, retries } = overview;
  const sum = (member: "created" | "completed" | "failed") => slots.reduce((total, slot) => total + slot[member], 0);
  const more = approvals.is_more ? "+" : "";
  const figures: readonly (readonly [string, string])[] = [
    [`created in ${range}`, String(sum("created"))],
    ["completed", String(sum("completed"))],
    ["failed", String(sum("failed"))],
    ["latency p50, p95", latency === null ? "" : `${latency.p50_ms} ms, ${latency.p95_ms} ms`],
    ["awaiting approval", `${approvals.waiting}${more}`],
    ["scheduled retries", `${retries.scheduled}${retries.is_more ? "+" : ""}`],
  ];
  const rows = hosts.map((one): readonly Cell[] => [
    visible(one.host),
    String(one.created),
    String(one.completed),
    { text: String(one.failed), ...(one.failed > 0 && { color: "red" as const }) },
    one.p95_ms === null ? "" : `${one.p95_ms} ms`,
  ]);
  const columns = ["HOST", "CREATED", "COMPLETED", "FAILED", "P95"].map((heading) => ({ heading }));
  const byHost = rows.length === 0 ? "" : `\n${tableOf(columns, rows, paint, room)}`;
  return table(figures, paint, room) + byHost;
}

type NotificationItem = NotificationList["data"][number];

const STATE_COLOR: Readonly<Record<NotificationItem["status"], Color>> = {
  pending: "blue",
  active: "blue",
  delivered: "green",
  given_up: "red",
  dropped: "grey",
};

async function listNotifications(session: Session, query: NotificationQuery): Promise<void> {
  return printList(session, await session.client.listNotifications(query), {
    headings: [
      { heading: "AT" },
      { heading: "STATE" },
      { heading: "TRIES", leaves: 1 },
      { heading: "EVENT" },
      { heading: "ACTION", min: 17, mark: "" },
      { heading: "TARGET", min: 20 },
      { heading: "ERROR", min: 14 },
    ],
    rowOf: (one) => [
      one.created_at,
      { text: one.status, color: STATE_COLOR[one.status] },
      String(one.attempts),
      visible(one.event),
      one.action_id,
      visible(one.target),
      visible(one.status === "delivered" ? "" : (one.last_error ?? "")),
    ],
    empty: "No notifications yet.",
    command: "outgate notifications",
  });
}

async function showServer({ client, print, paint, io }: Session): Promise<void> {
  const server = await client.getServer();
  const { settings, version, targets, database } = server;
  print(server, () => {
    const head = `Outgate ${visible(version)}. ${visible(targets)}\n${sizeText(database)}`;
    if (settings === null) return head;
    const rows = settings.map(({ name, value, set, secret }): readonly Cell[] => [
      name,
      secret && set ? { text: "set, not shown", color: "grey" } : visible(value ?? ""),
      set ? "" : { text: "default", color: "grey" },
    ]);
    const columns = [{ heading: "SETTING" }, { heading: "VALUE", min: 20 }, { heading: "" }];
    return head + tableOf(columns, rows, paint, io.columns);
  });
}

function sizeText(database: Server["database"]): string {
  if (database === null) return "";
  const { bytes, free_bytes: free, deletable_bytes: deletable, deletable_days: days } = database;
  const megabytes = (count: number) => `${(count / 1_000_000).toFixed(1)} MB`;
  return `Database: ${megabytes(bytes)}, ${megabytes(free)} of it free. RETENTION_DAYS=${days} would free about ${megabytes(deletable)}.\n`;
}

async function sendTestMail({ client, print }: Session, _options: object, to: string): Promise<number> {
  const { delivered, error } = await client.sendTestMail({ to });
  print({ delivered, error }, () => (delivered ? "The mail provider took the test mail." : visible(error ?? "")));
  return delivered ? EXIT.ok : EXIT.failed;
}
