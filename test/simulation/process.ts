import { createStore } from "../../db/sql/store.ts";
import { createServices, type Services } from "../../src/services/services.ts";
import { type Config, readConfig } from "../../src/config/config.ts";
import { parseTargetPolicy } from "../../src/config/target-policy.ts";
import { createBus } from "../../src/core/bus.ts";
import type { Clock } from "../../src/core/clock.ts";
import { KEEP_ALIVE_MS, MINUTE_MS, SHARED_READ_EVERY_MS } from "../../src/core/limits.ts";
import { type ClusterStore, type Store, StoreUnavailable } from "../../src/core/store.ts";
import { createPasswords } from "../../src/crypto/passwords.ts";
import type { Log } from "../../src/observability/log.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import { keepFresh } from "../../src/runtime/jobs.ts";
import { createNode, type Node } from "../../src/runtime/node.ts";
import { connect, reachCluster, type Way } from "./connection.ts";
import { seededIds } from "./random.ts";
import type { World } from "./world.ts";

const CONFIG: Config = {
  ...readConfig({ DATABASE_URL: "file:simulated.db", BASE_URL: "http://outgate.test" }),
  attemptTimeoutMs: 8_000,
  retryBaseMs: 500,
  retryCapMs: 4_000,
};

const POLICY = policyOf();

interface ProcessParts {
  readonly world: World;
  /** The machine and how many processes it has had: "A2". */
  readonly name: string;
  readonly way: Way;
  readonly sender: (process: Process) => Sender;
  readonly cluster: ClusterStore | null;
  /** Called when it has died or stopped. */
  readonly onEnd: () => void;
}

/**
 * One process of the service: the real services and store, with a clock, a connection and a sender that end with it. Whatever
 * reaches it or leaves it goes through `wake`, so that a dead process does nothing more and a frozen one does it later.
 */
export class Process {
  readonly name: string;
  readonly #parts: ProcessParts;
  readonly #world: World;
  #isDead = false;
  /** What waits for the process to go on; null: it runs. */
  #waiting: (() => void)[] | null = null;
  /** Null until it serves. */
  #services: Services | null = null;
  #store: Store | null = null;
  #node: Node | null = null;
  #stopJobs: () => Promise<void> = async () => {};

