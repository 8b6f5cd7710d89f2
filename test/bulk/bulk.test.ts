import { describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBulk, type BulkRequest } from "../../src/bulk/service.ts";
import type { BulkEnd } from "../../src/core/bulk-job.ts";
import { BULK_RUNNING_MAX, BULK_STEP_ACTIONS } from "../../src/core/limits.ts";
import type { Caller, Role } from "../../src/core/roles.ts";
import type { JobLeases } from "../../src/runtime/jobs.ts";
import { systemIds } from "../../src/core/ids.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { anApiKey, anAuditEntry, anAuditQuery, answered, joined, NOON, OTHER_ACCOUNT } from "../support/factory.ts";
import { refusalOf } from "../actions/callers.ts";
import { answering } from "../actions/senders.ts";

function bulkOf(engine: Engine, leases?: JobLeases) {
  return createBulk(engine.app, engine.actionService, engine.isStopped, leases);
}

/** A key of the account, as whoever calls with it. */
async function keyOf(engine: Engine, role: Role, more: Parameters<typeof anApiKey>[0] = {}): Promise<Caller> {
  const { accountId } = engine.owner;
  const key = anApiKey({ accountId, name: `${role} of the test`, role, hash: systemIds.key(NOON), ...more });
  await engine.store.accounts.addKey(key);
  const { id: keyId, name: keyName, scope } = key;
  return { accountId, keyId, keyName, role, hold: "none", actor: `key:${keyName}`, scope, replaced: new Set() };
}

async function failed(engine: Engine, count: number, request: Parameters<Engine["create"]>[0] = {}): Promise<string[]> {
  const actions = await Promise.all(Array.from({ length: count }, () => engine.create({ retries: 1, ...request })));
  for (const { id } of actions) await engine.saw(id, { status: "failed" });
  return actions.map(({ id }) => id);
}

const RETRY: BulkRequest = { operation: "retry", filter: { status: ["failed"] }, reason: null };

/** Another node has the right to carry out jobs. */
const AWAY: JobLeases = { run: () => Promise.resolve(false) };

const runOf = async (engine: Engine, id: string) => (await engine.get(id)).run;

const ALL = { status: null, before: null, limit: 100 } as const;

