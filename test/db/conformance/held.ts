import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES } from "../../../src/domain/action.ts";
import { cancel, retry } from "../../../src/domain/change.ts";
import { LIST_BYTES_MAX } from "../../../src/domain/limits.ts";
import { ACCOUNT, aDecision, later, OTHER_ACCOUNT, writeOf } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { actionInStatus, createdAction, decided, failedAction, stored } from "./steps.ts";

/** What waits for a person, as the inbox reads it. */
export function testHeld(open: OpenTestStore): void {
  describe("what is held", () => {
    test("is the account's, oldest first, whole, and nothing else", async () => {
      await using db = await open();
      for (const status of ACTION_STATUSES) {
        if (status !== "awaiting_approval") await actionInStatus(db.actions, status);
      }
      const young = await createdAction(db.actions, { approve: true, createdAt: later(5), headers: { "X-A": "1" } });
      const old = await createdAction(db.actions, { approve: true });
      await createdAction(db.actions, { approve: true, accountId: OTHER_ACCOUNT });
      expect(await db.actions.held(ACCOUNT, null, 10)).toEqual({ actions: [old, young], after: null });
    });

    test("comes in pages, each action once", async () => {
      await using db = await open();
      const all = [];
      for (let at = 0; at < 7; at += 1) {
        all.push(await createdAction(db.actions, { approve: true, createdAt: later(at) }));
      }
      const first = await db.actions.held(ACCOUNT, null, 4);
      expect(first).toEqual({ actions: all.slice(0, 4), after: all[3]?.id ?? "" });
      expect(await db.actions.held(ACCOUNT, first.after, 4)).toEqual({ actions: all.slice(4), after: null });
      expect(await db.actions.held(ACCOUNT, all[2]?.id ?? "", 4)).toEqual({ actions: all.slice(3), after: null });
    });

    test("of many bytes comes in pages that stay small, and one in any case", async () => {
      await using db = await open();
      const body = `{"x":"${"a".repeat(LIST_BYTES_MAX)}"}`;
      const big = await createdAction(db.actions, { approve: true, body });
      const small = await createdAction(db.actions, { approve: true, createdAt: later(5) });
      expect(await db.actions.held(ACCOUNT, null, 10)).toEqual({ actions: [big], after: big.id });
      expect(await db.actions.held(ACCOUNT, big.id, 10)).toEqual({ actions: [small], after: null });
    });

    test("is for a host that the account has called before, or for one that it has not", async () => {
      await using db = await open();
      const at = (hostname: string) => ({ url: `https://${hostname}/`, hostname, host: hostname });
      for (const name of ["waits.example", "no.example"])
        await createdAction(db.actions, { ...at(name), approve: true });
      await decided(db.actions, cancel, await createdAction(db.actions, at("no.example")));
      await failedAction(db.actions, at("failed.example"));
      const again = await failedAction(db.actions, at("again.example"));
      await db.actions.apply(writeOf(retry(await stored(db.actions, again), aDecision())));
      await failedAction(db.actions, { ...at("theirs.example"), accountId: OTHER_ACCOUNT });
      const asked = ["waits", "no", "failed", "again", "theirs", "never", "again"].map((name) => `${name}.example`);
      const called = await db.actions.calledHosts(ACCOUNT, asked);
      expect([...called].toSorted()).toEqual(["again.example", "failed.example"]);
      expect(await db.actions.calledHosts(ACCOUNT, [])).toEqual(new Set());
    });

    test("of an account without any is an empty page that ends", async () => {
      await using db = await open();
      expect(await db.actions.held(ACCOUNT, null, 10)).toEqual({ actions: [], after: null });
    });
  });
}
