import { expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import { CLAIM_RETRY_MS, SMALL_ROW_BYTES_MAX, STORE_RETRY_MS } from "../../src/core/limits.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import { type ActionStore, type Store, StoreBusy, StoreUnavailable } from "../../src/core/store.ts";
import { answering, holding } from "../actions/senders.ts";
import { openEngine, wrapping } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered } from "../support/factory.ts";
import { temporaryFolder } from "../support/store.ts";

const OK: Outcome = answered(200);

const refuse = () => Promise.reject(new StoreUnavailable("The disk is away."));

/** A store whose named write fails as long as `away` says so. */
function breakable(write: "claim" | "apply") {
  const state = { away: false, refused: Promise.withResolvers<void>() };
  const refused = () => {
    state.refused.resolve();
    return refuse();
  };
  const wrapStore = (store: Store): Store => {
    const actions: ActionStore = {
      ...store.actions,
      // Here a claim is a write of its own.
      create: (creation) => store.actions.create({ ...creation, claim: null }),
      claimDue: (claim) => (write === "claim" && state.away ? refused() : store.actions.claimDue(claim)),
      apply: (change) => (write === "apply" && state.away ? refused() : store.actions.apply(change)),
    };
    return { ...store, actions, probe: () => (state.away ? refused() : store.probe()) };
  };
  return { state, wrapStore };
}

test("what can't be claimed is not sent, and goes out when the store is back", async () => {
  const { state, wrapStore } = breakable("claim");
  const sender = answering(OK);
  await using engine = await openEngine({ sender, wrapStore });
  state.away = true;
  const { id } = await engine.create({});
  await state.refused.promise;
  await turn();
  engine.clock.advance(1_000);
  await turn();
  expect(sender.sent).toHaveLength(0);
  expect(engine.storeAway()).toEqual({ actions: true, callbacks: false, mails: false, messages: false });
  state.away = false;
  engine.clock.advance(1_000);
  await engine.saw(id, { status: "completed", attempts: 1 });
  expect(sender.sent).toHaveLength(1);
  expect(engine.storeAway()).toEqual({ actions: false, callbacks: false, mails: false, messages: false });
  expect(engine.lines.map(({ event }) => event)).toEqual(
    expect.arrayContaining(["dispatch.paused", "dispatch.resumed"]),
  );
});

test("a store that has too much to write pauses nothing: what was not claimed is claimed in a moment", async () => {
  let isBusy = true;
  const wrapStore = wrapping("actions", (actions) => ({
    create: (creation) => actions.create({ ...creation, claim: null }),
    claimDue: (claim) => (isBusy ? Promise.reject(new StoreBusy("Too much waits.")) : actions.claimDue(claim)),
  }));
  const sender = answering(OK);
  await using engine = await openEngine({ sender, wrapStore });
  const small = await engine.create({});
  const large = await engine.create({ body: JSON.stringify("x".repeat(SMALL_ROW_BYTES_MAX)) });
  await engine.store.probe();
  isBusy = false;
  engine.clock.advance(CLAIM_RETRY_MS);
  await engine.saw(small.id, { status: "completed", attempts: 1 });
  await engine.saw(large.id, { status: "completed", attempts: 1 });
  expect(sender.sent).toHaveLength(2);
  expect(engine.lines.filter(({ event }) => event.startsWith("dispatch."))).toEqual([]);
});

test("a store that is away at the start holds up no start: what was in flight is ended when it is back", async () => {
  await using folder = await temporaryFolder();
  const silent = holding();
  const first = await openEngine({ folder: folder.path, sender: silent.sender });
  const { id } = await first.create({ retries: 1 });
  await silent.began;
  await first.abandon();

  const { state, wrapStore } = breakable("apply");
  state.away = true;
  const sender = answering(OK);
  await using engine = await openEngine({ folder: folder.path, sender, wrapStore });
  expect(engine.lines.map(({ event }) => event)).toContain("dispatch.paused");
  // What can be read is read, and nothing is sent.
  expect(await engine.get(id)).toMatchObject({ status: "active", attempts: 1 });
  state.away = false;
  engine.clock.advance(1_000);
  const failed = await engine.saw(id, { status: "failed", attempts: 1 });
  expect(failed.result?.lastError).toBe("The attempt was interrupted; the target may have received it.");
  const next = await engine.create({});
  await engine.saw(next.id, { status: "completed" });
  expect(sender.sent).toHaveLength(1);
});

test("what is created while a start ends its orphans is none of them", async () => {
  const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { state, wrapStore } = breakable("apply");
  state.away = true;
  const { sender, began, end } = holding();
  await using engine = await openEngine({
    sender,
    wrapStore: (inner) => {
      const store = wrapStore(inner);
      const orphans: ActionStore["orphans"] = async (...page) => {
        asked.resolve();
        await go.promise;
        return store.actions.orphans(...page);
      };
      // A create is its own claim here.
      const create: ActionStore["create"] = (creation) => inner.actions.create(creation);
      return { ...store, actions: { ...store.actions, create, orphans } };
    },
  });
  state.away = false;
  engine.clock.advance(1_000);
  await asked.promise;
  const { id } = await engine.create({ retries: 1 });
  go.resolve();
  await turn();
  // Behind whatever the rescue has written.
  await engine.store.probe();
  await began;
  end(OK);
  await engine.saw(id, { status: "completed", attempts: 1 });
});

