import { describe, expect, test } from "bun:test";
import { createExpireUnsent } from "../../src/approvals/expire.ts";
import type { LateResult } from "../../src/core/action.ts";
import { step } from "../../src/core/changes.ts";
import type { OutboundRequest, Sender } from "../../src/outbound/sender.ts";
import { NO_HOST_SETTINGS } from "../../src/api/host-settings.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { answering, holding } from "../actions/senders.ts";
import { answered, later, NOON } from "../support/factory.ts";
import { type Engine, openEngine, wrapping } from "../support/engine.ts";
import { until } from "../support/until.ts";

const [MINUTE, HOUR, YEAR] = [60_000, 3_600_000, 365 * 86_400_000];

const HOST = "127.0.0.1:9";

const aLateResult: LateResult = {
  run: 1,
  attempt: 1,
  responseCode: 200,
  responseBody: null,
  responseTruncated: false,
  responseHeaders: null,
  durationMs: 1,
  at: NOON,
};

const inMs = ({ clock }: Pick<Engine, "clock">, ms: number) => clock.now().getTime() + ms;

const delayed = (engine: Engine, ms: number, more = {}) =>
  engine.create({ extras: { runAt: inMs(engine, ms) }, ...more });

/** As the job of the service does it. */
const expireNow = ({ app, enqueue, clock }: Engine) =>
  createExpireUnsent(app, enqueue)(clock.now(), new AbortController().signal);

/** Time for what must not happen. */
const rest = () => Bun.sleep(30);

describe("an action with a run_at", () => {
  test("is sent at that time, not before, without a next retry; behind it nothing waits", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const { id } = await delayed(engine, HOUR);
    const other = await engine.create({});
    await engine.saw(other.id, { status: "completed" });
    engine.clock.advance(HOUR - 1);
    await rest();
    expect(sender.sent).toHaveLength(1);
    engine.clock.advance(1);
    await engine.saw(id, { status: "completed", attempts: 1 });
    expect((await engine.events(id)).map(({ type }) => type)).toEqual(["created", "started", "attempt", "completed"]);
  });

  test("is sent after a kill, also a year later, and at once if its time came meanwhile", async () => {
    const before = await openEngine({ sender: answering(answered(200)) });
    const [soon, late] = [await delayed(before, HOUR), await delayed(before, YEAR)];
    await before.abandon();
    before.clock.advance(2 * HOUR);
    const sender = answering(answered(200));
    await using engine = await openEngine({ folder: before.folder, clock: before.clock, sender });
    await engine.saw(soon.id, { status: "completed" });
    // In steps, as timers are bounded.
    engine.clock.jump(YEAR - 2 * HOUR - MINUTE);
    engine.clock.advance(MINUTE - 1);
    await rest();
    expect(sender.sent).toHaveLength(1);
    engine.clock.advance(30_001);
    await engine.saw(late.id, { status: "completed" });
  });

  test("waits for its time of the day when the clock is set back, and is sent early by none", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const { id } = await delayed(engine, HOUR);
    engine.clock.advance(30 * MINUTE);
    engine.clock.jump(-HOUR);
    // So far it would have waited without the jump.
    engine.clock.advance(30 * MINUTE + 29_999);
    await rest();
    expect(sender.sent).toHaveLength(0);
    engine.clock.advance(HOUR);
    await engine.saw(id, { status: "completed" });
    const { createdAt, startedAt } = await engine.get(id);
    expect((startedAt?.getTime() ?? 0) - createdAt.getTime()).toBeLessThan(HOUR + 30_000);
  });
});

