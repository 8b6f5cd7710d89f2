import { describe, expect } from "bun:test";
import { SYSTEM } from "../../../src/core/roles.ts";
import { PAUSES_MAX } from "../../../src/core/limits.ts";
import type { Pause, PauseStore } from "../../../src/core/pause.ts";
import type { Store } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCreation,
  anApiKey,
  anAuditEntry,
  aPause,
  KEY,
  later,
  NOON,
  OTHER_ACCOUNT,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { actionInStatus, audited, claimDue, claimOf, createdAction, LEASE, stored } from "./steps.ts";

const ALL = [true, true, true] as const;

const ofHost = (subject: string, more: Partial<Pause> = {}) => aPause({ kind: "host", subject, ...more });

const ofKey = (subject: string, more: Partial<Pause> = {}) => aPause({ kind: "key", subject, ...more });

const pause = (pauses: PauseStore, row: Pause) => pauses.pause(row, anAuditEntry({ subject: row.id }));

const end = (pauses: PauseStore, { id, accountId }: Pause, at = later(5)) =>
  pauses.end(accountId, id, { at, by: SYSTEM, audit: anAuditEntry({ kind: "resumed", subject: id }) });

const told = async (store: Store) => (await audited(store)).map(({ kind, subject }) => [kind, subject]);

