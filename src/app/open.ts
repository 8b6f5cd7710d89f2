import type { Server } from "bun";
import { forgetFirstKeys } from "../accounts/bootstrap.ts";
import { type Config, serverSettings } from "../config/config.ts";
import { databasePlace } from "../config/values.ts";
import { describeTargetPolicy, publicPolicy, type TargetPolicy } from "../config/target-policy.ts";
import { createBus } from "../core/bus.ts";
import { catchTimerErrors } from "../core/clock.ts";
import { DRAIN_MS_MAX, SHARED_READ_EVERY_MS } from "../core/limits.ts";
import type { Caller } from "../core/roles.ts";
import type { StoreUnavailable } from "../core/store.ts";
import { createPasswords } from "../crypto/passwords.ts";
import { listenForMetrics } from "../http/server.ts";
import { createMailer } from "../mail/mailer.ts";
import { errorName } from "../observability/log.ts";
import { Metrics, reportSetAside } from "../observability/metrics.ts";
import { LoopLag } from "../observability/runtime.ts";
import type { Sender } from "../outbound/sender.ts";
import { createSender } from "../outbound/send.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { keepFresh, startJobs } from "../runtime/jobs.ts";
import { differingSettings } from "../runtime/node.ts";
import { Outage, repeatWhileAway } from "../runtime/store-away.ts";
import { type Opened, openForService, type OpeningDeps } from "./encrypted-store.ts";
import { firstKeysNotice } from "./first-keys.ts";
import { addGauges } from "./gauges.ts";
import { housekeeping, sharedReads } from "./housekeeping.ts";
import { agentRoutes, createHttp, httpSettings } from "./http.ts";
import { createServices, type Services } from "../services/services.ts";
import { explainPortErrors, type StartServer } from "../http/listen.ts";

export interface AppDeps extends Omit<OpeningDeps, "nodeId" | "onWaiting" | "onAway" | "onUnreadable"> {
  /** Aborted when the service stops, also while it starts. */
  readonly stopping: AbortSignal;
  /** Wraps or replaces the sender that makes the calls. */
  readonly divert: (sender: Sender) => Sender;
}

interface StartParts extends Pick<OpeningDeps, "nodeId" | "onWaiting"> {
  readonly config: Config;
  readonly policy: TargetPolicy;
  readonly startServer: StartServer;
}

/** The service as it runs. */
export type App = Awaited<ReturnType<typeof openServices>>;

/** Tries once to open the service. If it rejects, everything that it opened is closed. */
export async function openApp(parts: StartParts, deps: AppDeps): Promise<App> {
  const outage = new Outage(deps.clock, deps.log, databasePlace(parts.config.database));
  const metrics = new Metrics();
  const opened = await openForService(parts.config, {
    ...deps,
    ...parts,
    onAway: (error: StoreUnavailable) => outage.begin(error),
    onUnreadable: (of, { id, message: error }) => reportSetAside({ log: deps.log, metrics }, of, id, { error }),
  });
  try {
    return await openServices(opened, parts, outage, metrics, deps);
  } catch (error) {
    outage.stop();
    await opened.node?.stop();
    await opened.encryptedStore.store.close();
    throw error;
  }
}

