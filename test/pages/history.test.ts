import { expect, test } from "bun:test";
import type { Action, ActionStatus } from "../../src/core/action.ts";
import { type OutcomeKind, statusSentence } from "../../src/core/outcome.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import { anAction, anAttempt, later, NOON } from "../support/factory.ts";
import { textOf } from "../support/forms.ts";
import { receiptOf } from "./inbox-page.ts";

const shownOf = (event: TimelineEvent) =>
  textOf(receiptOf(anAction(), [{ seq: 1, at: NOON, run: 1, status: "pending", event }]));

const FAILED = {
  delivered: false,
  attempts: 2,
  error: "The target refused the connection.",
  next_retry_at: later(30_000).toISOString(),
};

test("a receipt tells of callbacks and mails, and when the next attempt is", () => {
  const callback = shownOf({ type: "callback", event: "action.failed", ...FAILED });
  expect(callback).toContain("Callback action.failed not delivered yet");
  expect(callback).toContain("The target refused the connection.");
  expect(callback).toContain("Next attempt: 12:00:30 UTC");
  const error = "No mail was sent: it was decided before.";
  const withheld = { delivered: false, attempts: 0, error, next_retry_at: null };
  expect(shownOf({ type: "mail", event: "approval", ...withheld })).toMatch(
    /Approval email not sent .*No mail was sent: it was decided before\./,
  );
  const told = { delivered: true, attempts: 1, error: null, next_retry_at: null };
  const answer = shownOf({ type: "mail", event: "decided", ...told });
  expect(answer).toContain("Decision email delivered");
  expect(answer).not.toContain("Next attempt");
});

test("a reason of several lines has them where it is read, each after a mark", () => {
  const shown = receiptOf(anAction(), [
    {
      seq: 1,
      at: NOON,
      run: 1,
      status: "cancelled",
      event: { type: "rejected", actor: "key:k", reason: "No.\nAsk Ann." },
    },
  ]);
  expect(shown).toContain('No.<span class="quiet"> ↵</span><br/>Ask Ann.');
});

const attempt = (error: string, code: number | null, outcome: OutcomeKind = "answered") =>
  shownOf(anAttempt(1, { outcome, response_code: code, error, duration_ms: 2 }));

test("what a target answered is said once; what else there is to know of it stands below", () => {
  const plain = attempt(statusSentence(503), 503);
  expect(plain).toContain("Attempt 1: answered 503 in 2 ms");
  expect(plain).not.toContain(statusSentence(503));
  const redirect = "The target answered with a redirect (302); redirects are never followed.";
  expect(attempt(redirect, 302)).toContain(redirect);
  const closed = "The target closed the connection before the whole answer came.";
  expect(attempt(closed, 200)).toContain(closed);
  const late = "The target did not answer within 30 seconds.";
  expect(attempt(late, null, "unknown")).toContain(late);
});

test("a receipt of what is held says where it is decided: a link of the mail leads to it once its days are over", () => {
  const pageOf = (action: Action) => receiptOf(action).replaceAll(/\s+/g, " ");
  const held = anAction({ status: "awaiting_approval", approve: true });
  expect(pageOf(held)).toContain("To decide, log in to Outgate.");
  const mailed = pageOf({ ...held, notifyEmail: "ann@example.com" });
  expect(mailed).toContain(
    "To decide, log in to Outgate, or use the links in the approval email, which work for 7 days.",
  );
  expect(mailed).toContain(`href="/approvals/${held.id}">Log in to decide</a>`);
  expect(mailed).not.toContain("ann@example.com");
  expect(pageOf(anAction())).not.toContain("To decide");
});

test("a receipt has the title as its headline in quotation marks, and the call below it", () => {
  const of = (title: string | null) => receiptOf(anAction({ title }));
  expect(of("Refund <1>")).toContain(
    '<p class="quiet small">Requester says:</p><h1><q class="title"><bdi class="untrusted">Refund &lt;1&gt;</bdi></q></h1><p class="paper-call"><b class="method">POST',
  );
  expect(of(null)).toContain('<h1 class="paper-call"><b class="method">POST');
});

test.each([
  ["completed", 201, "Delivered 201"],
  ["failed", 422, "Failed 422"],
  ["failed", null, "Failed"],
  ["cancelled", 503, "Cancelled"],
] as const)("the receipt of a %s action with the answer %p has a stamp: %s, and when", (status, code, words) => {
  const response = { responseCode: code, responseBody: null, responseTruncated: false, responseHeaders: null };
  const result = { ...response, durationMs: 5, lastError: null, errorSource: null };
  const action = anAction({ status, result, finishedAt: later(60_000) });
  const text = textOf(receiptOf(action));
  expect(text).toContain(`Receipt ${words} 4 Mar 2026, 12:01:00 UTC`);
});

test("the receipt of what has not ended has its status and no stamp", () => {
  const html = receiptOf(anAction({ status: "awaiting_approval" }));
  expect(html).not.toContain('class="stamp');
  expect(textOf(html)).toContain("Receipt Awaiting approval");
});

test("a receipt draws the attempts on an axis of time, and links none of them", () => {
  const made = { outcome: "answered", duration_ms: 41, location: null } as const;
  const row = (seq: number, status: ActionStatus, event: TimelineEvent) => {
    return { seq, at: later(seq * 1_000), run: 1, status, event };
  };
  const html = receiptOf(anAction({ status: "completed", attempts: 2, finishedAt: later(4_000) }), [
    row(0, "pending", { type: "created", actor: "key:billing" }),
    row(1, "active", { type: "started" }),
    row(2, "pending", {
      type: "attempt",
      attempt: 1,
      response_code: 503,
      error: "No.",
      next_retry_at: null,
      ...made,
    }),
    row(3, "active", { type: "started" }),
    row(4, "completed", {
      type: "attempt",
      attempt: 2,
      response_code: 200,
      error: null,
      next_retry_at: null,
      ...made,
    }),
  ]);
  expect(textOf(html)).toContain("Attempt 1 503 Waiting to be sent: 1 s Failed attempt: 1 s 41 ms Attempt 2 200");
  expect(html.match(/class="lane-bars"/g)).toHaveLength(2);
  expect(html).not.toContain('<a class="lane"');
});

test("an address ends its lines after slashes, and not at hyphens of its path", () => {
  const url = "https://a.example/v1/4711/credit-notes/x?limit=5&sort-by=a";
  const html = receiptOf(anAction({ url, host: "a.example" }));
  expect(html).toContain('/v1/<wbr/>4711/<span class="segment">credit-notes/</span>x?limit=5&amp;sort-by=a');
});
