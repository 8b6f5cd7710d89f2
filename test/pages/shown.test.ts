import { describe, expect, test } from "bun:test";
import { approvalMessage } from "../../src/mail/messages.ts";
import { notificationsPage } from "../../src/pages/notifications.tsx";
import { responseText } from "../../src/pages/response.tsx";
import { confirmOf, inboxOf, receiptOf, requestPageOf } from "./inbox-page.ts";
import { textOf } from "../support/forms.ts";
import { anAction, NOON } from "../support/factory.ts";
import { anApprovalMail, maskedMail } from "../mail/message.ts";

const user = { email: "ann@example.com", role: "owner", hasOthers: false, formToken: "t" } as const;

test("every page shows the host in its ASCII form, and no fragment", () => {
  const url = "https://exаmple.com/pay/../admin?x=1#approved-by-your-boss";
  const host = "xn--exmple-4nf.com";
  const action = anAction({ url, host, hostname: host, approve: true });
  const pages = [receiptOf(action), confirmOf(action), requestPageOf(action), inboxOf([action])];
  for (const page of pages) {
    const text = page.replaceAll(/<style>.*?<\/style>|<[^>]+>/gs, "");
    expect(text).toContain(host);
    expect(text).toContain("/admin?x=1");
    for (const other of ["exаmple", "/pay/", "approved-by-your-boss"]) expect(text).not.toContain(other);
  }
});

test("a yes that came through an agent's client says so, on the receipt", () => {
  const event = { type: "approved", actor: "mcp:agent", reason: null, via: "elicitation" } as const;
  const entry = { seq: 1, at: NOON, run: 1, status: "pending", event } as const;
  const page = receiptOf(anAction(), [entry]);
  expect(page.replaceAll(/<[^>]+>/g, "")).toContain("Approved by agent over MCP");
  expect(page).toContain("The client reports that it asked its user.");
});

test("whoever decides on a run that was begun again is not told that nothing was ever sent", () => {
  const decides = (run: number) => {
    // Each run before was approved, sent and retried.
    const action = anAction({ status: "awaiting_approval", approve: true, run, revision: 4 * run - 3 });
    const email = approvalMessage(maskedMail({ ...anApprovalMail(action), run }), "confirm");
    return [confirmOf(action), requestPageOf(action), email.html, email.text];
  };
  for (const page of decides(1)) expect(page).toContain("Nothing has been sent.");
  for (const page of decides(2)) {
    expect(page).toContain("Nothing has been sent in run 2; the target may have received it in an earlier run.");
    expect(page).not.toContain("Nothing has been sent.");
  }
  const again = anAction({ status: "awaiting_approval", approve: true, run: 2, revision: 5 });
  const inbox = inboxOf([again]);
  expect(inbox).toContain("Nothing has been sent in run 2;");
  expect(receiptOf({ ...again, run: 1 })).toContain("It has not been sent. ");
  expect(receiptOf(again)).toContain(
    "It has not been sent in run 2; the target may have received it in an earlier run.",
  );
});

test("whoever decides on a request with a callback reads where news of it goes, and not that nothing was sent", () => {
  const callback = "https://hooks.example.com/news";
  const action = anAction({ status: "awaiting_approval", approve: true, callback });
  const email = approvalMessage(maskedMail(anApprovalMail(action)), "confirm");
  const inbox = inboxOf([action]);
  const pages = [confirmOf(action), requestPageOf(action)];
  for (const page of [...pages, inbox, email.html, email.text]) {
    expect(page).toContain("The request has not been sent. Its callback is notified");
    expect(page).toContain("Its callback goes to another host: hooks.example.com.");
    expect(page).toContain("hooks.example.com");
    expect(page).toContain("/news");
  }
  // The path may be a secret, and whoever has the receipt's link is anybody.
  expect(receiptOf(action)).not.toContain("/news");
});

test("what was rejected was not always by a person: an agent may take its own request back", () => {
  const event = { type: "rejected", actor: "key:agent", reason: null } as const;
  const entry = { seq: 1, at: NOON, run: 1, status: "cancelled", event } as const;
  const page = textOf(receiptOf(anAction({ status: "cancelled" }), [entry]));
  expect(page).toContain("Rejected by agent over the API . It was not sent.");
});

test("a mail about a decision is not listed as one that asks for it", () => {
  const message = { kind: "mail", event: "decided", target: "ann@example.com" } as const;
  const times = { createdAt: NOON, dueAt: null };
  const entry = {
    id: "1",
    actionId: "act_1",
    message,
    status: "delivered",
    attempts: 1,
    lastError: null,
    ...times,
  } as const;
  const page = notificationsPage({ user, entries: [entry], before: null, channels: new Map(), now: NOON });
  expect(page).toContain("Decision email");
  expect(page).not.toContain("Approval email");
});

describe("an answer", () => {
  test("of JSON is set out, as it was written", () => {
    expect(responseText('{"n":1.0,"big":12345678901234567890}')).toEqual({
      kind: "JSON",
      text: '{\n  "n": 1.0,\n  "big": 12345678901234567890\n}',
    });
  });

  test("of text is that text, and no JSON of it", () => {
    expect(responseText(JSON.stringify('a "b"\n\u202e'))).toEqual({ kind: "Text", text: 'a "b"\n\u202e' });
  });

  test("of bytes is not shown", () => {
    expect(responseText('{"encoding":"base64","data":"AAAA"}')).toEqual({ kind: "Bytes", text: null });
    expect(receiptOf(withAnswer('{"encoding":"base64","data":"AAAA"}'))).toContain("Binary content is not shown.");
  });

  test("that was cut says so, and one without a body too", () => {
    expect(receiptOf(withAnswer('"x"', true))).toContain("longer than the limit");
    expect(receiptOf(withAnswer(null))).toContain("The response had no body.");
  });
});

function withAnswer(responseBody: string | null, responseTruncated = false) {
  const answer = { lastError: null, errorSource: null, responseCode: 200, responseHeaders: null, durationMs: 41 };
  return anAction({ status: "completed", attempts: 1, result: { ...answer, responseBody, responseTruncated } });
}
