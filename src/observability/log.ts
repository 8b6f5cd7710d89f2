import { writeSync } from "node:fs";
import type { Clock } from "../runtime/clock.ts";

/** From the most talkative on. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** A reader of the log that takes nothing for this long loses lines, and is not waited for until it reads again. */
const STALL_MS_MAX = 1_000;

const STALL_STEP_MS = 5;

/** A tick with more lines than this is written in parts. */
const LINES_GATHERED_MAX = 1_000;

/** Members that a line begins with; a field of the same name is left out. */
const HEAD = ["at", "level", "event"];

function withoutHead(name: string, value: unknown): unknown {
  return HEAD.includes(name) ? undefined : value;
}

export interface LineLog extends Log {
  /** Writes what is gathered, now. Call it last at exit: after that nothing is lost. */
  flush(): void;
}

/**
 * One JSON line an event: `{ "at", "level", "event", … }`, UTC, undefined fields dropped. Lines of one turn of the event
 * loop go to `write` together, because a system call a line would cost more than the line; a line of level error goes
 * at once, with all before it, since the process may be about to die. `write` must be synchronous and gets whole lines.
 */
export function createLog(write: (lines: string) => void, clock: Clock, level: LogLevel): LineLog {
  let gathered: string[] = [];
  let isFlushDue = false;

  const flush = (): void => {
    isFlushDue = false;
    if (gathered.length === 0) return;
    const lines = gathered.join("");
    gathered = [];
    write(lines);
  };

  const gather = (at: LogLevel, event: string, fields?: LogFields): void => {
    const head = `{"at":"${clock.now().toISOString()}","level":"${at}","event":${JSON.stringify(event)}`;
    const rest = JSON.stringify(fields ?? {}, HEAD.some((name) => name in (fields ?? {})) ? withoutHead : undefined);
    // Two objects joined as text: half the price of copying one into the other.
    gathered.push(rest === "{}" ? `${head}}\n` : `${head},${rest.slice(1)}\n`);
    if (at === "error" || gathered.length >= LINES_GATHERED_MAX) return flush();
    if (isFlushDue) return;
    isFlushDue = true;
    setImmediate(flush);
  };

  const lineOf = (at: LogLevel): Log[LogLevel] => {
    const isWanted = LOG_LEVELS.indexOf(at) >= LOG_LEVELS.indexOf(level);
    return isWanted ? (event, fields) => gather(at, event, fields) : () => {};
  };

  return { debug: lineOf("debug"), info: lineOf("info"), warn: lineOf("warn"), error: lineOf("error"), flush };
}

/**
 * Writes to standard output (1) or error (2), synchronously and whole: `process.stdout.write` before `process.exit`
 * loses what a pipe does not hold (measured: 97 % of 2 MB). Never throws; lines that nobody reads any more are dropped.
 * Returns whether all of it was written.
 */
export function writerTo(fd: 1 | 2): (lines: string) => boolean {
  let patienceMs = STALL_MS_MAX;
  return (lines) => {
    let rest = Buffer.from(lines);
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(fd, rest));
        patienceMs = STALL_MS_MAX;
      } catch (error) {
        if (!isFull(error) || patienceMs <= 0) return false;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_STEP_MS);
        patienceMs -= STALL_STEP_MS;
      }
    }
    return true;
  };
}

/** The pipe takes no more just now; any other error means that its reader is gone. */
function isFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}

type LogValue = string | number | boolean | null | undefined;

export type LogFields = Readonly<Record<string, LogValue>>;

/** One line of JSON an event. Names are fixed, fields are scalars: nothing with a secret in it fits. */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}
