import { describe, expect } from "bun:test";
import {
  CREDENTIAL_REQUEST_STATUSES,
  type CredentialRequest,
  type SealedCredential,
  statusOfRequest,
} from "../../../src/core/credential.ts";
import {
  CREDENTIAL_ALERTS_KEPT_MS,
  CREDENTIAL_KEYS_MAX,
  CREDENTIALS_MAX,
  CREDENTIAL_REQUEST_MS,
  CREDENTIAL_REQUESTS_PENDING_MAX,
  CREDENTIAL_REQUESTS_PER_DAY_MAX,
  CREDENTIAL_REQUESTS_PER_KEY_MAX,
  DAY_MS,
} from "../../../src/core/limits.ts";
import type { AuditKind } from "../../../src/core/audit.ts";
import type { Store } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCredential,
  anApiKey,
  anAuditEntry,
  later,
  NOON,
  OTHER_ACCOUNT,
  aCredentialRequest,
  KEY,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { systemIds } from "../../../src/core/ids.ts";
import { audited, entry, racingAtLast } from "./steps.ts";
import { alertEvent } from "../../../src/core/notification-events.ts";

const add = ({ credentials }: Store, one: SealedCredential) => credentials.add(one, entry("credential_added", one.id));

const unsealed = ({ sealedSecret: _sealed, ...credential }: SealedCredential) => credential;

const auditedTimes = async (store: Store, kind: AuditKind) => (await audited(store, { kinds: [kind] })).length;