  constructor(parts: ProcessParts) {
    this.#parts = parts;
    this.#world = parts.world;
    this.name = parts.name;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  get isServing(): boolean {
    return this.#services !== null && !this.#isDead;
  }

  get isFrozen(): boolean {
    return this.#waiting !== null;
  }

  readonly clock: Clock = {
    now: () => this.#world.clock.now(),
    monotonicMs: () => this.#world.nowMs,
    after: (delayMs, run) => {
      if (this.#isDead) return () => {};
      this.#world.stir();
      let isCancelled = false;
      const cancel = this.#world.clock.after(Math.max(0, delayMs), () =>
        this.wake(() => {
          if (!isCancelled) run();
        }),
      );
      return () => {
        isCancelled = true;
        cancel();
      };
    },
  };

  /** Runs this as soon as the process runs, and never if it is dead. */
  wake(run: () => void): void {
    this.#world.stir();
    if (this.#isDead) return;
    if (this.#waiting === null) run();
    else this.#waiting.push(run);
  }

  kill(why: string): void {
    if (this.#isDead) return;
    this.#isDead = true;
    this.#waiting = null;
    this.#world.tell(this.name, `ends: ${why}`);
    this.#parts.onEnd();
  }

  freeze(): void {
    if (this.#isDead || this.isFrozen) return;
    this.#waiting = [];
    this.#world.tell(this.name, "stands still");
  }

  thaw(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    if (this.#isDead || waiting === null) return;
    this.#world.tell(this.name, "goes on");
    for (const run of waiting) this.wake(run);
  }

  /** Starts the process. While the database is away it ends, and another one tries. */
  async begin(): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.kill("it can't start");
    }
  }

  /** Opens the store and begins to deliver, as `app.ts` does. */
  async #start(): Promise<void> {
    const { world, way } = this.#parts;
    const ends = { world, process: this, way };
    const cluster = this.#parts.cluster && reachCluster(ends, this.#parts.cluster);
    const ids = seededIds(world.random.fork());
    const store = createStore({
      connection: connect(ends, cluster !== null),
      seal: world.secrets,
      cluster,
      isOnlyProcess: cluster === null,
      onFatal: () => this.kill("a commit could not be made durable"),
      clock: this.clock,
    });
    const log = this.#log();
    this.#node =
      cluster === null ? null : await createNode(ids.node(), cluster, { clock: this.clock, log }, async () => {});
    const metrics = new Metrics();
    const clock = this.#node?.clock ?? this.clock;
    const app = { clock, ids, log, metrics, config: CONFIG, store, bus: createBus() };
    const services = createServices(app, {
      secrets: world.secrets,
      passwords: createPasswords({ memoryKib: 8, passes: 1 }),
      sender: this.#parts.sender(this),
      publicSender: this.#parts.sender(this),
      mailer: null,
      policy: POLICY,
      node: this.#node,
    });
    world.tell(this.name, "starts");
    await this.#node?.membership.start();
    await services.start();
    const { known, pauseService } = services;
    const job = keepFresh(MINUTE_MS, { pauses: () => pauseService.reconcile() }, app);
    const reads = { pauses: () => known.paused.reload(), hosts: () => known.hosts.reload() };
    const stopReads = this.#node === null ? null : keepFresh(SHARED_READ_EVERY_MS, reads, app);
    this.#stopJobs = async () => void (await Promise.all([job(), stopReads?.()]));
    this.#store = store;
    this.#services = services;
    this.#follow(services);
  }

  /** As a signal stops it: what is in flight is awaited for a second, then interrupted and recorded. */
  async stop(): Promise<void> {
    const services = this.#services;
    if (services === null || this.#isDead) return this.kill("stopped before it served");
    this.#services = null;
    this.#world.tell(this.name, "stops");
    await Promise.all([services.drain(1_000), this.#stopJobs()]);
    await this.#node?.stop();
    await this.#store?.close();
    this.kill("stopped");
  }

  /** Answers a client: `onEnd` is called when the answer leaves the process, which may be never. */
  serve<T>(work: (services: Services) => Promise<T>, onEnd: (result: PromiseSettledResult<T>) => void): void {
    this.wake(() => {
      const services = this.#services;
      const answer =
        services === null ? Promise.reject(new StoreUnavailable("It does not serve yet.")) : work(services);
      answer.then(
        (value) => this.wake(() => onEnd({ status: "fulfilled", value })),
        (reason: unknown) => this.wake(() => onEnd({ status: "rejected", reason })),
      );
    });
  }

  /** Reads the event stream for whoever reads from this machine, on from where they were. */
  #follow(services: Services): void {
    const { world, name } = this.#parts;
    const reader = world.readers.get(name.charAt(0)) ?? { position: null, changes: [] };
    world.readers.set(name.charAt(0), reader);
    const read = async () => {
      const stream = await services.feed.open(world.caller("owner"), reader.position);
      reader.position ??= stream.position;
      // As `events/stream.ts` does: a commit that was answered too late is announced by nobody.
      const beat = () => {
        stream.ask();
        this.clock.after(KEEP_ALIVE_MS, beat);
      };
      this.clock.after(KEEP_ALIVE_MS, beat);
      for (let page = await stream.next(); page !== null && !this.#isDead; page = await stream.next()) {
        reader.changes.push(...page.changes);
        reader.position = page.position;
      }
    };
    world.keep(
      read().catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
        this.clock.after(1_000, () => this.#follow(services));
      }),
    );
  }

  /** Errors that the code does not expect are violations; all else it tells the operator is not part of the story. */
  #log(): Log {
    const quiet = () => {};
    const error: Log["error"] = (event, fields) => {
      if (!this.#isDead) this.#world.violate("nothing fails for an unknown reason", `${event} ${Bun.inspect(fields)}`);
    };
    return { debug: quiet, info: quiet, warn: quiet, error };
  }
}

function policyOf() {
  const policy = parseTargetPolicy({
    allowedPrivateTargets: [],
    loopbackAllowed: true,
    ownOrigins: ["http://127.0.0.1:1"],
  });
  if ("problems" in policy) throw new Error(policy.problems.join(" "));
  return policy;
}
