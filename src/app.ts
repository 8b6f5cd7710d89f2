import { createHttp } from "./app/http.ts";
import { housekeeping } from "./app/housekeeping.ts";
import { createAuditService } from "./audit/service.ts";
import { isatty } from "node:tty";
import {
  type FirstKeys,
  firstKeysNotice,
  printFirstKeys,
  type StartOutput,
  forgetFirstKeys,
} from "./accounts/first-start.ts";
import { systemClock, catchTimerErrors, type Clock } from "./core/clock.ts";
import {
  type Config,
  createEffectiveSettings,
  policyOf,
  readConfig,
  RELEASE,
  releaseText,
  VERSION,
  listeningOn,
} from "./config/config.ts";
import { DRAIN_MS_MAX, SHARED_READ_EVERY_MS, START_STEP_STOP_MS } from "./core/limits.ts";
import { systemIds, type Ids } from "./core/ids.ts";
import { createLogText } from "./observability/log-text.ts";
import { startText } from "./observability/start-text.ts";
import { createPaint, type Paint } from "./observability/terminal.ts";
import { createLog, jsonLine, type LineLog, writerTo, type Log } from "./observability/log.ts";
import { StoreLost, type StoreUnavailable } from "./core/store.ts";
import type { Server } from "bun";
import { createServerSize } from "./accounts/server-size.ts";
import { createSignUpGate, type SignUpGate } from "./accounts/sign-up-gate.ts";
import type { Caller } from "./core/roles.ts";
import { createEngine, type Engine } from "./app/engine.ts";
import { type Http, listenForMetrics, type MetricsPortDeps, openStartServer } from "./http/server.ts";
import { createMailer, type Mailer } from "./mail/mailer.ts";
import { createOwnMailService } from "./accounts/own-mails.ts";
import { addGauges } from "./app/gauges.ts";
import { LoopLag } from "./observability/runtime.ts";
import { Metrics } from "./observability/metrics.ts";
import { checkTarget, describePolicy, providerPolicy, type TargetPolicy } from "./config/target-policy.ts";
import { createSender } from "./outbound/send.ts";
import type { Sender } from "./outbound/deadline.ts";
import { startJobs } from "./runtime/jobs.ts";
import { keepFresh } from "./runtime/keep-fresh.ts";
import { createWaitingLog, Outage, repeatWhileAway } from "./runtime/store-away.ts";
import { type Opened, openForService, type OpeningDeps, type EncryptedStore } from "./app/encrypted-store.ts";
import { createOidcThrottle } from "./accounts/throttle.ts";
import { createOidcProvider } from "./oidc/provider.ts";
import type { Oidc } from "./pages/oidc-routes.ts";
import { createOidcSignIn } from "./oidc/sign-in.ts";
import { OIDC_CALLBACK_PATH } from "./pages/sign-in.tsx";
import { createPeopleService } from "./accounts/people.ts";
import { createBulk } from "./bulk/bulk.ts";
import type { BulkService } from "./bulk/service.ts";
import { createTeamService } from "./accounts/team.ts";
import { createAuthenticate } from "./accounts/authenticate.ts";
import { createCallbackHostService } from "./accounts/callback-hosts.ts";
import { createKeyService } from "./accounts/keys.ts";
import { createFirstStepService } from "./accounts/first-steps.ts";
import { createVerifyService } from "./accounts/verify-signature.ts";
import { createSigningService } from "./accounts/signing-secrets.ts";
import { createFollowLink } from "./approvals/links.ts";
import { createListNotifications } from "./actions/service.ts";
import { createReadReceipt } from "./pages/receipt-routes.ts";
import { isLoopbackUrl, localUrl, placeOf, trustedProxiesOf, isLoopbackAddress } from "./config/values.ts";
import { createOwnHostPages, createOwnHostOnly, type Guard } from "./http/own-origin.ts";
import { mcpRoutes, type McpRouteDeps } from "./http/mcp-routes.ts";
import { GUIDE_GROUPS } from "./pages/docs/guides.ts";
import type { Secrets } from "./crypto/secrets.ts";
import { createPasswords } from "./crypto/passwords.ts";
import { createAgentHandler } from "../mcp/http.ts";
import { createAgentServer } from "../mcp/server.ts";

/** A stop may take the drain time and this much more; then the process exits anyway. */
const STOP_GRACE_MS = 1_000;

