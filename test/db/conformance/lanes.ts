import { describe, expect, test } from "bun:test";
import type { ActionStore, LaneHead, LaneName } from "../../../db/store.ts";
import { ACCOUNT, answered, KEY, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { actionInStatus, attempted, claimed, createdAction } from "./steps.ts";

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
      expect(await db.actions.pending({ ...LANE, keyId: "key_a" }, 1)).toMatchObject([{ id: first.id }]);
      expect(await db.actions.pending({ ...LANE, keyId: "key_b" }, 10)).toHaveLength(1);
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

  describe("the pending actions of a lane", () => {
    test("come by due time, due or not, as many as asked for", async () => {
      await using db = await open();
      const times = [5_000, -3_000, 86_400_000, 0];
      for (const ms of times) await createdAction(db.actions, { createdAt: later(ms) });
      expect(await dueTimes(db.actions, 10)).toEqual([-3_000, 0, 5_000, 86_400_000]);
      expect(await dueTimes(db.actions, 2)).toEqual([-3_000, 0]);
    });

    test("are of this account and this host with its port", async () => {
      await using db = await open();
      await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      await createdAction(db.actions, { url: "http://api.example.com:8080/" });
      const mine = await createdAction(db.actions);
      expect(await db.actions.pending(LANE, 10)).toEqual([{ id: mine.id, revision: 1, dueAt: NOON }]);
    });

    test("carry the revision of now, with which they can be claimed", async () => {
      await using db = await open();
      const failed = await attempted(db.actions, await createdAction(db.actions), answered(500), { chance: 0.5 });
      const [due] = await db.actions.pending(LANE, 10);
      expect(due).toEqual({ id: failed.id, revision: 3, dueAt: later(2_000) });
      const claims = await db.actions.claim(due === undefined ? [] : [due], {
        now: later(2_000),
        leaseUntil: later(9_000),
      });
      expect(claims).toMatchObject([{ id: failed.id, attempts: 2 }]);
      expect(await db.actions.pending(LANE, 10)).toEqual([]);
    });
  });
}

async function dueTimes(actions: ActionStore, limit: number): Promise<readonly number[]> {
  return (await actions.pending(LANE, limit)).map(({ dueAt }) => dueAt.getTime() - NOON.getTime());
}

function nameOf({ accountId, host }: LaneName): string {
  return `${accountId} ${host}`;
}

function sorted(heads: readonly LaneHead[]): readonly LaneHead[] {
  return heads.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}
