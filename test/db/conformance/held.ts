import { describe, expect } from "bun:test";
import { type Action, ACTION_STATUSES } from "../../../src/core/action.ts";
import { approve, cancel } from "../../../src/core/changes.ts";
import {
  HELD_HOSTS_SHOWN_MAX,
  HELD_PER_KEY_MAX,
  HELD_REQUESTERS_SHOWN_MAX,
  LIST_BYTES_MAX,
} from "../../../src/core/limits.ts";
import { type ActionStore, type HeldFilter, type HeldPage, NO_FILTER } from "../../../src/core/store.ts";
import { ACCOUNT, aCreation, answered, later, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { actionInStatus, attempted, createdAction, decided, stored } from "./steps.ts";

/** More than any test fills: a cursor that leads nowhere is a failure and no hang. */
const PAGES_MAX = 200;

/** All pages from the first one. Whoever asks for them may decide on what each shows before the next is read. */
async function* pagesOf(actions: ActionStore, limit: number, filter: HeldFilter = NO_FILTER): AsyncGenerator<HeldPage> {
  let after: string | null = null;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page: HeldPage = await actions.held(ACCOUNT, after, limit, filter);
    yield page;
    ({ after } = page);
    if (after === null) return;
  }
  throw new Error(`What is held has more than ${PAGES_MAX} pages.`);
}

/** The ids of all pages of two; each page has them in their order. */
async function idsOfPages(actions: ActionStore, filter: HeldFilter): Promise<readonly string[]> {
  const seen: string[] = [];
  for await (const page of pagesOf(actions, 2, filter)) {
    const ids = page.actions.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted());
    seen.push(...ids);
  }
  return seen;
}

