import type { AuditLog, AuditQuery } from "../../contract/audit.ts";
import { readArguments, wholeNumber } from "../arguments.ts";
import { type Command, EXIT } from "../command.ts";
import { withSession } from "../session.ts";
import { type Cell, seen, table } from "../style.ts";

const OPTIONS = {
  kind: { type: "string", multiple: true },
  actor: { type: "string" },
  since: { type: "string" },
  until: { type: "string" },
  limit: { type: "string" },
  cursor: { type: "string" },
  all: { type: "boolean" },
  json: { type: "boolean" },
} as const;

/** Entries that one request of an export asks for. */
const PAGE = 100;

/** `outgate audit`: who did what to the account, newest first. */
export const auditCommand: Command = {
  usage: "audit [options]",
  details: `  --kind <kind>      such as key_revoked; may be given several times
  --actor <actor>    such as user:ann@example.com
  --since <time>     at this time or later, as 2026-03-04T12:00:00Z
  --until <time>     earlier than this
  --limit <n>        1 to 100; 20 unless it is said
  --cursor <cursor>  the next page, as the page before names it
  --all              all entries, as JSON, one a line
  --json             JSON also on a terminal`,
  run: withSession(async (args, { client, io, json, line, say, paint }) => {
    const { values } = readArguments(args, OPTIONS);
    const asked = {
      kind: values.kind,
      actor: values.actor,
      since: values.since,
      until: values.until,
      limit: wholeNumber(values.limit, "limit"),
      cursor: values.cursor,
    };
    // Safe: whatever else a person may have written as a kind, the service says what is wrong with it.
    const query = asked as AuditQuery;
    if (values.all === true) {
      let cursor: string | null | undefined = values.cursor;
      do {
        const page: AuditLog = await client.listAudit({ ...query, limit: PAGE, ...(cursor ? { cursor } : {}) });
        for (const entry of page.data) line(entry);
        cursor = page.next_cursor;
      } while (cursor !== null);
      return EXIT.ok;
    }
    const page = await client.listAudit(query);
    if (values.json === true || !io.isTty) {
      json(page);
      return EXIT.ok;
    }
    say(page.data.length === 0 ? "There are no such entries." : table(auditRowsOf(page), paint, io.columns));
    if (page.next_cursor !== null) say(paint(`more: outgate audit --cursor ${page.next_cursor} …`, "grey"));
    return EXIT.ok;
  }),
};

function auditRowsOf({ data }: AuditLog): readonly (readonly Cell[])[] {
  const head = ["AT", "WHAT", "WHO", "FROM", "ON WHAT"].map((text): Cell => ({ text, color: "grey" }));
  const rows = data.map((entry): readonly Cell[] => [
    entry.at,
    entry.kind,
    seen(entry.actor),
    seen(entry.client ?? "the service"),
    seen(entry.subject),
  ]);
  return [head, ...rows];
}
