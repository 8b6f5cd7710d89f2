import type { CreateAction } from "../../actions/schemas.ts";
import { describe, exitCodeOf } from "../action-text.ts";
import { oneOf, readArguments, wholeNumber, type Command, UsageError, readValue } from "../command.ts";
import { parseObject } from "../output.ts";
import { type Session, withSession, waitForEnd } from "../session.ts";

const OPTIONS = {
  request: { type: "string", short: "X" },
  method: { type: "string" },
  data: { type: "string", short: "d" },
  header: { type: "string", short: "H", multiple: true },
  dedupe: { type: "string" },
  retries: { type: "string" },
  "on-unknown": { type: "string" },
  approve: { type: "boolean" },
  notify: { type: "string" },
  callback: { type: "string" },
  reason: { type: "string" },
  sync: { type: "boolean" },
  wait: { type: "string" },
  "idempotency-key": { type: "string" },
  json: { type: "boolean" },
} as const;

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

type Values = ReturnType<typeof readArguments<typeof OPTIONS>>["values"];

/** `outgate send`: makes an action. A run of this command is one action, however often the create has to be repeated. */
export const sendCommand: Command = {
  usage: "send <url>|- [options]",
  details: `  -                      the whole action as JSON from standard input, in place of a URL
  -X, --method <method>  GET, POST, PUT, PATCH or DELETE; POST unless it is said
  -d, --data <json>      the JSON body; @file reads a file, - reads standard input
  -H, --header <header>  'Name: value'; may be given several times. @file reads a line for each header, - reads them
                         from standard input: a secret does not belong on a command line
  --approve              hold it until a person approves it
  --notify <e-mail>      ask this person for approval by mail
  --dedupe <key>         the same key within a day means the same action
  --idempotency-key <k>  makes a create that was sent twice one action; made up unless it is said
  --retries <n>          most attempts, 1 to 100; 3 unless it is said
  --on-unknown <what>    retry or stop, when nobody knows whether the target got it
  --callback <url>       where news of it is sent
  --reason <text>        why; shown to whoever decides. An agent's key has to give it within 24 hours of a rejection
  --sync                 let the create itself wait for the end, 30 seconds unless --wait says more
  --wait <seconds>       wait so long for the end, also for a person's decision
  --json                 JSON also on a terminal

  Exit code: 0 completed or on its way, 1 failed or cancelled, 3 not ended in time, 4 awaits approval.`,
  run: withSession(async (args, session) => {
    const { values, positionals } = readArguments(args, OPTIONS, ["<url>"]);
    const { client, json, say } = session;
    const waitSeconds = wholeNumber(values.wait, "wait");
    const action = await actionOf(positionals[0] ?? "", values, session);
    const created = await client.createAction(action, {
      idempotencyKey: values["idempotency-key"] ?? crypto.randomUUID(),
      ...(action.sync === true ? { waitSeconds } : {}),
    });
    const isOver = action.sync === true || waitSeconds === undefined;
    const shown = isOver ? created : await waitForEnd(client, created, waitSeconds);
    if (values.json === true || !session.io.isTty) json(shown);
    else say(describe(shown, session));
    return exitCodeOf(shown.status, action.sync === true || waitSeconds !== undefined);
  }),
};

async function actionOf(url: string, values: Values, { io }: Session): Promise<CreateAction> {
  const given = url === "-" ? parseObject(await readValue("-", io), "Standard input") : { url };
  const readers = [url, values.data, ...(values.header ?? [])].filter((value) => value === "-");
  if (readers.length > 1)
    throw new UsageError("Standard input can be only one of the action, its body and its headers.");
  const lines = await Promise.all((values.header ?? []).map((value) => headerLines(value, io)));
  const headers = headersOf(lines.flat());
  const flags = {
    method: oneOf((values.method ?? values.request)?.toUpperCase(), "method", METHODS),
    body: values.data === undefined ? undefined : parseObject(await readValue(values.data, io), "The body"),
    headers: values.header === undefined ? undefined : headers,
    dedupe: values.dedupe,
    retries: wholeNumber(values.retries, "retries"),
    on_unknown: oneOf(values["on-unknown"], "on-unknown", ["retry", "stop"]),
    approve: values.approve,
    notify: values.notify === undefined ? undefined : { email: values.notify },
    callback: values.callback,
    reason: values.reason,
    sync: values.sync,
  };
  // Safe: what the flags do not say comes from a person's own JSON, which the service judges member by member.
  return {
    ...given,
    ...Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined)),
  } as CreateAction;
}

/** One header, or as curl has it those of a file or of standard input, a line each. */
async function headerLines(value: string, io: Session["io"]): Promise<readonly string[]> {
  const isRead = value === "-" || value.startsWith("@");
  if (!isRead) return [value];
  const text = await readValue(value, io);
  return text.split(/\r?\n/).filter((line) => line.trim() !== "");
}

function headersOf(lines: readonly string[]): Readonly<Record<string, string>> {
  const pairs = lines.map((line, index) => {
    const at = line.indexOf(":");
    // Not quoted: it may be a secret.
    if (at < 1) throw new UsageError(`--header takes 'Name: value', which header ${index + 1} is not.`);
    return [line.slice(0, at), line.slice(at + 1).trim()] as const;
  });
  const names = new Set(pairs.map(([name]) => name.toLowerCase()));
  if (names.size < pairs.length) throw new UsageError("A header is given twice; it can be sent only once.");
  return Object.fromEntries(pairs);
}
