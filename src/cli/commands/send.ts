import { Option } from "commander";
import { HTTP_METHODS } from "../../actions/action.ts";
import type { CreateAction } from "../../actions/schemas.ts";
import { actionText, exitCodeOf } from "../action-text.ts";
import { type CliCommand, type Io, oneOf, readValue, several, UsageError, wholeNumber } from "../command.ts";
import { parseObject } from "../output.ts";
import { addServiceCommand, JSON_OPTION, type Session, waitForEnd, withSession } from "../session.ts";

const WHEN_UNKNOWN = ["retry", "stop"] as const;

/** `outgate send`: creates one action, under an Idempotency-Key, so that the create can be retried. */
export function addSend(program: CliCommand): void {
  addServiceCommand(program, "send", "send a call through Outgate")
    .usage("<url>|- [options]")
    .argument("<url>", "the URL; - reads the whole action as JSON from standard input instead")
    .choice("-X, --method <method>", "default POST", HTTP_METHODS, oneOf("method", HTTP_METHODS))
    .addOption(new Option("--request <method>").argParser(oneOf("method", HTTP_METHODS)).hideHelp())
    .option("-d, --data <json>", "the JSON body; @file reads a file, - reads standard input")
    .option(
      "-H, --header <header>",
      "'Name: value'; may be given several times. @file reads one header per line, - reads them from standard input. Do not put secrets on the command line",
      several,
    )
    .option("--approve", "hold it until a person approves it")
    .option("--notify <e-mail>", "ask this person for approval by mail")
    .option("--dedupe <key>", "the same key within 24 hours means the same action")
    .option(
      "--idempotency-key <k>",
      "creates with the same key are one action; default: a new one for each run of the command",
    )
    .option("--retries <n>", "most attempts, 1 to 100; default 3", wholeNumber("retries"))
    .choice(
      "--on-unknown <what>",
      "where it is unknown whether the target received the call",
      WHEN_UNKNOWN,
      oneOf("on-unknown", WHEN_UNKNOWN),
    )
    .option("--callback <url>", "URL to notify of the outcome")
    .option(
      "--reason <text>",
      "why; shown to whoever decides. Required for an agent's key within 24 hours of a rejection",
    )
    .option("--sync", "let the create wait for the end, 30 seconds or as --wait says")
    .option("--wait <seconds>", "wait up to this long for the end, also for a person's decision", wholeNumber("wait"))
    .option(...JSON_OPTION)
    .addHelpText(
      "after",
      "\nExit code: 0 completed or not ended yet, 1 failed or cancelled, 3 not ended within --wait, 4 awaits approval.",
    )
    .runs(withSession(send));
}

type SendOptions = Pick<CreateAction, "method" | "dedupe" | "retries" | "approve" | "callback" | "reason" | "sync"> & {
  readonly request?: CreateAction["method"];
  readonly data?: string;
  readonly header?: readonly string[];
  readonly notify?: string;
  readonly idempotencyKey?: string;
  readonly onUnknown?: CreateAction["on_unknown"];
  readonly wait?: number;
};

async function send(session: Session, options: SendOptions, url: string): Promise<number> {
  const { client } = session;
  const { wait: waitSeconds, idempotencyKey = crypto.randomUUID() } = options;
  const action = await actionOf(url, options, session.io);
  const isSync = action.sync === true;
  const created = await client.createAction(action, { idempotencyKey, ...(isSync ? { waitSeconds } : {}) });
  const latest = isSync || waitSeconds === undefined ? created : await waitForEnd(client, created, waitSeconds);
  session.print(latest, () => actionText(latest, session));
  return exitCodeOf(latest.status, isSync || waitSeconds !== undefined);
}

async function actionOf(url: string, options: SendOptions, io: Io): Promise<CreateAction> {
  const { data, header = [], notify, onUnknown, method = options.request } = options;
  if ([url, data, ...header].filter((value) => value === "-").length > 1)
    throw new UsageError("Only one of the action, its body and its headers can come from standard input.");
  const given = url === "-" ? parseObject(await readValue("-", io), "Standard input") : { url };
  const lines = await Promise.all(header.map((value) => headerLines(value, io)));
  const { dedupe, retries, approve, callback, reason, sync } = options;
  const flags = { method, dedupe, retries, on_unknown: onUnknown, approve, callback, reason, sync };
  const read = {
    headers: header.length === 0 ? undefined : headersOf(lines.flat()),
    body: data === undefined ? undefined : parseObject(await readValue(data, io), "The body"),
    notify: notify === undefined ? undefined : { email: notify },
  };
  const set = Object.fromEntries(Object.entries({ ...flags, ...read }).filter(([, value]) => value !== undefined));
  // Safe: the service validates every field.
  return { ...given, ...set } as CreateAction;
}

/** One header, or as in curl the lines of a file or of standard input. */
async function headerLines(value: string, io: Io): Promise<readonly string[]> {
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
