import { describe, expect, test } from "bun:test";
import { type Action, ACTION_STATUSES, HTTP_METHODS } from "../../../src/core/action.ts";
import { NO_SEARCH, type Search } from "../../../src/core/search.ts";
import { cancel } from "../../../src/core/changes.ts";
import { LIST_BYTES_MAX, LIST_SCAN_ROWS_MAX, SEARCH_STEP_ROWS } from "../../../src/core/limits.ts";
import type { ActionQuery, ActionStore } from "../../../src/core/store.ts";
import {
  aBulkJob,
  aCreation,
  aDecision,
  anAction,
  anAuditEntry,
  aQuery,
  later,
  NOON,
  OTHER_ACCOUNT,
  writeOf,
} from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { actionInStatus, claimDue, createdAction, failedAction } from "./steps.ts";

/** Lists: newest first, by keyset, each filter, and never more than a bounded look a page. */
export function testPaging(open: OpenTestStore): void {
  test("a list is the account's, newest first, and whole", async () => {
    await using db = await open();
    const old = await actionInStatus(db.actions, "failed", { createdAt: later(-5), headers: { "X-A": "1" } });
    const young = await createdAction(db.actions, { createdAt: later(5) });
    const middle = await createdAction(db.actions);
    await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
    expect(await db.actions.list(aQuery())).toEqual({
      actions: [young, middle, old],
      before: null,
      searchedUntil: null,
    });
  });

  test("an account without actions has an empty list that ends", async () => {
    await using db = await open();
    expect(await db.actions.list(aQuery())).toEqual({ actions: [], before: null, searchedUntil: null });
  });

  test.each([4, 5, 6, 7])("12 actions in pages of %d: each once, and the last page ends", async (limit) => {
    await using db = await open();
    const ids = await many(db.actions, 12);
    const pages = await allPages(db.actions, aQuery({ limit }));
    expect(pages.flat()).toEqual(ids.toReversed());
    expect(pages).toHaveLength(Math.ceil(12 / limit));
  });

  test("pages neither skip nor repeat while others create and change", async () => {
    await using db = await open();
    const ids = await many(db.actions, 40);
    const pages = await allPages(db.actions, aQuery({ limit: 7 }), async (page) => {
      await Promise.all([many(db.actions, 9, { createdAt: later(1) }), many(db.actions, 9)]);
      await claimDue(db.actions, anAction(), { limit: page.length, at: { now: later(9), leaseUntil: NOON } });
    });
    const seen = pages.flat();
    expect(new Set(seen).size).toBe(seen.length);
    // Of those that came in the same millisecond some stand behind the cursor.
    expect(seen.filter((id) => ids.includes(id))).toEqual(ids.toReversed());
  });

  test("a search of several steps has each row once that matches all the time, while creates and settles run beside", async () => {
    await using db = await open();
    const statuses = ["pending", "failed"] as const;
    const staying: string[] = [];
    const leaving: Action[] = [];
    for (let at = 0; at < 3 * SEARCH_STEP_ROWS; at += 50) {
      const both = await Promise.all([many(db.actions, 30), madeAll(20, () => createdAction(db.actions))]);
      staying.push(...both[0]);
      leaving.push(...both[1]);
    }
    let isOver = false;
    const disturb = async () => {
      for (let at = 1; !isOver; at += 1) {
        await failedAction(db.actions, { createdAt: later(at) });
        const one = leaving.pop();
        if (one !== undefined) await db.actions.apply(writeOf(cancel(one, aDecision())));
      }
    };
    const disturbing = madeAll(8, disturb);
    const wrong: object[] = [];
    const check = (ids: readonly string[]) => {
      const seen = new Set(ids);
      const skipped = staying.filter((id) => !seen.has(id)).length;
      if (seen.size < ids.length || skipped > 0) wrong.push({ repeated: ids.length - seen.size, skipped });
    };
    const query = aQuery({ statuses });
    for (let round = 0; round < 6; round += 1) {
      const { actions: matched } = await db.actions.matching({ ...query, limit: 9_999 }, 99_999);
      check(matched.map(({ id }) => id));
      expect(await db.store.bulk.add(aBulkJob(), matched, anAuditEntry())).toBe(true);
      // What is decided in code has steps within its pages too.
      const posts = { ...query, limit: 400, search: { ...NO_SEARCH, path: "/orders" } };
      check((await allPages(db.actions, posts)).flat());
    }
    isOver = true;
    await disturbing;
    expect(wrong).toEqual([]);
  });

  test("a count is of what the list would find, up to its limit", async () => {
    await using db = await open();
    const ids = await many(db.actions, 5);
    await actionInStatus(db.actions, "failed", { method: "PUT" });
    await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
    const counted = (filter: Partial<ActionQuery>) =>
      db.actions.count(aQuery({ limit: 5, ...filter }), LIST_SCAN_ROWS_MAX);
    expect(await counted({})).toEqual({ count: 5, isMore: true, searchedUntil: null });
    expect(await counted({ limit: 6 })).toEqual({ count: 6, isMore: false, searchedUntil: null });
    expect(await counted({ statuses: ["pending"] })).toEqual({ count: 5, isMore: false, searchedUntil: null });
    expect(await counted({ statuses: ["failed", "cancelled"], method: "PUT" })).toEqual({
      count: 1,
      isMore: false,
      searchedUntil: null,
    });
    expect(await counted({ statuses: ["pending"], before: ids[2] ?? "" })).toEqual({
      count: 2,
      isMore: false,
      searchedUntil: null,
    });
    expect(await counted({ host: "nobody.example" })).toEqual({ count: 0, isMore: false, searchedUntil: null });
  });

  test("a count by status, by index alone or with other filters, is of what the list has", async () => {
    await using db = await open();
    for (const status of ACTION_STATUSES) {
      for (const at of [0, 1, 2])
        await actionInStatus(db.actions, status, { createdAt: later(at), keyId: `key_${at}` });
    }
    await actionInStatus(db.actions, "failed", {
      method: "PUT",
      title: "Refund",
      extras: { metadata: { order: "7" } },
    });
    const filters: readonly Partial<ActionQuery>[] = [
      {},
      { createdAfter: NOON },
      { createdBefore: later(2) },
      { method: "PUT" },
      { createdBy: "key_1" },
      { host: "nobody.example" },
      ...[
        { q: "refund" },
        { title: "refund" },
        { responseCodes: ["200"] },
        { error: "target" },
        { ids: ["act_x"] },
      ].map((search) => ({ search: { ...NO_SEARCH, ...search } as Search })),
      { search: { ...NO_SEARCH, metadata: [{ name: "order", value: null }] } },
    ];
    for (const statuses of [["failed"], ["awaiting_approval", "pending"], ["completed"], ["active"]] as const) {
      for (const filter of filters) {
        const query = aQuery({ statuses, limit: 3, ...filter });
        const { length } = (await db.actions.list({ ...query, limit: 99 })).actions;
        const counted = await db.actions.count(query, LIST_SCAN_ROWS_MAX);
        expect(counted).toEqual({ count: Math.min(3, length), isMore: length > 3, searchedUntil: null });
      }
    }
  });

  describe("a filter", () => {
    test("by each status", async () => {
      await using db = await open();
      const all = [];
      for (const status of ACTION_STATUSES) all.push(await actionInStatus(db.actions, status));
      for (const action of all) {
        const { actions } = await db.actions.list(aQuery({ statuses: [action.status] }));
        expect(actions).toEqual([action]);
      }
    });

    test("by several statuses takes them all, newest first", async () => {
      await using db = await open();
      const failed = await actionInStatus(db.actions, "failed");
      await actionInStatus(db.actions, "completed");
      const pending = await actionInStatus(db.actions, "pending");
      const { actions } = await db.actions.list(aQuery({ statuses: ["failed", "pending"] }));
      expect(actions).toEqual([pending, failed]);
    });

    test("by each method", async () => {
      await using db = await open();
      const all = [];
      for (const method of HTTP_METHODS) all.push(await createdAction(db.actions, { method }));
      for (const action of all) {
        expect((await db.actions.list(aQuery({ method: action.method }))).actions).toEqual([action]);
      }
    });

    test("by the host takes any port of a name, and the one port of a name with a port", async () => {
      await using db = await open();
      const targets = ["http://[::1]:3000/x", "http://b.example/x", "http://sub.a.example/x", "https://a.example/x"];
      for (const url of [...targets, "http://a.example:8080/x"]) await createdAction(db.actions, { url });
      const expected = {
        "a.example": ["http://a.example:8080/x", "https://a.example/x"],
        "a.example:8080": ["http://a.example:8080/x"],
        "a.example:9": [],
        // A call to the port of its own scheme is stored without it, and found with it.
        "a.example:443": ["https://a.example/x"],
        "a.example:80": [],
        "b.example:80": ["http://b.example/x"],
        "b.example:443": [],
        "b.example": ["http://b.example/x"],
        example: [],
        "[::1]": ["http://[::1]:3000/x"],
        "[::1]:3000": ["http://[::1]:3000/x"],
        "[::1]:30": [],
      };
      for (const [host, urls] of Object.entries(expected)) {
        const { actions } = await db.actions.list(aQuery({ host }));
        expect(
          actions.map(({ url }) => url),
          host,
        ).toEqual(urls);
      }
    });

    test("by the dedupe key finds every action that was created with it", async () => {
      await using db = await open();
      const old = await actionInStatus(db.actions, "failed", { dedupe: "k" });
      await createdAction(db.actions, { dedupe: "K" });
      await createdAction(db.actions);
      const young = await createdAction(db.actions, { dedupe: "k" });
      expect((await db.actions.list(aQuery({ dedupe: "k" }))).actions).toEqual([young, old]);
    });

    test("by times leaves out the times themselves", async () => {
      await using db = await open();
      for (const ms of [-2, -1, 0, 1, 2]) await createdAction(db.actions, { createdAt: later(ms) });
      const [first, last] = [new Date(-8.64e15), new Date(8.64e15)];
      const expected: readonly (readonly [bounds: Partial<ActionQuery>, ms: readonly number[]])[] = [
        [{ createdAfter: NOON }, [2, 1]],
        [{ createdBefore: NOON }, [-1, -2]],
        [{ createdAfter: later(-2), createdBefore: later(2) }, [1, 0, -1]],
        [{ createdAfter: later(0), createdBefore: later(1) }, []],
        [{ createdAfter: later(2) }, []],
        [{ createdAfter: first, createdBefore: last }, [2, 1, 0, -1, -2]],
        [{ createdAfter: last }, []],
        [{ createdBefore: first }, []],
      ];
      for (const [bounds, ms] of expected) {
        const { actions } = await db.actions.list(aQuery(bounds));
        const seen = actions.map(({ createdAt }) => createdAt.getTime() - NOON.getTime());
        expect(seen, JSON.stringify(bounds)).toEqual([...ms]);
      }
    });

    test("goes with every other one, and with pages", async () => {
      await using db = await open();
      const match = { url: "https://a.example/x", dedupe: "k", method: "PUT", keyId: "key_b" } as const;
      const old = await actionInStatus(db.actions, "failed", { ...match, createdAt: later(3) });
      const other = [
        { url: "https://b.example/x" },
        { dedupe: "j" },
        { method: "POST" },
        { createdAt: NOON },
        { keyId: "key_c" },
      ] as const;
      for (const each of other) await actionInStatus(db.actions, "failed", { ...match, createdAt: later(3), ...each });
      const young = await createdAction(db.actions, { ...match, createdAt: later(4) });
      const query = aQuery({
        method: "PUT",
        host: "a.example",
        dedupe: "k",
        createdBy: "key_b",
        createdAfter: NOON,
        createdBefore: later(9),
      });
      expect(await allPages(db.actions, { ...query, limit: 1 })).toEqual([[young.id], [old.id]]);
      // The key alone finds them by its own index, and the status with it by that of the status.
      const alone = (await db.actions.list(aQuery({ createdBy: "key_b" }))).actions.map(({ id }) => id);
      expect(alone).toHaveLength(6);
      expect(alone).not.toContain((await db.actions.list(aQuery({ createdBy: "key_c" }))).actions[0]?.id);
      const failed = await db.actions.list(aQuery({ createdBy: "key_c", statuses: ["failed"] }));
      expect(failed.actions).toMatchObject([{ keyId: "key_c" }]);
      expect((await db.actions.list({ ...query, statuses: ["failed"] })).actions).toEqual([old]);
    });
  });

  test("a page holds a bounded number of bytes, one action at least, and the next one goes on behind it", async () => {
    await using db = await open();
    const big = JSON.stringify({ text: "y".repeat(LIST_BYTES_MAX / 2 - 100) });
    const ids = (await many(db.actions, 3, { body: big })).toSorted().toReversed();
    expect(await allPages(db.actions, aQuery({ limit: 100 }))).toEqual([ids.slice(0, 2), ids.slice(2)]);

    const huge = await createdAction(db.actions, { body: JSON.stringify("z".repeat(LIST_BYTES_MAX + 1)) });
    const page = await db.actions.list(aQuery({ limit: 100 }));
    expect(page.actions.map(({ id }) => id)).toEqual([huge.id]);
    expect(page.before).toBe(huge.id);
  });

  test("whoever wants a smaller page gets one", async () => {
    await using db = await open();
    const ids = (await many(db.actions, 3, { body: JSON.stringify("y".repeat(400)) })).toSorted().toReversed();
    const page = await db.actions.list(aQuery({ bytesMax: 900 }));
    expect(page.actions.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(page.before).toBe(ids[1] ?? "");
  });

  test("a page looks at a bounded number of rows, and says where the next one goes on", async () => {
    await using db = await open();
    const rare = { url: "https://rare.example/", method: "PUT", dedupe: "rare" } as const;
    const action = await actionInStatus(db.actions, "failed", rare);
    const [other = ""] = await many(db.actions, 1);
    await db.copy(other, LIST_SCAN_ROWS_MAX - 1);

    const unindexed = await db.actions.list(aQuery({ method: "PUT" }));
    expect(unindexed.actions).toEqual([]);
    expect(unindexed.before).not.toBeNull();
    expect(unindexed.searchedUntil).toEqual(NOON);
    const rest = await db.actions.list(aQuery({ method: "PUT", before: unindexed.before }));
    expect(rest).toEqual({ actions: [action], before: null, searchedUntil: null });
    // None of the rows that it goes on behind matches because it has no answer yet.
    const unanswered = await db.actions.list(aQuery({ search: { ...NO_SEARCH, responseCodes: ["404"] } }));
    expect(unanswered.actions).toEqual([]);
    const counted = await db.actions.count(aQuery({ method: "PUT" }), LIST_SCAN_ROWS_MAX);
    expect(counted).toEqual({ count: 0, isMore: true, searchedUntil: NOON });
    expect(await db.actions.count(aQuery({ method: "PUT" }), LIST_SCAN_ROWS_MAX + 1)).toMatchObject({ count: 1 });

    for (const filter of [
      { statuses: ["failed"] },
      { statuses: ["failed", "cancelled"] },
      { host: "rare.example" },
      { dedupe: "rare" },
    ] as const) {
      expect(await db.actions.list(aQuery(filter))).toEqual({ actions: [action], before: null, searchedUntil: null });
    }
  });
}

function madeAll<Made>(count: number, make: () => Promise<Made>): Promise<Made[]> {
  return Promise.all(Array.from({ length: count }, make));
}

/** Ids in the order in which they were made. */
async function many(actions: ActionStore, count: number, overrides: Partial<Action> = {}): Promise<readonly string[]> {
  const creations = Array.from({ length: count }, () => aCreation(overrides));
  await Promise.all(creations.map((creation) => actions.create(creation)));
  return creations.map(({ action }) => action.id);
}

/** Follows the cursor to its end; `between` may disturb. */
async function allPages(
  actions: ActionStore,
  query: ActionQuery,
  between: (page: readonly string[]) => Promise<void> = async () => {},
): Promise<readonly (readonly string[])[]> {
  const pages: (readonly string[])[] = [];
  let before = query.before;
  do {
    const page = await actions.list({ ...query, before });
    const ids = page.actions.map(({ id }) => id);
    pages.push(ids);
    await between(ids);
    before = page.before;
  } while (before !== null && pages.length < 100);
  return pages;
}
