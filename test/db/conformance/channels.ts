import { describe, expect, test } from "bun:test";
import { CHANNEL_ADDRESSES_MAX, CHANNELS_MAX } from "../../../src/core/limits.ts";
import type { Channel } from "../../../src/core/channel.ts";
import { createEnqueue } from "../../../src/receipts/serialize.ts";
import { systemIds } from "../../../src/core/ids.ts";
import type { Store } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aChannel,
  anAction,
  anAuditEntry,
  creationOf,
  later,
  NOON,
  OTHER_ACCOUNT,
} from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";

const entry = (kind: "channel_added" | "channel_changed" | "channel_removed", subject: string) =>
  anAuditEntry({ kind, subject });

const add = ({ channels }: Store, channel: Channel) => channels.put(channel, entry("channel_added", channel.id));

const audited = async ({ audit }: Store) => {
  const all = { accountId: ACCOUNT, kinds: [], actors: [], since: null, until: null, before: null, limit: 99 };
  return (await audit.page(all)).rows.map(({ kind }) => kind);
};

/** Where accounts ask for approval. */
export function testChannels(open: OpenTestStore): void {
  describe("channels", () => {
    test("are kept as they were added, per account, the oldest first, over a restart", async () => {
      await using db = await open();
      const mail = aChannel({ kind: "mail", to: ["ann@example.com", "bob@example.com"], url: null });
      const newer = aChannel({ createdAt: later(5), enabled: false, remindAfterMinutes: 30 });
      const other = aChannel({ accountId: OTHER_ACCOUNT });
      for (const one of [newer, mail, other]) expect(await add(db.store, one)).toBe("written");
      expect(await db.store.channels.list(ACCOUNT)).toEqual([mail, newer]);
      expect(await db.store.channels.list(null)).toHaveLength(3);
      expect(await db.store.channels.find(ACCOUNT, newer.id)).toEqual(newer);
      expect(await db.store.channels.find(OTHER_ACCOUNT, newer.id)).toBeNull();
      await db.restart();
      expect(await db.store.channels.list(ACCOUNT)).toEqual([mail, newer]);
    });

    test("change by member, each beside the others, with an entry; one that is not there changes nothing", async () => {
      await using db = await open();
      const { channels } = db.store;
      const one = aChannel({ remindAfterMinutes: 30 });
      await add(db.store, one);
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
      expect(await audited(db.store)).toEqual([...kinds]);
    });

    test("have a version that every change changes, and nothing else", async () => {
      await using db = await open();
      const { channels } = db.store;
      const one = aChannel();
      const seen = [await channels.version()];
      await add(db.store, one);
      seen.push(await channels.version());
      await channels.change(ACCOUNT, one.id, { enabled: false }, entry("channel_changed", one.id));
      seen.push(await channels.version());
      await channels.remove(ACCOUNT, one.id, entry("channel_removed", one.id));
      seen.push(await channels.version());
      expect(new Set(seen).size).toBe(4);
      await channels.remove(ACCOUNT, one.id, entry("channel_removed", one.id));
      expect(await channels.version()).toBe(seen[3] ?? "");
    });

    test("are of a bounded number, however many are added at once", async () => {
      await using db = await open();
      const ends = await Promise.all(Array.from({ length: CHANNELS_MAX + 5 }, () => add(db.store, aChannel())));
      expect(ends.filter((end) => end === "written")).toHaveLength(CHANNELS_MAX);
      expect(await add(db.store, aChannel({ accountId: OTHER_ACCOUNT }))).toBe("written");
    });

    test("are asked in the commit of the change: all rows of it, with their times, or none", async () => {
      await using db = await open();
      const to = Array.from({ length: CHANNEL_ADDRESSES_MAX }, (_, n) => `a${n}@example.com`);
      const mails = Array.from({ length: CHANNELS_MAX - 1 }, () =>
        aChannel({ kind: "mail", to, remindAfterMinutes: 5 }),
      );
      const slack = aChannel({ remindAfterMinutes: 30 });
      const action = anAction({ approve: true, callback: "https://hooks.example.com/h" });
      const outbox = createEnqueue({
        ids: systemIds,
        receiptUrl: (id) => `/r/${id}`,
        channelsOf: () => [...mails, slack],
      })(action, NOON, []);
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

    test("are sealed where they are stored", async () => {
      await using db = await open();
      const one = aChannel();
      await add(db.store, one);
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
