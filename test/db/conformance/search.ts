import { describe, expect, test } from "bun:test";
import type { Action } from "../../../src/core/action.ts";
import type { Outcome } from "../../../src/core/outcome.ts";
import { NO_SEARCH, type Search } from "../../../src/core/search.ts";
import { LIST_SCAN_ROWS_MAX, METADATA_FILTERS_MAX, SEARCH_STEP_BYTES } from "../../../src/core/limits.ts";
import type { ActionStore } from "../../../src/core/store.ts";
import { ACCOUNT, answered, aQuery, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore, TestStore } from "../../support/store.ts";
import { attemptedAction, createdAction } from "./steps.ts";

/** What a list finds beyond its indexes. */
export function testSearch(open: OpenTestStore): void {
  /** The places of the found ones among `all`. */
  const finding = async (actions: ActionStore, all: readonly Action[], search: Partial<Search>) => {
    const found = await actions.list(aQuery({ search: { ...NO_SEARCH, ...search } }));
    return found.actions.map(({ id }) => all.findIndex((action) => action.id === id));
  };

  describe("a search", () => {
    test("for free text takes host, path, title, and the start of an id, whatever their case", async () => {
      await using db = await open();
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

    test("for an id finds it behind any number of others", async () => {
      await using db = await open();
      const old = await createdAction(db.actions, { createdAt: later(-60_000) });
      const q = old.id.slice(0, -3);
      await many(db, LIST_SCAN_ROWS_MAX);
      expect(await finding(db.actions, [old], { q })).toEqual([0]);
    });

    test("by status of the target takes any of several codes and classes", async () => {
      await using db = await open();
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

    test("for free text takes a status of the target and a class of them for one, beside texts", async () => {
      await using db = await open();
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

    test("by ids takes these alone, of this account, newest first, together with other conditions", async () => {
      await using db = await open();
      const all: Action[] = [];
      for (const title of ["a", "b", "c"]) all.push(await createdAction(db.actions, { title }));
      const foreign = await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      const [first, , third] = all;
      const ids = [first?.id ?? "", foreign.id, third?.id ?? "", third?.id ?? "", "act_unknown"];
      expect(await finding(db.actions, all, { ids })).toEqual([2, 0]);
      expect(await finding(db.actions, all, { ids, title: "A" })).toEqual([0]);
      const page = await db.actions.list(aQuery({ search: { ...NO_SEARCH, ids }, limit: 1 }));
      const rest = await db.actions.list(aQuery({ search: { ...NO_SEARCH, ids }, before: page.before }));
      expect([...page.actions, ...rest.actions].map(({ id }) => id)).toEqual([third?.id ?? "", first?.id ?? ""]);
    });

    test("offers the hosts and keys that an account used, each once, with the newest name", async () => {
      await using db = await open();
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

    test("by outcome and by kind of failure", async () => {
      await using db = await open();
      const brokenSuccess: Outcome = { ...answered(200), kind: "answered", brokenBy: "closed" } as Outcome;
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

    test("by the start of the path, as it was written", async () => {
      await using db = await open();
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

    test("by title and by reason, both together where both are given", async () => {
      await using db = await open();
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

    test("by metadata needs all conditions, exact values and any", async () => {
      await using db = await open();
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

    test("goes on from where a page stopped, and finds what stands behind it", async () => {
      await using db = await open();
      const old = await createdAction(db.actions, { createdAt: later(-9), title: "Needle" });
      await many(db, LIST_SCAN_ROWS_MAX);
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

    test("reads titles behind long bodies in pieces", async () => {
      await using db = await open();
      const body = JSON.stringify("x".repeat(SEARCH_STEP_BYTES / 3));
      const all: Action[] = [];
      for (let at = 0; at < 5; at += 1) all.push(await createdAction(db.actions, { title: `Title ${at % 2}`, body }));
      const query = aQuery({ search: { ...NO_SEARCH, title: "title 1" } });
      const found = await db.actions.matching(query, LIST_SCAN_ROWS_MAX);
      expect(found.actions.map(({ id }) => id)).toEqual([all[3]?.id ?? "", all[1]?.id ?? ""]);
    });
  });
}

const ONCE = { retries: 1 } as const;

async function many(db: TestStore, count: number): Promise<void> {
  const { id } = await createdAction(db.actions);
  await db.copy(id, count - 1);
}