/** Makes every part in the order of their dependencies, then begins to deliver and to serve. */
async function openServices(
  { encryptedStore, warnings, node, firstKeys }: Opened,
  { config, policy, startServer }: StartParts,
  outage: Outage,
  metrics: Metrics,
  given: AppDeps,
) {
  const { store, secrets } = encryptedStore;
  const draining = new AbortController();
  const clock = catchTimerErrors(node?.clock ?? given.clock, (error) => {
    metrics.taskFailed("timer");
    given.log.error("timer.failed", { error: errorName(error) });
  });
  const app: AppContext = { clock, ids: given.ids, log: given.log, metrics, config, store, bus: createBus() };

  const lag = new LoopLag(clock);
  const mailer = await createMailer(config, clock);
  const sender = createSender(policy, { clock, keepsConnections: config.keepsConnections });
  const publicSender = createSender(publicPolicy());
  const passwords = createPasswords();
  const services = createServices(app, {
    secrets,
    passwords,
    sender: given.divert(sender),
    publicSender: given.divert(publicSender),
    mailer,
    policy,
    node,
  });
  const { delivery, feed, bulkRunner } = services;
  const countNodes = () => node?.membership.nodes.length ?? 1;
  const settings = httpSettings(app, secrets, draining.signal, countNodes);
  const http = createHttp(services, settings, [agentRoutes(app, services, draining.signal)]);

  addGauges(metrics, { store, delivery, feed, countNodes, lag, clock });
  // The agent at standard input has no key; it may do what an agent of the first account may.
  const accountId = (await store.accounts.first())?.id ?? "";
  const agent: Caller = { accountId, keyId: null, keyName: "stdio", role: "agent", hold: "none", actor: "key:stdio" };
  outage.watch(() => store.probe());
  // Join before claiming anything, so that the other nodes share the slots of each host with this one.
  await node?.membership.start();
  // While the store is away, there is nothing to compare.
  const differing = node && (await differingSettings(store.facts, serverSettings(config)).catch(() => null));
  const begun = await beginDelivery(services, { ...given, clock });
  const { host, metricsPort } = config;
  let metricsServer: Server<unknown> | null = null;
  try {
    explainPortErrors({ setting: "PORT", port: config.port, host }, () => http.serveOn(startServer, host));
    if (metricsPort !== null) {
      const place = { setting: "METRICS_PORT", port: metricsPort, host } as const;
      metricsServer = explainPortErrors(place, () => listenForMetrics(metricsPort, host, settings));
    }
  } catch (error) {
    await Promise.all([http.stop(0), services.drain(0)]);
    throw error;
  }
  lag.start();
  const stopJobs = startJobs(housekeeping(app, services), app, node?.jobs);
  const stopReads = node === null ? null : keepFresh(SHARED_READ_EVERY_MS, sharedReads(services), app);

  const keysNotice = firstKeysNotice(config.database);
  return {
    /** With the actual port. */
    config,
    /** The name of this process among those on the same database; null: it is the only one. */
    nodeId: node?.id ?? null,
    /** Null: they have been shown already, or another node shows them. */
    firstKeys,
    /** Call this after showing them, so that no later start shows them again. */
    forgetFirstKeys: () => forgetFirstKeys(store.facts),
    /** Answers an MCP request of the agent at standard input, which needs no key. */
    answerAgent: (request: Request) =>
      request.headers.has("authorization") ? http.handle(request) : http.handleAs(agent, request),
    answerAs: (caller: Caller, request: Request) => http.handleAs(caller, request),
    /** What the operator should change. */
    warnings: [...config.warnings, ...warnings, ...(countNodes() > 1 ? (differing ?? []) : [])],
    /** What the operator should know. */
    notices: [describeTargetPolicy(policy), ...begun.notices, ...(keysNotice === null ? [] : [keysNotice])],
    /**
     * Stops claiming, answers waiting requests, finishes or interrupts attempts, and closes the store. Ends within
     * `DRAIN_MS_MAX` and a second.
     */
    async stop() {
      draining.abort();
      // Delivery that begins only after the drain would not be stopped.
      const drain = async () => (await begun.isOver, services.drain(DRAIN_MS_MAX));
      await Promise.all([stopJobs(), bulkRunner.stop(), stopReads?.(), http.stop(DRAIN_MS_MAX), drain()]);
      sender.close();
      publicSender.close();
      await metricsServer?.stop(true);
      lag.stop();
      outage.stop();
      await node?.stop();
      await store.close();
    },
  };
}

/**
 * Stops the accounts that may no longer send, then begins to deliver, which ends the attempts of a process that died. If the
 * store can't be written, such as on a full disk, this resolves at once, reads are served, and delivery begins when writes
 * work again. `isOver` settles when delivery has begun or never will.
 */
async function beginDelivery({ signUpGate, start }: Services, deps: AppDeps) {
  const { promise: isAway, resolve: onAway } = Promise.withResolvers<null>();
  const begin = async () => {
    // Before anything is claimed, so that no action of a stopped account is sent.
    const notice = await signUpGate.enforce();
    await start();
    return notice;
  };
  const begun = repeatWhileAway(begin, deps, () => onAway(null));
  const notice = await Promise.race([begun, isAway]);
  if (notice !== null) return { notices: [notice], isOver: begun };
  // Any error other than an outage rejects and ends the process, as in a start without an outage.
  const isOver = begun.then((late) => late !== null && deps.log.info("service.notice", { message: late }));
  return { notices: [], isOver };
}
