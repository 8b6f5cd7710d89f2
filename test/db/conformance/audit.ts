import { describe, expect } from "bun:test";
import type { AuditEntry, AuditRow } from "../../../src/core/audit.ts";
import { DAY_MS } from "../../../src/core/limits.ts";
import type { Store } from "../../../src/core/store.ts";
import { cancel } from "../../../src/core/changes.ts";
import {
  ACCOUNT,
  aDecision,
  anApiKey,
  anAuditEntry,
  anAuditQuery,
  aPerson,
  aSession,
  aSignUp,
  aWelcomeLink,
  later,
  NOON,
  OTHER_ACCOUNT,
  writeOf,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { audited, createdAction } from "./steps.ts";

const DAYS = { accountId: ACCOUNT, kinds: ["credential_used", "credential_tested"], until: NOON, days: 7 } as const;

const subjects = (rows: readonly AuditRow[]) => rows.map(({ subject }) => subject);

const kindsOf = async (store: Store) => (await audited(store)).map(({ kind }) => kind);

/** Who did what to an account. */
export function testAudit(test: StoreTest): void {
  describe("the audit log", () => {
    test("shows entries as they were written, newest first, of one account", async (db, { audit }) => {
      const [first, second] = [anAuditEntry({ detail: { via: "page", n: 1, no: null } }), anAuditEntry()];
      await audit.record(first);
      await audit.record(anAuditEntry({ accountId: OTHER_ACCOUNT }));
      await audit.record(second);
      await db.restart();
      const { rows, before } = await db.store.audit.page(anAuditQuery());
      expect(before).toBeNull();
      expect(rows).toEqual([
        { ...second, seq: 3 },
        { ...first, seq: 1 },
      ]);
    });

    test("has pages that neither shift nor repeat when more is written", async ({ store: { audit } }) => {
      for (const subject of ["1", "2", "3", "4", "5"]) await audit.record(anAuditEntry({ subject }));
      const first = await audit.page(anAuditQuery({ limit: 2 }));
      await audit.record(anAuditEntry({ subject: "6" }));
      const second = await audit.page(anAuditQuery({ limit: 2, before: first.before }));
      const third = await audit.page(anAuditQuery({ limit: 2, before: second.before }));
      expect([first, second, third].map(({ rows }) => subjects(rows))).toEqual([["5", "4"], ["3", "2"], ["1"]]);
      expect(third.before).toBeNull();
    });

    test.each([
      ["kinds", { kinds: ["signed_in", "paused"] as const }, ["4", "1"]],
      ["the actor", { actors: ["user:ann@example.com"] }, ["3"]],
      ["several actors", { actors: ["user:ann@example.com", "email:ann@example.com"] }, ["3"]],
      ["actors of all", { actors: ["user:ann@example.com", "key:boss"] }, ["4", "3", "2", "1"]],
      ["since", { since: later(3) }, ["4", "3"]],
      ["until", { until: later(3) }, ["2", "1"]],
      ["all", { kinds: ["key_created"] as const, actors: ["key:boss"], since: later(1), until: later(9) }, ["2"]],
    ])("is filtered by %s", async (db, [, filter, expected]) => {
      const { audit } = db.store;
      await audit.record(anAuditEntry({ subject: "1", at: later(1), kind: "paused" }));
      await audit.record(anAuditEntry({ subject: "2", at: later(2), kind: "key_created" }));
      await audit.record(
        anAuditEntry({ subject: "3", at: later(3), kind: "key_revoked", actor: "user:ann@example.com" }),
      );
      await audit.record(anAuditEntry({ subject: "4", at: later(4), kind: "signed_in" }));
      expect(subjects(await audited(db.store, filter))).toEqual([...expected]);
    });

    test("counts entries of some kinds by subject and day", async ({ store: { audit } }) => {
      const add = (subject: string, agoMs: number, more: Partial<AuditEntry> = {}) =>
        audit.record(anAuditEntry({ kind: "credential_used", subject, at: new Date(NOON.getTime() - agoMs), ...more }));
      expect(await audit.count(DAYS)).toEqual({ counts: [], isWhole: true });
      for (const agoMs of [-1, 0, DAY_MS - 1, DAY_MS, 3 * DAY_MS, 3 * DAY_MS + 5, 7 * DAY_MS - 1, 7 * DAY_MS]) {
        await add("crd_a", agoMs);
      }
      await add("crd_b", 5);
      await add("crd_b", 9, { kind: "credential_tested" });
      await add("crd_b", 9, { kind: "credential_changed" });
      await add("crd_b", 9, { accountId: OTHER_ACCOUNT });
      const { counts, isWhole } = await audit.count(DAYS);
      const rows = counts.map(({ subject, daysAgo, count }) => `${subject}: ${daysAgo} days ago ${count}`);
      expect(rows.toSorted()).toEqual([
        "crd_a: 0 days ago 2",
        "crd_a: 1 days ago 1",
        "crd_a: 3 days ago 2",
        "crd_a: 6 days ago 1",
        "crd_b: 0 days ago 2",
      ]);
      expect(isWhole).toBe(true);
    });

    test("forgets what is old and keeps its newest number, which comes once", async ({ store: { audit } }) => {
      for (const at of [1, 2, 3]) await audit.record(anAuditEntry({ at: later(at), subject: String(at) }));
      expect(await audit.prune(later(1))).toBe(false);
      expect(subjects((await audit.page(anAuditQuery())).rows)).toEqual(["3", "2"]);
      await audit.prune(later(9));
      expect(subjects((await audit.page(anAuditQuery())).rows)).toEqual(["3"]);
      await audit.record(anAuditEntry({ subject: "4" }));
      expect((await audit.page(anAuditQuery())).rows.map(({ seq }) => seq)).toEqual([4, 3]);
    });
  });

  describe("an entry is written with its change and not without it:", () => {
    test("a decision", async (db) => {
      const action = await createdAction(db.actions);
      const audit = anAuditEntry({ kind: "cancelled" });
      const write = { ...writeOf(cancel(action, aDecision())), audit };
      expect([await db.actions.apply(write), await db.actions.apply(write)]).toEqual([true, false]);
      expect(await kindsOf(db.store)).toEqual(["cancelled"]);
    });

    test("a key that is made and revoked, twice", async (db, { accounts }) => {
      const key = anApiKey();
      await accounts.addKey(key, anAuditEntry({ kind: "key_created" }));
      const audit = anAuditEntry({ kind: "key_revoked" });
      await accounts.revokeKey(ACCOUNT, key.id, NOON, { audit });
      await accounts.revokeKey(ACCOUNT, key.id, later(1), { audit });
      expect(await kindsOf(db.store)).toEqual(["key_revoked", "key_created"]);
    });

    test("a sign-up, and one whose address is taken", async (db, { people }) => {
      const audit = [anAuditEntry({ kind: "signed_up" }), anAuditEntry({ kind: "key_created" })];
      await people.signUp({ ...aSignUp({ email: "ann@example.com" }), audit });
      expect(await people.signUp({ ...aSignUp({ email: "Ann@example.com" }), audit })).toBe(false);
      expect(await kindsOf(db.store)).toEqual(["key_created", "signed_up"]);
    });

    test("a login, a change of the password and a logout", async (db, { people }) => {
      const signUp = aSignUp();
      await people.signUp(signUp);
      const { id: personId, passwordHash } = signUp.person;
      const accountId = signUp.account.id;
      const session = () => aSession({ personId, accountId });
      await people.addSession(session(), "another", anAuditEntry({ kind: "signed_in" }));
      await people.changePassword(session(), "another", "next", anAuditEntry({ kind: "password_changed" }));
      expect(await kindsOf(db.store)).toEqual([]);
      await people.addSession(session(), passwordHash, anAuditEntry({ kind: "signed_in" }));
      const last = session();
      await people.changePassword(last, passwordHash, "next", anAuditEntry({ kind: "password_changed" }));
      await people.endSession(last.hash, anAuditEntry({ kind: "signed_out" }));
      await people.endSession(last.hash, anAuditEntry({ kind: "signed_out" }));
      expect(await kindsOf(db.store)).toEqual(["signed_out", "password_changed", "signed_in"]);
    });

    test("a one-time link that is taken, and one that was", async (db, { people }) => {
      const link = aWelcomeLink();
      await people.offer(link);
      const { person, session } = aPerson();
      await people.welcome(link.hash, person, session, anAuditEntry({ kind: "signed_up" }));
      await people.welcome(link.hash, aPerson().person, session, anAuditEntry({ kind: "signed_up" }));
      const renewal = aWelcomeLink({ personId: person.id });
      await people.offer(renewal);
      const changed = anAuditEntry({ kind: "password_changed" });
      await people.renewPassword(renewal.hash, "next", aSession({ personId: person.id }), changed);
      await people.renewPassword(renewal.hash, "next", aSession({ personId: person.id }), changed);
      expect(await kindsOf(db.store)).toEqual(["password_changed", "signed_up"]);
    });
  });
}
