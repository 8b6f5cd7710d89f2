import { seeWhole } from "../../src/receipts/see.ts";
import { describe, expect, test } from "bun:test";
import { BODY_BEGINNING_LINES_MAX } from "../../src/core/limits.ts";
import type { Action } from "../../src/core/action.ts";
import { encodeForm } from "../../src/core/body.ts";
import { approvalMessage } from "../../src/mail/messages.ts";
import { revealedPage } from "../../src/pages/action/action.tsx";
import { bodyLines, shownBody } from "../../src/ui/body-view.tsx";
import { createCodeSamples } from "../../src/actions/as-code.ts";
import { anApprovalMail, maskedMail } from "../mail/message.ts";
import { anAction, NOON } from "../support/factory.ts";
import { ANN, confirmOf, inboxOf, receiptOf, requestPageOf } from "./inbox-page.ts";
import { notificationsPage } from "../../src/pages/settings/notifications.tsx";
import { responseText } from "../../src/pages/action/response.tsx";
import { textOf } from "../support/forms.ts";

const held = (action: Partial<Action>) => anAction({ approve: true, status: "awaiting_approval", ...action });

const form = (pairs: readonly (readonly [string, string])[]): Partial<Action> => ({
  body: encodeForm(pairs),
  extras: { bodyKind: "form" },
});

const bytes = (body: string | Uint8Array): Partial<Action> => ({
  body: Buffer.from(body).toString("base64"),
  extras: { bodyKind: "base64" },
});

const inbox = (action: Action) => inboxOf([action]);

const revealed = (action: Action) => revealedPage(seeWhole(action), "2:00", ANN);

/** Every place where somebody decides on a page. */
const decides = (action: Partial<Action>) => {
  const one = held(action);
  return [inbox(one), requestPageOf(one)];
};

describe("a form", () => {
  test("is a table of its fields, and markup in it is text", () => {
    const action = form([
      ["amount", "1200"],
      ["<b>", "</td><script>x</script>\u202e\nMethod: GET"],
    ]);
    for (const page of decides(action)) {
      expect(page).toContain("Fields of the form");
      expect(page).not.toContain("<script>x");
      expect(textOf(page)).toContain("amount 1200 &lt;b&gt; &lt;/td&gt;&lt;script&gt;x&lt;/script&gt;");
      // A line break in a value is no line of the page.
      expect(page).toContain("U+000A");
    }
  });

  test("that is long is cut in the inbox, which the button says", () => {
    const long = held(form(Array.from({ length: BODY_BEGINNING_LINES_MAX + 8 }, (_, at) => [`f${at}`, "x"] as const)));
    const page = textOf(inbox(long));
    expect(page).toContain("8 more fields not shown.");
    expect(page).toContain("Approve , with 8 more fields not shown");
    expect(textOf(requestPageOf(long))).toContain(`f${BODY_BEGINNING_LINES_MAX + 7} x`);
  });
});

test("the end of a long list is loaded when asked for wherever somebody decides, and the button says how much that is", () => {
  const rows = Array.from({ length: 240 }, (_, at) => ({ id: `row-${at}` }));
  const one = held({ body: JSON.stringify({ rows, dry: false }), extras: { bodyKind: "json" } });
  const link = confirmOf(one);
  const pages = { [inbox(one)]: "/actions", [requestPageOf(one)]: "/actions", [link]: "/a/x" };
  for (const [page, begin] of Object.entries(pages)) {
    expect(textOf(page)).toMatch(/Approve , with 220 folded/);
    expect(page).toContain("&quot;row-19&quot;");
    expect(page).not.toContain("row-20");
    expect(page).toMatch(new RegExp(`href="${begin}[^"]*/body"`));
    expect(textOf(page)).toContain("220 more items");
    expect(textOf(page)).toContain("&quot;dry&quot; : false");
    expect(textOf(page)).not.toContain("not shown");
  }
  // Where secrets are shown nothing is loaded: all of it is on the page, closed.
  const whole = revealed(one);
  expect(textOf(whole)).toMatch(/Approve , with 220 folded/);
  for (const { id } of rows) expect(whole).toContain(`&quot;${id}&quot;`);
  const few = held({ body: JSON.stringify(rows.slice(0, 20)) });
  expect(requestPageOf(few)).not.toContain("folded");
});

