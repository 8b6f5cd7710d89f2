import { describe, expect, test } from "bun:test";
import { createWelcomeLink } from "../../src/accounts/welcome-links.ts";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { confirmPassword } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { HAS_BROWSER, watchPage } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { Target } from "../support/target.ts";
import { useBrowser } from "./desk.ts";

const app = await shared(openRealServer({ port: await freePort(), env: { APPROVERS: "ann@example.com" } }));

describe.skipIf(!HAS_BROWSER)("in a browser", () => {
  const browser = useBrowser();
  const phone = { javaScriptEnabled: false, viewport: { width: 375, height: 700 } };

  /** What an agent asks for, and a person has to decide on. */
  async function asked(url: string, server: RealServer = app) {
    const body = { url, approve: true, body: { amount: 1200 }, notify: { email: "ann@example.com" } };
    const { json } = await server.call("POST", "/v1/actions", body, KEYS.agent);
    return { id: json.id, ...(await server.linksOf(json.id)) };
  }
  const statusOf = async (id: string, { engine }: RealServer = app) => (await engine.get(id)).status;

  test("an agent asks, a person opens the link and presses, the target is called, the receipt shows it", async () => {
    await using target = new Target(() => Response.json({ refunded: true }));
    const { id, approve } = await asked(`${target.url}refunds`);
    await using watched = await watchPage(browser.chromium);
    const { page, troubles } = watched;
    await page.goto(app.url + approve);
    expect(await page.textContent("h1")).toBe("Approve this request?");
    expect(await page.textContent(".json")).toContain('"amount": 1200');
    expect(target.received).toHaveLength(0);
    await page.click(".decide-note summary");
    await page.fill("textarea", "Agreed with Ann.");
    await page.click("button[value=approve]");
    await page.waitForURL("**/r/*");
    await app.engine.saw(id, { status: "completed" });
    await page.reload();
    const text = await page.textContent("main");
    for (const seen of [
      "Completed",
      "Agreed with Ann.",
      "a person by the link in the mail",
      '"refunded": true',
      "answered 200",
    ]) {
      expect(text).toContain(seen);
    }
    expect(target.received.map(({ path, body }) => [path, body])).toEqual([["/refunds", '{"amount":1200}']]);
    // Going back shows no page of before: what was decided is no question any more.
    await page.goto(app.url + approve);
    expect(new URL(page.url()).pathname).toStartWith("/r/");
    expect(troubles).toEqual([]);
  });

  test("somebody logs in with a link, says no with a reason in the inbox, and logs out, without script and on a phone", async () => {
    const { store, secrets, clock } = app.engine;
    const welcome = await createWelcomeLink({ ...store, secrets, clock });
    const { id } = await asked("http://127.0.0.1:9/refunds");
    await using watched = await watchPage(browser.chromium, phone);
    const { page } = watched;
    await page.goto(`${app.url}/welcome/${welcome}`);
    await page.fill("input[type=email]", "ann@example.com");
    await page.fill("input[type=password]", "correct horse battery");
    await page.click("main button");
    await page.waitForURL("**/get-started");
    await page.goto(`${app.url}/approvals`);
    await page.click(`a[href="/approvals/${id}"]`);
    await page.click(".decide-note summary");
    await page.fill("textarea", "Not without a ticket.");
    await page.click("button[value=reject]");
    await confirmPassword(page);
    await page.waitForURL("**/approvals?decided=*");
    expect(await page.textContent(`#decided-${id}`)).toContain("Rejected by ann@example.com in the console");
    expect(await page.textContent(`#decided-${id}`)).toContain("Cancelled");
    expect(await statusOf(id)).toBe("cancelled");
    await page.click("text=View receipt");
    await page.waitForURL("**/r/*");
    expect(await page.textContent("main")).toContain("Not without a ticket.");
    await page.goto(`${app.url}/more`);
    await page.locator("main").getByText("Log out").click();
    await page.waitForURL("**/login");
    await page.goto(`${app.url}/approvals`);
    expect(new URL(page.url()).pathname).toBe("/login");
  });
});
