import { describe, expect } from "bun:test";
import {
  OAUTH_ASSERTIONS_MAX,
  OAUTH_CLIENTS_MAX,
  OAUTH_CLIENTS_PER_ACCOUNT_MAX,
  OAUTH_CONSENT_MS_MAX,
  OAUTH_INTERACTIONS_PER_ACCOUNT_MAX,
  OAUTH_TOKENS_PER_GRANT_MAX,
  OAUTH_UNUSED_CLIENT_MS,
} from "../../../src/core/limits.ts";
import type { OAuthArtifact } from "../../../src/core/oauth-store.ts";
import {
  ACCOUNT,
  anApiKey,
  anArtifact,
  anAuditEntry,
  aSignUp,
  joined,
  later,
  NOON,
  OTHER_ACCOUNT,
} from "../../support/factory.ts";
import type { TestStore } from "../../support/store.ts";
import { audited } from "./steps.ts";
import type { StoreTest } from "./store-test.ts";

const REVOKED = anAuditEntry({ kind: "key_revoked", subject: "key" });

/** A connection with a key, and how to add what belongs to it. */
async function connected({ store }: TestStore, createdById: string | null = null, accountId = ACCOUNT) {
  const key = anApiKey({ role: "agent", accountId, createdById });
  await store.accounts.addKey(key);
  const grant = anArtifact({ keyId: key.id, accountId });
  expect(await store.oauth.put(grant)).toBe(true);
  const add = async (overrides: Partial<OAuthArtifact> = {}) => {
    const added = anArtifact({ kind: "AccessToken", keyId: key.id, accountId, grantId: grant.id, ...overrides });
    return (await store.oauth.put(added)) ? added : null;
  };
  return { key, grant, add };
}

async function isRevoked({ store }: TestStore, key: { readonly accountId: string; readonly id: string }) {
  return (await store.accounts.findKey(key.accountId, key.id))?.revokedAt !== null;
}

