/**
 * An account that exceeds its limit, in a process of its own. `POST /start` with `{ url, key, body, perSecond }` begins
 * (`perSecond` 0: as fast as 32 connections can), `POST /stop` ends and returns the number of requests by status.
 */
import { now } from "./time.ts";

interface Flood {
  readonly url: string;
  readonly key: string;
  readonly body: string;
  readonly perSecond: number;
}

const CONNECTIONS = 32;
let isOn = false;
let statuses: Record<string, number> = {};
let workers: Promise<void>[] = [];

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    if (new URL(request.url).pathname === "/start") {
      const flood = (await request.json()) as Flood;
      isOn = true;
      statuses = {};
      workers =
        flood.perSecond === 0 ? Array.from({ length: CONNECTIONS }, () => floodUnlimited(flood)) : [floodAtRate(flood)];
      return new Response();
    }
    isOn = false;
    await Promise.all(workers);
    return Response.json(statuses);
  },
});
console.log(server.port);

async function floodUnlimited(flood: Flood): Promise<void> {
  while (isOn) await send(flood);
}

/** At a constant rate, however long the answers take. */
async function floodAtRate(flood: Flood): Promise<void> {
  const startedMs = now();
  const sent: Promise<void>[] = [];
  for (let count = 0; isOn; count += 1) {
    const waitMs = startedMs + (count * 1_000) / flood.perSecond - now();
    if (waitMs > 1) await Bun.sleep(waitMs);
    sent.push(send(flood));
  }
  await Promise.all(sent);
}

async function send({ url, key, body }: Flood): Promise<void> {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const status = await fetch(url, { method: "POST", headers, body }).then(
    async (answer) => {
      await answer.arrayBuffer();
      return String(answer.status);
    },
    () => "no answer",
  );
  statuses[status] = (statuses[status] ?? 0) + 1;
}
