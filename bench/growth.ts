/**
 * Measures what a table of many actions costs at the service's own door: GET /v1/actions/{id} of random ids and of the
 * newest, a page of the list, and an action from create to its end; at each size in turn, in one run. Shares are those of
 * requests per second, and of processor time, to the smallest table.
 *
 *   bun bench/growth.ts [--sizes 1000,100000,1000000] [--rounds 4] [--seconds 1.5] [--connections 16]
 *     [--folder /var/tmp/outgate-growth] [--checkout ../before] [--json results/growth.json]
 *
 * The tables are written first (a minute for 1,000,000 rows); in a `--folder` they stay for the next run.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { saveFigures } from "./parts/figures.ts";
import { seedActions } from "./parts/seed.ts";
import { treeCpuMs } from "./parts/cpu.ts";
import { createFor, settled } from "./parts/load.ts";
import { API_KEY, freePort, outgate, type Served, serve } from "./parts/processes.ts";
import { median, now } from "./parts/time.ts";

const { values } = parseArgs({
  options: {
    sizes: { type: "string", default: "1000,100000,1000000" },
    rounds: { type: "string", default: "4" },
    seconds: { type: "string", default: "1.5" },
    connections: { type: "string", default: "16" },
    folder: { type: "string" },
    checkout: { type: "string" },
    json: { type: "string" },
  },
});
const sizes = values.sizes.split(",").map(Number);
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const connections = Number(values.connections);
const NEWEST = 50;
const HEADERS = { Authorization: `Bearer ${API_KEY}` };

interface Subject {
  readonly rows: number;
  readonly service: Served;
  readonly url: string;
  /** Ids from all over the table, in no order. */
  readonly sample: readonly string[];
}

/** By the name of what was asked for: how many a second, and microseconds of the processor each. */
type Figures = Map<string, { readonly perS: number; readonly cpuUs: number }>;

await using stack = new AsyncDisposableStack();
const target = stack.use(await serve("target.ts"));
const targetUrl = `http://127.0.0.1:${target.port}/`;
const folder = values.folder ?? mkdtempSync(join(tmpdir(), "outgate-bench-growth-"));
if (values.folder === undefined) stack.defer(() => rmSync(folder, { recursive: true, force: true }));
const subjects: Subject[] = [];
for (const rows of sizes) subjects.push(await subjectOf(rows));

const measured = subjects.map((): Figures[] => []);
await takeTurns(readsOf);
// Afterwards, since it makes the smallest table larger.
await takeTurns(livesOf);
const names = new Set(measured[0]?.flatMap((figures) => [...figures.keys()]));
const figures: object[] = [];
for (const name of names) {
  for (const [at, rows] of sizes.entries()) {
    const middle = (figure: "perS" | "cpuUs") => median(figuresOf(at, name, figure));
    const share = (figure: "perS" | "cpuUs") => {
      const least = figuresOf(0, name, figure);
      const shares = figuresOf(at, name, figure).map((value, round) => value / (least[round] ?? Number.NaN));
      return median(shares);
    };
    figures.push({ name, rows, perS: middle("perS"), cpuUs: middle("cpuUs"), share: share("perS") });
    console.log(
      `${name} at ${rows} rows: ${middle("perS").toFixed(0)}/s (${share("perS").toFixed(3)} of the smallest), ` +
        `${middle("cpuUs").toFixed(0)} us of the processor (${share("cpuUs").toFixed(3)})`,
    );
  }
}
if (values.json !== undefined) saveFigures(values.json, figures);

function figuresOf(at: number, name: string, figure: "perS" | "cpuUs"): readonly number[] {
  return (measured[at] ?? []).flatMap((round) => round.get(name)?.[figure] ?? []);
}

/** All sizes in every round; the first round is not counted. */
async function takeTurns(measure: (subject: Subject) => Promise<Figures>): Promise<void> {
  for (let round = 0; round <= rounds; round += 1) {
    for (const [at, subject] of subjects.entries()) {
      const taken = await measure(subject);
      if (round > 0) measured[at]?.push(taken);
    }
  }
}

/** A service on so many finished actions. */
async function subjectOf(rows: number): Promise<Subject> {
  const path = join(folder, String(rows));
  const sampleFile = join(path, "sample.json");
  if (!existsSync(sampleFile)) {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { recursive: true });
    const began = now();
    writeFileSync(sampleFile, JSON.stringify(await seedActions(path, API_KEY, rows)));
    console.log(`${rows} rows written in ${((now() - began) / 1_000).toFixed(0)} s`);
  }
  const sample = JSON.parse(readFileSync(sampleFile, "utf8")) as string[];
  const checkout = values.checkout === undefined ? {} : { checkout: resolve(values.checkout) };
  const service = stack.use(await outgate({ port: await freePort(), folder: path, ...checkout }));
  return { rows, service, url: `http://127.0.0.1:${service.port}/v1/actions`, sample };
}

async function readsOf({ service, url, sample }: Subject): Promise<Figures> {
  const answer = await fetch(`${url}?limit=${NEWEST}`, { headers: HEADERS });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  const newest = data.map(({ id }) => id);
  const of = (ids: readonly string[]) => (turn: number) => `${url}/${ids[(turn * 7_919) % ids.length]}`;
  const pid = service.process.pid;
  return new Map([
    ["get, random ids", await reading(pid, of(sample))],
    ["get, newest", await reading(pid, of(newest))],
    ["list of 20 newest", await reading(pid, () => `${url}?limit=20`)],
  ]);
}

async function livesOf({ service, url }: Subject): Promise<Figures> {
  return new Map([["create to end", await living(service.process.pid, url)]]);
}

async function reading(pid: number, urlAt: (turn: number) => string) {
  const cpuMs = treeCpuMs([pid]);
  const startedMs = now();
  let turns = 0;
  const worker = async () => {
    while (now() < startedMs + seconds * 1_000) {
      const answer = await fetch(urlAt((turns += 1)), { headers: HEADERS });
      await answer.arrayBuffer();
      if (answer.status !== 200) throw new Error(`${urlAt(turns)} answered ${answer.status}.`);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  const elapsedS = (now() - startedMs) / 1_000;
  return { perS: turns / elapsedS, cpuUs: ((treeCpuMs([pid]) - cpuMs) * 1_000) / turns };
}

async function living(pid: number, url: string) {
  const service = { name: "growth", urls: [url], targetUrl };
  const cpuMs = treeCpuMs([pid]);
  const { created, startedMs } = await createFor(service, seconds, connections);
  const elapsedS = await settled(service, startedMs);
  return { perS: created / elapsedS, cpuUs: ((treeCpuMs([pid]) - cpuMs) * 1_000) / created };
}
