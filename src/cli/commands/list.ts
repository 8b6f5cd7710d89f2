import type { Action } from "../../contract/action.ts";
import type { ListQuery } from "../../contract/page.ts";
import { age, STATUS_COLOR, withHost } from "../action-text.ts";
import { readArguments, wholeNumber } from "../arguments.ts";
import { type Command, EXIT } from "../command.ts";
import { withSession } from "../session.ts";
import { type Cell, seen, table } from "../style.ts";

const LIST_OPTIONS = {
  status: { type: "string", multiple: true },
  method: { type: "string" },
  host: { type: "string" },
  dedupe: { type: "string" },
  "created-by": { type: "string" },
  after: { type: "string" },
  before: { type: "string" },
  limit: { type: "string" },
  cursor: { type: "string" },
  json: { type: "boolean" },
} as const;

/** `outgate list`: the account's actions, newest first. */
export const listCommand: Command = {
  usage: "list [options]",
  details: `  --status <status>  may be given several times
  --method <method>  GET, POST, PUT, PATCH or DELETE
  --host <host>      host name, with a port or for any port
  --dedupe <key>     the dedupe key of the create
  --created-by <id>  id of the key that created them
  --after <time>     created later than this, as 2026-03-04T12:00:00Z
  --before <time>    created earlier than this
  --limit <n>        1 to 100; 20 unless it is said
  --cursor <cursor>  the next page, as the page before names it
  --json             JSON also on a terminal`,
  run: withSession(async (args, session) => {
    const { values } = readArguments(args, LIST_OPTIONS);
    const { client, io, json, say, paint } = session;
    const query = {
      status: values.status,
      method: values.method?.toUpperCase(),
      host: values.host,
      dedupe: values.dedupe,
      created_by: values["created-by"],
      created_after: values.after,
      created_before: values.before,
      limit: wholeNumber(values.limit, "limit"),
      cursor: values.cursor,
    };
    // Safe: whatever else a person may have written as a status or method, the service says what is wrong with it.
    const page = await client.listActions(query as ListQuery);
    if (values.json === true || !io.isTty) {
      json(page);
      return EXIT.ok;
    }
    say(page.data.length === 0 ? "There are no such actions." : table(rowsOf(page.data), paint, io.columns));
    if (page.next_cursor !== null) say(paint(`more: outgate list --cursor ${page.next_cursor} …`, "grey"));
    return EXIT.ok;
  }),
};

function rowsOf(actions: readonly Action[]): readonly (readonly Cell[])[] {
  const head = ["ID", "STATUS", "TRIES", "AGE", "BY", "METHOD", "URL"].map((text): Cell => ({ text, color: "grey" }));
  const now = new Date();
  const rows = actions.map((action): readonly Cell[] => [
    action.id,
    { text: action.status, color: STATUS_COLOR[action.status] },
    `${action.attempts}/${action.retries}`,
    age(action.created_at, now),
    seen(action.created_by.name),
    action.method,
    withHost(seen(action.url)),
  ]);
  return [head, ...rows];
}
