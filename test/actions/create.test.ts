import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openFile } from "../../db/libsql/file.ts";
import type { ActionStore, Store } from "../../src/core/store.ts";
import { openEngine, requestFor } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { Target } from "../support/target.ts";
import { answering, holding } from "./senders.ts";

describe("a create", () => {
  test("answers pending, whatever has happened to the action by then", async () => {
    const sender = answering(answered(200));
    // The answer to the write comes late: by then a sweep has found the action, and it is delivered.
    const ended = Promise.withResolvers<void>();
    const late = (store: Store): Store => {
      const create: ActionStore["create"] = async (creation) => {
        const created = await store.actions.create({ ...creation, claim: null });
        engine.clock.advance(30_000);
        await ended.promise;
        return created;
      };
      return { ...store, actions: { ...store.actions, create } };
    };
    await using engine = await openEngine({ sender, wrapStore: late });
    const unsubscribe = engine.bus.subscribe(({ status }) => status === "completed" && ended.resolve());
    const { action, differs } = await engine.actionService.create(engine.owner, requestFor({}));
    unsubscribe();
    expect(sender.sent).toHaveLength(1);
    expect(differs).toBeUndefined();
    expect(action).toMatchObject({ status: "pending", attempts: 0, startedAt: null, result: null, revision: 1 });
    expect((await engine.actionService.get(engine.owner, action.id)).status).toBe("completed");
  });

  test("is stored as it was asked for, by whom and when, and found again", async () => {
    await using engine = await openEngine({ starts: false });
    const request = requestFor({
      url: "https://api.example.com:8443/orders?x=1",
      method: "PATCH",
      body: '{"n":12345678901234567890,"s":"\\u0000"}',
      headers: { "X-Plan": "b", authorization: "Bearer abc" },
      dedupe: "order-7",
      idempotencyKey: "k1",
      retries: 100,
      onUnknown: "stop",
      approve: true,
      callback: "https://app.example.com/done",
      notifyEmail: "boss@example.com",
    });
    const { action } = await engine.actionService.create(engine.owner, request);
    expect(action).toMatchObject({
      ...request,
      accountId: engine.owner.accountId,
      createdAt: engine.clock.now(),
      createdBy: "key:owner",
    });
    expect(await engine.actionService.get(engine.owner, action.id)).toEqual(action);
  });

  test("with approve is held, and nothing is sent however long it waits", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const held = await engine.create({ approve: true });
    expect(held).toMatchObject({ status: "awaiting_approval", approve: true, dueAt: null });
    // Another that is due goes by in the meantime.
    await engine.saw((await engine.create({})).id, { status: "completed" });
    engine.clock.advance(86_400_000);
    expect(sender.sent).toHaveLength(1);
    expect(await engine.actionService.get(engine.owner, held.id)).toEqual(held);
  });

  test("is delivered to its target as it was written, and its answer is kept", async () => {
    const answer = '{"n":1.0,"big":12345678901234567890,"s":"\\u0000"}';
    await using target = new Target(() => new Response(answer, { headers: { "content-type": "application/json" } }));
    await using engine = await openEngine();
    const body = '{"n":1.0,"big":98765432109876543210,"s":"\\u0000","__proto__":{"a":1}}';
    const { id } = await engine.create({
      url: `${target.url}orders?x=%20y`,
      method: "PUT",
      body,
      headers: { "X-Plan": "b" },
    });
    const done = await engine.saw(id, { status: "completed" });
    expect(target.received).toHaveLength(1);
    expect(target.received[0]).toMatchObject({ method: "PUT", path: "/orders?x=%20y", body });
    expect(target.received[0]?.headers.get("x-plan")).toBe("b");
    expect(done.result).toMatchObject({ responseCode: 200, responseBody: answer });
  });

  test("is active, counted and leased while its request is in flight", async () => {
    const { sender, began, end } = holding();
    await using engine = await openEngine({ sender });
    const { id, createdAt } = await engine.create({});
    await began;
    const active = await engine.actionService.get(engine.owner, id);
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

  test("takes durations from the monotonic clock and due times from the wall, however that is set", async () => {
    const { sender, began, end } = holding();
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({});
    await began;
    engine.clock.advance(250);
    engine.clock.jump(-3_600_000);
    end(answered(500));
    const waiting = await engine.saw(id, { status: "pending", attempts: 1 });
    expect(waiting.result?.durationMs).toBe(250);
    expect(waiting.dueAt).toEqual(new Date(engine.clock.now().getTime() + 2_000));
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

interface OutboxSeen {
  readonly kind: string;
  readonly event: string;
  readonly run: number;
  readonly type: string | null;
  readonly status: string | null;
  readonly attempts: number | null;
}

/** What the database holds for the outbox, in the order of the changes that owe it. */
async function outboxOf(folder: string, actionId: string): Promise<readonly OutboxSeen[]> {
  const sql = openFile(join(folder, "outgate.db"), "read");
  const text = "SELECT kind, event, run, payload FROM outbox WHERE action_id = ? ORDER BY revision, kind";
  const rows = await sql.read({ sql: text, args: [actionId] });
  await sql.close();
  return rows.map(({ kind, event, run, payload }) => {
    const body = typeof payload === "string" ? JSON.parse(payload) : null;
    return {
      kind: String(kind),
      event: String(event),
      run: Number(run),
      type: body?.type ?? null,
      status: body?.data.status ?? null,
      attempts: body?.data.attempts ?? null,
    };
  });
}

describe("what an action owes", () => {
  const named = { callback: "https://app.example.com/done", notifyEmail: "boss@example.com" };
  const callback = (status: string, run: number, attempts: number): OutboxSeen => ({
    kind: "callback",
    event: `action.${status}`,
    run,
    type: `action.${status}`,
    status,
    attempts,
  });
  const mail = (run: number, event = "approval"): OutboxSeen => ({
    kind: "mail",
    event,
    run,
    type: null,
    status: null,
    attempts: null,
  });

  test("is stored with each change, as the action was at that moment", async () => {
    await using engine = await openEngine({ sender: answering(answered(500), answered(200)), starts: false });
    const { actionService, owner, folder } = engine;
    // Actions are sent, and what they owe is left where it is.
    await engine.loop.start();
    const { id } = await engine.create({ ...named, approve: true, retries: 1 });
    expect(await outboxOf(folder, id)).toEqual([callback("awaiting_approval", 1, 0), mail(1)]);
    await actionService.approve(owner, id, null);
    await engine.saw(id, { status: "failed" });
    await actionService.retry(owner, id, null);
    await actionService.cancel(owner, id, null);
    await actionService.retry(owner, id, null);
    await actionService.approve(owner, id, null);
    await engine.saw(id, { status: "completed" });
    expect(await outboxOf(folder, id)).toEqual([
      callback("awaiting_approval", 1, 0),
      mail(1),
      mail(1, "decided"),
      callback("failed", 1, 1),
      callback("awaiting_approval", 2, 0),
      mail(2),
      callback("cancelled", 2, 0),
      mail(2, "decided"),
      callback("awaiting_approval", 3, 0),
      mail(3),
      mail(3, "decided"),
      callback("completed", 3, 1),
    ]);
  });

  test("is nothing where a change did not win, and nothing where nobody was named", async () => {
    await using engine = await openEngine({ starts: false });
    const { actionService, owner, folder } = engine;
    const { id } = await engine.create({ ...named, notifyEmail: null, approve: true });
    await Promise.allSettled(Array.from({ length: 5 }, () => actionService.cancel(owner, id, null)));
    expect(await outboxOf(folder, id)).toEqual([callback("awaiting_approval", 1, 0), callback("cancelled", 1, 0)]);
    const unnamed = await engine.create({ approve: true });
    await actionService.cancel(owner, unnamed.id, null);
    expect(await outboxOf(folder, unnamed.id)).toEqual([]);
  });
});
