/**
 * Measures actions created and completed per second on a libSQL server that is so many milliseconds away and back: commits go one
 * after the other, and each takes several round trips. With one caller each commit has one write, with 64 they share it.
 *
 *   bun bench/remote.ts [--round-trip-ms 0,30] [--seconds 5] [--connections 1,64]
 */
import { parseArgs } from "node:util";
import { findSqld, startSqld } from "../test/support/sqld.ts";
import { createFor, type Measured, settled } from "./parts/load.ts";
import { freePort, outgate, serve } from "./parts/processes.ts";

const { values } = parseArgs({
  options: {
    "round-trip-ms": { type: "string", default: "0,30" },
    seconds: { type: "string", default: "5" },
    connections: { type: "string", default: "1,64" },
  },
});
/** Until then the compiler takes a good part of the processor. */
const WARM_UP_SECONDS = 2;
const SECRET_KEY = "5f".repeat(32);

const program = await findSqld();
if (program === null) throw new Error("sqld can't be installed here.");
await using target = await serve("target.ts");
const targetUrl = `http://127.0.0.1:${target.port}/`;

for (const roundTripMs of values["round-trip-ms"].split(",").map(Number)) {
  await using sqld = await startSqld(program);
  const env = { TO: new URL(sqld.url).port, DELAY_MS: String(roundTripMs / 2) };
  await using proxy = await serve("delay-proxy.ts", env);
  const url = `http://127.0.0.1:${roundTripMs === 0 ? env.TO : proxy.port}`;
  await using service = await outgate({
    port: await freePort(),
    env: { DATABASE_URL: url, SECRET_KEY, LOG_LEVEL: "warn" },
  });
  const urls = [`http://127.0.0.1:${service.port}/v1/actions`];
  const measured: Measured = { name: `${roundTripMs} ms`, urls, targetUrl };
  for (const connections of values.connections.split(",").map(Number)) {
    const round = async (seconds: number) => {
      await fetch(`${targetUrl}stats`);
      const { created, startedMs, elapsedS } = await createFor(measured, seconds, connections);
      return { created: created / elapsedS, completed: created / (await settled(measured, startedMs)) };
    };
    await round(WARM_UP_SECONDS);
    const { created, completed } = await round(Number(values.seconds));
    console.log(
      `${roundTripMs} ms away and back, ${connections} callers: ` +
        `${created.toFixed(1)} created/s, ${completed.toFixed(1)} completed/s`,
    );
  }
}
