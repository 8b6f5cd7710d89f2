import { API_KEY } from "./processes.ts";
import { now, quantile } from "./time.ts";

/** How long the last calls may take to reach the target. */
const ARRIVAL_MS_MAX = 30_000;

/** Services that create what they are asked for at the target; more than one are nodes on one database, asked in turn. */
export interface Measured {
  readonly name: string;
  readonly urls: readonly string[];
  readonly targetUrl: string;
  /** Where the target tells what it has received, if it isn't `stats` below its address. */
  readonly statsUrl?: string;
  /** Where `?status=pending` tells whether anything is left to do, if it isn't the first of `urls`. */
  readonly statusUrl?: string;
  /** What is created at a turn, if it isn't a POST to the target. */
  readonly request?: (turn: number, body: object) => object;
}

export interface Created {
  readonly created: number;
  readonly startedMs: number;
  readonly elapsedS: number;
}

/** Waits until the target has been called so many times since its numbers were read, or much longer than that takes. */
export async function arrivals(measured: Measured, count: number, of: "calls" | "timed" = "calls"): Promise<void> {
  const url = new URL("/calls", statsUrlOf(measured)).href;
  const untilMs = now() + ARRIVAL_MS_MAX;
  while (now() < untilMs) {
    const arrived = (await (await fetch(url)).json()) as { calls: number; timed: number };
    if (arrived[of] >= count) return;
    await Bun.sleep(5);
  }
}

export function statsUrlOf({ statsUrl, targetUrl }: Measured): string {
  return statsUrl ?? `${targetUrl}stats`;
}

/** Creates for so many seconds; each connection waits for its answer before it creates again. */
export async function createFor(measured: Measured, seconds: number, connections: number): Promise<Created> {
  const startedMs = now();
  const untilMs = startedMs + seconds * 1_000;
  let created = 0;
  const worker = async (connection: number) => {
    for (let n = connection; now() < untilMs; n += 1) {
      await create(measured, n, {});
      created += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, connection) => worker(connection)));
  return { created, startedMs, elapsedS: (now() - startedMs) / 1_000 };
}

/** Creates one by the node whose turn it is. */
export async function create({ urls, targetUrl, request }: Measured, turn: number, body: object): Promise<void> {
  const url = urls[turn % urls.length] ?? "";
  const answer = await fetch(url, {
    method: "POST",
    headers: { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify(request === undefined ? { url: targetUrl, body } : request(turn, body)),
  });
  // Restate answers 202.
  if (answer.status !== 201 && answer.status !== 202)
    throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
  await answer.arrayBuffer();
}

/** Waits until nothing is pending or active; seconds since the start of the round. */
export async function settled({ urls, statusUrl }: Measured, startedMs: number): Promise<number> {
  for (const status of ["pending", "active"]) {
    while (await hasActions(statusUrl ?? urls[0] ?? "", status)) await Bun.sleep(10);
  }
  return (now() - startedMs) / 1_000;
}

async function hasActions(url: string, status: string): Promise<boolean> {
  const answer = await fetch(`${url}?limit=1&status=${status}`, { headers: { Authorization: `Bearer ${API_KEY}` } });
  const { data } = (await answer.json()) as { data: unknown[] };
  return data.length > 0;
}

/** Milliseconds from the client's call to its arrival at the target, of each action, at a constant rate. */
export async function delaysAt(measured: Measured, perSecond: number, count: number): Promise<readonly number[]> {
  await fetch(statsUrlOf(measured));
  const startMs = now();
  const creates: Promise<void>[] = [];
  for (let n = 0; n < count; n += 1) {
    const waitMs = startMs + (n * 1_000) / perSecond - now();
    if (waitMs > 0) await Bun.sleep(waitMs);
    creates.push(create(measured, n, { sentMs: now() }));
  }
  await Promise.all(creates);
  await arrivals(measured, count, "timed");
  const { underWayMs } = (await (await fetch(statsUrlOf(measured))).json()) as { underWayMs: number[] };
  return underWayMs;
}

/** The delays at a constant rate, as a line for the report. */
export async function latency(measured: Measured, perSecond: number, count: number): Promise<string> {
  const delays = await delaysAt(measured, perSecond, count);
  return (
    `${measured.name}: create to target at ${perSecond}/s: p50 ${quantile(delays, 0.5).toFixed(2)} ms, ` +
    `p99 ${quantile(delays, 0.99).toFixed(2)} ms (${delays.length} of ${count} actions)`
  );
}
