/**
 * Kills the service with SIGKILL under load, again and again, and then checks: was an acknowledged action lost, was one
 * sent more often than its `retries`, is one stuck, and did the callback of each end arrive? Target, receiver of
 * callbacks and load are processes of their own, and sends are counted from their logs.
 *
 *   bun bench/kills.ts [--kills 50] [--seed 1]
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { mulberry } from "./parts/chance.ts";
import { API_KEY, freePort, outgate, serve } from "./parts/processes.ts";
import { quantile } from "./parts/time.ts";

const { values } = parseArgs({
  options: { kills: { type: "string", default: "50" }, seed: { type: "string", default: String(Date.now() % 1e6) } },
});
const kills = Number(values.kills);
const seed = Number(values.seed);
const chance = mulberry(seed);

const CREATORS = 32;
const RETRIES = 4;
const IN_FLIGHT_MIN = 20;
const TARGET_DELAY_MS = 40;

interface Acknowledged {
  readonly id: string;
  readonly key: string;
}

const folder = mkdtempSync(join(tmpdir(), "outgate-kills-"));
const logFile = join(folder, "target.log");
await using target = await serve("target.ts", { FILE: logFile, DELAY_MS: String(TARGET_DELAY_MS) });
const receivedFile = join(folder, "receiver.log");
await using receiver = await serve("receiver.ts", { FILE: receivedFile });
const callback = `http://127.0.0.1:${receiver.port}/`;
const targetUrl = `http://127.0.0.1:${target.port}/`;
const port = await freePort();
const url = `http://127.0.0.1:${port}/v1/actions`;
const env = { RETRY_BASE_MS: "50", RETRY_CAP_MS: "500", DISPATCH_PER_HOST: "128", LOG_LEVEL: "warn" };
const acknowledged: Acknowledged[] = [];
const inFlight: number[] = [];
const startsMs: number[] = [];
let unanswered = 0;
let receivedLines: ReadonlyMap<string, readonly Arrival[]> | null = null;

console.log(`seed ${seed}`);
for (let round = 0; round < kills; round += 1) {
  const startedMs = performance.now();
  const service = await outgate({ port, folder, env });
  startsMs.push(performance.now() - startedMs);
  let alive = true;
  const creators = Array.from({ length: CREATORS }, (_, n) => creator(`${round}-${n}`, () => alive));
  await Bun.sleep(100 + Math.floor(chance() * 900));
  inFlight.push(await waitForFlight());
  service.process.kill("SIGKILL");
  await service.process.exited;
  alive = false;
  await Promise.all(creators);
}

const last = await outgate({ port, folder, env });
const stuck = await settle();
const notifications = await delivered();
const actions = await everyAction();
const fates = await Promise.all([...actions.values()].filter(isFinal).map(fateOf));
await last[Symbol.asyncDispose]();

const sends = Map.groupBy(readFileSync(logFile, "utf8").trim().split("\n"), (line) => line.split(" ")[0] ?? "");
const lost = acknowledged.filter(({ id }) => !actions.has(id));
const oversent = [...sends].filter(([, lines]) => lines.length > RETRIES);
const untold = [...actions].filter(([id, { status }]) => status === "completed" && !sends.has(id));
const repeated = [...sends].filter(([, lines]) => lines.length > 1);
console.log(
  [
    `kills ${kills}, in flight at each: min ${Math.min(...inFlight)}, median ${quantile(inFlight, 0.5)}`,
    `acknowledged ${acknowledged.length}, unanswered ${unanswered}, rows ${actions.size}, sends ${[...sends.values()].flat().length}`,
    `acknowledged actions lost: ${lost.length}`,
    `actions sent more often than retries: ${oversent.length}`,
    `actions stuck: ${stuck}`,
    `completed without a send in the target's log: ${untold.length}`,
    `actions sent more than once (a kill after the send): ${repeated.length}`,
    ...callbackLines(),
    `start after a kill: median ${quantile(startsMs, 0.5).toFixed(0)} ms, max ${Math.max(...startsMs).toFixed(0)} ms`,
  ].join("\n"),
);
rmSync(folder, { recursive: true, force: true });
const unheard = fates.filter((fate) => fate === "missing" || fate === "under two ids").length;
process.exitCode = lost.length + oversent.length + stuck + untold.length + notifications + unheard === 0 ? 0 : 1;

/** Creates actions until the service dies; only answers of 201 count as acknowledged. */
async function creator(name: string, isAlive: () => boolean): Promise<void> {
  for (let n = 0; isAlive(); n += 1) {
    const key = `${name}-${n}`;
    try {
      const answer = await fetch(url, {
        method: "POST",
        headers: { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json", "Idempotency-Key": key },
        body: JSON.stringify({ url: targetUrl, retries: RETRIES, callback, body: { key } }),
      });
      const { id } = (await answer.json()) as { id: string };
      if (answer.status === 201) acknowledged.push({ id, key });
    } catch {
      unanswered += 1;
      return;
    }
  }
}

/** Waits, at most two seconds, until enough calls are in flight at the target. */
async function waitForFlight(): Promise<number> {
  for (let tries = 0; ; tries += 1) {
    const { flying } = (await (await fetch(`${targetUrl}stats`)).json()) as { flying: number };
    if (flying >= IN_FLIGHT_MIN || tries >= 200) return flying;
    await Bun.sleep(10);
  }
}

/** Waits until nothing is pending or active, a minute at most; returns how many are left. */
async function settle(): Promise<number> {
  const untilMs = performance.now() + 60_000;
  while (performance.now() < untilMs) {
    const left = (await page("status=pending")).data.length + (await page("status=active")).data.length;
    if (left === 0) return 0;
    await Bun.sleep(100);
  }
  return (await page("status=pending")).data.length + (await page("status=active")).data.length;
}

/** Waits until no callback is undelivered, a minute at most; returns how many are left. */
async function delivered(): Promise<number> {
  for (let tries = 0; ; tries += 1) {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const left = Number(/^outgate_outbox\{kind="callback"\} (\d+)$/m.exec(text)?.[1]);
    if (left === 0 || tries >= 600) return left;
    await Bun.sleep(100);
  }
}

type Fate = "arrived" | "arrived again" | "under two ids" | "given up" | "missing";

/** How the callback of an action's end ended. */
async function fateOf({ id, status }: Listed): Promise<Fate> {
  const lines = received().get(`action.${status} ${id}`) ?? [];
  if (new Set(lines.map(({ webhookId }) => webhookId)).size > 1) return "under two ids";
  const accepted = lines.filter((line) => line.status === "200").length;
  if (accepted > 0) return accepted === 1 ? "arrived" : "arrived again";
  const answer = await fetch(`${url}/${id}/timeline`, { headers: { Authorization: `Bearer ${API_KEY}` } });
  const { data } = (await answer.json()) as { data: readonly TimelineEntry[] };
  const newest = data.findLast(({ event }) => event === `action.${status}`);
  return newest?.delivered === false && newest.next_retry_at === null ? "given up" : "missing";
}

function callbackLines(): readonly string[] {
  const count = (fate: Fate) => fates.filter((one) => one === fate).length;
  const arrivals = [...received().values()].flat().length;
  return [
    `ends of actions ${fates.length}, callbacks received ${arrivals}, still owed ${notifications}`,
    `ends whose callback arrived once: ${count("arrived")}, more than once: ${count("arrived again")}`,
    `ends whose callback was given up, and says so: ${count("given up")}`,
    `ends whose callback is missing: ${count("missing")}, under two webhook-ids: ${count("under two ids")}`,
  ];
}

/** The receiver's log, by event and action id. */
function received(): ReadonlyMap<string, readonly Arrival[]> {
  receivedLines ??= Map.groupBy(
    readFileSync(receivedFile, "utf8")
      .trim()
      .split("\n")
      .map((line): Arrival => {
        const [webhookId = "", event = "", action = "", status = ""] = line.split(" ");
        return { webhookId, status, of: `${event} ${action}` };
      }),
    ({ of }) => of,
  );
  return receivedLines;
}

interface Arrival {
  readonly webhookId: string;
  readonly status: string;
  readonly of: string;
}

interface TimelineEntry {
  readonly event?: string;
  readonly delivered?: boolean;
  readonly next_retry_at?: string | null;
}

function isFinal({ status }: Listed): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

async function everyAction(): Promise<Map<string, Listed>> {
  const found = new Map<string, Listed>();
  for (let cursor: string | null = ""; cursor !== null;) {
    const { data, next_cursor }: Page = await page(cursor === "" ? "" : `cursor=${encodeURIComponent(cursor)}`);
    for (const action of data) found.set(action.id, action);
    cursor = next_cursor;
  }
  return found;
}

interface Listed {
  readonly id: string;
  readonly status: string;
}

interface Page {
  readonly data: readonly Listed[];
  readonly next_cursor: string | null;
}

async function page(query: string): Promise<Page> {
  const answer = await fetch(`${url}?limit=100&${query}`, { headers: { Authorization: `Bearer ${API_KEY}` } });
  if (!answer.ok) throw new Error(`The list answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Page;
}