describe("an action that expires", () => {
  test("is not sent any more, even before the job has found it, and then cancelled with its callback", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const { pauseService, actionService, owner, clock } = engine;
    const expiresAt = new Date(inMs(engine, HOUR));
    const { pause } = await pauseService.pause(owner, { keyId: null, reason: null });
    const waiting = await engine.create({ expiresAt, callback: "http://127.0.0.1:7/" });
    const held = await engine.create({ expiresAt, approve: true });
    const late = await delayed(engine, HOUR - 1, { expiresAt });
    clock.advance(HOUR);
    await pauseService.resume(owner, pause.id);
    await rest();
    expect(sender.sent).toHaveLength(0);
    await expireNow(engine);
    for (const { id } of [waiting, held, late]) {
      const action = await engine.saw(id, { status: "cancelled", attempts: 0 });
      expect(action.finishedAt).toEqual(clock.now());
      expect((await engine.events(id)).find(({ type }) => type === "cancelled")).toMatchObject({ actor: "system" });
      const refused = await actionService.retry(owner, id, null).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: "not_retryable" });
    }
    // Only the callback.
    await until(() => sender.sent.length === 1);
    expect(sender.sent[0]?.url).toBe("http://127.0.0.1:7/");
    expect(engine.lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("in transit ends by itself", async () => {
    const { sender, began, end } = holding();
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({ expiresAt: new Date(inMs(engine, 1_000)) });
    await began;
    engine.clock.advance(2_000);
    await expireNow(engine);
    expect((await engine.get(id)).status).toBe("active");
    end(answered(200));
    await engine.saw(id, { status: "completed" });
  });

  test("between its claim and its attempt is given back, and nothing of it is sent", async () => {
    const sender = answering(answered(200));
    const engine_: { now?: Engine } = {};
    await using engine = await openEngine({
      sender,
      wrapStore: wrapping("actions", (actions) => ({
        // A slow commit.
        async create(creation) {
          const created = await actions.create(creation);
          engine_.now?.clock.jump(2_000);
          return created;
        },
      })),
    });
    engine_.now = engine;
    const { id } = await engine.create({ expiresAt: new Date(inMs(engine, 1_000)) });
    await engine.saw(id, { status: "pending", attempts: 0 });
    expect((await engine.events(id)).map(({ type }) => type)).toEqual(["created", "started", "not_started"]);
    await rest();
    expect(sender.sent).toEqual([]);
  });
});

/** Notes the deadline of every call. */
function timing(code = 200): Sender & { readonly timeouts: number[]; readonly sent: OutboundRequest[] } {
  const [timeouts, sent]: [number[], OutboundRequest[]] = [[], []];
  return {
    timeouts,
    sent,
    send: async (request, { timeoutMs }) => {
      sent.push(request);
      timeouts.push(timeoutMs);
      return answered(code);
    },
  };
}

