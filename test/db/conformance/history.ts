import { describe, expect, test } from "bun:test";
import { cancel } from "../../../src/actions/changes.ts";
import { OVERVIEW_SLOT_MS, RETRY_HOSTS_SHOWN_MAX } from "../../../src/config/limits.ts";
import { ACCOUNT, answered, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { ActivityPage } from "../../../db/store.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { attempted, createdAction, decided, failedAction } from "./steps.ts";

/** What the overview counts. */
export function testHistory(open: OpenTestStore): void {
  describe("the activity of an account", () => {
    const DAY = { since: later(-86_400_000), until: Number.MAX_SAFE_INTEGER, limit: 100 };

    test("is its creations and attempts by slot, end and duration, and its attempts by host", async () => {
      await using db = await open();
      const other = await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      await attempted(db.actions, other, answered(200));
      await failedAction(db.actions);
      await attempted(db.actions, await createdAction(db.actions), answered(503), { now: later(10) });
      await attempted(db.actions, await createdAction(db.actions, { url: "http://b.example:81/" }), answered(200), {
        now: later(OVERVIEW_SLOT_MS),
        durationMs: 1_234,
      });
      await decided(db.actions, cancel, await createdAction(db.actions, { approve: true }));
      const { counts, hosts, next } = await db.actions.activity(ACCOUNT, DAY);
      expect(counts.toSorted((a, b) => a.kind.localeCompare(b.kind))).toEqual([
        { at: later(OVERVIEW_SLOT_MS), kind: "completed", durationMs: 1_234, count: 1 },
        { at: NOON, kind: "created", durationMs: null, count: 4 },
        { at: NOON, kind: "failed", durationMs: 10, count: 1 },
        { at: NOON, kind: "retry", durationMs: 10, count: 1 },
      ]);
      expect(hosts.toSorted((a, b) => a.host.localeCompare(b.host))).toMatchObject([
        {
          host: "api.example.com",
          attempts: 2,
          failed: 2,
          lastError: "The target answered with status 503.",
          lastFailedAt: later(10),
        },
        { host: "b.example:81", attempts: 1, failed: 0 },
      ]);
      expect(next).toBeNull();
      const { counts: younger } = await db.actions.activity(ACCOUNT, { ...DAY, since: later(1) });
      expect(younger.map(({ kind }) => kind).toSorted()).toEqual(["completed", "retry"]);
    });

    test("comes in pages that count each row once, and puts similar durations together", async () => {
      await using db = await open();
      for (let count = 0; count < 3; count += 1) {
        await attempted(db.actions, await createdAction(db.actions), answered(200), { durationMs: 510 + count });
      }
      const whole = await db.actions.activity(ACCOUNT, DAY);
      expect(whole.counts.filter(({ kind }) => kind === "completed")).toEqual([
        { at: NOON, kind: "completed", durationMs: 511, count: 3 },
      ]);
      const kinds: string[] = [];
      let pages = 0;
      for (let until: number | null = await db.actions.position(); until !== null; pages += 1) {
        const page: ActivityPage = await db.actions.activity(ACCOUNT, { ...DAY, until, limit: 2 });
        kinds.push(...page.counts.map(({ kind }) => kind));
        expect(page.oldestAt).toEqual(page.next === null ? new Date(0) : NOON);
        until = page.next;
      }
      expect([kinds.toSorted(), pages]).toEqual([
        ["completed", "completed", "completed", "created", "created", "created"],
        7,
      ]);
    });
  });

  describe("scheduled retries", () => {
    test("are counted by host if they are not due, the next one first", async () => {
      await using db = await open();
      const hosts = ["b.example", "a.example", "a.example"];
      for (const [at, host] of hosts.entries()) {
        const action = await createdAction(db.actions, { url: `https://${host}/`, createdAt: later(at) });
        await attempted(db.actions, action, answered(500), { now: later(at * 1_000) });
      }
      await createdAction(db.actions);
      await createdAction(db.actions, { approve: true });
      await failedAction(db.actions);
      const theirs = await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      await attempted(db.actions, theirs, answered(500));
      expect(await db.actions.scheduledRetries(ACCOUNT, later(100))).toEqual({
        count: 3,
        due: 1,
        isCut: false,
        hosts: [
          { host: "b.example", count: 1, nextAt: later(2_000) },
          { host: "a.example", count: 2, nextAt: later(3_000) },
        ],
      });
      expect(await db.actions.scheduledRetries(ACCOUNT, later(60_000))).toEqual({
        count: 0,
        due: 4,
        isCut: false,
        hosts: [],
      });
    });

    test("list the hosts that come next", async () => {
      await using db = await open();
      for (let at = 0; at < RETRY_HOSTS_SHOWN_MAX + 2; at += 1) {
        const action = await createdAction(db.actions, { url: `https://h${at}.example/`, createdAt: later(at) });
        await attempted(db.actions, action, answered(500), { now: later(at * 1_000) });
      }
      const { count, hosts } = await db.actions.scheduledRetries(ACCOUNT, NOON);
      expect(count).toBe(RETRY_HOSTS_SHOWN_MAX + 2);
      expect(hosts.map(({ host }) => host)).toEqual(
        Array.from({ length: RETRY_HOSTS_SHOWN_MAX }, (_, at) => `h${at}.example`),
      );
    });
  });
}
