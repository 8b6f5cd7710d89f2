/**
 * Counts what an action costs, from create to its end: processor time of the service, and of its store transactions,
 * statements, bytes of log and bytes that stay. With one connection each commit has one write or two; with many they are shared.
 * Counts are the same on every machine, times are not.
 *
 *   bun bench/cost.ts [--seconds 6] [--connections 1,64] [--stores file,postgres]
 *   bun bench/cost.ts --stores none --rules 50,500 [--rounds 8]    what so many rules that never apply cost, against none
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SQL } from "bun";
import { OwnServers } from "./parts/own-server.ts";
import { treeCpuMs } from "./parts/cpu.ts";
import { createFor, type Measured, settled } from "./parts/load.ts";
import { API_KEY, freePort, outgate, serve } from "./parts/processes.ts";
import { type Contender, ratioLine, takeRounds } from "./parts/rounds.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "6" },
    connections: { type: "string", default: "1,64" },
    stores: { type: "string", default: "file,postgres" },
    rules: { type: "string", default: "" },
    rounds: { type: "string", default: "8" },
  },
});
const stores = values.stores.split(",");
const connectionCounts = values.connections.split(",").map(Number);
const ENV = { SECRET_KEY: "5f".repeat(32), DISPATCH_PER_HOST: "256", LOG_LEVEL: "warn" };
/** Until then the compiler takes a good part of the processor. */
const WARM_UP_SECONDS = 3;
/** For a minute after rules were written, an action is judged by them again before it is sent. */
const RULES_NEW_MS = 65_000;
/** Statements that are printed, those with the most calls. */
const STATEMENTS_SHOWN = 12;
const STATEMENT_CHARS = 100;
/** Bun's names of threads. The only worker of a service that masks nothing is the store's writer. */
const THREADS: Readonly<Record<string, string>> = {
  Worker: "writer",
  "HTTP Client": "Bun's HTTP client",
  JITWorker: "compiler",
  HeapHelper: "garbage collector",
};
/** Fields of `stat` behind the name: the ticks as user and as system. */
const USER_TICKS = 11;
const TABLES = ["actions", "timeline", "outbox", "action_keys"];
/** A server of PostgreSQL writes down its counts of the log this late. */
const COUNTS_LATE_MS = 1_500;

await using target = await serve("target.ts");
const targetUrl = `http://127.0.0.1:${target.port}/`;

for (const connections of stores.includes("file") ? connectionCounts : []) await measureFile(connections);
if (stores.includes("postgres")) await measurePostgres();
if (values.rules !== "") await measureRules(values.rules.split(",").map(Number));

async function measureFile(connections: number): Promise<void> {
  await using service = await outgate({ port: await freePort(), env: ENV });
  const measured = measuredAt(service.port, "file");
  await run(measured, connections, WARM_UP_SECONDS);
  const threadsBefore = threadMsOf(service.process.pid);
  const cpuBefore = treeCpuMs([service.process.pid]);
  const storedBefore = storedIn(service.folder);
  const actions = await run(measured, connections);
  report(`file, ${connections} connections`, actions, {
    "ms of the processor": treeCpuMs([service.process.pid]) - cpuBefore,
    ...threadShares(threadMsOf(service.process.pid), threadsBefore),
    "bytes stored": storedIn(service.folder) - storedBefore,
    ...(await callsOfFile(connections)),
  });
}

