import type { NotificationList, NotificationQuery, Overview, OverviewQuery, Server } from "../../client/api.ts";
import { RANGE_NAMES } from "../../core/activity.ts";
import { type Color, visible } from "../../observability/terminal.ts";
import { type CliCommand, JSON_OPTION } from "../command.ts";
import { given } from "../option-values.ts";
import { EXIT } from "../io.ts";
import { type ListColumn, listTable, type Session } from "../session.ts";
import { textTable } from "../table.ts";

export function addOverview(program: CliCommand): void {
  program
    .serviceCommand("overview", "show the figures of an hour, a day, a week or 30 days")
    .choice("--range <range>", "how far back; default 24h", RANGE_NAMES)
    .option(...JSON_OPTION)
    .sessionAction(async (session, { range }: OverviewQuery) =>
      session.print(await session.client.getOverview(given({ range })), (overview) => overviewText(overview, session)),
    );
}

export function addNotificationsAndServer(program: CliCommand): void {
  program
    .serviceCommand("notifications", "list callbacks, mails and messages, newest first (owner key)")
    .pages()
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }, query: NotificationQuery) =>
      printList(await client.listNotifications(query), "No notifications yet.", NOTIFICATION_COLUMNS),
    );
  const server = program.serviceCommand("server", "show the settings of the server, or test its mail (owner key)");
  server
    .serviceCommand("show", "show what is in force; secrets are shown nowhere", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async (session) => {
      const shown = await session.client.getServer();
      const { settings, version, targets, database } = shown;
      const head = `Outgate ${visible(version)}. ${visible(targets)}\n${sizeText(database)}`;
      session.print(shown, () => head + (settings === null ? "" : listTable(session, settings, SETTING_COLUMNS)));
    });
  server
    .serviceCommand("test-mail <address>", "send a test mail to a person of the account")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, to: string) => {
      const { delivered, error } = await client.sendTestMail({ to });
      print({ delivered, error }, () => (delivered ? "The mail provider took the test mail." : visible(error ?? "")));
      return delivered ? EXIT.ok : EXIT.failed;
    });
}

function overviewText(overview: Overview, session: Session): string {
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
  const byHost = hosts.length === 0 ? "" : `\n${listTable(session, hosts, HOST_COLUMNS)}`;
  return textTable(figures, session.paint, session.io.columns) + byHost;
}

const HOST_COLUMNS: readonly ListColumn<Overview["hosts"][number]>[] = [
  ["HOST", ({ host }) => host],
  ["CREATED", ({ created }) => String(created)],
  ["COMPLETED", ({ completed }) => String(completed)],
  ["FAILED", ({ failed }) => ({ text: String(failed), ...(failed > 0 && { color: "red" as const }) })],
  ["P95", ({ p95_ms: ms }) => (ms === null ? "" : `${ms} ms`)],
];

type NotificationItem = NotificationList["data"][number];

const STATE_COLOR: Readonly<Record<NotificationItem["status"], Color>> = {
  pending: "blue",
  active: "blue",
  delivered: "green",
  given_up: "red",
  dropped: "grey",
};

const NOTIFICATION_COLUMNS: readonly ListColumn<NotificationItem>[] = [
  ["AT", ({ created_at: at }) => at],
  ["STATE", ({ status }) => ({ text: status, color: STATE_COLOR[status] })],
  ["TRIES", ({ attempts }) => String(attempts), { leaves: 1 }],
  ["EVENT", ({ event }) => event],
  ["ACTION", ({ action_id: id }) => id, { min: 17, mark: "" }],
  ["TARGET", ({ target }) => target, { min: 20 }],
  ["ERROR", ({ status, last_error: error }) => (status === "delivered" ? "" : (error ?? "")), { min: 14 }],
];

const SETTING_COLUMNS: readonly ListColumn<NonNullable<Server["settings"]>[number]>[] = [
  ["SETTING", ({ name }) => name],
  [
    "VALUE",
    ({ value, set, secret }) => (secret && set ? { text: "set, not shown", color: "grey" } : (value ?? "")),
    { min: 20 },
  ],
  ["", ({ set }) => (set ? "" : { text: "default", color: "grey" })],
];

function sizeText(database: Server["database"]): string {
  if (database === null) return "";
  const { bytes, free_bytes: free, deletable_bytes: deletable, deletable_days: days } = database;
  const megabytes = (count: number) => `${(count / 1_000_000).toFixed(1)} MB`;
  return `Database: ${megabytes(bytes)}, ${megabytes(free)} of it free. RETENTION_DAYS=${days} would free about ${megabytes(deletable)}.\n`;
}
