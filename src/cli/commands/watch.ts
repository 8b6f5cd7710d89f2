import type { OutgateEvent } from "../../client/follow.ts";
import { exitCodeOf, STATUS_COLOR } from "../action-text.ts";
import { readArguments } from "../arguments.ts";
import { type Command, EXIT } from "../command.ts";
import { type Session, withSession } from "../session.ts";
import { seen, table } from "../style.ts";
import { hasEnded, openStream } from "../wait.ts";

const WATCH_OPTIONS = {
  after: { type: "string" },
  status: { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;

/** `outgate watch`: every change of status as it happens; of one action until it has ended. */
export const watchCommand: Command = {
  usage: "watch [<id>] [options]",
  details: `  <id>               only this action, until it has ended; the exit code says how
  --status <status>  only changes to this; may be given several times
  --after <event>    go on behind the event of this id, as --json shows it
  --json             one JSON line for each event, also on a terminal`,
  run: withSession(async (args, session) => {
    const { values, positionals } = readArguments(args, WATCH_OPTIONS, ["[<id>]"]);
    const release = new AbortController();
    const deafen = session.io.onInterrupt?.(() => release.abort());
    try {
      return await follow(session, { ...values, id: positionals[0] }, release.signal);
    } finally {
      deafen?.();
      release.abort();
    }
  }),
};

interface Wanted {
  readonly id: string | undefined;
  readonly after?: string | undefined;
  readonly status?: readonly string[] | undefined;
  readonly json?: boolean | undefined;
}

async function follow(session: Session, wanted: Wanted, signal: AbortSignal): Promise<number> {
  const { client, io, url } = session;
  const { id, after, status = [] } = wanted;
  const onBreak = () => io.err(`The stream of ${url} has broken off; it is opened again.\n`);
  const { events, first } = await openStream(client, { after, signal, onBreak });
  // First the stream, then the action: an end in between is in one of the two.
  const known = id === undefined ? null : await client.getAction(id);
  if (known !== null && hasEnded(known)) return exitCodeOf(known.status, false);
  for (let next = await first; next.done !== true; next = await events.next()) {
    const { action } = next.value;
    if (id !== undefined && action.id !== id) continue;
    if (status.length === 0 || status.includes(action.status)) print(next.value, session, wanted.json === true);
    if (id !== undefined && hasEnded(action)) return exitCodeOf(action.status, false);
  }
  return EXIT.ok;
}

function print({ id, type, timestamp, action }: OutgateEvent, session: Session, isJson: boolean): void {
  const { io, line, say, paint } = session;
  if (isJson || !io.isTty) {
    line({ id, type, timestamp, data: action });
    return;
  }
  const time = { text: timestamp.slice(11, 19), color: "grey" } as const;
  const status = { text: action.status.padEnd("awaiting_approval".length), color: STATUS_COLOR[action.status] };
  const tries = action.attempts === 0 ? "" : `attempt ${action.attempts} of ${action.retries}, `;
  const end = action.last_error ?? (action.response_code === null ? "" : `${action.response_code}`);
  const told = `${action.method} ${action.url} ${tries}${end}`.trim().replace(/,$/, "");
  say(table([[time, status, action.id, seen(told)]], paint, io.columns));
}
