import { seeWhole } from "../../src/receipts/see.ts";
import { describe, expect, test } from "bun:test";
import { COUNTED_MAX, HELD_COUNTED_MAX, HELD_HOSTS_SHOWN_MAX } from "../../src/core/limits.ts";
import { decidedOutcome, decidedRow } from "../../src/pages/decisions/decided.tsx";
import type { SeenInbox } from "../../src/pages/decisions/inbox.tsx";
import { anAction, aResult, later, NOON } from "../support/factory.ts";
import { inboxOf } from "./inbox-page.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";
import type { Action } from "../../src/core/action.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import { renderPart } from "../../src/ui/layout.tsx";
import { textOf } from "../support/forms.ts";

const ALIKE = [1, 2, 3].map((at) =>
  anAction({ status: "awaiting_approval", approve: true, url: `https://api.example.com/refunds/${at}` }),
);

const SEEN = ALIKE.map((action) => maskAction(action, "decider"));

const QUERY = { by: null, host: null, age: null, after: null };

const inboxWith = (inbox: Partial<SeenInbox>): SeenInbox => {
  const none = { requesters: [], hosts: [], hasMoreHosts: false, histories: new Map() };
  return { actions: SEEN, after: null, total: 3, matching: 3, ...none, ...inbox };
};

const countOf = (html: string) => /id="count"[^>]*>([^<]*)</.exec(html)?.[1];

describe("the inbox", () => {
  test("says how many requests wait and match, and where it stops counting", () => {
    const counted = (inbox: Partial<SeenInbox>, host: string | null) =>
      countOf(inboxOf(ALIKE, { inbox: inboxWith(inbox), query: { ...QUERY, host } }));
    expect(counted({ total: 9_999, matching: 9_999 }, null)).toBe("9,999 awaiting approval");
    expect(counted({ total: HELD_COUNTED_MAX, matching: HELD_COUNTED_MAX }, null)).toBe("10,000+ awaiting approval");
    expect(counted({ total: HELD_COUNTED_MAX, matching: 7 }, "a.example")).toBe("7 of 10,000+ awaiting approval");
    expect(counted({ total: HELD_COUNTED_MAX, matching: HELD_COUNTED_MAX }, "a.example")).toBe(
      "10,000+ of 10,000+ awaiting approval",
    );
  });

  test("says what its menus leave out, and where they stop counting", () => {
    const hosts = [
      { host: "busy.example", count: COUNTED_MAX },
      { host: "quiet.example", count: 7 },
    ];
    const html = inboxOf(ALIKE, { inbox: inboxWith({ hosts, hasMoreHosts: true }) });
    expect(html).toContain("1,000+");
    expect(html).toContain(`Only ${hosts.length} hosts are listed.`);
    expect(hosts.length).toBeLessThan(HELD_HOSTS_SHOWN_MAX);
    const requesters = Array.from({ length: 20 }, (_, at) => {
      return { keyId: `key_${at}`, createdBy: `key:${at}` as const, count: 1 };
    });
    expect(inboxOf(ALIKE, { inbox: inboxWith({ requesters }) })).toContain("At most 20 are listed");
    const whole = inboxOf(ALIKE, { inbox: inboxWith({ hosts, requesters: requesters.slice(1) }) });
    expect(whole).not.toContain("are listed");
  });

  test("says of look-alikes that others may be on the other pages", () => {
    const isPart = (html: string) => html.includes("On this page · ");
    const groups = inboxOf(ALIKE, { inbox: inboxWith({}) });
    expect(groups).toContain("3 ×");
    expect(isPart(groups)).toBe(false);
    expect(isPart(inboxOf(ALIKE, { inbox: inboxWith({ after: "2.act_x" }) }))).toBe(true);
    expect(isPart(inboxOf(ALIKE, { inbox: inboxWith({}), query: { ...QUERY, after: "2.act_x" } }))).toBe(true);
    expect(isPart(inboxOf([], { inbox: inboxWith({ actions: SEEN.slice(1), after: "2.act_x" }) }))).toBe(false);
  });
});

const outcome = (action: Partial<Action>) => wordsIn(renderPart(decidedOutcome(seeWhole(anAction(action)), NOON)));

const wordsIn = (html: string) => textOf(html).trim();

describe("what a decided request has come to", () => {
  const refused = aResult({
    responseCode: 422,
    lastError: "The target answered 422.",
    errorSource: "target",
    responseBody: '{"error":{"type":"invalid","message":"No such charge: <b>"}}',
  });
  test.each<readonly [what: string, action: Partial<Action>, text: string]>([
    ["waits", { status: "pending" }, "Pending"],
    ["is being sent", { status: "active", attempts: 1 }, "Sending"],
    ["was taken", { status: "completed", attempts: 1, result: aResult() }, "Completed 200 in 180 ms"],
    ["was refused", { status: "failed", attempts: 3, result: refused }, "Failed 422 No such charge: &lt;b&gt;"],
    [
      "was refused without a reason",
      { status: "failed", attempts: 1, result: aResult({ responseCode: 500, lastError: "The target answered 500." }) },
      "Failed 500 The target answered 500.",
    ],
    [
      "reached nobody",
      { status: "failed", attempts: 1, result: aResult({ responseCode: null, lastError: "Connection refused." }) },
      "Failed Connection refused.",
    ],
    [
      "is tried again",
      { status: "pending", attempts: 1, dueAt: later(2_000), result: refused },
      "Retrying 422 again in 2 s",
    ],
    [
      "was answered too late",
      {
        status: "completed",
        attempts: 1,
        result: aResult(),
        lateResult: { ...aResult(), run: 1, attempt: 1, responseCode: 201, at: NOON },
      },
      "Completed 200 The target answered 201 to attempt 1, after it was closed as unknown.",
    ],
    [
      "broke off in its answer",
      {
        status: "failed",
        attempts: 1,
        result: aResult({ responseCode: null, lastError: "Closed.", errorSource: "dispatch", responseBody: '"Done."' }),
      },
      "Failed Closed.",
    ],
    ["was rejected", { status: "cancelled" }, "Cancelled"],
    ["waits for its time", scheduled(), "Scheduled starts in 1 min"],
  ])("where it %s", (_what, action, text) => {
    expect(outcome(action)).toBe(text);
  });

  test("names the request, who decided, and hides secrets", () => {
    const event: TimelineEvent = { type: "approved", actor: "user:ann@example.com", reason: null };
    const body = '{"message":"Bad key ghp_a1b2C3d4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}';
    const stored = anAction({
      status: "failed",
      title: "Pay <i>",
      result: aResult({ responseCode: 401, responseBody: body }),
    });
    const action = maskAction(stored, "decider");
    const timeline = [{ seq: 1, at: NOON, run: 1, status: "pending", event } as const];
    const row = renderPart(decidedRow({ action, timeline, grant: null, receiptUrl: "/r/1" }, NOON));
    expect(wordsIn(row)).toStartWith("Pay &lt;i&gt; Approved by ann@example.com");
    expect(row).toContain("Failed 401");
    expect(row).not.toContain("a1b2C3");
  });
});

function scheduled(): Partial<Action> {
  const at = later(60_000);
  return { status: "pending", dueAt: at, extras: { runAt: at.getTime() } };
}
