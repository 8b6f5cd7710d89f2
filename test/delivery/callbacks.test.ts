import { describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { NO_HOST_SETTINGS } from "../../src/api/host-settings.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import type { OutboundRequest, Sender } from "../../src/outbound/sender.ts";
import { answered } from "../support/factory.ts";
import { openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answersOn, openRawTarget } from "../support/raw-target.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";

const REFUSED: Outcome = { kind: "not_sent", fault: "refused" };

const HOOKS = "http://127.0.0.1:9001/hooks";

/** Callbacks end as listed, the last one for ever; actions are answered with `toActions`. */
function receiver(...ends: readonly Outcome[]) {
  const callbacks: OutboundRequest[] = [];
  const state: { toActions: Outcome } = { toActions: answered(200) };
  const sender: Sender = {
    async send(request) {
      if (!request.url.startsWith(HOOKS)) return state.toActions;
      callbacks.push(request);
      return ends[Math.min(callbacks.length, ends.length) - 1] ?? answered(200);
    },
  };
  return { sender, callbacks, state };
}

const headersOf = ({ headers }: OutboundRequest) => new Headers(headers.map(([name, value]) => [name, value]));

const idsOf = (requests: readonly OutboundRequest[]) =>
  new Set(requests.map((request) => headersOf(request).get("webhook-id")));

describe("an action with a callback", () => {
  test("tells of its hold, its end, its failure and its cancel, each in a signed POST", async () => {
    await using hooks = new Target(200);
    await using target = new Target(200, 500);
    await using engine = await openEngine();
    const { actionService, owner } = engine;
    const callback = `${hooks.url}done?team=7`;
    const held = { url: target.url, callback, approve: true, retries: 1, headers: { "X-Plan": "secret plan" } };
    const [good, bad, no] = [await engine.create(held), await engine.create(held), await engine.create(held)];
    await actionService.approve(owner, good.id, null);
    await engine.saw(good.id, { status: "completed" });
    await actionService.approve(owner, bad.id, null);
    await actionService.cancel(owner, no.id, null);
    await hooks.saw(6);

    const [{ secret }] = await engine.signingService.find(
      owner.accountId,
      new URL(callback).origin,
      engine.clock.now(),
      "callbacks",
    );
    const events = hooks.received.map((received) => {
      expect(received).toMatchObject({ method: "POST", path: "/done?team=7" });
      expect(received.headers.get("content-type")).toBe("application/json");
      expect(received.headers.get("user-agent")).toMatch(/^Outgate\/\d/);
      expect(received.headers.get("webhook-signature")).toBe(signature(secret, received));
      const { type, timestamp, data } = JSON.parse(received.body);
      expect(new Date(timestamp).toISOString()).toBe(timestamp);
      expect(data).toMatchObject({ callback, headers: { "X-Plan": "••••" }, status: type.replace("action.", "") });
      return `${data.id} ${type}`;
    });
    const expected = [good, bad, no].map(({ id }) => `${id} action.awaiting_approval`);
    const ends = [`${good.id} action.completed`, `${bad.id} action.failed`, `${no.id} action.cancelled`];
    expect(events.toSorted()).toEqual([...expected, ...ends].toSorted());
    expect(new Set(hooks.received.map(({ headers }) => headers.get("webhook-id"))).size).toBe(6);
    expect(await engine.told(good.id, "callback", 2)).toMatchObject([
      { event: "action.awaiting_approval", delivered: true, attempts: 1, error: null, next_retry_at: null },
      { event: "action.completed", delivered: true, attempts: 1, error: null, next_retry_at: null },
    ]);
  });
});

test("a receiver that is down for ten minutes gets every callback later, under the same id", async () => {
  const { sender, callbacks } = receiver(REFUSED, REFUSED, REFUSED, REFUSED, answered(200));
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ callback: HOOKS });
  const done = await engine.saw(id, { status: "completed" });
  const times = [0, 5, 30, 300, 1_800];
  for (const [at, seconds] of times.entries()) {
    if (seconds > 0) {
      engine.clock.advance(seconds * 1_000 - 1);
      expect(callbacks).toHaveLength(at);
      engine.clock.advance(1);
    }
    await engine.told(id, "callback", at + 1);
  }
  const told = await engine.told(id, "callback", 5);
  expect(told.map(({ delivered, attempts }) => [delivered, attempts])).toEqual([
    [false, 1],
    [false, 2],
    [false, 3],
    [false, 4],
    [true, 5],
  ]);
  expect(told[0]).toMatchObject({ error: "The target refused the connection.", event: "action.completed" });
  expect(idsOf(callbacks).size).toBe(1);
  expect(new Set(callbacks.map(({ body }) => body)).size).toBe(1);
  const stamps = callbacks.map((request) => Number(headersOf(request).get("webhook-timestamp")));
  expect(stamps.map((stamp) => stamp - (stamps[0] ?? 0))).toEqual([0, 5, 35, 335, 2_135]);
  expect(new Set(callbacks.map((request) => headersOf(request).get("webhook-signature"))).size).toBe(5);
  expect(await engine.get(id)).toEqual(done);
});

