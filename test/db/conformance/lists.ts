import { describe, expect } from "bun:test";
import { type Action, ACTION_STATUSES } from "../../../src/core/action.ts";
import { NO_SEARCH, type Search, type ActionQuery } from "../../../src/core/search.ts";
import {
  LIST_BYTES_MAX,
  LIST_SCAN_ROWS_MAX,
  METADATA_FILTERS_MAX,
  SEARCH_STEP_BYTES,
} from "../../../src/core/limits.ts";
import type { ActionStore } from "../../../src/core/store.ts";
import { aCreation, anAction, aQuery, later, NOON, OTHER_ACCOUNT, ACCOUNT, answered } from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { actionInStatus, claimDue, createdAction, attemptedAction } from "./steps.ts";
import type { Outcome } from "../../../src/core/outcome.ts";
import type { TestStore } from "../../support/store.ts";

/** Lists: newest first, by keyset, each filter, what is found beyond the indexes, and never more than a bounded look a page. */
export function testLists(test: StoreTest): void {
  test("a list is the account's, newest first, and whole", async (db) => {
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

  test.each([4, 5, 6, 7])("12 actions in pages of %s: each once, and the last page ends", async (db, limit) => {
    const ids = await many(db.actions, 12);
    const pages = await allPages(db.actions, aQuery({ limit }));
    expect(pages.flat()).toEqual(ids.toReversed());
    expect(pages).toHaveLength(Math.ceil(12 / limit));
  });

  test("pages neither skip nor repeat while others create and change", async (db) => {
    const ids = await many(db.actions, 40);
    const pages = await allPages(db.actions, aQuery({ limit: 7 }), async (page) => {
      await Promise.all([many(db.actions, 9, { createdAt: later(1) }), many(db.actions, 9)]);
      await claimDue(db.actions, anAction(), { limit: page.length, lease: { now: later(9), leaseUntil: NOON } });
    });
    const seen = pages.flat();
    expect(new Set(seen).size).toBe(seen.length);
    // Of those that came in the same millisecond some stand behind the cursor.
    expect(seen.filter((id) => ids.includes(id))).toEqual(ids.toReversed());
  });

  test("a count, by index alone or with other filters, is of what the list has, up to its limit", async (db) => {
    await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
    for (const status of ACTION_STATUSES) {
      for (const at of [0, 1, 2])
        await actionInStatus(db.actions, status, { createdAt: later(at), keyId: `key_${at}` });
    }
    const { id } = await actionInStatus(db.actions, "failed", {
      method: "PUT",
      title: "Refund",
      extras: { metadata: { order: "7" } },
    });
    const filters: readonly Partial<ActionQuery>[] = [
      {},
      { before: id },
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
    for (const statuses of [[], ["failed"], ["awaiting_approval", "pending"], ["completed"], ["active"]] as const) {
      for (const filter of filters) {
        const query = aQuery({ statuses, limit: 3, ...filter });
        const { length } = (await db.actions.list({ ...query, limit: 99 })).actions;
        const counted = await db.actions.count(query, LIST_SCAN_ROWS_MAX);
        expect(counted).toEqual({ count: Math.min(3, length), isMore: length > 3, searchedUntil: null });
      }
    }
  });

  describe("a filter", () => {
    test("by each status", async (db) => {
      const all = [];
      for (const status of ACTION_STATUSES) all.push(await actionInStatus(db.actions, status));
      for (const action of all) {
        const { actions } = await db.actions.list(aQuery({ statuses: [action.status] }));
        expect(actions).toEqual([action]);
      }
    });

    test("by several statuses takes them all, newest first", async (db) => {
      const failed = await actionInStatus(db.actions, "failed");
      await actionInStatus(db.actions, "completed");
      const pending = await actionInStatus(db.actions, "pending");
      const { actions } = await db.actions.list(aQuery({ statuses: ["failed", "pending"] }));
      expect(actions).toEqual([pending, failed]);
    });

    test("by the host takes any port of a name, and the one port of a name with a port", async (db) => {
      const targets = ["http://[::1]:3000/x", "http://b.example/x", "http://sub.a.example/x", "https://a.example/x"];
      for (const url of [...targets, "http://a.example:8080/x", "HTTPS://C.example/x"])
        await createdAction(db.actions, { url });
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
        "c.example:443": ["HTTPS://C.example/x"],
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

    test("by the dedupe key finds every action that was created with it", async (db) => {
      const old = await actionInStatus(db.actions, "failed", { dedupe: "k" });
      await createdAction(db.actions, { dedupe: "K" });
      await createdAction(db.actions);
      const young = await createdAction(db.actions, { dedupe: "k" });
      expect((await db.actions.list(aQuery({ dedupe: "k" }))).actions).toEqual([young, old]);
    });

    test("by times leaves out the times themselves", async (db) => {
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

    test("goes with every other one, and with pages", async (db) => {
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

  test("a page holds a bounded number of bytes, one action at least, and the next one goes on behind it", async (db) => {
    const big = JSON.stringify({ text: "y".repeat(LIST_BYTES_MAX / 2 - 100) });
    const ids = (await many(db.actions, 3, { body: big })).toSorted().toReversed();
    expect(await allPages(db.actions, aQuery({ limit: 100 }))).toEqual([ids.slice(0, 2), ids.slice(2)]);

    const huge = await createdAction(db.actions, { body: JSON.stringify("z".repeat(LIST_BYTES_MAX + 1)) });
    const page = await db.actions.list(aQuery({ limit: 100 }));
    expect(page.actions.map(({ id }) => id)).toEqual([huge.id]);
    expect(page.before).toBe(huge.id);
  });

  test("whoever wants a smaller page gets one", async (db) => {
    const ids = (await many(db.actions, 3, { body: JSON.stringify("y".repeat(400)) })).toSorted().toReversed();
    const page = await db.actions.list(aQuery({ bytesMax: 900 }));
    expect(page.actions.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(page.before).toBe(ids[1] ?? "");
  });

  test("a page looks at a bounded number of rows, and says where the next one goes on", async (db) => {
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

  /** The places of the found ones among `all`. */
  const finding = async (actions: ActionStore, all: readonly Action[], search: Partial<Search>) => {
    const found = await actions.list(aQuery({ search: { ...NO_SEARCH, ...search } }));
    return found.actions.map(({ id }) => all.findIndex((action) => action.id === id));
  };

  describe("a search", () => {
    test("for free text takes host, path, title, and the start of an id, whatever their case", async (db) => {
      const all = [
        await createdAction(db.actions, { url: "https://Api.Example.com/Refunds/4711?dry=1" }),
        await createdAction(db.actions, { url: "https://b.example/x", title: "Überweisung nach Köln" }),
        await createdAction(db.actions, { url: "https://c.example:8080/orders", body: '{"note":"refunds"}' }),
        await createdAction(db.actions, { url: "https://m\u00fcller.example/" }),
      ];
      const found = (q: string) => finding(db.actions, all, { q });
      expect(await found("refunds")).toEqual([0]);
      expect(await found("EXAMPLE.COM/refunds")).toEqual([0]);
      expect(await found("https://api.example.com/refunds")).toEqual([0]);
      expect(await found("dry=1")).toEqual([0]);
      expect(await found("überWEISUNG")).toEqual([1]);
      expect(await found("c.example:80")).toEqual([2]);
      expect(await found("Müller")).toEqual([3]);
      expect(await found("xn--")).toEqual([3]);
      expect(await found("%")).toEqual([]);
      for (const [at, { id }] of all.entries()) {
        expect(await found(id)).toEqual([at]);
        expect(await found(id.slice("act_".length).toUpperCase())).toEqual([at]);
      }
      expect(await found("act_")).toHaveLength(4);
    });

    test("for an id finds it behind any number of others", async (db) => {
      const old = await createdAction(db.actions, { createdAt: later(-60_000) });
      const q = old.id.slice(0, -3);
      await addMany(db, LIST_SCAN_ROWS_MAX);
      expect(await finding(db.actions, [old], { q })).toEqual([0]);
    });

    test("by status of the target takes any of several codes and classes", async (db) => {
      const all: Action[] = [];
      for (const code of [200, 404, 422, 500, 503]) all.push(await attemptedAction(db.actions, answered(code), ONCE));
      all.push(await createdAction(db.actions));
      const found = (...responseCodes: string[]) => finding(db.actions, all, { responseCodes });
      expect(await found("422")).toEqual([2]);
      expect(await found("5xx")).toEqual([4, 3]);
      expect(await found("404", "5xx")).toEqual([4, 3, 1]);
      expect(await found("2xx", "503")).toEqual([4, 0]);
      expect(await found("501", "3xx")).toEqual([]);
    });

    test("for free text takes a status of the target and a class of them for one, beside texts", async (db) => {
      const all = [
        await attemptedAction(db.actions, answered(422), ONCE),
        await attemptedAction(db.actions, answered(503), ONCE),
        await createdAction(db.actions, { url: "https://a.example/tickets/422" }),
        await createdAction(db.actions, { title: "Invoice 1422", extras: { metadata: { code: "422" } } }),
        await createdAction(db.actions, { url: "http://0.0.1.166/" }),
      ];
      expect(await finding(db.actions, all, { q: "422" })).toEqual([3, 2, 0]);
      expect(await finding(db.actions, all, { q: "5XX" })).toEqual([1]);
      expect(await finding(db.actions, all, { q: "42" })).toEqual([3, 2]);
      expect(await finding(db.actions, all, { q: "422", responseCodes: ["5xx"] })).toEqual([]);
    });

    test("by ids takes these alone, of this account, newest first, together with other conditions", async (db) => {
      const all: Action[] = [];
      for (const title of ["a", "b", "c"]) all.push(await createdAction(db.actions, { title, dedupe: title }));
      const foreign = await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      const [first, , third] = all;
      const ids = [first?.id ?? "", foreign.id, third?.id ?? "", third?.id ?? "", "act_unknown"];
      expect(await finding(db.actions, all, { ids })).toEqual([2, 0]);
      expect(await finding(db.actions, all, { ids, title: "A" })).toEqual([0]);
      const search = { ...NO_SEARCH, ids };
      const ofKey = await db.actions.matching(aQuery({ search, dedupe: "c" }), 100);
      expect(ofKey.actions.map(({ id }) => id)).toEqual([third?.id ?? ""]);
      const page = await db.actions.list(aQuery({ search, limit: 1 }));
      const rest = await db.actions.list(aQuery({ search, before: page.before }));
      expect([...page.actions, ...rest.actions].map(({ id }) => id)).toEqual([third?.id ?? "", first?.id ?? ""]);
    });

    test("offers the hosts and keys that an account used, each once, with the newest name", async (db) => {
      const use = (host: string, keyId: string, createdBy: Action["createdBy"], more: Partial<Action> = {}) =>
        createdAction(db.actions, { url: `https://${host}/`, keyId, createdBy, ...more });
      await use("b.example", "key_2", "key:old name");
      await use("a.example:8443", "key_1", "key:one");
      await use("a.example", "key_2", "key:two", { createdAt: later(5) });
      await use("c.example", "", "user:ann@example.com");
      await use("d.example", "key_3", "key:three", { accountId: OTHER_ACCOUNT });
      expect(await db.actions.filterValues(ACCOUNT, 9)).toEqual({
        hosts: ["a.example", "b.example", "c.example"],
        creators: [
          { keyId: "key_1", createdBy: "key:one" },
          { keyId: "key_2", createdBy: "key:two" },
        ],
      });
      const some = await db.actions.filterValues(ACCOUNT, 1);
      expect([some.hosts, some.creators.length]).toEqual([["a.example"], 1]);
      expect(await db.actions.filterValues("acc_none", 9)).toEqual({ hosts: [], creators: [] });
    });

    test("by outcome and by kind of failure", async (db) => {
      const brokenSuccess: Outcome = { ...answered(200), brokenBy: "closed" };
      const outcomes: readonly Outcome[] = [
        answered(200),
        answered(500),
        { kind: "unknown", fault: "timed_out" },
        { kind: "not_sent", fault: "timed_out" },
        { kind: "not_sent", fault: "name_not_resolved" },
        { kind: "not_sent", fault: "certificate_expired" },
        { kind: "unknown", fault: "closed" },
        { kind: "unknown", fault: "interrupted" },
        { kind: "not_sent", fault: "address_private" },
        { kind: "unknown", fault: "not_http" },
        brokenSuccess,
      ];
      const all: Action[] = [];
      for (const outcome of outcomes) all.push(await attemptedAction(db.actions, outcome, { ...ONCE, method: "GET" }));
      all.push(await createdAction(db.actions));
      const found = (search: Partial<Search>) => finding(db.actions, all, search);
      expect(await found({ outcome: "answered" })).toEqual([10, 1, 0]);
      expect(await found({ outcome: "not_sent" })).toEqual([8, 5, 4, 3]);
      expect(await found({ outcome: "unknown" })).toEqual([9, 7, 6, 2]);
      const kinds = {
        target: [1],
        timed_out: [3, 2],
        dns: [4],
        certificate: [5],
        closed: [10, 6],
        interrupted: [7],
        not_allowed: [8],
        other: [9],
        refused: [],
      } as const;
      for (const [error, places] of Object.entries(kinds)) {
        expect(await found({ error: error as keyof typeof kinds }), error).toEqual([...places]);
      }
      expect(await found({ error: "timed_out", outcome: "unknown" })).toEqual([2]);
      const ids = all.map(({ id }) => id);
      expect([...(await db.actions.withUnknown(ids))].toSorted()).toEqual(
        [2, 6, 7, 9].map((at) => ids[at] ?? "").toSorted(),
      );
    });

    test("by the start of the path, as it was written", async (db) => {
      const urls = [
        "https://a.example/v1/Refunds?x=1",
        "https://a.example/v1",
        "https://a.example",
        "https://a.example?v",
      ];
      const all: Action[] = [];
      for (const url of urls) all.push(await createdAction(db.actions, { url }));
      expect(await finding(db.actions, all, { path: "/v1" })).toEqual([1, 0]);
      expect(await finding(db.actions, all, { path: "/v1/Ref" })).toEqual([0]);
      expect(await finding(db.actions, all, { path: "/v1/ref" })).toEqual([]);
      expect(await finding(db.actions, all, { path: "/" })).toEqual([3, 2, 1, 0]);
    });

    test("by title and by reason, both together where both are given", async (db) => {
      const all = [
        await createdAction(db.actions, { title: "Refund 12 EUR", extras: { reason: "Twice\n\u{1f600} charged." } }),
        await createdAction(db.actions, { title: "refund 13 EUR" }),
        await createdAction(db.actions, { extras: { reason: "refund" } }),
      ];
      expect(await finding(db.actions, all, { title: "REFUND" })).toEqual([1, 0]);
      expect(await finding(db.actions, all, { reason: "\u{1f600} CHARGED" })).toEqual([0]);
      expect(await finding(db.actions, all, { title: "refund", reason: "twice" })).toEqual([0]);
      expect(await finding(db.actions, all, { reason: "refund" })).toEqual([2]);
    });

    test("by metadata needs all conditions, exact values and any", async (db) => {
      const of = (metadata: Readonly<Record<string, string>>, more: Partial<Action> = {}) =>
        createdAction(db.actions, { extras: { metadata }, ...more });
      const all = [
        await of({ customer: "4711", order: "7" }),
        await of({ customer: "4711", order: "8", note: "O'Brien %\u{1f600}" }),
        await of({ customer: "47", note: "" }),
        await createdAction(db.actions),
      ];
      await of({ customer: "4711" }, { accountId: OTHER_ACCOUNT });
      const found = (...pairs: readonly (readonly [string, string | null])[]) =>
        finding(db.actions, all, { metadata: pairs.map(([name, value]) => ({ name, value })) });
      expect(await found(["customer", "4711"])).toEqual([1, 0]);
      expect(await found(["customer", "4711"], ["order", "8"])).toEqual([1]);
      expect(await found(["order", null], ["customer", "4711"])).toEqual([1, 0]);
      expect(await found(["note", null])).toEqual([2, 1]);
      expect(await found(["note", ""])).toEqual([2]);
      expect(await found(["note", "O'Brien %\u{1f600}"])).toEqual([1]);
      expect(await found(["Customer", "4711"])).toEqual([]);
      const most = Array.from({ length: METADATA_FILTERS_MAX }, () => ["order", "8"] as const);
      expect(await found(...most)).toEqual([1]);
      expect(await found(...most.slice(1), ["order", "7"])).toEqual([]);
    });

    test("goes on from where a page stopped, and finds what stands behind it", async (db) => {
      const old = await createdAction(db.actions, { createdAt: later(-9), title: "Needle" });
      await addMany(db, LIST_SCAN_ROWS_MAX);
      const query = aQuery({ search: { ...NO_SEARCH, q: "needle" } });
      const first = await db.actions.list(query);
      expect(first).toMatchObject({ actions: [], searchedUntil: NOON });
      expect(await db.actions.list({ ...query, before: first.before })).toEqual({
        actions: [old],
        before: null,
        searchedUntil: null,
      });
      expect(await db.actions.matching(query, LIST_SCAN_ROWS_MAX)).toEqual({ actions: [], isMore: true });
      const more = await db.actions.matching(query, LIST_SCAN_ROWS_MAX + 1);
      expect(more.actions).toEqual([{ id: old.id, run: 1, host: old.host, responseCode: null }]);
    });

    test("reads titles behind long bodies in pieces", async (db) => {
      const body = JSON.stringify("x".repeat(SEARCH_STEP_BYTES / 3));
      const all: Action[] = [];
      for (let at = 0; at < 5; at += 1) all.push(await createdAction(db.actions, { title: `Title ${at % 2}`, body }));
      const query = aQuery({ search: { ...NO_SEARCH, title: "title 1" } });
      const found = await db.actions.matching(query, LIST_SCAN_ROWS_MAX);
      expect(found.actions.map(({ id }) => id)).toEqual([all[3]?.id ?? "", all[1]?.id ?? ""]);
    });
  });
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

const ONCE = { retries: 1 } as const;

async function addMany(db: TestStore, count: number): Promise<void> {
  const { id } = await createdAction(db.actions);
  await db.copy(id, count - 1);
}
