/**
 * Measures how long an action takes from the caller to its target: at several rates over http and https, and to a target
 * that is far away, by way of a proxy that holds each byte for `--delay-ms` in each direction. The first second of each
 * run warms up and is not counted.
 *
 *   bun bench/latency.ts [--rates 10,100,1000] [--far-rates 10,100] [--seconds 3] [--rounds 3] [--delay-ms 10]
 *     [--handshake] [--json results/latency.json]
 *
 * `--handshake` also counts the round trip of a TCP handshake with the far target, which a proxy on this machine hides.
 */
import { parseArgs } from "node:util";
import { delaysAt, type Measured } from "./parts/load.ts";
import { freePort, outgate, serve } from "./parts/processes.ts";
import { saveFigures } from "./parts/figures.ts";
import { median, quantile } from "./parts/time.ts";
import { makeTargetTls } from "./parts/tls.ts";

const { values } = parseArgs({
  options: {
    rates: { type: "string", default: "10,100,1000" },
    "far-rates": { type: "string", default: "10,100" },
    seconds: { type: "string", default: "3" },
    rounds: { type: "string", default: "3" },
    "delay-ms": { type: "string", default: "10" },
    handshake: { type: "boolean", default: false },
    json: { type: "string" },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);

await using stack = new AsyncDisposableStack();
const tls = stack.use(makeTargetTls());
const target = stack.use(await serve("target.ts", tls.targetEnv));
const statsUrl = `http://127.0.0.1:${target.port}/stats`;
const distance = { DELAY_MS: values["delay-ms"], HANDSHAKE: values.handshake ? "1" : "0" };
const farHttp = stack.use(await serve("delay-proxy.ts", { ...distance, TO: String(target.port) }));
const farHttps = stack.use(await serve("delay-proxy.ts", { ...distance, TO: String(target.securePort) }));
const service = stack.use(await outgate({ port: await freePort(), env: tls.callerEnv }));

const near: readonly Measured[] = [
  measuredTo("http", `http://127.0.0.1:${target.port}/`),
  measuredTo("https", `https://127.0.0.1:${target.securePort}/`),
];
const far: readonly Measured[] = [
  measuredTo(`http, ${values["delay-ms"]} ms away`, `http://127.0.0.1:${farHttp.port}/`),
  measuredTo(`https, ${values["delay-ms"]} ms away`, `https://127.0.0.1:${farHttps.port}/`),
];

interface Figure {
  readonly name: string;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}
const figures: Figure[] = [];
for (const perSecond of ratesOf(values.rates)) await measure(near, perSecond);
for (const perSecond of ratesOf(values["far-rates"])) await measure(far, perSecond);
if (values.json !== undefined) saveFigures(values.json, figures);

/** All take their turn in every round; the figures are medians of the rounds. */
async function measure(all: readonly Measured[], perSecond: number): Promise<void> {
  const taken = all.map((measured) => ({ measured, p50s: [] as number[], p99s: [] as number[] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { measured, p50s, p99s } of taken) {
      await delaysAt(measured, perSecond, perSecond);
      const count = perSecond * seconds;
      const delays = await delaysAt(measured, perSecond, count);
      if (delays.length !== count) throw new Error(`${measured.name}: ${delays.length} of ${count} actions arrived.`);
      p50s.push(quantile(delays, 0.5));
      p99s.push(quantile(delays, 0.99));
    }
  }
  for (const { measured, p50s, p99s } of taken) {
    const figure = { name: measured.name, perSecond, p50Ms: median(p50s), p99Ms: median(p99s) };
    figures.push(figure);
    console.log(
      `${figure.name}: create to target at ${perSecond}/s: p50 ${figure.p50Ms.toFixed(2)} ms, p99 ${figure.p99Ms.toFixed(2)} ms ` +
        `(p50 of ${rounds} rounds ${p50s.map((ms) => ms.toFixed(2)).join(", ")})`,
    );
  }
}

function measuredTo(name: string, targetUrl: string): Measured {
  return { name, urls: [`http://127.0.0.1:${service.port}/v1/actions`], targetUrl, statsUrl };
}

function ratesOf(text: string): readonly number[] {
  return text
    .split(",")
    .map(Number)
    .filter((rate) => rate > 0);
}
