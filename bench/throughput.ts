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
import { createFor, latency, settled } from "./parts/load.ts";
import { freePort, outgate, serve } from "./parts/processes.ts";
import { quantile } from "./parts/time.ts";

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
const bare = { name: "relay", urls: [`http://127.0.0.1:${relay.port}/`], targetUrl };
const ours = { name: "outgate", urls: [`http://127.0.0.1:${service.port}/v1/actions`], targetUrl };

console.log(
  `fsync p50 of this disk: ${fsyncMs(service.folder).toFixed(2)} ms${delayMs === null ? "" : ` (+${delayMs} ms injected)`}`,
);
const shares: number[] = [];
for (let round = 0; round < rounds; round += 1) {
  const relayed = await createFor(bare, seconds, connections);
  const relayRate = relayed.created / relayed.elapsedS;
  const delivered = await createFor(ours, seconds, connections);
  const elapsedS = await settled(ours, delivered.startedMs);
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
if (!values["no-latency"]) console.log(await latency(ours, 200, 2_000));

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