/** What waits for a person, as the inbox reads it. */
export function testHeld(test: StoreTest): void {
  describe("what is held", () => {
    test("is the account's, oldest first, whole, and nothing else", async (db) => {
      for (const status of ACTION_STATUSES) {
        if (status !== "awaiting_approval") await actionInStatus(db.actions, status);
      }
      const young = await createdAction(db.actions, { approve: true, createdAt: later(5), headers: { "X-A": "1" } });
      const old = await createdAction(db.actions, { approve: true });
      await createdAction(db.actions, { approve: true, accountId: OTHER_ACCOUNT });
      expect(await db.actions.held(ACCOUNT, null, 10)).toEqual({ actions: [old, young], after: null });
    });

    test("of several keys comes in turns, so that no key buries the others", async (db) => {
      const asked: { id: string; keyId: string }[] = [];
      const ask = async (keyId: string, ms: number) =>
        asked.push(await createdAction(db.actions, { approve: true, keyId, createdAt: later(ms) }));
      for (let at = 0; at < 30; at += 1) await ask("key_flood", at);
      for (let at = 40; at < 43; at += 1) await ask("key_few", at);
      await ask("", 50);
      const first = await db.actions.held(ACCOUNT, null, 10);
      // Each one's oldest, and of all that are shown the oldest on top.
      const counts = Object.groupBy(first.actions, ({ keyId }) => keyId);
      expect([counts["key_flood"]?.length, counts["key_few"]?.length, counts[""]?.length]).toEqual([6, 3, 1]);
      expect(first.actions.map(({ id }) => id)).toEqual(first.actions.map(({ id }) => id).toSorted());
      expect(first.actions.slice(0, 6).map(({ id }) => id)).toEqual(asked.slice(0, 6).map(({ id }) => id));

      const seen: string[] = [];
      for await (const page of pagesOf(db.actions, 10)) seen.push(...page.actions.map(({ id }) => id));
      expect(seen.toSorted()).toEqual(asked.map(({ id }) => id).toSorted());
    });

    test.each([2, 40])("of %s keys is on one page each, however many are decided meanwhile", async (db, keys) => {
      const create = (keyId: string, ms: number) =>
        createdAction(db.actions, { approve: true, keyId, createdAt: later(ms) });
      const keyIds = Array.from({ length: 120 }, (_, at) => (at < 60 ? "key_flood" : `key_${at % keys}`));
      const all = await Promise.all(keyIds.map(create));
      const seen: string[] = [];
      const decidedIds = new Set<string>();
      for await (const page of pagesOf(db.actions, 10)) {
        seen.push(...page.actions.map(({ id }) => id));
        // A person decides on half of what they see, another one somewhere else.
        const others = all.filter((_, at) => at % 7 === 0).slice(0, seen.length / 10);
        const taken = [...page.actions.filter((_, at) => at % 2 === 0), ...others];
        for (const { id } of taken) decidedIds.add(id);
        await Promise.all(taken.map((one) => decided(db.actions, cancel, one)));
        await create("key_flood", 999 + seen.length);
      }
      expect(new Set(seen).size).toBe(seen.length);
      expect(all.filter(({ id }) => !seen.includes(id) && !decidedIds.has(id))).toEqual([]);
    });

    test("is counted by key, the key with most of it first", async (db) => {
      const create = (keyId: string, more: Partial<Action> = {}) =>
        createdAction(db.actions, { approve: true, keyId, ...more });
      for (const keyId of ["key_b", "key_b"]) await create(keyId);
      await create("key_a", { createdAt: later(7), createdBy: "key:late" });
      await create("key_b", { accountId: OTHER_ACCOUNT });
      await decided(db.actions, cancel, await create("key_c"));
      expect(await db.actions.requesters(ACCOUNT)).toEqual([
        { keyId: "key_b", createdBy: "key:test", count: 2 },
        { keyId: "key_a", createdBy: "key:late", count: 1 },
      ]);
    });

    test("is counted, and found again while it waits", async (db) => {
      const young = await createdAction(db.actions, { approve: true, keyId: "key_a", createdAt: later(5) });
      const old = await createdAction(db.actions, { approve: true, keyId: "" });
      const other = await createdAction(db.actions, { approve: true, accountId: OTHER_ACCOUNT });
      const gone = await createdAction(db.actions, { approve: true });
      await decided(db.actions, cancel, gone);
      await createdAction(db.actions);
      expect(await db.actions.heldTotal(ACCOUNT, NO_FILTER, 10)).toBe(2);
      expect(await db.actions.heldTotal(ACCOUNT, NO_FILTER, 1)).toBe(1);
      expect(await db.actions.heldAmong(ACCOUNT, [young.id, other.id, gone.id, "act_x", old.id])).toEqual([old, young]);
      expect(await db.actions.heldAmong(ACCOUNT, [])).toEqual([]);
    });

    test("is found, paged and counted by key, host and age, and by all of them", async (db) => {
      const all: Action[] = [];
      for (const [at, keyId] of ["key_a", "key_b", "key_a", "", "key_a", "key_b", "key_a", "key_a"].entries()) {
        const host = at % 3 === 0 ? "a.example:8443" : "b.example";
        const members = { approve: true, keyId, url: `https://${host}/${at}`, createdAt: later(at) };
        all.push(await createdAction(db.actions, members));
        await actionInStatus(db.actions, "completed", { ...members, approve: false });
        await createdAction(db.actions, { ...members, accountId: OTHER_ACCOUNT });
      }
      const options = <Value>(...values: readonly Value[]) => [null, ...values];
      for (const keyId of options("key_a", "key_b", "", "key_none")) {
        for (const host of options("a.example:8443", "b.example", "a.example")) {
          for (const before of options(later(0), later(4), later(99))) {
            const filter = { keyId, host, before };
            const matching = all.filter(
              (one) =>
                (keyId === null || one.keyId === keyId) &&
                (host === null || one.host === host) &&
                (before === null || one.createdAt < before),
            );
            const seen = await idsOfPages(db.actions, filter);
            expect(seen.toSorted()).toEqual(matching.map(({ id }) => id));
            expect(await db.actions.heldTotal(ACCOUNT, filter, 99)).toBe(matching.length);
            expect(await db.actions.heldTotal(ACCOUNT, filter, 1)).toBe(Math.min(1, matching.length));
          }
        }
      }
      // A page that begins with an id goes on by ids, even if several keys have requests meanwhile.
      const page = await db.actions.held(ACCOUNT, all[3]?.id ?? "", 3, { ...NO_FILTER, host: "b.example" });
      expect(page.actions).toEqual([4, 5, 7].flatMap((at) => all[at] ?? []));
      expect(await db.actions.heldHosts(ACCOUNT)).toEqual([
        { host: "a.example:8443", count: 3 },
        { host: "b.example", count: 5 },
      ]);
      for (const one of all) await decided(db.actions, cancel, one);
      expect(await db.actions.heldHosts(ACCOUNT)).toEqual([]);
      expect(await db.actions.requesters(ACCOUNT)).toEqual([]);
    });

    test("of many hosts and keys is listed up to a bound", async (db) => {
      const host = (at: number) => `h${String(at).padStart(2, "0")}.example`;
      const create = (at: number) => {
        const members = { approve: true, keyId: `key_${at}`, createdAt: later(1_000 - at) };
        return createdAction(db.actions, { ...members, url: `https://${host(at)}/` });
      };
      await Promise.all(Array.from({ length: HELD_HOSTS_SHOWN_MAX + 6 }, (_, at) => create(at)));
      const hosts = await db.actions.heldHosts(ACCOUNT);
      expect(hosts).toEqual(
        Array.from({ length: HELD_HOSTS_SHOWN_MAX + 1 }, (_, at) => ({ host: host(at), count: 1 })),
      );
      const requesters = await db.actions.requesters(ACCOUNT);
      expect(requesters.map(({ keyId }) => keyId)).toEqual(
        Array.from({ length: HELD_REQUESTERS_SHOWN_MAX }, (_, at) => `key_${HELD_HOSTS_SHOWN_MAX + 5 - at}`),
      );
    });

    test("is ten thousand of one key at most, however many race; what was asked before is found", async (db) => {
      const create = (n: number, keyId = "key_flood") =>
        db.actions.create(aCreation({ approve: true, keyId, dedupe: n % 100 === 0 ? `d${n}` : null }));
      const first = await createdAction(db.actions, { approve: true, keyId: "key_flood", createdAt: later(-1) });
      await db.copy(first.id, HELD_PER_KEY_MAX - 38);
      // So few that one commit has them all.
      const ends = await Promise.all(Array.from({ length: 57 }, (_, n) => create(n)));
      expect(ends.filter(({ kind }) => kind === "created")).toHaveLength(37);
      expect(ends.filter(({ kind }) => kind === "too_many_held")).toHaveLength(20);
      expect(await create(0)).toMatchObject({ kind: "matched" });
      expect(await create(1, "key_other")).toMatchObject({ kind: "created" });
      expect(await db.actions.create(aCreation({ keyId: "key_flood" }))).toMatchObject({ kind: "created" });
      const [oldest] = (await db.actions.held(ACCOUNT, null, 1, { ...NO_FILTER, keyId: "key_flood" })).actions;
      if (oldest !== undefined) await decided(db.actions, cancel, oldest);
      expect((await create(1)).kind).toBe("created");
      expect((await create(1)).kind).toBe("too_many_held");
      await db.restart();
      expect((await create(1)).kind).toBe("too_many_held");
    }, 60_000);

    test("of many bytes comes in pages that stay small, and one in any case", async (db) => {
      const body = `{"x":"${"a".repeat(LIST_BYTES_MAX)}"}`;
      const big = await createdAction(db.actions, { approve: true, body });
      const small = await createdAction(db.actions, { approve: true, createdAt: later(5) });
      expect(await db.actions.held(ACCOUNT, null, 10)).toEqual({ actions: [big], after: big.id });
      expect(await db.actions.held(ACCOUNT, big.id, 10)).toEqual({ actions: [small], after: null });
    });

    test("is for a host to which a held call of the same key was approved and has completed, or for a new one", async (db) => {
      const at = (hostname: string) => ({ url: `https://${hostname}/`, hostname, host: hostname });
      const answers = { known: 200, other: 200, theirs: 200, failed: 500 } as const;
      for (const [name, code] of Object.entries(answers)) {
        const keyId = name === "other" ? "key_b" : "key_a";
        const accountId = name === "theirs" ? OTHER_ACCOUNT : ACCOUNT;
        const members = { ...at(`${name}.example`), keyId, accountId, approve: true, retries: 1 };
        const held = await createdAction(db.actions, members);
        await decided(db.actions, approve, held);
        await attempted(db.actions, await stored(db.actions, held), answered(code));
      }
      await actionInStatus(db.actions, "completed", { ...at("unheld.example"), keyId: "key_a" });
      const held = { keyId: "key_a", approve: true };
      await createdAction(db.actions, { ...at("waits.example"), ...held });
      await decided(db.actions, cancel, await createdAction(db.actions, { ...at("no.example"), ...held }));
      const names = ["unheld", "known", "other", "failed", "theirs", "waits", "no", "never", "known"];
      const asked = names.map((name) => ({ keyId: "key_a", hostname: `${name}.example` }));
      expect([...(await db.actions.approvedHosts(ACCOUNT, asked))]).toEqual(['["key_a","known.example"]']);
      expect(await db.actions.approvedHosts(ACCOUNT, [])).toEqual(new Set());
    });
  });
}
