import { isMainThread } from "node:worker_threads";
import { watchGaps } from "../db/event-loop.ts";

/**
 * Preloaded into a service under test: tells over HTTP the longest time in milliseconds that its event loop stood still of
 * itself since it was asked last. Its address is a line of the log.
 */
function probe(): void {
  const gaps = watchGaps();
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(String(gaps.take())) });
  server.unref();
  process.stdout.write(`${JSON.stringify({ event: "test.probe", url: String(server.url) })}\n`);
}

if (isMainThread) probe();
