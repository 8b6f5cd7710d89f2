import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser } from "playwright-core";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { BROWSER_START_MS_MAX, HAS_BROWSER, openBrowser, watchPage } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";

// A browser, on a machine that may be busy.
setDefaultTimeout(60_000);

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

describe.skipIf(!HAS_BROWSER)("an approver with a phone", () => {
  let chromium: Browser;
  let app: RealServer;
  let ann: Awaited<ReturnType<typeof signedIn>>;
  beforeAll(async () => {
    chromium = await openBrowser();
    app = await openRealServer({ port: await freePort(), starts: false });
    ann = await signedIn(app);
  }, BROWSER_START_MS_MAX);
  afterAll(async () => {
    await chromium.close();
    await app[Symbol.asyncDispose]();
  });

  const held = async (request: object) =>
    (await app.call("POST", "/v1/actions", JSON.stringify({ ...request, approve: true }))).json.id;

  async function openOn(path: string) {
    const watched = await watchPage(chromium, {
      viewport: { width: 375, height: 812 },
      hasTouch: true,
      isMobile: true,
    });
    await ann.enter(watched.page.context());
    await watched.page.goto(app.url + path);
    return watched;
  }

  test.each(Object.entries(TYPICAL))("decides on %s with two taps and no scrolling", async (_name, request) => {
    const id = await held(request);
    await using watched = await openOn("/approvals");
    const { page } = watched;
    await page.locator(`#${id} .inbox-open`).tap();
    const approve = page.locator("#request button[value=approve]");
    await approve.waitFor();
    // All of it is in view, above the decision: nothing is "below".
    expect(await approve.innerText()).toBe("Approve");
    expect(await page.evaluate("scrollY")).toBe(0);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(375);
    expect(await page.locator("nav#navigation").isVisible()).toBe(false);
    await approve.tap();
    await page.waitForURL(/decided=/);
    expect(await app.engine.actionService.get(app.engine.owner, id)).toMatchObject({ status: "pending" });
    expect(watched.troubles).toEqual([]);
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
    await page.goto(`${app.url}/actions/${id}`);
    await page
      .locator("button[value=approve]")
      .getByText(/ more lines below$/)
      .waitFor();
    await page.goto(`${app.url}/approvals/${id}`);
    const summary = page.locator(".json summary", { hasText: "contacts" });
    expect(await summary.innerText()).toContain("330 items");
    await summary.tap();
    await page.locator("#request button[value=approve]:has([data-below][hidden])").waitFor();
    await page.locator(".inbox-back").tap();
    await page.waitForURL(`${app.url}/approvals`);
    expect(await page.locator("nav#navigation").isVisible()).toBe(true);
  });
});
