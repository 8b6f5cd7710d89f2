import { describe, expect } from "bun:test";
import { BULK_ACTIONS_MAX, BULK_RUNNING_MAX } from "../../../src/core/limits.ts";
import { ACCOUNT, aBulkJob, anAuditEntry, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import { audited } from "./steps.ts";
import type { StoreTest } from "./store-test.ts";

const THREE = [
  { id: "act_1", run: 1 },
  { id: "act_3", run: 7 },
  { id: "act_2", run: 1 },
];

const ENTRY = anAuditEntry({ kind: "bulk_started" });

/** Bulk jobs, their actions and what became of each. */
export function testBulk(test: StoreTest): void {
  describe("a bulk job", () => {
    test("has its actions, newest first, until each has its result", async (db, { bulk }) => {
      const job = aBulkJob();
      expect(await bulk.add(job, THREE, ENTRY)).toBe(true);
      expect(await bulk.find(ACCOUNT, job.id)).toEqual(job);
      expect(await bulk.find(OTHER_ACCOUNT, job.id)).toBeNull();
      expect(await bulk.running(9)).toEqual([job]);
      expect(await bulk.waiting(job.id, 2)).toEqual([
        { id: "act_3", run: 7 },
        { id: "act_2", run: 1 },
      ]);
      const refused = { id: "act_2", status: "failed", code: "not_retryable", message: "No." } as const;
      await bulk.settle(job.id, [{ id: "act_3", status: "done", actionStatus: "pending" }, refused]);
      // A second result of the same action comes too late.
      await bulk.settle(job.id, [{ id: "act_3", status: "failed", code: "x", message: "y" }]);
      expect(await bulk.find(ACCOUNT, job.id)).toMatchObject({ done: 1, failed: 1, status: "running" });
      expect(await bulk.waiting(job.id, 9)).toEqual([{ id: "act_1", run: 1 }]);
      const results = await bulk.results(job.id, { status: null, before: null, limit: 9 });
      expect(results).toEqual([
        { id: "act_3", run: 7, status: "done", actionStatus: "pending", code: null, message: null },
        { id: "act_2", run: 1, status: "failed", actionStatus: null, code: "not_retryable", message: "No." },
        { id: "act_1", run: 1, status: "waiting", actionStatus: null, code: null, message: null },
      ]);
      expect(await bulk.results(job.id, { status: "failed", before: null, limit: 9 })).toEqual(results.slice(1, 2));
      expect(await bulk.results(job.id, { status: null, before: "act_3", limit: 1 })).toEqual(results.slice(1, 2));
      await db.restart();
      expect(await db.store.bulk.waiting(job.id, 9)).toHaveLength(1);
    });

    test("ends once, with one entry in the audit log", async (db, { bulk }) => {
      const job = aBulkJob();
      await bulk.add(job, [], { ...ENTRY, subject: job.id });
      const ended = { ...ENTRY, kind: "bulk_stopped", subject: job.id } as const;
      expect(await bulk.end(job.id, { status: "stopped", at: later(5), by: "key:boss" }, ended)).toBe(true);
      expect(await bulk.end(job.id, { status: "finished", at: later(9), by: null }, ended)).toBe(false);
      expect(await bulk.find(ACCOUNT, job.id)).toEqual({
        ...job,
        status: "stopped",
        finishedAt: later(5),
        stoppedBy: "key:boss",
      });
      expect(await bulk.running(9)).toEqual([]);
      expect((await audited(db.store)).map(({ kind }) => kind)).toEqual(["bulk_stopped", "bulk_started"]);
    });

    test("is refused, and leaves nothing, while too many run; another account has its own", async (db) => {
      const { bulk } = db.store;
      const jobs = Array.from({ length: BULK_RUNNING_MAX + 3 }, () => aBulkJob());
      const added = await Promise.all(jobs.map((job) => bulk.add(job, THREE, ENTRY)));
      expect(added.filter(Boolean)).toHaveLength(BULK_RUNNING_MAX);
      const refused = jobs[added.indexOf(false)];
      expect(await bulk.find(ACCOUNT, refused?.id ?? "")).toBeNull();
      expect(await bulk.results(refused?.id ?? "", { status: null, before: null, limit: 9 })).toEqual([]);
      expect(await bulk.add(aBulkJob({ accountId: OTHER_ACCOUNT }), THREE, ENTRY)).toBe(true);
      await bulk.end(jobs[added.indexOf(true)]?.id ?? "", { status: "finished", at: NOON, by: null });
      expect(await bulk.add(aBulkJob(), THREE, ENTRY)).toBe(true);
      const listed = await bulk.list(ACCOUNT, null, 3);
      expect(listed.map(({ id }) => id)).toEqual(
        listed
          .map(({ id }) => id)
          .toSorted()
          .toReversed(),
      );
      expect(await bulk.list(ACCOUNT, listed[0]?.id ?? "", 1)).toEqual(listed.slice(1, 2));
    });

    test("of as many actions as it may have is written at once", async ({ store: { bulk } }) => {
      const job = aBulkJob({ matching: BULK_ACTIONS_MAX });
      const actions = Array.from({ length: BULK_ACTIONS_MAX }, (_, at) => ({ id: `act_${1e5 + at}`, run: 1 }));
      expect(await bulk.add(job, actions, ENTRY)).toBe(true);
      expect(await bulk.waiting(job.id, BULK_ACTIONS_MAX + 1)).toHaveLength(BULK_ACTIONS_MAX);
    });

    test("is deleted with its results some time after its end, in steps, and never before", async (db) => {
      const { bulk } = db.store;
      const [old, young, running] = [aBulkJob(), aBulkJob(), aBulkJob()];
      const many = Array.from({ length: 700 }, (_, at) => ({ id: `act_${1e5 + at}`, run: 1 }));
      for (const job of [old, young, running]) await bulk.add(job, many, ENTRY);
      await bulk.end(old.id, { status: "finished", at: NOON, by: null });
      await bulk.end(young.id, { status: "finished", at: later(60), by: null });
      const steps = [];
      for (let isMore = true; isMore; steps.push(isMore)) isMore = await bulk.prune(later(9));
      expect(steps.length).toBeGreaterThan(2);
      expect(await bulk.find(ACCOUNT, old.id)).toBeNull();
      expect(await bulk.results(old.id, { status: null, before: null, limit: 9 })).toEqual([]);
      for (const job of [young, running]) expect(await bulk.waiting(job.id, 999)).toHaveLength(700);
    });
  });
}
