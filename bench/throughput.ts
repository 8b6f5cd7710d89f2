/**
 * Measures how many actions per second are created and delivered, as a share of what a bare relay passes on in the same
 * run, and the delay of delivery at 200 per second. Every part is a process of its own; absolute rates depend on the
 * machine.
 *
 * The relay has no limit of concurrent calls to its target. Outgate's default is 64 per host, and here it is higher
 * (`--per-host 64` measures the default).
 *
 *   bun bench/throughput.ts [--rounds 6] [--seconds 4] [--connections 64] [--per-host 256] [--fsync-delay-ms 4]
 *     [--no-latency]
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { API_KEY, freePort, outgate, serve } from "./parts/processes.ts";
import { now, quantile } from "./parts/time.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "4" },
    connections: { type: "string", default: "64" },
    "per-host": { type: "string", default: "256" },
    "fsync-delay-ms": { type: "string" },
    "no-latency": { type: "boolean", default: false },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const connections = Number(values.connections);
const delayMs = values["fsync-delay-ms"] === undefined ? null : Number(values["fsync-delay-ms"]);
const slowDisk =
  delayMs === null
    ? []
    : ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"].concat([
        "-e",
        `inject=fsync,fdatasync:delay_enter=${delayMs * 1_000}`,
      ]);

await using target = await serve("target.ts");
const targetUrl = `http://127.0.0.1:${target.port}/`;
await using relay = await serve("relay.ts", { TARGET: targetUrl });
await using service = await outgate({
  port: await freePort(),
  wrapper: slowDisk,
  env: { DISPATCH_PER_HOST: values["per-host"] },
});
const serviceUrl = `http://127.0.0.1:${service.port}`;

console.log(
  `fsync p50 of this disk: ${fsyncMs(service.folder).toFixed(2)} ms${delayMs === null ? "" : ` (+${delayMs} ms injected)`}`,
);
const shares: number[] = [];
for (let round = 0; round < rounds; round += 1) {
  const relayed = await load(`http://127.0.0.1:${relay.port}/`);
  const relayRate = relayed.created / relayed.elapsedS;
  const delivered = await load(`${serviceUrl}/v1/actions`);
  const elapsedS = await settled(delivered.startedMs);
  const rate = delivered.created / elapsedS;
  const first = round === 0 ? " (warm-up, not counted)" : "";
  if (round > 0) shares.push(rate / relayRate);
  console.log(
    `relay ${relayRate.toFixed(0)}/s  outgate created ${(delivered.created / delivered.elapsedS).toFixed(0)}/s ` +
      `completed ${rate.toFixed(0)}/s  share ${(rate / relayRate).toFixed(3)}${first}`,
  );
}
console.log(
  `completed actions as a share of a bare relay: median ${quantile(shares, 0.5).toFixed(3)} ` +
    `(min ${Math.min(...shares).toFixed(3)}, max ${Math.max(...shares).toFixed(3)}, ${shares.length} rounds, ${connections} connections, ${values["per-host"]} calls a host)`,
);
if (!values["no-latency"]) await latency();

interface Load {
  readonly created: number;
  readonly startedMs: number;
  readonly elapsedS: number;
}

/** Creates for `seconds`; each connection waits for its answer before it creates again. */
async function load(url: string): Promise<Load> {
  const startedMs = now();
  const untilMs = startedMs + seconds * 1_000;
  let created = 0;
  const worker = async () => {
    while (now() < untilMs) {
      await create(url, { n: created });
      created += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return { created, startedMs, elapsedS: (now() - startedMs) / 1_000 };
}

async function create(url: string, body: object): Promise<void> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ url: targetUrl, body }),
  });
  if (answer.status !== 201) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
  await answer.arrayBuffer();
}

/** Waits until nothing is pending or active; seconds since the start of the round. */
async function settled(startedMs: number): Promise<number> {
  for (const status of ["pending", "active"]) {
    while (await hasActions(status)) await Bun.sleep(10);
  }
  return (now() - startedMs) / 1_000;
}

async function hasActions(status: string): Promise<boolean> {
  const answer = await fetch(`${serviceUrl}/v1/actions?limit=1&status=${status}`, {
    headers: { Authorization: `Bearer ${API_KEY}` },
  });
  const { data } = (await answer.json()) as { data: unknown[] };
  return data.length > 0;
}

/** From the client's call to its arrival at the target, at a rate that leaves the machine nearly idle. */
async function latency(): Promise<void> {
  await fetch(`${targetUrl}stats`);
  const count = 2_000;
  const startMs = now();
  const creates: Promise<void>[] = [];
  for (let n = 0; n < count; n += 1) {
    const waitMs = startMs + n * 5 - now();
    if (waitMs > 0) await Bun.sleep(waitMs);
    creates.push(create(`${serviceUrl}/v1/actions`, { sentMs: now() }));
  }
  await Promise.all(creates);
  await settled(startMs);
  const { underWayMs } = (await (await fetch(`${targetUrl}stats`)).json()) as { underWayMs: number[] };
  console.log(
    `create to target at 200/s: p50 ${quantile(underWayMs, 0.5).toFixed(2)} ms, p99 ${quantile(underWayMs, 0.99).toFixed(2)} ms ` +
      `(${underWayMs.length} actions)`,
  );
}

/** Median time of an fsync of one page on this disk. */
function fsyncMs(folder: string): number {
  const file = openSync(join(folder, "fsync.probe"), "w");
  const page = Buffer.alloc(4_096, 1);
  const times = Array.from({ length: 200 }, () => {
    writeSync(file, page);
    const started = performance.now();
    fdatasyncSync(file);
    return performance.now() - started;
  });
  closeSync(file);
  return quantile(times, 0.5);
}
