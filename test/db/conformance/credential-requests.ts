import { describe, expect, test } from "bun:test";
import {
  CREDENTIAL_REQUEST_STATUSES,
  type CredentialRequest,
  statusOfRequest,
} from "../../../src/core/credential-request.ts";
import {
  CREDENTIAL_REQUEST_MS,
  CREDENTIAL_REQUESTS_PENDING_MAX,
  CREDENTIAL_REQUESTS_PER_DAY_MAX,
  CREDENTIAL_REQUESTS_PER_KEY_MAX,
  CREDENTIALS_MAX,
  DAY_MS,
} from "../../../src/core/limits.ts";
import type { Store } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCredential,
  aCredentialRequest,
  anApiKey,
  anAuditEntry,
  KEY,
  later,
  NOON,
  OTHER_ACCOUNT,
} from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { racingAtLast } from "./steps.ts";

type Kind = "credential_requested" | "credential_added" | "credential_request_granted" | "credential_request_declined";

const entry = (kind: Kind, subject: string) => anAuditEntry({ kind, subject });

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

const audited = async ({ audit }: Store) => {
  const page = { accountId: ACCOUNT, kinds: [], actors: [], since: null, until: null, before: null, limit: 999 };
  return (await audit.page(page)).rows.map(({ kind }) => kind).toReversed();
};

const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

/** What agents ask for, and people fill in. */
export function testCredentialRequests(open: OpenTestStore): void {
  describe("requests for credentials", () => {
    test("are kept as they were asked, by account and key, newest first", async () => {
      await using db = await open();
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

    test("match the open one of the same key and host, also in a race", async () => {
      await using db = await open();
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

    test("add the credential and end in one commit, once", async () => {
      await using db = await open();
      const { credentials, credentialRequests } = db.store;
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
      expect((await audited(db.store)).slice(-2)).toEqual(["credential_added", "credential_request_granted"]);
      // It asks for another one.
      expect(await ask(db.store, aCredentialRequest())).toEqual({ kind: "written" });
    });

    test("stay open where the account has its credentials already", async () => {
      await using db = await open();
      const one = aCredentialRequest();
      await ask(db.store, one);
      const all = Array.from({ length: CREDENTIALS_MAX }, (_, n) => aCredential({ name: `one-${n}` }));
      await racingAtLast(all, (each) => db.store.credentials.add(each, entry("credential_added", each.id)));
      expect(await grant(db.store, one, { name: "more" })).toBe("full");
      expect(idsOf(await db.store.credentialRequests.pending(ACCOUNT, NOON))).toEqual([one.id]);
    });

    test("are declined once, and for a while the same request gets that answer", async () => {
      await using db = await open();
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

    test("end with their key and with their time, and nobody can answer them then", async () => {
      await using db = await open();
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

    test("are listed by their status, as it is then", async () => {
      await using db = await open();
      const { accounts, credentialRequests: stored } = db.store;
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

    test("are bounded by key, account and day, also where many are made at once", async () => {
      await using db = await open();
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

    test("are told by rows of the outbox, which go with them", async () => {
      await using db = await open();
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
      expect([await stored.prune(one.expiresAt), await stored.prune(one.expiresAt)]).toEqual([true, false]);
      expect(await outbox.list(ACCOUNT, null, 10)).toEqual([]);
    });

    test("are deleted by the time at which they end", async () => {
      await using db = await open();
      const { credentialRequests: stored } = db.store;
      const [old, young] = [aCredentialRequest({ expiresAt: later(5) }), aCredentialRequest({ host: "b.example" })];
      for (const one of [old, young]) await ask(db.store, one);
      expect([await stored.prune(later(5)), await stored.prune(later(5))]).toEqual([true, false]);
      expect(
        idsOf(await stored.list(ACCOUNT, { keyId: null, status: null, now: NOON, before: null, limit: 9 })),
      ).toEqual([young.id]);
    });
  });
}
