import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { OwnServers } from "./own-server.ts";
import { hasPostgres } from "../../test/support/postgres.ts";
import { freePort, type Served, serveCommand } from "./processes.ts";

const PEERS = join(import.meta.dir, "../peers");
const INSTALLED = join(PEERS, "node_modules/.installed");
const RIVER = join(PEERS, "node_modules/.river");
const RESTATE = join(
  PEERS,
  `node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
);
/** Tries of 50 ms until a server answers. */
const TRIES = 400;

/** Another system that does the same work, as it runs. */
export interface RunningPeer {
  readonly name: string;
  /** Where it creates. */
  readonly url: string;
  readonly statusUrl?: string;
  /** All that it needs to run: its processor time counts. */
  readonly pids: readonly number[];
}

interface PeerSetup {
  readonly stack: AsyncDisposableStack;
  /** What makes a peer trust the target's certificate. */
  readonly env: Readonly<Record<string, string>>;
  readonly postgres: OwnServers | null;
  readonly tuning: Tuning;
}

/** How a peer runs. */
export interface Tuning {
  /** Jobs at a time; null: it decides itself. */
  readonly concurrency: number | null;
  /** Whether each call has a timer that ends it. */
  readonly hasTimer: boolean;
}

const TUNINGS = tuningsOf([64, 32, 256]);

function tuningsOf(jobs: readonly (number | null)[]): readonly Tuning[] {
  return jobs.flatMap((concurrency) => [true, false].map((hasTimer) => ({ concurrency, hasTimer })));
}

export interface PeerKind {
  /** Why it can't run here; null if it can. */
  readonly missing: () => string | null;
  /** Among which it runs in the fastest; the first where none is looked for. */
  readonly tunings: readonly Tuning[];
  readonly start: (setup: PeerSetup) => Promise<RunningPeer>;
}

const noPostgres = () => (hasPostgres ? null : "PostgreSQL is not installed");

export const PEERS_BY_NAME: Readonly<Record<string, PeerKind>> = {
  bullmq: {
    missing: () => (Bun.which("redis-server") === null ? "redis-server is not installed" : null),
    tunings: TUNINGS,
    start: startBullmq,
  },
  river: {
    missing: () => (existsSync(RIVER) ? noPostgres() : "Go, which builds it, is not installed"),
    tunings: TUNINGS,
    start: (setup) => startOnPostgres("River", [RIVER], setup),
  },
  restate: {
    missing: () => (existsSync(RESTATE) ? null : "its server has no package for this machine"),
    tunings: tuningsOf([null]),
    start: startRestate,
  },
  "pg-boss": {
    missing: noPostgres,
    // With fewer workers that take 32 jobs each, it makes 6 calls a second.
    tunings: tuningsOf([256]),
    start: (setup) => startOnPostgres("pg-boss", script("pg-boss.ts"), setup),
  },
  "graphile-worker": {
    missing: noPostgres,
    tunings: TUNINGS,
    start: (setup) => startOnPostgres("graphile-worker", script("graphile-worker.ts"), setup),
  },
  "plain queue": {
    missing: noPostgres,
    tunings: [{ concurrency: null, hasTimer: false }],
    start: (setup) => startOnPostgres("plain queue", ["bun", join(import.meta.dir, "queue.ts")], setup),
  },
};

/** Installs the peers' packages, as their lock names them, where git does not see them; again only when the lock changes. */
export function installPeers(): void {
  const digest = createHash("sha256");
  for (const file of ["bun.lock", "river/go.sum", "river/main.go"]) digest.update(readFileSync(join(PEERS, file)));
  const wanted = digest.digest("hex");
  if (existsSync(INSTALLED) && readFileSync(INSTALLED, "utf8") === wanted) return;
  console.log("installing the peers' packages (once)");
  // What they would run at their installation is not needed here.
  run(["bun", "install", "--frozen-lockfile", "--ignore-scripts"], PEERS);
  const go = Bun.which("go") ?? "/usr/local/go/bin/go";
  if (existsSync(go)) run([go, "build", "-o", RIVER, "."], join(PEERS, "river"));
  writeFileSync(INSTALLED, wanted);
}

/** A server with its defaults, so with a flush at every commit, for all peers that need one. */
export async function startPostgresForPeers(): Promise<OwnServers | null> {
  return hasPostgres ? await OwnServers.start({ fsync: "on", shared_buffers: "128MB" }) : null;
}

function run(command: readonly string[], cwd: string): void {
  const { exitCode, stderr } = Bun.spawnSync([...command], { cwd, stdout: "ignore", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")} in ${cwd} failed: ${stderr.toString()}`);
}