describe("how attempts are made", () => {
  test("with a longer timeout lengthens the lease before anything is sent", async () => {
    const { sender, began, end } = holding();
    const leases: number[] = [];
    await using engine = await openEngine({
      sender,
      wrapStore: wrapping("actions", (actions) => ({
        async extendLease(action, leaseUntil) {
          leases.push(sender.sent.length);
          return actions.extendLease(action, leaseUntil);
        },
      })),
    });
    const { clock, store, owner } = engine;
    // From the queue, where the claim doesn't know of it.
    const { id } = await delayed(engine, 1_000, { extras: { runAt: inMs(engine, 1_000), timeoutMs: 120_000 } });
    clock.advance(1_000);
    await began;
    expect(leases).toEqual([0]);
    const { leaseUntil } = await engine.actionService.get(owner, id);
    expect(leaseUntil).toEqual(new Date(inMs(engine, 135_000)));
    // Nobody takes it for the action of a dead process in the middle of its call.
    clock.advance(119_000);
    expect(await store.actions.orphans(clock.now(), 9, null)).toEqual([]);
    end(answered(200));
    await engine.saw(id, { status: "completed" });
  });

  test.each([
    ["another process has claimed it meanwhile", { leaseUntil: later(YEAR) }, "active"],
    ["an earlier attempt was answered meanwhile", { lateResult: aLateResult }, "completed"],
  ] as const)("with a longer timeout is not sent if %s", async (_what, meanwhile, status) => {
    const sender = timing();
    let isFirst = true;
    await using engine = await openEngine({
      sender,
      wrapStore: wrapping("actions", (actions) => ({
        async extendLease(action, leaseUntil) {
          const other = { change: step(action, meanwhile, []), at: NOON, outbox: [] };
          if (isFirst) await actions.apply(other);
          isFirst = false;
          return actions.extendLease(action, leaseUntil);
        },
      })),
    });
    const { id } = await delayed(engine, 1_000, { extras: { runAt: inMs(engine, 1_000), timeoutMs: 60_000 } });
    engine.clock.advance(1_000);
    await until(() => !isFirst);
    await rest();
    await engine.saw(id, { status });
    expect(sender.timeouts).toEqual([]);
  });

  test("with a longer timeout than the claim knows is given back while the store is away", async () => {
    const sender = timing();
    let isAway = true;
    const away = wrapping("actions", (actions) => ({
      extendLease: (action, leaseUntil) =>
        isAway ? Promise.reject(new StoreUnavailable("away")) : actions.extendLease(action, leaseUntil),
    }));
    await using engine = await openEngine({ sender, wrapStore: away });
    const { id } = await delayed(engine, 1_000, { extras: { runAt: inMs(engine, 1_000), timeoutMs: 60_000 } });
    engine.clock.advance(1_000);
    await engine.saw(id, { status: "pending" });
    await until(async () => (await engine.events(id)).some(({ type }) => type === "not_started"));
    expect(sender.sent).toEqual([]);
    isAway = false;
    engine.clock.advance(1_000);
    await engine.saw(id, { status: "completed", attempts: 1 });
    expect(sender.timeouts).toEqual([60_000]);
  });

  test("a claim of a host with a longer timeout lasts as long, without a second write", async () => {
    const { sender, began, end } = holding();
    let extended = 0;
    await using engine = await openEngine({
      sender,
      wrapStore: wrapping("actions", (actions) => ({
        extendLease: (...of) => ((extended += 1), actions.extendLease(...of)),
      })),
    });
    const { hostService, owner, clock } = engine;
    await hostService.put(owner, HOST, { ...NO_HOST_SETTINGS, timeoutMs: 100_000 });
    const { id } = await delayed(engine, 1_000);
    clock.advance(1_000);
    await began;
    const atOnce = await engine.create({ extras: { timeoutMs: 110_000 } });
    await engine.saw(atOnce.id, { status: "active" });
    const leaseOf = async (one: string) => (await engine.actionService.get(owner, one)).leaseUntil?.getTime();
    expect([await leaseOf(id), await leaseOf(atOnce.id), extended]).toEqual([
      inMs(engine, 115_000),
      inMs(engine, 125_000),
      0,
    ]);
    end(answered(200));
    for (const one of [id, atOnce.id]) await engine.saw(one, { status: "completed" });
  });

  test("backoff and give_up_on count as they are when the attempt ends; Retry-After stays longer", async () => {
    const sender = timing(422);
    await using engine = await openEngine({ sender });
    const { hostService, owner, clock } = engine;
    const nextIn = async (extras = {}) => {
      const { id } = await engine.create({ extras });
      const { dueAt } = await engine.saw(id, { status: "pending", attempts: 1 });
      return (dueAt?.getTime() ?? 0) - clock.now().getTime();
    };
    expect(await nextIn()).toBe(2_000);
    await hostService.put(owner, HOST, { ...NO_HOST_SETTINGS, backoff: { baseMs: 60_000, capMs: 90_000 } });
    expect([await nextIn(), await nextIn({ backoff: { baseMs: 100, capMs: 100 } })]).toEqual([60_000, 100]);
    const waiting = await engine.create({});
    await engine.saw(waiting.id, { status: "pending", attempts: 1 });
    await hostService.putDefaults(owner, { ...NO_HOST_SETTINGS, giveUpOn: ["4xx"] });
    const { id } = await engine.create({});
    await engine.saw(id, { status: "failed", attempts: 1 });
    const stubborn = await engine.create({ extras: { giveUpOn: [] } });
    await engine.saw(stubborn.id, { status: "pending", attempts: 1 });
    // What was waiting when it was set gives up too.
    clock.advance(60_000);
    await engine.saw(waiting.id, { status: "failed", attempts: 2 });
  });
});
