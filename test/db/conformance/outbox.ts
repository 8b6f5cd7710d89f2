import { DomainError } from "../../../src/core/domain-error.ts";
import { describe, expect } from "bun:test";
import { cancel, retry } from "../../../src/core/changes.ts";
import type { Action } from "../../../src/core/action.ts";
import {
  LEASE_MS_MAX,
  MAIL_WINDOW_MS,
  MAILS_PER_ACCOUNT_MAX,
  MAILS_PER_PERSON_MAX,
  MAILS_PER_RECIPIENT_MAX,
} from "../../../src/core/limits.ts";
import { type DeliveryResult, type Notification, settleNotification } from "../../../src/core/notification.ts";
import type { Queue, StoredLink } from "../../../src/core/store.ts";
import { ACCOUNT, aDecision, aSignUp, creationOf, KEY, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { TestStore } from "../../support/store.ts";
import type { StoreTest } from "./store-test.ts";
import { claimDue, createdAction, decided, LEASE, stored } from "./steps.ts";

const HELD = { approve: true, callback: "https://hooks.example.com/a", notifyEmail: "boss@example.com" };

const LANE = { accountId: ACCOUNT, host: "hooks.example.com", keyId: KEY };

const FAILED: DeliveryResult = { kind: "failed", error: "The target answered with status 500.", notBeforeMs: null };

/** Callbacks and mails: claimed once an attempt, settled by whoever holds the claim, and never a change of the action. */
export function testOutbox(test: StoreTest): void {
  test("what an action owes waits by kind, in the lane of its account and host", async (db) => {
    await createdAction(db.actions, HELD);
    await createdAction(db.actions, { ...HELD, callback: "http://b.example:8080/x", createdAt: later(5) });
    await createdAction(db.actions, { ...HELD, accountId: OTHER_ACCOUNT, createdAt: later(9) });
    expect(await db.notifications.callbacks.lanes(null, 10)).toEqual([
      { accountId: ACCOUNT, host: "b.example:8080", keyId: KEY, dueAt: later(5) },
      { ...LANE, dueAt: NOON },
      { accountId: OTHER_ACCOUNT, host: "hooks.example.com", keyId: KEY, dueAt: later(9) },
    ]);
    expect(await db.notifications.mails.lanes(null, 10)).toEqual([
      { accountId: ACCOUNT, host: "boss@example.com", keyId: KEY, dueAt: NOON },
      { accountId: OTHER_ACCOUNT, host: "boss@example.com", keyId: KEY, dueAt: later(9) },
    ]);
    const [first] = await db.notifications.callbacks.lanes(null, 1);
    expect(await db.notifications.callbacks.lanes(first ?? null, 1)).toEqual([{ ...LANE, dueAt: NOON }]);
    expect(await db.notifications.waiting()).toEqual({ callback: 3, mail: 3, message: 0 });
  });

  test("a claim counts the attempt and leases the row; its body is there until it is delivered", async (db) => {
    const action = await createdAction(db.actions, HELD);
    const notification = await claimOne(db.notifications.callbacks);
    expect(notification).toEqual({
      id: expect.any(String),
      actionId: action.id,
      accountId: ACCOUNT,
      keyId: KEY,
      run: 1,
      message: { kind: "callback", event: "action.awaiting_approval", target: HELD.callback },
      host: "hooks.example.com",
      attempts: 1,
      leaseUntil: LEASE.leaseUntil,
    });
    expect(await db.notifications.callbacks.lanes(null, 10)).toEqual([]);
    expect(await db.notifications.waiting()).toEqual({ callback: 1, mail: 1, message: 0 });
    const body = await db.notifications.payload(notification.id);
    expect(JSON.parse(body ?? "")).toMatchObject({ type: "action.awaiting_approval", data: { id: action.id } });
    await settle(db, notification, FAILED);
    expect(await db.notifications.payload(notification.id)).toBe(body);
    await settle(db, await claimOne(db.notifications.callbacks, later(5_000)), { kind: "delivered" });
    expect(await db.notifications.payload(notification.id)).toBeNull();
    expect(await db.notifications.waiting()).toEqual({ callback: 0, mail: 1, message: 0 });
  });

  test("an attempt settles once, with one row in the timeline, and leaves the action as it is", async (db) => {
    const action = await createdAction(db.actions, HELD);
    const notification = await claimOne(db.notifications.callbacks);
    const settled = await Promise.all(Array.from({ length: 20 }, () => settle(db, notification, FAILED)));
    expect(settled.filter(Boolean)).toHaveLength(1);
    expect(await stored(db.actions, action)).toEqual(action);
    expect(await told(db, action)).toEqual([
      {
        at: NOON,
        run: 1,
        status: "awaiting_approval",
        event: {
          type: "callback",
          event: "action.awaiting_approval",
          delivered: false,
          attempts: 1,
          error: "The target answered with status 500.",
          next_retry_at: later(5_000).toISOString(),
        },
      },
    ]);
    expect(await db.notifications.callbacks.lanes(null, 1)).toEqual([{ ...LANE, dueAt: later(5_000) }]);
  });

  test("an attempt that was given up settles nothing: the row is somebody else's by then", async (db) => {
    const action = await createdAction(db.actions, HELD);
    const frozen = await claimOne(db.notifications.callbacks);
    await settle(db, frozen, { kind: "interrupted", error: "Interrupted." });
    expect(await settle(db, frozen, { kind: "delivered" })).toBe(false);
    const again = await claimOne(db.notifications.callbacks);
    expect(again.attempts).toBe(2);
    expect(await settle(db, frozen, { kind: "delivered" })).toBe(false);
    expect(await settle(db, again, { kind: "delivered" })).toBe(true);
    expect((await told(db, action)).map(({ event }) => event)).toMatchObject([
      { delivered: false, attempts: 1 },
      { delivered: true, attempts: 2, error: null, next_retry_at: null },
    ]);
  });

  test("what came to be needless is over, and nothing is told of it", async (db) => {
    const action = await createdAction(db.actions, HELD);
    const notification = await claimOne(db.notifications.callbacks);
    expect(await settle(db, notification, { kind: "needless" })).toBe(true);
    expect(await db.notifications.list(ACCOUNT, null, 10)).toContainEqual(
      expect.objectContaining({ status: "dropped" }),
    );
    expect(await db.notifications.waiting()).toEqual({ callback: 0, mail: 1, message: 0 });
    expect(await told(db, action)).toEqual([]);
  });

  test("of an older run it is told under that run, with the status that the action has by then", async (db) => {
    const action = await createdAction(db.actions, HELD);
    const notification = await claimOne(db.notifications.callbacks);
    await decided(db.actions, cancel, action);
    const change = retry(await stored(db.actions, action), aDecision());
    if (change instanceof DomainError) throw change;
    await db.actions.apply({ change, at: NOON, outbox: creationOf(change.after).outbox });
    await settle(db, notification, { kind: "delivered" });
    expect(await told(db, action)).toMatchObject([{ run: 1, status: "awaiting_approval" }]);
    expect((await db.outbox(action.id)).filter(({ event }) => event === "action.awaiting_approval")).toMatchObject([
      { run: 1 },
      { run: 2 },
    ]);
  });

  describe("the mails of an hour", () => {
    test("are counted by recipient, whatever the case of the address, and whoever asks them", async (db) => {
      const asked = (n: number) => ({
        approve: true,
        notifyEmail: n % 2 === 0 ? "boss@example.com" : "Boss@Example.com",
        accountId: n % 3 === 0 ? OTHER_ACCOUNT : ACCOUNT,
      });
      const mails = await claimedMails(db, MAILS_PER_RECIPIENT_MAX + 20, asked);
      const permitted = await Promise.all(mails.map((mail) => db.notifications.permitMail(mail, NOON)));
      expect(permitted.filter(Boolean)).toHaveLength(MAILS_PER_RECIPIENT_MAX);
      const others = { ...asked(0), notifyEmail: "ann@example.com" };
      const [other] = await claimedMails(db, 1, () => others);
      expect(other !== undefined && (await db.notifications.permitMail(other, NOON))).toBe(true);
    });

    test("are counted for people of the account apart from what others send them", async (db) => {
      const { account } = await signedUp(db);
      const asked = { approve: true, notifyEmail: "boss@example.com" };
      const mailsOf = (accountId: string, count: number) => claimedMails(db, count, () => ({ ...asked, accountId }));
      const permit = async (mails: readonly Notification[]) =>
        (await Promise.all(mails.map((mail) => db.notifications.permitMail(mail, NOON)))).filter(Boolean).length;
      expect(await permit(await mailsOf(OTHER_ACCOUNT, MAILS_PER_RECIPIENT_MAX + 1))).toBe(MAILS_PER_RECIPIENT_MAX);
      const own = await mailsOf(account.id, MAILS_PER_RECIPIENT_MAX + 1);
      expect(await permit(own)).toBe(MAILS_PER_RECIPIENT_MAX);
    });

    test("are counted for a person over all of their accounts, too, up to a larger number", async (db) => {
      const { account } = await signedUp(db);
      const asked = () => ({ approve: true, notifyEmail: "boss@example.com", accountId: account.id });
      const [first, second] = await claimedMails(db, 2, asked);
      expect(first !== undefined && (await db.notifications.permitMail(first, NOON))).toBe(true);
      await db.copyRow("outbox", first?.id ?? "", MAILS_PER_PERSON_MAX - 1, ["id", "action_id", "account_id"]);
      expect(second !== undefined && (await db.notifications.permitMail(second, NOON))).toBe(false);
    });

    test("are answers and reminders by half at most, so that new requests are mailed", async (db) => {
      const asked = () => createdAction(db.actions, { approve: true, notifyEmail: "boss@example.com" });
      const held = [await asked(), await asked()];
      for (const action of held) await decided(db.actions, cancel, action);
      await asked();
      const [lane] = await db.notifications.mails.lanes(null, 1);
      const claimed = lane === undefined ? [] : await claimDue(db.notifications.mails, lane, { limit: 9 });
      const [first, second] = claimed.filter(({ message }) => message.event === "decided");
      const question = claimed.find(({ message }) => message.event === "approval");
      const permits = async (mail: typeof first) => mail !== undefined && db.notifications.permitMail(mail, NOON);
      expect(await permits(first)).toBe(true);
      await db.copyRow("outbox", first?.id ?? "", MAILS_PER_RECIPIENT_MAX / 2 - 1, ["id", "action_id"]);
      expect(await permits(second)).toBe(false);
      expect(await permits(question)).toBe(true);
    });

    test("are counted by account", async (db) => {
      const asked = (n: number) => ({ approve: true, notifyEmail: `a${n}@example.com` });
      const [first, ...others] = await claimedMails(db, 9, asked);
      expect(first !== undefined && (await db.notifications.permitMail(first, NOON))).toBe(true);
      await db.copyRow("outbox", first?.id ?? "", MAILS_PER_ACCOUNT_MAX - 4, ["id", "action_id", "host"]);
      const permitted = await Promise.all(others.map((mail) => db.notifications.permitMail(mail, NOON)));
      expect(permitted.filter(Boolean)).toHaveLength(3);
      const [stranger] = await claimedMails(db, 1, () => ({ ...asked(9), accountId: OTHER_ACCOUNT }));
      expect(stranger !== undefined && (await db.notifications.permitMail(stranger, NOON))).toBe(true);
    });

    test("are those of the last sixty minutes, and a mail that is tried again is counted once", async (db) => {
      const mails = await claimedMails(db, MAILS_PER_RECIPIENT_MAX + 1, () => ({ ...HELD, callback: null }));
      const [first, ...rest] = mails;
      const last = rest.pop();
      if (first === undefined || last === undefined) throw new Error("Nothing was claimed.");
      expect(await db.notifications.permitMail(first, NOON)).toBe(true);
      for (const mail of rest) expect(await db.notifications.permitMail(mail, later(1_000))).toBe(true);
      expect(await db.notifications.permitMail(last, later(MAIL_WINDOW_MS - 1))).toBe(false);
      expect(await db.notifications.permitMail(first, later(MAIL_WINDOW_MS - 1))).toBe(true);
      expect(await db.notifications.permitMail(last, later(MAIL_WINDOW_MS))).toBe(false);
      expect(await db.notifications.permitMail(last, later(MAIL_WINDOW_MS + 1_000))).toBe(true);
    });

    test("a claim that is over permits nothing", async (db) => {
      const [mail] = await claimedMails(db, 1, () => HELD);
      if (mail === undefined) throw new Error("Nothing was claimed.");
      await settle(db, mail, FAILED);
      expect(await db.notifications.permitMail(mail, NOON)).toBe(false);
    });
  });

  test("a claim that was given back settles nothing of the next one of the same number", async (db) => {
    await createdAction(db.actions, HELD);
    const first = await claimOne(db.notifications.callbacks, NOON, later(45_000));
    expect(await settle(db, first, { kind: "not_started", why: "late" })).toBe(true);
    const second = await claimOne(db.notifications.callbacks, NOON, later(45_001));
    expect([first.attempts, second.attempts]).toEqual([1, 1]);
    expect(await settle(db, first, { kind: "delivered" })).toBe(false);
    const end = settleNotification(second, { delivery: { kind: "delivered" }, now: NOON, chance: 0.5 });
    expect(await db.notifications.isSettled(end, NOON)).toBe(false);
    expect(await db.notifications.settle(end, NOON)).toBe(true);
    expect(await db.notifications.isSettled(end, NOON)).toBe(true);
    await claimDue(db.notifications.mails, { ...LANE, host: HELD.notifyEmail });
    expect(await db.notifications.callbacks.claimed([ACCOUNT], LEASE)).toEqual([]);
  });

  describe("orphans", () => {
    test("are the rows under way whose lease ended before the time, by kind, the earliest first", async (db) => {
      for (const ms of [3_000, 1_000, 2_000]) {
        await createdAction(db.actions, HELD);
        await claimOne(db.notifications.callbacks, NOON, later(ms));
      }
      const leases = async (before: Date | null, limit = 10) =>
        (await db.notifications.callbacks.orphans(before, limit, null)).map(
          ({ leaseUntil }) => (leaseUntil?.getTime() ?? 0) - NOON.getTime(),
        );
      expect(await leases(later(3_000))).toEqual([1_000, 2_000]);
      expect(await leases(later(3_001), 2)).toEqual([1_000, 2_000]);
      expect(await leases(later(500))).toEqual([]);
      expect(await leases(later(1_500 - LEASE_MS_MAX))).toEqual([2_000, 3_000]);
      expect(await leases(null)).toEqual([1_000, 2_000, 3_000]);
      expect(await db.notifications.mails.orphans(null, 10, null)).toEqual([]);
    });

    test("survive a restart, ready to be settled", async (db) => {
      await createdAction(db.actions, HELD);
      const notification = await claimOne(db.notifications.callbacks);
      await db.restart();
      expect(await db.notifications.callbacks.orphans(null, 10, null)).toEqual([notification]);
      expect(await settle(db, notification, { kind: "delivered" })).toBe(true);
      expect(await db.notifications.callbacks.orphans(null, 10, null)).toEqual([]);
    });
  });

  test("an account reads what it was owed, newest first, page by page, and nobody else's", async (db) => {
    await createdAction(db.actions, { ...HELD, accountId: OTHER_ACCOUNT });
    for (const ms of [0, 9_000, 18_000])
      await createdAction(db.actions, { ...HELD, notifyEmail: null, createdAt: later(ms) });
    const [first] = await claimDue(db.notifications.callbacks, LANE, { limit: 1 });
    if (first !== undefined) await settle(db, first, { kind: "refused", error: "No." });
    const page = await db.notifications.list(ACCOUNT, null, 2);
    expect(page.map(({ createdAt, status }) => [createdAt, status])).toEqual([
      [later(18_000), "pending"],
      [later(9_000), "pending"],
    ]);
    expect(await db.notifications.list(ACCOUNT, page[1]?.id ?? null, 2)).toMatchObject([
      { status: "given_up", attempts: 1, lastError: "No. Given up after 1 attempt.", dueAt: null, createdAt: NOON },
    ]);
  });

  describe("approval links", () => {
    test("are found as they were kept, also after a restart", async (db) => {
      const links = pair("act_1");
      expect(await db.store.links.keep(links, later(7))).toEqual(later(7));
      await db.restart();
      for (const link of links) expect(await db.store.links.find(link)).toEqual({ ...link, expiresAt: later(7) });
    });

    test("that are kept again take the new hash, and end when they were to end at first", async (db) => {
      const links = pair("act_1");
      await db.store.links.keep(links, later(7));
      const again = links.map((link) => ({ ...link, hash: `${link.hash}, again` }));
      expect(await db.store.links.keep(again, later(9))).toEqual(later(7));
      for (const link of again) expect(await db.store.links.find(link)).toEqual({ ...link, expiresAt: later(7) });
    });

    test("are all worthless once they are forgotten", async (db) => {
      for (const id of ["act_1", "act_2"]) await db.store.links.keep(pair(id), later(7));
      await db.store.links.forgetAll();
      for (const link of [...pair("act_1"), ...pair("act_2")]) expect(await db.store.links.find(link)).toBeNull();
    });

    test("of a run stay when the next run has its own", async (db) => {
      await db.store.links.keep(pair("act_1"), later(7));
      expect(await db.store.links.keep(pair("act_1", 2), later(9))).toEqual(later(9));
      for (const link of pair("act_1")) {
        expect(await db.store.links.find(link)).toEqual({ ...link, expiresAt: later(7) });
      }
    });
  });
}

/** Claims the earliest row of the lane. */
async function claimOne(queue: Queue<Notification>, now = NOON, leaseUntil = LEASE.leaseUntil): Promise<Notification> {
  const [won] = await claimDue(queue, LANE, { limit: 1, lease: { now, leaseUntil } });
  if (won === undefined) throw new Error("There was nothing to be claimed.");
  return won;
}

async function signedUp({ store: { people } }: TestStore) {
  const signUp = aSignUp({ email: "Boss@example.com" });
  await people.signUp(signUp);
  return signUp;
}

/** So many mails under way. */
async function claimedMails(db: TestStore, count: number, asked: (n: number) => Partial<Action>) {
  await Promise.all(Array.from({ length: count }, (_, n) => createdAction(db.actions, asked(n))));
  const lanes = await db.notifications.mails.lanes(null, count);
  return (await Promise.all(lanes.map((lane) => claimDue(db.notifications.mails, lane, { limit: count })))).flat();
}

function settle(db: TestStore, notification: Notification, delivery: DeliveryResult): Promise<boolean> {
  return db.notifications.settle(settleNotification(notification, { delivery, now: NOON, chance: 0.5 }), NOON);
}

/** What the timeline tells of the callbacks of an action. */
async function told(db: TestStore, action: Action) {
  const entries = await db.actions.timeline(action.accountId, action.id);
  const callbacks = entries.filter(({ event }) => event.type === "callback");
  return callbacks.map(({ at, run, status, event }) => ({ at, run, status, event }));
}

const pair = (actionId: string, run = 1): readonly StoredLink[] => [
  { actionId, run, decision: "approve", hash: `yes ${run}` },
  { actionId, run, decision: "reject", hash: `no ${run}` },
];
