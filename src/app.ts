import type { Server } from "bun";
import type { FirstKeys } from "./accounts/bootstrap.ts";
import { type Config, listeningOn } from "./config.ts";
import type { Caller } from "./domain/caller.ts";
import { DRAIN_MS_MAX } from "./domain/limits.ts";
import { createDoors } from "./doors.ts";
import { createEngine, type Engine } from "./engine.ts";
import type { Http } from "./http/server.ts";
import { mailerOf } from "./mailer.ts";
import { createMetrics } from "./metrics/metrics.ts";
import { LoopLag, residentBytes } from "./metrics/runtime.ts";
import { describePolicy, type TargetPolicy } from "./outbound/policy.ts";
import { createSender } from "./outbound/send.ts";
import { housekeeping } from "./housekeeping.ts";
import { type Opened, openPatiently, type OpeningDeps } from "./opening.ts";
import { policyOf } from "./policy.ts";
import { hangBells } from "./schedule/bells.ts";

export type AppDeps = OpeningDeps;

/** The service, running. */
export interface App {
  /** The settings with the port that is listened on. */
  readonly config: Config;
  /** Only after the very first start. */
  readonly firstKeys: FirstKeys | null;
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
  const opened = await openPatiently(config, deps);
  try {
    return await openDoors({ ...opened, config, policy }, deps);
  } catch (error) {
    await opened.listening?.stop(true);
    await opened.vault.store.close();
    throw error;
  }
}

interface Ground extends Opened {
  readonly config: Config;
  readonly policy: TargetPolicy;
}

async function openDoors({ config, policy, vault, firstKeys, listening }: Ground, deps: AppDeps): Promise<App> {
  const { clock } = deps;
  const { store, secrets } = vault;
  const book = createMetrics();
  const lag = new LoopLag(clock);
  const draining = new AbortController();
  const mailer = await mailerOf(config, clock);
  const sender = createSender(policy);
  const engine = createEngine(config, { ...deps, store, secrets, sender, mailer, metrics: book.metrics });
  const http = createDoors({ config, policy, vault, engine, book, draining: draining.signal }, deps);

  book.show({ waiting: () => store.actions.waiting(), owed: () => store.outbox.waiting() });
  book.show({ inFlight: () => engine.loop.inFlight });
  book.show({ loopLagMaxMs: () => lag.takeMaxMs(), residentBytes });
  // What a dead process left behind is ended before the doors open.
  await engine.start();
  await listen(http, engine, { ...config, listening });
  lag.start();
  const takeBellsDown = hangBells(housekeeping(config, { ...deps, store, engine, metrics: book.metrics }), deps);

  const agent = localAgent((await store.accounts.first())?.id ?? "");

  return {
    config,
    firstKeys,
    answerAgent: (request) =>
      request.headers.has("authorization") ? http.handle(request) : http.handleAs(agent, request),
    notices: [...config.warnings, ...vault.warnings, describePolicy(policy)],
    async stop() {
      draining.abort();
      await Promise.all([takeBellsDown(), http.stop(DRAIN_MS_MAX), engine.drain(DRAIN_MS_MAX)]);
      lag.stop();
      await store.close();
    },
  };
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

/** Found beforehand, because the guard that keeps actions off our own doors has to know the port. */
async function freePort(host: string): Promise<number> {
  const server = Bun.serve({ port: 0, hostname: host, fetch: () => new Response() });
  const { port } = server;
  await server.stop(true);
  return port ?? 0;
}
