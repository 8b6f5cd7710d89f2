import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "bun:test";
import { DomainError } from "../../src/core/domain-error.ts";
import type { Caller } from "../../src/core/roles.ts";
import { systemIds } from "../../src/core/ids.ts";
import { REVOKED_KEY_TAKEN_MS_MAX } from "../../src/core/limits.ts";
import { createPauseService } from "../../src/pauses/pauses.ts";
import { refusalOf } from "../actions/callers.ts";
import { type Engine, openEngine, requestFor, wrapping } from "../support/engine.ts";
import { anApiKey, anAuditEntry, aPause, NOON } from "../support/factory.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";

const ALL = { keyId: null, reason: null } as const;

/** A key of the account, and who calls by it. */
async function keyOf({ store, owner }: Engine): Promise<Caller & { readonly keyId: string }> {
  const { id } = anApiKey({ id: systemIds.key(NOON) });
  await store.accounts.addKey(anApiKey({ id, accountId: owner.accountId, name: "agent" }));
  return { ...owner, keyId: id, keyName: "agent", role: "agent", actor: "key:agent" };
}

const createBy = async ({ actionService }: Engine, caller: Caller, url: string, approve = false) =>
  (await actionService.create(caller, requestFor({ url, approve, hostname: "127.0.0.1", host: new URL(url).host })))
    .action;

const statusOf = async ({ actionService, owner }: Engine, id: string) => (await actionService.get(owner, id)).status;

describe("a pause", () => {
  test("keeps what is created, approved and retried under it from being sent; its end sends all of it at once", async () => {
    await using target = new Target(200);
    await using engine = await openEngine();
    const { owner, pauseService, actionService } = engine;
    const held = await engine.create({ url: target.url, approve: true });
    const again = await engine.create({ url: target.url, approve: true });
    await actionService.cancel(owner, again.id, null);
    const { pause, isNew } = await pauseService.pause(owner, { keyId: null, reason: "It loops." });
    expect([isNew, pause.kind]).toEqual([true, "account"]);
    const created = await engine.create({ url: target.url });
    await actionService.approve(owner, held.id, null);
    await actionService.retry(owner, again.id, null);
    await actionService.approve(owner, again.id, null);
    engine.clock.advance(120_000);
    await engine.create({ url: target.url });
    expect(await statusOf(engine, created.id)).toBe("pending");
    expect(engine.findPause(created)).toEqual(pause);
    expect(target.received).toHaveLength(0);
    await pauseService.resume(owner, pause.id);
    await target.saw(4);
    await engine.saw(held.id, { status: "completed" });
    expect(engine.findPause(created)).toBeNull();
  });

  test("of an account that its operator has not allowed is ended by none of its owners", async () => {
    await using engine = await openEngine({ starts: false });
    const { owner, pauseService, services, store } = engine;
    const { accountId } = owner;
    await store.pauses.pause(aPause({ accountId, kind: "sign_up", subject: accountId }), anAuditEntry({ accountId }));
    await pauseService.reconcile();
    expect(services.known.paused.isStopped(accountId)).toBe(true);
    const [pause] = await pauseService.list(owner);
    const resumed = pauseService.resume(owner, pause?.id ?? "");
    expect(await resumed.catch((error: unknown) => error)).toMatchObject({ code: "forbidden" });
    expect(await pauseService.list(owner)).toHaveLength(1);
  });

  test("of an account with many queues lets others have their turn while it looks through them", async () => {
    const PAGES = 20;
    let pages = 0;
    let turnsBetween = 0;
    const wrapStore = wrapping("actions", (actions) => ({
      async lanes(after, limit) {
        if (after?.accountId === undefined || pages === PAGES) return actions.lanes(after, limit);
        const { accountId } = after;
        pages += 1;
        setImmediate(() => (turnsBetween += pages < PAGES ? 1 : 0));
        const dueAt = new Date(8.64e15);
        return Array.from({ length: limit }, (_, at) => ({ accountId, host: `h${pages}.${at}`, keyId: "k", dueAt }));
      },
    }));
    await using engine = await openEngine({ wrapStore });
    await engine.pauseService.pause(engine.owner, ALL);
    await until(() => pages === PAGES);
    expect(turnsBetween).toBeGreaterThanOrEqual(PAGES - 2);
  });

  test("lets the call end that is being sent, and holds back its retry", async () => {
    const gate = Promise.withResolvers<void>();
    await using target = new Target(async () => {
      await gate.promise;
      return new Response("no", { status: 500 });
    });
    await using engine = await openEngine();
    const { id } = await engine.create({ url: target.url });
    await target.saw(1);
    const { pause } = await engine.pauseService.pause(engine.owner, ALL);
    gate.resolve();
    await engine.saw(id, { status: "pending", attempts: 1 });
    engine.clock.advance(3_600_000);
    expect(await statusOf(engine, id)).toBe("pending");
    expect(target.received).toHaveLength(1);
    await engine.pauseService.resume(engine.owner, pause.id);
    await target.saw(2);
  });
});