/** What agents name and never see, and what they ask people to fill in. */
export function testCredentials(test: StoreTest): void {
  describe("credentials", () => {
    test("are kept as they were added, by account and name, and listed without what is sealed", async (db) => {
      const hmac = aCredential({
        name: "internal",
        settings: {
          ...({ kind: "hmac", header: "X-Signature", algorithm: "sha256", encoding: "hex" } as const),
          ...({ signs: "{timestamp}.{body}", value: "{signature}", time: "seconds", timeHeader: null } as const),
        },
        hint: null,
        paths: ["/v1/charges"],
        methods: ["GET", "POST"],
        keys: ["key_a"],
        enabled: false,
        expiresAt: later(9),
      });
      const [stripe, theirs] = [aCredential(), aCredential({ accountId: OTHER_ACCOUNT })];
      for (const one of [stripe, hmac, theirs]) expect(await add(db.store, one)).toBe("written");
      expect(await add(db.store, aCredential())).toBe("taken");
      await db.restart();
      const after = db.store.credentials;
      expect(await after.list(ACCOUNT)).toEqual([unsealed(hmac), unsealed(stripe)]);
      expect(await after.list(null)).toHaveLength(3);
      expect(await after.find(ACCOUNT, hmac.id)).toEqual(hmac);
      expect(await after.find(ACCOUNT, theirs.id)).toBeNull();
      expect(await auditedTimes(db.store, "credential_added")).toBe(3);
      expect(await after.version()).not.toBe("");
    });

    test("change where nobody else has changed them, and are used only as they were read", async (db) => {
      const { credentials } = db.store;
      const one = aCredential();
      await add(db.store, one);
      const changed = entry("credential_changed", one.id);
      const secret = { sealedSecret: "dddddddd.other", hint: null, replacedAt: later(5) };
      const before = await credentials.version();
      expect(await credentials.change(one, { secret, enabled: false, paths: ["/v1"] }, changed)).toBe(true);
      expect(await credentials.version()).not.toBe(before);
      expect(await credentials.change(one, { enabled: true }, changed)).toBe(false);
      expect(
        await credentials.change({ ...one, accountId: OTHER_ACCOUNT, revision: 2 }, { enabled: true }, changed),
      ).toBe(false);
      const after = { ...one, ...secret, enabled: false, paths: ["/v1"], revision: 2 };
      expect(await credentials.find(ACCOUNT, one.id)).toEqual(after);

      const used = entry("credential_used", one.id);
      expect(await credentials.use(one, later(6), used)).toBe(false);
      const version = await credentials.version();
      expect(await credentials.use(after, later(6), used)).toBe(true);
      // No node has to read it again for that.
      expect(await credentials.version()).toBe(version);
      expect(await credentials.find(ACCOUNT, one.id)).toEqual({ ...after, lastUsedAt: later(6) });
      expect(await auditedTimes(db.store, "credential_used")).toBe(1);

      expect(await credentials.remove(OTHER_ACCOUNT, one.id, entry("credential_removed", one.id))).toBe(false);
      expect(await credentials.remove(ACCOUNT, one.id, entry("credential_removed", one.id))).toBe(true);
      expect(await credentials.use(after, later(7), used)).toBe(false);
      expect(await credentials.list(null)).toEqual([]);
      expect([
        await auditedTimes(db.store, "credential_changed"),
        await auditedTimes(db.store, "credential_removed"),
      ]).toEqual([1, 1]);
    });

    test("let further keys use them, and drop revoked ones when there are too many", async (db) => {
      const { credentials, accounts } = db.store;
      const live = anApiKey();
      await accounts.addKey(live, anAuditEntry({ kind: "key_created", subject: live.id }));
      const keys = [live.id, ...Array.from({ length: CREDENTIAL_KEYS_MAX - 1 }, (_, n) => `key_gone${n}`)];
      const [one, full, theirs] = [
        aCredential(),
        aCredential({ name: "full", keys }),
        aCredential({ accountId: OTHER_ACCOUNT }),
      ];
      for (const each of [one, full, theirs]) await add(db.store, each);
      for (let times = 0; times < 2; times += 1) {
        await credentials.allow(ACCOUNT, "key_new", [one.id, full.id, theirs.id, "crd_gone"]);
      }
      const keysOf = async (id: string, account = ACCOUNT) => (await credentials.find(account, id))?.keys;
      expect(await keysOf(one.id)).toEqual(["key_new"]);
      expect(await keysOf(full.id)).toEqual([live.id, "key_new"]);
      expect(await keysOf(theirs.id, OTHER_ACCOUNT)).toEqual([]);
      // Whoever has read it before doesn't overwrite that.
      expect(await credentials.change(one, { keys: [] }, entry("credential_changed", one.id))).toBe(false);
    });

    test("note each host once that has sent a secret back", async (db) => {
      const one = aCredential();
      await add(db.store, one);
      const note = (host: string) =>
        db.store.credentials.noteEcho(ACCOUNT, one.id, host, entry("credential_echoed", one.id));
      expect([await note("a.example"), await note("a.example"), await note("b.example")]).toEqual([true, false, true]);
      expect((await db.store.credentials.find(ACCOUNT, one.id))?.echoes).toEqual(["a.example", "b.example"]);
      expect(await auditedTimes(db.store, "credential_echoed")).toBe(2);
    });

    test("tell each end once, also where several do at once", async (db, { credentials, outbox }) => {
      const one = aCredential({ expiresAt: later(9) });
      await add(db.store, one);
      const end = { accountId: ACCOUNT, id: one.id, expiresAt: later(9) };
      const rowsOf = (stage: "expiring" | "expired", expiresAt = later(9)) =>
        ["ann@example.com", "bob@example.com"].map((target, at) => ({
          id: systemIds.row(NOON),
          host: target,
          message: { kind: "mail", event: alertEvent({ stage, expiresAt }, at), target } as const,
        }));
      expect(await credentials.addAlert(end, [], NOON)).toBe(false);
      expect(await credentials.addAlert({ ...end, expiresAt: later(8) }, rowsOf("expiring"), NOON)).toBe(false);
      expect(await credentials.addAlert({ ...end, accountId: OTHER_ACCOUNT }, rowsOf("expiring"), NOON)).toBe(false);
      const race = await Promise.all([1, 2, 3].map(() => credentials.addAlert(end, rowsOf("expiring"), NOON)));
      expect(race.filter((isTold) => isTold)).toHaveLength(1);
      expect(await credentials.addAlert(end, rowsOf("expired"), NOON)).toBe(true);
      const entries = await outbox.list(ACCOUNT, null, 9);
      expect(entries).toHaveLength(4);
      expect(entries.at(-1)).toMatchObject({ actionId: one.id, status: "pending", dueAt: NOON, run: 1 });
      await credentials.change(one, { expiresAt: later(10) }, entry("credential_changed", one.id));
      const next = { ...end, expiresAt: later(10) };
      expect(await credentials.addAlert(end, rowsOf("expiring"), NOON)).toBe(false);
      expect(await credentials.addAlert(next, rowsOf("expiring", later(10)), NOON)).toBe(true);
      await credentials.change({ ...one, revision: 2 }, { enabled: false }, entry("credential_changed", one.id));
      expect(await credentials.addAlert(next, rowsOf("expired", later(10)), NOON)).toBe(false);
      expect(await credentials.pruneAlerts(later(CREDENTIAL_ALERTS_KEPT_MS - 1))).toBe(false);
      expect(await outbox.list(ACCOUNT, null, 9)).toHaveLength(6);
      while (await credentials.pruneAlerts(later(CREDENTIAL_ALERTS_KEPT_MS)));
      expect(await outbox.list(ACCOUNT, null, 9)).toEqual([]);
    });

    test("are bounded in number, also where many are added at once", async (db) => {
      const all = Array.from({ length: CREDENTIALS_MAX + 5 }, (_, n) => aCredential({ name: `one-${n}` }));
      const answers = await racingAtLast(all, (one) => add(db.store, one));
      expect(answers.filter((answer) => answer === "written")).toHaveLength(CREDENTIALS_MAX);
      expect(answers.filter((answer) => answer === "full")).toHaveLength(5);
      const race = await Promise.all([1, 2, 3].map(() => add(db.store, aCredential({ name: "one-1" }))));
      expect(race).toEqual(["taken", "taken", "taken"]);
    });
  });

  describe("requests for credentials", () => {
    test("are kept as they were asked, by account and key, newest first", async (db) => {
      const [plain, full] = [
        aCredentialRequest({ host: "a.example", name: null, kind: null, paths: null, methods: null, keyId: "key_b" }),
        aCredentialRequest({ createdAt: later(5) }),
      ];
      const theirs = aCredentialRequest({ accountId: OTHER_ACCOUNT, keyId: "key_c" });
      for (const one of [plain, full, theirs]) expect(await ask(db.store, one)).toEqual({ kind: "written" });
      await db.restart();
      const { credentialRequests: stored } = db.store;
      const all = { keyId: null, status: null, now: NOON, before: null, limit: 9 };
      expect(await stored.list(ACCOUNT, all)).toEqual([
        { ...full, ...NO_KEY },
        { ...plain, ...NO_KEY },
      ]);
      expect(idsOf(await stored.list(ACCOUNT, { ...all, limit: 1 }))).toEqual([full.id]);
      expect(idsOf(await stored.list(ACCOUNT, { ...all, before: full.id }))).toEqual([plain.id]);
      expect(idsOf(await stored.list(ACCOUNT, { ...all, keyId: "key_b" }))).toEqual([plain.id]);
      expect(await stored.list(ACCOUNT, { ...all, keyId: "key_c" })).toEqual([]);
      expect(await stored.find(ACCOUNT, plain.id)).toEqual({ ...plain, ...NO_KEY });
      expect(await stored.find(ACCOUNT, theirs.id)).toBeNull();
      expect(idsOf(await stored.pending(ACCOUNT, NOON))).toEqual([plain.id, full.id]);
      expect(await stored.pending(ACCOUNT, later(CREDENTIAL_REQUEST_MS))).toEqual([]);
      expect(await audited(db.store)).toHaveLength(3);
    });

    test("match the open one of the same key and host, also in a race", async (db) => {
      const same = Array.from({ length: 4 }, () => aCredentialRequest());
      const answers = await Promise.all(same.map((one) => ask(db.store, one)));
      expect(answers.filter(({ kind }) => kind === "written")).toHaveLength(1);
      const [first] = await db.store.credentialRequests.pending(ACCOUNT, NOON);
      const other = { host: "api.stripe.com:8443", keyId: KEY };
      expect(await ask(db.store, aCredentialRequest({ paths: null, methods: null }))).toEqual({
        kind: "matched",
        id: first?.id ?? "",
      });
      expect(await ask(db.store, aCredentialRequest(other))).toEqual({ kind: "written" });
      expect(await ask(db.store, aCredentialRequest({ keyId: "key_b" }))).toEqual({ kind: "written" });
      const after = aCredentialRequest({ createdAt: later(CREDENTIAL_REQUEST_MS) });
      expect(await ask(db.store, after)).toEqual({ kind: "written" });
    });

    test("add the credential and end in one commit, once", async (db, { credentials, credentialRequests }) => {
      const one = aCredentialRequest();
      await ask(db.store, one);
      await credentials.add(aCredential({ name: "taken" }), entry("credential_added", "crd_y"));
      expect(await grant(db.store, one, { name: "taken" })).toBe("taken");
      expect(await grant(db.store, one, { accountId: OTHER_ACCOUNT })).toBe("gone");
      expect(await grant(db.store, aCredentialRequest())).toBe("gone");
      const before = await credentials.version();
      const race = await Promise.all([
        grant(db.store, one, { name: "first" }),
        grant(db.store, one, { name: "second" }),
        decline(db.store, one),
      ]);
      expect(race).toEqual(["written", "gone", false]);
      expect(await credentials.version()).not.toBe(before);
      expect((await credentials.list(ACCOUNT)).map(({ name, keys }) => [name, keys])).toEqual([
        ["first", [KEY]],
        ["taken", []],
      ]);
      expect(await credentialRequests.find(ACCOUNT, one.id)).toEqual({
        ...one,
        decision: "granted",
        decidedAt: later(1),
        decidedBy: "key:boss",
        credential: "first",
        ...NO_KEY,
      });
      expect(await credentialRequests.pending(ACCOUNT, NOON)).toEqual([]);
      expect((await auditedKinds(db.store)).slice(-2)).toEqual(["credential_added", "credential_request_granted"]);
      // It asks for another one.
      expect(await ask(db.store, aCredentialRequest())).toEqual({ kind: "written" });
    });

    test("stay open where the account has its credentials already", async (db) => {
      const one = aCredentialRequest();
      await ask(db.store, one);
      const credential = aCredential();
      await add(db.store, credential);
      await db.copyRow("credentials", credential.id, CREDENTIALS_MAX - 1, ["id", "name"]);
      expect(await grant(db.store, one, { name: "more" })).toBe("full");
      expect(idsOf(await db.store.credentialRequests.pending(ACCOUNT, NOON))).toEqual([one.id]);
    });

    test("are declined once, and for a while the same request gets that answer", async (db) => {
      const one = aCredentialRequest();
      await ask(db.store, one);
      expect(await decline(db.store, { ...one, accountId: OTHER_ACCOUNT })).toBe(false);
      expect([await decline(db.store, one), await decline(db.store, one)]).toEqual([true, false]);
      expect(await db.store.credentialRequests.find(ACCOUNT, one.id)).toEqual({
        ...one,
        decision: "declined",
        decidedAt: later(1),
        decidedBy: "user:dana",
        decisionReason: "Use the sandbox.",
        ...NO_KEY,
      });
      const again = (more: Partial<CredentialRequest> = {}) => aCredentialRequest({ reason: "Please.", ...more });
      expect(await ask(db.store, again(), NOON)).toEqual({ kind: "matched", id: one.id });
      expect(await ask(db.store, again({ methods: ["GET"] }), NOON)).toEqual({ kind: "written" });
      const other = { host: "b.example" };
      const two = again(other);
      await ask(db.store, two);
      await decline(db.store, two);
      expect(await ask(db.store, again(other), later(1))).toEqual({ kind: "written" });
    });

    test("end with their key and with their time, and nobody can answer them then", async (db) => {
      const { accounts, credentialRequests: stored } = db.store;
      const keys = [anApiKey(), anApiKey({ expiresAt: later(50) })] as const;
      const [revoked, expiring] = keys;
      for (const key of keys) await accounts.addKey(key, anAuditEntry({ kind: "key_created", subject: key.id }));
      const [one, two] = [aCredentialRequest({ keyId: revoked.id }), aCredentialRequest({ keyId: expiring.id })];
      for (const each of [one, two]) await ask(db.store, each);
      expect(await stored.pending(ACCOUNT, later(49))).toHaveLength(2);
      await accounts.revokeKey(ACCOUNT, revoked.id, later(20), { by: "user:dana" });
      expect(await stored.pending(ACCOUNT, later(49))).toEqual([
        { ...two, keyRole: expiring.role, keyRevokedAt: null, keyExpiresAt: expiring.expiresAt },
      ]);
      expect(await stored.pending(ACCOUNT, later(50))).toEqual([]);
      expect(await decline(db.store, one, later(21))).toBe(false);
      expect(await grant(db.store, one, { createdAt: later(21) })).toBe("gone");
      expect(await grant(db.store, two, { createdAt: later(50) })).toBe("gone");
      const old = aCredentialRequest({ host: "old.example" });
      await ask(db.store, old);
      expect(await decline(db.store, old, later(CREDENTIAL_REQUEST_MS))).toBe(false);
      expect(await db.store.credentials.list(ACCOUNT)).toEqual([]);
    });

    test("are listed by their status, as it is then", async (db, { accounts, credentialRequests: stored }) => {
      const hour = 3_600_000;
      const end = { expiresAt: later(hour) };
      const keys = [
        anApiKey(),
        anApiKey({ expiresAt: later(50) }),
        anApiKey({ expiresAt: later(2 * hour) }),
        anApiKey(),
      ] as const;
      for (const key of keys) await accounts.addKey(key, anAuditEntry({ kind: "key_created", subject: key.id }));
      const hosts = ["revoked", "ends", "outlives", "lives", "yes", "no"] as const;
      const rows = hosts.map((name, at) =>
        aCredentialRequest({ ...end, createdAt: later(at), host: `${name}.example`, keyId: keys[at]?.id ?? "key_x" }),
      );
      const [, , , , yes, no] = rows;
      for (const row of rows) await ask(db.store, row);
      await accounts.revokeKey(ACCOUNT, keys[0].id, later(20), { by: "user:dana" });
      if (yes === undefined || no === undefined) throw new Error("There are six.");
      await grant(db.store, yes);
      await decline(db.store, no);
      const at = async (now: Date) => {
        const found = CREDENTIAL_REQUEST_STATUSES.map(async (status) => {
          const page = { keyId: null, status, now, before: null, limit: 9 };
          const listed = await stored.list(ACCOUNT, page);
          expect(listed.map((one) => statusOfRequest(one, now))).toEqual(listed.map(() => status));
          return [status, listed.map(({ host }) => host.replace(".example", ""))];
        });
        return Object.fromEntries(await Promise.all(found));
      };
      const decided = { granted: ["yes"], declined: ["no"] };
      expect(await at(later(30))).toEqual({
        ...decided,
        pending: ["lives", "outlives", "ends"],
        expired: [],
        cancelled: ["revoked"],
      });
      expect(await at(later(50))).toEqual({
        ...decided,
        pending: ["lives", "outlives"],
        expired: [],
        cancelled: ["ends", "revoked"],
      });
      // A key that ends later than its request has not ended it.
      expect(await at(later(3 * hour))).toEqual({
        ...decided,
        pending: [],
        expired: ["lives", "outlives"],
        cancelled: ["ends", "revoked"],
      });
      const mine = { keyId: keys[1].id, status: "cancelled", now: later(50), before: null, limit: 9 } as const;
      expect(idsOf(await stored.list(ACCOUNT, mine))).toEqual([rows[1]?.id ?? ""]);
    });

    test("are bounded by key, account and day, also where many are made at once", async (db) => {
      const askedBy = (keyId: string, count: number) =>
        Array.from({ length: count }, (_, n) => aCredentialRequest({ keyId, host: `h${n}.example` }));
      const race = await Promise.all(
        askedBy(KEY, CREDENTIAL_REQUESTS_PER_KEY_MAX + 2).map((one) => ask(db.store, one)),
      );
      expect(race.filter(({ kind }) => kind === "written")).toHaveLength(CREDENTIAL_REQUESTS_PER_KEY_MAX);
      expect(race.at(-1)).toEqual({ kind: "full", of: "key" });
      // Of the day, also those that were declined count.
      for (const one of await db.store.credentialRequests.pending(ACCOUNT, NOON)) await decline(db.store, one);
      const more = CREDENTIAL_REQUESTS_PER_DAY_MAX - CREDENTIAL_REQUESTS_PER_KEY_MAX;
      for (const one of askedBy(KEY, more)) expect((await ask(db.store, one, later(1))).kind).toBe("written");
      for (const one of await db.store.credentialRequests.pending(ACCOUNT, NOON)) await decline(db.store, one);
      expect(await ask(db.store, aCredentialRequest(), later(1))).toEqual({ kind: "daily", retryAt: later(DAY_MS) });
      const tomorrow = aCredentialRequest({ createdAt: later(DAY_MS) });
      expect(await ask(db.store, tomorrow, later(1))).toEqual({ kind: "written" });
      await decline(db.store, tomorrow, later(DAY_MS));
      const others = Array.from({ length: CREDENTIAL_REQUESTS_PENDING_MAX }, (_, n) =>
        aCredentialRequest({ keyId: `key_${n}` }),
      );
      for (const one of others) expect(await ask(db.store, one)).toEqual({ kind: "written" });
      expect(await ask(db.store, aCredentialRequest({ keyId: "key_more" }))).toEqual({ kind: "full", of: "account" });
      const theirs = aCredentialRequest({ keyId: "key_more", accountId: OTHER_ACCOUNT });
      expect(await ask(db.store, theirs)).toEqual({ kind: "written" });
    });

    test("are told by rows of the outbox, which go with them", async (db) => {
      const { credentialRequests: stored, outbox } = db.store;
      const one = aCredentialRequest();
      const notices = ["Ann@example.com", "bob@example.com"].map((target, at) => ({
        id: `row_${at}`,
        host: target.toLowerCase(),
        message: { kind: "mail", event: `credential_requested:${at}`, target } as const,
      }));
      const asked = () => stored.ask(one, NEVER, notices, entry("credential_requested", one.id));
      expect([await asked(), await asked()]).toEqual([{ kind: "written" }, { kind: "matched", id: one.id }]);
      const rows = await outbox.list(ACCOUNT, null, 10);
      const shown = rows.map(({ actionId, message: { kind, event, target }, host, status }) =>
        [actionId, kind, event, target, host, status].join(" "),
      );
      expect(shown.toSorted()).toEqual([
        `${one.id} mail credential_requested:0 Ann@example.com ann@example.com pending`,
        `${one.id} mail credential_requested:1 bob@example.com bob@example.com pending`,
      ]);
      expect(await outbox.mails.lanes(null, 10)).toHaveLength(2);
      await stored.prune(NOON);
      expect(await outbox.list(ACCOUNT, null, 10)).toHaveLength(2);
      expect(await stored.prune(one.expiresAt)).toBe(false);
      expect(await outbox.list(ACCOUNT, null, 10)).toEqual([]);
    });

    test("are deleted by the time at which they end", async (db, { credentialRequests: stored }) => {
      const [old, young] = [aCredentialRequest({ expiresAt: later(5) }), aCredentialRequest({ host: "b.example" })];
      for (const one of [old, young]) await ask(db.store, one);
      expect(await stored.prune(later(5))).toBe(false);
      expect(
        idsOf(await stored.list(ACCOUNT, { keyId: null, status: null, now: NOON, before: null, limit: 9 })),
      ).toEqual([young.id]);
    });
  });
}

const NEVER = later(-1);

const ask = ({ credentialRequests }: Store, one: CredentialRequest, declinedSince = NEVER) =>
  credentialRequests.ask(one, declinedSince, [], entry("credential_requested", one.id));

const decline = ({ credentialRequests }: Store, { accountId, id }: CredentialRequest, at = later(1)) =>
  credentialRequests.decline(
    { accountId, id, at, by: "user:dana", reason: "Use the sandbox." },
    entry("credential_request_declined", id),
  );

const grant = (
  { credentialRequests }: Store,
  { id }: CredentialRequest,
  more: Parameters<typeof aCredential>[0] = {},
) =>
  credentialRequests.grant(
    id,
    aCredential({ createdAt: later(1), keys: [KEY], ...more }),
    entry("credential_added", "crd_x"),
    entry("credential_request_granted", id),
  );

/** No key of these requests is stored. */
const NO_KEY = { keyRole: null, keyRevokedAt: null, keyExpiresAt: null };

const auditedKinds = async (store: Store) => (await audited(store)).map(({ kind }) => kind).toReversed();

const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
