import { hiddenIn, pressLink } from "../support/forms.ts";
import { describe, expect, test } from "bun:test";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import { pageHeaders } from "../../src/http/response.ts";
import { SHEET_STYLE } from "../../src/ui/sheet-style.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { shared } from "../support/shared.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

const DAY_MS = 86_400_000;

const app = await shared(openRealServer());

/** A held action with the two links of its mail. */
async function held(server: RealServer = app, members: object = {}) {
  const request = {
    url: "http://127.0.0.1:9/refunds",
    approve: true,
    notify: { email: "ann@example.com" },
    body: { amount: 5 },
    ...members,
  };
  const { json } = await server.call("POST", "/v1/actions", request);
  const { receipt_url: receipt } = (await server.call("GET", `/v1/actions/${json.id}`)).json;
  return { id: json.id, receipt, ...(await server.linksOf(json.id)) };
}

const context = (path: string, init: RequestInit = {}, server: RealServer = app) =>
  fetch(server.url + path, { redirect: "manual", ...init });

const press = (path: string, fields: Readonly<Record<string, string>>, headers?: Readonly<Record<string, string>>) =>
  pressLink(app.url + path, fields, headers);

const statusOf = async (id: string, { engine }: RealServer = app) => (await engine.get(id)).status;

const lastOf = async (id: string, { engine }: RealServer = app): Promise<TimelineEvent | undefined> =>
  (await engine.events(id)).findLast(({ type }) => type === "approved" || type === "rejected");

function leadsTo(response: Response, receipt: string): void {
  expect({ status: response.status, to: response.headers.get("location") }).toEqual({ status: 303, to: receipt });
}

/** To the receipt that says: what was pressed did not count. */
const leadsToLate = (response: Response, receipt: string) => leadsTo(response, `${receipt}?late=1`);