test("callbacks to a host with a rate take turns with the actions that wait for it", async () => {
  await using busy = await openRawTarget(answersOn(200));
  await using target = await openRawTarget(answersOn(200));
  await using engine = await openEngine();
  const host = `127.0.0.1:${busy.port}`;
  await engine.hostService.put(engine.owner, host, { ...NO_HOST_SETTINGS, maxPerSecond: 0.5 });
  await Promise.all(Array.from({ length: 60 }, () => engine.create({ url: busy.url("/queued") })));
  for (let n = 0; n < 3; n += 1) await engine.create({ url: target.url(), callback: busy.url("/hook") });
  const sentTo = (path: string) => busy.requests.filter((request) => request.startsWith(`POST ${path}`)).length;
  await until(() => {
    engine.clock.advance(20);
    return sentTo("/hook") === 3;
  });
  // Each waits for another action, and a busy machine may be too slow for a turn.
  expect(sentTo("/queued")).toBeLessThan(30);
});

test("a retry begins a run with callbacks of its own; that of the old run still arrives", async () => {
  const { sender, callbacks, state } = receiver(REFUSED, answered(200));
  state.toActions = answered(500);
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ callback: HOOKS, retries: 1 });
  await engine.saw(id, { status: "failed" });
  await engine.told(id, "callback", 1);
  state.toActions = answered(200);
  await engine.actionService.retry(engine.owner, id, null);
  await engine.saw(id, { status: "completed", run: 2 });
  await engine.told(id, "callback", 2);
  engine.clock.advance(5_000);
  const told = await engine.told(id, "callback", 3);
  expect(told.map(({ event, delivered }) => [event, delivered])).toEqual([
    ["action.failed", false],
    ["action.completed", true],
    ["action.failed", true],
  ]);
  expect(idsOf(callbacks).size).toBe(2);
});

test("each attempt is one line of the log, with nothing in it but names and numbers", async () => {
  const { sender } = receiver(REFUSED);
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ callback: `${HOOKS}?token=canary`, body: '{"a":"canary"}' });
  await engine.told(id, "callback", 1);
  const line = () => engine.lines.find(({ event }) => event === "callback.attempted") ?? null;
  expect(await eventually(line, "the line")).toMatchObject({
    level: "info",
    fields: {
      action_id: id,
      account_id: engine.owner.accountId,
      event: "action.completed",
      host: "127.0.0.1:9001",
      attempt: 1,
      attempts_max: 6,
      error: "The target refused the connection.",
      next: "retry",
      next_in_ms: 5_000,
    },
  });
  expect(JSON.stringify(engine.lines)).not.toContain("canary");
});

/** What the public library makes of the message. */
function signature(secret: string, { headers, body }: { headers: Headers; body: string }): string {
  const at = new Date(Number(headers.get("webhook-timestamp")) * 1_000);
  return new Webhook(secret).sign(headers.get("webhook-id") ?? "", at, body);
}
