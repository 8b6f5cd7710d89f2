import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES, type ActionStatus } from "../../src/domain/action.ts";
import { type CallbackEvent, type Owed, owedOn } from "../../src/domain/owed.ts";
import { verifies } from "../spec/verifies.ts";

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
  const callback: readonly Owed[] = event === null ? [] : [{ kind: "callback", event, target: CALLBACK }];
  const isHeld = status === "awaiting_approval";
  const mail: readonly Owed[] = isHeld ? [{ kind: "mail", event: "approval", target: EMAIL }] : [];

  test("owes a callback where there is news, and a mail where it is held", () => {
    verifies("decision.8.types");
    for (const approve of [true, false]) {
      expect(owedOn({ status, approve, callback: CALLBACK, notifyEmail: EMAIL })).toEqual([...callback, ...mail]);
    }
  });

  test("owes nothing to whom nobody named", () => {
    expect(owedOn({ status, approve: true, callback: CALLBACK, notifyEmail: null })).toEqual(callback);
    expect(owedOn({ status, approve: true, callback: null, notifyEmail: EMAIL })).toEqual(mail);
    expect(owedOn({ status, approve: true, callback: null, notifyEmail: null })).toEqual([]);
  });
});
