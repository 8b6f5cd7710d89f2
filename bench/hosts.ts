/**
 * Measures what many hosts cost, with default settings: completed actions per second to 50 and to 1,000 hosts, and of mixed
 * ones (GET, POST, and POST with a callback), as shares of those to one host in the same run; and how long actions to 49
 * hosts take while a slow host has a backlog, as a share of without.
 *
 * The hosts are addresses of 127.0.0.0/8, which Linux takes as its own.
 *
 *   bun bench/hosts.ts [--rounds 4] [--seconds 3] [--connections 64] [--https]
 */
import { parseArgs } from "node:util";
import { create, delaysAt, type Measured, settled } from "./parts/load.ts";
import { freePort, outgate, serve } from "./parts/processes.ts";
import { type Contender, ratioLine, takeRounds } from "./parts/rounds.ts";
import { median, quantile } from "./parts/time.ts";
import { makeTargetTls } from "./parts/tls.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "4" },
    seconds: { type: "string", default: "3" },
    connections: { type: "string", default: "64" },
    https: { type: "boolean", default: false },
  },
});
const SLOW_HOST = "127.0.9.9";
const SLOW_MS = 200;
/** As many as its 64 slots finish in three seconds. */
const SLOW_BACKLOG = 960;
const PER_SECOND = 200;
const LATENCY_ACTIONS = 500;

const few = Array.from({ length: 50 }, (_, n) => `127.0.1.${n + 1}`);
const many = Array.from({ length: 1_000 }, (_, n) => `127.0.${2 + Math.floor(n / 250)}.${1 + (n % 250)}`);

await using stack = new AsyncDisposableStack();
const tls = stack.use(makeTargetTls(["127.0.0.1", SLOW_HOST, ...few]));
const slow = { HOST: "0.0.0.0", SLOW_HOST, SLOW_MS: String(SLOW_MS) };
const target = stack.use(await serve("target.ts", { ...tls.targetEnv, ...slow }));
const service = stack.use(await outgate({ port: await freePort(), env: tls.callerEnv }));
const scheme = values.https ? "https" : "http";
const port = values.https ? target.securePort : target.port;

let callbacks = 0;
const contenders: Contender[] = [
  { ...toHosts("1 host", ["127.0.0.1"]), ...load() },
  { ...toHosts("50 hosts", few), ...load() },
  // Its certificate would be large.
  ...(values.https ? [] : [{ ...toHosts("1000 hosts", many), ...load() }]),
  { ...mixed(), ...load() },
];
const rounds = await takeRounds(contenders, { rounds: Number(values.rounds), seconds: Number(values.seconds) });
for (const { name } of contenders.slice(1)) {
  console.log(`${name}, completed, as a share of one host: ${ratioLine(rounds, [name, "1 host"], "completedPerS")}`);
  console.log(`${name}, processor, as a share of one host: ${ratioLine(rounds, [name, "1 host"], "cpuUs")}`);
}
await besideSlowHost();

function load(): Pick<Contender, "connections" | "pids"> {
  return { connections: Number(values.connections), pids: [service.process.pid] };
}

function toHosts(name: string, hosts: readonly string[]): Measured {
  const request = (turn: number, body: object) => ({ url: urlOf(hosts[turn % hosts.length] ?? ""), body });
  return { ...common(name), request };
}

/** A third each; a callback is a call more to the target. */
function mixed(): Measured & Pick<Contender, "callsFor"> {
  const request = (turn: number, body: object) => {
    const url = urlOf("127.0.0.1");
    if (turn % 3 === 0) return { url, method: "GET" };
    if (turn % 3 === 1) return { url, body };
    callbacks += 1;
    return { url, body, callback: `${url}callback` };
  };
  const callsFor = (created: number) => {
    const expected = created + callbacks;
    callbacks = 0;
    return expected;
  };
  return { ...common("mixed"), request, callsFor };
}

function common(name: string): Measured {
  return {
    name,
    urls: [`http://127.0.0.1:${service.port}/v1/actions`],
    targetUrl: urlOf("127.0.0.1"),
    statsUrl: `http://127.0.0.1:${target.port}/stats`,
  };
}

function urlOf(host: string): string {
  return `${scheme}://${host}:${port}/`;
}

/** In turn with a backlog for the slow host and without. */
async function besideSlowHost(): Promise<void> {
  const others = toHosts("49 hosts", few.slice(1));
  const slowOne = toHosts("slow host", [SLOW_HOST]);
  const shares: Record<"p50" | "p99", number[]> = { p50: [], p99: [] };
  for (let round = 0; round < Number(values.rounds); round += 1) {
    const alone = await delaysAt(others, PER_SECOND, LATENCY_ACTIONS);
    await Promise.all(Array.from({ length: SLOW_BACKLOG }, (_, n) => create(slowOne, n, {})));
    const beside = await delaysAt(others, PER_SECOND, LATENCY_ACTIONS);
    await settled(slowOne, 0);
    const line = [
      `49 hosts at ${PER_SECOND}/s: p50 ${ms(alone, 0.5)}, p99 ${ms(alone, 0.99)};`,
      `beside a slow host with a backlog: p50 ${ms(beside, 0.5)}, p99 ${ms(beside, 0.99)}`,
    ].join(" ");
    console.log(line + (round === 0 ? "  (warm-up, not counted)" : ""));
    if (round === 0) continue;
    shares.p50.push(quantile(beside, 0.5) / quantile(alone, 0.5));
    shares.p99.push(quantile(beside, 0.99) / quantile(alone, 0.99));
  }
  console.log(
    `beside a slow host, as a share of without: p50 ${median(shares.p50).toFixed(2)}, p99 ${median(shares.p99).toFixed(2)}`,
  );
}

function ms(times: readonly number[], share: number): string {
  return `${quantile(times, share).toFixed(2)} ms`;
}
