import { describe, expect, test } from "bun:test";
import type { SealedCredential } from "../../../src/core/credential.ts";
import { alertEvent } from "../../../src/core/credential-alert.ts";
import { CREDENTIAL_ALERTS_KEPT_MS, CREDENTIAL_KEYS_MAX, CREDENTIALS_MAX } from "../../../src/core/limits.ts";
import type { Store } from "../../../src/core/store.ts";
import { ACCOUNT, aCredential, anApiKey, anAuditEntry, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { systemIds } from "../../../src/core/ids.ts";
import { racingAtLast } from "./steps.ts";

type Kind = "credential_added" | "credential_changed" | "credential_removed" | "credential_used" | "credential_echoed";

const entry = (kind: Kind, subject: string) => anAuditEntry({ kind, subject });

const add = ({ credentials }: Store, one: SealedCredential) => credentials.add(one, entry("credential_added", one.id));

const listed = ({ sealedSecret: _sealed, ...credential }: SealedCredential) => credential;

const audited = async ({ audit }: Store, kind: Kind) => {
  const page = { accountId: ACCOUNT, kinds: [kind], actors: [], since: null, until: null, before: null, limit: 999 };
  return (await audit.page(page)).rows.length;
};

/** What agents name and never see. */
export function testCredentials(open: OpenTestStore): void {
  describe("credentials", () => {
    test("are kept as they were added, by account and name, and listed without what is sealed", async () => {
      await using db = await open();
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
      expect(await after.list(ACCOUNT)).toEqual([listed(hmac), listed(stripe)]);
      expect(await after.list(null)).toHaveLength(3);
      expect(await after.find(ACCOUNT, hmac.id)).toEqual(hmac);
      expect(await after.find(ACCOUNT, theirs.id)).toBeNull();
      expect(await audited(db.store, "credential_added")).toBe(3);
      expect(await after.version()).not.toBe("");
    });

    test("change where nobody else has changed them, and are used only as they were read", async () => {
      await using db = await open();
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
      expect(await audited(db.store, "credential_used")).toBe(1);

      expect(await credentials.remove(OTHER_ACCOUNT, one.id, entry("credential_removed", one.id))).toBe(false);
      expect(await credentials.remove(ACCOUNT, one.id, entry("credential_removed", one.id))).toBe(true);
      expect(await credentials.use(after, later(7), used)).toBe(false);
      expect(await credentials.list(null)).toEqual([]);
      expect([await audited(db.store, "credential_changed"), await audited(db.store, "credential_removed")]).toEqual([
        1, 1,
      ]);
    });

    test("let further keys use them, and drop revoked ones when there are too many", async () => {
      await using db = await open();
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

    test("note each host once that has sent a secret back", async () => {
      await using db = await open();
      const one = aCredential();
      await add(db.store, one);
      const note = (host: string) =>
        db.store.credentials.noteEcho(ACCOUNT, one.id, host, entry("credential_echoed", one.id));
      expect([await note("a.example"), await note("a.example"), await note("b.example")]).toEqual([true, false, true]);
      expect((await db.store.credentials.find(ACCOUNT, one.id))?.echoes).toEqual(["a.example", "b.example"]);
      expect(await audited(db.store, "credential_echoed")).toBe(2);
    });

    test("tell each end once, also where several do at once", async () => {
      await using db = await open();
      const { credentials, outbox } = db.store;
      const one = aCredential({ expiresAt: later(9) });
      await add(db.store, one);
      const end = { accountId: ACCOUNT, id: one.id, expiresAt: later(9) };
      const rowsOf = (stage: "expiring" | "expired", expiresAt = later(9)) =>
        ["ann@example.com", "bob@example.com"].map((target, at) => ({
          id: systemIds.row(NOON),
          host: target,
          message: { kind: "mail", event: alertEvent({ stage, expiresAt }, at), target } as const,
        }));
      expect(await credentials.tell(end, [], NOON)).toBe(false);
      expect(await credentials.tell({ ...end, expiresAt: later(8) }, rowsOf("expiring"), NOON)).toBe(false);
      expect(await credentials.tell({ ...end, accountId: OTHER_ACCOUNT }, rowsOf("expiring"), NOON)).toBe(false);
      const race = await Promise.all([1, 2, 3].map(() => credentials.tell(end, rowsOf("expiring"), NOON)));
      expect(race.filter((isTold) => isTold)).toHaveLength(1);
      expect(await credentials.tell(end, rowsOf("expired"), NOON)).toBe(true);
      const entries = await outbox.list(ACCOUNT, null, 9);
      expect(entries).toHaveLength(4);
      expect(entries.at(-1)).toMatchObject({ actionId: one.id, status: "pending", dueAt: NOON, run: 1 });
      await credentials.change(one, { expiresAt: later(10) }, entry("credential_changed", one.id));
      const next = { ...end, expiresAt: later(10) };
      expect(await credentials.tell(end, rowsOf("expiring"), NOON)).toBe(false);
      expect(await credentials.tell(next, rowsOf("expiring", later(10)), NOON)).toBe(true);
      await credentials.change({ ...one, revision: 2 }, { enabled: false }, entry("credential_changed", one.id));
      expect(await credentials.tell(next, rowsOf("expired", later(10)), NOON)).toBe(false);
      expect(await credentials.pruneAlerts(later(CREDENTIAL_ALERTS_KEPT_MS - 1))).toBe(false);
      expect(await outbox.list(ACCOUNT, null, 9)).toHaveLength(6);
      while (await credentials.pruneAlerts(later(CREDENTIAL_ALERTS_KEPT_MS)));
      expect(await outbox.list(ACCOUNT, null, 9)).toEqual([]);
    });

    test("are bounded in number, also where many are added at once", async () => {
      await using db = await open();
      const all = Array.from({ length: CREDENTIALS_MAX + 5 }, (_, n) => aCredential({ name: `one-${n}` }));
      const answers = await racingAtLast(all, (one) => add(db.store, one));
      expect(answers.filter((answer) => answer === "written")).toHaveLength(CREDENTIALS_MAX);
      expect(answers.filter((answer) => answer === "full")).toHaveLength(5);
      const race = await Promise.all([1, 2, 3].map(() => add(db.store, aCredential({ name: "one-1" }))));
      expect(race).toEqual(["taken", "taken", "taken"]);
    });
  });
}
