import {
  describe,
  describeDecision,
  describeTimeline,
  exitCodeOf,
  age,
  STATUS_COLOR,
  withHost,
} from "../action-text.ts";
import { readArguments, wholeNumber, type Command, EXIT, UsageError, readLine } from "../command.ts";
import { withSession, waitForEnd, type Session, hasEnded, openStream } from "../session.ts";
import type { Action } from "../../actions/schemas.ts";
import type { ListQuery } from "../../actions/list-schemas.ts";
import { type Cell, visible, table } from "../output.ts";
import type { OutgateEvent } from "../../client/follow.ts";
import type { OutgateClient } from "../../client/client.ts";

const GET_OPTIONS = {
  wait: { type: "string" },
  timeline: { type: "boolean" },
  json: { type: "boolean" },
} as const;

/** `outgate get`: one action, or its timeline. */
export const getCommand: Command = {
  usage: "get <id> [--wait <seconds>] [--timeline] [--json]",
  details: `  --wait <seconds>  wait up to this long for its end
  --timeline        show what happened to it, oldest first
  --json            print JSON also on a terminal

  Exit code: 0 completed or not ended yet, 1 failed or cancelled, 3 not ended within --wait, 4 awaits approval.`,
  run: withSession(async (args, session) => {
    const { values, positionals } = readArguments(args, GET_OPTIONS, ["<id>"]);
    const { client, io, json, say } = session;
    const waitSeconds = wholeNumber(values.wait, "wait", 0) ?? 0;
    const action = await waitForEnd(client, await client.getAction(positionals[0] ?? ""), waitSeconds);
    const isJson = values.json === true || !io.isTty;
    if (values.timeline === true) {
      const timeline = await client.getTimeline(action.id);
      if (isJson) json(timeline);
      else say(describeTimeline(timeline, session));
      return EXIT.ok;
    }
    if (isJson) json(action);
    else if (action.status === "awaiting_approval") {
      say(describeDecision(action, await client.getDecisionFacts(action.id), session));
      say(describe(action, session));
    } else say(describe(action, session));
    return exitCodeOf(action.status, waitSeconds > 0);
  }),
};

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
  --after <time>     created later than this, such as 2026-03-04T12:00:00Z
  --before <time>    created earlier than this
  --limit <n>        1 to 100; default 20
  --cursor <cursor>  the next page, by the cursor that the last page printed
  --json             print JSON also on a terminal`,
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
    // Safe: the service validates status and method.
    const page = await client.listActions(query as ListQuery);
    if (values.json === true || !io.isTty) {
      json(page);
      return EXIT.ok;
    }
    say(page.data.length === 0 ? "No actions found." : table(rowsOf(page.data), paint, io.columns));
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
    visible(action.created_by.name),
    action.method,
    withHost(visible(action.url)),
  ]);
  return [head, ...rows];
}

const WATCH_OPTIONS = {
  after: { type: "string" },
  status: { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;

/** `outgate watch`: every change of status as it happens, or of one action until its end. */
export const watchCommand: Command = {
  usage: "watch [<id>] [options]",
  details: `  <id>               only this action, until it has ended; the exit code says how
  --status <status>  only changes to this; may be given several times
  --after <event>    continue after the event with this id, which --json prints
  --json             print one line of JSON per event, also on a terminal`,
  run: withSession(async (args, session) => {
    const { values, positionals } = readArguments(args, WATCH_OPTIONS, ["[<id>]"]);
    const release = new AbortController();
    const stopListening = session.io.onInterrupt?.(() => release.abort());
    try {
      return await follow(session, { ...values, id: positionals[0] }, release.signal);
    } finally {
      stopListening?.();
      release.abort();
    }
  }),
};

interface WatchOptions {
  readonly id: string | undefined;
  readonly after?: string | undefined;
  readonly status?: readonly string[] | undefined;
  readonly json?: boolean | undefined;
}

async function follow(session: Session, options: WatchOptions, signal: AbortSignal): Promise<number> {
  const { client, io, url } = session;
  const { id, after, status = [] } = options;
  const onBreak = () => io.err(`Lost the event stream of ${url}; reconnecting.\n`);
  const { events, first } = await openStream(client, { after, signal, onBreak });
  // Open the stream before reading the action, so that its end can't be missed in between.
  const known = id === undefined ? null : await client.getAction(id);
  if (known !== null && hasEnded(known)) return exitCodeOf(known.status, false);
  for (let next = await first; next.done !== true; next = await events.next()) {
    const { action } = next.value;
    if (id !== undefined && action.id !== id) continue;
    if (status.length === 0 || status.includes(action.status)) print(next.value, session, options.json === true);
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
  const summary = `${action.method} ${action.url} ${tries}${end}`.trim().replace(/,$/, "");
  say(table([[time, status, action.id, visible(summary)]], paint, io.columns));
}

/** To reject is to cancel an action that is awaiting approval. */
const CALLS = {
  approve: (client: OutgateClient) => client.approveAction,
  reject: (client: OutgateClient) => client.cancelAction,
  cancel: (client: OutgateClient) => client.cancelAction,
  retry: (client: OutgateClient) => client.retryAction,
} as const;

/** Asked on a terminal, after showing the request. */
const QUESTIONS = { approve: "Approve this request?", reject: "Reject this request?" } as const;

const DECIDE_OPTIONS = {
  reason: { type: "string" },
  run: { type: "string" },
  wait: { type: "string" },
  json: { type: "boolean" },
} as const;

const REASON = {
  decision: "why; shown in the timeline",
  retry: `why; shown to whoever decides. Required for an agent's key within
                    24 hours of a rejection, when it may retry twice`,
} as const;

const RUN = `
  --run <n>         only in this run; a retry begins the next one`;

/** `outgate approve`, `reject`, `cancel`, `retry`: a decision on one action. */
export function decideCommand(verb: keyof typeof CALLS): Command {
  const question = verb === "approve" || verb === "reject" ? QUESTIONS[verb] : null;
  return {
    usage: `${verb} <id> [--reason <text>]${verb === "retry" ? "" : " [--run <n>]"} [--wait <seconds>]${question === null ? "" : " [--yes]"} [--json]`,
    details: `  --reason <text>   ${REASON[verb === "retry" ? "retry" : "decision"]}${verb === "retry" ? "" : RUN}
  --wait <seconds>  then wait up to this long for its end