describe("an approval link", () => {
  test("shows the exact request and two buttons, whichever of the two it is, and changes nothing", async () => {
    const { id, approve, reject } = await held(app, {
      method: "PATCH",
      url: "http://127.0.0.1:9/refunds/7?reason=x&token=canary-queryx9Kq2Lm8Vb3Zt7Rw",
      headers: { Authorization: "Bearer canary-headerx9Kq2Lm8Vb3Zt7Rw", Accept: "text/plain" },
      body: { amount: 12.5, note: "</pre><b>", password: "canary-bodyx9Kq2Lm8Vb3Zt7Rw" },
    });
    const before = await app.engine.get(id);
    for (const path of [approve, reject]) {
      const response = await context(path);
      expect(response.status).toBe(200);
      const html = await response.text();
      // An address may break there.
      const unbroken = html.replaceAll(/<wbr\/>/g, "");
      const text = unbroken.replaceAll(/<style>.*?<\/style>|<[^>]+>/gs, " ").replaceAll(/\s+/g, " ");
      for (const seen of ["PATCH", "127.0.0.1:9", "/refunds/7?reason=x&amp;token=••••(", "owner", "Authorization"]) {
        expect(text).toContain(seen);
      }
      expect(text).toContain("…t7Rw)");
      expect(text).toMatch(/&quot;amount&quot;[:\s]+12\.5/);
      expect(html).toContain("&lt;/pre&gt;&lt;b&gt;");
      expect(html).not.toContain("canary");
      expect(html.match(/<button[^>]*name="decision"[^>]*>/g)).toHaveLength(2);
      expect((await context(path, { method: "HEAD" })).status).toBe(200);
    }
    expect(await app.engine.get(id)).toEqual(before);
  });

  test("has the headers of an approval page, with GET and HEAD, and no script", async () => {
    const { approve } = await held();
    for (const method of ["GET", "HEAD"]) {
      expect(Object.fromEntries((await context(approve, { method })).headers)).toMatchObject({
        ...pageHeaders("approval"),
        "content-security-policy":
          `default-src 'none'; style-src 'sha256-${SHEET_STYLE.sha256}'; img-src data:; base-uri 'none'; ` +
          "frame-ancestors 'none'; form-action 'self'",
      });
    }
    expect(await (await context(approve)).text()).not.toMatch(/<script|\son\w+=/i);
  });

  test.each([
    ["approve", "approve", "pending", "approved"],
    ["reject", "reject", "cancelled", "rejected"],
    ["approve", "reject", "cancelled", "rejected"],
    ["reject", "approve", "pending", "approved"],
  ] as const)("to %s, with %s pressed, decides and leads to the receipt", async (link, decision, status, type) => {
    const { id, receipt, ...links } = await held();
    leadsTo(await press(links[link], { decision, reason: "Checked.\r\nTwice. " }), receipt);
    // It may have been sent by now, and failed: nothing listens there.
    const { approvedBy } = await app.engine.get(id);
    expect(approvedBy).toBe(decision === "approve" ? "email:ann@example.com" : null);
    if (status === "cancelled") expect(await statusOf(id)).toBe("cancelled");
    expect(await lastOf(id)).toEqual({ type, actor: "email:ann@example.com", reason: "Checked.\nTwice." });
  });

  test("decides once: afterwards both lead to the receipt, and what is pressed late changes nothing and says so", async () => {
    const { id, receipt, approve, reject } = await held();
    const shown = hiddenIn(await (await context(approve)).text());
    await press(reject, { decision: "reject", reason: "" });
    for (const path of [approve, reject]) {
      leadsTo(await context(path), receipt);
      leadsToLate(await press(path, { decision: "approve" }), receipt);
      leadsTo(await press(path, { decision: "reject" }), receipt);
      const body = new URLSearchParams({ ...shown, decision: "approve" });
      leadsToLate(await context(path, { method: "POST", body }), receipt);
    }
    expect(await (await context(`${receipt}?late=1`)).text()).toContain("Your decision did not count");
    expect(await (await context(receipt)).text()).not.toContain("Your decision did not count");
    expect(await statusOf(id)).toBe("cancelled");
    expect(await lastOf(id)).toEqual({ type: "rejected", actor: "email:ann@example.com", reason: null });
  });

  test("is over after seven days, not before", async () => {
    await using other = await openRealServer();
    const { id, receipt, approve, reject } = await held(other);
    other.engine.clock.advance(7 * DAY_MS - 1);
    expect((await context(approve, {}, other)).status).toBe(200);
    other.engine.clock.advance(1);
    for (const path of [approve, reject]) {
      leadsTo(await context(path, {}, other), receipt);
      const body = "decision=approve";
      leadsToLate(await context(path, { method: "POST", headers: FORM, body }, other), receipt);
    }
    expect(await statusOf(id, other)).toBe("awaiting_approval");
  });

  test("says that it ends with its action, where that ends earlier", async () => {
    const until = new Date(app.engine.clock.now().getTime() + DAY_MS).toISOString();
    const { approve } = await held(app, { expires_at: until });
    expect(await (await context(approve)).text()).toMatch(
      new RegExp(`expires at <time datetime="${until.slice(0, 19)}`),
    );
  });

  test("of the run before a retry is dead, also while the new run is held", async () => {
    const { id, receipt, approve, reject } = await held();
    await app.call("POST", `/v1/actions/${id}/cancel`);
    await app.call("POST", `/v1/actions/${id}/retry`);
    expect(await statusOf(id)).toBe("awaiting_approval");
    for (const path of [approve, reject]) {
      leadsTo(await context(path), receipt);
      leadsToLate(await press(path, { decision: "approve" }), receipt);
      leadsToLate(await press(path, { decision: "reject" }), receipt);
    }
    expect(await statusOf(id)).toBe("awaiting_approval");
    const fresh = await app.linksOf(id);
    expect((await context(fresh.approve)).status).toBe(200);
    leadsTo(await press(fresh.approve, { decision: "reject" }), receipt);
    expect(await statusOf(id)).toBe("cancelled");
  });

  test("says no only to what is held: one that was approved meanwhile goes its way", async () => {
    await using other = await openRealServer({ starts: false });
    const { id, approve } = await held(other);
    const { followLink } = other;
    const [yes, no] = await Promise.all([
      other.engine.actionService.approve(other.engine.owner, id, null),
      followLink.decide(approve.slice(3), { decision: "reject", reason: null, shown: null, client: "" }),
    ]);
    expect(yes.status).toBe("pending");
    expect(no).toMatchObject({ isLive: false, action: { status: "pending" } });
  });

  test("needs a decision, and keeps what was typed where the reason is too long", async () => {
    const { id, approve } = await held();
    for (const fields of [{}, { decision: "" }, { decision: "Approve" }, { decision: "cancel" }]) {
      const response = await press(approve, fields);
      expect(response.status).toBe(400);
      expect(await response.text()).toContain("Must be approve or reject.");
    }
    const long = await press(approve, { decision: "reject", reason: `<i>${"x".repeat(1_001)}` });
    expect(long.status).toBe(400);
    expect(await long.text()).toContain(`&lt;i&gt;${"x".repeat(1_001)}</textarea>`);
    const json = { method: "POST", headers: { "content-type": "application/json" }, body: '{"decision":"approve"}' };
    expect((await context(approve, json)).status).toBe(400);
    expect(await statusOf(id)).toBe("awaiting_approval");
  });

  test("needs no cookie and no key: whoever has it decides", async () => {
    const { receipt, approve } = await held();
    leadsTo(await press(approve, { decision: "reject" }, { cookie: "outgate_session=x", authorization: "x" }), receipt);
  });

  // From which pages: csrf.test.ts.
  test("is not pressed from another site, and is from its own page, which has no referrer", async () => {
    const { id, receipt, approve } = await held();
    const foreign = { origin: "null", "sec-fetch-site": "cross-site", accept: "text/html" };
    const response = await press(approve, { decision: "approve" }, foreign);
    expect(response.status).toBe(403);
    expect(await response.text()).toContain("Not allowed");
    expect(await statusOf(id)).toBe("awaiting_approval");
    const own = { origin: "null", "sec-fetch-site": "same-origin" };
    leadsTo(await press(approve, { decision: "reject" }, own), receipt);
  });
});