/** A second signal within this time is no second request: `timeout` and others forward a signal that the group got already. */
const SAME_SIGNAL_MS = 200;

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
  const { paint } = terminal;
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
  if (app.firstKeys !== null)
    await announceFirstKeys(app, app.firstKeys, {
      say,
      lineOf,
      paint,
      insteadOfKeys,
      isLogged: isLogged(env, outputFd),
    });
  return { app, stop };
}

/** How the output looks. */
interface Terminal {
  /** Text for people instead of lines of JSON. */
  readonly isText: boolean;
  readonly paint: Paint;
  readonly columns: () => number | undefined;
}

function terminalOf({ logFormat }: Config, env: Readonly<Record<string, string | undefined>>, fd: 1 | 2): Terminal {
  const isTty = isatty(fd);
  const stream = fd === 1 ? process.stdout : process.stderr;
  return {
    isText: logFormat === "text" || (logFormat === "auto" && isTty),
    paint: createPaint({ isTty, env }),
    // A terminal that doesn't know its width says 0.
    columns: () => (isTty && stream.columns > 0 ? stream.columns : undefined),
  };
}

interface Announced {
  readonly log: LineLog;
  readonly say: (text: string) => boolean;
  readonly terminal: Terminal;
}

/** Tells that the service runs, and what the operator should know. */
function announceStart(app: App, notices: readonly string[], { log, say, terminal }: Announced): void {
  const { config, nodeId } = app;
  const { baseUrl, metricsPort, host } = config;
  if (terminal.isText) {
    log.flush();
    const metricsUrl = metricsPort === null ? null : `${localUrl(host, metricsPort)}/metrics`;
    const facts = {
      version: releaseText(RELEASE),
      baseUrl,
      database: placeOf(config.database),
      nodeId,
      metricsUrl,
      notices,
    };
    const text = startText(facts, { paint: terminal.paint, columns: terminal.columns() ?? TEXT_COLUMNS });
    say(app.firstKeys === null ? `${text}\n` : text);
    return;
  }
  for (const notice of notices) log.info("service.notice", { message: notice });
  log.info("service.started", { ...RELEASE, url: baseUrl, node: nodeId ?? undefined });
  log.flush();
}

/** Where no terminal says its width. */
const TEXT_COLUMNS = 100;

interface Announcement extends StartOutput, Pick<ServeOptions, "insteadOfKeys"> {}

/** Shows the first keys. Keys that could not be shown are shown by the next start. */
async function announceFirstKeys(app: App, keys: FirstKeys, { insteadOfKeys, ...output }: Announcement): Promise<void> {
  if (insteadOfKeys !== undefined) {
    const text = insteadOfKeys(app.config);
    const message = text.trim().replaceAll("\n", " ");
    output.say(output.lineOf === null ? text : output.lineOf("info", "service.notice", { message }));
    return;
  }
  if (!printFirstKeys(app.config, keys, output)) return;
  // If the store is unavailable, the next start shows them again.
  await app.forgetFirstKeys().catch(() => {});
}

/** In production without a terminal, journald or a container stores the output. */
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

function refuseToStart(error: unknown, advice: string): never {
  writerTo(2)(`Outgate can't start. ${error instanceof Error ? error.message : String(error)}${advice}\n`);
  process.exit(1);
}

async function stopInOrder(starting: Promise<App | null>, stopping: AbortController, log: LineLog): Promise<void> {
  setTimeout(() => process.exit(1), DRAIN_MS_MAX + STOP_GRACE_MS).unref();
  stopping.abort();
  const { promise: stepTakesLong, resolve: giveUp } = Promise.withResolvers<null>();
  const timer = setTimeout(giveUp, START_STEP_STOP_MS, null);
  // What a step of the start leaves unfinished is as after a kill.
  const app = await Promise.race([starting, stepTakesLong]);
  clearTimeout(timer);
  await app?.stop();
  log.info("service.stopped");
  log.flush();
}

/** The first signal stops in order, a second one exits at once. */
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

interface AppDeps extends Omit<OpeningDeps, "nodeId" | "onWaiting" | "onAway">, Required<Pick<ServeOptions, "divert">> {
  /** Aborted when the service stops, also while it starts. */
  readonly stopping: AbortSignal;
}

