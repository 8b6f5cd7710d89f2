import { describe, expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Outcome } from "../../src/core/outcome.ts";
import type { TimelineEventType } from "../../src/core/timeline.ts";
import type { Sender, Stopped } from "../../src/outbound/sender.ts";
import { type Store, StoreUnavailable } from "../../src/core/store.ts";
import { answering, type KeepingSender } from "../actions/senders.ts";
import { NO_HOST_SETTINGS } from "../../src/api/host-settings.ts";
import { RATE_SECOND_MS } from "../../src/core/limits.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine, wrapping } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { anApiKey, answered } from "../support/factory.ts";
import { temporaryFolder } from "../support/store.ts";
import { until } from "../support/until.ts";

const HOOK = "http://127.0.0.1:9/hook";

const TYPES: TimelineEventType[] = ["created", "started", "not_started", "started", "attempt", "completed"];

/** A sender that resolves a name, and is stopped before it knows an address. */
function resolving(): Sender & { readonly began: Promise<void> } {
  const began = Promise.withResolvers<void>();
  return {
    began: began.promise,
    send: (_request, { stop }) => {
      began.resolve();
      return new Promise<Outcome | Stopped>((resolve) => {
        stop?.addEventListener("abort", () => resolve({ kind: "stopped" }));
      });
    },
  };
}

/** A sender that takes its time to connect, and then asks whether it may begin. */
function connecting() {
  const began = Promise.withResolvers<void>();
  const connected = Promise.withResolvers<void>();
  const sender: KeepingSender = {
    sent: [],
    send: async (request, { mayBegin }) => {
      began.resolve();
      await connected.promise;
      if ((await mayBegin?.()) === false) return { kind: "stopped" };
      sender.sent.push(request);
      return answered(200);
    },
  };
  return { sender, began: began.promise, connect: connected.resolve };
}

/** Each claim is written, and only then the given thing happens. */
function afterClaims(then: () => Promise<void>): (store: Store) => Store {
  const after = async <Done>(claimed: Promise<Done>): Promise<Done> => {
    const done = await claimed;
    await then();
    return done;
  };
  return (store) => ({
    ...store,
    actions: {
      ...store.actions,
      create: (creation) => store.actions.create({ ...creation, claim: null }),
      claimDue: (claim) => after(store.actions.claimDue(claim)),
    },
    outbox: {
      ...store.outbox,
      callbacks: { ...store.outbox.callbacks, claimDue: (claim) => after(store.outbox.callbacks.claimDue(claim)) },
    },
  });
}

