import { describe, expect, test } from "bun:test";
import { cancel } from "../../../src/actions/changes.ts";
import { ASLEEP_HOSTS_MAX } from "../../../src/config/limits.ts";
import { ACCOUNT, answered, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { attempted, createdAction, decided, failedAction } from "./steps.ts";

/** What the overview reads: what happened lately, and what sleeps. */
export function testHistory(open: OpenTestStore): void {
  describe("the history", () => {
    test("tells creations and attempts of every account, newest first, and nothing else", async () => {
      await using db = await open();
      await failedAction(db.actions);
      const other = await createdAction(db.actions, { accountId: OTHER_ACCOUNT, url: "http://b.example:81/" });
      await attempted(db.actions, other, answered(200));
      await attempted(db.actions, await createdAction(db.actions), answered(500));
      await decided(db.actions, cancel, await createdAction(db.actions, { approve: true }));
      const error = "The target answered with status 500.";
      const attempt = {
        kind: "attempted",
        accountId: ACCOUNT,
        at: NOON,
        host: "api.example.com",
        durationMs: 10,
      } as const;
      const created = { kind: "created", accountId: ACCOUNT, at: NOON } as const;
      expect(await db.actions.history(await db.actions.position(), 100)).toEqual({
        counted: [
          created,
          { ...attempt, next: "retry", error },
          created,
          { ...attempt, accountId: OTHER_ACCOUNT, host: "b.example:81", next: "completed", error: null },
          { ...created, accountId: OTHER_ACCOUNT },
          { ...attempt, next: "failed", error },
          created,
        ],
        until: null,
      });
    });

    test("comes in pages, each thing once, however little a page tells", async () => {
      await using db = await open();
      for (let count = 0; count < 3; count += 1) await failedAction(db.actions);
      const told = [];
      for (let until: number | null = await db.actions.position(); until !== null;) {
        const page = await db.actions.history(until, 2);
        told.push(...page.counted.map(({ kind }) => kind));
        until = page.until;
      }
      expect(told).toEqual(["attempted", "created", "attempted", "created", "attempted", "created"]);
      expect(await db.actions.history(0, 2)).toEqual({ counted: [], until: null });
    });
  });

  describe("what sleeps", () => {
    test("are the account's retries that are not due, by host, the next one first", async () => {
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

    test("of many hosts those are told that come next", async () => {
      await using db = await open();
      for (let at = 0; at < ASLEEP_HOSTS_MAX + 2; at += 1) {
        const action = await createdAction(db.actions, { url: `https://h${at}.example/`, createdAt: later(at) });
        await attempted(db.actions, action, answered(500), { now: later(at * 1_000) });
      }
      const { count, hosts } = await db.actions.scheduledRetries(ACCOUNT, NOON);
      expect(count).toBe(ASLEEP_HOSTS_MAX + 2);
      expect(hosts.map(({ host }) => host)).toEqual(
        Array.from({ length: ASLEEP_HOSTS_MAX }, (_, at) => `h${at}.example`),
      );
    });
  });
}
