import { expect, test } from "bun:test";
import type { Happening } from "../../src/domain/timeline.ts";
import { receiptPage } from "../../src/web/receipt.tsx";
import { anAction, later, NOON } from "../support/factory.ts";

const shownOf = (happening: Happening) =>
  receiptPage({
    action: anAction(),
    timeline: [{ seq: 1, at: NOON, run: 1, status: "pending", happening }],
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
    /Approval mail not sent .*No mail was sent: it was decided before\./,
  );
  const told = { delivered: true, attempts: 1, error: null, next_retry_at: null };
  const answer = shownOf({ type: "mail", event: "decided", ...told });
  expect(answer).toContain("Mail about the decision delivered");
  expect(answer).not.toContain("Next attempt");
});
