import { createPrune } from "../../src/app/housekeeping.ts";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openFile } from "../../db/libsql/file.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import type { LogFields } from "../../src/observability/log.ts";
import { maxGapMs } from "../db/event-loop.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { answering } from "../actions/senders.ts";
import { runStatements } from "../../db/commands/statements.ts";

const DAY_MS = 86_400_000;

const GO_ON = new AbortController().signal;

/** The prune job, of 30 days, and what it logged. It pauses for a turn only, which is harder for others. */
function pruneOf({ store: { upkeep, file } }: Engine) {
  const logged: (LogFields | undefined)[] = [];
  const log = { info: (_event: string, fields?: LogFields) => void logged.push(fields) };
  const after = (_delayMs: number, run: () => void) => {
    setImmediate(run);
    return () => {};
  };
  return { prune: createPrune({ upkeep, file, log, clock: { after } }, 30), logged };
}

describe("retention", () => {
  test("deletes what finished so many days ago, and nothing that is younger or not finished", async () => {
    await using engine = await openEngine({ sender: answering(answered(200)) });
    const { clock, actionService, owner } = engine;
    const old = await engine.create({});
    const held = await engine.create({ approve: true });
    await engine.saw(old.id, { status: "completed" });
    clock.advance(DAY_MS);
    const young = await engine.create({});
    await engine.saw(young.id, { status: "completed" });
    const { prune, logged } = pruneOf(engine);
    clock.advance(29 * DAY_MS - 1);
    await prune(clock.now(), GO_ON);
    expect((await actionService.get(owner, old.id)).status).toBe("completed");
    clock.advance(1);
    await prune(clock.now(), GO_ON);
    expect(await actionService.get(owner, old.id).catch(codeOf)).toBe("not_found");
    expect(await actionService.timeline(owner, old.id).catch(codeOf)).toBe("not_found");
    expect((await actionService.get(owner, young.id)).status).toBe("completed");
    expect((await actionService.get(owner, held.id)).status).toBe("awaiting_approval");
    expect(logged).toEqual([{ count: 1 }]);
  });

  test("begins no further step when the service stops", async () => {
    await using engine = await openEngine({ starts: false });
    const { clock, actionService, owner } = engine;
    const { id } = await engine.create({});
    await actionService.cancel(owner, id, null);
    clock.advance(31 * DAY_MS);
    const { prune, logged } = pruneOf(engine);
    await prune(clock.now(), AbortSignal.abort());
    expect({ logged, status: (await actionService.get(owner, id)).status }).toEqual({
      logged: [],
      status: "cancelled",
    });
  });

  test("of 20,000 actions holds up neither the event loop nor whoever writes meanwhile", async () => {
    await using engine = await openEngine({ starts: false });
    const { clock, actionService, owner } = engine;
    const { id } = await engine.create({ body: JSON.stringify({ a: "x".repeat(300) }), headers: { "X-A": "1" } });
    await actionService.cancel(owner, id, null);
    await multiply(engine.folder, id, 19_999);
    clock.advance(31 * DAY_MS);
    const { prune, logged } = pruneOf(engine);
    const waits: number[] = [];
    let isOver = false;
    const client = async () => {
      while (!isOver) {
        const began = performance.now();
        await engine.create({ approve: true });
        waits.push(performance.now() - began);
        await Bun.sleep(5);
      }
    };
    // What this machine does to a loop that has nothing to do.
    const idleGapMs = await maxGapMs(() => Bun.sleep(1_000));
    const began = performance.now();
    const clients = client();
    const gapMs = await maxGapMs(() => prune(clock.now(), GO_ON));
    isOver = true;
    await clients;
    const seconds = (performance.now() - began) / 1_000;
    // Of some eighty waits the 99th percentile would be the worst one, which a busy disk alone can cause.
    const p95Ms = waits.toSorted((a, b) => a - b)[Math.floor(waits.length * 0.95)] ?? 0;
    console.log(
      `retention: 20,000 in ${seconds.toFixed(1)} s, event-loop gap ${gapMs.toFixed(0)} ms (idle ${idleGapMs.toFixed(0)}), ` +
        `${waits.length} creates meanwhile, p95 ${p95Ms.toFixed(0)} ms`,
    );
    expect(logged).toEqual([{ count: 20_000 }]);
    expect(await engine.store.actions.waiting()).toMatchObject({ awaiting_approval: waits.length });
    // In one piece 100,000 made these 1.4 s and 2.7 s; a machine that does other things makes gaps of its own.
    expect(gapMs).toBeLessThan(Math.max(300, 4 * idleGapMs));
    // A write that waits for all of it waits as long as all of it takes, on whatever machine.
    expect(p95Ms).toBeLessThan(Math.max(300, 250 * seconds));
  }, 120_000);
});

const codeOf = (error: unknown) => (error instanceof DomainError ? error.code : error);

/** Copies an action with its timeline, by hand. */
async function multiply(folder: string, id: string, copies: number): Promise<void> {
  const file = openFile(join(folder, "outgate.db"));
  const copy = async (table: string, own: Readonly<Record<string, string>>) => {
    const columns = await file.read({ sql: `SELECT name FROM pragma_table_info('${table}')`, args: [] });
    const names = columns.map(({ name }) => String(name)).filter((name) => name !== "seq");
    const values = names.map((name) => own[name] ?? name).join(", ");
    const key = table === "actions" ? "id" : "action_id";
    const text = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${copies})
      INSERT INTO ${table} (${names.join(", ")}) SELECT ${values} FROM n CROSS JOIN ${table} WHERE ${key} = ?`;
    await runStatements(file, [{ sql: text, args: [id] }]);
  };
  const name = "'act_00' || printf('%024d', i)";
  await copy("actions", { id: name });
  await copy("timeline", { action_id: name });
  await file.close();
}
