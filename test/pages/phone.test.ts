import { beforeAll, describe, expect, test } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { openRealServer } from "../http/real-server.ts";
import { joined, signedIn } from "../http/signed-in.ts";
import { HAS_BROWSER, watchPageIn } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";

const QUERY = `mutation Close($id: ID!, $note: String!) {
  closeTicket(id: $id, note: $note) {
    ticket { id status closedAt }
    errors { field message }
  }
}`;

/** What agents ask for most. */
const TYPICAL = {
  "a refund as JSON": {
    url: "https://api.stripe.com/v1/refunds",
    title: "Refund 12.00 EUR to customer 4711",
    reason: "Customer asked, order #1882",
    headers: { "Idempotency-Key": "k1" },
    body: { charge: "ch_3PsAbC", amount: 1200, currency: "eur", metadata: { order: "1882", agent: "billing" } },
  },
  "a mutation of GraphQL": {
    url: "https://acme.zendesk.com/graphql",
    reason: "Nightly sync",
    body: { query: QUERY, variables: { id: "991", note: "Solved by release 4.2." } },
  },
  "a form": {
    url: "https://api.twilio.com/2010-04-01/Accounts/AC123/Messages.json",
    title: "Text customer 4711 that the refund is on its way",
    form: { To: "+4915112345678", From: "+4930123456", Body: "Your refund of 12.00 EUR is on its way." },
  },
  "a call without a body": {
    url: "https://api.github.com/repos/acme/storefront-web/branches/feature-old-checkout",
    method: "DELETE",
    reason: "Merged three months ago",
  },
};

const app = await shared(openRealServer({ port: await freePort(), starts: false }));
const ann = await signedIn(app);

