import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES } from "../../../src/domain/action.ts";
import { LIST_BYTES_MAX } from "../../../src/domain/limits.ts";
import { ACCOUNT, later, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { actionInStatus, createdAction } from "./steps.ts";

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

    test("of an account without any is an empty page that ends", async () => {
      await using db = await open();
      expect(await db.actions.held(ACCOUNT, null, 10)).toEqual({ actions: [], after: null });
    });
  });
}