/** Services with so many rules in turn, so that what else the machine does falls on all of them. */
async function measureRules(counts: readonly number[]): Promise<void> {
  await using started = new AsyncDisposableStack();
  const contenders: Contender[] = [];
  for (const count of [0, ...counts]) {
    const { port, process } = started.use(await outgate({ port: await freePort(), env: ENV }));
    const answer = await fetch(`http://127.0.0.1:${port}/v1/rules`, {
      method: "PUT",
      headers: { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" },
      body: JSON.stringify({ rules: Array.from({ length: count }, (_, n) => ruleThatNeverApplies(n)) }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    const request = (turn: number) => ({ url: targetUrl, body: { amount: turn, to: "acme", note: "x".repeat(120) } });
    contenders.push({ ...measuredAt(port, `${count} rules`), request, connections: 64, pids: [process.pid] });
  }
  await Bun.sleep(RULES_NEW_MS);
  const rounds = await takeRounds(contenders, { rounds: Number(values.rounds), seconds: Number(values.seconds) });
  for (const count of counts) {
    console.log(`${count} rules: processor time ${ratioLine(rounds, [`${count} rules`, "0 rules"], "cpuUs")} of none`);
  }
}

/** In turn one about another method, one about another path, and two expressions that read the body. */
function ruleThatNeverApplies(n: number): object {
  const conditions = [
    { methods: ["DELETE"] },
    { path: `/v1/other/${n}` },
    { when: `action.body.amount > ${10_000_000 + n}` },
    { when: `action.body.to == "nobody${n}" && action.method == "POST"` },
  ];
  return { name: `Rule ${n}`, effect: "hold", ...conditions[n % conditions.length] };
}

/** Of the database as it is read: the size of its files depends on when the log was last written back. */
function storedIn(folder: string): number {
  using database = new Database(join(folder, "outgate.db"), { readonly: true });
  const { bytes } = database
    .query("SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()")
    .get() as { readonly bytes: number };
  return bytes;
}

/** Flushes and writes of the file's service, from a run of its own: strace makes it slower. Divided by its own actions. */
async function callsOfFile(connections: number): Promise<Readonly<Record<string, number>>> {
  if (Bun.which("strace") === null) return {};
  const folder = mkdtempSync(join(tmpdir(), "outgate-cost-"));
  const counted = join(folder, "calls");
  const wrapper = ["strace", "-f", "-c", "-o", counted, "-e", "trace=fdatasync,fsync,pwrite64"];
  const service = await outgate({ port: await freePort(), folder, env: ENV, wrapper });
  const actions = await run(measuredAt(service.port, "file"), connections);
  // strace passes no signal on: its child is the service.
  const child = readFileSync(`/proc/${service.process.pid}/task/${service.process.pid}/children`, "utf8");
  process.kill(Number(child), "SIGTERM");
  await service.process.exited;
  const lines = readFileSync(counted, "utf8").split("\n");
  rmSync(folder, { recursive: true, force: true });
  // "% time  seconds  usecs/call  calls  [errors]  name"
  const callsOf = (...names: readonly string[]) => {
    const rows = lines.map((line) => line.trim().split(/ +/)).filter((row) => names.includes(row.at(-1) ?? ""));
    return rows.reduce((sum, row) => sum + Number(row[3]), 0) / actions;
  };
  return { "flushes (traced)": callsOf("fsync", "fdatasync"), "writes (traced)": callsOf("pwrite64") };
}

async function measurePostgres(): Promise<void> {
  const settings = { fsync: "on", shared_buffers: "256MB", shared_preload_libraries: "pg_stat_statements" };
  await using servers = await OwnServers.start(settings);
  await using sql = new SQL(servers.url, { max: 1 });
  await sql`CREATE EXTENSION pg_stat_statements`;
  await using service = await outgate({ port: await freePort(), env: { ...ENV, DATABASE_URL: servers.url } });
  const measured = measuredAt(service.port, "PostgreSQL");
  for (const connections of connectionCounts) {
    await run(measured, connections, WARM_UP_SECONDS);
    await Bun.sleep(COUNTS_LATE_MS);
    const serverId = servers.primary.processId() ?? 0;
    const before = { sizes: await sizesIn(sql), cpu: treeCpuMs([service.process.pid]), server: treeCpuMs([serverId]) };
    await sql`SELECT pg_stat_statements_reset(), pg_stat_reset_shared('wal')`;
    const actions = await run(measured, connections);
    const cpuMs = treeCpuMs([service.process.pid]) - before.cpu;
    const serverMs = treeCpuMs([serverId]) - before.server;
    await Bun.sleep(COUNTS_LATE_MS);
    const statements = (await sql`SELECT query, calls::float8 AS calls, total_exec_time::float8 AS ms,
        wal_bytes::float8 AS "logBytes"
      FROM pg_stat_statements WHERE query NOT ILIKE '%pg_stat%' ORDER BY calls DESC`) as readonly Called[];
    const [log] = (await sql`SELECT wal_sync::float8 AS syncs FROM pg_stat_wal`) as readonly {
      readonly syncs: number;
    }[];
    const sizes = await sizesIn(sql);
    const callsWhere = (isCounted: (query: string) => boolean) =>
      statements.filter(({ query }) => isCounted(query)).reduce((sum, { calls }) => sum + calls, 0);
    report(`PostgreSQL, ${connections} connections`, actions, {
      "ms of the processor": cpuMs,
      "ms of the server's": serverMs,
      transactions: callsWhere((query) => query.startsWith("commit")),
      "statements beside begin, set and commit": callsWhere((query) => !/^(begin|set local|commit)/.test(query)),
      flushes: log?.syncs ?? 0,
      // Those of the server differ by a quarter from run to run, since its own work writes too.
      "bytes of log": statements.reduce((sum, { logBytes }) => sum + logBytes, 0),
      ...Object.fromEntries(
        TABLES.map((name) => [`bytes in ${name}`, (sizes.get(name) ?? 0) - (before.sizes.get(name) ?? 0)]),
      ),
    });
    for (const { query, calls, ms } of statements.slice(0, STATEMENTS_SHOWN)) {
      const text = query.replaceAll(/\s+/g, " ").slice(0, STATEMENT_CHARS);
      console.log(`  ${(calls / actions).toFixed(3)} calls, ${(ms / actions).toFixed(3)} ms: ${text}`);
    }
  }
}

interface Called {
  readonly query: string;
  readonly calls: number;
  readonly ms: number;
  readonly logBytes: number;
}

/** Bytes of each table with its indexes. */
async function sizesIn(sql: SQL): Promise<ReadonlyMap<string, number>> {
  const rows = (await sql`SELECT relname AS name, pg_total_relation_size(oid)::float8 AS bytes FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`) as readonly {
    readonly name: string;
    readonly bytes: number;
  }[];
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}

function measuredAt(port: number, name: string): Measured {
  return { name, urls: [`http://127.0.0.1:${port}/v1/actions`], targetUrl };
}

/** Creates for a while, and resolves with the number of actions when all have ended. */
async function run(measured: Measured, connections: number, lastsS = Number(values.seconds)): Promise<number> {
  const { created, startedMs } = await createFor(measured, lastsS, connections);
  await settled(measured, startedMs);
  return created;
}

/** Linux counts processor time in hundredths of a second. */
function msOf(ticks: readonly string[]): number {
  return ticks.reduce((sum, tick) => sum + Number(tick) * 10, 0);
}

/** Processor time of each kind of thread of a process; of those that live. */
function threadMsOf(pid: number): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const { name, fields } = statOf(`${pid}/task/${thread}`);
    const kind = thread === String(pid) ? "main" : (THREADS[name] ?? "others");
    sums.set(kind, (sums.get(kind) ?? 0) + msOf(fields.slice(USER_TICKS, USER_TICKS + 2)));
  }
  return sums;
}

function threadShares(
  after: ReadonlyMap<string, number>,
  before: ReadonlyMap<string, number>,
): Readonly<Record<string, number>> {
  return Object.fromEntries([...after].map(([kind, ms]) => [`ms of them: ${kind}`, ms - (before.get(kind) ?? 0)]));
}

/** What Linux tells of a process or thread; nothing where it has just ended. */
function statOf(path: string): { readonly name: string; readonly fields: readonly string[] } {
  try {
    const text = readFileSync(`/proc/${path}/stat`, "utf8");
    // The name may contain blanks and brackets.
    const end = text.lastIndexOf(")");
    return { name: text.slice(text.indexOf("(") + 1, end), fields: text.slice(end + 2).split(" ") };
  } catch {
    return { name: "", fields: [] };
  }
}

/** Prints sums as shares of one action; what was counted in a run of its own is one already. */
function report(name: string, actions: number, sums: Readonly<Record<string, number>>): void {
  const shares = Object.entries(sums).map(([what, sum]) => {
    const share = what.endsWith("(traced)") ? sum : sum / actions;
    return `${share >= 100 ? share.toFixed(0) : share.toPrecision(3)} ${what}`;
  });
  console.log(`${name}: ${actions} actions; per action ${shares.join(", ")}`);
}