const server = await shared(openRealServer({ approvalLinks: "one_click" }));

describe("with APPROVAL_LINKS=one_click", () => {
  test.each([
    ["approve", "approved"],
    ["reject", "rejected"],
  ] as const)("opening the link to %s resolves and leads to the receipt", async (link, type) => {
    const { id, receipt, ...links } = await held(server);
    leadsTo(await context(links[link], {}, server), receipt);
    expect(await lastOf(id, server)).toEqual({ type, actor: "email:ann@example.com", reason: null });
  });

  test("only the first of both decides", async () => {
    const { id, receipt, approve, reject } = await held(server);
    for (const path of [reject, approve, reject]) leadsTo(await context(path, {}, server), receipt);
    expect(await statusOf(id, server)).toBe("cancelled");
  });

  test.each([
    ["HEAD", { method: "HEAD" }],
    ["a prefetch", { headers: { "sec-purpose": "prefetch" } }],
    ["a prerender", { headers: { "sec-purpose": "prefetch;prerender" } }],
    ["a prefetch of older browsers", { headers: { purpose: "prefetch" } }],
    ["a prefetch of Firefox", { headers: { "x-moz": "prefetch" } }],
    ["a preview that a script reads", { headers: { "sec-fetch-dest": "empty" } }],
    ["a post without a decision", { method: "POST", headers: FORM, body: "" }],
  ] as const)("%s decides nothing", async (_what, init) => {
    const { id, approve, reject } = await held(server);
    for (const path of [approve, reject]) expect((await context(path, init, server)).status).not.toBe(303);
    expect(await statusOf(id, server)).toBe("awaiting_approval");
  });

  test("a post decides as it does when links ask first", async () => {
    const { id, receipt, approve } = await held(server);
    const shown = hiddenIn(await (await context(approve, { headers: { purpose: "prefetch" } }, server)).text());
    const body = new URLSearchParams({ ...shown, decision: "reject", reason: "no" });
    leadsTo(await context(approve, { method: "POST", body }, server), receipt);
    expect(await lastOf(id, server)).toMatchObject({ type: "rejected", reason: "no" });
  });
});
