import { describe, expect, test } from "bun:test";
import type { RuleRow } from "../../../src/core/account-rules.ts";
import { ACCOUNT, aCreation, anAuditEntry, aRule, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";

const entry = () => anAuditEntry({ kind: "rules_changed", subject: "" });

/** The rules of accounts: those in force when a create is committed are those that it was decided by. */
export function testRules(open: OpenTestStore): void {
  describe("rules", () => {
    test("are written all at once, listed in their order, and stay other accounts' business", async () => {
      await using db = await open();
      const { rules, audit } = db.store;
      const [a, b, theirs] = [aRule("rul_a"), aRule("rul_b"), aRule("rul_c", { accountId: OTHER_ACCOUNT })];
      const write = async (accountId: string, rows: readonly RuleRow[]) =>
        rules.replace({ accountId, rules: rows, expected: await rules.versionOf(accountId), audit: entry() });
      expect([await write(ACCOUNT, [b, a]), await write(OTHER_ACCOUNT, [theirs])]).toEqual([true, true]);
      expect([await rules.list(ACCOUNT), await rules.list(OTHER_ACCOUNT)]).toEqual([[b, a], [theirs]]);
      const changed = { ...a, version: 2, definition: "{}" };
      await write(ACCOUNT, [changed]);
      expect(await rules.list(ACCOUNT)).toEqual([changed]);
      const kinds = ["rules_changed"] as const;
      const page = { accountId: ACCOUNT, kinds, actors: [], since: null, until: null, before: null, limit: 9 };
      expect((await audit.page(page)).rows).toHaveLength(3);
    });

    test("that were written since they were read are not overwritten, and what they decided is decided again", async () => {
      await using db = await open();
      const { rules, actions, audit } = db.store;
      const before = await rules.versionOf(ACCOUNT);
      const write = { accountId: ACCOUNT, rules: [aRule("rul_a")], expected: before, audit: entry() };
      expect([await rules.replace(write), await rules.replace(write)]).toEqual([true, false]);
      const now = await rules.versionOf(ACCOUNT);
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
      const kinds = ["refused_by_rule"] as const;
      const page = { accountId: ACCOUNT, kinds, actors: [], since: null, until: null, before: null, limit: 9 };
      expect((await audit.page(page)).rows).toHaveLength(1);
    });

    test("have a version of each account, which the rules of others don't change", async () => {
      await using db = await open();
      const { rules, actions } = db.store;
      const write = (accountId: string, rows: readonly RuleRow[], expected: string) =>
        rules.replace({ accountId, rules: rows, expected, audit: entry() });
      const all = [await rules.version()];
      expect([await rules.versionOf(ACCOUNT), await rules.versions()]).toEqual(["", new Map()]);
      await write(ACCOUNT, [aRule("rul_a")], "");
      const own = await rules.versionOf(ACCOUNT);
      all.push(await rules.version());
      expect(await write(OTHER_ACCOUNT, [aRule("rul_b", { accountId: OTHER_ACCOUNT })], "")).toBe(true);
      const theirs = await rules.versionOf(OTHER_ACCOUNT);
      all.push(await rules.version());
      expect([await rules.versionOf(ACCOUNT), await rules.versions()]).toEqual([
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
      expect(await rules.versionOf(ACCOUNT)).not.toBe(own);
      expect(new Set(all).size).toBe(4);
    });

    test("why an action is held or passes is kept with it, also where it is held only when it was about to be sent", async () => {
      await using db = await open();
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
}
