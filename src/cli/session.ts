import { createClient, type OutgateClient } from "../client/client.ts";
import { type Command, type Io, UsageError, readValue } from "./command.ts";
import { parseExact, explain, createPaint, jsonText, type Paint } from "./output.ts";
import { setTimeout as pause } from "node:timers/promises";
import { backoffMs, OutgateError, apiKeyIn, apiKeyOf } from "../client/transport.ts";
import type { FollowOptions } from "../client/follow.ts";
import type { Action } from "../actions/schemas.ts";

/** A command's connection to a running service, and its output. */
export interface Session {
  readonly client: OutgateClient;
  readonly url: string;
  readonly io: Io;
  readonly paint: Paint;
  /** Prints JSON: indented on a terminal. */
  readonly json: (value: unknown) => void;
  /** Prints JSON on one line, for programs that read line by line. */
  readonly line: (value: unknown) => void;
  /** Prints lines for a person. */
  readonly say: (text: string) => void;
}

const URL_DEFAULT = "http://127.0.0.1:3000";

/** The address of the service from `OUTGATE_URL`, without a trailing slash. Throws where it is not valid. */
export function readUrl({ env }: Io): string {
  const text = env["OUTGATE_URL"] || URL_DEFAULT;
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  if (url === null || url.username !== "" || url.search !== "" || url.hash !== "") {
    throw new Error(`OUTGATE_URL must be the address of Outgate, such as ${URL_DEFAULT}.`);
  }
  return url.href.replace(/(?<!\/)\/+$/, "");
}

export function openSession(io: Io, apiKey: string | null): Session {
  const url = readUrl(io);
  return {
    client: createClient({ url, apiKey, parse: parseExact }),
    url,
    io,
    paint: createPaint(io),
    json: (value) => io.out(jsonText(value, io.isTty)),
    line: (value) => io.out(jsonText(value, false)),
    say: (text) => io.out(text.endsWith("\n") ? text : `${text}\n`),
  };
}

/** Wraps a command that needs the service: reads the API key, and explains errors of the service. */
export function withSession(work: (args: readonly string[], session: Session) => Promise<number>): Command["run"] {
  return async (given, io) => {
    const { key, args } = await takeApiKey(given, io);
    if (key === null) {
      throw new UsageError(
        "Set OUTGATE_API_KEY to an API key, or OUTGATE_API_KEY_FILE to a file that holds one; the first start of Outgate prints one.",
      );
    }
    const session = openSession(io, key);
    try {
      return await work(args, session);
    } catch (error) {
      const explained = explain(error, session.url);
      if (explained === null) throw error;
      io.err(`${explained.message}\n`);
      return explained.code;
    }
  };
}

/** The service's limit for the wait of one request. */
const WAIT_SECONDS_MAX = 120;

/** The pauses between requests where the service answers at once, because too many requests are waiting. */
const PAUSE_MS_MIN = 500;

const PAUSE_MS_MAX = 10_000;

/** A response that took at least this share of its wait did wait. */
const WAITED_SHARE = 0.5;

export function hasEnded({ status }: Action): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** Replaced in tests. */
interface Time {
  readonly nowMs: () => number;
  readonly pause: (ms: number) => Promise<unknown>;
}

const REAL_TIME: Time = { nowMs: () => performance.now(), pause: (ms) => pause(ms) };

/**
 * Waits for the end of an action, and returns its current state after `seconds`. The service holds each request until the
 * end; where it responds at once or refuses for now, the next request comes after a pause that grows, and is at least
 * `Retry-After`.
 */
export async function waitForEnd(
  client: Pick<OutgateClient, "getAction">,
  action: Action,
  seconds: number,
  time: Time = REAL_TIME,
): Promise<Action> {
  const untilMs = time.nowMs() + seconds * 1_000;
  let latest = action;
  let shortWaits = 0;
  while (!hasEnded(latest)) {
    const beganMs = time.nowMs();
    const left = Math.ceil((untilMs - beganMs) / 1_000);
    if (left <= 0) return latest;
    const waitSeconds = Math.min(WAIT_SECONDS_MAX, left);
    const answer = await client.getAction(latest.id, { waitSeconds }).catch(temporaryError);
    if (!(answer instanceof OutgateError)) latest = answer;
    const hasWaited = time.nowMs() - beganMs >= WAITED_SHARE * waitSeconds * 1_000;
    if (hasEnded(latest) || hasWaited) {
      shortWaits = 0;
      continue;
    }
    const retryAfterMs = answer instanceof OutgateError ? (answer.retryAfterMs ?? 0) : 0;
    const pauseMs = Math.max(retryAfterMs, backoffMs(shortWaits, { baseMs: PAUSE_MS_MIN, capMs: PAUSE_MS_MAX }));
    shortWaits += 1;
    const leftMs = untilMs - time.nowMs();
    // No time for another request: report the error.
    if (pauseMs >= leftMs && answer instanceof OutgateError) throw answer;
    await time.pause(Math.max(0, Math.min(pauseMs, leftMs)));
  }
  return latest;
}

/** Returns an error that doesn't end the wait, since the service is only busy; throws any other. */
function temporaryError(error: unknown): OutgateError {
  if (error instanceof OutgateError && (error.code === "rate_limited" || error.code === "unavailable")) return error;
  throw error;
}

/** Opens the event stream; resolves when it is open. `first` is the promise of the first event. */
export async function openStream(client: OutgateClient, options: FollowOptions) {
  let opened = () => {};
  const isOpen = new Promise<void>((resolve) => (opened = resolve));
  const events = client.streamEvents({ ...options, onOpen: () => opened() });
  const first = events.next();
  await Promise.race([isOpen, first]);
  return { events, first };
}

const OPTION = "--api-key-file";

/** The API key, or null where there is none, and the arguments without `--api-key-file`. */
interface KeyedArguments {
  readonly key: string | null;
  readonly args: readonly string[];
}

/**
 * Takes the API key from `--api-key-file`, or else from the environment. There is no option for the key itself, since other
 * users of a machine can read command lines. Throws where a file can't be read or holds no key.
 */
export async function takeApiKey(given: readonly string[], io: Io): Promise<KeyedArguments> {
  const { file, args } = withoutOption(given);
  if (file === null) return { key: await apiKeyOf(io.env), args };
  const text = await readValue(file === "-" ? "-" : `@${file}`, io);
  return { key: apiKeyIn(text, file === "-" ? "Standard input" : `The file ${file}`), args };
}

function withoutOption(given: readonly string[]): { readonly file: string | null; readonly args: readonly string[] } {
  // Arguments after `--` are not options.
  const end = given.indexOf("--");
  const at = given.findIndex((arg, index) => isOption(arg) && (end === -1 || index < end));
  const option = given[at];
  if (option === undefined) return { file: null, args: given };
  const joined = option.slice(OPTION.length + 1);
  const file = option === OPTION ? (given[at + 1] ?? "") : joined;
  if (file === "") throw new UsageError(`${OPTION} takes a file, or - for standard input.`);
  return { file, args: given.toSpliced(at, option === OPTION ? 2 : 1) };
}

function isOption(arg: string): boolean {
  return arg === OPTION || arg.startsWith(`${OPTION}=`);
}
