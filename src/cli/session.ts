import { createClient, type OutgateClient } from "../client/client.ts";
import { type Command, type Io, UsageError, readValue } from "./command.ts";
import { parseExact, explain, createPaint, jsonText, type Paint } from "./output.ts";
import { setTimeout as pause } from "node:timers/promises";
import { backoffMs, OutgateError, apiKeyIn, apiKeyOf } from "../client/transport.ts";
import type { FollowOptions } from "../client/follow.ts";
import type { Action } from "../actions/schemas.ts";

/** What a command that talks to a running service works with. */
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

/** Where the service is: `OUTGATE_URL`, without a slash at its end. */
export function readUrl({ env }: Io): string {
  const text = env["OUTGATE_URL"] || URL_DEFAULT;
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  if (url === null || url.username !== "" || url.search !== "" || url.hash !== "") {
    throw new Error(`OUTGATE_URL has to be where Outgate is, such as ${URL_DEFAULT}.`);
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

/** Runs a command with the key that its arguments or the environment name; what the service refuses is explained. */
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
      const told = explain(error, session.url);
      if (told === null) throw error;
      io.err(`${told.message}\n`);
      return told.code;
    }
  };
}

/** The longest that the service lets one request wait (spec "Limits"). */
const WAIT_SECONDS_MAX = 120;

/** The pauses between answers that come at once although nothing has ended: the service has no room for one more waiter. */
const PAUSE_MS_MIN = 500;

const PAUSE_MS_MAX = 10_000;

/** An answer that took as much of its wait was one that waited. */
const WAITED_SHARE = 0.5;

export function hasEnded({ status }: Action): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** What time it is, and how it passes. */
interface Time {
  readonly nowMs: () => number;
  readonly pause: (ms: number) => Promise<unknown>;
}

const REAL_TIME: Time = { nowMs: () => performance.now(), pause: (ms) => pause(ms) };

/**
 * The action when it has ended, or what it is when the seconds are over. The service holds each request until then; where
 * it answers at once, or refuses for the moment, the next request waits, longer each time and as long as it was told.
 */
export async function waitForEnd(
  client: Pick<OutgateClient, "getAction">,
  action: Action,
  seconds: number,
  time: Time = REAL_TIME,
): Promise<Action> {
  const untilMs = time.nowMs() + seconds * 1_000;
  let now = action;
  let hasty = 0;
  while (!hasEnded(now)) {
    const beganMs = time.nowMs();
    const left = Math.ceil((untilMs - beganMs) / 1_000);
    if (left <= 0) return now;
    const waitSeconds = Math.min(WAIT_SECONDS_MAX, left);
    const answer = await client.getAction(now.id, { waitSeconds }).catch(unlessPassing);
    if (!(answer instanceof OutgateError)) now = answer;
    const hasWaited = time.nowMs() - beganMs >= WAITED_SHARE * waitSeconds * 1_000;
    if (hasEnded(now) || hasWaited) {
      hasty = 0;
      continue;
    }
    const toldMs = answer instanceof OutgateError ? (answer.retryAfterMs ?? 0) : 0;
    const pauseMs = Math.max(toldMs, backoffMs(hasty, { baseMs: PAUSE_MS_MIN, capMs: PAUSE_MS_MAX }));
    hasty += 1;
    const leftMs = untilMs - time.nowMs();
    // Whoever could not ask again in time is told why.
    if (pauseMs >= leftMs && answer instanceof OutgateError) throw answer;
    await time.pause(Math.max(0, Math.min(pauseMs, leftMs)));
  }
  return now;
}

/** The service is there and says that it has no room just now: that ends no wait. */
function unlessPassing(error: unknown): OutgateError {
  if (error instanceof OutgateError && (error.code === "rate_limited" || error.code === "unavailable")) return error;
  throw error;
}

/** Events, with the first of them on its way: whatever happens from here on is told. */
export async function openStream(client: OutgateClient, options: FollowOptions) {
  let opened = () => {};
  const isOpen = new Promise<void>((resolve) => (opened = resolve));
  const events = client.streamEvents({ ...options, onOpen: () => opened() });
  const first = events.next();
  await Promise.race([isOpen, first]);
  return { events, first };
}

const OPTION = "--api-key-file";

/** The arguments without the option of the key, and the key that they or the environment name; null: none does. */
interface KeyedArguments {
  readonly key: string | null;
  readonly args: readonly string[];
}

/**
 * Takes the API key from `--api-key-file`, or else from the environment. There is no option for the key itself: whoever may
 * list the processes of a machine reads their command lines. Throws a sentence where a file can't be read or holds no key.
 */
export async function takeApiKey(given: readonly string[], io: Io): Promise<KeyedArguments> {
  const { file, args } = withoutOption(given);
  if (file === null) return { key: await apiKeyOf(io.env), args };
  const text = await readValue(file === "-" ? "-" : `@${file}`, io);
  return { key: apiKeyIn(text, file === "-" ? "Standard input" : `The file ${file}`), args };
}

function withoutOption(given: readonly string[]): { readonly file: string | null; readonly args: readonly string[] } {
  // What stands behind `--` is no option.
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
