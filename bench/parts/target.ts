/**
 * The target of the benches, a process of its own: counts requests, and measures the delay of those whose body says
 * when they were sent. `GET /stats` returns and resets the numbers, `GET /calls` only returns how many
 * calls there were, and how many said when they were sent.
 * `FILE` in the environment names a log file, `HOST` an address to listen on, `SLOW_HOST` the host whose requests wait
 * for `SLOW_MS`. With `TLS_KEY` and `TLS_CERT` it serves https on a second port too, which
 * stands second on its first line.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { now } from "./time.ts";

const logFile = process.env["FILE"];
const delayMs = Number(process.env["DELAY_MS"] ?? 0);
const hostname = process.env["HOST"] ?? "127.0.0.1";
const slowHost = process.env["SLOW_HOST"] ?? null;
const slowMs = Number(process.env["SLOW_MS"] ?? 0);
let calls = 0;
let flying = 0;
let underWayMs: number[] = [];

const server = Bun.serve({
  port: Number(process.env["PORT"] ?? 0),
  hostname,
  fetch: answer,
});
const [keyFile, certFile] = [process.env["TLS_KEY"], process.env["TLS_CERT"]];
if (keyFile === undefined || certFile === undefined) {
  console.log(server.port);
} else {
  const tls = { key: readFileSync(keyFile), cert: readFileSync(certFile) };
  const secure = Bun.serve({ port: 0, hostname, tls, fetch: answer });
  console.log(`${server.port} ${secure.port}`);
}

async function answer(request: Request): Promise<Response> {
  const path = request.method === "GET" ? new URL(request.url).pathname : null;
  if (path === "/calls") return Response.json({ calls, timed: underWayMs.length });
  if (path === "/stats") {
    const stats = { calls, flying, underWayMs };
    calls = 0;
    underWayMs = [];
    return Response.json(stats);
  }
  const arrivedMs = now();
  const body = request.method === "GET" ? {} : ((await request.json()) as { sentMs?: number; key?: string });
  calls += 1;
  if (body.sentMs !== undefined) underWayMs.push(arrivedMs - body.sentMs);
  // Written before the answer: a call that is not in this file has not been answered.
  if (logFile !== undefined) {
    const attempt = request.headers.get("x-outgate-attempt");
    appendFileSync(logFile, `${request.headers.get("webhook-id")} ${attempt} ${body.key ?? ""}\n`);
  }
  flying += 1;
  const isSlow = slowHost !== null && request.headers.get("host")?.startsWith(`${slowHost}:`) === true;
  if (isSlow || delayMs > 0) await Bun.sleep(isSlow ? slowMs : delayMs);
  flying -= 1;
  return new Response("ok");
}
