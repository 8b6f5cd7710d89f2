import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openStore } from "../../db/open.ts";
import { lockQuery } from "../../db/postgres/queries.ts";
import { pauseLock } from "../../db/sql/locks.ts";
import type { OutboxStore, Store } from "../../src/core/store.ts";
import { toStoredCount } from "../../src/core/account-rules.ts";
import type { Notification } from "../../src/core/notification.ts";
import { approve, cancel, retry } from "../../src/core/changes.ts";
import { BULK_RUNNING_MAX, HELD_PER_KEY_MAX, MAILS_PER_RECIPIENT_MAX } from "../../src/core/limits.ts";
import { systemIds } from "../../src/core/ids.ts";
import {
  aBulkJob,
  ACCOUNT,
  aCreation,
  aDecision,
  anAction,
  anAccount,
  anApiKey,
  anArtifact,
  anAuditEntry,
  aGrant,
  anInvitation,
  aPause,
  aPerson,
  aRule,
  aRuleCount,
  aSession,
  aSignUp,
  aWelcomeLink,
  joined,
  KEY,
  later,
  NOON,
  writeOf,
} from "../support/factory.ts";
import { createDatabase, dropDatabase, hasPostgres } from "../support/postgres.ts";
import { openMigrated } from "../support/postgres-store.ts";
import { openStoreOf, testSecrets } from "../support/store.ts";
import { eventually } from "../support/eventually.ts";
import { claimDue, claimOf, createdAction, decided, failedAction } from "./conformance/steps.ts";

const LANE = { accountId: ACCOUNT, host: "api.example.com", keyId: KEY };

/** Two stores on one database, as two nodes have them, and a connection that stands in the middle of a transaction. */
async function openTwo() {
  const database = await openMigrated();
  const { url, client: raw } = database;
  const [one, other] = [await openStoreOf(url), await openStoreOf(url)];
  return {
    url,
    one,
    other,
    raw,
    /** The stores in turn. */
    stores: (count: number): readonly Store[] => Array.from({ length: count }, (_, at) => (at % 2 === 0 ? one : other)),
    async [Symbol.asyncDispose]() {
      await Promise.all([one.close(), other.close()]);
      await database[Symbol.asyncDispose]();
    },
  };
}

/** A test on two nodes. */
const race = (name: string, run: (db: Awaited<ReturnType<typeof openTwo>>) => Promise<void>) =>
  test(name, async () => {
    await using db = await openTwo();
    await run(db);
  });

