/**
 * The receiver of callbacks in the benches, a process of its own: logs each request to `FILE`, one line each:
 * `webhook-id`, event, action, answer. Every fiftieth callback is refused the first time.
 */
import { appendFileSync } from "node:fs";

const logFile = process.env["FILE"] ?? "/dev/null";
const seen = new Set<string>();

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const id = request.headers.get("webhook-id") ?? "";
    const { type, data } = (await request.json()) as { type: string; data: { id: string } };
    const status = seen.has(id) || seen.size % 50 !== 49 ? 200 : 503;
    seen.add(id);
    // Written before the answer: what is not in this file has not been answered.
    appendFileSync(logFile, `${id} ${type} ${data.id} ${status}\n`);
    return new Response(null, { status });
  },
});
console.log(server.port);
