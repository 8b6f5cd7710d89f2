import type { Server } from "bun";
import { describePolicy, type TargetPolicy } from "./config/target-policy.ts";
import { firstKeysNotice, forgetFirstKeys, type StartOutput } from "./accounts/first-start.ts";
import { type Opened, openForService, type OpeningDeps } from "./app/encrypted-store.ts";
import { addGauges } from "./app/gauges.ts";
import { housekeeping, sharedReads } from "./app/housekeeping.ts";
import { agentRoutes, createHttp, httpSettings, metricsTokenCheck } from "./app/http.ts";
import { listenAtStart, openMetricsPort, serveOn } from "./app/listen.ts";
import {
  announceFirstKeys,
  announceStart,
  type App,
  configIn,
  isLogged,
  refuseToStart,
  stopInOrder,
  stopOnSignal,
  terminalOf,
} from "./app/process.ts";
import { createServices, type Services } from "./app/services.ts";
import { type Config, listeningOn, policyOf } from "./config/config.ts";
import { createBus } from "./core/bus.ts";
import { catchTimerErrors, type Clock, systemClock } from "./core/clock.ts";
import { systemIds } from "./core/ids.ts";
import { DRAIN_MS_MAX, SHARED_READ_EVERY_MS } from "./core/limits.ts";
import type { Caller } from "./core/roles.ts";
import { StoreLost, type StoreUnavailable } from "./core/store.ts";
import { createPasswords } from "./crypto/passwords.ts";
import { createMailer } from "./mail/mailer.ts";
import { createLogText } from "./observability/log-text.ts";
import { createLog, jsonLine, writerTo } from "./observability/log.ts";
import { Metrics } from "./observability/metrics.ts";
import { LoopLag } from "./observability/runtime.ts";
import type { Sender } from "./outbound/deadline.ts";
import { createSender } from "./outbound/send.ts";
import type { AppContext } from "./runtime/app-context.ts";
import { startJobs, keepFresh } from "./runtime/jobs.ts";
import { createWaitingLog, Outage, repeatWhileAway } from "./runtime/store-away.ts";

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
  /** What makes the calls in place of the sender that is given. */
  readonly divert?: (sender: Sender) => Sender;
}

/**
 * Runs the service until a signal ends it. Resolves when it serves, which it waits for while the database is away. If it can't
 * start, it prints one sentence to standard error and exits with code 1.
 */
export async function serve(
  env: Readonly<Record<string, string | undefined>>,
  { outputFd = 1, insteadOfKeys, advice = "", clock = systemClock, divert = (sender) => sender }: ServeOptions = {},
): Promise<Served> {
  // New files are readable for this user only.
  process.umask(0o077);
  const say = writerTo(outputFd);
  const refuse = (error: unknown) => refuseToStart(error, advice);
  const config = configIn(env, refuse);
  const terminal = terminalOf(config, env, outputFd);
  const isVerbose = config.logLevel === "debug";
  const textOf = terminal.isText ? createLogText({ ...terminal, isVerbose }) : null;
  const log = createLog(say, clock, config.logLevel, textOf);
  // Also where an error that nobody caught ends the process.
  process.on("exit", () => log.flush());
  const onFatal = (cause: unknown) => {
    if (cause instanceof StoreLost) {
      log.error("store.lost", { message: `${cause.message} Ending: only one service may send from a database.` });
    } else log.error("store.not_durable", { message: "A commit could not be made durable. Ending; start again." });
    process.exit(1);
  };
  const stopping = new AbortController();
  const starting = startApp(config, { clock, ids: systemIds, log, onFatal, stopping: stopping.signal, divert });
  const stop = () => stopInOrder(starting, stopping, log);
  // From the first answer on: a signal in the rest of the start would end the process without stopping in order.
  stopOnSignal(stop, log);
  const app = await starting.catch(refuse);
  // The signal that stopped the start ends the process.
  if (app === null) return new Promise<never>(() => {});
  const left = firstKeysNotice(config.database);
  announceStart(app, left === null ? app.notices : [...app.notices, left], { log, say, terminal });
  const lineOf: StartOutput["lineOf"] = terminal.isText
    ? null
    : (level, event, fields) => jsonLine({ at: systemClock.now(), level, event, fields });
  const output = { say, lineOf, paint: terminal.paint, insteadOfKeys, isLogged: isLogged(env, outputFd) };
  if (app.firstKeys !== null) await announceFirstKeys(app, app.firstKeys, output);
  return { app, stop };
}

interface AppDeps extends Omit<OpeningDeps, "nodeId" | "onWaiting" | "onAway">, Required<Pick<ServeOptions, "divert">> {
  /** Aborted when the service stops, also while it starts. */
  readonly stopping: AbortSignal;
}

/**
 * Listens, then builds all modules and begins to serve. While the store is away it begins anew, every second. Null: it was
 * stopped before it served. Throws an error for the operator if settings, key or database can't be used.
 */
async function startApp(settings: Config, deps: AppDeps): Promise<App | null> {
  const listening = listenAtStart(settings, deps.ids);
  try {
    const config = settings.port === 0 ? listeningOn(settings, listening.port ?? 0) : settings;
    // One name for all tries: what a try took in the database and could not give back is this process's still.
    const own = { nodeId: deps.ids.node(), onWaiting: createWaitingLog(deps.log) };
    const parts = { config, policy: policyOf(config), listening, ...own };
    const onAway = ({ reason }: StoreUnavailable) => own.onWaiting(reason);
    const app = await repeatWhileAway(() => openApp(parts, deps), { ...deps, onAway });
    if (app === null) await listening.stop(true);
    return app;
  } catch (error) {
    await listening.stop(true);
    throw error;
  }
}