/** What owners have stopped: the store decides, whatever a process remembers. */
export function testPauses(test: StoreTest): void {
  describe("a pause", () => {
    test.each([
      ["of the account stops every action of it", aPause(), [false, false, true]],
      ["of a key stops what that key created", ofKey(KEY), [false, true, true]],
      ["of the host stops every call to it", ofHost("api.example.com"), [false, false, true]],
      ["of another port of the host stops nothing", ofHost("api.example.com:8443"), ALL],
      ["of another account stops nothing", aPause({ accountId: "acc_three" }), ALL],
    ] as const)("%s from being claimed", async (db, [, row, expected]) => {
      const { accounts, pauses } = db.store;
      await accounts.addKey(anApiKey({ id: KEY }));
      const ours = await createdAction(db.actions, { keyId: KEY });
      const others = await createdAction(db.actions, { keyId: "key_other" });
      const theirs = await createdAction(db.actions, { keyId: KEY, accountId: OTHER_ACCOUNT });
      expect((await pause(pauses, row)).kind).toBe("paused");
      const lanes = [ours, others, theirs].flatMap((action) => claimOf(action).lanes);
      const { rows, next } = await db.actions.claimDue({ ...claimOf(ours), lanes });
      const won = new Set(rows.map((one) => one.row.id));
      const isWon = [ours, others, theirs].map(({ id }) => won.has(id));
      expect(isWon).toEqual([...expected]);
      // A lane that is paused has no next row: it would be claimed in vain again and again.
      expect(next).toEqual([]);
      // What was not won is as it was.
      if (!isWon[0]) expect(await stored(db.actions, ours)).toEqual(ours);
    });

    test("stops what is not late", async (db) => {
      const row = aPause();
      const action = await createdAction(db.actions);
      expect(await db.actions.firstDueAt()).toEqual(action.createdAt);
      await pause(db.store.pauses, row);
      expect(await db.actions.firstDueAt()).toBeNull();
      expect(await claimDue(db.actions, action)).toEqual([]);
      expect(await stored(db.actions, action)).toEqual(action);
      await end(db.store.pauses, row);
      expect(await db.actions.firstDueAt()).toEqual(action.createdAt);
      expect(await claimDue(db.actions, action)).toHaveLength(1);
    });

    test("lets what was claimed before it end", async (db) => {
      const active = await actionInStatus(db.actions, "active");
      await pause(db.store.pauses, aPause());
      expect(await stored(db.actions, active)).toEqual(active);
    });

    test.each([
      ["of the account", aPause()],
      ["of the host", ofHost("api.example.com")],
    ])("%s stores a create that brings a claim unclaimed, and a claim after its end wins it", async (db, [, row]) => {
      await pause(db.store.pauses, row);
      const creation = { ...aCreation({ idempotencyKey: "k", dedupe: "d" }), claim: LEASE };
      expect(await db.actions.create(creation)).toEqual({ kind: "created", claimed: null });
      expect(await stored(db.actions, creation.action)).toEqual(creation.action);
      expect(await claimDue(db.actions, creation.action)).toEqual([]);
      expect(await end(db.store.pauses, row)).toBe(true);
      expect(await claimDue(db.actions, creation.action)).toHaveLength(1);
    });

    test("stops the claims of its own commit too, and the creates that come behind it", async (db) => {
      const before = await createdAction(db.actions);
      const after = await createdAction(db.actions);
      const [first, , second, created] = await Promise.all([
        claimDue(db.actions, before, { limit: 1 }),
        pause(db.store.pauses, aPause()),
        claimDue(db.actions, after),
        db.actions.create({ ...aCreation(), claim: LEASE }),
      ]);
      expect([first.length, second.length, created]).toEqual([0, 0, { kind: "created", claimed: null }]);
    });

    test("survives a restart, and is told of once, whoever asks for it twice", async (db) => {
      const row = aPause({ reason: "It loops." });
      const [one, other] = await Promise.all([pause(db.store.pauses, row), pause(db.store.pauses, aPause())]);
      expect([one, other]).toEqual([
        { kind: "paused", pause: row },
        { kind: "found", pause: row },
      ]);
      await db.restart();
      expect(await db.store.pauses.inForce(ACCOUNT)).toEqual([row]);
      expect(await db.store.pauses.inForce(null)).toEqual([row]);
      expect(await db.store.pauses.inForce(OTHER_ACCOUNT)).toEqual([]);
      expect(await told(db.store)).toEqual([["paused", row.id]]);
    });

    test("of a key needs a key of the account", async (db, { accounts, pauses }) => {
      await accounts.addKey(anApiKey({ id: "key_theirs", accountId: OTHER_ACCOUNT }));
      expect(await pause(pauses, ofKey("key_theirs"))).toEqual({ kind: "no_such_key" });
      expect(await pause(pauses, ofKey("key_nobodys"))).toEqual({ kind: "no_such_key" });
      expect(await db.count("pauses")).toBe(0);
      expect(await told(db.store)).toEqual([]);
    });

    test("beyond the bound is refused", async (db, { pauses }) => {
      const first = aPause({ kind: "host", subject: "h.example" });
      await pause(pauses, first);
      await db.copyRow("pauses", first.id, PAUSES_MAX - 2, ["id", "subject"]);
      const last = await pause(pauses, aPause({ kind: "host", subject: "other.example" }));
      expect(last).not.toEqual({ kind: "too_many" });
      expect(await pause(pauses, aPause())).toEqual({ kind: "too_many" });
    });

    test("ends once, and only for its account", async (db, { pauses }) => {
      const row = aPause();
      await pause(pauses, row);
      expect(await end(pauses, { ...row, accountId: OTHER_ACCOUNT })).toBe(false);
      expect(await pauses.inForce(ACCOUNT)).toHaveLength(1);
      expect([await end(pauses, row), await end(pauses, row, later(9))]).toEqual([true, true]);
      expect(await pauses.find(ACCOUNT, row.id)).toEqual({ ...row, endedAt: later(5), endedBy: SYSTEM });
      expect(await pauses.find(OTHER_ACCOUNT, row.id)).toBeNull();
      expect(await told(db.store)).toEqual([
        ["resumed", row.id],
        ["paused", row.id],
      ]);
      // The same may be paused again.
      expect((await pause(pauses, aPause())).kind).toBe("paused");
    });

    test("is told to the actions that it covered, oldest first, also after its end", async (db) => {
      const { accounts, pauses } = db.store;
      await accounts.addKey(anApiKey({ id: KEY }));
      await accounts.addKey(anApiKey({ id: "key_other" }));
      const action = await createdAction(db.actions, { keyId: KEY });
      const byPerson = await createdAction(db.actions, { keyId: "" });
      const [first, second] = [ofKey(KEY), aPause({ createdAt: later(1) })];
      const third = ofHost(action.host, { createdAt: later(3) });
      const rows = [first, second, ofKey("key_other", { createdAt: later(2) }), third, ofHost("other.example")];
      for (const row of rows) await pause(pauses, row);
      for (const row of rows) await end(pauses, row);
      expect((await pauses.ofAction(ACCOUNT, action.id)).map(({ id }) => id)).toEqual([first.id, second.id, third.id]);
      expect((await pauses.ofAction(ACCOUNT, byPerson.id)).map(({ id }) => id)).toEqual([second.id, third.id]);
      expect(await pauses.ofAction(OTHER_ACCOUNT, action.id)).toEqual([]);
    });

    test("is forgotten once it has ended long ago, and never while it is in force", async (db, { pauses }) => {
      const [old, recent] = [aPause(), aPause()];
      await pause(pauses, old);
      await end(pauses, old, later(5));
      await pause(pauses, recent);
      expect(await pauses.prune(later(4))).toBe(false);
      expect(await db.count("pauses")).toBe(2);
      await pauses.prune(later(5_000));
      expect(await pauses.inForce(null)).toEqual([recent]);
      expect(await db.count("pauses")).toBe(1);
    });
  });

  describe("the end of a key", () => {
    test("and the pause of what it left are one commit", async (db, { accounts, pauses }) => {
      await accounts.addKey(anApiKey({ id: KEY }));
      const action = await createdAction(db.actions, { keyId: KEY });
      const row = ofKey(KEY, { cancels: true });
      const audit = anAuditEntry({ kind: "key_revoked", subject: KEY });
      const left = { pause: row, audit: anAuditEntry() };
      const revoked = await accounts.revokeKey(ACCOUNT, KEY, NOON, { audit, pause: left });
      const made = { createdById: KEY, createdBy: "key:ci" } as const;
      expect(await pauses.end(ACCOUNT, row.id, { at: NOON, by: SYSTEM, audit, made })).toBe("not_manager");
      expect([revoked?.revokedAt, await claimDue(db.actions, action)]).toEqual([NOON, []]);
      expect(await pauses.inForce(null)).toEqual([row]);
      expect((await told(db.store)).map(([kind]) => kind)).toEqual(["paused", "key_revoked"]);
    });

    test("of another account is neither", async (db, { accounts, pauses }) => {
      await accounts.addKey(anApiKey({ id: KEY, accountId: OTHER_ACCOUNT }));
      const more = { audit: anAuditEntry(), pause: { pause: ofKey(KEY), audit: anAuditEntry() } };
      expect(await accounts.revokeKey(ACCOUNT, KEY, NOON, more)).toBeNull();
      expect([await pauses.inForce(null), await told(db.store)]).toEqual([[], []]);
    });

    test("has what is paused already cancelled, where that is asked", async ({ store: { accounts, pauses } }) => {
      await accounts.addKey(anApiKey({ id: KEY }));
      const row = ofKey(KEY);
      await pause(pauses, row);
      const more = { pause: { pause: ofKey(KEY, { cancels: true }), audit: anAuditEntry() } };
      await accounts.revokeKey(ACCOUNT, KEY, NOON, more);
      expect(await pauses.inForce(null)).toEqual([{ ...row, cancels: true }]);
    });
  });

  test("what a key left unfinished is what waits, and whether something is being sent", async (db, { pauses }) => {
    const left = async () => {
      const { ids, isSending } = await pauses.unfinished(ACCOUNT, KEY, 9);
      return { ids: ids.toSorted(), isSending };
    };
    expect(await left()).toEqual({ ids: [], isSending: false });
    const waiting = [
      await createdAction(db.actions, { url: "https://a.example/" }),
      await createdAction(db.actions, { url: "https://b.example/" }),
      await actionInStatus(db.actions, "awaiting_approval"),
    ].map(({ id }) => id);
    for (const status of ["completed", "failed", "cancelled"] as const) await actionInStatus(db.actions, status);
    await createdAction(db.actions, { keyId: "key_other" });
    await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
    expect(await left()).toEqual({ ids: waiting.toSorted(), isSending: false });
    await actionInStatus(db.actions, "active");
    expect(await left()).toEqual({ ids: waiting.toSorted(), isSending: true });
    expect((await pauses.unfinished(ACCOUNT, KEY, 2)).ids).toHaveLength(2);
  });
}