test("of a body beyond 20 KB its page has the beginning, says in the button what is left out, and where it is", () => {
  const lines = Array.from({ length: 900 }, (_, at) => `line ${at} of a long text`);
  const bodies: readonly Partial<Action>[] = [
    { body: lines.join("\n"), extras: { bodyKind: "text" } },
    { body: JSON.stringify({ note: lines.join(" ") }) },
    { body: JSON.stringify(Array.from({ length: 9_000 }, (_, at) => at)) },
    form(lines.map((line, at) => [`f${at}`, line])),
  ];
  for (const body of bodies) {
    const one = held(body);
    const link = confirmOf(one);
    for (const page of [requestPageOf(one), link]) {
      const style = page.indexOf("</style>") === -1 ? 0 : page.indexOf("</style>");
      expect(page.length - style).toBeLessThan(40_000);
      expect(textOf(page)).toMatch(/Approve , with (?:[\d,]+ (?:more )?\w+.* not shown|\d+ folded)/);
      expect(page).toMatch(/href="[^"]*\/body[?"]/);
    }
  }
});

test("a text is shown as it is, and not as JSON", () => {
  for (const page of decides({ body: '{"a" :1}\n<b>', extras: { bodyKind: "text" } })) {
    expect(page).toContain("{&quot;a&quot; :1}\n&lt;b&gt;");
    expect(textOf(page)).toContain("Text, 12 bytes, text/plain; charset=utf-8");
  }
});

describe("bytes", () => {
  test("are shown as text where they are one, and otherwise by size and type", () => {
    for (const page of decides(bytes("a text"))) expect(textOf(page)).toContain("a text");
    for (const page of decides(bytes(new Uint8Array([255, 254])))) {
      expect(textOf(page)).toContain("Bytes, 2 bytes, application/octet-stream");
      expect(textOf(page)).toContain("1 value hidden");
      expect(page).not.toContain("//4=");
    }
    expect(textOf(inbox(held(bytes(new Uint8Array([255, 254])))))).toContain("Approve , with 2 bytes not shown");
  });

  test("are whole where secrets are shown", () => {
    expect(revealed(held(bytes(new Uint8Array([255, 254]))))).toContain("//4=");
    expect(textOf(revealed(held(bytes("x".repeat(9_000)))))).toContain("x".repeat(9_000));
  });

  test("are not on the receipt", () => {
    const page = receiptOf(anAction(bytes("a text")));
    expect(page).not.toMatch(/a text|YSB0ZXh0/);
    expect(textOf(page)).toContain("Bytes, 6 bytes");
  });
});

test("a mail quotes each field on a line of its own", () => {
  const action = form([
    ["a", "one\nMethod: GET"],
    ["b", "2"],
  ]);
  const { text } = approvalMessage(maskedMail(anApprovalMail({ ...action, title: "Pay\u202eAnn" })), "confirm");
  expect(text).toContain("Body (Form, 2 fields, 25 bytes):\n| a: one<U+000A>Method: GET\n| b: 2\n");
  expect(text).toContain("The requester says:\n| Pay<U+202E>Ann\n");
  expect(bodyLines(shownBody(seeWhole(anAction(form([])))) ?? { kind: "", fields: null, text: null, rest: null })).toBe(
    "",
  );
});

test("a title is somebody's words on the receipt and in the list, and metadata is not on the receipt", () => {
  const action = anAction({ title: "<b>Pay</b> Ann", extras: { metadata: { order: "order-4711" } } });
  const receipt = receiptOf(action);
  expect(textOf(receipt)).toContain("Requester says: &lt;b&gt;Pay&lt;/b&gt; Ann");
  expect(receipt).not.toContain("order-4711");
});

test("code that creates the request again has the body under its name", () => {
  const action = anAction({
    ...form([
      ["2", "b"],
      ["1", "a"],
    ]),
    title: "Pay Ann",
  });
  const [curl] = createCodeSamples(seeWhole(action), "http://127.0.0.1:3000") ?? [];
  expect(curl?.text.replaceAll(/\s+/g, "")).toContain('"form":{"2":"b","1":"a"},"title":"PayAnn"');
});

test("every page shows the host in its ASCII form, and no fragment", () => {
  const url = "https://exаmple.com/pay/../admin?x=1#approved-by-your-boss";
  const host = "xn--exmple-4nf.com";
  const action = anAction({ url, host, hostname: host, approve: true });
  const pages = [receiptOf(action), confirmOf(action), requestPageOf(action), inbox(action)];
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
  const asksFor = (run: number) => {
    // Each run before was approved, sent and retried.
    const action = anAction({ status: "awaiting_approval", approve: true, run, revision: 4 * run - 3 });
    const email = approvalMessage(maskedMail({ ...anApprovalMail(action), run }), "confirm");
    return [confirmOf(action), requestPageOf(action), email.html, email.text];
  };
  for (const page of asksFor(1)) expect(page).toContain("Nothing has been sent.");
  for (const page of asksFor(2)) {
    expect(page).toContain("Nothing has been sent in run 2; the target may have received it in an earlier run.");
    expect(page).not.toContain("Nothing has been sent.");
  }
  const again = anAction({ status: "awaiting_approval", approve: true, run: 2, revision: 5 });
  expect(inbox(again)).toContain("Nothing has been sent in run 2;");
  expect(receiptOf({ ...again, run: 1 })).toContain("It has not been sent. ");
  expect(receiptOf(again)).toContain(
    "It has not been sent in run 2; the target may have received it in an earlier run.",
  );
});

test("whoever decides on a request with a callback reads where news of it goes, and not that nothing was sent", () => {
  const callback = "https://hooks.example.com/news";
  const action = anAction({ status: "awaiting_approval", approve: true, callback });
  const email = approvalMessage(maskedMail(anApprovalMail(action)), "confirm");
  const pages = [confirmOf(action), requestPageOf(action)];
  for (const page of [...pages, inbox(action), email.html, email.text]) {
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
  const page = notificationsPage({ user: ANN, entries: [entry], before: null, channels: new Map(), now: NOON });
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