test("where the secrets that sign can't be read nothing has left: the attempt does not count, even of one", async () => {
  const state = { away: true };
  const wrapStore = wrapping("signing", (signing) => ({
    seeds: (...asked) => (state.away ? refuse() : signing.seeds(...asked)),
  }));
  const sender = answering(OK);
  await using engine = await openEngine({ sender, wrapStore });
  const { id } = await engine.create({ onUnknown: "stop", retries: 1 });
  await engine.saw(id, { status: "pending", attempts: 0 });
  expect((await engine.events(id)).at(-1)).toEqual({
    type: "not_started",
    reason: "Nothing was sent: the service could not use its database.",
  });
  state.away = false;
  await eventually(() => engine.lines.find(({ event }) => event === "dispatch.paused") ?? null, "the pause");
  engine.clock.advance(1_000);
  await engine.saw(id, { status: "completed", attempts: 1 });
  expect(sender.sent).toHaveLength(1);
  expect(await engine.renderMetrics()).toContain('outgate_claims_returned_total{of="action"} 1');
});

test("where a callback's body can't be read nothing has left: the attempt does not count", async () => {
  const state = { away: true };
  const wrapStore = wrapping("outbox", (outbox) => ({
    payload: (id) => (state.away ? refuse() : outbox.payload(id)),
  }));
  const sender = answering(OK);
  await using engine = await openEngine({ sender, wrapStore });
  const { id } = await engine.create({ approve: true, callback: "http://127.0.0.1:9/hook" });
  const [failed] = await engine.told(id, "callback", 1);
  expect(failed).toMatchObject({
    delivered: false,
    attempts: 0,
    error: "Nothing was sent: the service could not use its database.",
  });
  state.away = false;
  await eventually(() => engine.lines.find(({ event }) => event === "dispatch.paused") ?? null, "the pause");
  engine.clock.advance(1_000);
  const last = async () => (await engine.told(id, "callback", 1)).at(-1) ?? null;
  const isDelivered = (event: Awaited<ReturnType<typeof last>>) => event?.type === "callback" && event.delivered;
  expect(
    await eventually(async () => {
      const event = await last();
      return isDelivered(event) ? event : null;
    }, "the callback"),
  ).toMatchObject({ attempts: 1 });
  expect(sender.sent).toHaveLength(1);
});

test("a create that claims nothing gives its slot back", async () => {
  const wrapStore = wrapping("actions", (actions) => ({
    create: (creation) => actions.create({ ...creation, claim: null }),
  }));
  const sender = answering(OK);
  await using engine = await openEngine({ sender, wrapStore, env: { DISPATCH_PER_HOST: "1" } });
  for (let n = 0; n < 3; n += 1) {
    const { id } = await engine.create({});
    await engine.saw(id, { status: "completed", attempts: 1 });
  }
  expect(sender.sent).toHaveLength(3);
});

test("a claim that was made although its answer was lost is given back when the store is back, and counts no attempt", async () => {
  const { state, wrapStore } = breakable("apply");
  const lost = Promise.withResolvers<void>();
  const sender = answering(OK);
  await using engine = await openEngine({
    sender,
    wrapStore: (inner) => {
      const store = wrapStore(inner);
      const claimDue: ActionStore["claimDue"] = async (claim) => {
        const claimed = await store.actions.claimDue(claim);
        if (!state.away) return claimed;
        lost.resolve();
        return refuse();
      };
      return { ...store, actions: { ...store.actions, claimDue } };
    },
  });
  state.away = true;
  const { id } = await engine.create({ retries: 1 });
  await lost.promise;
  await turn();
  expect(await engine.get(id)).toMatchObject({ status: "active", attempts: 1 });
  state.away = false;
  engine.clock.advance(STORE_RETRY_MS);
  await engine.saw(id, { status: "completed", attempts: 1 });
  expect(sender.sent).toHaveLength(1);
});

test("a stop during a start lets nothing be claimed once the start has ended its orphans", async () => {
  const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { state, wrapStore } = breakable("claim");
  state.away = true;
  const sender = answering(OK);
  await using engine = await openEngine({
    sender,
    wrapStore: (inner) => {
      const store = wrapStore(inner);
      const orphans: ActionStore["orphans"] = async (...page) => {
        asked.resolve();
        await go.promise;
        return store.actions.orphans(...page);
      };
      return { ...store, actions: { ...store.actions, orphans } };
    },
  });
  state.away = false;
  engine.clock.advance(STORE_RETRY_MS);
  await asked.promise;
  const { id } = await engine.create({});
  const drained = engine.drain(1_000);
  go.resolve();
  await drained;
  expect(await engine.get(id)).toMatchObject({ status: "pending", attempts: 0 });
  expect([sender.sent.length, engine.clock.timers]).toEqual([0, 0]);
});