interface StartParts extends Pick<OpeningDeps, "nodeId" | "onWaiting"> {
  readonly config: Config;
  readonly policy: TargetPolicy;
  /** Answers 503 so far. */
  readonly listening: Server<unknown>;
}

/** One try. What it opened is closed when it rejects. */
async function openApp(parts: StartParts, deps: AppDeps): Promise<App> {
  const outage = new Outage(deps);
  const onAway = (error: StoreUnavailable) => outage.begin(error);
  const opened = await openForService(parts.config, { ...deps, ...parts, onAway });
  try {
    return await openServices({ ...opened, ...parts, outage }, deps);
  } catch (error) {
    outage.stop();
    await opened.node?.stop();
    await opened.encryptedStore.store.close();
    throw error;
  }
}

interface AppParts extends Opened, StartParts {
  readonly outage: Outage;
}

/** Makes every part, in the order in which they need each other, and begins to deliver and to serve. */
async function openServices(
  { config, policy, encryptedStore, node, firstKeys, listening, outage }: AppParts,
  given: AppDeps,
): Promise<App> {
  const { store, secrets, warnings } = encryptedStore;
  const [metrics, draining] = [new Metrics(), new AbortController()];
  const clock = catchTimerErrors(node?.clock ?? given.clock, (error) => {
    metrics.taskFailed("timer");
    given.log.error("timer.failed", { error: error instanceof Error ? error.name : "unknown" });
  });
  const app: AppContext = { clock, ids: given.ids, log: given.log, metrics, config, store, bus: createBus() };

  const lag = new LoopLag(clock);
  const mailer = await createMailer(config, clock);
  const sender = createSender(policy, { clock, keepsConnections: config.keepsConnections });
  const passwords = createPasswords();
  const services = createServices(app, { secrets, passwords, sender: given.divert(sender), mailer, policy, node });
  const { delivery, feed, bulkRunner } = services;
  const routes = [agentRoutes(app, services, draining.signal)];
  const http = createHttp(services, httpSettings(app, secrets), { draining: draining.signal, routes });

  addGauges(metrics, { store, delivery, feed, countNodes: () => node?.membership.nodes.length ?? 1, lag, clock });
  const agent = localAgent((await store.accounts.first())?.id ?? "");
  outage.watch(() => store.probe());
  // Before it claims, so that the others share with it what targets may get at a time.
  await node?.membership.start();
  const begun = await beginDelivery(services, { ...given, clock });
  await serveOn(listening, http, services, config);
  const metricsServer = await openMetricsPort(config, http, services, {
    renderMetrics: () => metrics.render(),
    isMetricsToken: metricsTokenCheck(config.metricsToken, secrets),
    ids: app.ids,
  });
  lag.start();
  const stopJobs = startJobs(housekeeping(app, services), { ...app, ...(node !== null && { leases: node.jobs }) });
  const stopReads = node === null ? null : keepFresh(SHARED_READ_EVERY_MS, sharedReads(services), app);

  return {
    config,
    nodeId: node?.id ?? null,
    firstKeys,
    forgetFirstKeys: () => forgetFirstKeys(store.facts),
    answerAgent: (request) =>
      request.headers.has("authorization") ? http.handle(request) : http.handleAs(agent, request),
    answerAs: (caller, request) => http.handleAs(caller, request),
    notices: [...config.warnings, ...warnings, describePolicy(policy), ...begun.notices],
    async stop() {
      draining.abort();
      const limitMs = DRAIN_MS_MAX;
      // What begins while it drains would go on.
      const drain = async () => (await begun.isOver, services.drain(limitMs));
      await Promise.all([stopJobs(), bulkRunner.stop(), stopReads?.(), http.stop(limitMs), drain()]);
      sender.close();
      await metricsServer?.stop(true);
      lag.stop();
      outage.stop();
      await node?.stop();
      await store.close();
    },
  };
}

/** The agent at standard input: it has no key, and the rights of an agent. */
function localAgent(accountId: string): Caller {
  return { accountId, keyId: null, keyName: "stdio", role: "agent", hold: "none", actor: "key:stdio" };
}

interface Begun {
  /** For the operator. */
  readonly notices: readonly string[];
  /** Settles when delivery has begun, or will not begin any more. */
  readonly isOver: Promise<unknown>;
}

/**
 * Stops the accounts that may not send any more, then begins to deliver, which ends the attempts of a process that died. Where
 * the store can't be written, as on a full disk, it resolves at once and begins when the store can: what can be read is served
 * meanwhile.
 */
async function beginDelivery({ signUpGate, start }: Services, deps: AppDeps): Promise<Begun> {
  const { promise: isAway, resolve: onAway } = Promise.withResolvers<null>();
  const begin = async () => {
    // Before anything is claimed, so that no action of a stopped account is sent.
    const notice = await signUpGate.enforce();
    await start();
    return notice;
  };
  const begun = repeatWhileAway(begin, { ...deps, onAway: () => onAway(null) });
  const notice = await Promise.race([begun, isAway]);
  if (notice !== null) return { notices: [notice], isOver: begun };
  // An error that is no outage ends the process, as it does where nothing is away.
  const told = begun.then((late) => late !== null && deps.log.info("service.notice", { message: late }));
  return { notices: [], isOver: told };
}
