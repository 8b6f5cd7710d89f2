import { describe, expect, test } from "bun:test";
import { SMALL_ROW_BYTES_MAX } from "../../../src/core/limits.ts";
import type { Action } from "../../../src/core/action.ts";
import type { LaneHead, LaneName } from "../../../src/core/store.ts";
import { ACCOUNT, answered, KEY, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { actionInStatus, attempted, claimDue, claimed, claimOf, createdAction, stored } from "./steps.ts";

const LANE: LaneName = { accountId: ACCOUNT, host: "api.example.com", keyId: KEY };

/** The queues that the dispatcher reads: one an account and host. */
export function testLanes(open: OpenTestStore): void {
  describe("lanes", () => {
    test("are the accounts and hosts with pending actions, each with its earliest time", async () => {
      await using db = await open();
      await createdAction(db.actions, { createdAt: later(9) });
      await createdAction(db.actions, { createdAt: later(3) });
      await createdAction(db.actions, { createdAt: later(6) });
      await createdAction(db.actions, { url: "http://a.example:8080/", accountId: OTHER_ACCOUNT });
      const heads = await db.actions.lanes(null, 10);
      expect(sorted(heads)).toEqual([
        { ...LANE, dueAt: later(3) },
        { accountId: OTHER_ACCOUNT, host: "a.example:8080", keyId: KEY, dueAt: NOON },
      ]);
    });

    test("are of one key each: what one key has queued is not before what another one sends", async () => {
      await using db = await open();
      const keys = ["key_b", "key_a", ""];
      for (const keyId of keys) await createdAction(db.actions, { keyId, createdAt: later(3) });
      const first = await createdAction(db.actions, { keyId: "key_a" });
      const heads = await db.actions.lanes(null, 10);
      expect(heads).toEqual([
        { ...LANE, keyId: "", dueAt: later(3) },
        { ...LANE, keyId: "key_a", dueAt: NOON },
        { ...LANE, keyId: "key_b", dueAt: later(3) },
      ]);
      expect(await db.actions.lanes(heads[0] ?? null, 1)).toEqual(heads.slice(1, 2));
      expect(await claimDue(db.actions, { ...LANE, keyId: "key_a" }, { limit: 1 })).toMatchObject([{ id: first.id }]);
      expect(await claimDue(db.actions, { ...LANE, keyId: "key_b" }, { at: at(9) })).toHaveLength(1);
    });

    test("tell when the action that is due first is due, whichever lane it is in", async () => {
      await using db = await open();
      expect(await db.actions.firstDueAt()).toBeNull();
      for (const [at, host] of ["c.example", "a.example", "b.example"].entries()) {
        await createdAction(db.actions, { url: `https://${host}/`, createdAt: later(5 + at) });
        await createdAction(db.actions, { url: `https://${host}/`, createdAt: later(50) });
      }
      await createdAction(db.actions, { url: "https://a.example/", keyId: "key_z", createdAt: later(4) });
      expect(await db.actions.firstDueAt()).toEqual(later(4));
      await createdAction(db.actions, { accountId: OTHER_ACCOUNT, createdAt: later(2) });
      const active = await createdAction(db.actions, { createdAt: later(1) });
      await claimed(db.actions, active);
      expect(await db.actions.firstDueAt()).toEqual(later(2));
    });

    test("leave out what is not pending", async () => {
      await using db = await open();
      const statuses = ["active", "awaiting_approval", "completed", "failed", "cancelled"] as const;
      for (const status of statuses) await actionInStatus(db.actions, status, { url: `https://${status}.example/` });
      expect(await db.actions.lanes(null, 10)).toEqual([]);
    });

    test.each([1, 2, 3, 100])("come in a fixed order that goes on after any of them (%d at a time)", async (limit) => {
      await using db = await open();
      const hosts = [
        "a.example",
        "a.example:8080",
        "a.example.org",
        "b-1.example",
        "b1.example",
        "[::1]:3000",
        "xn--4ca",
      ];
      for (const host of hosts) {
        await createdAction(db.actions, { url: `http://${host}/` });
        await createdAction(db.actions, { url: `http://${host}/`, accountId: OTHER_ACCOUNT });
        await createdAction(db.actions, { url: `http://${host}/`, createdAt: later(-1) });
      }
      const seen: LaneHead[] = [];
      let heads = await db.actions.lanes(null, limit);
      while (heads.length > 0 && seen.length < 100) {
        expect(heads.length).toBeLessThanOrEqual(limit);
        seen.push(...heads);
        heads = await db.actions.lanes(heads.at(-1) ?? null, limit);
      }
      expect(seen).toEqual([...(await db.actions.lanes(null, 100))]);
      expect(seen.map(nameOf).toSorted()).toEqual(
        hosts.flatMap((host) => [`${ACCOUNT} ${host}`, `${OTHER_ACCOUNT} ${host}`]).toSorted(),
      );
    });

    test("go on after one that is empty by now", async () => {
      await using db = await open();
      const first = await createdAction(db.actions, { url: "https://a.example/" });
      await createdAction(db.actions, { url: "https://b.example/" });
      const [head] = await db.actions.lanes(null, 1);
      await claimed(db.actions, first);
      const rest = await db.actions.lanes(head ?? null, 10);
      expect(rest.map(({ host }) => host)).toEqual(["b.example"]);
    });
  });

  describe("a claim", () => {
    test("takes the earliest due rows of a lane, as many as are asked for, and tells when the next one is due", async () => {
      await using db = await open();
      const created: Action[] = [];
      for (const ms of [5_000, -3_000, 86_400_000, 0, 0]) {
        created.push(await createdAction(db.actions, { createdAt: later(ms) }));
      }
      const claim = async (limit: number, ms: number) => {
        const { rows, next } = await db.actions.claimDue(claimOf(LANE, { limit, at: at(ms) }));
        return [rows.map(({ row }) => created.findIndex(({ id }) => id === row.id)), next.map(({ dueAt }) => dueAt)];
      };
      expect(await claim(1, 0)).toEqual([[1], [NOON]]);
      // Of two that are due at the same time the older one goes first.
      expect(await claim(1, 0)).toEqual([[3], [NOON]]);
      expect(await claim(9, 0)).toEqual([[4], [later(5_000)]]);
      expect(await claim(9, 4_999)).toEqual([[], [later(5_000)]]);
      expect(await claim(9, 5_000)).toEqual([[0], [later(86_400_000)]]);
      expect(await claim(9, 86_400_000)).toEqual([[2], []]);
    });

    test("is of this account, this key and this host with its port", async () => {
      await using db = await open();
      await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      await createdAction(db.actions, { keyId: "key_other" });
      await createdAction(db.actions, { url: "http://api.example.com:8080/" });
      const mine = await createdAction(db.actions);
      expect(await claimDue(db.actions, LANE)).toMatchObject([{ id: mine.id }]);
    });

    test("of many lanes gives one row to each in turn, in their order, within its bytes; the first one always fits", async () => {
      await using db = await open();
      const lanes = ["b.example", "a.example", "c.example"].map((host) => ({ ...LANE, host }));
      const body = JSON.stringify("x".repeat(1_000));
      for (const { host } of lanes) {
        for (let n = 0; n < 3; n += 1) await createdAction(db.actions, { url: `http://${host}/`, body });
      }
      const claim = async (bytesMax: number) => {
        const asked = claimOf(LANE, { bytesMax });
        const { rows, next } = await db.actions.claimDue({
          ...asked,
          lanes: lanes.map((lane) => ({ ...lane, limit: 2 })),
        });
        return { hosts: rows.map(({ row }) => row.host).toSorted(), next: next.map(({ host }) => host).toSorted() };
      };
      const all = ["a.example", "b.example", "c.example"];
      expect(await claim(1)).toEqual({ hosts: ["b.example"], next: all });
      expect(await claim(4_100)).toEqual({
        hosts: ["a.example", "b.example", "b.example", "c.example"],
        next: ["a.example", "c.example"],
      });
      expect(await claim(1_048_576)).toEqual({ hosts: ["a.example", "a.example", "c.example", "c.example"], next: [] });
    });

    test("of small rows ends before the first large one, which is named as the next", async () => {
      await using db = await open();
      const large = JSON.stringify("é".repeat(SMALL_ROW_BYTES_MAX));
      const [first, second, third] = [
        await createdAction(db.actions),
        await createdAction(db.actions, { body: large, headers: { "X-A": "1" } }),
        await createdAction(db.actions),
      ];
      const small = await db.actions.claimDue(claimOf(LANE, { takesLarge: false }));
      expect(small.rows).toMatchObject([{ row: { id: first.id }, largeBytes: 0 }]);
      expect(small.next).toEqual([{ ...LANE, dueAt: NOON, isLarge: true }]);
      const { rows, next } = await db.actions.claimDue(claimOf(LANE, { bytesMax: 1 }));
      expect(rows.map(({ row }) => row)).toEqual([await stored(db.actions, second)]);
      expect(rows[0]?.largeBytes).toBeGreaterThan(2 * SMALL_ROW_BYTES_MAX);
      expect(rows[0]?.row).toMatchObject({ body: large, headers: { "X-A": "1" } });
      expect(next).toEqual([{ ...LANE, dueAt: NOON, isLarge: false }]);
      expect(await claimDue(db.actions, LANE, { takesLarge: false })).toMatchObject([{ id: third.id }]);
    });

    test("finds a lane whose name is no well-formed text, or has quotes in it", async () => {
      await using db = await open();
      for (const host of ["\ud800", `"],["`, "", "a b", "\u0000"]) {
        expect(await db.actions.claimDue(claimOf({ ...LANE, host }))).toEqual({ rows: [], next: [] });
      }
    });

    test("takes a row again that failed, with the attempt counted", async () => {
      await using db = await open();
      const failed = await attempted(db.actions, await createdAction(db.actions), answered(500), { chance: 0.5 });
      expect(await claimDue(db.actions, LANE)).toEqual([]);
      expect(await claimDue(db.actions, LANE, { at: at(2_000) })).toMatchObject([{ id: failed.id, attempts: 2 }]);
      expect(await db.actions.lanes(null, 10)).toEqual([]);
    });
  });
}

const at = (ms: number) => ({ now: later(ms), leaseUntil: later(ms + 45_000) });

function nameOf({ accountId, host }: LaneName): string {
  return `${accountId} ${host}`;
}

function sorted(heads: readonly LaneHead[]): readonly LaneHead[] {
  return heads.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}
