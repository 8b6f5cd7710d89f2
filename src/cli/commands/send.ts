import type { CreateAction } from "../../client/api.ts";
import { awaitEnd, EXIT_CODES_HELP, exitCode, printAction } from "../one-action.ts";
import { type CliCommand, CliOption, JSON_OPTION } from "../command.ts";
import { given, headersIn, oneOf, several, wholeNumber } from "../option-values.ts";
import { type Io, readValue, UsageError } from "../io.ts";
import { inOrder, parseJson, parseObject } from "../exact-json.ts";
import { unsure } from "../failures.ts";
import type { Session } from "../session.ts";
import { HTTP_METHODS } from "../../core/target.ts";
import { visible } from "../../observability/terminal.ts";

/** Advice for `-d`, which in curl sends a form. */
const OTHER_BODIES = " For a form use --form name=value, for other text --text.";

const WHEN_UNKNOWN = ["retry", "stop"] as const;

/** `outgate send`: creates one action with an Idempotency-Key, so that the create can be retried. */
export function addSend(program: CliCommand): void {
  program
    .serviceCommand("send", "send a call through Outgate")
    .usage("<url>|- [options]")
    .argument("<url>", "the URL; - reads the whole action as JSON from standard input instead")
    .choice("-X, --method <method>", "default POST", HTTP_METHODS, oneOf("method", HTTP_METHODS))
    .addOption(new CliOption("--request <method>", "", "method").argParser(oneOf("method", HTTP_METHODS)).hideHelp())
    .option("-d, --data <json>", "the JSON body, any value; @file reads a file, - reads standard input")
    .option("--form <name=value>", "a field of a form in place of JSON; may be given several times", several)
    .option("--text <text>", "a text in place of JSON, also @file or -; set its type with -H 'Content-Type: …'")
    .option("--base64 <bytes>", "bytes in place of JSON, in base64, also @file or -")
    .option(
      "-H, --header <header>",
      "'Name: value'; may be given several times. @file reads one header per line, - reads them from standard input. Do not put secrets on the command line",
      several,
    )
    .option("--credential <name>", "send it with a credential of the account, whose secret no one sees")
    .option("--title <text>", "what the call does, in one line; shown to the approver")
    .option("--metadata <name=value>", "a note to find it by; may be given several times", several)
    .option("--approve", "hold it until a person approves it")
    .option("--notify <email>", "ask this person for approval by mail", (email) => ({ email }))
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
    .option("--reason <text>", "why; shown to the approver. Required for an agent's key within 24 hours of a rejection")
    .option("--run-at <time>", "not before this time, such as 2026-03-04T12:00:00Z")
    .member("delay_seconds", "--delay <seconds>", "not before so many seconds have passed", wholeNumber("delay"))
    .option("--expires-at <time>", "cancel it if it was not sent before this time")
    .retries()
    .option("--sync", "let the create wait for the end, 30 seconds or as --wait says")
    .option("--wait <seconds>", "wait up to this long for the end, also for a person's decision", wholeNumber("wait"))
    .addHelpText("after", EXIT_CODES_HELP)
    .option(...JSON_OPTION)
    .sessionAction(send);
}

interface BodyOptions {
  readonly data?: string;
  readonly form?: readonly string[];
  readonly text?: string;
  readonly base64?: string;
}

/** The options. Most are members of the action. */
interface SendOptions
  extends BodyOptions, Omit<Partial<CreateAction>, "url" | "headers" | "metadata" | keyof BodyOptions> {
  readonly header?: readonly string[];
  readonly metadata?: readonly string[];
  readonly idempotency_key?: string;
  readonly wait?: number;
}

async function send(session: Session, url: string, options: SendOptions): Promise<number> {
  const { client, io } = session;
  const { wait: waitSeconds, idempotency_key: idempotencyKey = crypto.randomUUID(), ...more } = options;
  const action = await createRequest(url, more, io);
  const isSync = action.sync === true;
  const repeat = `The action may have been created. To send nothing twice, repeat it with --idempotency-key ${visible(idempotencyKey)}`;
  io.sayIfInterrupted?.(`\n${repeat}\n`);
  const created = await client
    .createAction(action, { idempotencyKey, ...(isSync ? { waitSeconds } : {}) })
    .catch(unsure(repeat));
  const latest = isSync || waitSeconds === undefined ? created : await awaitEnd(session, created, waitSeconds);
  await printAction(session, latest);
  return exitCode(latest.status, isSync || waitSeconds !== undefined);
}

async function createRequest(url: string, options: SendOptions, io: Io): Promise<CreateAction> {
  const { data, form, text, base64, header = [], metadata, ...members } = options;
  if ([url, data, text, base64, ...header].filter((value) => value === "-").length > 1)
    throw new UsageError("Only one of the action, its body and its headers can come from standard input.");
  const base = url === "-" ? parseObject(await readValue("-", io), "Standard input") : { url };
  // Safe: the service validates every field.
  return {
    ...base,
    ...members,
    ...(header.length > 0 && { headers: await headersIn(header, io) }),
    ...(await readBody(given({ data, form, text, base64 }), io)),
    ...(metadata !== undefined && { metadata: Object.fromEntries(parsePairs(metadata, "--metadata")) }),
  } as CreateAction;
}

/** The body member in the options. The service refuses more than one. */
async function readBody({ data, form, text, base64 }: BodyOptions, io: Io): Promise<object> {
  return {
    ...(data === undefined ? {} : jsonBody(parseJson(await readValue(data, io), "The body", OTHER_BODIES))),
    ...(form === undefined ? {} : { form: toForm(parsePairs(form, "--form")) }),
    ...(text === undefined ? {} : { text: await readValue(text, io) }),
    ...(base64 === undefined ? {} : { base64: (await readValue(base64, io)).replaceAll(/\s/g, "") }),
  };
}

function jsonBody(value: unknown): object {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { body: value } : { json: value };
}

/** The fields of a form. Fields with the same name become a list. */
function toForm(pairs: readonly Pair[]): Readonly<Record<string, readonly string[]>> {
  // Not `Map.groupBy`, which Node 20 doesn't have.
  const fields = new Map<string, string[]>();
  for (const [name, value] of pairs) fields.set(name, [...(fields.get(name) ?? []), value]);
  return inOrder([...fields]);
}

type Pair = readonly [name: string, value: string];

function parsePairs(fields: readonly string[], option: string): readonly Pair[] {
  return fields.map((text, index) => {
    const at = text.indexOf("=");
    // The message doesn't quote the value, which may be a secret.
    if (at < 1) throw new UsageError(`${option} takes 'name=value'; number ${index + 1} has another form.`);
    return [text.slice(0, at), text.slice(at + 1)] as const;
  });
}