function script(name: string): readonly string[] {
  return ["bun", join(PEERS, name)];
}

function tuningEnv({ concurrency, hasTimer }: Tuning): Readonly<Record<string, string>> {
  return { ...(concurrency !== null && { CONCURRENCY: String(concurrency) }), CALL_TIMER: hasTimer ? "1" : "0" };
}

async function startBullmq({ stack, env, tuning }: PeerSetup): Promise<RunningPeer> {
  const folder = folderFor(stack, "redis");
  const port = await freePort();
  const settings = [
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--dir",
    folder,
    "--save",
    "",
    "--loglevel",
    "warning",
  ];
  const log = ["--appendonly", "yes", "--appendfsync", "always"];
  const redis = startProcess(stack, ["redis-server", ...settings, ...log], {});
  await until(async () => {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } });
    socket.end();
    return true;
  }, "Redis");
  const peer = stack.use(
    await serveCommand(script("bullmq.ts"), { ...env, ...tuningEnv(tuning), REDIS_PORT: String(port) }),
  );
  return { name: "BullMQ", url: urlOf(peer), pids: [redis.pid, peer.process.pid] };
}

async function startRestate({ stack, env, tuning }: PeerSetup): Promise<RunningPeer> {
  const [ingress, admin, fabric] = [await freePort(), await freePort(), await freePort()];
  const server = startProcess(stack, [RESTATE, "--no-logo"], {
    RESTATE_BASE_DIR: folderFor(stack, "restate"),
    RESTATE_LISTEN_MODE: "tcp",
    RESTATE_BIND_IP: "127.0.0.1",
    RESTATE_BIND_PORT: String(fabric),
    RESTATE_INGRESS__BIND_PORT: String(ingress),
    RESTATE_ADMIN__BIND_PORT: String(admin),
    RESTATE_DISABLE_TELEMETRY: "true",
    RESTATE_LOG_FILTER: "error,octocrab=off",
  });
  const adminUrl = `http://127.0.0.1:${admin}`;
  for (const url of [`${adminUrl}/health`, `http://127.0.0.1:${ingress}/restate/health`]) {
    await until(async () => (await fetch(url)).ok, "Restate");
  }
  const settings = { ...env, ...tuningEnv(tuning), RESTATE_LOGGING: "ERROR", ADMIN_URL: adminUrl };
  const peer = stack.use(await serveCommand(script("restate.ts"), settings));
  return {
    name: "Restate",
    url: `http://127.0.0.1:${ingress}/calls/call/send`,
    statusUrl: urlOf(peer),
    pids: [server.pid, peer.process.pid],
  };
}

async function startOnPostgres(
  name: string,
  command: readonly string[],
  { stack, env, postgres, tuning }: PeerSetup,
): Promise<RunningPeer> {
  if (postgres === null) throw new Error(`${name} needs PostgreSQL.`);
  const database = `${name.toLowerCase().replaceAll(/[^a-z]/g, "_")}_${(databases += 1)}`;
  const url = await newDatabase(postgres, database);
  const settings = { ...env, ...tuningEnv(tuning), DATABASE_URL: url, QUEUE_URL: url, KEPT: "1" };
  const peer = stack.use(await serveCommand(command, settings));
  return { name, url: urlOf(peer), pids: [peer.process.pid, postgres.primary.processId() ?? 0] };
}

let databases = 0;

async function newDatabase(postgres: OwnServers, name: string): Promise<string> {
  await using sql = new SQL(postgres.url, { max: 1 });
  await sql.unsafe(`CREATE DATABASE ${name}`);
  return postgres.primary.url(name);
}

function urlOf({ port }: Served): string {
  return `http://127.0.0.1:${port}/`;
}

function folderFor(stack: AsyncDisposableStack, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `outgate-bench-${name}-`));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function startProcess(
  stack: AsyncDisposableStack,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): Bun.Subprocess {
  const child = Bun.spawn([...command], { env: { ...process.env, ...env }, stdout: "ignore", stderr: "inherit" });
  stack.defer(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  return child;
}

async function until(isReady: () => Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (await isReady().catch(() => false)) return;
    await Bun.sleep(50);
  }
  throw new Error(`${what} did not answer.`);
}