test("what a revoked key left, where it is to be cancelled, is cancelled, held or waiting, also what comes back from an attempt; then the pause has ended", async () => {
  const gate = Promise.withResolvers<void>();
  await using target = new Target(async () => {
    await gate.promise;
    return new Response("no", { status: 500 });
  });
  await using engine = await openEngine();
  const { owner, pauseService, store } = engine;
  const agent = await keyOf(engine);
  const sending = await createBy(engine, agent, target.url);
  await target.saw(1);
  const held = await createBy(engine, agent, target.url, true);
  const others = await engine.create({ url: target.url, approve: true });
  const paused = await keyOf(engine);
  const { pause: kept } = await pauseService.pause(owner, { keyId: paused.keyId, reason: null });
  const waiting = await createBy(engine, paused, target.url);
  await pauseService.pauseRevoked(owner, agent.keyId, true, (pause) =>
    store.accounts.revokeKey(owner.accountId, agent.keyId, engine.clock.now(), { pause }),
  );
  await engine.saw(held.id, { status: "cancelled" });
  // Nobody has rejected it.
  expect((await engine.events(held.id)).at(-1)).toMatchObject({ type: "cancelled" });
  expect(await statusOf(engine, sending.id)).toBe("active");
  expect(await pauseService.list(owner)).toHaveLength(2);
  gate.resolve();
  await engine.saw(sending.id, { status: "pending" });
  await pauseService.reconcile();
  expect(await statusOf(engine, sending.id)).toBe("cancelled");
  expect(await statusOf(engine, others.id)).toBe("awaiting_approval");
  await until(async () => (await pauseService.list(owner)).length === 1);
  // A key that is only paused keeps its actions and its pause.
  expect([await pauseService.list(owner), await statusOf(engine, waiting.id)]).toEqual([[kept], "pending"]);
  expect(target.received).toHaveLength(1);
});

test("what can't be cancelled of a revoked key is left for later, and nothing more is cancelled once the service stops", async () => {
  await using engine = await openEngine({ starts: false });
  const { owner, store, clock, app, services } = engine;
  const agent = await keyOf(engine);
  const held = await createBy(engine, agent, "http://127.0.0.1:9/", true);
  let asked = 0;
  let isOver = false;
  let stopped = Promise.resolve(false);
  const cancel = async () => {
    asked += 1;
    if (asked !== 3) throw new DomainError("not_cancellable", "It is not.");
    stopped = pauseService.stop().then(() => isOver);
    await nextTurn();
    isOver = true;
    return held;
  };
  const pauseService = createPauseService(app, services.known.paused, cancel, 0);
  await pauseService.pauseRevoked(owner, agent.keyId, true, (pause) =>
    store.accounts.revokeKey(owner.accountId, agent.keyId, clock.now(), { pause }),
  );
  for (let run = 0; run < 3; run += 1) await pauseService.cancelUnfinished();
  expect([asked, await stopped]).toEqual([3, true]);
  expect(engine.lines.filter(({ level }) => level === "error")).toEqual([]);
});

test.each([
  ["paused by its revocation", 0],
  ["paused long before", 2 * REVOKED_KEY_TAKEN_MS_MAX],
])("what another node stores of a revoked key, %s, which it still knows, is cancelled too", async (_name, pausedMs) => {
  await using target = new Target(200);
  await using engine = await openEngine();
  const { owner, store, clock, app, services, actionService } = engine;
  const { paused } = services.known;
  const { cancel } = actionService;
  const pauseService = createPauseService(app, paused, cancel, REVOKED_KEY_TAKEN_MS_MAX);
  const agent = await keyOf(engine);
  if (pausedMs > 0) await pauseService.pause(owner, { keyId: agent.keyId, reason: null });
  clock.advance(pausedMs);
  await pauseService.pauseRevoked(owner, agent.keyId, true, (pause) =>
    store.accounts.revokeKey(owner.accountId, agent.keyId, clock.now(), { pause }),
  );
  await pauseService.cancelUnfinished();
  const late = await createBy(engine, agent, target.url);
  // Nor can an owner's key, which that node still knows, end the pause.
  const [pause] = await pauseService.list(owner);
  const resumed = pauseService.resume({ ...owner, keyId: agent.keyId }, pause?.id ?? "");
  expect(await refusalOf(resumed)).toMatchObject({ code: "unauthorized" });
  clock.advance(REVOKED_KEY_TAKEN_MS_MAX - 1);
  expect(await statusOf(engine, late.id)).toBe("pending");
  expect(await pauseService.list(owner)).toHaveLength(1);
  clock.advance(1);
  await until(async () => (await pauseService.list(owner)).length === 0);
  expect(await statusOf(engine, late.id)).toBe("cancelled");
  expect(target.received).toEqual([]);
});