${question === null ? "" : "  --yes             decide without showing the request and asking first\n"}  --json            print JSON also on a terminal`,
    run: withSession(async (args, session) => {
      const options = question === null ? DECIDE_OPTIONS : { ...DECIDE_OPTIONS, yes: { type: "boolean" } as const };
      const { values, positionals } = readArguments(args, options, ["<id>"]);
      const givenRun = wholeNumber(values.run, "run");
      if (givenRun !== undefined && verb === "retry") {
        throw new UsageError("retry takes no --run: it begins a new run.");
      }
      const { client, io, json, say } = session;
      const id = positionals[0] ?? "";
      const waitSeconds = wholeNumber(values.wait, "wait");
      const mustAsk = question !== null && io.canAnswer === true && !("yes" in values && values.yes === true);
      const confirmation = mustAsk ? await confirm(id, question, session) : null;
      if (confirmation?.isConfirmed === false) {
        io.err("Nothing was decided.\n");
        return EXIT.failed;
      }
      const run = givenRun ?? confirmation?.run;
      const decision = {
        ...(values.reason === undefined ? {} : { reason: values.reason }),
        ...(run === undefined ? {} : { run }),
      };
      const decided = await CALLS[verb](client)(id, decision);
      const action = await waitForEnd(client, decided, waitSeconds ?? 0);
      if (values.json === true || !io.isTty) json(action);
      else say(describe(action, session));
      // Without --wait the exit code only says that the decision was made.
      return waitSeconds === undefined ? EXIT.ok : exitCodeOf(action.status, true);
    }),
  };
}

/** Shows the request and asks; the decision is bound to the run that was shown. An action that isn't held is left to the service to refuse. */
async function confirm(id: string, question: string, session: Session) {
  const { client, io } = session;
  const action = await client.getAction(id);
  const { run } = action;
  if (action.status !== "awaiting_approval") return { isConfirmed: true, run };
  const facts = await client.getDecisionFacts(id);
  io.err(`${describeDecision(action, facts, session)}${question} [y/N] `);
  const answer = await readLine(io);
  if (answer === null) io.err("\n");
  return { isConfirmed: /^\s*y(?:es)?\s*$/i.test(answer ?? ""), run };
}
