import { describe, expect, test } from "bun:test";
import { HOST_SETTINGS_MAX } from "../../../src/core/limits.ts";
import { type HostSettingsRow, NO_HOST_SETTINGS } from "../../../src/core/host-settings.ts";
import type { Store } from "../../../src/core/store.ts";
import { ACCOUNT, anAuditEntry, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { racingAtLast } from "./steps.ts";

const row = (host: string, more: Partial<HostSettingsRow> = {}): HostSettingsRow => ({
  accountId: ACCOUNT,
  host,
  settings: { ...NO_HOST_SETTINGS, maxPerSecond: 0.5, giveUpOn: [401, "5xx"] },
  updatedAt: NOON,
  updatedBy: "user:ann@example.com",
  ...more,
});

const entry = (host: string) => anAuditEntry({ kind: "host_settings_changed", subject: host });

const put = ({ hostSettings }: Store, of: HostSettingsRow) => hostSettings.put(of, entry(of.host));

const audited = async ({ audit }: Store) => {
  const all = { accountId: ACCOUNT, kinds: [], actors: [], since: null, until: null, before: null, limit: 99 };
  return (await audit.page(all)).rows.map(({ subject }) => subject);
};

/** What accounts set for hosts. */
export function testHostSettings(open: OpenTestStore): void {
  describe("settings of hosts", () => {
    test("are those that were put last, per account and host, with an entry for each change", async () => {
      await using db = await open();
      const { hostSettings } = db.store;
      const replaced = row("b.example", { settings: NO_HOST_SETTINGS, updatedAt: later(5), updatedBy: "key:owner" });
      const rows = [row(""), row("a.example"), replaced, row("a.example", { accountId: OTHER_ACCOUNT })];
      for (const one of [row("b.example"), ...rows]) expect(await put(db.store, one)).toBe("written");
      expect(await hostSettings.list(ACCOUNT)).toEqual(rows.slice(0, 3));
      expect((await hostSettings.list(null)).length).toBe(4);
      expect(await hostSettings.remove(ACCOUNT, "a.example", entry("a.example"))).toBe(true);
      expect(await hostSettings.remove(ACCOUNT, "a.example", entry("a.example"))).toBe(false);
      expect((await hostSettings.list(null)).map(({ accountId, host }) => [accountId, host])).toEqual([
        [ACCOUNT, ""],
        [ACCOUNT, "b.example"],
        [OTHER_ACCOUNT, "a.example"],
      ]);
      // What changed nothing is not told.
      expect((await audited(db.store)).length).toBe(6);
      await db.restart();
      expect(await db.store.hostSettings.list(ACCOUNT)).toEqual([row(""), replaced]);
    });

    test("have a version that every change changes, and nothing else", async () => {
      await using db = await open();
      const { hostSettings } = db.store;
      const seen = [await hostSettings.version()];
      await put(db.store, row("a.example"));
      seen.push(await hostSettings.version());
      await put(db.store, row("a.example"));
      seen.push(await hostSettings.version());
      await hostSettings.remove(ACCOUNT, "a.example", entry("a.example"));
      seen.push(await hostSettings.version());
      expect(new Set(seen).size).toBe(4);
      await hostSettings.remove(ACCOUNT, "a.example", entry("a.example"));
      expect(await hostSettings.version()).toBe(seen[3] ?? "");
    });

    test("are of a bounded number of hosts, however many are put at once; those of all hosts don't count", async () => {
      await using db = await open();
      const hosts = Array.from({ length: HOST_SETTINGS_MAX + 5 }, (_, n) => `h${n}.example`);
      const ends = await racingAtLast(hosts, (host) => put(db.store, row(host)));
      expect(ends.filter((end) => end === "written")).toHaveLength(HOST_SETTINGS_MAX);
      const [known] = await db.store.hostSettings.list(ACCOUNT);
      expect(await put(db.store, row(known?.host ?? "", { settings: NO_HOST_SETTINGS }))).toBe("written");
      expect(await put(db.store, row(""))).toBe("written");
      expect(await put(db.store, row("other.example"))).toBe("full");
      expect(await put(db.store, row("other.example", { accountId: OTHER_ACCOUNT }))).toBe("written");
    });
  });
}
