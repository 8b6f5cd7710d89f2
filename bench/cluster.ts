/**
 * Measures one, two and four nodes on one PostgreSQL beside the file store, a bare relay and a plain queue on the same
 * server: actions per second as shares of what the relay passes on in the same run, the delay of delivery at 100 a second,
 * and how long a wait on one node takes to see a change on another.
 *
 * All of it shares the cores of one machine with the database, the target and the load: more nodes add no cores here. What
 * it shows is what a node costs, and whether nodes hinder each other. Each node is loaded until its code is compiled, before any
 * round: four that share the load take four times as long to get there (1,000/s in the first seconds, 2,300/s after a minute).
 *
 *   bun bench/cluster.ts [--rounds 6] [--seconds 4] [--warm-up-seconds 15] [--connections 64] [--postgres postgres://…] [--waits 200]
 *     [--latency-actions 2000]
 */
import { parseArgs } from "node:util";
import { SQL } from "bun";
import { OwnServers } from "./parts/own-server.ts";
import { createFor, latency, type Measured, settled } from "./parts/load.ts";
import { API_KEY, freePort, outgate, type Served, serve } from "./parts/processes.ts";
import { now, quantile } from "./parts/time.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "4" },
    "warm-up-seconds": { type: "string", default: "15" },
    connections: { type: "string", default: "64" },
    nodes: { type: "string", default: "1,2,4" },
    waits: { type: "string", default: "200" },
    "latency-actions": { type: "string", default: "2000" },
    postgres: { type: "string" },
  },
});
const [seconds, connections] = [Number(values.seconds), Number(values.connections)];
const PER_SECOND = 100;
const LATENCY_ACTIONS = Number(values["latency-actions"]);
const SECRET_KEY = "5f".repeat(32);

await using stack = new AsyncDisposableStack();
const server = values.postgres === undefined ? stack.use(await OwnServers.start({ fsync: "on" })).url : values.postgres;
const target = stack.use(await serve("target.ts"));
const targetUrl = `http://127.0.0.1:${target.port}/`;
const relay = stack.use(await serve("relay.ts"));
const queue = stack.use(await serve("queue.ts", { QUEUE_URL: await database("queue") }));
const file = stack.use(await outgate({ port: await freePort(), env: { DISPATCH_PER_HOST: "256", LOG_LEVEL: "warn" } }));

const variants: Measured[] = [
  { name: "file", urls: [actionsOf(file)], targetUrl },
  { name: "plain queue", urls: [`http://127.0.0.1:${queue.port}/`], targetUrl },
];
for (const count of values.nodes
  .split(",")
  .map(Number)
  .filter((n) => n > 0))
  variants.push(await nodes(count));
const bare: Measured = { name: "relay", urls: [`http://127.0.0.1:${relay.port}/`], targetUrl };

for (const variant of [bare, ...variants]) {
  const { startedMs } = await createFor(variant, Number(values["warm-up-seconds"]) * variant.urls.length, connections);
  if (variant !== bare) await settled(variant, startedMs);
}

const shares = new Map<string, number[]>(variants.map(({ name }) => [name, []]));
for (let round = 0; round < Number(values.rounds); round += 1) {
  const relayed = await createFor(bare, seconds, connections);
  const relayRate = relayed.created / relayed.elapsedS;
  const line = [`relay ${relayRate.toFixed(0)}/s`];
  for (const variant of variants) {
    const { created, startedMs } = await createFor(variant, seconds, connections);
    const rate = created / (await settled(variant, startedMs));
    line.push(`${variant.name} ${rate.toFixed(0)}/s (${(rate / relayRate).toFixed(3)})`);
    shares.get(variant.name)?.push(rate / relayRate);
  }
  console.log(line.join("  "));
}
for (const [name, all] of shares) {
  console.log(
    `${name}: completed as a share of the bare relay: median ${quantile(all, 0.5).toFixed(3)} ` +
      `(min ${Math.min(...all).toFixed(3)}, max ${Math.max(...all).toFixed(3)}, ${all.length} rounds, ${connections} connections)`,
  );
}
for (const variant of variants) console.log(await latency(variant, PER_SECOND, LATENCY_ACTIONS));
const last = variants.at(-1);
if (last !== undefined && last.urls.length > 1) console.log(await waits(last, Number(values.waits)));

async function database(name: string): Promise<string> {
  await using sql = new SQL(server, { max: 1 });
  const fresh = `outgate_bench_${name}_${Date.now()}`;
  await sql.unsafe(`CREATE DATABASE ${fresh}`);
  const url = new URL(server);
  url.pathname = `/${fresh}`;
  return url.href;
}

/** So many nodes on a database of their own. */
async function nodes(count: number): Promise<Measured> {
  const env = {
    DATABASE_URL: await database(`nodes_${count}`),
    SECRET_KEY,
    DISPATCH_PER_HOST: "256",
    LOG_LEVEL: "warn",
  };
  const started = await Promise.all(
    Array.from({ length: count }, async () => stack.use(await outgate({ port: await freePort(), env }))),
  );
  return { name: count === 1 ? "1 node" : `${count} nodes`, urls: started.map(actionsOf), targetUrl };
}

function actionsOf({ port }: Served): string {
  return `http://127.0.0.1:${port}/v1/actions`;
}

/** From the answer of a decision on one node to the answer of a wait for it on another. */
async function waits({ name, urls }: Measured, count: number): Promise<string> {
  const headers = { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" };
  const times: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const [one = "", other = ""] = [urls[n % urls.length], urls[(n + 1) % urls.length]];
    const body = JSON.stringify({ url: targetUrl, approve: true });
    const { id } = (await (await fetch(one, { method: "POST", headers, body })).json()) as { id: string };
    const waiting = fetch(`${one}/${id}?wait=30`, { headers }).then(async (answer) => {
      await answer.arrayBuffer();
      return now();
    });
    await Bun.sleep(20);
    await (await fetch(`${other}/${id}/cancel`, { method: "POST", headers, body: "{}" })).arrayBuffer();
    const decidedMs = now();
    times.push(Math.max(0, (await waiting) - decidedMs));
  }
  return (
    `${name}: a wait on one node after a change on another: p50 ${quantile(times, 0.5).toFixed(1)} ms, ` +
    `p99 ${quantile(times, 0.99).toFixed(1)} ms (${count} waits)`
  );
}
