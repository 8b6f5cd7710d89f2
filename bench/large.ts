/**
 * Measures how long the event loop stands still at most while the service claims and sends actions of a megabyte that all
 * became due at once: made while the account was paused, then resumed by a fresh process.
 *
 *   bun bench/large.ts [--count 192] [--rounds 3] [--hosts 4] [--checkout ../before]
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { settled } from "./parts/load.ts";
import { API_KEY, freePort, outgate, serve } from "./parts/processes.ts";
import { median, now } from "./parts/time.ts";

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "192" },
    rounds: { type: "string", default: "3" },
    hosts: { type: "string", default: "4" },
    checkout: { type: "string" },
  },
});
const root = join(import.meta.dir, "..");
const checkout = values.checkout === undefined ? root : resolve(values.checkout);
/** So that a request with its URL stays below the limit of a megabyte. */
const BODY_CHARS = 1_000_000;
const HEADERS = { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" };

await using target = await serve("target.ts", { HOST: "0.0.0.0" });
const gaps: number[] = [];
for (let round = 0; round < Number(values.rounds); round += 1) {
  const { gapMs, seconds } = await takeRound();
  gaps.push(gapMs);
  console.log(
    `${values.count} actions of 1 MB in ${seconds.toFixed(1)} s, largest gap of the event loop ${gapMs.toFixed(0)} ms`,
  );
}
console.log(
  `largest gap of the event loop: median ${median(gaps).toFixed(0)} ms, most ${Math.max(...gaps).toFixed(0)} ms`,
);

async function takeRound(): Promise<{ readonly gapMs: number; readonly seconds: number }> {
  const folder = mkdtempSync(join(tmpdir(), "outgate-bench-large-"));
  try {
    const pauseId = await fill(folder);
    await using service = await outgate({
      port: await freePort(),
      folder,
      checkout,
      env: { BUN_OPTIONS: `--preload ${join(root, "test/support/gap-probe.ts")}` },
    });
    const probe = probeUrlIn(folder);
    const url = `http://127.0.0.1:${service.port}/v1`;
    await fetch(probe);
    const startedMs = now();
    await asked(`${url}/pauses/${pauseId}`, "DELETE", null);
    const measured = { name: "large", urls: [`${url}/actions`], targetUrl: "", statsUrl: "" };
    // A list of what is pending would read their bodies.
    while ((await callsOf("calls")) < Number(values.count)) await Bun.sleep(10);
    const seconds = await settled(measured, startedMs);
    const gapMs = Number(await (await fetch(probe)).text());
    const calls = await callsOf("stats");
    if (calls !== Number(values.count)) throw new Error(`The target got ${calls} calls of ${values.count}.`);
    return { gapMs, seconds };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function callsOf(path: "calls" | "stats"): Promise<number> {
  const { calls } = (await (await fetch(`http://127.0.0.1:${target.port}/${path}`)).json()) as { calls: number };
  return calls;
}

/** Creates all of them in a paused account; the pause's id. */
async function fill(folder: string): Promise<string> {
  await using service = await outgate({ port: await freePort(), folder, checkout });
  const url = `http://127.0.0.1:${service.port}/v1`;
  const { id } = (await asked(`${url}/pauses`, "POST", { reason: "bench" })) as { id: string };
  const text = "x".repeat(BODY_CHARS);
  for (let n = 0; n < Number(values.count); n += 1) {
    const host = `127.0.1.${1 + (n % Number(values.hosts))}`;
    await asked(`${url}/actions`, "POST", { url: `http://${host}:${target.port}/`, body: { text } });
  }
  return id;
}

async function asked(url: string, method: string, body: object | null): Promise<unknown> {
  const answer = await fetch(url, {
    method,
    headers: HEADERS,
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url} answered ${answer.status}: ${text}`);
  return text === "" ? null : JSON.parse(text);
}

/** The service of this round has one line for it. */
function probeUrlIn(folder: string): string {
  for (const line of readFileSync(join(folder, "outgate.log"), "utf8").split("\n")) {
    if (!line.includes('"test.probe"')) continue;
    return (JSON.parse(line) as { url: string }).url;
  }
  throw new Error("The service has no probe.");
}
