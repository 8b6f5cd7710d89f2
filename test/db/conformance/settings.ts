import { describe, expect } from "bun:test";
import {
  CALLBACK_HOSTS_MAX,
  HOST_SETTINGS_MAX,
  CHANNEL_ADDRESSES_MAX,
  CHANNELS_MAX,
} from "../../../src/core/limits.ts";
import type { AuditEntry } from "../../../src/core/audit.ts";
import type { Store } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCreation,
  anAccount,
  anApiKey,
  anAuditEntry,
  later,
  NOON,
  OTHER_ACCOUNT,
  aChannel,
  anAction,
  creationOf,
} from "../../support/factory.ts";
import { audited, entry, racingAtLast } from "./steps.ts";
import type { StoreTest } from "./store-test.ts";
import { NO_HOST_SETTINGS } from "../../../src/api/host-settings.ts";
import type { HostSettingsRow } from "../../../src/core/host-settings.ts";
import type { Channel } from "../../../src/core/channel.ts";
import { createEnqueue } from "../../../src/receipts/enqueue.ts";
import { systemIds } from "../../../src/core/ids.ts";

const hostEntry = (accountId: string, host: string): AuditEntry =>
  anAuditEntry({ accountId, kind: "callback_hosts_changed", subject: host });

const putHost = ({ callbackHosts }: Store, accountId: string, host: string, createdAt = NOON) =>
  callbackHosts.put({ accountId, host, createdAt }, hostEntry(accountId, host));

