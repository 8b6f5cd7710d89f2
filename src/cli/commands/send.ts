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

/** `outgate send`: creates one action, under an Idempotency-Key, so that the create can be retried. */
export const sendCommand: Command = {
  usage: "send <url>|- [options]",
  details: `  -                      read the whole action as JSON from standard input, instead of a URL
  -X, --method <method>  GET, POST, PUT, PATCH or DELETE; default POST
  -d, --data <json>      the JSON body; @file reads a file, - reads standard input
  -H, --header <header>  'Name: value'; may be given several times. @file reads one header per line, - reads them
                         from standard input. Do not put secrets on the command line
  --approve              hold it until a person approves it
  --notify <e-mail>      ask this person for approval by mail
  --dedupe <key>         the same key within 24 hours means the same action
  --idempotency-key <k>  creates with the same key are one action; default: a new one for each run of the command
  --retries <n>          most attempts, 1 to 100; default 3
  --on-unknown <what>    retry or stop, where it is unknown whether the target received the call
  --callback <url>       URL to notify of the outcome
  --reason <text>        why; shown to whoever decides. Required for an agent's key within 24 hours of a rejection
  --sync                 let the create wait for the end, 30 seconds or as --wait says
  --wait <seconds>       wait up to this long for the end, also for a person's decision
  --json                 print JSON also on a terminal

  Exit code: 0 completed or not ended yet, 1 failed or cancelled, 3 not ended within --wait, 4 awaits approval.`,
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
    const latest = isOver ? created : await waitForEnd(client, created, waitSeconds);
    if (values.json === true || !session.io.isTty) json(latest);
    else say(describe(latest, session));
    return exitCodeOf(latest.status, action.sync === true || waitSeconds !== undefined);
  }),
};

async function actionOf(url: string, values: Values, { io }: Session): Promise<CreateAction> {
  const given = url === "-" ? parseObject(await readValue("-", io), "Standard input") : { url };
  const readers = [url, values.data, ...(values.header ?? [])].filter((value) => value === "-");
  if (readers.length > 1)
    throw new UsageError("Only one of the action, its body and its headers can come from standard input.");
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
  // Safe: the service validates every field.
  return {
    ...given,
    ...Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined)),
  } as CreateAction;
}

/** One header, or as in curl the lines of a file or of standard input. */
async function headerLines(value: string, io: Session["io"]): Promise<readonly string[]> {
  const isRead = value === "-" || value.startsWith("@");
  if (!isRead) return [value];
  const text = await readValue(value, io);
  return text.split(/\r?\n/).filter((line) => line.trim() !== "");
}

function headersOf(lines: readonly string[]): Readonly<Record<string, string>> {
  const pairs = lines.map((line, index) => {
    const at = line.indexOf(":");
    // The message doesn't quote the header, which may be a secret.
    if (at < 1) throw new UsageError(`--header takes 'Name: value'; header ${index + 1} has another form.`);
    return [line.slice(0, at), line.slice(at + 1).trim()] as const;
  });
  const names = new Set(pairs.map(([name]) => name.toLowerCase()));
  if (names.size < pairs.length) throw new UsageError("A header is given twice. Each can be sent only once.");
  return Object.fromEntries(pairs);
}
