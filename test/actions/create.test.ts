import { describe, expect, test } from "bun:test";
import { type Engine, openEngine, requestFor, wrapping } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { Target } from "../support/target.ts";
import { answering, holding } from "./senders.ts";

describe("a create", () => {
  test("answers pending, whatever has happened to the action by then", async () => {
    const sender = answering(answered(200));
    // The answer to the write comes late: by then a sweep has found the action, and it is delivered.
    const ended = Promise.withResolvers<void>();
    const wrapStore = wrapping("actions", (actions) => ({
      create: async (creation) => {
        const created = await actions.create({ ...creation, claim: null });
        engine.clock.advance(30_000);
        await ended.promise;
        return created;
      },
    }));
    await using engine: Engine = await openEngine({ sender, wrapStore });
    const unsubscribe = engine.bus.subscribe(({ status }) => status === "completed" && ended.resolve());
    const { action, differs } = await engine.actionService.create(engine.owner, requestFor({}));
    unsubscribe();
    expect(sender.sent).toHaveLength(1);
    expect(differs).toBeUndefined();
    expect(action).toMatchObject({ status: "pending", attempts: 0, startedAt: null, result: null, revision: 1 });
    expect((await engine.get(action.id)).status).toBe("completed");
  });

  test("is active, counted and leased while its request is in flight", async () => {
    const { sender, began, end } = holding();
    await using engine = await openEngine({ sender });
    const { id, createdAt } = await engine.create({});
    await began;
    const active = await engine.get(id);
    expect(active).toMatchObject({
      status: "active",
      attempts: 1,
      startedAt: createdAt,
      finishedAt: null,
      dueAt: null,
    });
    expect(active.leaseUntil?.getTime()).toBeGreaterThan(createdAt.getTime());
    engine.clock.advance(250);
    end(answered(204));
    const done = await engine.saw(id, { status: "completed" });
    expect([done.startedAt, done.finishedAt, done.leaseUntil]).toEqual([createdAt, engine.clock.now(), null]);
    expect(done.result?.durationMs).toBe(250);
  });

  test("leaves in the log who, where, what code and how long, and nothing of what was sent or answered", async () => {
    await using target = new Target(() => new Response('{"canary":"answer"}', { status: 404 }));
    await using engine = await openEngine();
    const { id } = await engine.create({
      url: `${target.url}path?canary=query`,
      body: '{"canary":"body"}',
      headers: { "X-Canary": "header" },
      retries: 1,
      dedupe: "canary-dedupe",
      idempotencyKey: "canary-idempotency",
    });
    await engine.saw(id, { status: "failed" });
    expect(engine.lines.map(({ event, fields }) => ({ event, fields }))).toEqual([
      {
        event: "action.attempted",
        fields: {
          action_id: id,
          account_id: engine.owner.accountId,
          method: "POST",
          host: new URL(target.url).host,
          run: 1,
          attempt: 1,
          attempts_max: 1,
          outcome: "answered",
          code: 404,
          fault: undefined,
          duration_ms: 0,
          next: "failed",
          next_in_ms: undefined,
        },
      },
    ]);
  });
});

describe("an action that waits for a person", () => {
  test("is told in the log when it is held, and when a retry holds it again", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const { id } = await engine.create({ approve: true, retries: 1, url: "https://api.example.com/?canary=query" });
    await engine.actionService.approve(engine.owner, id, null);
    await engine.saw(id, { status: "failed" });
    await engine.actionService.retry(engine.owner, id, null);
    const held = engine.lines.filter(({ event }) => event === "action.held").map(({ fields }) => fields);
    const fields = { action_id: id, method: "POST", host: "api.example.com" };
    expect(held).toEqual([
      expect.objectContaining({ ...fields, run: 1 }),
      expect.objectContaining({ ...fields, run: 2 }),
    ]);
    expect(JSON.stringify(held)).not.toContain("canary");
  });

  test("that was not held is not told", async () => {
    await using engine = await openEngine({ sender: answering(answered(200)) });
    const { id } = await engine.create({});
    await engine.saw(id, { status: "completed" });
    expect(engine.lines.filter(({ event }) => event === "action.held")).toEqual([]);
  });
});
