import { describe, expect, test } from "bun:test";
import type { ListFilter } from "../../src/actions/service.ts";
import { RETRY_BATCH_MAX } from "../../src/config/limits.ts";
import { openEngine } from "../support/engine.ts";
import { answered, aQuery } from "../support/factory.ts";
import { as, refusalOf } from "./callers.ts";
import { answering } from "./senders.ts";

type Engine = Awaited<ReturnType<typeof openEngine>>;

/** Actions that have failed at their only attempt. */
async function failed(engine: Engine, count: number, request: Parameters<Engine["create"]>[0] = {}): Promise<string[]> {
  const made = await Promise.all(Array.from({ length: count }, () => engine.create({ retries: 1, ...request })));
  for (const { id } of made) await engine.saw(id, { status: "failed" });
  return made.map(({ id }) => id);
}

const listOf = (filter: Partial<ListFilter> = {}): ListFilter => ({ ...aQuery({ statuses: ["failed"] }), ...filter });

const runOf = async (engine: Engine, id: string) => (await engine.actionService.get(engine.owner, id)).run;

describe("a bulk retry", () => {
  test("visits each action of the list once, in steps, also when it fails again meanwhile", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const ids = await failed(engine, RETRY_BATCH_MAX + 7);
    expect(await engine.actionService.countRetryable(engine.owner, listOf())).toEqual({
      count: ids.length,
      isMore: false,
    });
    const first = await engine.actionService.retryMany(engine.owner, listOf(), "The target is up again.");
    expect(first).toMatchObject({ retried: RETRY_BATCH_MAX, held: 0, refused: [], left: { count: 7, isMore: false } });
    for (const id of ids.slice(-RETRY_BATCH_MAX)) await engine.saw(id, { status: "failed", run: 2 });
    // What comes meanwhile was not asked for.
    const [young = ""] = await failed(engine, 1);
    const second = await engine.actionService.retryMany(engine.owner, listOf({ before: first.before }), null);
    expect(second).toMatchObject({ retried: 7, before: null, left: { count: 0, isMore: false } });
    const runs = await Promise.all(ids.map((id) => runOf(engine, id)));
    expect(runs).toEqual(ids.map(() => 2));
    expect(await runOf(engine, young)).toBe(1);
    expect(await engine.events(ids.at(-1) ?? "")).toContainEqual({
      type: "retried",
      actor: engine.owner.actor,
      reason: "The target is up again.",
    });
  });

  test("goes by the filter, and only by statuses that it names", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const [here = ""] = await failed(engine, 1, { url: "http://127.0.0.1:9/" });
    const [there = ""] = await failed(engine, 1, { url: "http://127.0.0.2:9/" });
    const stopped = await engine.create({ approve: true });
    await engine.actionService.cancel(engine.owner, stopped.id, null);
    for (const statuses of [[], ["completed", "pending"]] as const) {
      expect(await engine.actionService.countRetryable(engine.owner, listOf({ statuses }))).toEqual({
        count: 0,
        isMore: false,
      });
      expect((await engine.actionService.retryMany(engine.owner, listOf({ statuses }), null)).retried).toBe(0);
    }
    await engine.actionService.retryMany(engine.owner, listOf({ host: "127.0.0.2" }), null);
    expect([await runOf(engine, here), await runOf(engine, there), await runOf(engine, stopped.id)]).toEqual([1, 2, 1]);
    // What a person has stopped waits for another yes.
    const held = await engine.actionService.retryMany(
      engine.owner,
      listOf({ statuses: ["cancelled", "completed"] }),
      null,
    );
    expect(held).toMatchObject({ retried: 1, held: 1 });
    expect((await engine.actionService.get(engine.owner, stopped.id)).status).toBe("awaiting_approval");
  });

  test("goes on where one can't be begun again, and names it", async () => {
    await using engine = await openEngine({ sender: answering(answered(500), answered(500), answered(200)) });
    const [taken = ""] = await failed(engine, 1, { dedupe: "order-7" });
    const [free = ""] = await failed(engine, 1);
    const holder = await engine.create({ dedupe: "order-7" });
    const batch = await engine.actionService.retryMany(engine.owner, listOf(), null);
    expect(batch.retried).toBe(1);
    expect(batch.refused).toEqual([{ id: taken, message: expect.stringContaining(holder.id) }]);
    expect([await runOf(engine, taken), await runOf(engine, free)]).toEqual([1, 2]);
  });

  test("is for whoever may retry", async () => {
    await using engine = await openEngine({ starts: false });
    for (const role of ["reader", "approver"] as const) {
      const refused = await refusalOf(engine.actionService.retryMany(as(role, engine.owner), listOf(), null));
      expect(refused?.code).toBe("forbidden");
    }
  });
});
