import type { Server } from "bun";
import { type FirstKeys, forgetFirstKeys } from "./accounts/bootstrap.ts";
import { createSignUpGate } from "./accounts/sign-up-gate.ts";
import { survivingClock } from "./clock.ts";
import { type Config, listeningOn } from "./config.ts";
import type { Caller } from "./domain/caller.ts";
import { COUNTS_FRESH_MS, DRAIN_MS_MAX } from "./domain/limits.ts";
import { createHttpService, metricsTokenCheck } from "./doors.ts";
import { createEngine, type Engine } from "./engine.ts";
import { listenForMetrics, type MetricsPortDeps } from "./http/metrics.ts";
import type { Http } from "./http/server.ts";
import { mailerOf } from "./mailer.ts";
import { freshFor } from "./metrics/fresh.ts";
import { createMetrics, type MetricsBook } from "./metrics/metrics.ts";
import { LoopLag, residentBytes } from "./metrics/runtime.ts";
import { describePolicy, type TargetPolicy } from "./outbound/policy.ts";
import { createSender } from "./outbound/send.ts";
import { housekeeping } from "./housekeeping.ts";
import { type Opened, openStoreWithRetry, type OpeningDeps } from "./opening.ts";
import { policyOf } from "./policy.ts";
import type { Clock } from "./ports/clock.ts";
import type { Store } from "./ports/store.ts";
import { startJobs } from "./schedule/bells.ts";
import { VERSION } from "./version.ts";

export type AppDeps = OpeningDeps;

/** The service, running. */
export interface App {
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
export async function startApp(settings: Config, deps: AppDeps): Promise<App> {
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
