import { LOG_LEVELS, type LogLevel } from "../config/values.ts";
import { constants, openSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import { LOG_GATHERED_CHARS_MAX, LOG_GATHERED_MS, LOG_KEPT_BYTES_MAX } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { clockTime, type Color, columnCount, padded, type Paint, visible } from "./terminal.ts";

/** How long to wait for a slow reader where the process ends or has just started. After that, lines are lost. */
const STALL_MS_MAX = 2_000;

const STALL_STEP_MS = 5;

/** Members at the start of each line; a field of the same name is left out. */
const HEAD = ["at", "level", "event"];

function withoutHead(name: string, value: unknown): unknown {
  return HEAD.includes(name) ? undefined : value;
}

export interface LineLog extends Log {
  /** Writes gathered lines now, and waits for a slow reader. Call it whenever the process exits, so that nothing is lost. */
  flush(): void;
}

/**
 * One JSON line per event: `{ "at", "level", "event", … }`, UTC, without undefined fields. Lines are gathered for
 * `LOG_GATHERED_MS` or up to `LOG_GATHERED_CHARS_MAX` and written together, since a system call per line would cost more
 * than the line. An error is written at once with all lines before it, since the process may be about to die. `write` must
 * be synchronous; it gets whole lines, and keeps what a slow reader has no room for (false) unless it may wait.
 * `terminalText` makes text for people in place of JSON.
 */
export function createLog(
  write: (lines: string, mayWait: boolean) => unknown,
  clock: Clock,
  level: LogLevel,
  terminalText: LogText | null = null,
): LineLog {
  let gathered = "";
  let isBehind = false;
  let isFlushDue = false;

  const writeGathered = (mayWait: boolean): void => {
    if (gathered === "" && !isBehind) return;
    const lines = gathered;
    gathered = "";
    isBehind = write(lines, mayWait) === false;
    if (isBehind) flushLater();
  };
  const flushLater = (): void => {
    if (isFlushDue) return;
    isFlushDue = true;
    clock.after(LOG_GATHERED_MS, () => {
      isFlushDue = false;
      writeGathered(false);
    });
  };

  const append = (at: LogLevel, event: string, fields: LogFields = {}): void => {
    gathered +=
      terminalText === null
        ? jsonLine({ at: clock.now(), level: at, event, fields })
        : (terminalText({ at: clock.now(), level: at, event, fields }) ?? "");
    if (at === "error" || gathered.length >= LOG_GATHERED_CHARS_MAX) writeGathered(false);
    else flushLater();
  };

  const logAt = (at: LogLevel): Log[LogLevel] => {
    const isWanted = LOG_LEVELS.indexOf(at) >= LOG_LEVELS.indexOf(level);
    return isWanted ? (event, fields) => append(at, event, fields) : () => {};
  };

  return {
    debug: logAt("debug"),
    info: logAt("info"),
    warn: logAt("warn"),
    error: logAt("error"),
    flush: () => writeGathered(true),
  };
}

/** An event of the log. */
interface LogEvent {
  readonly at: Date;
  readonly level: LogLevel;
  readonly event: string;
  readonly fields: LogFields;
}

/** The log line of an event. */
export function jsonLine({ at, level, event, fields }: LogEvent): string {
  const head = `{"at":"${at.toISOString()}","level":"${level}","event":${JSON.stringify(event)}`;
  const rest = JSON.stringify(fields, HEAD.some((name) => name in fields) ? withoutHead : undefined);
  // Joined as text: half the cost of copying one object into the other.
  return rest === "{}" ? `${head}}\n` : `${head},${rest.slice(1)}\n`;
}

/**
 * Writes to standard output (1) or error (2), synchronously: `process.stdout.write` before `process.exit` loses what a pipe does
 * not hold (measured: 97 % of 2 MB). Never throws; lines without a reader are dropped. What a slow reader has no room for is
 * kept for the next call, and lines beyond `LOG_KEPT_BYTES_MAX` are dropped. Returns whether everything was written.
 */
export function writerTo(fd: 1 | 2): (lines: string, mayWait?: boolean) => boolean {
  const out = withoutBlocking(fd);
  let kept = Buffer.alloc(0);
  let waitMs = STALL_MS_MAX;
  return (lines, mayWait = true) => {
    let isLost = false;
    const text = Buffer.from(lines);
    if (kept.length + text.length <= LOG_KEPT_BYTES_MAX || kept.length === 0) kept = Buffer.concat([kept, text]);
    else isLost = true;
    while (kept.length > 0) {
      try {
        kept = kept.subarray(writeSync(out, kept));
      } catch (error) {
        if (!isFull(error)) kept = Buffer.alloc(0);
        if (kept.length === 0 || !mayWait || waitMs <= 0) return false;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_STEP_MS);
        waitMs -= STALL_STEP_MS;
      }
    }
    waitMs = STALL_MS_MAX;
    return !isLost;
  };
}