/** What the authorization server stores. */
export function testOAuth(test: StoreTest): void {
  describe("artifacts of OAuth", () => {
    test("come back as they were written, are replaced by their id, and removed", async ({ store: { oauth } }) => {
      const one = anArtifact({ kind: "Interaction" });
      await oauth.put(one);
      const next = { ...one, sealedPayload: "bbbbbbbb.next", expiresAt: later(5) };
      await oauth.put(next);
      expect(await oauth.find(one.id)).toEqual(next);
      await oauth.remove(one.id);
      expect(await oauth.find(one.id)).toBeNull();
    });

    test("are used once, whoever races for them", async ({ store: { oauth } }) => {
      const code = anArtifact({ kind: "AuthorizationCode" });
      await oauth.put(code);
      const races = await Promise.all([1, 2, 3, 4].map((ms) => oauth.consume(code.id, later(ms))));
      expect(races.filter(Boolean)).toHaveLength(1);
      expect(await oauth.consume("artifact of nobody", NOON)).toBe(false);
      expect((await oauth.find(code.id))?.consumedAt).not.toBeNull();
      // Written again, a used one stays used.
      await oauth.put(code);
      expect(await oauth.consume(code.id, NOON)).toBe(false);
    });

    test("that are assertions are written once, whoever races for them", async ({ store: { oauth } }) => {
      const assertion = anArtifact({ kind: "ReplayDetection", accountId: "" });
      const races = await Promise.all([1, 2, 3, 4].map(() => oauth.put(assertion)));
      expect(races.filter(Boolean)).toHaveLength(1);
      expect(await oauth.put({ ...assertion, expiresAt: later(99) })).toBe(false);
      expect(await oauth.find(assertion.id)).toEqual(assertion);
    });

    test("of a token find its key until it expires", async (db) => {
      const { key, grant, add } = await connected(db);
      const token = await add({ expiresAt: later(10) });
      expect(await db.store.oauth.keyByToken(token?.id ?? "", later(9))).toEqual({ key, expiresAt: later(10) });
      expect(await db.store.oauth.keyByToken(token?.id ?? "", later(10))).toBeNull();
      const refresh = await add({ kind: "RefreshToken" });
      for (const { id } of [grant, refresh ?? grant]) expect(await db.store.oauth.keyByToken(id, NOON)).toBeNull();
    });

    test("end with their connection, whose key is revoked: nothing is added to it any more", async (db) => {
      const [{ key, grant, add }, other] = [await connected(db), await connected(db)];
      const [token, theirs] = [await add(), await other.add()];
      const end = { at: later(7), by: "system", audit: REVOKED } as const;
      expect(await db.store.oauth.endGrant(grant.id, end)).toMatchObject({ id: key.id, revokedAt: later(7) });
      expect(await db.store.oauth.endGrant(grant.id, end)).toBeNull();
      expect(await db.store.oauth.find(token?.id ?? "")).toBeNull();
      expect(await add({ kind: "RefreshToken" })).toBeNull();
      expect(await db.store.oauth.find(theirs?.id ?? "")).toEqual(theirs);
      expect(await isRevoked(db, other.key)).toBe(false);
      expect(await audited(db.store, { kinds: ["key_revoked"] })).toHaveLength(1);
    });

    test("of an account are listed as its connections, newest first, until they expire", async (db) => {
      const { grant, add } = await connected(db);
      await add();
      const key = anApiKey({ role: "agent" });
      await db.store.accounts.addKey(key);
      const next = anArtifact({ keyId: key.id, createdAt: later(1), expiresAt: later(9) });
      await db.store.oauth.put(next);
      await connected(db, null, OTHER_ACCOUNT);
      expect(await db.store.oauth.connections(ACCOUNT, later(8))).toEqual([next, grant]);
      expect(await db.store.oauth.connections(ACCOUNT, later(9))).toEqual([grant]);
      await db.store.accounts.revokeKey(ACCOUNT, grant.keyId ?? "", later(1));
      expect(await db.store.oauth.connections(ACCOUNT, later(8))).toEqual([next]);
    });

    test("that are clients of an account are listed, bounded and removed there, each with an entry", async (db) => {
      const { oauth } = db.store;
      const added = anAuditEntry({ kind: "oauth_client_added" });
      const clients = Array.from({ length: OAUTH_CLIENTS_PER_ACCOUNT_MAX }, (_, n) =>
        anArtifact({ kind: "Client", createdAt: later(n), expiresAt: new Date("9999-12-31T00:00:00Z") }),
      );
      const more = anArtifact({ kind: "Client" });
      const all = await Promise.all([...clients, more].map((one) => oauth.addClient(one, added)));
      expect(all.filter(Boolean)).toHaveLength(OAUTH_CLIENTS_PER_ACCOUNT_MAX);
      const theirs = { ...more, accountId: OTHER_ACCOUNT, id: "client of others" };
      expect(await oauth.addClient(theirs, { ...added, accountId: OTHER_ACCOUNT })).toBe(true);
      // Those that registered themselves are counted apart.
      expect(await oauth.put(anArtifact({ kind: "Client", accountId: "" }))).toBe(true);
      const listed = await oauth.clients(ACCOUNT);
      expect(listed.map(({ createdAt }) => createdAt)).toEqual(
        listed.map(({ createdAt }) => createdAt).toSorted((a, b) => a.getTime() - b.getTime()),
      );
      await oauth.prune(later(999));
      expect(await oauth.clients(ACCOUNT)).toEqual(listed);
      const [first] = listed;
      if (first === undefined) throw new Error("There are many.");
      const changed = anAuditEntry({ kind: "oauth_client_changed" });
      expect(await oauth.changeClient({ ...theirs, accountId: ACCOUNT }, changed)).toBe(false);
      expect(await oauth.changeClient({ ...first, sealedPayload: "another secret" }, changed)).toBe(true);
      expect((await oauth.find(first.id))?.sealedPayload).toBe("another secret");
      const removed = anAuditEntry({ kind: "oauth_client_removed" });
      expect(await oauth.removeClient(ACCOUNT, theirs.id, removed)).toBe(false);
      expect(await oauth.removeClient(ACCOUNT, first.id, removed)).toBe(true);
      expect(await oauth.removeClient(ACCOUNT, first.id, removed)).toBe(false);
      expect(await oauth.clients(ACCOUNT)).toEqual(listed.slice(1));
      expect(await oauth.clients(OTHER_ACCOUNT)).toEqual([theirs]);
      const kinds = ["oauth_client_added", "oauth_client_changed", "oauth_client_removed"] as const;
      expect(await audited(db.store, { kinds })).toHaveLength(OAUTH_CLIENTS_PER_ACCOUNT_MAX + 2);
    });

    test("are bounded: the oldest of a connection or an account make room, and clients are refused", async (db) => {
      const { oauth } = db.store;
      const { grant, add } = await connected(db);
      const first = await add();
      for (let n = 1; n <= OAUTH_TOKENS_PER_GRANT_MAX; n += 1) await add({ createdAt: later(n) });
      expect(await oauth.find(first?.id ?? "")).toBeNull();
      expect(await oauth.find(grant.id)).toEqual(grant);
      for (const [kind, accountId, max] of [
        ["Interaction", ACCOUNT, OAUTH_INTERACTIONS_PER_ACCOUNT_MAX],
        ["ReplayDetection", "", OAUTH_ASSERTIONS_MAX],
      ] as const) {
        const [oldest, next, last] = [0, 1, 2].map((n) => anArtifact({ kind, accountId, createdAt: later(n) }));
        if (oldest === undefined || next === undefined || last === undefined) throw new Error("There are three.");
        for (const one of [oldest, next]) await oauth.put(one);
        await db.copyRow("oauth_artifacts", next.id, max - 2, ["id"]);
        expect(await oauth.find(oldest.id)).not.toBeNull();
        await oauth.put(last);
        const left = await Promise.all([oldest, next, last].map(({ id }) => oauth.find(id)));
        expect(left.map((one) => one === null)).toEqual([true, false, false]);
      }
      const end = (ms: number) => new Date(NOON.getTime() + ms + OAUTH_UNUSED_CLIENT_MS);
      const aClient = (ms: number) => anArtifact({ kind: "Client", accountId: "", expiresAt: end(ms) });
      const [known, kept] = [aClient(0), aClient(1)];
      for (const one of [known, kept]) expect(await oauth.put(one)).toBe(true);
      await db.copyRow("oauth_artifacts", kept.id, OAUTH_CLIENTS_MAX - 3, ["id"]);
      expect(await oauth.put(aClient(1))).toBe(true);
      expect(await oauth.put(aClient(1))).toBe(false);
      expect(await oauth.put(known)).toBe(true);
      // A new one pushes out one that nobody has connected in time, but none that is connected or new.
      const register = (ms: number) =>
        oauth.put(anArtifact({ kind: "Client", accountId: "", createdAt: later(ms), expiresAt: end(ms) }));
      expect(await register(OAUTH_CONSENT_MS_MAX - 1)).toBe(false);
      expect(await register(OAUTH_CONSENT_MS_MAX)).toBe(true);
      expect(await oauth.find(known.id)).toBeNull();
      expect(await oauth.find(kept.id)).not.toBeNull();
      expect(await register(OAUTH_CONSENT_MS_MAX)).toBe(false);
    });

    test("that have expired are swept, with the key of a connection whose code nobody used", async (db, { oauth }) => {
      const [used, unused] = [await connected(db), await connected(db)];
      const [asked, fetched] = [await connected(db), await connected(db)];
      // Consented to, and of one of them the code was fetched, which removes the request.
      for (const { grant } of [asked, fetched]) {
        const request = anArtifact({ kind: "Interaction", expiresAt: later(5) });
        await oauth.put(request);
        await oauth.put({ ...request, keyId: grant.keyId, grantId: grant.id });
        if (grant === fetched.grant) await oauth.remove(request.id);
      }
      const codes = await Promise.all(
        [used, unused].map(({ add }) => add({ kind: "AuthorizationCode", expiresAt: later(5) })),
      );
      await oauth.consume(codes[0]?.id ?? "", later(1));
      expect(await oauth.prune(later(4))).toBe(false);
      expect([await isRevoked(db, used.key), await isRevoked(db, unused.key)]).toEqual([false, false]);
      await oauth.prune(later(5));
      expect([await isRevoked(db, used.key), await isRevoked(db, unused.key)]).toEqual([false, true]);
      expect([await oauth.find(used.grant.id), await oauth.find(unused.grant.id)]).toEqual([used.grant, null]);
      expect(await Promise.all(codes.map((code) => oauth.find(code?.id ?? "")))).toEqual([null, null]);
      expect([await isRevoked(db, asked.key), await isRevoked(db, fetched.key)]).toEqual([true, false]);
    });

    test("of somebody who owns the account no more, or left it, have their keys revoked in the same commit", async (db) => {
      const { team, people } = db.store;
      const signUp = aSignUp();
      await people.signUp(signUp);
      const accountId = signUp.account.id;
      const owner = async () => {
        const { person } = await joined(db.store, { accountId, role: "owner" });
        const own = anApiKey({ accountId, createdById: person.id });
        await db.store.accounts.addKey(own);
        return { person, own, connection: (await connected(db, person.id, accountId)).key };
      };
      const [bob, cleo, dan] = [await owner(), await owner(), await owner()];
      const audit = anAuditEntry({ accountId, kind: "member_removed" });
      expect(await team.changeRole(accountId, bob.person.id, "approver", audit)).toBe("done");
      expect(await team.remove(accountId, cleo.person.id, audit)).toBe("done");
      const revoked = await Promise.all(
        [bob, cleo, dan].map(async (one) => [await isRevoked(db, one.connection), await isRevoked(db, one.own)]),
      );
      expect(revoked).toEqual([
        [true, false],
        [true, false],
        [false, false],
      ]);
    });

    test("of a new connection are stored only while its maker owns the account and its key is not revoked", async (db) => {
      const signUp = aSignUp();
      await db.store.people.signUp(signUp);
      const accountId = signUp.account.id;
      const { person } = await joined(db.store, { accountId, role: "owner" });
      const connect = async (change: (keyId: string) => Promise<unknown>) => {
        const key = anApiKey({ role: "agent", accountId, createdById: person.id });
        await db.store.accounts.addKey(key);
        await change(key.id);
        return db.store.oauth.put(anArtifact({ keyId: key.id, accountId }));
      };
      expect(await connect(() => Promise.resolve())).toBe(true);
      expect(await connect((keyId) => db.store.accounts.revokeKey(accountId, keyId, later(1)))).toBe(false);
      const audit = anAuditEntry({ accountId });
      expect(await connect(() => db.store.team.changeRole(accountId, person.id, "approver", audit))).toBe(false);
      expect(await connect(() => db.store.team.remove(accountId, person.id, audit))).toBe(false);
    });
  });
}
