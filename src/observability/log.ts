import { LOG_LEVELS, type LogLevel } from "../config/values.ts";
import { writeSync } from "node:fs";
import { LOG_GATHERED_CHARS_MAX, LOG_GATHERED_MS } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import type { LogText } from "./log-text.ts";

/** How long to wait for a reader of the log that takes nothing. After that, lines are lost until it reads again. */
const STALL_MS_MAX = 1_000;

const STALL_STEP_MS = 5;

/** Members at the start of each line; a field of the same name is left out. */
const HEAD = ["at", "level", "event"];

function withoutHead(name: string, value: unknown): unknown {
  return HEAD.includes(name) ? undefined : value;
}

export interface LineLog extends Log {
  /** Writes gathered lines now. Call it when the process exits, however it does, so that nothing is lost. */
  flush(): void;
}

/**
 * One JSON line per event: `{ "at", "level", "event", … }`, UTC, without undefined fields. Lines are gathered for
 * `LOG_GATHERED_MS` or up to `LOG_GATHERED_CHARS_MAX` and written together, since a system call per line would cost more
 * than the line. An error is written at once with all lines before it, since the process may be about to die. `write` must
 * be synchronous; it gets whole lines. `textOf` makes text for people in place of JSON.
 */
export function createLog(
  write: (lines: string) => void,
  clock: Clock,
  level: LogLevel,
  textOf: LogText | null = null,
): LineLog {
  let gathered = "";
  let isFlushDue = false;

  const flush = (): void => {
    if (gathered === "") return;
    const lines = gathered;
    gathered = "";
    write(lines);
  };
  const flushLater = (): void => {
    if (isFlushDue) return;
    isFlushDue = true;
    clock.after(LOG_GATHERED_MS, () => {
      isFlushDue = false;
      flush();
    });
  };

  const append = (at: LogLevel, event: string, fields: LogFields = {}): void => {
    gathered +=
      textOf === null
        ? jsonLine({ at: clock.now(), level: at, event, fields })
        : (textOf({ at: clock.now(), level: at, event, fields }) ?? "");
    if (at === "error" || gathered.length >= LOG_GATHERED_CHARS_MAX) flush();
    else flushLater();
  };

  const lineOf = (at: LogLevel): Log[LogLevel] => {
    const isWanted = LOG_LEVELS.indexOf(at) >= LOG_LEVELS.indexOf(level);
    return isWanted ? (event, fields) => append(at, event, fields) : () => {};
  };

  return { debug: lineOf("debug"), info: lineOf("info"), warn: lineOf("warn"), error: lineOf("error"), flush };
}

/** An event of the log. */
export interface LogEvent {
  readonly at: Date;
  readonly level: LogLevel;
  readonly event: string;
  readonly fields: LogFields;
}

/** The line of the log that tells an event. */
export function jsonLine({ at, level, event, fields }: LogEvent): string {
  const head = `{"at":"${at.toISOString()}","level":"${level}","event":${JSON.stringify(event)}`;
  const rest = JSON.stringify(fields, HEAD.some((name) => name in fields) ? withoutHead : undefined);
  // Joined as text: half the cost of copying one object into the other.
  return rest === "{}" ? `${head}}\n` : `${head},${rest.slice(1)}\n`;
}

/**
 * Writes to standard output (1) or error (2), synchronously and completely: `process.stdout.write` before
 * `process.exit` loses what a pipe does not hold (measured: 97 % of 2 MB). Never throws; lines without a reader are
 * dropped. Returns whether everything was written.
 */
export function writerTo(fd: 1 | 2): (lines: string) => boolean {
  let waitMs = STALL_MS_MAX;
  return (lines) => {
    let rest = Buffer.from(lines);
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
        waitMs = STALL_MS_MAX;
      } catch (error) {
        if (!isFull(error) || waitMs <= 0) return false;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_STEP_MS);
        waitMs -= STALL_STEP_MS;
      }
    }
    return true;
  };
}

/** The pipe is full. Any other error means that its reader is gone. */
function isFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}

/** The name of an error, for the log: its message may hold what was sent. */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}

/** Name and stack of an unexpected error, for the log. Only the engine's own messages are kept: others may quote user data. */
export function traceOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const isOfEngine = error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
  const frames = (error.stack ?? "").split("\n").filter((line) => line.trimStart().startsWith("at "));
  return [isOfEngine ? `${error.name}: ${error.message}` : error.name, ...frames.slice(0, FRAMES_MAX)].join("\n");
}

const FRAMES_MAX = 8;

type LogValue = string | number | boolean | null | undefined;

export type LogFields = Readonly<Record<string, LogValue>>;

/** Structured log. Event names are fixed and fields are scalars, so that no secret gets in. */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}