describe("a bulk job", () => {
  test("retries every action that matched when it began once, in steps, also when it fails again meanwhile", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const owner = await keyOf(engine, "owner");
    const { bulkService, bulkRunner } = bulkOf(engine);
    const ids = await failed(engine, BULK_STEP_ACTIONS + 7);
    expect(await bulkService.dryRun(owner, RETRY)).toMatchObject({
      matching: ids.length,
      isMore: false,
      unknownOutcomes: 0,
    });
    const job = await bulkService.start(owner, { ...RETRY, reason: "It is up again." });
    expect(job).toMatchObject({ status: "running", matching: ids.length });
    const [young = ""] = await failed(engine, 1);
    await bulkRunner.run();
    expect(await bulkService.find(owner, job.id)).toMatchObject({ status: "finished", done: ids.length, failed: 0 });
    for (const id of ids) await engine.saw(id, { status: "failed", run: 2 });
    expect(await runOf(engine, young)).toBe(1);
    expect(await engine.events(ids[0] ?? "")).toContainEqual({
      type: "retried",
      actor: owner.actor,
      reason: "It is up again.",
    });
  });

  test("cancels what waits, and rejects what is held", async () => {
    await using engine = await openEngine({ starts: false });
    const owner = await keyOf(engine, "owner");
    const { bulkService, bulkRunner } = bulkOf(engine);
    const pending = await engine.create({});
    const held = await engine.create({ approve: true });
    const other = await engine.create({ url: "http://127.0.0.2:9/" });
    const job = await bulkService.start(owner, {
      operation: "cancel",
      filter: { host: "127.0.0.1" },
      reason: null,
    });
    await bulkRunner.run();
    expect(await bulkService.find(owner, job.id)).toMatchObject({ status: "finished", done: 2 });
    const statusOf = async ({ id }: { id: string }) => (await engine.actionService.get(owner, id)).status;
    expect([await statusOf(pending), await statusOf(held), await statusOf(other)]).toEqual([
      "cancelled",
      "cancelled",
      "pending",
    ]);
    expect((await engine.events(held.id)).at(-1)?.type).toBe("rejected");
  });

  test("takes a cancelled action only where the filter names it, and nothing that the operation is not for", async () => {
    await using engine = await openEngine({ starts: false });
    const owner = await keyOf(engine, "owner");
    const { bulkService } = bulkOf(engine);
    const { id } = await engine.create({});
    await engine.actionService.cancel(owner, id, null);
    const matching = async (filter: BulkRequest["filter"]) =>
      (await bulkService.dryRun(owner, { ...RETRY, filter })).matching;
    expect(await matching({ host: "127.0.0.1" })).toBe(0);
    expect(await matching({ status: ["cancelled", "pending"] })).toBe(1);
    expect(await refusalOf(matching({ status: ["pending", "completed"] }))).toMatchObject({ code: "validation_error" });
  });

  test("takes selected actions by their ids, cancelled ones too, and only those that it is for", async () => {
    await using engine = await openEngine({ sender: answering(answered(500), answered(500), answered(200)) });
    const owner = await keyOf(engine, "owner");
    const { bulkService, bulkRunner } = bulkOf(engine);
    const [one = "", other = ""] = [...(await failed(engine, 1)), ...(await failed(engine, 1))];
    const held = await engine.create({ approve: true });
    await engine.actionService.cancel(owner, held.id, null);
    const done = await engine.create({});
    await engine.saw(done.id, { status: "completed" });
    const selected: BulkRequest = { ...RETRY, filter: { id: [one, held.id, done.id, "act_unknown"] } };
    expect(await bulkService.dryRun(owner, selected)).toMatchObject({ matching: 2, isMore: false, unknownOutcomes: 0 });
    const job = await bulkService.start(owner, selected);
    await bulkRunner.run();
    expect((await bulkService.results(owner, job.id, ALL)).map(({ id, status }) => [id, status])).toEqual([
      [held.id, "done"],
      [one, "done"],
    ]);
    expect([await runOf(engine, held.id), await runOf(engine, other), await runOf(engine, done.id)]).toEqual([2, 1, 1]);
    const agent = await keyOf(engine, "agent");
    expect(await bulkService.dryRun(agent, selected)).toMatchObject({ matching: 0 });
  });

  test("tells what it covers by host and status, the largest group first", async () => {
    const sender = answering(...[503, 422, 503].map((code) => answered(code)), { kind: "unknown", fault: "closed" });
    await using engine = await openEngine({ sender });
    const owner = await keyOf(engine, "owner");
    await failed(engine, 4);
    const { groups } = await bulkOf(engine).bulkService.dryRun(owner, RETRY);
    expect(groups[0]).toMatchObject({ responseCode: 503, count: 2 });
    expect(groups.map(({ responseCode }) => responseCode)).toEqual(expect.arrayContaining([422, null, 503]));
    expect(groups).toHaveLength(3);
  });

  test("keeps the rules of the single operation, and names what was refused", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const owner = await keyOf(engine, "owner");
    const { bulkService, bulkRunner } = bulkOf(engine);
    const { bulkService: beginning } = bulkOf(engine, AWAY);
    const [older = ""] = await failed(engine, 1, { dedupe: "one" });
    const [newer = ""] = await failed(engine, 1, { dedupe: "one" });
    const job = await beginning.start(owner, RETRY);
    // In another run by now: not what was counted.
    await engine.actionService.retry(engine.owner, newer, null);
    await bulkRunner.run();
    expect(await bulkService.find(owner, job.id)).toMatchObject({ status: "finished", done: 0, failed: 2 });
    const results = await bulkService.results(owner, job.id, ALL);
    expect(results.map(({ id, code }) => [id, code])).toEqual([
      [newer, "not_retryable"],
      [older, "not_retryable"],
    ]);
    expect(results[1]?.message).toContain("now has its dedupe key");
    const stranger = { ...owner, accountId: OTHER_ACCOUNT };
    expect(await refusalOf(bulkService.results(stranger, job.id, ALL))).toMatchObject({ code: "not_found" });
  });

  test("of an agent's key covers its own actions; with the scope of the account all", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const agent = await keyOf(engine, "agent");
    await failed(engine, 3);
    const own = (await engine.actionService.create(agent, await engine.create({ retries: 1 }))).action.id;
    await engine.saw(own, { status: "failed" });
    const { bulkService } = bulkOf(engine);
    expect((await bulkService.dryRun(agent, RETRY)).matching).toBe(1);
    expect((await bulkService.dryRun({ ...agent, scope: "account" }, RETRY)).matching).toBe(5);
    const others = { ...RETRY, filter: { status: ["failed" as const], created_by: engine.owner.keyId ?? "" } };
    expect((await bulkService.dryRun(agent, others)).matching).toBe(0);
    const next = { ...agent, keyId: systemIds.key(NOON), replaced: new Set([agent.keyId ?? ""]) };
    expect((await bulkService.dryRun(next, RETRY)).matching).toBe(1);
    const job = await bulkService.start(engine.owner, RETRY);
    expect(await refusalOf(bulkService.stop(agent, job.id))).toMatchObject({ code: "forbidden" });
  });

  test("needs the role that the operation needs", async () => {
    await using engine = await openEngine({ starts: false });
    const { bulkService } = bulkOf(engine);
    const codeFor = async (role: Role, operation: "retry" | "cancel") =>
      (await refusalOf(bulkService.dryRun(await keyOf(engine, role), { operation, filter: {}, reason: null })))?.code;
    expect([await codeFor("reader", "retry"), await codeFor("reader", "cancel")]).toEqual(["forbidden", "forbidden"]);
    expect([await codeFor("approver", "retry"), await codeFor("approver", "cancel")]).toEqual(["forbidden", undefined]);
  });

  test("stops where it is, and what is done stays done", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const owner = await keyOf(engine, "owner");
    let steps = 0;
    const { bulkService, bulkRunner } = bulkOf(engine, {
      async run(_name, work) {
        steps += 1;
        if (steps === 1) await work(new AbortController().signal);
        return true;
      },
    });
    await failed(engine, BULK_STEP_ACTIONS * 2);
    const { bulk } = engine.store;
    const settle = bulk.settle.bind(bulk);
    const job = await bulkService.start(owner, RETRY);
    Object.assign(bulk, {
      settle: async (id: string, ends: readonly BulkEnd[]) => {
        await settle(id, ends);
        await bulkService.stop(engine.owner, job.id);
      },
    });
    await bulkRunner.run();
    expect(await bulkService.find(owner, job.id)).toMatchObject({
      status: "stopped",
      stoppedBy: engine.owner.actor,
      done: BULK_STEP_ACTIONS,
    });
    await bulkService.stop(owner, job.id);
  });

  test("ends when the key that began it is revoked", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const owner = await keyOf(engine, "owner");
    const [id = ""] = await failed(engine, 1);
    const job = await bulkOf(engine, AWAY).bulkService.start(owner, RETRY);
    await engine.store.accounts.revokeKey(owner.accountId, owner.keyId ?? "", engine.clock.now());
    const { bulkService, bulkRunner } = bulkOf(engine);
    await bulkRunner.run();
    expect(await bulkService.find(engine.owner, job.id)).toMatchObject({ status: "stopped", stoppedBy: "system" });
    expect(await runOf(engine, id)).toBe(1);
  });

  test("ends when its account is stopped", async () => {
    await using engine = await openEngine({ starts: false });
    const job = await bulkOf(engine, AWAY).bulkService.start(engine.owner, RETRY);
    const { bulkService, bulkRunner } = createBulk(engine.app, engine.actionService, () => true);
    await bulkRunner.run();
    expect(await bulkService.find(engine.owner, job.id)).toMatchObject({ status: "stopped", stoppedBy: "system" });
  });

  test("of a person goes on with the role that they have by then", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const { owner, store } = engine;
    const { accountId } = owner;
    await joined(store, { accountId, role: "owner" });
    const { person } = await joined(store, { accountId, role: "owner" });
    const [id = ""] = await failed(engine, 1);
    const caller: Caller = { ...owner, keyId: null, personId: person.id, actor: `user:${person.email}` };
    const job = await bulkOf(engine, AWAY).bulkService.start(caller, RETRY);
    expect(await store.team.changeRole(accountId, person.id, "reader", anAuditEntry({ accountId }))).toBe("done");
    const { bulkService, bulkRunner } = bulkOf(engine);
    await bulkRunner.run();
    expect(await bulkService.results(owner, job.id, ALL)).toMatchObject([{ id, status: "failed", code: "forbidden" }]);
  });

  test("is one of a few in an account, and its reason is masked in the audit log", async () => {
    await using engine = await openEngine({ starts: false });
    const { owner, store } = engine;
    const { bulkService } = bulkOf(engine, AWAY);
    const reason = `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`;
    for (let n = 0; n < BULK_RUNNING_MAX; n += 1) await bulkService.start(owner, { ...RETRY, reason });
    expect(await refusalOf(bulkService.start(owner, RETRY))).toMatchObject({ code: "too_many_jobs" });
    const { rows: entries } = await store.audit.page(
      anAuditQuery({ accountId: owner.accountId, kinds: ["bulk_started"] }),
    );
    expect(entries).toHaveLength(BULK_RUNNING_MAX);
    expect(JSON.stringify(entries)).not.toContain(reason);
  });

  test("fails no action because the store is away", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    await failed(engine, 2);
    const retry = () => Promise.reject(new StoreUnavailable("Away."));
    const away = createBulk(engine.app, { ...engine.actionService, retry }, engine.isStopped);
    const { id } = await away.bulkService.start(engine.owner, RETRY);
    await away.bulkRunner.run();
    expect(await away.bulkService.find(engine.owner, id)).toMatchObject({ status: "running", done: 0, failed: 0 });
    await bulkOf(engine).bulkRunner.run();
    expect(await away.bulkService.find(engine.owner, id)).toMatchObject({ status: "finished", done: 2 });
  });

  test("counts as done what it cancelled or rejected and could not note", async () => {
    await using engine = await openEngine({ starts: false });
    const { owner, store } = engine;
    for (const approve of [true, false]) await engine.create({ approve });
    const { bulkService, bulkRunner } = bulkOf(engine);
    const settle = store.bulk.settle.bind(store.bulk);
    Object.assign(store.bulk, { settle: () => Promise.reject(new StoreUnavailable("Away.")) });
    const { id } = await bulkService.start(owner, { operation: "cancel", filter: {}, reason: null });
    await bulkRunner.run();
    Object.assign(store.bulk, { settle });
    await bulkRunner.run();
    expect(await bulkService.find(owner, id)).toMatchObject({ status: "finished", done: 2, failed: 0 });
  });

  test("goes on after a restart, and does nothing twice that it did and could not note", async () => {
    const folder = mkdtempSync(join(tmpdir(), "outgate-"));
    const sender = answering(answered(500));
    const open = () => openEngine({ folder, sender, env: { SECRET_KEY: Buffer.alloc(32, 5).toString("base64") } });
    const before = await open();
    const owner = await keyOf(before, "owner");
    const ids = await failed(before, 3);
    const { bulkService, bulkRunner } = bulkOf(before);
    Object.assign(before.store.bulk, { settle: () => Promise.reject(new StoreUnavailable("Away.")) });
    const job = await bulkService.start(owner, RETRY);
    await bulkRunner.run();
    for (const id of ids) await before.saw(id, { status: "failed", run: 2 });
    expect(await bulkService.find(owner, job.id)).toMatchObject({ status: "running", done: 0 });
    await before[Symbol.asyncDispose]();

    await using after = await open();
    const next = bulkOf(after);
    await next.bulkRunner.run();
    expect(await next.bulkService.find(owner, job.id)).toMatchObject({ status: "finished", done: 3, failed: 0 });
    for (const id of ids) expect(await runOf(after, id)).toBe(2);
  });
});