interface App {
  /** The settings with the actual port. */
  readonly config: Config;
  /** The name of this process among those on the same database; null: it is the only one. */
  readonly nodeId: string | null;
  /** Null: they were shown, or another node shows them. */
  readonly firstKeys: FirstKeys | null;
  /** Call it when they were shown, so that no later start shows them. */
  forgetFirstKeys(): Promise<void>;
  /** Notices for the operator. */
  readonly notices: readonly string[];
  /**
   * Answers an MCP request of the agent at standard input. Without an `Authorization` header it acts as an agent of the first
   * account.
   */
  answerAgent(request: Request): Promise<Response>;
  /** Answers a request of the API for this caller. */
  answerAs(caller: Caller, request: Request): Promise<Response>;
  /**
   * Stops claiming, answers waiting requests, finishes or interrupts attempts, and closes the store. Ends within
   * `DRAIN_MS_MAX` and a second.
   */
  stop(): Promise<void>;
}

/**
 * Listens, then builds all modules and begins to serve. While the store is away it begins anew, every second. Null: it was
 * stopped before it served. Throws an error for the operator if settings, key or database can't be used.
 */
async function startApp(settings: Config, deps: AppDeps): Promise<App | null> {
  const listening = listenAtStart(settings, deps);
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

/** From the first moment on, so that probes see a process that lives, however long the database takes. */
function listenAtStart({ port, host }: Config, { ids }: AppDeps): Server<unknown> {
  try {
    return openStartServer(port, host, { ids, ...RELEASE });
  } catch (cause) {
    throw portTaken(port, host, cause);
  }
}

function portTaken(port: number, host: string, cause: unknown): Error {
  return new Error(
    `Port ${port} of ${host} can't be listened on: it is taken, not allowed, or HOST is no address of this machine.`,
    { cause },
  );
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
    return await openHttp({ ...opened, ...parts, outage }, deps);
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

async function openHttp(
  { config, policy, encryptedStore, node, firstKeys, listening, outage }: AppParts,
  given: AppDeps,
): Promise<App> {
  const { store, secrets } = encryptedStore;
  const [metrics, draining] = [new Metrics(), new AbortController()];
  const clock = catchTimerErrors(node?.clock ?? given.clock, (error) => {
    metrics.taskFailed("timer");
    given.log.error("timer.failed", { error: error instanceof Error ? error.name : "unknown" });
  });
  const deps: AppDeps = { ...given, clock };
  const lag = new LoopLag(clock);
  const mailer = await createMailer(config, clock);
  const sender = createSender(policy, { clock, keepsConnections: config.keepsConnections });
  const diverted = given.divert(sender);
  const engine = createEngine(config, { ...deps, store, secrets, sender: diverted, mailer, metrics, node });
  const { accounts } = store;
  const signUpGate = createSignUpGate({ ...deps, accounts, paused: engine.activePauses, signUps: config.signUps });
  const leases = node === null ? {} : { leases: node.jobs };
  const { bulkService, bulkRunner } = createBulk({ ...deps, ...leases, store, engine });
  const { http, reads } = createHttpService(
    { config, policy, encryptedStore, engine, mailer, metrics, signUpGate, bulkService, draining: draining.signal },
    deps,
  );

  addGauges(metrics, { store, engine, countNodes: () => node?.membership.nodes.length ?? 1, lag, clock });
  const agent = localAgent((await store.accounts.first())?.id ?? "");
  outage.watch(() => store.probe());
  // Before it claims, so that the others share with it what targets may get at a time.
  await node?.membership.start();
  const delivery = await beginDelivery(signUpGate, engine, deps);
  await serveOn(listening, http, engine, config);
  const metricsServer = await openMetricsPort(config, http, engine, {
    renderMetrics: () => metrics.render(),
    isMetricsToken: metricsTokenCheck(config.metricsToken, secrets),
    ids: deps.ids,
  });
  lag.start();
  const jobs = housekeeping(config, { ...deps, store, engine, metrics, bulkRunner });
  const stopJobs = startJobs(jobs, { ...deps, metrics, ...leases });
  const stopReads = node === null ? null : readWhatOthersChange(engine, reads, { ...deps, metrics });

  return {
    config,
    nodeId: node?.id ?? null,
    firstKeys,
    forgetFirstKeys: () => forgetFirstKeys(store.facts),
    answerAgent: (request) =>
      request.headers.has("authorization") ? http.handle(request) : http.handleAs(agent, request),
    answerAs: (caller, request) => http.handleAs(caller, request),
    notices: [...config.warnings, ...encryptedStore.warnings, describePolicy(policy), ...delivery.notices],
    async stop() {
      draining.abort();
      const limitMs = DRAIN_MS_MAX;
      // What begins while it drains would go on.
      const drain = async () => (await delivery.begun, engine.drain(limitMs));
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

/** Of several nodes on one database. */
function readWhatOthersChange(
  { activePauses, knownHosts, knownChannels }: Engine,
  reads: HttpService["reads"],
  deps: Parameters<typeof keepFresh>[2],
) {
  const ofEngine = {
    pauses: () => activePauses.load(),
    hosts: () => knownHosts.reload(),
    channels: () => knownChannels.reload(),
  };
  return keepFresh(SHARED_READ_EVERY_MS, { ...reads, ...ofEngine }, deps);
}

/** The agent at standard input: it has no key, and the rights of an agent. */
function localAgent(accountId: string): Caller {
  return { accountId, keyId: null, keyName: "stdio", role: "agent", hold: "none", actor: "key:stdio" };
}

interface Delivery {
  /** For the operator. */
  readonly notices: readonly string[];
  /** Settles when delivery has begun, or will not begin any more. */
  readonly begun: Promise<unknown>;
}

/**
 * Stops the accounts that may not send any more, then begins to deliver, which ends the attempts of a process that died. Where
 * the store can't be written, as on a full disk, it resolves at once and begins when the store can: what can be read is served
 * meanwhile.
 */
async function beginDelivery(signUpGate: SignUpGate, engine: Engine, deps: AppDeps): Promise<Delivery> {
  const { promise: isAway, resolve: onAway } = Promise.withResolvers<null>();
  const begin = async () => {
    // Before anything is claimed, so that no action of a stopped account is sent.
    const notice = await signUpGate.enforce();
    await engine.start();
    return notice;
  };
  const begun = repeatWhileAway(begin, { ...deps, onAway: () => onAway(null) });
  const notice = await Promise.race([begun, isAway]);
  if (notice !== null) return { notices: [notice], begun };
  // An error that is no outage ends the process, as it does where nothing is away.
  const told = begun.then((late) => late !== null && deps.log.info("service.notice", { message: late }));
  return { notices: [], begun: told };
}

/** Takes over the server that has answered 503 so far. */
async function serveOn(listening: Server<unknown>, http: Http, engine: Engine, config: Config): Promise<void> {
  try {
    http.serveOn(listening, config.host);
  } catch (cause) {
    await engine.drain(0);
    throw portTaken(config.port, config.host, cause);
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

interface HttpServiceParts {
  readonly config: Config;
  readonly policy: TargetPolicy;
  readonly encryptedStore: EncryptedStore;
  readonly engine: Engine;
  /** Null: no mail provider is configured. */
  readonly mailer: Mailer | null;
  readonly metrics: Metrics;
  readonly signUpGate: SignUpGate;
  readonly bulkService: BulkService;
  /** Aborted when the service stops, so that waiting requests are answered. */
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

interface HttpService {
  readonly http: Http;
  /** What to read every few seconds if other processes use the same database. */
  readonly reads: Readonly<Record<string, () => Promise<unknown>>>;
}

/** Builds the HTTP server with all its routes; it does not listen yet. */
function createHttpService(parts: HttpServiceParts, deps: HttpServiceDeps): HttpService {
  const { config, policy, engine, metrics, signUpGate, bulkService, draining } = parts;
  const { store, secrets } = parts.encryptedStore;
  const { accounts } = store;
  const { pauseService, isStopped } = engine;
  const authenticate = createAuthenticate({ accounts, isStopped, secrets, clock: deps.clock });
  const people = peopleServicesOf(parts, deps);
  const http = createHttp({
    ...deps,
    actionService: engine.actionService,
    pauseOf: engine.pauseOf,
    pauseService,
    hostService: engine.hostService,
    channelService: engine.createChannels((url) => checkTarget(policy, url)),
    callbackTests: engine.createCallbackTests((url) => checkTarget(policy, url)),
    isStopped,
    signUpGate,
    auditService: createAuditService(store.audit, deps.clock),
    bulkService,
    feed: engine.feed,
    overviewService: engine.overview,
    firstSteps: createFirstStepService({ ...deps, ...store }),
    authenticate,
    secrets,
    keyService: createKeyService({ ...deps, ...store, secrets, pauseService, signUpGate, forget: authenticate.forget }),
    ...people,
    checkTarget: (url) => checkTarget(policy, url),
    guides: GUIDE_GROUPS,
    rulesFor: createEffectiveSettings(config, policy, accounts),
    readSize: createServerSize({ ...deps, ...config, file: store.file, isOperator: signUpGate.isOperator }),
    listNotifications: createListNotifications(store.outbox),
    baseUrl: config.baseUrl,
    pagesGuard: createOwnHostPages({ ...config, isLoopback: isLoopbackUrl }),
    isTrustedProxy: trustedProxiesOf(config.trustedProxies),
    metrics,
    receiptUrl: engine.receiptUrl,
    receiptPath: engine.receiptPath,
    limits: {
      rateLimitPerSecond: config.rateLimitPerSecond ?? 0,
      mcpSessionsPerAccount: config.mcpSessionsPerAccount,
    },
    draining,
    signingService: createSigningService({ ...deps, ...store, ...engine, secrets }),
    verifyService: createVerifyService({ ...deps, ...store, ...engine }),
    callbackHosts: createCallbackHostService({ ...deps, ...store }),
    approvalLinks: config.approvalLinks,
    followLink: createFollowLink({ ...deps, ...store, ...engine, secrets }),
    readReceipt: createReadReceipt({ actions: store.actions, secrets }),
    probe: () => store.probe(),
    renderMetrics: () => metrics.render(),
    isMetricsToken: metricsTokenCheck(config.metricsToken, secrets),
    hasMetrics: config.metricsPort === null,
    ...RELEASE,
    mcpGuard: guardOf(config),
    routes: [mcpRoutes(createAgents(parts, deps))],
  });
  return { http, reads: { keys: authenticate.recheck, sessions: people.peopleService.recheckSessions } };
}

/** What people use to get in, and who they are. */
function peopleServicesOf(parts: HttpServiceParts, deps: HttpServiceDeps) {
  const { config, engine, encryptedStore } = parts;
  const { store, secrets } = encryptedStore;
  const peopleService = peopleServiceOf(parts, deps);
  const teamService = createTeamService({
    ...deps,
    ...store,
    peopleService,
    secrets,
    baseUrl: config.baseUrl,
    onMail: config.mail === null ? null : engine.mailWaits,
  });
  const ownMails = createOwnMailService({ ...deps, ...store, mailer: parts.mailer, secrets, baseUrl: config.baseUrl });
  return { peopleService, teamService, ownMails, oidc: createOidc(parts, deps, { peopleService, teamService }) };
}

/** Null: no identity provider is configured. */
function createOidc(
  { config, encryptedStore }: HttpServiceParts,
  { clock }: HttpServiceDeps,
  services: Pick<Parameters<typeof createOidcSignIn>[0], "peopleService" | "teamService">,
): Oidc | null {
  const { oidc: settings, baseUrl, allowedPrivateTargets } = config;
  if (settings === null) return null;
  const { store, secrets } = encryptedStore;
  const sender = createSender(providerPolicy(settings.issuer, "OIDC_ISSUER", allowedPrivateTargets));
  const redirectUri = baseUrl + OIDC_CALLBACK_PATH;
  return {
    provider: createOidcProvider(settings, { sender, clock, redirectUri }),
    signIn: createOidcSignIn({ ...store, ...services, secrets, clock, allowedDomains: settings.allowedDomains }),
    throttle: createOidcThrottle(clock),
    name: new URL(settings.issuer).host,
  };
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
  readonly metrics: Metrics;
  /** Aborted when the service stops: whoever waits is answered. */
  readonly draining: AbortSignal;
}

interface AgentDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** Builds the MCP routes, with the same services as REST. */
function createAgents(
  { config, policy, encryptedStore, engine, metrics, draining }: AgentParts,
  deps: AgentDeps,
): McpRouteDeps {
  const agentDeps = {
    ...deps,
    actionService: engine.actionService,
    bus: engine.bus,
    secrets: encryptedStore.secrets,
    checkTarget: (url: string) => checkTarget(policy, url),
    receiptUrl: engine.receiptUrl,
    pauseOf: engine.pauseOf,
    agentApproval: config.agentApproval,
    baseUrl: config.baseUrl,
    version: VERSION,
    draining,
    sessionsPerAccount: config.mcpSessionsPerAccount,
    hasOtherNodes: encryptedStore.store.cluster !== null,
    metrics,
  };
  return {
    answerAgent: createAgentHandler(createAgentServer(agentDeps), agentDeps),
  };
}

/** Checks `Host` and `Origin` of /mcp. Any host is allowed if the service is public and BASE_URL is not set. */
function guardOf({ baseUrl, isBaseUrlSet, host }: Config): Guard {
  return createOwnHostOnly({
    ownHostname: isBaseUrlSet ? new URL(baseUrl).hostname : null,
    takesAnyHost: !isBaseUrlSet && !isLoopbackAddress(host),
    isLoopback: isLoopbackUrl,
  });
}
