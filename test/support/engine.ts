import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bootstrap, forgetFirstKeys } from "../../src/accounts/bootstrap.ts";
import { type Config, readConfig } from "../../src/config/config.ts";
import type { Action, ActionRequest, ActionStatus } from "../../src/core/action.ts";
import type { Caller } from "../../src/core/roles.ts";
import { DRAIN_WRITE_MS } from "../../src/core/limits.ts";
import type { AppContext } from "../../src/runtime/app-context.ts";
import { createBus } from "../../src/core/bus.ts";
import { createServices } from "../../src/services/services.ts";
import { createPasswords } from "../../src/crypto/passwords.ts";
import { systemIds, type Ids } from "../../src/core/ids.ts";
import { createMailer, type Mailer } from "../../src/mail/mailer.ts";
import type { Node } from "../../src/runtime/node.ts";
import { addKeptGauges } from "../../src/app/gauges.ts";
import { Metrics, reportSetAside } from "../../src/observability/metrics.ts";
import { createSender } from "../../src/outbound/send.ts";
import { parseTargetPolicy } from "../../src/config/target-policy.ts";
import type { Log, LogFields } from "../../src/observability/log.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import type { Store } from "../../src/core/store.ts";
import { keyFileFor, loadMasterKey } from "../../src/crypto/master-key.ts";
import { openEncryptedStore } from "../../src/app/encrypted-store.ts";
import { DATABASES } from "./folder.ts";
import { FakeClock } from "./clock.ts";
import { eventually } from "./eventually.ts";
import { aRequest } from "./factory.ts";
import { putEmptyDatabase } from "./store.ts";

export interface EngineOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: FakeClock;
  readonly sender?: Sender;
  /** In place of what the environment says. */
  readonly settings?: Partial<Config>;
  /** In place of the mailer that the environment gives. */
  readonly mailer?: Mailer;
  /** Stands between the engine and its store, to let a write fail at a chosen point. */
  readonly wrapStore?: (store: Store) => Store;
  readonly folder?: string;
  /** The engine is one of several nodes on its store: what it does then, and its clock in place of `clock`. */
  readonly node?: Node;
  /** False: nothing is dispatched until `engine.start()`. */
  readonly starts?: boolean;
}

/** What `openEngine` has opened. */
export type Engine = Awaited<ReturnType<typeof openEngine>>;