/** Bun opens pipes and sockets so. A terminal that was stopped (Ctrl-S, a lost connection) would block the process. */
function withoutBlocking(fd: 1 | 2): number {
  if (!isatty(fd)) return fd;
  try {
    // Opened again, since the shell shares the flags of its own.
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NOCTTY | constants.O_NONBLOCK);
  } catch {
    return fd;
  }
}

/** The pipe is full. Any other error means that its reader is gone. */
function isFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}

/** The name of an error, for the log. Its message may contain what was sent. */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "unknown";
}

/** Name and stack of an unexpected error, for the log. Only the engine's own messages are kept: others may quote user data. */
export function stackTrace(error: unknown): string {
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

/** The text of an event with its line break; null: it is of no interest to a person who watches. */
type LogText = (event: LogEvent) => string | null;

/** What a line says, in columns. */
interface Line {
  /** The first word: what kind of event it is. */
  readonly word: string;
  readonly color?: Color;
  /** A status. */
  readonly code?: string;
  readonly text: string;
  /** What is at the right edge, in this order. If there is no room, the least important is left out. */
  readonly aside?: readonly Aside[];
  /** Written after the line, on its own lines. */
  readonly trace?: string;
}

/** An empty text is left out. */
interface Aside {
  readonly text: string;
  /** The higher, the longer it stays. */
  readonly rank: number;
}

/** Where the right edge is at most, since longer lines are harder to read. */
const LINE_COLUMNS_MAX = 140;

const LINE_COLUMNS_MIN = 60;

const WORD_COLUMNS = "stopping".length;

const CODE_COLUMNS = 3;

const METHOD_COLUMNS = "DELETE".length;

/** How many first characters of an id `outgate` accepts for the whole id. */
const SHORT_ID = 18;

/** From this width on, whole ids are shown. */
const WIDE_COLUMNS = 120;

/**
 * The log for a person at a terminal: one aligned line for each event, in local time. Requests that only read and
 * succeeded are left out, since a page makes dozens of them; LOG_LEVEL=debug (`isVerbose`) shows them. `columns`: the width of the
 * terminal at this moment; undefined: there is none.
 */
export function createLogText(paint: Paint, isVerbose: boolean, columns: () => number | undefined): LogText {
  return (event) => {
    if (!isVerbose && isRoutine(event)) return null;
    const room = Math.max(LINE_COLUMNS_MIN, columns() ?? LINE_COLUMNS_MAX);
    const { word, color, code = "", text, aside = [], trace } = logLine(event, room >= WIDE_COLUMNS);
    const named = `${padded(word, WORD_COLUMNS)} ${padded(code, CODE_COLUMNS)}`;
    const left = Math.min(room, LINE_COLUMNS_MAX) - clockTime(event.at).length - columnCount(named) - 2 * GAP.length;
    const edge = fitting(aside, left - columnCount(text) - GAP.length);
    const space = " ".repeat(Math.max(0, left - columnCount(text) - columnCount(edge)));
    const line = [
      paint(clockTime(event.at), "grey"),
      color === undefined ? named : paint(named, color),
      edge === "" ? text : text + space + paint(edge, "grey"),
    ];
    return `${line.join(GAP).trimEnd()}\n${trace === undefined ? "" : paint(indented(trace), "grey")}`;
  };
}

const GAP = "  ";

function fitting(aside: readonly Aside[], room: number): string {
  const parts = aside.filter(({ text }) => text !== "");
  const text = parts.map((part) => part.text).join(GAP);
  if (columnCount(text) <= room || parts.length === 0) return text;
  const least = Math.min(...parts.map(({ rank }) => rank));
  return fitting(
    parts.filter(({ rank }) => rank > least),
    room,
  );
}

function indented(trace: string): string {
  return trace
    .split("\n")
    .map((line) => `          ${line.trim()}\n`)
    .join("");
}

/** A read that succeeded. */
function isRoutine({ level, event, fields }: LogEvent): boolean {
  if (level !== "info" || event !== "http.requested") return false;
  const { method, status } = fields;
  return (method === "GET" || method === "HEAD") && typeof status === "number" && status < 400;
}

function logLine(event: LogEvent, isWide: boolean): Line {
  const known = KNOWN[event.event];
  return known === undefined ? otherLine(event) : known(event, isWide);
}

const KNOWN: Readonly<Record<string, (event: LogEvent, isWide: boolean) => Line>> = {
  "action.attempted": attemptLine,
  "action.held": heldLine,
  "http.requested": requestLine,
  "callback.attempted": notificationLine,
  "mail.attempted": notificationLine,
  "message.attempted": notificationLine,
  "mcp.called": ({ fields: { tool, code, duration_ms: ms } }) => ({
    word: "tool",
    ...(code !== undefined && { color: "yellow" }),
    text: `${fieldText(tool)}${code === undefined ? "" : `  ${fieldText(code)}`}`,
    aside: [{ text: duration(ms), rank: 1 }],
  }),
  "service.stopping": ({ fields }) => ({
    word: "stopping",
    text: `${fieldText(fields["signal"])}: finishing what is under way`,
  }),
  "service.stopped": () => ({ word: "stopped", text: "Everything is written." }),
};

const ATTEMPTS = {
  completed: { word: "sent", color: "green" },
  retry: { word: "retry", color: "yellow" },
  failed: { word: "failed", color: "red" },
} as const satisfies Readonly<Record<string, Pick<Line, "word" | "color">>>;

/** One attempt to send an action. */
function attemptLine({ fields }: LogEvent, isWide: boolean): Line {
  const { next, code, fault, method, host, attempt, attempts_max: most, next_in_ms: nextMs, action_id: id } = fields;
  const head = next === "completed" || next === "retry" || next === "failed" ? ATTEMPTS[next] : { word: "attempt" };
  return {
    ...head,
    code: code === undefined ? "" : fieldText(code),
    text: `${fieldText(method).padEnd(METHOD_COLUMNS)} ${fieldText(host)}`,
    aside: [
      { text: fieldText(fault).replaceAll("_", " "), rank: 5 },
      { text: next === "completed" && attempt === 1 ? "" : `${fieldText(attempt)} of ${fieldText(most)}`, rank: 2 },
      { text: typeof nextMs === "number" ? `again in ${duration(nextMs)}` : "", rank: 4 },
      { text: duration(fields["duration_ms"]), rank: 1 },
      { text: idText(id, isWide), rank: 3 },
    ],
  };
}

/** An action waits for a person. */
function heldLine({ fields: { method, host, action_id: id } }: LogEvent, isWide: boolean): Line {
  return {
    word: "held",
    color: "bold",
    text: `${fieldText(method).padEnd(METHOD_COLUMNS)} ${fieldText(host)}${GAP}Awaiting approval`,
    aside: [{ text: idText(id, isWide), rank: 1 }],
  };
}

const NOTIFICATION_COLOR: Readonly<Record<string, Color>> = { delivered: "green", retry: "yellow", given_up: "red" };

/** One attempt to deliver a callback, a mail or a message to a channel. */
function notificationLine({ event, fields }: LogEvent, isWide: boolean): Line {
  const { next, host, error, attempt, attempts_max: most, next_in_ms: nextMs } = fields;
  const color = NOTIFICATION_COLOR[fieldText(next)];
  const words = [fieldText(next).replaceAll("_", " "), fieldText(fields["event"]), fieldText(host), fieldText(error)];
  return {
    word: event.replace(".attempted", ""),
    ...(color !== undefined && { color }),
    text: words.filter((part) => part !== "").join(GAP),
    aside: [
      { text: next === "delivered" && attempt === 1 ? "" : `${fieldText(attempt)} of ${fieldText(most)}`, rank: 2 },
      { text: typeof nextMs === "number" ? `again in ${duration(nextMs)}` : "", rank: 4 },
      { text: duration(fields["duration_ms"]), rank: 1 },
      { text: idText(fields["action_id"], isWide), rank: 3 },
    ],
  };
}

function requestLine({ fields }: LogEvent, isWide: boolean): Line {
  const { method, route, action_id: id, status, code } = fields;
  // It was refused before routing, or has no route.
  const path = route === null || route === undefined ? "" : fieldText(route);
  const place = path.replace("{id}", () => (id === undefined ? "{id}" : idText(id, isWide)));
  const own = path.includes("{id}") || id === undefined ? "" : idText(id, isWide);
  const words = [fieldText(method).padEnd(METHOD_COLUMNS), place, fieldText(code)];
  const isWrong = typeof status === "number" && status >= 400;
  return {
    word: "request",
    ...(isWrong && { color: status >= 500 ? "red" : "yellow" }),
    code: fieldText(status),
    text: words.filter((part) => part !== "").join(" "),
    aside: [
      { text: duration(fields["duration_ms"]), rank: 1 },
      { text: own, rank: 2 },
    ],
  };
}

const LEVEL_WORD = { debug: "debug", info: "info", warn: "warning", error: "error" } as const;

const LEVEL_COLOR = { debug: "grey", info: undefined, warn: "yellow", error: "red" } as const;

/** Any other event: its name, its message, and its fields. */
function otherLine({ level, event, fields }: LogEvent): Line {
  const { message, error, ...others } = fields;
  // Only the trace of an unexpected error has several lines.
  const trace = typeof error === "string" && error.includes("\n") ? error : undefined;
  const rest = Object.entries(trace === undefined ? { ...others, error } : others)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${fieldText(value)}`);
  const color = LEVEL_COLOR[level];
  return {
    word: LEVEL_WORD[level],
    ...(color !== undefined && { color }),
    text: [event, ...(message === undefined ? [] : [fieldText(message)]), ...rest].join("  "),
    ...(trace !== undefined && { trace: visible(trace, true) }),
  };
}

function fieldText(value: LogFields[string]): string {
  return visible(String(value ?? ""));
}

function idText(id: LogFields[string], isWide: boolean): string {
  return isWide ? fieldText(id) : fieldText(id).slice(0, SHORT_ID);
}

function duration(ms: LogFields[string]): string {
  if (typeof ms !== "number") return "";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}
