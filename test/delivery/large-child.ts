import { Database } from "bun:sqlite";
import { join } from "node:path";
import { maxGapMs } from "../db/event-loop.ts";
import { openEngine } from "../support/engine.ts";

/**
 * An engine alone in its process, on so many large actions that wait for it: pending ones, or such as a dead process left
 * active. It begins with the first line that it reads, and prints how long its event loop stood still at most.
 */
const [kind = "", folder = "", targets = "", count = ""] = process.argv.slice(2);

const LARGE = `'"' || hex(zeroblob(524284)) || '"'`;

const ORPHANED = "status = 'active', attempts = 1, due_at = NULL, lease_until = 1, started_at = 1,";

/** Stored small, and made large behind the service's back: nothing of them is in this process's memory then. */
async function fill(): Promise<void> {
  const engine = await openEngine({ folder, starts: false });
  const urls = targets.split(",");
  const url = (n: number) => urls[n % urls.length] ?? "";
  await Promise.all(Array.from({ length: Number(count) }, (_, n) => engine.create({ url: url(n), retries: 1 })));
  await engine.abandon();
  const database = new Database(join(folder, "outgate.db"));
  database.run(`UPDATE actions SET ${kind === "orphaned" ? ORPHANED : ""} body = ${LARGE}`);
  database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}

await fill();

const engine = await openEngine({ folder, starts: false });

const ended = new Set<string>();

const all = Promise.withResolvers<void>();

engine.bus.subscribe(({ id, status }) => {
  if (status === "completed" || status === "failed") ended.add(id);
  if (ended.size === Number(count)) all.resolve();
});

Bun.gc(true);

console.log("ready");

let gapMs = 0;

for await (const _ of console) {
  gapMs = await maxGapMs(async () => {
    await engine.start();
    await all.promise;
  });
  console.log(gapMs);
}
