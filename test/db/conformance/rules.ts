import { describe, expect } from "bun:test";
import { type RuleRow, toStoredCount, type RuleCount } from "../../../src/core/account-rules.ts";
import {
  ACCOUNT,
  aCreation,
  aGrant,
  anApiKey,
  anAuditEntry,
  aRule,
  OTHER_ACCOUNT,
  aDecision,
  answered,
  aRuleCount,
  later,
  NOON,
  settled,
  writeOf,
} from "../../support/factory.ts";
import { audited, claimed, LEASE } from "./steps.ts";
import type { StoreTest } from "./store-test.ts";
import { approve, cancel, retry } from "../../../src/core/changes.ts";
import { type Grant, policyOfGrant } from "../../../src/core/grant.ts";
import { startAttempt } from "../../../src/core/settle.ts";
import type { Outcome } from "../../../src/core/outcome.ts";
import type { Creation, Store } from "../../../src/core/store.ts";

const rulesChanged = () => anAuditEntry({ kind: "rules_changed", subject: "" });

/** The rules of accounts, which decide creates when they are committed, and what they count. */
export function testRules(test: StoreTest): void {
  describe("rules", () => {
    test("are written all at once, listed in their order, and stay other accounts' business", async (db) => {
      const { rules } = db.store;
      const [a, b, theirs] = [aRule("rul_a"), aRule("rul_b"), aRule("rul_c", { accountId: OTHER_ACCOUNT })];
      const write = async (accountId: string, rows: readonly RuleRow[]) =>
        rules.replace({ accountId, rules: rows, expected: await rules.findVersion(accountId), audit: rulesChanged() });
      expect([await write(ACCOUNT, [b, a]), await write(OTHER_ACCOUNT, [theirs])]).toEqual([true, true]);
      expect([await rules.list(ACCOUNT), await rules.list(OTHER_ACCOUNT)]).toEqual([[b, a], [theirs]]);
      const changed = { ...a, version: 2, definition: "{}" };
      await write(ACCOUNT, [changed]);
      expect(await rules.list(ACCOUNT)).toEqual([changed]);
      expect(await audited(db.store, { kinds: ["rules_changed"] })).toHaveLength(3);
    });

    test("that were written since they were read are not overwritten, and what they decided is decided again", async (db) => {
      const { rules, actions } = db.store;
      const before = await rules.findVersion(ACCOUNT);
      const write = { accountId: ACCOUNT, rules: [aRule("rul_a")], expected: before, audit: rulesChanged() };
      expect([await rules.replace(write), await rules.replace(write)]).toEqual([true, false]);
      const now = await rules.findVersion(ACCOUNT);
      const refusal = anAuditEntry({ kind: "refused_by_rule", subject: "rul_a" });
      expect([await rules.recordRefusal(before, refusal), await rules.recordRefusal(now, refusal)]).toEqual([
        false,
        true,
      ]);
      const late = { ...aCreation({ idempotencyKey: "k" }), rulesVersion: before };
      expect((await actions.create(late)).kind).toBe("rules_changed");
      expect(await actions.find(ACCOUNT, late.action.id)).toBeNull();
      expect((await actions.create({ ...late, rulesVersion: now })).kind).toBe("created");
      // It was decided long ago: a repeat is answered before any rule.
      const again = { ...aCreation({ idempotencyKey: "k" }), rulesVersion: before, isRefused: true };
      expect(await actions.create(again)).toMatchObject({ kind: "matched", action: { id: late.action.id } });
      expect((await actions.create({ ...aCreation(), rulesVersion: now, isRefused: true })).kind).toBe("refused");
      expect(await audited(db.store, { kinds: ["refused_by_rule"] })).toHaveLength(1);
    });

    test("have a version of each account, which the rules of others don't change", async (db) => {
      const { rules, actions } = db.store;
      const write = (accountId: string, rows: readonly RuleRow[], expected: string) =>
        rules.replace({ accountId, rules: rows, expected, audit: rulesChanged() });
      const all = [await rules.version()];
      expect([await rules.findVersion(ACCOUNT), await rules.versions()]).toEqual(["", new Map()]);
      await write(ACCOUNT, [aRule("rul_a")], "");
      const own = await rules.findVersion(ACCOUNT);
      all.push(await rules.version());
      expect(await write(OTHER_ACCOUNT, [aRule("rul_b", { accountId: OTHER_ACCOUNT })], "")).toBe(true);
      const theirs = await rules.findVersion(OTHER_ACCOUNT);
      all.push(await rules.version());
      expect([await rules.findVersion(ACCOUNT), await rules.versions()]).toEqual([
        own,
        new Map([
          [ACCOUNT, own],
          [OTHER_ACCOUNT, theirs],
        ]),
      ]);
      expect((await actions.create({ ...aCreation(), rulesVersion: own })).kind).toBe("created");
      // Without rules it has a version still: whoever knows the former ones decides again.
      await write(ACCOUNT, [], own);
      all.push(await rules.version());
      expect(await rules.versions()).toEqual(new Map([[OTHER_ACCOUNT, theirs]]));
      expect(await rules.findVersion(ACCOUNT)).not.toBe(own);
      expect(new Set(all).size).toBe(4);
    });

    test("why an action is held or passes is kept with it, also where it is held only when it was about to be sent", async (db) => {
      const policy = { effect: "hold", by: "rule", id: "rul_a", name: "A", version: 3, reason: "Too much." } as const;
      const creation = aCreation({ approve: true, policy });
      await db.actions.create(creation);
      expect(await db.actions.find(ACCOUNT, creation.action.id)).toEqual(creation.action);
      const { rules } = db.store;
      await db.actions.create(aCreation());
      expect(await rules.ruled(ACCOUNT, creation.action.createdAt, 9)).toEqual([policy]);
      expect(await rules.ruled(ACCOUNT, new Date(creation.action.createdAt.getTime() + 1), 9)).toEqual([]);
      expect(await rules.ruled(OTHER_ACCOUNT, creation.action.createdAt, 9)).toEqual([]);
    });
  });

  test("a grant that is used up can be ended until it expires, and is listed behind those in force", async (db) => {
    const { accounts, grants } = db.store;
    await accounts.addKey(anApiKey({ id: aGrant().createdById }));
    const granted = async (more: Partial<Grant>) => {
      const held = aCreation({ approve: true });
      await db.actions.create(held);
      const grant = aGrant({ actionId: held.action.id, ...more });
      expect(await db.actions.apply({ ...writeOf(approve(held.action, aDecision())), grant })).toBe(true);
      return grant;
    };
    const [older, usedUp] = [await granted({}), await granted({ calls: 3, used: 3, createdAt: later(1) })];
    const newer = await granted({ createdAt: later(2) });
    const ended = await granted({ createdAt: later(3), endedAt: later(4), endedBy: "key:boss" });
    expect(await grants.list(ACCOUNT, NOON)).toEqual([newer, older]);
    expect(await grants.listOpen(ACCOUNT, NOON, 9)).toEqual([newer, older, usedUp]);
    expect(await grants.listOpen(ACCOUNT, NOON, 2)).toEqual([newer, older]);
    expect(await grants.listOpen(ACCOUNT, usedUp.expiresAt, 9)).toEqual([]);
    expect(await grants.listOpen(OTHER_ACCOUNT, NOON, 9)).toEqual([]);
    const end = (id: string, at: Date) => grants.end(ACCOUNT, id, { at, by: "key:boss", audit: anAuditEntry() });
    expect(await end(usedUp.id, usedUp.expiresAt)).toBeNull();
    expect(await end(usedUp.id, later(5))).toMatchObject({ id: usedUp.id, endedAt: later(5) });
    expect([await end(usedUp.id, later(5)), await end(ended.id, later(5))]).toEqual([null, null]);
    expect(await grants.wasEnded(ACCOUNT, usedUp.id)).toBe(true);
    // What is over goes, but not what was ended before its time while something waits that it let pass.
    const waiting = aCreation({ host: "waiting.example.com", policy: policyOfGrant(usedUp) });
    await db.actions.create(waiting);
    expect(await grants.prune(new Date(newer.expiresAt.getTime() - 1))).toBe(false);
    expect(await grants.listOpen(ACCOUNT, NOON, 9)).toEqual([newer, older]);
    await grants.prune(newer.expiresAt);
    expect(await db.count("grants")).toBe(1);
    expect([await grants.wasEnded(ACCOUNT, usedUp.id), await grants.wasEnded(ACCOUNT, ended.id)]).toEqual([
      true,
      false,
    ]);
    // Its attempt may still be given back.
    const active = await claimed(db.actions, waiting.action);
    await grants.prune(newer.expiresAt);
    expect(await db.count("grants")).toBe(1);
    await db.actions.apply(settled(active, answered(200)));
    await grants.prune(newer.expiresAt);
    expect(await db.count("grants")).toBe(0);
  });

  describe("counts of rules", () => {
    test("let pass what fits in, whatever comes in one commit, and nothing of what is refused counts", async (db) => {
      const count = aRuleCount({ amount: "4999", limit: "10000" });
      const others = aRuleCount({ ruleId: "rul_b", amount: "1", limit: "9" });
      const created = await Promise.all([1, 2, 3].map(() => db.actions.create(counting([others, count]))));
      expect(created.map(({ kind }) => kind)).toEqual(["created", "created", "beyond"]);
      expect(created[2]).toEqual({ kind: "beyond", counts: [count] });
      expect((await db.actions.create(counting([{ ...count, amount: "2" }]))).kind).toBe("created");
      expect((await db.actions.create(counting([{ ...count, amount: "1" }]))).kind).toBe("beyond");
      expect(await spent(db, others)).toBe(2);
    });

    test("are exact with numbers of any size, and by subject and part of time", async (db) => {
      const large = aRuleCount({ amount: "9007199254740993000000000", limit: "9007199254740993000000001" });
      expect((await db.actions.create(counting([large]))).kind).toBe("created");
      const small = { ...large, amount: "2" };
      expect(await db.actions.beyondCounts([small, { ...small, subject: "t" }])).toEqual([small]);
      const next = { ...small, start: small.start + 1, from: small.start + 1, to: small.to + 1 };
      expect(await db.actions.beyondCounts([next, { ...next, from: small.start }])).toHaveLength(1);
      expect((await db.actions.create(counting([{ ...large, amount: "1" }]))).kind).toBe("created");
    });

    test("do not count a match", async (db) => {
      const count = aRuleCount({ limit: "2" });
      const keys = { idempotencyKey: "k", dedupe: "d" };
      const kinds = [];
      for (let n = 0; n < 3; n += 1) kinds.push((await db.actions.create(counting([count], keys))).kind);
      expect(kinds).toEqual(["created", "matched", "matched"]);
      expect(await spent(db, count)).toBe(1);
    });

    test("are kept with the action, and given back once by a cancel before any send", async (db) => {
      const count = aRuleCount({ amount: "7", limit: "100" });
      const [one, other] = [counting([count]), counting([count])];
      for (const creation of [one, other]) await db.actions.create(creation);
      expect(await db.actions.find(ACCOUNT, one.action.id)).toEqual(one.action);
      const write = writeOf(cancel(one.action, aDecision()));
      expect([await db.actions.apply(write), await db.actions.apply(write)]).toEqual([true, false]);
      expect(await spent(db, count)).toBe(7);
      // A run that counts nothing gives nothing back.
      const { after } = write.change;
      const again = retry(after, aDecision());
      if (!("after" in again)) throw again;
      const run = { ...again, after: { ...again.after, counted: [] } };
      expect(await db.actions.apply(writeOf(run))).toBe(true);
      expect(await db.actions.apply(writeOf(cancel(run.after, aDecision())))).toBe(true);
      expect(await spent(db, count)).toBe(7);
    });

    test("are counted by a retry, which is not written where that goes beyond", async (db) => {
      const count = aRuleCount({ amount: "40", limit: "100" });
      const { action, ...creation } = counting([count]);
      await db.actions.create({ ...creation, action });
      const cancelled = writeOf(cancel(action, aDecision()));
      await db.actions.apply(cancelled);
      const again = retry(cancelled.change.after, aDecision());
      if (!("after" in again)) throw again;
      const write = writeOf({ ...again, after: { ...again.after, counted: [toStoredCount(count)] } });
      const tooMuch = { ...count, amount: "101" };
      expect(await db.actions.apply({ ...write, counts: [tooMuch] })).toBe(false);
      expect(await spent(db, count)).toBe(0);
      expect(await db.actions.apply({ ...write, counts: [count] })).toBe(true);
      // Decided on an older state.
      expect(await db.actions.apply({ ...write, counts: [count] })).toBe(false);
      expect(await spent(db, count)).toBe(40);
      expect((await db.actions.find(ACCOUNT, action.id))?.counted).toEqual([toStoredCount(count)]);
    });

    test.each([
      ["not sent", [NOT_SENT], 0, "failed"],
      ["twice not sent", [NOT_SENT, NOT_SENT], 0, "failed"],
      ["answered and then not sent", [answered(500), NOT_SENT], 5, "failed"],
      ["unknown and then not sent", [{ kind: "unknown", fault: "timed_out" }, NOT_SENT], 5, "failed"],
      ["answered", [answered(500)], 5, "failed"],
      ["not sent and then cancelled", [NOT_SENT], 0, "cancelled"],
      ["answered and then cancelled", [answered(500)], 5, "cancelled"],
    ] as const)("of a call that was %s", async (db, [, outcomes, left, status]) => {
      const count = aRuleCount({ amount: "5", limit: "100" });
      const retries = outcomes.length + (status === "cancelled" ? 1 : 0);
      const creation = { ...counting([count], { retries }), claim: LEASE };
      await db.actions.create(creation);
      let action = startAttempt(creation.action, LEASE);
      for (const [n, outcome] of outcomes.entries()) {
        const write = settled(action, outcome);
        expect(await db.actions.apply(write)).toBe(true);
        action = write.change.after;
        if (n + 1 < outcomes.length) action = await claimed(db.actions, action);
      }
      if (status === "cancelled") {
        const write = writeOf(cancel(action, aDecision()));
        expect(await db.actions.apply(write)).toBe(true);
        action = write.change.after;
      }
      expect(action.status).toBe(status);
      expect(await spent(db, count)).toBe(left);
    });

    test("tell once of a count that calls go beyond, and ask channels once where calls are the same", async (db) => {
      const count = aRuleCount({ asksOnce: true, from: NOON.getTime() - 5, to: NOON.getTime() + 5 });
      const entry = anAuditEntry({ kind: "beyond_rule", subject: "rul_a" });
      const ask = { kind: "mail", event: "requested:chn_1", target: "chn_1" };
      const rows = [];
      for (let n = 0; n < 3; n += 1) {
        const creation = aCreation({ approve: true, status: "awaiting_approval" });
        const at = NOON.getTime() + n;
        const outbox = [{ id: `ntf_${n}`, message: ask as never, host: "", payload: null }];
        await db.actions.create({ ...creation, outbox, beyond: { count: { ...count, start: at }, audit: entry } });
        rows.push(...(await db.store.outbox.list(ACCOUNT, null, 9)));
      }
      expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(["ntf_0"]));
      expect(await audited(db.store, { kinds: ["beyond_rule"] })).toHaveLength(1);
    });

    test("are forgotten some time after their window", async (db) => {
      const count = aRuleCount({ limit: "100", until: later(60_000).getTime() });
      await db.actions.create(counting([count]));
      await db.store.upkeep.pruneKeys(later(59_000));
      expect(await spent(db, count)).toBe(1);
      await db.store.upkeep.pruneKeys(later(61_000));
      expect(await spent(db, count)).toBe(0);
    });
  });
}

const counting = (counts: readonly RuleCount[], overrides: Parameters<typeof aCreation>[0] = {}): Creation => ({
  ...aCreation({ counted: counts.map(toStoredCount), ...overrides }),
  counts,
});

/** How much of a count of at most 100 is spent. */
async function spent({ actions }: Pick<Store, "actions">, count: RuleCount): Promise<number> {
  for (let rest = 0; rest <= 100; rest += 1) {
    const [isBeyond] = await actions.beyondCounts([{ ...count, amount: String(rest), limit: "100" }]);
    if (isBeyond !== undefined) return 101 - rest;
  }
  return 0;
}

const NOT_SENT: Outcome = { kind: "not_sent", fault: "refused" };
