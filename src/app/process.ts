import { readFileSync } from "node:fs";
import { isatty } from "node:tty";
import type { FirstKeys } from "../accounts/bootstrap.ts";
import { type Config, type Env, readConfig, RELEASE, releaseText } from "../config/config.ts";
import { localUrl, databasePlace } from "../config/values.ts";
import { systemClock } from "../core/clock.ts";
import { DRAIN_MS_MAX, START_STEP_STOP_MS } from "../core/limits.ts";
import { type LineLog, writerTo } from "../observability/log.ts";
import { createPaint, columnCount, padded, type Paint } from "../observability/terminal.ts";
import type { StartOutput } from "./first-keys.ts";
import type { App } from "./open.ts";

/** A stop may take the drain time and this much more; then the process exits anyway. */
const STOP_GRACE_MS = 1_000;

/** A second signal within this time doesn't count: `timeout` and others forward a signal that the whole group has received. */
const SAME_SIGNAL_MS = 200;

/** The width of the text where no terminal says its own. */
const TEXT_COLUMNS = 100;

/** How the output looks. */
export function findTerminal({ logFormat }: Config, env: Env, fd: 1 | 2) {
  const isTty = isatty(fd);
  const stream = fd === 1 ? process.stdout : process.stderr;
  return {
    /** Text for people instead of lines of JSON. */
    isText: logFormat === "text" || (logFormat === "auto" && isTty),
    paint: createPaint({ isTty, env }),
    // A terminal that doesn't know its width says 0.
    columns: () => (isTty && stream.columns > 0 ? stream.columns : undefined),
  };
}

interface Output {
  readonly log: LineLog;
  readonly say: (text: string) => boolean;
  readonly terminal: ReturnType<typeof findTerminal>;
}

/** Says that the service has started, and what the operator should know. */
export function announceStart(app: App, { log, say, terminal }: Output): void {
  const { config, nodeId, notices } = app;
  const { baseUrl, metricsPort, host } = config;
  const warnings = [...app.warnings, ...openFilesWarning(config)];
  if (terminal.isText) {
    log.flush();
    const metricsUrl = metricsPort === null ? null : `${localUrl(host, metricsPort)}/metrics`;
    const facts = {
      version: releaseText(RELEASE),
      baseUrl,
      database: databasePlace(config.database),
      nodeId,
      metricsUrl,
      warnings,
      notices,
    };
    const text = startText(facts, terminal.paint, terminal.columns() ?? TEXT_COLUMNS);
    say(app.firstKeys === null ? `${text}\n` : text);
    return;
  }
  for (const warning of warnings) log.warn("service.notice", { message: warning });
  for (const notice of notices) log.info("service.notice", { message: notice });
  log.info("service.started", { ...RELEASE, url: baseUrl, node: nodeId ?? undefined });
  log.flush();
}

/** Calls at a time take at most this share of the open files: clients, databases and notifications need the others. */
const CALLS_SHARE = 0.25;

/** Without free files, calls wait and clients get no connection. */
function openFilesWarning({ dispatchConcurrency }: Config): readonly string[] {
  const files = Number(/^Max open files\s+(\d+)/m.exec(readProcess("limits"))?.[1] ?? Infinity);
  if (dispatchConcurrency <= files * CALLS_SHARE) return [];
  return [
    `This process can have ${files} files and connections open, which is too few for DISPATCH_CONCURRENCY=${dispatchConcurrency}: calls wait and clients fail. Raise the limit (ulimit -n), or lower DISPATCH_CONCURRENCY to ${Math.max(1, Math.floor(files * CALLS_SHARE))}.`,
  ];
}

/** What Linux tells this process about itself; "" on other systems. */
function readProcess(name: "limits" | "status"): string {
  try {
    return readFileSync(`/proc/self/${name}`, "utf8");
  } catch {
    return "";
  }
}

interface Announcement extends StartOutput {
  /** The text of a first start in place of the keys, if the reader must not see them. */
  readonly insteadOfKeys?: ((config: Config) => string) | undefined;
}

/** Shows the first keys. Keys that could not be shown are shown by the next start. */
export async function announceFirstKeys(
  app: App,
  keys: FirstKeys,
  { insteadOfKeys, ...output }: Announcement,
): Promise<void> {
  if (insteadOfKeys !== undefined) {
    const text = insteadOfKeys(app.config);
    const message = text.trim().replaceAll("\n", " ");
    if (message === "") return;
    output.say(output.formatLine === null ? text : output.formatLine("info", "service.notice", { message }));
    return;
  }
  const { printFirstKeys } = await import("./first-keys.ts");
  if (!printFirstKeys(app.config, keys, output)) return;
  // If the store is unavailable, the next start shows them again.
  await app.forgetFirstKeys().catch(() => {});
}

