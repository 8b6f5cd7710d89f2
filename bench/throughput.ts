/**
 * Measures how many actions per second are created and delivered, as shares of what bare relays pass on in the same run,
 * and the delay of delivery at 200 per second. Every part is a process of its own; absolute rates depend on the machine.
 *
 * One relay makes a connection for each call, the other keeps them; neither has a limit of concurrent calls to its target.
 * Outgate's default is 64 per host, and here it is higher (`--per-host 64` measures the default).
 *
 * `--https` adds the same over TLS, with an authority that the service is told to trust by NODE_EXTRA_CA_CERTS. `--burst`
 * adds a service with default settings, asked by 64 callers and by 256. `--log` adds one that logs errors only.
 * `--against` adds the service of another checkout, which must have its packages installed.
 *
 *   bun bench/throughput.ts [--rounds 6] [--seconds 4] [--connections 64] [--per-host 256] [--fsync-delay-ms 4]
 *     [--https] [--burst] [--log] [--against ../before] [--no-relays] [--no-latency] [--target-host 127.0.0.1]
 */
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { latency } from "./parts/load.ts";
import { freePort, outgate, type Served, serve } from "./parts/processes.ts";
import { type Contender, medianOf, ratioLine, takeRounds } from "./parts/rounds.ts";
import { quantile } from "./parts/time.ts";
import { makeTargetTls } from "./parts/tls.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "4" },
    connections: { type: "string", default: "64" },
    "per-host": { type: "string", default: "256" },
    "fsync-delay-ms": { type: "string" },
    "target-host": { type: "string", default: "127.0.0.1" },
    https: { type: "boolean", default: false },
    burst: { type: "boolean", default: false },
    log: { type: "boolean", default: false },
    against: { type: "string" },
    "no-relays": { type: "boolean", default: false },
    "no-latency": { type: "boolean", default: false },
  },
});
const connections = Number(values.connections);
const delayMs = values["fsync-delay-ms"] === undefined ? null : Number(values["fsync-delay-ms"]);
const slowDisk =
  delayMs === null
    ? []
    : ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"].concat([
        "-e",
        `inject=fsync,fdatasync:delay_enter=${delayMs * 1_000}`,
      ]);
const ROOT = join(import.meta.dir, "..");
const CALLERS = 64;
const MANY_CALLERS = 256;

await using stack = new AsyncDisposableStack();
const tls = stack.use(makeTargetTls());
const target = stack.use(await serve("target.ts", tls.targetEnv));
const statsUrl = `http://127.0.0.1:${target.port}/stats`;
const schemes = values.https ? (["http", "https"] as const) : (["http"] as const);
const start = async (env: Readonly<Record<string, string>>, checkout = ROOT) =>
  stack.use(await outgate({ port: await freePort(), wrapper: slowDisk, checkout, env: { ...tls.callerEnv, ...env } }));

const contenders: Contender[] = [];
if (!values["no-relays"]) {
  const fresh = stack.use(await serve("relay.ts", tls.callerEnv));
  const kept = stack.use(await serve("relay.ts", { ...tls.callerEnv, KEPT: "1" }));
  for (const scheme of schemes) {
    contenders.push({ ...relayed(fresh, scheme), name: `relay ${scheme}` });
    contenders.push({ ...relayed(kept, scheme), name: `relay ${scheme} kept` });
  }
}
const service = await start({ DISPATCH_PER_HOST: values["per-host"] });
contenders.push(...schemes.map((scheme) => ours(service, scheme, { name: `outgate ${scheme}`, connections })));
if (values.log) {
  const quiet = await start({ DISPATCH_PER_HOST: values["per-host"], LOG_LEVEL: "error" });
  contenders.push(ours(quiet, "http", { name: "without log", connections }));
}
if (values.against !== undefined) {
  const other = await start({ DISPATCH_PER_HOST: values["per-host"] }, resolve(values.against));
  contenders.push(...schemes.map((scheme) => ours(other, scheme, { name: `other ${scheme}`, connections })));
}
if (values.burst) {
  const plain = await start({});
  contenders.push(ours(plain, "http", { name: "callers few", connections: CALLERS }));
  contenders.push(ours(plain, "http", { name: "callers many", connections: MANY_CALLERS }));
}

const slower = delayMs === null ? "" : ` (+${delayMs} ms injected)`;
console.log(`fsync p50 of this disk: ${fsyncMs(service.folder).toFixed(2)} ms${slower}`);
const rounds = await takeRounds(contenders, { rounds: Number(values.rounds), seconds: Number(values.seconds) });
for (const { name } of contenders) {
  const [completed, cpu] = [medianOf(rounds, name, "completedPerS"), medianOf(rounds, name, "cpuUs")];
  console.log(`${name}: ${completed.toFixed(0)} completed/s, ${cpu.toFixed(0)} us of the processor each`);
}
for (const scheme of schemes) {
  if (!values["no-relays"]) {
    compare("of a bare relay", `outgate ${scheme}`, `relay ${scheme}`);
    compare("of a bare relay that keeps connections", `outgate ${scheme}`, `relay ${scheme} kept`);
  }
}
if (values.against !== undefined) {
  for (const scheme of schemes) compare("of the other checkout", `outgate ${scheme}`, `other ${scheme}`);
}
if (values.log) compare("of the one without a log", "outgate http", "without log");
if (values.https) compare("https as a share of http", "outgate https", "outgate http");
if (values.burst) compare(`${MANY_CALLERS} callers as a share of ${CALLERS}`, "callers many", "callers few");
if (!values["no-latency"]) {
  for (const scheme of schemes)
    console.log(await latency(ours(service, scheme, { name: scheme, connections }), 200, 2_000));
}

function urlOf(scheme: "http" | "https"): string {
  return `${scheme}://${values["target-host"]}:${scheme === "http" ? target.port : target.securePort}/`;
}

function relayed({ port, process: child }: Served, scheme: "http" | "https"): Omit<Contender, "name"> {
  const from = { urls: [`http://127.0.0.1:${port}/`], targetUrl: urlOf(scheme), statsUrl };
  return { ...from, connections, pids: [child.pid], isSynchronous: true };
}

function ours(
  { port, process: child }: Served,
  scheme: "http" | "https",
  of: { readonly name: string; readonly connections: number },
): Contender {
  const urls = [`http://127.0.0.1:${port}/v1/actions`];
  return { ...of, urls, targetUrl: urlOf(scheme), statsUrl, pids: [child.pid] };
}

function compare(what: string, one: string, other: string): void {
  console.log(`${one}, completed, ${what}: ${ratioLine(rounds, [one, other], "completedPerS")}`);
  console.log(`${one}, processor, ${what}: ${ratioLine(rounds, [one, other], "cpuUs")}`);
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
