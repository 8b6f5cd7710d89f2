import { isatty } from "node:tty";
import {
  type FirstKeys,
  leftFirstKeys,
  showFirstKeys,
  type TextOutput,
  forgetFirstKeys,
} from "./accounts/first-start.ts";
import { systemClock, survivingClock, type Clock } from "./runtime/clock.ts";
import { type Config, readConfig, VERSION, listeningOn } from "./config/config.ts";
import { DRAIN_MS_MAX, COUNTS_FRESH_MS } from "./config/limits.ts";
import { systemIds, type Ids } from "./runtime/ids.ts";
import { createLog, type LineLog, writerTo, type Log } from "./observability/log.ts";
import { StoreLost, type Store } from "../db/store.ts";
import type { Server } from "bun";
import { createSignUpGate, type SignUpGate } from "./accounts/sign-up-gate.ts";
import type { Caller } from "./accounts/roles.ts";
import { createEngine, type Engine } from "./delivery/engine.ts";
import { listenForMetrics, type MetricsPortDeps } from "./http/system-routes.ts";
import { type Http, createHttp } from "./http/server.ts";
import { mailerOf } from "./mail/mailer.ts";
import { freshFor, LoopLag, residentBytes } from "./observability/runtime.ts";
import { createMetrics, type MetricsBook } from "./observability/metrics.ts";
import { describePolicy, type TargetPolicy } from "./outbound/policy.ts";
import { createSender } from "./outbound/send.ts";
import { housekeeping, startJobs } from "./runtime/jobs.ts";
import { type Opened, openStoreWithRetry, type OpeningDeps, type EncryptedStore } from "./crypto/encrypted-store.ts";
import { policyOf, createRulesFor } from "./config/effective-settings.ts";
import { createReadAccount, createPeopleService } from "./accounts/people.ts";
import { createAuditService } from "./audit/audit.ts";
import { createAuthenticate } from "./accounts/authenticate.ts";
import { createCallbackHostService } from "./accounts/callback-hosts.ts";
import { createKeyService } from "./accounts/keys.ts";
import { createSigningService } from "./accounts/signing-secrets.ts";
import { createFollowLink } from "./approvals/links.ts";
import { createListNotifications } from "./actions/read.ts";
import { createReadReceipt } from "./receipts/receipt.ts";
import { isLoopbackUrl, trustedProxiesOf, isLoopbackAddress } from "./config/values.ts";
import { createOwnHostPages, createOwnHostOnly } from "./http/own-origin.ts";
import { mcpRoutes, type McpRouteDeps } from "./http/mcp-routes.ts";
import { GUIDES } from "./pages/guides.ts";
import { createTargets } from "./outbound/target.ts";
import type { Secrets } from "./crypto/types.ts";
import { createPasswords } from "./crypto/passwords.ts";
import { createAgentHandler, createAgentServer } from "../mcp/server.ts";
import { createShow } from "../mcp/results.ts";
import type { Guard } from "./http/router.ts";

/** A stop takes as long as the drain may, and this much more for the rest; then the process ends whatever hangs. */
const STOP_GRACE_MS = 1_000;

/** `timeout` and others pass on a signal that the whole group has got: the copy comes at once, no hand is as fast. */
const SAME_SIGNAL_MS = 200;

/** The service of this process, running. */
interface Served {
  readonly app: App;
  /** Stops it in order; resolves when everything is written down. */
  stop(): Promise<void>;
}