/** Whether the output is stored. In production without a terminal, journald or a container keeps it. */
export function isLogged(env: Env, fd: 1 | 2): boolean {
  return env["NODE_ENV"] === "production" && !isatty(fd);
}

export function configIn(env: Env, refuse: (error: unknown) => never): Config {
  try {
    return readConfig(env);
  } catch (error) {
    return refuse(error);
  }
}

export function refuseToStart(error: unknown, advice: string): never {
  writerTo(2)(`Outgate can't start. ${error instanceof Error ? error.message : String(error)}${advice}\n`);
  process.exit(1);
}

export async function stopInOrder(
  starting: Promise<App | null>,
  stopping: AbortController,
  log: LineLog,
): Promise<void> {
  setTimeout(() => process.exit(1), DRAIN_MS_MAX + STOP_GRACE_MS).unref();
  stopping.abort();
  const { promise: stepTakesLong, resolve: giveUp } = Promise.withResolvers<null>();
  const timer = setTimeout(giveUp, START_STEP_STOP_MS, null);
  // A step that is cut off here leaves the same state as a kill, which the next start repairs.
  const app = await Promise.race([starting, stepTakesLong]);
  clearTimeout(timer);
  await app?.stop();
  log.info("service.stopped");
  log.flush();
}

/** The first signal stops in order; a second one exits at once. */
export function stopOnSignal(stop: () => Promise<void>, log: LineLog): void {
  let stoppingSinceMs: number | null = null;
  const onSignal = (signal: string) => {
    const nowMs = systemClock.monotonicMs();
    if (stoppingSinceMs !== null) {
      if (nowMs - stoppingSinceMs >= SAME_SIGNAL_MS) process.exit(1);
      return;
    }
    stoppingSinceMs = nowMs;
    log.info("service.stopping", { signal });
    stop().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  // Its terminal was closed. A listener would undo nohup(1).
  if (!isHangUpIgnored()) process.on("SIGHUP", onSignal);
}

/** Whether this process was started to survive its terminal, as by nohup(1). Also true where that isn't known. */
function isHangUpIgnored(): boolean {
  const [, ignored] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readProcess("status")) ?? [];
  return ignored === undefined || (BigInt(`0x${ignored}`) & 1n) === 1n;
}

interface StartFacts {
  readonly version: string;
  /** The address at which people and agents reach the service, without a trailing slash. */
  readonly baseUrl: string;
  /** Where the rows are, without a password. */
  readonly database: string;
  /** The name of this process among those on the same database; null: it is the only one. */
  readonly nodeId: string | null;
  readonly metricsUrl: string | null;
  readonly warnings: readonly string[];
  readonly notices: readonly string[];
}

const LABEL_COLUMNS = 10;

/** Longer lines are harder to read. */
const COLUMNS_MAX = 100;

/** What a start tells a person at a terminal: what runs where, and what the operator should know. */
export function startText(facts: StartFacts, paint: Paint, columns: number): string {
  const { version, baseUrl, database, nodeId, metricsUrl, warnings, notices } = facts;
  const rows = [
    ["Console", baseUrl, "approve, look up, retry"],
    ["API", `${baseUrl}/v1`, `reference: ${baseUrl}/docs/api`],
    ["MCP", `${baseUrl}/mcp`, "for agents"],
    ...(metricsUrl === null ? [] : [["Metrics", metricsUrl, ""]]),
    ["Database", database, ""],
    ...(nodeId === null ? [] : [["Node", nodeId, ""]]),
  ];
  const width = Math.max(...rows.map(([, place = ""]) => columnCount(place)));
  const lines = rows.map(([label = "", place = "", what = ""]) => {
    const head = `  ${paint(padded(label, LABEL_COLUMNS), "grey")}  `;
    const fits = LABEL_COLUMNS + width + columnCount(what) + 6 <= columns;
    const plain = place.startsWith("http") ? paint(place, "blue") : place;
    return what === "" || !fits
      ? `${head}${plain}\n`
      : `${head}${plain}${" ".repeat(width - columnCount(place) + 2)}${paint(what, "grey")}\n`;
  });
  const noted = (label: string) => (text: string) => {
    const wrapped = wrappedAt(text, Math.min(columns, COLUMNS_MAX) - LABEL_COLUMNS - 4);
    return wrapped
      .map((line, at) => `  ${paint(padded(at === 0 ? label : "", LABEL_COLUMNS), "yellow")}  ${line}\n`)
      .join("");
  };
  const notes = [...warnings.map(noted("Warning")), ...notices.map(noted("Note"))];
  const head = `  ${paint(`Outgate ${version}`, "bold")} is running. ${paint("Ctrl-C stops it.", "grey")}\n`;
  return [head, lines.join(""), notes.join("")].map((part) => (part === "" ? "" : `\n${part}`)).join("");
}

/** Wraps the words of a text at a width. A longer word has its own line. */
function wrappedAt(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && columnCount(longer) > columns) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}