describe.skipIf(!HAS_BROWSER)("an approver with a phone", () => {
  const browser = useBrowser();
  let phone: BrowserContext;
  beforeAll(async () => {
    phone = await browser.chromium.newContext({
      viewport: { width: 375, height: 812 },
      hasTouch: true,
      isMobile: true,
    });
    await ann.enter(phone);
  });

  const held = async (request: object) =>
    (await app.call("POST", "/v1/actions", { ...request, approve: true })).json.id;

  async function openOn(path: string, height = 812) {
    const watched = await watchPageIn(phone);
    await watched.page.setViewportSize({ width: 375, height });
    await watched.page.goto(app.url + path);
    return watched;
  }

  test("fits, whoever reads it, also where a title has no place to break", async () => {
    const rita = await joined(app, "reader");
    const tablet = await browser.chromium.newContext({ viewport: { width: 375, height: 812 } });
    const title = "x".repeat(120);
    const id = await held({
      url: `https://api.example.com/${"p".repeat(200)}`,
      title,
      body: { ["k".repeat(120)]: title },
    });
    await rita.enter(tablet);
    const fits = async (path: string, width = 375) => {
      await using watched = await watchPageIn(tablet);
      await watched.page.setViewportSize({ width, height: 812 });
      await watched.page.goto(app.url + path);
      expect(await watched.page.evaluate("document.documentElement.scrollWidth"), path).toBe(width);
    };
    for (const path of ["/approvals", `/approvals/${id}`, "/actions", `/actions/${id}`]) await fits(path);
    await app.call("POST", `/v1/actions/${id}/cancel`, { reason: "Not before the customer has answered." });
    // A list beside nothing is a table on a small tablet.
    for (const width of [600, 700, 760, 900]) await fits("/actions", width);
    for (const path of [`/approvals?decided=${id}`, `/approvals/${id}`, `/actions/${id}`]) await fits(path);
    await tablet.close();
  });

  test("shows a list from its top, and in the row of its filters the one that is chosen", async () => {
    await app.call("POST", `/v1/actions/${await held({ url: "http://127.0.0.1:9/" })}/cancel`);
    await using watched = await openOn("/actions?status=cancelled", 256);
    const { x = -1, width = 0 } = (await watched.page.locator(".filter-links [aria-current]").boundingBox()) ?? {};
    expect([await watched.page.evaluate("scrollY"), x >= 0 && x + width <= 375]).toEqual([0, true]);
  });

  test.each(Object.entries(TYPICAL))("decides on %s with two taps and no scrolling", async (_name, request) => {
    const id = await held(request);
    await using watched = await openOn("/approvals");
    const { page } = watched;
    await page.locator(`#${id} .inbox-open`).tap();
    const approve = page.locator("#request button[value=approve]");
    await approve.waitFor();
    // All of it is in view, above the decision: nothing is "below".
    await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
    expect(await page.evaluate("scrollY")).toBe(0);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(375);
    expect(await page.locator("nav#navigation").isVisible()).toBe(false);
    await approve.tap();
    await page.waitForURL(/decided=/);
    expect(await app.engine.get(id)).toMatchObject({ status: "pending" });
    expect(watched.troubles).toEqual([]);
  });

  /** Where a part of the page begins and ends. */
  const edgesOf = async (page: Page, part: string) => {
    const { y = Number.NaN, height = Number.NaN } = (await page.locator(part).first().boundingBox()) ?? {};
    return { top: y, bottom: y + height };
  };

  test("has the body in the first half of a small screen and the buttons at its end, also by the link of a mail", async () => {
    const request = {
      url: "https://erp.northwind.example/api/suppliers/88/payments",
      title: "Pay supplier Acme Metals 1,840.00 EUR",
      reason: "The invoice total with VAT is 1,840.00.",
      callback: "https://app.northwind.example/hooks/outgate",
      headers: { Authorization: "Bearer x9Kq2Lm8Vb3Zt7Rw4Yp6" },
      body: { amount: 184_000, currency: "EUR", iban: "DE89370400440532013000", lines: Array.from({ length: 12 }) },
      notify: { email: "ann@example.com" },
    };
    const { owner, actionService } = app.engine;
    const id = await held(request);
    await actionService.cancel(owner, id, "The invoice shows 1,480.00, not 1,840.00. Check the amount.");
    const agent = { ...owner, role: "agent", scope: "account", actor: "key:agent" } as const;
    await actionService.retry(agent, id, "The invoice total with VAT is 1,840.00.");
    const { approve: link } = await app.linksOf(id);
    for (const path of [`/approvals/${id}`, link]) {
      await using watched = await openOn(path, 667);
      const { page } = watched;
      const body = await edgesOf(page, ".asked .json");
      expect(body.top).toBeLessThan(667 / 2);
      for (const button of ["approve", "reject"]) {
        const { top, bottom } = await edgesOf(page, `button[value=${button}]`);
        expect([top > 333, bottom <= 667]).toEqual([true, true]);
      }
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(375);
      // What is wrong comes before it, with the reason; what is only new does not ask for attention.
      const risks = page.locator(".asked > .risks > li");
      expect(await risks.allInnerTexts()).toEqual([
        "This same request was rejected once in 24 h, by owner: “The invoice shows 1,480.00, not 1,840.00. Check the amount.”",
        "Its callback goes to another host: app.northwind.example.",
      ]);
      expect(await page.locator(".asked .tag").innerText()).toBe("new host");
      const words = await page.locator(".asked").first().innerText();
      const order = ["POST", "rejected once", "1 value hidden", "Body", "Requester says", "Details"];
      const places = order.map((text) => words.indexOf(text));
      expect([places.includes(-1), places]).toEqual([false, places.toSorted((a, b) => a - b)]);
      expect(watched.troubles).toEqual([]);
    }
    // The line above the buttons of a link, which loads no script, goes away at the end of the request.
    await using watched = await openOn(link, 667);
    const below = watched.page.locator(".more-below");
    await below.waitFor();
    await watched.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
    await below.waitFor({ state: "hidden" });
    await using list = await openOn("/approvals");
    const row = list.page.locator(`#${id}`);
    expect(await row.locator(".inbox-rejected").innerText()).toContain("The invoice shows 1,480.00");
    // The end of a host says whose it is: it is not cut for the risk, nor where it is long.
    const long = await held({ url: `https://api.northwind.example.${"a".repeat(60)}.example/` });
    await list.page.reload();
    for (const one of [id, long]) {
      const asker = list.page.locator(`#${one} .inbox-asker`);
      expect(await asker.innerText()).toEndWith(".example");
      expect(await asker.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    }
  });

  test("is told how much of a long body is below, and passes a list that is closed", async () => {
    const contacts = Array.from({ length: 330 }, (_, at) => ({
      id: 4_000 + at,
      email: `c${at}@example.com`,
      plan: "pro",
    }));
    const id = await held({ url: "https://api.hubapi.com/contacts", title: "Import 330 contacts", body: { contacts } });
    await using watched = await openOn(`/approvals/${id}`);
    const { page } = watched;
    const approve = page.locator("#request button[value=approve]");
    await approve.getByText(/ more lines below$/).waitFor();
    const summary = page.locator(".json summary", { hasText: "contacts" });
    expect(await summary.innerText()).toContain("330 items");
    await summary.tap();
    await page.locator("#request button[value=approve]:has([data-below][hidden])").waitFor();
    await page.locator(".inbox-back").tap();
    await page.waitForURL(`${app.url}/approvals`);
    expect(await page.locator("nav#navigation").isVisible()).toBe(true);
  });
});