describe("an attempt of one that never began is not counted, and is sent once", () => {
  test("when the wall clock jumps ahead between its claim and its beginning", async () => {
    const clock = new FakeClock();
    const jumps = [86_400_000];
    const sender = answering(answered(200));
    const wrapStore = afterClaims(async () => clock.jump(jumps.pop() ?? 0));
    await using engine = await openEngine({ sender, clock, wrapStore });
    const { id } = await engine.create({ retries: 1, onUnknown: "stop" });
    const done = await engine.saw(id, { status: "completed", attempts: 1 });
    expect(sender.sent).toHaveLength(1);
    expect((await engine.events(id)).map(({ type }) => type)).toEqual(TYPES);
    // The day is none of the attempt.
    expect(done.startedAt).toEqual(engine.clock.now());
  });

  test.each(["account", "key", "host"] as const)("when its %s is paused while it connects", async (kind) => {
    const { sender, began, connect } = connecting();
    await using engine = await openEngine({ sender });
    const { owner, pauseService } = engine;
    await engine.store.accounts.addKey(anApiKey({ accountId: owner.accountId, id: "key_owner", hash: "its hash" }));
    const { id, keyId, host } = await engine.create({ retries: 1 });
    await began;
    const of = { account: {}, key: { keyId }, host: { host } }[kind];
    const { pause } = await pauseService.pause(owner, { keyId: null, reason: null, ...of });
    connect();
    expect(await engine.saw(id, { status: "pending" })).toMatchObject({ attempts: 0, startedAt: null });
    expect((await engine.events(id)).findLast(({ type }) => type === "not_started")).toEqual({
      type: "not_started",
      reason: "Nothing was sent: sending was paused before the attempt could begin.",
    });
    expect(sender.sent).toHaveLength(0);
    await pauseService.resume(owner, pause.id);
    await engine.saw(id, { status: "completed", attempts: 1 });
    expect(sender.sent).toHaveLength(1);
  });

  test("when its account is paused while it waits for its turn at a host with a rate", async () => {
    let asked = 0;
    const sender = answering(answered(200));
    const send: Sender["send"] = async (request, options) => {
      const mayBegin = options.mayBegin?.();
      asked += 1;
      return (await mayBegin) === false ? { kind: "stopped" } : sender.send(request, options);
    };
    await using engine = await openEngine({ sender: { send } });
    const { host } = await engine.create({});
    await engine.hostService.put(engine.owner, host, { ...NO_HOST_SETTINGS, maxPerSecond: 100 });
    await engine.create({});
    const { id } = await engine.create({ retries: 1 });
    await until(() => asked === 3 && sender.sent.length === 2);
    await engine.pauseService.pause(engine.owner, { keyId: null, reason: null });
    engine.clock.advance(RATE_SECOND_MS / 100);
    expect(await engine.saw(id, { status: "pending" })).toMatchObject({ attempts: 0 });
    expect(sender.sent).toHaveLength(2);
  });

  test("when the process has no free file: nothing is claimed until there is one, and the log says so once", async () => {
    const noFile: Outcome = { kind: "not_sent", fault: "no_file" };
    // A call, and its callback.
    const sender = answering(noFile, noFile, answered(200), noFile, answered(200));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({ retries: 1, callback: HOOK, onUnknown: "stop" });
    const sent = (calls: number) => eventually(() => (sender.sent.length === calls ? calls : null), `${calls} calls`);
    for (const calls of [1, 2]) {
      await sent(calls);
      await engine.saw(id, { status: "pending", attempts: 0 });
      await turn();
      expect(sender.sent).toHaveLength(calls);
      engine.clock.advance(1_000);
    }
    await engine.saw(id, { status: "completed", attempts: 1 });
    await sent(4);
    const [waiting] = await engine.told(id, "callback", 1);
    expect(waiting).toMatchObject({ delivered: false, attempts: 0 });
    engine.clock.advance(1_000);
    expect((await engine.told(id, "callback", 2)).at(-1)).toMatchObject({ delivered: true, attempts: 1 });
    expect(engine.lines.filter(({ level }) => level === "warn").map(({ event }) => event)).toEqual([
      "dispatch.no_files",
    ]);
  });

  test("when it expires while it connects", async () => {
    const { sender, began, connect } = connecting();
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({ expiresAt: new Date(engine.clock.now().getTime() + 5_000) });
    await began;
    engine.clock.advance(5_000);
    connect();
    await engine.saw(id, { status: "pending", attempts: 0 });
    expect((await engine.events(id)).at(-1)).toEqual({
      type: "not_started",
      reason: "Nothing was sent: the action expired before the attempt could begin.",
    });
    expect(sender.sent).toHaveLength(0);
  });

  test("when the service stops while it resolves the name: the next start sends it", async () => {
    await using folder = await temporaryFolder();
    const stopping = resolving();
    const before = await openEngine({ folder: folder.path, sender: stopping });
    const { id } = await before.create({ retries: 1, callback: HOOK, onUnknown: "stop" });
    await stopping.began;
    const drained = before.drain(30_000);
    before.clock.advance(30_000);
    await drained;
    expect(await before.get(id)).toMatchObject({
      status: "pending",
      attempts: 0,
      startedAt: null,
      leaseUntil: null,
      result: null,
    });
    expect((await before.events(id)).at(-1)).toEqual({
      type: "not_started",
      reason: "Nothing was sent: the service stopped before the attempt began.",
    });
    await before.abandon();
    const sender = answering(answered(200));
    await using engine = await openEngine({ folder: folder.path, sender, clock: before.clock });
    await engine.saw(id, { status: "completed", attempts: 1 });
    await engine.told(id, "callback", 1);
    expect(sender.sent).toHaveLength(2);
  });

  test.each(["create", "claim"] as const)("when nobody was told that its %s was written", async (write) => {
    let lost = 0;
    const dies = async <Done>(done: Promise<Done>): Promise<Done> => {
      await done;
      lost += 1;
      throw new StoreUnavailable("The connection was lost.");
    };
    const wrapStore = wrapping("actions", (actions) => ({
      create: (creation) => {
        const claim = write === "create" ? creation.claim : null;
        const created = actions.create({ ...creation, claim });
        return write === "create" && lost === 0 ? dies(created) : created;
      },
      claimDue: (claim) => {
        const claimed = actions.claimDue(claim);
        return write === "claim" && lost === 0 ? dies(claimed) : claimed;
      },
    }));
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender, wrapStore });
    const created = await engine.create({ retries: 1 }).catch((error: unknown) => error);
    await eventually(() => (lost === 1 ? true : null), "the write");
    if (write === "create") expect(created).toBeInstanceOf(StoreUnavailable);
    const [claimed] = await engine.store.actions.orphans(null, 1, null);
    const id = claimed?.id ?? "";
    expect(claimed).toMatchObject({ status: "active", attempts: 1 });
    // To the end of the pause, or to the next look: long before the lease is over.
    await turn();
    engine.clock.advance(5_000);
    await engine.saw(id, { status: "completed", attempts: 1 });
    expect(sender.sent).toHaveLength(1);
    expect((await engine.events(id)).map(({ type }) => type)).toEqual(TYPES);
    const metrics = await engine.renderMetrics();
    expect(metrics).toContain("outgate_rescued_total 0\n");
    expect(metrics).toContain('outgate_claims_returned_total{of="action"} 1\n');
  });
});

