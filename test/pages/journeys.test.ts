import { describe, expect, test } from "bun:test";
import { createWelcomeLink } from "../../src/accounts/first-start.ts";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { confirmPassword, signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { HAS_BROWSER, watchPage } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";
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
  const statusOf = async (id: string, { engine }: RealServer = app) =>
    (await engine.actionService.get(engine.owner, id)).status;

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

  test("the link that says Reject opens a page whose first button is Reject, with the focus on nothing", async () => {
    const { id, approve, reject } = await asked("http://127.0.0.1:9/reject-link");
    await using watched = await watchPage(browser.chromium);
    const { page, troubles } = watched;
    const seen = async () => ({
      heading: await page.textContent("h1"),
      buttons: await page.locator("button[name=decision]").allTextContents(),
      filled: await page.locator("button[name=decision]:not(.button-plain, .button-bad)").allTextContents(),
      focus: await page.evaluate("document.activeElement.tagName"),
    });
    const of = (verb: string, other: string) => ({
      heading: `${verb} this request?`,
      buttons: [verb, other],
      filled: [verb],
      focus: "BODY",
    });
    await page.goto(app.url + reject);
    expect(await seen()).toEqual(of("Reject", "Approve"));
    // Enter presses nothing, and each button does what it says.
    await page.keyboard.press("Enter");
    await page.goto(app.url + approve);
    expect(await seen()).toEqual(of("Approve", "Reject"));
    await page.goto(app.url + reject);
    await page.getByRole("button", { name: "Reject" }).click();
    await page.waitForURL("**/r/*");
    expect(await statusOf(id)).toBe("cancelled");
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
    expect(await page.textContent(`#decided-${id}`)).toContain("Not sent");
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

  test("somebody filters, retries, cancels and sends again, without script and on a phone", async () => {
    await using server = await openRealServer({ port: await freePort(), env: { APPROVERS: "ann@example.com" } });
    await using target = new Target(500, 200, 200);
    const ann = await signedIn(server);
    const { id } = await server.engine.create({ url: target.url, retries: 1 });
    await server.engine.saw(id, { status: "failed" });
    const held = await server.engine.create({ approve: true });
    await using watched = await watchPage(browser.chromium, phone);
    const { page } = watched;
    await ann.enter(page.context());
    await page.goto(`${server.url}/actions`);
    await page.click("summary:has-text('More')");
    await page.selectOption("#method", "POST");
    await page.fill("input[name=created_before]", "2030-01-01T10:00:00");
    await page.click("text='Show actions'");
    await page.waitForURL("**/actions?method=POST&created_before=2030-01-01T10%3A00%3A00Z");
    await page.click("summary:has-text('Host')");
    await page.click(".menu[open] a:has-text('127.0.0.1')");
    await page.waitForURL("**/actions?method=POST&created_before=*&host=127.0.0.1");
    await page.click("[aria-label=Status] a:has-text('Failed')");
    await page.waitForURL("**status=failed*");
    expect(await page.locator("tbody tr").count()).toBe(1);
    // What can be done with a row appears when it is selected, without script.
    expect(await page.locator(".selection").isVisible()).toBe(false);
    await page.check(`input[value=${id}]`);
    await page.click(".selection >> text='Retry'");
    await page.waitForURL(`**/bulk/new?id=${id}&operation=retry`);
    await page.fill("textarea[name=reason]", "It is up again.");
    await page.click("button:has-text('Retry 1 action')");
    await confirmPassword(page);
    // The job goes on by itself; without script its page has to be loaded again.
    await page.waitForURL("**/bulk/blk_*");
    await server.engine.saw(id, { status: "completed" });
    await until(async () => {
      await page.reload();
      return page.getByText("1 action retried.").isVisible();
    });
    expect((await server.engine.actionService.get(server.engine.owner, id)).run).toBe(2);

    await page.goto(`${server.url}/actions`);
    await page.fill("#search", id);
    await page.press("#search", "Enter");
    await page.waitForURL(`**/actions/${id}`);
    expect(await page.textContent("main")).toContain("It is up again.");
    await page.click("text=Edit and resend");
    await page.click("text=Send unchanged");
    await page.click("text='Send as a new action'");
    await confirmPassword(page);
    await page.waitForURL((url) => /^\/actions\/act_\w+$/.test(url.pathname) && !url.pathname.includes(id));
    await page.goto(`${server.url}/actions/${held.id}`);
    await page.click(".decide-note summary");
    await page.fill("textarea", "Not this one.");
    await page.click("button[value=reject]");
    await confirmPassword(page);
    await page.locator(".state").getByText("rejected it").waitFor();
    await page.click("summary:has-text('Retry')");
    await page.click("button[value=retry]");
    await confirmPassword(page);
    await page.locator(".state").getByText("Awaiting approval").waitFor();
  });
});
