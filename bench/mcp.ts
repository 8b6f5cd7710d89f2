/**
 * Measures calls of the tool `get` per second, as a share of the same read over REST in the same run, in both protocol
 * revisions. Rounds are interleaved, and the first is not counted; absolute rates depend on the machine.
 *
 *   bun bench/mcp.ts [--rounds 6] [--seconds 3] [--connections 16]
 */
import { parseArgs } from "node:util";
import { API_KEY, freePort, outgate } from "./parts/processes.ts";
import { now, quantile } from "./parts/time.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "3" },
    connections: { type: "string", default: "16" },
  },
});
const [rounds, seconds, connections] = [values.rounds, values.seconds, values.connections].map(Number) as [
  number,
  number,
  number,
];

await using service = await outgate({ port: await freePort() });
const base = `http://127.0.0.1:${service.port}`;
const authorization = `Bearer ${API_KEY}`;
const id = await create();
const session = await initialize();

const CALL = { jsonrpc: "2.0", id: 1, method: "tools/call" } as const;
const params = { name: "get", arguments: { id } };
const json = { authorization, "content-type": "application/json", accept: "application/json, text/event-stream" };
const revision = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" };
const _meta = { ...revision, "io.modelcontextprotocol/clientCapabilities": {} };
const head = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "get" };

const ways = {
  "REST GET": () => fetch(`${base}/v1/actions/${id}`, { headers: { authorization } }),
  "tools/call get, 2026-07-28": () =>
    post({ ...json, ...head }, JSON.stringify({ ...CALL, params: { _meta, ...params } })),
  "tools/call get, 2025-11-25": () => post({ ...json, "mcp-session-id": session }, JSON.stringify({ ...CALL, params })),
};
const rates = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]));

for (let round = 0; round < rounds; round += 1) {
  for (const [name, way] of Object.entries(ways)) {
    const rate = await load(way);
    if (round > 0) rates.get(name)?.push(rate);
    console.log(`${name.padEnd(28)} ${rate.toFixed(0)}/s${round === 0 ? " (warm-up, not counted)" : ""}`);
  }
}
const rest = rates.get("REST GET") ?? [];
for (const [name, all] of rates) {
  const shares = all.map((rate, round) => rate / (rest[round] ?? Number.NaN));
  console.log(
    `${name}: median ${quantile(all, 0.5).toFixed(0)}/s, share of REST ${quantile(shares, 0.5).toFixed(3)} ` +
      `(min ${Math.min(...shares).toFixed(3)}, max ${Math.max(...shares).toFixed(3)}, ${shares.length} rounds, ${connections} connections)`,
  );
}

/** Calls per second: each worker waits for its answer and checks that it has the action. */
async function load(way: () => Promise<Response>): Promise<number> {
  const startedMs = now();
  const untilMs = startedMs + seconds * 1_000;
  let count = 0;
  const worker = async () => {
    while (now() < untilMs) {
      const text = await (await way()).text();
      if (!text.includes(id)) throw new Error(text);
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return count / ((now() - startedMs) / 1_000);
}

function post(headers: Record<string, string>, body: string): Promise<Response> {
  return fetch(`${base}/mcp`, { method: "POST", headers, body });
}

async function create(): Promise<string> {
  const body = JSON.stringify({ url: `${base}/health`, method: "POST", body: { order: 7 }, approve: true });
  const headers = { authorization, "content-type": "application/json" };
  const answer = await fetch(`${base}/v1/actions`, { method: "POST", headers, body });
  return ((await answer.json()) as { id: string }).id;
}

/** Begins a session as a client of 2025 does. */
async function initialize(): Promise<string> {
  const clientInfo = { name: "bench", version: "1" };
  const asked = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params: asked });
  const headers = { authorization, "content-type": "application/json", accept: "application/json, text/event-stream" };
  const answer = await post(headers, body);
  await answer.text();
  return answer.headers.get("mcp-session-id") ?? "";
}