/** The whole engine on a real store in a folder of its own, with a clock that the test moves and jitter that is none. */
export async function openEngine(options: EngineOptions = {}) {
  const folder = options.folder ?? mkdtempSync(join(DATABASES, "outgate-"));
  const clock = options.clock ?? new FakeClock();
  const config: Config = { ...configOf(options.env, `${folder}/outgate.db`), ...options.settings };
  const ids: Ids = { ...systemIds, random: () => 0.5 };
  if (options.folder === undefined && options.env?.["DATABASE_URL"] === undefined) await beginMigrated(config);
  const lines: { level: string; event: string; fields: LogFields }[] = [];
  const [log, metrics] = [collect(lines), new Metrics()];
  const encryptedStore = await openEncryptedStore(config, {
    clock,
    ids,
    onFatal: (cause) => lines.push({ level: "error", event: String(cause), fields: {} }),
    onUnreadable: (of, { id, message: error }) => reportSetAside({ log, metrics }, of, id, { error }),
  });
  const store = options.wrapStore?.(encryptedStore.store) ?? encryptedStore.store;
  const { accounts, people, facts } = store;
  await bootstrap({ accounts, people, facts, secrets: encryptedStore.secrets, ids, clock, givenOwnerKey: null });
  await forgetFirstKeys(facts);
  const account = await accounts.first();
  const app: AppContext = {
    clock: options.node?.clock ?? clock,
    ids,
    log,
    metrics,
    config,
    store,
    bus: createBus(),
  };
  const mailer = options.mailer ?? (await createMailer(config, clock));
  const policy = loopbackPolicy();
  const services = createServices(app, {
    secrets: encryptedStore.secrets,
    // As everywhere, but for what it costs: the real cost has a test of its own.
    passwords: createPasswords({ memoryKib: 8, passes: 1 }),
    sender: options.sender ?? createSender(policy),
    publicSender: options.sender ?? createSender(policy),
    mailer,
    policy,
    node: options.node ?? null,
  });
  addKeptGauges(metrics, services.delivery);
  const engine = { ...services.delivery, ...services, bus: app.bus };
  if (options.starts !== false) await engine.start();
  const accountId = account?.id ?? "";
  // The first key of the account, so that what looks for the row of a key finds it.
  const ownerKey = (await accounts.keys(accountId, 1_000)).find(({ role }) => role === "owner");
  const owner: Caller = {
    accountId,
    keyId: ownerKey?.id ?? "key_owner",
    keyName: "owner",
    role: "owner",
    hold: "none",
    actor: "key:owner",
  };

  return {
    ...engine,
    app,
    policy,
    mailer,
    services,
    store,
    clock,
    folder,
    lines,
    owner,
    secrets: encryptedStore.secrets,
    /** The text of /metrics, but for what only a running process tells. */
    renderMetrics: () => metrics.render(),
    create: async (request: Partial<ActionRequest>): Promise<Action> =>
      (await engine.actionService.create(owner, requestFor(request))).action,
    get: (id: string): Promise<Action> => engine.actionService.get(owner, id),
    /** Resolves with the action as soon as it looks like this; what it is now counts. */
    saw: async (id: string, like: { status?: ActionStatus; attempts?: number; run?: number }): Promise<Action> => {
      const fits = (action: Action) =>
        Object.entries(like).every(([name, value]) => Reflect.get(action, name) === value);
      const { promise, resolve } = Promise.withResolvers<Action>();
      const unwatch = engine.bus.watch(id, (action) => fits(action) && resolve(action));
      const now = await engine.actionService.get(owner, id);
      const seen = fits(now) ? now : await promise;
      unwatch();
      return seen;
    },
    /** What the timeline tells of callbacks or mails, as soon as it tells of so many attempts. */
    told: (id: string, type: "callback" | "mail" | "message", count: number) =>
      eventually(async () => {
        const entries = await engine.actionService.timeline(owner, id);
        const told = entries.flatMap(({ event }) => (event.type === type ? [event] : []));
        return told.length >= count ? told : null;
      }, `${count} of ${type} in the timeline of ${id}`),
    events: async (id: string) => (await engine.actionService.timeline(owner, id)).map(({ event }) => event),
    /** As a kill would leave the files: nothing is drained or settled. */
    async abandon(): Promise<void> {
      await encryptedStore.store.close();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      const drained = engine.drain(1_000);
      clock.advance(1_000 + DRAIN_WRITE_MS);
      await drained;
      await encryptedStore.store.close();
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

const configs = new Map<string, Config>();

/** What an environment says, which is read once for all engines that have it. */
function configOf(env: EngineOptions["env"] = {}, path: string): Config {
  const name = JSON.stringify(env);
  const config = configs.get(name) ?? readConfig({ DATABASE_URL: "file:outgate.db", ...env });
  configs.set(name, config);
  return env["DATABASE_URL"] === undefined
    ? { ...config, database: { kind: "file", url: `file:${path}`, path } }
    : config;
}

/** For `wrapStore`: the store, with some methods of one of its parts in place of its own. */
export const wrapping =
  <Part extends keyof Store>(part: Part, own: (inner: Store[Part]) => Partial<Store[Part]>) =>
  (store: Store): Store => ({ ...store, [part]: { ...Object(store[part]), ...own(store[part]) } });

/** Saves the engine the migration. The database has a key of its own, as a new one has. */
async function beginMigrated({ database, secretKey }: Config): Promise<void> {
  if (database.kind !== "file") return;
  const keyFile = keyFileFor(database.path);
  loadMasterKey({ secretKey, keyFile, databaseExists: false, random: (count) => systemIds.bytes(count) });
  await putEmptyDatabase(database.path);
}

/** A request for a target on loopback, as the checks of a create would have made it. */
export function requestFor(request: Partial<ActionRequest>): ActionRequest {
  return aRequest({ url: "http://127.0.0.1:9/", body: null, ...request });
}

/** Calls may go to loopback, and to no other place that is not public. */
export function loopbackPolicy() {
  const policy = parseTargetPolicy({
    allowedPrivateTargets: [],
    loopbackAllowed: true,
    ownOrigins: ["http://127.0.0.1:1"],
  });
  if ("problems" in policy) throw new Error(policy.problems.join(" "));
  return policy;
}

function collect(lines: { level: string; event: string; fields: LogFields }[]): Log {
  const at = (level: string) => (event: string, fields?: LogFields) =>
    void lines.push({ level, event, fields: fields ?? {} });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