/** What accounts set: callback hosts, settings of hosts, and channels. */
export function testSettings(test: StoreTest): void {
  describe("callback hosts", () => {
    test("are listed by account, in the order of the alphabet, and stay as they were when they come again", async (db) => {
      for (const host of ["b.example", "a.example:81"]) expect(await putHost(db.store, ACCOUNT, host)).toBe("written");
      expect(await putHost(db.store, ACCOUNT, "b.example", later(5))).toBe("written");
      await putHost(db.store, OTHER_ACCOUNT, "c.example");
      await db.restart();
      expect(await db.store.callbackHosts.list(ACCOUNT)).toEqual([
        { accountId: ACCOUNT, host: "a.example:81", createdAt: NOON },
        { accountId: ACCOUNT, host: "b.example", createdAt: NOON },
      ]);
    });

    test("are removed once, and nobody else's with them; each change is in the audit log", async (db) => {
      const { callbackHosts } = db.store;
      for (const account of [ACCOUNT, OTHER_ACCOUNT]) await putHost(db.store, account, "a.example");
      const removed = hostEntry(ACCOUNT, "a.example");
      expect(await callbackHosts.remove(ACCOUNT, "a.example", removed)).toBe(true);
      expect(await callbackHosts.remove(ACCOUNT, "a.example", removed)).toBe(false);
      expect(await audited(db.store)).toHaveLength(2);
      expect(await callbackHosts.list(ACCOUNT)).toEqual([]);
      expect(await callbackHosts.list(OTHER_ACCOUNT)).toHaveLength(1);
    });

    test("are never more than an account may list, however many race", async (db, { callbackHosts }) => {
      const hosts = Array.from({ length: CALLBACK_HOSTS_MAX + 20 }, (_, n) => `h${n}.example`);
      const ends = await Promise.all(hosts.map((host) => putHost(db.store, ACCOUNT, host)));
      expect(ends.filter((end) => end === "full")).toHaveLength(20);
      const listed = await callbackHosts.list(ACCOUNT);
      expect(listed).toHaveLength(CALLBACK_HOSTS_MAX);
      expect(await putHost(db.store, ACCOUNT, listed[0]?.host ?? "")).toBe("written");
    });
  });

  test("a notification knows the rules under which its action was created", async (db) => {
    const creation = aCreation({
      approve: true,
      callback: "https://h.example/",
      creator: { role: "agent", hold: "writes" },
    });
    await db.actions.create(creation);
    expect((await db.actions.find(ACCOUNT, creation.action.id))?.creator).toEqual({ role: "agent", hold: "writes" });
    expect(await db.notifications.findCreator(creation.outbox[0]?.id ?? "")).toMatchObject({
      role: "agent",
      hold: "writes",
    });
    expect(await db.notifications.findCreator("nobody")).toBeNull();
  });

  test("a notification knows whether the key of its action has limits, also when the key is revoked or gone", async (db) => {
    const { accounts } = db.store;
    const limits = [
      { hosts: ["a.example"] },
      { methods: ["GET"] },
      { dailyActions: 1 },
      { expiresAt: later(-1) },
    ] as const;
    const keys = limits.map((limit, at) => anApiKey({ id: `key_${at}`, revokedAt: later(at), ...limit }));
    await accounts.create(anAccount({ id: ACCOUNT }), [...keys, anApiKey({ id: "key_free" })]);
    await accounts.create(anAccount({ id: OTHER_ACCOUNT }), [anApiKey({ id: "key_theirs", accountId: OTHER_ACCOUNT })]);
    const limitedOf = async (keyId: string) => {
      const creation = aCreation({ approve: true, callback: "https://h.example/", keyId });
      await db.actions.create(creation);
      return (await db.notifications.findCreator(creation.outbox[0]?.id ?? ""))?.isLimited;
    };
    for (const { id } of keys) expect(await limitedOf(id), id).toBe(true);
    expect([await limitedOf("key_gone"), await limitedOf("key_theirs")]).toEqual([true, true]);
    // A person has no key.
    expect([await limitedOf("key_free"), await limitedOf("")]).toEqual([false, false]);
  });

  describe("settings of hosts", () => {
    test("are those that were put last, per account and host, with an entry for each change", async (db) => {
      const { hostSettings } = db.store;
      const replaced = aRow("b.example", { settings: NO_HOST_SETTINGS, updatedAt: later(5), updatedBy: "key:owner" });
      const rows = [aRow(""), aRow("a.example"), replaced, aRow("a.example", { accountId: OTHER_ACCOUNT })];
      for (const one of [aRow("b.example"), ...rows]) expect(await putSettings(db.store, one)).toBe("written");
      expect(await hostSettings.list(ACCOUNT)).toEqual(rows.slice(0, 3));
      expect((await hostSettings.list(null)).length).toBe(4);
      expect(await hostSettings.remove(ACCOUNT, "a.example", entry("host_settings_changed", "a.example"))).toBe(true);
      expect(await hostSettings.remove(ACCOUNT, "a.example", entry("host_settings_changed", "a.example"))).toBe(false);
      expect((await hostSettings.list(null)).map(({ accountId, host }) => [accountId, host])).toEqual([
        [ACCOUNT, ""],
        [ACCOUNT, "b.example"],
        [OTHER_ACCOUNT, "a.example"],
      ]);
      // What changed nothing is not told.
      expect(await audited(db.store)).toHaveLength(6);
      await db.restart();
      expect(await db.store.hostSettings.list(ACCOUNT)).toEqual([aRow(""), replaced]);
      // Only over the settings that were shown.
      const putOver = (shown: Date | null) =>
        db.store.hostSettings.put(replaced, entry("host_settings_changed", "b.example"), shown);
      expect([await putOver(null), await putOver(NOON), await putOver(later(5))]).toEqual([
        "changed",
        "changed",
        "written",
      ]);
    });

    test("have a version that every change changes, and nothing else", async (db, { hostSettings }) => {
      const seen = [await hostSettings.version()];
      await putSettings(db.store, aRow("a.example"));
      seen.push(await hostSettings.version());
      await putSettings(db.store, aRow("a.example"));
      seen.push(await hostSettings.version());
      await hostSettings.remove(ACCOUNT, "a.example", entry("host_settings_changed", "a.example"));
      seen.push(await hostSettings.version());
      expect(new Set(seen).size).toBe(4);
      await hostSettings.remove(ACCOUNT, "a.example", entry("host_settings_changed", "a.example"));
      expect(await hostSettings.version()).toBe(seen[3] ?? "");
    });

    test("are of a bounded number of hosts, however many are put at once; those of all hosts don't count", async (db) => {
      const hosts = Array.from({ length: HOST_SETTINGS_MAX + 5 }, (_, n) => `h${n}.example`);
      const ends = await racingAtLast(hosts, (host) => putSettings(db.store, aRow(host)));
      expect(ends.filter((end) => end === "written")).toHaveLength(HOST_SETTINGS_MAX);
      const [known] = await db.store.hostSettings.list(ACCOUNT);
      expect(await putSettings(db.store, aRow(known?.host ?? "", { settings: NO_HOST_SETTINGS }))).toBe("written");
      expect(await putSettings(db.store, aRow(""))).toBe("written");
      expect(await putSettings(db.store, aRow("other.example"))).toBe("full");
      expect(await putSettings(db.store, aRow("other.example", { accountId: OTHER_ACCOUNT }))).toBe("written");
    });
  });

  describe("channels", () => {
    test("are kept as they were added, per account, the oldest first, over a restart", async (db) => {
      const mail = aChannel({ kind: "mail", to: ["ann@example.com", "bob@example.com"], url: null });
      const newer = aChannel({ createdAt: later(5), enabled: false, remindAfterMinutes: 30 });
      const other = aChannel({ accountId: OTHER_ACCOUNT });
      for (const one of [newer, mail, other]) expect(await addChannel(db.store, one)).toBe("written");
      expect(await db.store.channels.list(ACCOUNT)).toEqual([mail, newer]);
      expect(await db.store.channels.list(null)).toHaveLength(3);
      expect(await db.store.channels.find(ACCOUNT, newer.id)).toEqual(newer);
      expect(await db.store.channels.find(OTHER_ACCOUNT, newer.id)).toBeNull();
      await db.restart();
      expect(await db.store.channels.list(ACCOUNT)).toEqual([mail, newer]);
    });

    test("change by member, each beside the others, with an entry; one that is not there changes nothing", async (db) => {
      const { channels } = db.store;
      const one = aChannel({ remindAfterMinutes: 30 });
      await addChannel(db.store, one);
      const changes = [
        { name: "on call" },
        { enabled: false },
        { remindAfterMinutes: null },
        { target: { to: [], url: "https://hooks.example.com/other" } },
      ];
      const changed = entry("channel_changed", one.id);
      for (const patch of changes) expect(await channels.change(ACCOUNT, one.id, patch, changed)).toBe(true);
      const after = {
        ...one,
        name: "on call",
        enabled: false,
        remindAfterMinutes: null,
        url: "https://hooks.example.com/other",
      };
      expect(await channels.find(ACCOUNT, one.id)).toEqual(after);
      expect(await channels.change(OTHER_ACCOUNT, one.id, { name: "theirs" }, changed)).toBe(false);
      expect(await channels.change(ACCOUNT, one.id, {}, changed)).toBe(true);
      expect(await channels.find(ACCOUNT, one.id)).toEqual(after);
      expect(await channels.remove(OTHER_ACCOUNT, one.id, entry("channel_removed", one.id))).toBe(false);
      expect(await channels.remove(ACCOUNT, one.id, entry("channel_removed", one.id))).toBe(true);
      expect(await channels.remove(ACCOUNT, one.id, entry("channel_removed", one.id))).toBe(false);
      expect(await channels.list(null)).toEqual([]);
      const kinds = ["channel_removed", ...changes.map(() => "channel_changed" as const), "channel_added"] as const;
      expect((await audited(db.store)).map(({ kind }) => kind)).toEqual([...kinds]);
    });

    test("have a version that every change changes, and nothing else", async (db, { channels }) => {
      const one = aChannel();
      const seen = [await channels.version()];
      await addChannel(db.store, one);
      seen.push(await channels.version());
      await channels.change(ACCOUNT, one.id, { enabled: false }, entry("channel_changed", one.id));
      seen.push(await channels.version());
      await channels.remove(ACCOUNT, one.id, entry("channel_removed", one.id));
      seen.push(await channels.version());
      expect(new Set(seen).size).toBe(4);
      await channels.remove(ACCOUNT, one.id, entry("channel_removed", one.id));
      expect(await channels.version()).toBe(seen[3] ?? "");
    });

    test("are of a bounded number, however many are added at once", async (db) => {
      const ends = await Promise.all(Array.from({ length: CHANNELS_MAX + 5 }, () => addChannel(db.store, aChannel())));
      expect(ends.filter((end) => end === "written")).toHaveLength(CHANNELS_MAX);
      expect(await addChannel(db.store, aChannel({ accountId: OTHER_ACCOUNT }))).toBe("written");
    });

    test("are asked in the commit of the change: all rows of it, with their times, or none", async (db) => {
      const to = Array.from({ length: CHANNEL_ADDRESSES_MAX }, (_, n) => `a${n}@example.com`);
      const mails = Array.from({ length: CHANNELS_MAX - 1 }, () =>
        aChannel({ kind: "mail", to, remindAfterMinutes: 5 }),
      );
      const slack = aChannel({ remindAfterMinutes: 30 });
      const action = anAction({ approve: true, callback: "https://hooks.example.com/h" });
      const outbox = createEnqueue(
        systemIds,
        (id) => `/r/${id}`,
        () => [...mails, slack],
      )(action, NOON, []);
      const count = 2 * (mails.length * to.length + 1);
      expect(outbox).toHaveLength(1 + count);
      const created = await db.store.actions.create({ ...creationOf(action), outbox });
      expect(created.kind).toBe("created");
      expect(await db.store.outbox.waiting()).toEqual({ callback: 1, mail: count - 2, message: 2 });
      expect(await db.store.outbox.messages.lanes(null, 10)).toEqual([
        { accountId: ACCOUNT, host: slack.id, keyId: action.keyId, dueAt: NOON },
      ]);
      const listed = await db.store.outbox.list(ACCOUNT, null, count + 1);
      const reminder = listed.find(({ message }) => message.event === `reminded:${slack.id}`);
      expect(reminder).toMatchObject({ actionId: action.id, run: 1, status: "pending", attempts: 0, createdAt: NOON });
      expect(reminder?.dueAt).toEqual(later(1_800_000));
      // The same action again: its row is not written, and nothing else.
      await db.store.actions.create({ ...creationOf({ ...action, idempotencyKey: "k" }), outbox }).catch(() => {});
      expect(await db.store.outbox.list(ACCOUNT, null, count + 5)).toHaveLength(count + 1);
    });

    test("are sealed where they are stored", async (db) => {
      const one = aChannel();
      await addChannel(db.store, one);
      const found = await db.store.sealed.find("another-key", null, 9);
      const row = found.find(({ place }) => place.table === "channels");
      expect(row).toMatchObject({ place: { row: one.id, column: "sealed_config" } });
      expect(row?.sealed).not.toContain("hooks.slack.example");
      // A row that can't be opened goes nowhere, and can still be removed.
      if (row !== undefined) await db.store.sealed.replace([{ ...row, by: `x${row.sealed}` }]);
      expect(await db.store.channels.find(ACCOUNT, one.id)).toEqual({ ...one, url: null });
    });
  });
}

const aRow = (host: string, more: Partial<HostSettingsRow> = {}): HostSettingsRow => ({
  accountId: ACCOUNT,
  host,
  settings: { ...NO_HOST_SETTINGS, maxPerSecond: 0.5, giveUpOn: [401, "5xx"] },
  updatedAt: NOON,
  updatedBy: "user:ann@example.com",
  ...more,
});

const putSettings = ({ hostSettings }: Store, of: HostSettingsRow) =>
  hostSettings.put(of, entry("host_settings_changed", of.host));

const addChannel = ({ channels }: Store, channel: Channel) => channels.put(channel, entry("channel_added", channel.id));