describe("an attempt of a callback that never began is not counted", () => {
  test("when the wall clock jumps ahead between its claim and its beginning", async () => {
    const clock = new FakeClock();
    const jumps = [86_400_000];
    const sender = answering(answered(200));
    const wrapStore = afterClaims(async () => clock.jump(jumps.pop() ?? 0));
    await using engine = await openEngine({ sender, clock, wrapStore });
    const { id } = await engine.create({ approve: true, callback: HOOK });
    expect(await engine.told(id, "callback", 2)).toMatchObject([
      { delivered: false, attempts: 0, error: "Nothing was sent: the claim was too old when the attempt could begin." },
      { delivered: true, attempts: 1, error: null },
    ]);
    expect(sender.sent).toHaveLength(1);
  });

  test("when the service stops while it resolves the name", async () => {
    await using folder = await temporaryFolder();
    const stopping = resolving();
    const before = await openEngine({ folder: folder.path, sender: stopping });
    const { id } = await before.create({ approve: true, callback: HOOK });
    await stopping.began;
    const drained = before.drain(30_000);
    before.clock.advance(30_000);
    await drained;
    expect(await before.told(id, "callback", 1)).toMatchObject([
      {
        delivered: false,
        attempts: 0,
        error: "Nothing was sent: the service stopped before the attempt began.",
        next_retry_at: before.clock.now().toISOString(),
      },
    ]);
    await before.abandon();
    await using engine = await openEngine({
      folder: folder.path,
      sender: answering(answered(200)),
      clock: before.clock,
    });
    expect((await engine.told(id, "callback", 2)).at(-1)).toMatchObject({ delivered: true, attempts: 1 });
  });
});