describe.skipIf(!hasPostgres)("two nodes on one PostgreSQL", () => {
  test.each([
    ["an idempotency key", { idempotencyKey: "k" }],
    ["a dedupe key", { dedupe: "k" }],
    ["both keys", { idempotencyKey: "k", dedupe: "k" }],
  ])("make one action of a hundred racing creates with %s", async (_, keys) => {
    await using db = await openTwo();
    const created = await Promise.all(db.stores(100).map((store) => store.actions.create(aCreation(keys))));
    const matched = created.flatMap((one) => (one.kind === "matched" ? [one.action.id] : []));
    expect(created.filter(({ kind }) => kind === "created")).toHaveLength(1);
    expect(matched).toHaveLength(99);
    expect(new Set(matched).size).toBe(1);
    expect((await db.raw.query("select 1 from actions")).rowCount).toBe(1);
  });

  race("let no call more pass by a grant than it says, and none when it has ended", async (db) => {
    await db.one.accounts.addKey(anApiKey({ id: aGrant().createdById }));
    const held = aCreation({ approve: true });
    await db.one.actions.create(held);
    const grant = aGrant({ calls: 7, actionId: held.action.id });
    const write = writeOf(approve(held.action, aDecision()));
    expect(await db.one.actions.apply({ ...write, grant })).toBe(true);
    const audit = anAuditEntry({ kind: "grant_used", subject: grant.id, at: later(1), detail: { calls: 7 } });
    const policy = {
      effect: "allow",
      by: "grant",
      id: grant.id,
      name: "Ann",
      version: null,
      reason: "Ann did.",
    } as const;
    const by = (stores: readonly Store[]) =>
      Promise.all(
        stores.map((store) => store.actions.create({ ...aCreation({ policy }), grant: { id: grant.id, audit } })),
      );
    const made = await by(db.stores(60));
    const told = made.flatMap((one) => (one.kind === "created" ? [one.policy?.reason] : []));
    expect(new Set(told)).toEqual(new Set([1, 2, 3, 4, 5, 6, 7].map((n) => `Ann did. This is ${n} of 7.`)));
    expect([told.length, made.some(({ kind }) => kind === "grant_over")]).toEqual([7, true]);
    expect(await db.other.grants.list(ACCOUNT, later(1))).toEqual([]);

    const second = aCreation({ approve: true });
    await db.one.actions.create(second);
    const longer = aGrant({ calls: 50, actionId: second.action.id });
    await db.one.actions.apply({ ...writeOf(approve(second.action, aDecision())), grant: longer });
    expect(await db.other.grants.list(null, later(1))).toEqual([longer]);
    const end = {
      at: later(1),
      by: "key:boss",
      audit: anAuditEntry({ kind: "grant_ended", subject: longer.id }),
    } as const;
    expect(await db.other.grants.end(ACCOUNT, longer.id, end)).toMatchObject({ id: longer.id, endedBy: "key:boss" });
    const [late] = await by([db.one]);
    expect(late?.kind).toBe("grant_over");
  });

  race("leave no grant of a key that is revoked meanwhile", async (db) => {
    for (let n = 0; n < 20; n += 1) {
      const [held, key] = [aCreation({ approve: true }), anApiKey()];
      await db.one.accounts.addKey(key);
      await db.one.actions.create(held);
      const grant = aGrant({ actionId: held.action.id, createdById: key.id });
      const write = writeOf(approve(held.action, aDecision()));
      await Promise.all([
        db.one.actions.apply({ ...write, grant }),
        db.other.accounts.revokeKey(ACCOUNT, key.id, later(1)),
      ]);
    }
    expect(await db.one.grants.listOpen(ACCOUNT, later(2), 9)).toEqual([]);
  });

  race("let no call pass by a grant once its maker's key is revoked, however late the call is written", async (db) => {
    const [held, maker] = [aCreation({ approve: true }), anApiKey()];
    await db.one.accounts.addKey(maker);
    await db.one.actions.create(held);
    const grant = aGrant({ calls: 9, actionId: held.action.id, createdById: maker.id });
    await db.one.actions.apply({ ...writeOf(approve(held.action, aDecision())), grant });
    // Whoever writes the row of the grant waits, in this order: the revocation, then the call.
    await db.raw.query("begin");
    await db.raw.query("select 1 from grants for update");
    const waiting = (count: number) =>
      eventually(async () => {
        const { rowCount } = await db.raw.query("select distinct pid from pg_locks where not granted");
        return rowCount === count ? true : null;
      }, `${count} that wait for the grant`);
    const revoked = db.one.accounts.revokeKey(ACCOUNT, maker.id, later(1));
    await waiting(1);
    const audit = anAuditEntry({ kind: "grant_used", subject: grant.id, at: later(1), detail: { calls: 9 } });
    const created = db.other.actions.create({ ...aCreation(), grant: { id: grant.id, audit } });
    await waiting(2);
    await db.raw.query("commit");
    expect(await revoked).toMatchObject({ id: maker.id });
    expect(await created).toMatchObject({ kind: "grant_over" });
  });

  race("let exactly as much pass of a rule's budget as it allows, and give it back once", async (db) => {
    const count = aRuleCount({ amount: "3", limit: "100" });
    const others = aRuleCount({ ruleId: "rul_b", subject: "t", amount: "1", limit: "1000" });
    const creations = db.stores(200).map((store) => {
      const counts = [count, others];
      return { store, creation: { ...aCreation({ counted: counts.map(toStoredCount) }), counts } };
    });
    const results = await Promise.all(
      creations.map(async ({ store, creation }) => ({ creation, ...(await store.actions.create(creation)) })),
    );
    const passed = results.filter(({ kind }) => kind === "created");
    expect([passed.length, results.filter(({ kind }) => kind === "beyond").length]).toEqual([33, 167]);
    expect(
      await db.one.actions.beyondCounts([
        { ...count, amount: "1" },
        { ...count, amount: "2" },
      ]),
    ).toHaveLength(1);
    // Of two that cancel one action, one gives back.
    const actions = passed.slice(0, 10).map(({ creation }) => creation.action);
    await Promise.all(
      [db.one, db.other].flatMap((store) =>
        actions.map((action) => store.actions.apply(writeOf(cancel(action, aDecision())))),
      ),
    );
    const left = [30, 31].map((amount) => ({ ...count, amount: String(amount) }));
    expect(await db.other.actions.beyondCounts(left)).toEqual([]);
    expect(await db.other.actions.beyondCounts([{ ...count, amount: "32" }])).toHaveLength(1);
  });

  race("have every create decided by the rules that are in force when it is committed", async (db) => {
    const expected = await db.one.rules.findVersion(ACCOUNT);
    const audit = anAuditEntry({ kind: "rules_changed", subject: "" });
    const creates = db.stores(100).map((store, n) => {
      const created = store.actions.create({ ...aCreation(), rulesVersion: expected });
      if (n !== 50) return created;
      const write = { accountId: ACCOUNT, rules: [aRule("rul_a")], expected, audit };
      return db.other.rules.replace(write).then(() => created);
    });
    const kinds = (await Promise.all(creates)).map(({ kind }) => kind);
    // Nothing that comes after it may still be decided without it.
    expect((await db.one.actions.create({ ...aCreation(), rulesVersion: expected })).kind).toBe("rules_changed");
    expect(new Set(kinds).isSubsetOf(new Set(["created", "rules_changed"]))).toBe(true);
  });

  race("claim each row once", async (db) => {
    await Promise.all(db.stores(200).map((store) => store.actions.create(aCreation())));
    const claims = await Promise.all(db.stores(60).map((store) => claimDue(store.actions, LANE, { limit: 7 })));
    const ids = claims.flat().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    // What one had locked when the other looked is still there.
    while (ids.length < 200) {
      const more = await claimDue(db.one.actions, LANE, { limit: 50 });
      expect(more).not.toEqual([]);
      ids.push(...more.map(({ id }) => id));
    }
    expect(new Set(ids).size).toBe(200);
  });

  race("let one of two deciders win", async (db) => {
    for (let round = 0; round < 20; round += 1) {
      const held = await createdAction(db.one.actions, { approve: true });
      const won = await Promise.all([
        decided(db.one.actions, approve, held),
        decided(db.other.actions, cancel, held),
        decided(db.other.actions, approve, held),
      ]);
      expect(won.filter(Boolean)).toHaveLength(1);
      expect(await db.one.actions.timeline(ACCOUNT, held.id)).toHaveLength(3);
    }
  });

  race("send no more mails to a recipient than one does", async (db) => {
    const held = { approve: true, notifyEmail: "boss@example.com" };
    await Promise.all(db.stores(MAILS_PER_RECIPIENT_MAX + 20).map((store) => store.actions.create(aCreation(held))));
    const mails = await claimDue(db.one.outbox.mails, { ...LANE, host: "boss@example.com" });
    expect(mails.length).toBe(MAILS_PER_RECIPIENT_MAX + 20);
    const stores = db.stores(mails.length);
    const permitted = await Promise.all(stores.map(({ outbox }, at) => permit(outbox, mails[at])));
    expect(permitted.filter(Boolean)).toHaveLength(MAILS_PER_RECIPIENT_MAX);
  });

  race("hold no more actions of a key than one does", async (db) => {
    const { id } = await createdAction(db.one.actions, { approve: true });
    const { rows } = await db.raw.query<{ column_name: string }>(
      "select column_name from information_schema.columns where table_name = 'actions' and column_name <> 'id'",
    );
    const columns = rows.map((row) => row.column_name).join(", ");
    await db.raw.query(
      `insert into actions (id, ${columns}) select id || n, ${columns} from actions, generate_series(2, $1) n where id = $2`,
      [HELD_PER_KEY_MAX - 10, id],
    );
    const created = await Promise.all(db.stores(40).map((store) => store.actions.create(aCreation({ approve: true }))));
    expect(Object.groupBy(created, ({ kind }) => kind).created).toHaveLength(10);
    expect(Object.groupBy(created, ({ kind }) => kind).too_many_held).toHaveLength(30);
  });

  race("run no more bulk jobs of an account than one may", async (db) => {
    const stores = db.stores(BULK_RUNNING_MAX * 3);
    const entry = anAuditEntry({ kind: "bulk_started" });
    const added = await Promise.all(stores.map(({ bulk }) => bulk.add(aBulkJob(), [{ id: "act_x", run: 1 }], entry)));
    expect(added.filter(Boolean)).toHaveLength(BULK_RUNNING_MAX);
    expect(await db.one.bulk.running(99)).toHaveLength(BULK_RUNNING_MAX);
  });

  race("claim nothing that a pause covers which is being written", async (db) => {
    const action = await createdAction(db.one.actions);
    const pause = aPause();
    const lock = lockQuery([pauseLock(ACCOUNT)]);
    await db.raw.query("begin");
    await db.raw.query(lock?.text ?? "", [...(lock?.values ?? [])]);
    await db.raw.query(
      "insert into pauses (id, account_id, kind, subject, cancels, created_at, created_by) values ($1, $2, $3, '', 0, 1, 'x')",
      [pause.id, ACCOUNT, pause.kind],
    );
    const claim = db.other.actions.claimDue(claimOf(action));
    const create = db.one.actions.create({ ...aCreation(), claim: claimOf(action).lease });
    await eventually(async () => {
      const { rowCount } = await db.raw.query("select 1 from pg_locks where locktype = 'advisory' and not granted");
      return rowCount === 2 ? true : null;
    }, "a claim and a create that wait for the pause");
    await db.raw.query("commit");
    expect((await claim).rows).toEqual([]);
    expect(await create).toEqual({ kind: "created", claimed: null });
  });

  race("stop no account that is allowed at the same time", async (db) => {
    const audit = anAuditEntry({ kind: "account_allowed" });
    for (let round = 0; round < 6; round += 1) {
      const ids = Array.from({ length: 10 }, (_, at) => `acc_${round}_${at}`);
      for (const id of ids) await db.one.accounts.create(anAccount({ id }), []);
      await Promise.all([
        db.one.accounts.stopOthers({ at: NOON, reason: "Sign-ups are closed." }),
        ...ids.map((id) => db.other.accounts.allow(id, { at: NOON, by: "system", audit })),
      ]);
    }
    const both = (await db.one.accounts.list(99)).filter(({ isStopped, allowedAt }) => isStopped && allowedAt !== null);
    expect(both).toEqual([]);
  });

  race("stop reading before a change that is not committed yet", async (db) => {
    const first = await createdAction(db.one.actions);
    await db.raw.query("begin");
    const open = await db.raw.query<{ seq: string }>(
      `insert into timeline (action_id, account_id, at, run, revision, type, status, detail)
        values ('act_x', 'acc_x', 1, 1, 1, 'created', 'pending', '{}') returning seq`,
    );
    const second = await createdAction(db.other.actions);
    const before = await settledChanges(db.one, 0, 1);
    expect(before.changes.map(({ action }) => action.id)).toEqual([first.id]);
    expect(before.position).toBeLessThan(Number(open.rows[0]?.seq));
    await db.raw.query("commit");
    const after = await settledChanges(db.one, before.position, 1);
    expect(after.changes.map(({ action }) => action.id)).toEqual([second.id]);
    expect(await db.one.actions.knowsPosition(after.position)).toBe(true);
  });

  race("go on behind the newest position where transactions have lower numbers than before", async (db) => {
    const { id } = await createdAction(db.one.actions);
    await db.raw.query("update timeline set seq = seq + 1000000000000");
    const position = 1_000_000_000_000;
    await using again = await openAgain(db.url);
    const next = await createdAction(again.store.actions);
    const changes = await settledChanges(again.store, position, 2);
    expect(changes.changes.map(({ action }) => action.id)).toEqual([id, next.id]);
  });

  race("create and retry no more a day with a key than its limit", async (db) => {
    const limited = () => ({ ...aCreation(), budget: { limit: 30, day: 20_516 } });
    const failed = await Promise.all(db.stores(50).map(({ actions }) => failedAction(actions, { keyId: "key_other" })));
    const [created, retried] = await Promise.all([
      Promise.all(db.stores(100).map((store) => store.actions.create(limited()))),
      Promise.all(
        db.stores(50).map(({ actions }, at) => {
          const change = retry(failed[at] ?? anAction(), aDecision());
          return actions.apply({ ...writeOf(change), budget: { keyId: KEY, limit: 30, day: 20_516 } });
        }),
      ),
    ]);
    const made = created.filter(({ kind }) => kind === "created").length;
    expect(made + retried.filter(Boolean).length).toBe(30);
    expect(created.filter(({ kind }) => kind === "budget_spent")).toHaveLength(100 - made);
    expect((await db.raw.query("select created from key_days")).rows).toEqual([{ created: "30" }]);
  });

  race("leave an account an owner, whoever steps down and whoever leaves", async (db) => {
    for (let round = 0; round < 10; round += 1) {
      const signUp = aSignUp();
      const accountId = signUp.account.id;
      await db.one.people.signUp(signUp);
      const other = await joined(db.one, { accountId, role: "owner" });
      const audit = anAuditEntry({ accountId });
      const done = await Promise.all([
        db.one.team.changeRole(accountId, other.person.id, "reader", audit),
        round % 2 === 0
          ? db.other.team.changeRole(accountId, signUp.person.id, "reader", audit)
          : db.other.team.remove(accountId, signUp.person.id, audit),
      ]);
      expect(done.toSorted()).toEqual(["done", "last_owner"]);
      const left = await db.one.team.members(accountId, 9);
      expect(left.filter(({ role }) => role === "owner")).toHaveLength(1);
    }
  });

  race("keep no connection of whoever stops to own its account on the other", async (db) => {
    const owner = aSignUp();
    await db.one.people.signUp(owner);
    const accountId = owner.account.id;
    for (let round = 0; round < 20; round += 1) {
      const { person } = await joined(db.one, { accountId, role: "owner" });
      const key = anApiKey({ role: "agent", accountId, createdById: person.id });
      await db.one.accounts.addKey(key);
      const [isConnected] = await Promise.all([
        db.one.oauth.put(anArtifact({ keyId: key.id, accountId })),
        db.other.team.changeRole(accountId, person.id, "reader", anAuditEntry({ accountId })),
      ]);
      const found = await db.one.accounts.findKey(accountId, key.id);
      expect(isConnected && found?.revokedAt === null).toBe(false);
    }
  });

  race("let one invitation be used once, and end the sessions of whoever is removed on the other", async (db) => {
    const owner = aSignUp();
    await db.one.people.signUp(owner);
    const accountId = owner.account.id;
    const invitation = anInvitation({ accountId });
    await db.one.team.invite(invitation, null, anAuditEntry());
    const racing = db.stores(20).map((store) => {
      const { person: guest, session } = aPerson({ accountId });
      return store.team.join({ invitation, person: guest, isNew: true, session, at: NOON, audit: [] });
    });
    expect((await Promise.all(racing)).filter(Boolean)).toHaveLength(1);
    const { person: bob, session } = await joined(db.one, { accountId });
    expect(await db.other.people.session(session.hash, NOON)).not.toBeNull();
    await db.other.team.remove(accountId, bob.id, anAuditEntry());
    expect(await db.one.people.session(session.hash, NOON)).toBeNull();
  });

  race("leave no session that began with a password which another one replaces", async (db) => {
    for (let round = 0; round < 10; round += 1) {
      const signUp = aSignUp();
      const { id: personId, passwordHash } = signUp.person;
      await db.one.people.signUp(signUp);
      const begin = () => aSession({ personId, accountId: signUp.account.id });
      const changed = begin();
      await Promise.all([
        ...db.stores(4).map((store) => store.people.addSession(begin(), passwordHash)),
        db.other.people.changePassword(changed, passwordHash, "next hash"),
      ]);
      const left = await db.one.people.sessionsOf(personId, NOON);
      expect(left.map(({ hash }) => hash)).toEqual([changed.hash]);
    }
  });

  race("let one of two first persons in", async (db) => {
    const links = [aWelcomeLink(), aWelcomeLink()];
    // An offer voids the link before it: both are live only where they were written at one time.
    for (const { hash } of links) {
      const values = [hash, ACCOUNT, NOON.getTime(), later(3_600_000).getTime()];
      await db.raw.query(
        "insert into welcome_links (hash, account_id, created_at, expires_at) values ($1, $2, $3, $4)",
        values,
      );
    }
    const taken = await Promise.all(
      db.stores(20).map((store, at) => {
        const { person, session } = aPerson();
        return store.people.welcome(links[at % 2]?.hash ?? "", person, session);
      }),
    );
    expect(taken.filter((one) => one === "taken")).toHaveLength(1);
    expect((await db.raw.query("select 1 from members")).rowCount).toBe(1);
  });

  race("sign an address up once", async (db) => {
    const signedUp = await Promise.all(
      db.stores(20).map((store) => store.people.signUp(aSignUp({ email: "ann@example.com" }))),
    );
    expect(signedUp.filter(Boolean)).toHaveLength(1);
    expect((await db.raw.query("select 1 from accounts")).rowCount).toBe(1);
  });
});

