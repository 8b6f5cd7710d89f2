import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES, type ActionStatus } from "../../src/core/action.ts";
import { aChannel, anAttempt } from "../support/factory.ts";
import type { Actor } from "../../src/core/roles.ts";
import { asksFor, notificationHosts, notificationsFor } from "../../src/core/notification.ts";
import {
  parseAsk,
  type CallbackEvent,
  notificationHost,
  type NewNotification,
} from "../../src/core/notification-events.ts";

const EVENTS: Readonly<Record<ActionStatus, CallbackEvent | null>> = {
  pending: null,
  active: null,
  awaiting_approval: "action.awaiting_approval",
  completed: "action.completed",
  failed: "action.failed",
  cancelled: "action.cancelled",
};

const CALLBACK = "https://app.example.com/done";

const EMAIL = "boss@example.com";

describe.each(ACTION_STATUSES)("an action that is %s now", (status) => {
  const event = EVENTS[status];
  const callback: readonly NewNotification[] = event === null ? [] : [{ kind: "callback", event, target: CALLBACK }];
  const isHeld = status === "awaiting_approval";
  const mail: readonly NewNotification[] = isHeld ? [{ kind: "mail", event: "approval", target: EMAIL }] : [];

  test("owes a callback where there is news and a mail where it is held, to whom somebody named", () => {
    const owed = (named: { callback?: string; notifyEmail?: string }, approve = true) =>
      notificationsFor({ status, approve, callback: null, notifyEmail: null, approvedBy: null, ...named }, []);
    for (const approve of [true, false])
      expect(owed({ callback: CALLBACK, notifyEmail: EMAIL }, approve)).toEqual([...callback, ...mail]);
    expect(owed({ callback: CALLBACK })).toEqual(callback);
    expect(owed({ notifyEmail: EMAIL })).toEqual(mail);
    expect(owed({})).toEqual([]);
  });
});

test("a late result of an ended action is told by a callback, and one that ended it is its end", () => {
  const failed = { status: "failed", approve: true, callback: CALLBACK, notifyEmail: EMAIL, approvedBy: null } as const;
  const owed = (late: "result" | "settled" | "noted") => notificationsFor(failed, [anAttempt(1, { late })]);
  expect(owed("result")).toEqual([{ kind: "callback", event: "action.late_result", target: CALLBACK }]);
  expect(owed("settled")).toEqual([{ kind: "callback", event: "action.failed", target: CALLBACK }]);
  expect(owed("noted")).toEqual([]);
});

describe("whoever was asked by mail is told of a decision", () => {
  const held = {
    status: "pending",
    approve: true,
    callback: null,
    notifyEmail: EMAIL,
    approvedBy: "key:ann",
  } as const;
  const said = (type: "approved" | "rejected", actor: Actor) => [{ type, actor }] as const;

  test.each(["approved", "rejected"] as const)("that another has taken: %s", (type) => {
    const news: readonly NewNotification[] = [{ kind: "mail", event: "decided", target: EMAIL }];
    for (const actor of ["key:ann", "user:boss@example.com", "mcp:agent", "email:ann@example.com", "system"] as const) {
      expect(notificationsFor(held, said(type, actor))).toEqual(news);
    }
  });

  test("or that the request was withdrawn, but not that it expired", () => {
    const withdrawn = { ...held, status: "cancelled", approvedBy: null } as const;
    expect(notificationsFor(withdrawn, [{ type: "cancelled", actor: "mcp:agent" }])).toEqual([
      { kind: "mail", event: "decided", target: EMAIL },
    ]);
    expect(notificationsFor(withdrawn, [{ type: "cancelled", actor: "system" }])).toEqual([]);
  });

  test("but not of their own, nor where they were not asked, nor of what is no decision", () => {
    expect(notificationsFor(held, said("approved", `email:${EMAIL}`))).toEqual([]);
    expect(notificationsFor({ ...held, notifyEmail: null }, said("approved", "key:ann"))).toEqual([]);
    expect(
      notificationsFor(held, [
        { type: "cancelled", actor: "key:ann" },
        { type: "created", actor: "key:ann" },
      ]),
    ).toEqual([]);
  });
});

test("the host of what may be owed is hinted at wherever something is owed", () => {
  for (const status of ACTION_STATUSES) {
    for (const type of ["created", "approved", "rejected", "cancelled", "retried"] as const) {
      const action = { status, approve: true, callback: CALLBACK, notifyEmail: "Boss@Example.com", approvedBy: null };
      // A yes makes it pending and a no or a withdrawal cancels it; nothing else is a decision.
      if (type === "approved" && status !== "pending") continue;
      if ((type === "rejected" || type === "cancelled") && status !== "cancelled") continue;
      for (const notifications of notificationsFor(action, [{ type, actor: "key:ann" }])) {
        expect(notificationHosts(action, notifications.kind, [])).toEqual([notificationHost(notifications)]);
      }
    }
  }
  const named = { approve: true, callback: CALLBACK, notifyEmail: EMAIL, approvedBy: null };
  expect(notificationHosts({ ...named, status: "active" }, "callback", [])).toEqual([]);
  expect(notificationHosts({ ...named, status: "completed" }, "mail", [])).toEqual([]);
  expect(notificationHost({ kind: "mail", target: "Boss@Example.com" })).toBe("boss@example.com");
});

describe("channels", () => {
  const slack = aChannel({ remindAfterMinutes: 30 });
  const mail = aChannel({ kind: "mail", to: ["Ann@example.com", EMAIL], url: null });
  const off = aChannel({ enabled: false });

  test("are asked when an action is held, each once, and reminded where that is set", () => {
    const asks = asksFor({ status: "awaiting_approval" }, [slack, mail, off]);
    expect(asks).toEqual([
      { message: { kind: "message", event: `requested:${slack.id}`, target: slack.id }, afterMs: 0 },
      { message: { kind: "message", event: `reminded:${slack.id}`, target: slack.id }, afterMs: 1_800_000 },
      { message: { kind: "mail", event: `requested:${mail.id}:0`, target: "Ann@example.com" }, afterMs: 0 },
      { message: { kind: "mail", event: `requested:${mail.id}:1`, target: EMAIL }, afterMs: 0 },
    ]);
    expect(asks.map(({ message }) => parseAsk(message.event))).toEqual([
      { kind: "requested", channelId: slack.id },
      { kind: "reminded", channelId: slack.id },
      { kind: "requested", channelId: mail.id },
      { kind: "requested", channelId: mail.id },
    ]);
    for (const event of ["approval", "decided", "requested", "requested:", "told:chn_a"])
      expect(parseAsk(event)).toBeNull();
  });

  test.each(ACTION_STATUSES)("are told of nothing else: %s", (status) => {
    const isHeld = status === "awaiting_approval";
    expect(asksFor({ status }, [slack, mail, off])).toHaveLength(isHeld ? 4 : 0);
    const action = { status, approve: true, callback: CALLBACK, notifyEmail: EMAIL, approvedBy: null };
    const of = (kind: "message" | "mail") => notificationHosts(action, kind, [slack, mail, off]);
    expect(of("message")).toEqual(isHeld ? [slack.id] : []);
    // One lane for the address that is named twice.
    if (isHeld) expect(of("mail")).toEqual([EMAIL, "ann@example.com"]);
  });
});
