import { expect, test } from "bun:test";
import type { Action } from "../../src/actions/action.ts";
import { type OutcomeKind, statusSentence } from "../../src/actions/outcome.ts";
import type { TimelineEvent } from "../../src/actions/timeline.ts";
import { receiptPage } from "../../src/pages/receipt.tsx";
import { anAction, later, NOON } from "../support/factory.ts";

/** As it was opened. */
const READ = { now: NOON, reload: null } as const;

const shownOf = (event: TimelineEvent) =>
  receiptPage({
    action: anAction(),
    timeline: [{ seq: 1, at: NOON, run: 1, status: "pending", event }],
    ...READ,
  })
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ");

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

const attempt = (error: string, code: number | null, outcome: OutcomeKind = "answered") =>
  shownOf({
    type: "attempt",
    attempt: 1,
    outcome,
    response_code: code,
    error,
    duration_ms: 2,
    location: null,
    next_retry_at: null,
  });

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
  const textOf = (action: Action) => receiptPage({ action, timeline: [], ...READ }).replaceAll(/\s+/g, " ");
  const held = anAction({ status: "awaiting_approval", approve: true });
  expect(textOf(held)).toContain("To decide, log in to Outgate.");
  const mailed = textOf({ ...held, notifyEmail: "ann@example.com" });
  expect(mailed).toContain(
    "To decide, log in to Outgate, or use the links in the approval email, which work for 7 days.",
  );
  expect(mailed).toContain(`href="/approvals/${held.id}">Log in to decide</a>`);
  expect(mailed).not.toContain("ann@example.com");
  expect(textOf(anAction())).not.toContain("To decide");
});
