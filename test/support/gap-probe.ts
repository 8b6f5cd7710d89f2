import { isMainThread } from "node:worker_threads";
import { ownMs } from "./core.ts";

/**
 * Preloaded into a service under test: tells over HTTP the longest time in milliseconds that its event loop stood still of
 * itself since it was asked last. Its address is a line of the log.
 */
function probe(): void {
  let last = ownMs();
  let max = 0;
  const look = () => {
    const now = ownMs();
    max = Math.max(max, now - last);
    last = now;
  };
  setInterval(look, 1).unref();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch() {
      look();
      const told = String(max);
      max = 0;
      return new Response(told);
    },
  });
  server.unref();
  process.stdout.write(`${JSON.stringify({ event: "test.probe", url: String(server.url) })}\n`);
}

if (isMainThread) probe();
