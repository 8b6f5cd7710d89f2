import type { StartOutput } from "./app/first-keys.ts";
import type { App, AppDeps } from "./app/open.ts";
import {
  announceFirstKeys,
  announceStart,
  configIn,
  isLogged,
  refuseToStart,
  stopInOrder,
  stopOnSignal,
  findTerminal,
} from "./app/process.ts";
import { type Config, type Env, listeningOn, RELEASE, targetPolicy } from "./config/config.ts";
import { databasePlace } from "./config/values.ts";
import { type Clock, systemClock } from "./core/clock.ts";
import { systemIds } from "./core/ids.ts";
import { KeyChanged } from "./crypto/master-key.ts";
import { StoreLost, type StoreUnavailable } from "./core/store.ts";
import { explainPortErrors, openStartServer } from "./http/listen.ts";
import { createLog, createLogText, jsonLine, writerTo } from "./observability/log.ts";
import type { Sender } from "./outbound/sender.ts";
import { createWaitingLog, repeatWhileAway } from "./runtime/store-away.ts";

interface Served {
  readonly app: App;
  /** Stops in order; resolves when everything is written. */
  stop(): Promise<void>;
}

interface ServeOptions {
  /** File descriptor of the log and of the first-start text; 2 if standard output belongs to an agent. */
  readonly outputFd?: 1 | 2;
  /** The text of a first start in place of the keys, if the reader must not see them. */
  readonly insteadOfKeys?: ((config: Config) => string) | undefined;
  /** Text that is appended to the error of a failed start. */
  readonly advice?: string;
  /** In place of the machine's clock. */
  readonly clock?: Clock;
  /** Wraps or replaces the sender that makes the calls. */
  readonly divert?: (sender: Sender) => Sender;
}

/**
 * Runs the service until a signal ends it. Resolves when it serves; while the database is unavailable, it waits. If it can't
 * start, it prints one sentence to standard error and exits with code 1.
 */
export async function serve(
  env: Env,
  { outputFd = 1, insteadOfKeys, advice = "", clock = systemClock, divert = (sender) => sender }: ServeOptions = {},
): Promise<Served> {
  // New files are readable for this user only.
  process.umask(0o077);
  const say = writerTo(outputFd);
  const refuse = (error: unknown) => refuseToStart(error, advice);
  const config = configIn(env, refuse);
  const terminal = findTerminal(config, env, outputFd);
  const isVerbose = config.logLevel === "debug";
  const formatLog = terminal.isText ? createLogText(terminal.paint, isVerbose, terminal.columns) : null;
  const log = createLog(say, clock, config.logLevel, formatLog);
  // Also flushed when an uncaught error ends the process.
  process.on("exit", () => log.flush());
  const onFatal = (cause: unknown) => {
    if (cause instanceof StoreLost) {
      log.error("store.lost", { message: `${cause.message} Ending: ${cause.reason}.` });
    } else if (cause instanceof KeyChanged) {
      log.error("key.changed", { message: cause.message });
    } else log.error("store.not_durable", { message: "A commit could not be made durable. Ending; start again." });
    process.exit(1);
  };
  const stopping = new AbortController();
  const starting = startApp(config, { clock, ids: systemIds, log, onFatal, stopping: stopping.signal, divert });
  const stop = () => stopInOrder(starting, stopping, log);
  // From the moment the port is open: without this, a signal during the start would end the process at once.
  stopOnSignal(stop, log);
  const app = await starting.catch(refuse);
  // A signal stopped the start; its handler ends the process.
  if (app === null) return new Promise<never>(() => {});
  announceStart(app, { log, say, terminal });
  const formatLine: StartOutput["formatLine"] = terminal.isText
    ? null
    : (level, event, fields) => jsonLine({ at: systemClock.now(), level, event, fields });
  const output = { say, formatLine, paint: terminal.paint, insteadOfKeys, isLogged: isLogged(env, outputFd) };
  if (app.firstKeys !== null) await announceFirstKeys(app, app.firstKeys, output);
  return { app, stop };
}

/**
 * Listens, then builds all modules and begins to serve. While the store is unavailable, it tries again every second. Null: it
 * was stopped before it served. Throws an error for the operator if settings, key or database can't be used.
 */
async function startApp(settings: Config, deps: AppDeps): Promise<App | null> {
  const { port, host } = settings;
  // Listen first, so that probes see a live process however long the database takes.
  const startServer = explainPortErrors({ setting: "PORT", port, host }, () =>
    openStartServer(port, host, { clock: deps.clock, ids: deps.ids, ...RELEASE }),
  );
  const { listening, letGo, close } = startServer;
  deps.stopping.addEventListener("abort", letGo, { once: true });
  try {
    const config = port === 0 ? listeningOn(settings, listening.port ?? 0) : settings;
    // One name for all tries: what a failed try could not give back in the database still belongs to this process.
    const own = { nodeId: deps.ids.node(), onWaiting: createWaitingLog(deps.log, databasePlace(config.database)) };
    const parts = { config, policy: targetPolicy(config), startServer, ...own };
    const onAway = ({ reason }: StoreUnavailable) => own.onWaiting(reason);
    // Imported when the port is open: /health answers half a second earlier.
    const { openApp } = await import("./app/open.ts");
    const app = await repeatWhileAway(() => openApp(parts, deps), deps, onAway);
    if (app === null) await close();
    return app;
  } catch (error) {
    await close();
    throw error;
  }
}
