import { isatty } from "node:tty";
import type { FirstKeys } from "./accounts/bootstrap.ts";
import { type App, startApp } from "./app.ts";
import { systemClock } from "./clock.ts";
import { type Config, readConfig } from "./config.ts";
import { DRAIN_MS_MAX } from "./domain/limits.ts";
import { leftFirstKeys, showFirstKeys, type TextOutput } from "./first-keys.ts";
import { systemIds } from "./ids.ts";
import { createLog, type LineLog, writerTo } from "./log.ts";
import { StoreLost } from "./ports/store.ts";
import { VERSION } from "./version.ts";

/** A stop takes as long as the drain may, and this much more for the rest; then the process ends whatever hangs. */
const STOP_GRACE_MS = 1_000;

/** `timeout` and others pass on a signal that the whole group has got: the copy comes at once, no hand is as fast. */
const SAME_SIGNAL_MS = 200;

/** The service of this process, running. */
export interface Served {
  readonly app: App;
  /** Stops it in order; resolves when everything is written down. */
  stop(): Promise<void>;
}

export interface ServeOptions {
  /** Where the log and the words of the first start go; standard error where standard output belongs to an agent. */
  readonly speaksTo?: 1 | 2;
  /** What a first start says in place of the keys, where they are not for whoever reads it. */
  readonly insteadOfKeys?: ((config: Config) => string) | undefined;
  /** What else may be done where a start can't be. */
  readonly advice?: string;
}

/**
 * Runs the service of this process until a signal ends it. Resolves when the doors are open. A start that can't be is one
 * sentence on standard error and the exit code 1.
 */
export async function serve(
  env: Readonly<Record<string, string | undefined>>,
  { speaksTo = 1, insteadOfKeys, advice = "" }: ServeOptions = {},
): Promise<Served> {
  // Whatever is made beside the database is for this user alone.
  process.umask(0o077);
  const say = writerTo(speaksTo);
  const refuse = (error: unknown) => refuseToStart(error, advice);
  const config = configIn(env, refuse);
  const log = createLog(say, systemClock, config.logLevel);
  const onFatal = (cause: unknown) => {
    if (cause instanceof StoreLost) {
      log.error("store.lost", { message: `${cause.message} Ending: only one service may send from a database.` });
    } else log.error("store.not_durable", { message: "A commit could not be made durable. Ending; start again." });
    process.exit(1);
  };
  const app = await startApp(config, { clock: systemClock, ids: systemIds, log, onFatal }).catch(refuse);
  const left = leftFirstKeys(config.database);
  for (const notice of left === null ? app.notices : [...app.notices, left])
    log.info("service.notice", { message: notice });
  log.info("service.started", { version: VERSION, url: app.config.baseUrl });
  log.flush();
  if (app.firstKeys !== null)
    await greet(app, app.firstKeys, { say, insteadOfKeys, isLogged: isLogged(env, speaksTo) });
  const stop = () => stopInOrder(app, log);
  stopOnSignal(stop, log);
  return { app, stop };
}

interface Greeting extends TextOutput, Pick<ServeOptions, "insteadOfKeys"> {}

/** Keys that were not shown are kept, and shown by the next start that may. */
async function greet(app: App, keys: FirstKeys, { insteadOfKeys, ...speaker }: Greeting): Promise<void> {
  if (insteadOfKeys !== undefined) {
    speaker.say(insteadOfKeys(app.config));
    return;
  }
  if (!showFirstKeys(app.config, keys, speaker)) return;
  // Where the store is away the next start shows them again: once too often rather than never.
  await app.firstKeysShown().catch(() => {});
}

/** Without a terminal in production, journald or a container keeps what is printed, and ships it. */
function isLogged(env: Readonly<Record<string, string | undefined>>, fd: 1 | 2): boolean {
  return env["NODE_ENV"] === "production" && !isatty(fd);
}

function configIn(env: Readonly<Record<string, string | undefined>>, refuse: (error: unknown) => never): Config {
  try {
    return readConfig(env);
  } catch (error) {
    return refuse(error);
  }
}

/** A start that can't be is one clear sentence and the code 1; never a stack for the operator to read. */
function refuseToStart(error: unknown, advice: string): never {
  writerTo(2)(`Outgate can't start. ${error instanceof Error ? error.message : String(error)}${advice}\n`);
  process.exit(1);
}

async function stopInOrder(app: App, log: LineLog): Promise<void> {
  setTimeout(() => process.exit(1), DRAIN_MS_MAX + STOP_GRACE_MS).unref();
  await app.stop();
  log.info("service.stopped");
  log.flush();
}

/** The first signal stops in order, a second one at once. */
function stopOnSignal(stop: () => Promise<void>, log: LineLog): void {
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
}