async function permit(outbox: OutboxStore, mail: Notification | undefined): Promise<boolean> {
  return mail !== undefined && outbox.permitMail(mail, NOON);
}

async function openAgain(url: string) {
  const store = await openStoreOf(url);
  return { store, [Symbol.asyncDispose]: () => store.close() };
}

describe.skipIf(!hasPostgres)("three nodes that start at the same time on an empty database", () => {
  let url = "";
  beforeAll(async () => {
    url = await createDatabase();
  });
  afterAll(() => dropDatabase(url));

  test("make its tables once and one first account", async () => {
    const open = () =>
      openStore({ url, authToken: null, nodeId: systemIds.request(), seal: testSecrets, now: NOON, onFatal });
    const stores = await Promise.all([open(), open(), open()]);
    const created = await Promise.all(
      stores.map((store) => {
        const account = anAccount();
        const extras = {
          link: aWelcomeLink({ accountId: account.id }),
          facts: { who: account.id },
          audit: [anAuditEntry({ accountId: account.id })],
        };
        return store.accounts.create(account, [anApiKey({ accountId: account.id })], extras);
      }),
    );
    expect(created.filter(Boolean)).toHaveLength(1);
    const [store] = stores;
    const first = await store.accounts.first();
    expect(await store.facts.read("who")).toBe(first?.id ?? "");
    expect(await store.accounts.list(9)).toHaveLength(1);
    expect(await store.accounts.keys(first?.id ?? "", 9)).toHaveLength(1);
    await Promise.all(stores.map((one) => one.close()));
  });
});

function onFatal(cause: unknown): never {
  throw new Error("A commit could not be made durable.", { cause });
}

/** The changes behind a position, once there are so many: another test's transaction on the same server holds them back. */
function settledChanges({ actions }: Pick<Store, "actions">, after: number, count: number) {
  return eventually(async () => {
    const page = await actions.changes(ACCOUNT, after);
    return page.changes.length < count ? null : page;
  }, `${count} changes`);
}
