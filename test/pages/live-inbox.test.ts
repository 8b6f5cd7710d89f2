import { describe, expect, test } from "bun:test";
import { ANN, confirmPassword, joined, logIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { HAS_BROWSER } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { useDesk } from "./desk.ts";

describe.skipIf(!HAS_BROWSER)("the inbox in a browser", () => {
  const desk = useDesk({ height: 700 });

  test("gets requests to approve as they come, counts them in the title, and keeps what is being typed", async () => {
    const first = await desk.created({ approve: true });
    const page = await desk.open(`/approvals/${first}`);
    const before = Number(/^\((\d+)\)/.exec(await page.title())?.[1]);
    const pane = page.locator("#request");
    await pane.getByText("Add note").click();
    await pane.locator("textarea").fill("Not without a ticket.");
    const second = await desk.created({ approve: true, method: "DELETE", url: "https://new.example/" });
    await page.locator(`#${second}`).getByText("deletes +1").waitFor();
    expect(await page.title()).toStartWith(`(${before + 1}) Approvals`);
    // Somebody else is first: what was typed stays, and can't be sent any more.
    await desk.app.call("POST", `/v1/actions/${first}/cancel`);
    await pane.getByText("Someone has already decided.").waitFor();
    expect(await pane.locator("textarea").inputValue()).toBe("Not without a ticket.");
    expect(await pane.locator("button[value=reject]").isDisabled()).toBe(true);
    await desk.app.call("POST", `/v1/actions/${second}/cancel`);
    await page.locator(`#${second}`).waitFor({ state: "detached" });
    expect(await desk.isSamePage(page)).toBe(true);
    expect(desk.troubles).toEqual([]);
  });

  test("says that the session has ended, and keeps what was typed, also after the login", async () => {
    const bob = await joined(desk.app, "approver");
    const page = await desk.enter(bob);
    const id = await desk.created({ approve: true });
    await page.goto(`${desk.app.url}/approvals/${id}`);
    await desk.updated(page);
    await page.getByText("Add note").click();
    await page.locator("textarea:focus").fill("Not without a ticket.");
    await bob.send("/auth/logout", await bob.hiddenOf("/approvals"));
    await page.getByRole("status").getByText("Your session has ended.").waitFor();
    expect(await page.locator("textarea").inputValue()).toBe("Not without a ticket.");
    await page.reload();
    await page.waitForURL(/\/login/);
    await logIn(page, "approver@example.com");
    await page.waitForURL(`${desk.app.url}/approvals/${id}`);
    await until(async () => (await page.locator("#request textarea").inputValue()) === "Not without a ticket.");
    expect(await page.locator("#request textarea").isVisible()).toBe(true);
    const kept = () => page.evaluate<string | null>("sessionStorage.getItem('outgate_notes')");
    expect(await kept()).toContain("Not without a ticket.");
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    // The login made another secret than these browsers are given.
    await confirmPassword(page);
    await page.waitForURL(({ search }) => search.includes(`decided=${id}`));
    expect(await kept()).not.toContain("Not without a ticket.");
  });

  test("keeps the note of a request while another is opened, until the logout, and shows it to nobody else", async () => {
    const bob = await joined(desk.app, "approver", "bob@example.com");
    const [first, second] = [await desk.created({ approve: true }), await desk.created({ approve: true })];
    const page = await desk.enter(bob);
    await page.goto(`${desk.app.url}/approvals/${first}`);
    const note = page.locator("#request textarea");
    await page.getByText("Add note").click();
    await page.locator("textarea:focus").fill("Ask Ann first.");
    await page.locator(`#${second} .inbox-open`).click();
    await page.waitForURL(`${desk.app.url}/approvals/${second}`);
    await until(async () => (await note.inputValue()) === "");
    await page.locator(`#${first} .inbox-open`).click();
    await page.waitForURL(`${desk.app.url}/approvals/${first}`);
    await until(async () => (await note.inputValue()) === "Ask Ann first.");
    // Written in a confirmation, too.
    await page.keyboard.press("r");
    await page.getByRole("dialog").getByLabel("Note").fill("Ask Ann twice.");
    await page.reload();
    await until(async () => (await note.inputValue()) === "Ask Ann twice.");
    // The form was answered by an error: nothing was decided.
    const problem = await page.context().request.get(`${desk.app.url}/approvals/nobody`);
    const body = await problem.text();
    await page.route(`**/approvals/${first}`, (route) =>
      route.request().method() === "POST"
        ? route.fulfill({ status: 503, contentType: "text/html", body })
        : route.continue(),
    );
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    await page.locator(".problem-page").waitFor();
    await page.goto(`${desk.app.url}/approvals/${first}`);
    await until(async () => (await note.inputValue()) === "Ask Ann twice.");
    const kept = await page.evaluate<string>("sessionStorage.getItem('outgate_notes')");
    await page.evaluate("document.querySelector('form[action=\"/auth/logout\"] button').click()");
    await page.waitForURL(/\/login/);
    expect(await page.evaluate("sessionStorage.getItem('outgate_notes')")).toBeNull();
    // Whoever logs in next in this tab, if it had ended without one, does not see it.
    await page.evaluate(`sessionStorage.setItem("outgate_notes", ${JSON.stringify(kept)})`);
    await logIn(page, ANN);
    await page.goto(`${desk.app.url}/approvals/${first}`);
    await desk.updated(page);
    expect(await note.inputValue()).toBe("");
  });

  test("leaves a request that the account of by now does not have, unless something is typed", async () => {
    for (const typed of ["", "Not yet."]) {
      const id = await desk.created({ approve: true });
      const page = await desk.open(`/approvals/${id}`);
      await page.evaluate(`document.querySelector("#request textarea").value = ${JSON.stringify(typed)}`);
      const body = await (await page.context().request.get(`${desk.app.url}/approvals/nobody`)).text();
      await page.route(`**/approvals/${id}`, (route) => route.fulfill({ status: 404, contentType: "text/html", body }));
      await desk.created();
      if (typed === "") await page.locator(".problem-page").waitFor();
      else await page.getByRole("status").getByText("belongs to another account").waitFor();
      await page.unrouteAll();
    }
  });

  test("gets requests for credentials as they come and as they are answered", async () => {
    const page = await desk.open("/approvals");
    const body = JSON.stringify({ host: "live.example", reason: "To refund order 4711." });
    const asked = await desk.app.call("POST", "/v1/credential-requests", body, {
      authorization: `Bearer ${KEYS.agent}`,
    });
    const { id } = asked.json;
    await page.locator(`#${id}`).getByText("Credential for live.example").waitFor();
    await desk.app.call("POST", `/v1/credential-requests/${id}/decline`);
    await page.locator(`#${id}`).waitFor({ state: "detached" });
    expect(await desk.isSamePage(page)).toBe(true);
    expect(desk.troubles).toEqual([]);
  });

  test("never puts an earlier request in the place of the one that was opened while an update was under way", async () => {
    const [first, second] = [await desk.created({ approve: true }), await desk.created({ approve: true })];
    const page = await desk.open(`/approvals/${first}`);
    const [asked, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route(`**/approvals/${first}`, async (route) => {
      asked.resolve();
      await opened.promise;
      await route.continue();
    });
    await desk.created({ approve: true });
    await asked.promise;
    await page.locator(`[href="/approvals/${second}"]`).dispatchEvent("click");
    await page.locator(`#of-${second}`).waitFor();
    await page.evaluate(`new MutationObserver(() => {
      window.came ||= document.getElementById("of-${first}") !== null;
    }).observe(document.body, { childList: true, subtree: true, attributes: true })`);
    const again = page.waitForResponse(`**/approvals/${second}`);
    opened.resolve();
    await again;
    expect(await page.evaluate("window.came === true")).toBe(false);
    expect(await page.locator("#request [data-shown]").getAttribute("id")).toBe(`of-${second}`);
  });

  test("gives the request its address on a phone that is turned, so that no update exchanges it", async () => {
    await desk.created({ approve: true });
    const page = await desk.enter(desk.ann, { viewport: { width: 390, height: 800 } });
    await page.goto(`${desk.app.url}/approvals`);
    await desk.updated(page);
    expect(new URL(page.url()).pathname).toBe("/approvals");
    await page.setViewportSize({ width: 1_100, height: 390 });
    await page.waitForURL(/\/approvals\/act_/);
    const shown = await page.locator("#request [data-shown]").getAttribute("data-shown");
    expect(new URL(page.url()).pathname).toBe(`/approvals/${shown?.split(" ")[0]}`);
  });

  test("says in the button how much of a request is below, until its end was in view", async () => {
    const id = await desk.created({ approve: true, body: { text: "line\n".repeat(60) } });
    const page = await desk.open(`/approvals/${id}`);
    const approve = page.locator("#request button[value=approve]");
    await approve.getByText(/^, \d+ more lines below$/).waitFor();
    expect(await approve.isVisible()).toBe(true);
    await page.getByText(/^↓ \d+ more lines below$/).click();
    await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
    // What was seen stays seen when the page is updated, and when the person goes back up.
    await page.locator("#request .asked-head").scrollIntoViewIfNeeded();
    const other = await desk.created({ approve: true });
    await page.locator(`#${other}`).waitFor();
    await until(async () => (await approve.textContent()) === "Approve");
    expect(desk.troubles).toEqual([]);
  });

  test("takes no click for a decision while its script is on the way", async () => {
    const id = await desk.created({ approve: true });
    const page = await desk.enter(desk.ann);
    // It never comes, and the time of the page stands still.
    await page.route("**/assets/*.js", () => {});
    await page.addInitScript("addEventListener('animationstart', ({ target }) => target.getAnimations()[0].pause())");
    await page.goto(`${desk.app.url}/approvals/${id}`, { waitUntil: "commit" });
    await page.locator("#request button[value=approve]").waitFor();
    const clicks = () =>
      page.evaluate("getComputedStyle(document.querySelector('#request button[value=approve]')).pointerEvents");
    expect(await clicks()).toBe("none");
    await page.evaluate("document.documentElement.dataset.ready = ''");
    expect(await clicks()).toBe("auto");
  });

  test("sends a form once, however often its button is clicked", async () => {
    const page = await desk.enterHerOwn();
    // The time since the page was opened stands still.
    await page.addInitScript("performance.now = () => 0");
    await page.goto(`${desk.app.url}/settings/callback-hosts`);
    await page.getByRole("textbox", { name: "Host" }).fill("hooks.example.com");
    const button = page.getByRole("button", { name: "Add host" });
    // Stays on the page, as while an answer is on its way.
    await page.evaluate(`window.sent = 0; addEventListener("submit", (event) => {
      if (!event.defaultPrevented) window.sent += 1;
      event.preventDefault();
    })`);
    await button.dblclick();
    expect(await page.evaluate("window.sent")).toBe(1);
  });

  test("takes a second click after a decision for no decision on the next request", async () => {
    const [first, second] = [
      await desk.created({ approve: true }),
      await desk.created({ approve: true, body: { next: true } }),
    ];
    await desk.app.call("POST", `/v1/actions/${first}/cancel`);
    const page = await desk.enter(desk.ann);
    // The time since the page was opened stands still until the test moves it.
    await page.addInitScript("window.openMs = 0; performance.now = () => window.openMs");
    await page.goto(`${desk.app.url}/approvals/${second}?decided=${first}`);
    const click = () => page.evaluate("document.querySelector('#request button[value=approve]').click()");
    await click();
    // A form that was sent would lead away from the page before this is answered.
    expect(await page.evaluate("fetch('/more').then(({ status }) => status)")).toBe(200);
    expect((await desk.actionOf(second)).status).toBe("awaiting_approval");
    // Nor are clicks that go on, until there is a pause.
    for (const ms of [900, 1_800, 2_700]) {
      await page.evaluate(`window.openMs = ${ms}`);
      await click();
    }
    expect(await page.evaluate("fetch('/more').then(({ status }) => status)")).toBe(200);
    expect((await desk.actionOf(second)).status).toBe("awaiting_approval");
    await page.evaluate("window.openMs = 3_700");
    await click();
    // Where it leads is loaded before the page is closed: Chromium may not close one that is on its way.
    await page.waitForURL(
      ({ pathname, search }) => pathname.startsWith("/approvals") && search === `?decided=${second}`,
    );
    expect((await desk.actionOf(second)).status).not.toBe("awaiting_approval");
    expect(desk.troubles).toEqual([]);
  });

  test("decides on the run that it shows by now, and a confirmation on the one that it was opened with", async () => {
    const id = await desk.created({ approve: true });
    const page = await desk.open(`/approvals/${id}`);
    // A retry is shown by one update with the cancel, and not by the second that a page waits between two.
    const retried = async (run: number) => {
      await page.waitForTimeout(150);
      await page.route("**/approvals/act_*", async (route) => {
        await desk.app.call("POST", `/v1/actions/${id}/retry`);
        await route.continue();
      });
      await desk.app.call("POST", `/v1/actions/${id}/cancel`);
      await page.locator("#request .fact-run").getByText(String(run)).waitFor({ state: "attached" });
      await page.unrouteAll({ behavior: "wait" });
    };
    await retried(2);
    expect(await page.locator("#request input[name=requests]").inputValue()).toStartWith(`${id},2,`);
    await page.keyboard.press("a");
    await page.getByRole("dialog", { name: "Approve" }).waitFor();
    await retried(3);
    await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await page.getByRole("dialog", { name: "This has changed" }).waitFor();
    expect(await desk.actionOf(id)).toMatchObject({ status: "awaiting_approval", run: 3 });
    await page.keyboard.press("Escape");
    await page.locator("dialog:not(.palette)").waitFor({ state: "detached" });
    await page.locator("#request button[value=approve]").click();
    await until(async () => (await desk.actionOf(id)).status !== "awaiting_approval");
    expect((await desk.actionOf(id)).approvedBy).toBe("user:ann@example.com");
  });
});
