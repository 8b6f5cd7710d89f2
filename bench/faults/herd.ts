import { Database } from "bun:sqlite";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openStoreAt } from "../../test/support/store.ts";
import { aCreation } from "../../test/support/factory.ts";
import { memoryOf } from "../../test/support/memory.ts";
import { freePort } from "../../test/support/free-port.ts";
import { askAsOwner, newFolder, OWNER_KEY, Service } from "../../test/support/service.ts";
import { broken, type FaultReport, quantile } from "../../test/support/faults/report.ts";

const HOSTS = 20;
const [BUSY_MS, IDLE_MS] = [5_000, 2_000];
const READY_MS_MAX = 2_000;
const MEMORY_MAX = 300 * 1_048_576;
/** The defaults of decisions 10. */
const [TOTAL_MAX, PER_HOST_MAX] = [256, 64];

/**
 * A start with so many actions that have been due for long, of twenty hosts (F21). How fast it is can be judged only where
 * nobody else uses the machine.
 */
export async function herd(count: number, isAlone: boolean): Promise<FaultReport> {
  const folder = newFolder();
  mkdirSync(join(folder, "data"));
  const flying = new Map<string, number>();
  const most = { all: 0, host: 0 };
  let arrived = 0;
  await using target = listener(async (host) => {
    arrived += 1;
    flying.set(host, (flying.get(host) ?? 0) + 1);
    most.host = Math.max(most.host, flying.get(host) ?? 0);
    most.all = Math.max(
      most.all,
      [...flying.values()].reduce((sum, one) => sum + one, 0),
    );
    await Bun.sleep(20);
    flying.set(host, (flying.get(host) ?? 1) - 1);
  });
  const env = { PORT: String(await freePort()), RATE_LIMIT_PER_SECOND: "0", LOG_LEVEL: "warn" };
  const url = `http://127.0.0.1:${env.PORT}`;
  {
    // The account and its key.
    await using first = new Service({ folder, env: { ...env, LOG_LEVEL: "info" } });
    await first.ready();
    await first.end();
  }
  await fill(join(folder, "data/outgate.db"), count, target.port);

  const startedMs = performance.now();
  await using service = new Service({ folder, env });
  while ((await askAsOwner(`${url}/ready`))?.status !== 200) await Bun.sleep(5);
  const readyMs = Math.round(performance.now() - startedMs);
  const busy = await looks(`${url}/v1/account`, BUSY_MS);
  const sentWhileLooking = arrived;
  const bytes = memoryOf(service.process.pid, "VmHWM");
  while (arrived < count) await Bun.sleep(20);
  // Until the last of them are recorded.
  await Bun.sleep(200);
  const idle = await looks(`${url}/v1/account`, IDLE_MS);
  const ratio = quantile(busy, 0.99) / quantile(idle, 0.99);
  await service.end("SIGKILL");
  rmSync(folder, { recursive: true });
  return {
    figures: {
      count,
      readyMs,
      mostInFlight: most.all,
      mostOfOneHost: most.host,
      looks: busy.length,
      p99BusyMs: quantile(busy, 0.99).toFixed(1),
      p99IdleMs: quantile(idle, 0.99).toFixed(1),
      ratio: ratio.toFixed(2),
      memoryMB: Math.round(bytes / 1_048_576),
    },
    problems: broken({
      "it is ready within two seconds": !isAlone || readyMs <= READY_MS_MAX,
      "the caps are kept, in all and per host": most.all <= TOTAL_MAX && most.host <= PER_HOST_MAX,
      "the API's p99 is at most twice that of rest": !isAlone || (ratio <= 2 && sentWhileLooking < count),
      "all of them are sent, and once": arrived === count,
      "it takes less than 300 MB": bytes < MEMORY_MAX,
    }),
  };
}

/** How long answers took, in milliseconds, as a process of its own sees them. */
async function looks(url: string, ms: number): Promise<readonly number[]> {
  const looker = Bun.spawn(["bun", join(import.meta.dir, "looker.ts"), url, OWNER_KEY, String(ms)], { stdout: "pipe" });
  // Safe: it prints a list of numbers.
  return (await new Response(looker.stdout).json()) as readonly number[];
}

/** A target at every address of loopback, that is told which one it was called by. */
function listener(called: (host: string) => Promise<void>) {
  const server = Bun.serve({
    port: 0,
    hostname: "0.0.0.0",
    async fetch(request) {
      await called(request.headers.get("host") ?? "");
      return new Response("ok");
    },
  });
  return { port: server.port ?? 0, [Symbol.asyncDispose]: () => server.stop(true) };
}

/** Copies one action so many times, a second overdue each. */
async function fill(path: string, count: number, port: number): Promise<void> {
  const store = await openStoreAt(path);
  const account = await store.accounts.first();
  const { action } = aCreation({ accountId: account?.id ?? "", body: '{"a":1}' });
  await store.actions.create({ action, events: [], outbox: [], claim: null, rulesVersion: "" });
  await store.close();
  const db = new Database(path);
  const columns = db
    .query<{ name: string }, []>("PRAGMA table_info(actions)")
    .all()
    .map(({ name }) => name);
  const made: Readonly<Record<string, string>> = {
    id: "printf('%s%08d', substr(id, 1, 18), n)",
    url: `printf('http://127.0.0.%d:${port}/', n % ${HOSTS} + 1)`,
    hostname: `printf('127.0.0.%d', n % ${HOSTS} + 1)`,
    host: `printf('127.0.0.%d:${port}', n % ${HOSTS} + 1)`,
  };
  const values = columns.map((name) => made[name] ?? name);
  db.run(
    `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${count})
     INSERT INTO actions (${columns.join(", ")}) SELECT ${values.join(", ")} FROM c, (SELECT * FROM actions LIMIT 1)`,
  );
  db.run("DELETE FROM actions WHERE id = ?", [action.id]);
  db.close();
}