interface ServeOptions {
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

type AppDeps = OpeningDeps;

/** The service, running. */
interface App {
  /** The settings with the port that is listened on. */
  readonly config: Config;
  /** Null once they were shown. */
  readonly firstKeys: FirstKeys | null;
  /** To be called when they were: no later start shows them. */
  firstKeysShown(): Promise<void>;
  /** Sentences for the operator. */
  readonly notices: readonly string[];
  /**
   * Answers a request to /mcp of the agent at the standard input of this process: by its key where it brings one, and
   * without one as an agent of the first account.
   */
  answerAgent(request: Request): Promise<Response>;
  /**
   * Claims nothing more, answers who waits, finishes or interrupts what is in flight, and lets the store go. Ends within
   * the drain limit and a second.
   */
  stop(): Promise<void>;
}

/**
 * Builds every room and opens the doors: the only place that knows them all. Throws a sentence for the operator when the
 * settings, the key or the database can't be used.
 */
async function startApp(settings: Config, deps: AppDeps): Promise<App> {
  const config = settings.port === 0 ? listeningOn(settings, await freePort(settings.host)) : settings;
  const policy = policyOf(config);
  const opened = await openStoreWithRetry(config, deps);
  try {
    return await openHttp({ ...opened, config, policy }, deps);
  } catch (error) {
    await opened.listening?.stop(true);
    await opened.encryptedStore.store.close();
    throw error;
  }
}

interface Ground extends Opened {
  readonly config: Config;
  readonly policy: TargetPolicy;
}

async function openHttp(
  { config, policy, encryptedStore, firstKeys, listening }: Ground,
  given: AppDeps,
): Promise<App> {
  const { store, secrets } = encryptedStore;
  const book = createMetrics();
  const clock = survivingClock(given.clock, (error) => {
    book.metrics.taskFailed("timer");
    given.log.error("timer.failed", { error: error instanceof Error ? error.name : "unknown" });
  });
  const deps: AppDeps = { ...given, clock };
  const lag = new LoopLag(clock);
  const draining = new AbortController();
  const mailer = await mailerOf(config, clock);
  const sender = createSender(policy);
  const engine = createEngine(config, { ...deps, store, secrets, sender, mailer, metrics: book.metrics });
  const { accounts } = store;
  const signUpGate = createSignUpGate({ ...deps, accounts, paused: engine.pausedSet, signUps: config.signUps });
  const http = createHttpService(
    { config, policy, encryptedStore, engine, book, signUpGate, draining: draining.signal },
    deps,
  );

  showReadings(book, { store, engine, lag, clock });
  // Before anything is claimed: what stops who was signed up stops what they left behind.
  const signUpNotice = await signUpGate.enforce();
  // What a dead process left behind is ended before the doors open.
  await engine.start();
  await listen(http, engine, { ...config, listening });
  const metricsServer = await openMetricsPort(config, http, engine, {
    renderMetrics: () => book.render(),
    isMetricsToken: metricsTokenCheck(config.metricsToken, secrets),
    ids: deps.ids,
  });
  lag.start();
  const stopJobs = startJobs(housekeeping(config, { ...deps, store, engine, metrics: book.metrics }), {
    ...deps,
    metrics: book.metrics,
  });

  const agent = localAgent((await store.accounts.first())?.id ?? "");

  return {
    config,
    firstKeys,
    firstKeysShown: () => forgetFirstKeys(store.facts),
    answerAgent: (request) =>
      request.headers.has("authorization") ? http.handle(request) : http.handleAs(agent, request),
    notices: [...config.warnings, ...encryptedStore.warnings, describePolicy(policy), signUpNotice],
    async stop() {
      draining.abort();
      await Promise.all([stopJobs(), http.stop(DRAIN_MS_MAX), engine.drain(DRAIN_MS_MAX)]);
      await metricsServer?.stop(true);
      lag.stop();
      await store.close();
    },
  };
}

interface Measured {
  readonly store: Store;
  readonly engine: Engine;
  readonly lag: LoopLag;
  readonly clock: Clock;
}

/** What the metrics ask for when somebody reads them; what costs the database a walk is asked for now and then only. */
function showReadings(book: MetricsBook, { store, engine, lag, clock }: Measured): void {
  const fresh = <Value>(read: () => Promise<Value>) => freshFor(COUNTS_FRESH_MS, () => clock.monotonicMs(), read);
  book.show({
    waiting: fresh(() => store.actions.waiting()),
    notifications: fresh(() => store.outbox.waiting()),
    oldestDueMs: fresh(async () => {
      const nowMs = clock.now().getTime();
      return Math.max(0, nowMs - ((await store.actions.firstDueAt())?.getTime() ?? nowMs));
    }),
    storePaused: () => store.isAway,
    deliveryPaused: () => engine.paused(),
    eventStreams: () => engine.feed.count(),
    build: { version: VERSION, bun: Bun.version },
    inFlight: () => engine.loop.inFlight,
    kept: () => engine.kept,
    loopLagMaxMs: () => lag.takeMaxMs(),
    residentBytes,
  });
}

/** Whoever has started the service has let it in. It has no key, and an agent's rights alone. */
function localAgent(accountId: string): Caller {
  return { accountId, keyId: null, keyName: "stdio", role: "agent", hold: "none", actor: "key:stdio" };
}

/** Where somebody has listened so far the doors go on, or else they open. */
async function listen(
  http: Http,
  engine: Engine,
  { host, port, listening }: Pick<Config, "host" | "port"> & { readonly listening: Server<unknown> | null },
): Promise<void> {
  try {
    if (listening === null) http.listen(port, host);
    else http.takeOver(listening);
  } catch (cause) {
    await engine.drain(0);
    throw new Error(
      `Port ${port} of ${host} can't be listened on: it is taken, not allowed, or HOST is no address of this machine.`,
      { cause },
    );
  }
}

/** Null: METRICS_PORT is not set. */
async function openMetricsPort(
  { metricsPort, host }: Pick<Config, "metricsPort" | "host">,
  http: Http,
  engine: Engine,
  deps: MetricsPortDeps,
): Promise<Server<unknown> | null> {
  if (metricsPort === null) return null;
  try {
    return listenForMetrics(metricsPort, host, deps);
  } catch (cause) {
    await Promise.all([http.stop(0), engine.drain(0)]);
    throw new Error(`METRICS_PORT ${metricsPort} of ${host} can't be listened on: it is taken or not allowed.`, {
      cause,
    });
  }
}

/** Found beforehand, because the guard that keeps actions off our own doors has to know the port. */
async function freePort(host: string): Promise<number> {
  const server = Bun.serve({ port: 0, hostname: host, fetch: () => new Response() });
  const { port } = server;
  await server.stop(true);
  return port ?? 0;
}

/** What the doors open on: every room below them, built. */
interface HttpServiceParts {
  readonly config: Config;
  readonly policy: TargetPolicy;
  readonly encryptedStore: EncryptedStore;
  readonly engine: Engine;
  readonly book: MetricsBook;
  readonly signUpGate: SignUpGate;
  /** Aborted when the service stops: whoever waits is answered. */
  readonly draining: AbortSignal;
}

interface HttpServiceDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** Whether a text is METRICS_TOKEN, in constant time; null: it is not set. */
function metricsTokenCheck(token: string | null, secrets: Pick<Secrets, "hash" | "isOfHash">) {
  if (token === null) return null;
  const hash = secrets.hash(token);
  return (text: string) => secrets.isOfHash(text, hash);
}

/** Builds the HTTP door with all its routes; `listen` opens it. */
function createHttpService(parts: HttpServiceParts, deps: HttpServiceDeps): Http {
  const { config, policy, engine, book, signUpGate, draining } = parts;
  const { store, secrets } = parts.encryptedStore;
  const { accounts } = store;
  const { pauseService, isStopped } = engine;
  const authenticate = createAuthenticate({ accounts, isStopped, secrets, clock: deps.clock });
  return createHttp({
    ...deps,
    actionService: engine.actionService,
    pauseOf: engine.pauseOf,
    pauseService,
    isStopped,
    signUpGate,
    auditService: createAuditService(store.audit, deps.clock),
    feed: engine.feed,
    overviewService: engine.overview,
    authenticate,
    secrets,
    keyService: createKeyService({ ...deps, accounts, secrets, pauseService, signUpGate, forget: authenticate.forget }),
    peopleService: peopleServiceOf(parts, deps),
    readAccount: createReadAccount(store.people),
    targets: createTargets(policy),
    guides: GUIDES,
    rulesFor: createRulesFor({ config, policy, accounts }),
    listNotifications: createListNotifications(store.outbox),
    baseUrl: config.baseUrl,
    isOnLoopback: config.isOnLoopback,
    pagesGuard: createOwnHostPages({ isOnLoopback: config.isOnLoopback, isLoopback: isLoopbackUrl }),
    isTrustedProxy: trustedProxiesOf(config.trustedProxies),
    port: config.port,
    metrics: book.metrics,
    receiptUrl: engine.receiptUrl,
    receiptPath: engine.receiptPath,
    limits: {
      rateLimitPerSecond: config.rateLimitPerSecond ?? 0,
      mcpSessionsPerAccount: config.mcpSessionsPerAccount,
    },
    draining,
    signingService: createSigningService({ ...deps, ...store, ...engine, secrets }),
    callbackHosts: createCallbackHostService({ ...deps, ...store }),
    approvalLinks: config.approvalLinks,
    followLink: createFollowLink({ ...deps, ...store, ...engine, secrets }),
    readReceipt: createReadReceipt({ actions: store.actions, secrets }),
    probe: () => store.probe(),
    renderMetrics: () => book.render(),
    isMetricsToken: metricsTokenCheck(config.metricsToken, secrets),
    hasMetrics: config.metricsPort === null,
    version: VERSION,
    routes: mcpRoutes(createAgents(parts, deps)),
  });
}

function peopleServiceOf({ signUpGate, encryptedStore }: HttpServiceParts, deps: HttpServiceDeps) {
  const { store, secrets } = encryptedStore;
  const { people, audit } = store;
  return createPeopleService({
    ...deps,
    people,
    audit,
    passwords: createPasswords(),
    secrets,
    signUpGate,
  });
}

interface AgentParts {
  readonly config: Config;
  readonly policy: TargetPolicy;
  readonly encryptedStore: EncryptedStore;
  readonly engine: Engine;
  readonly book: Pick<MetricsBook, "metrics">;
  /** Aborted when the service stops: whoever waits is answered. */
  readonly draining: AbortSignal;
}

interface AgentDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** What /mcp opens on: the desk of REST, under the same rules, and who may knock there at all. */
function createAgents(
  { config, policy, encryptedStore, engine, book, draining }: AgentParts,
  deps: AgentDeps,
): McpRouteDeps {
  const targets = createTargets(policy);
  const agentDeps = {
    ...deps,
    actionService: engine.actionService,
    bus: engine.bus,
    secrets: encryptedStore.secrets,
    checkTarget: (url: string) => targets.checkTarget(url),
    show: createShow(deps.clock, engine.receiptUrl, engine.pauseOf),
    pauseOf: engine.pauseOf,
    agentApproval: config.agentApproval,
    baseUrl: config.baseUrl,
    version: VERSION,
    draining,
    sessionsPerAccount: config.mcpSessionsPerAccount,
    metrics: book.metrics,
  };
  return {
    guard: guardOf(config),
    answerAgent: createAgentHandler((exchangeOf) => createAgentServer(agentDeps, exchangeOf), agentDeps),
  };
}

/** Where we listen for others and nobody has said under which name, any name may be ours. */
function guardOf({ baseUrl, isBaseUrlSet, host }: Config): Guard {
  return createOwnHostOnly({
    ownHostname: isBaseUrlSet ? new URL(baseUrl).hostname : null,
    takesAnyHost: !isBaseUrlSet && !isLoopbackAddress(host),
    isLoopback: isLoopbackUrl,
  });
}
