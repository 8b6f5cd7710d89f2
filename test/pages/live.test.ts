import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import {
  HAS_BROWSER,
  BROWSER_START_MS_MAX,
  closeContexts,
  openBrowser,
  type Watched,
  watchPage,
  watchPageIn,
} from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { eventually } from "../support/eventually.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";

// A browser, on a machine that may be busy.
setDefaultTimeout(60_000);

type Person = Awaited<ReturnType<typeof signedIn>>;

const AGENT = { authorization: `Bearer ${KEYS.agent}` };

const NO_TARGET = "http://127.0.0.1:9/";

describe.skipIf(!HAS_BROWSER)("a page that runs scripts", () => {
  let chromium: Browser;
  let app: RealServer;
  let ann: Person;
  /** Ann's browser, for tests that need nothing else of one. */
  let herOwn: BrowserContext;
  let watched: Watched;
  beforeAll(async () => {
    chromium = await openBrowser();
    app = await openRealServer({ port: await freePort() });
    ann = await signedIn(app);
    herOwn = await chromium.newContext({ viewport: { width: 1_100, height: 700 } });
    await ann.enter(herOwn);
  }, BROWSER_START_MS_MAX);
  afterAll(async () => {
    await closeContexts(chromium);
    await app[Symbol.asyncDispose]();
  });
  afterEach(() => watched[Symbol.asyncDispose]());

  async function enter(person: Person, options: BrowserContextOptions = {}): Promise<Page> {
    watched = await watchPage(chromium, { viewport: { width: 1_100, height: 700 }, ...options });
    const { page } = watched;
    await person.enter(page.context());
    return page;
  }

  async function enterHerOwn(): Promise<Page> {
    watched = await watchPageIn(herOwn);
    return watched.page;
  }

  /** Ann's browser at a page of hers, with our policy in force. A page that is loaded anew forgets the mark. */
  async function open(path: string, server: RealServer = app, person: Person = ann, how?: "a clock of the test") {
    const page = server === app ? await enterHerOwn() : await enter(person);
    if (how !== undefined) await page.clock.install();
    const listens = page.waitForRequest(`${server.url}/events`);
    await page.goto(server.url + path);
    await listens;
    await page.evaluate("window.mark = 1");
    return page;
  }
  const isSamePage = (page: Page) => page.evaluate("window.mark === 1");
  let count = 0;
  /** Each another request: what was rejected of one is nothing to the others. */
  async function created(members: object = {}): Promise<string> {
    count += 1;
    const body = JSON.stringify({ url: `${NO_TARGET}?n=${count}`, ...members });
    // Newer than every other: the clock stands still, and ids of one millisecond need not be in order.
    app.engine.clock.advance(1);
    return (await app.call("POST", "/v1/actions", body, AGENT)).json.id;
  }
  const actionOf = (id: string) => app.engine.actionService.get(app.engine.owner, id);

  test("shows an action fail twice and succeed, in the list and on its own page, without being loaded anew", async () => {
    await using target = new Target(503, 503, () => Response.json({ done: true }));
    const page = await open("/actions");
    const id = await created({ url: target.url });
    const row = page.locator(`#${id}`);
    await app.engine.saw(id, { status: "pending", attempts: 1 });
    await row.getByText("1 of 3").waitFor();
    app.engine.clock.advance(2_000);
    await app.engine.saw(id, { status: "pending", attempts: 2 });
    await row.getByText("2 of 3").waitFor();
    expect(await isSamePage(page)).toBe(true);

    await page.goto(`${app.url}/actions/${id}`);
    await page.locator(".lane").getByText("Attempt 2").waitFor();
    await page.evaluate("window.mark = 1");
    app.engine.clock.advance(4_000);
    await app.engine.saw(id, { status: "completed" });
    await page.locator(".state").getByText("Completed").waitFor();
    await page.locator(".part-response .json").getByText('"done": true').waitFor();
    expect(await page.locator(".span-bad").count()).toBe(2);
    expect(await isSamePage(page)).toBe(true);
    expect(watched.troubles).toEqual([]);
  });

  test("gets requests to approve as they come, counts them in the title, and keeps what is being typed", async () => {
    const first = await created({ approve: true });
    const page = await open(`/approvals/${first}`);
    const before = Number(/^\((\d+)\)/.exec(await page.title())?.[1]);
    const pane = page.locator("#request");
    await pane.getByText("Add a note").click();
    await pane.locator("textarea").fill("Not without a ticket.");
    const second = await created({ approve: true, method: "DELETE", url: "https://new.example/" });
    await page.locator(`#${second}`).getByText("deletes +1").waitFor();
    expect(await page.title()).toStartWith(`(${before + 1}) Approvals`);
    // Somebody else is first: what was typed stays, and can't be sent any more.
    await app.call("POST", `/v1/actions/${first}/cancel`);
    await pane.getByText("Someone has already decided.").waitFor();
    expect(await pane.locator("textarea").inputValue()).toBe("Not without a ticket.");
    expect(await pane.locator("button[value=reject]").isDisabled()).toBe(true);
    await app.call("POST", `/v1/actions/${second}/cancel`);
    await page.locator(`#${second}`).waitFor({ state: "detached" });
    expect(await isSamePage(page)).toBe(true);
    expect(watched.troubles).toEqual([]);
  });

  test("never puts an earlier request in the place of the one that was opened while an update was under way", async () => {
    const [first, second] = [await created({ approve: true }), await created({ approve: true })];
    const page = await open(`/approvals/${first}`);
    // The update that follows the opening of the stream is over.
    await page.waitForLoadState("networkidle");
    const [asked, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route(`**/approvals/${first}`, async (route) => {
      asked.resolve();
      await opened.promise;
      await route.continue();
    });
    const third = await created({ approve: true });
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
    for (const id of [first, second, third]) await app.call("POST", `/v1/actions/${id}/cancel`);
  });

  test("gives the request its address on a phone that is turned, so that no update exchanges it", async () => {
    const id = await created({ approve: true });
    const page = await enter(ann, { viewport: { width: 390, height: 800 } });
    await page.goto(`${app.url}/approvals`);
    await page.waitForLoadState("networkidle");
    expect(new URL(page.url()).pathname).toBe("/approvals");
    await page.setViewportSize({ width: 1_100, height: 390 });
    await page.waitForURL(/\/approvals\/act_/);
    const shown = await page.locator("#request [data-shown]").getAttribute("data-shown");
    expect(new URL(page.url()).pathname).toBe(`/approvals/${shown?.split(" ")[0]}`);
    await app.call("POST", `/v1/actions/${id}/cancel`);
  });

  test("leaves for the log-in as soon as its session has ended elsewhere, before its next look", async () => {
    await using server = await openRealServer({ port: await freePort(), starts: false });
    const bob = await signedIn(server);
    const page = await open("/approvals", server, bob, "a clock of the test");
    // Nothing in the page that waits for its clock goes on: neither the polling nor the coming back.
    await page.clock.pauseAt(Number(await page.evaluate("Date.now()")) + 2_000);
    const refused = page.waitForResponse((answer) => answer.url().endsWith("/events") && answer.status() === 403);
    await bob.send("/auth/logout", await bob.hiddenOf("/approvals"));
    await refused;
    // Where the stream opened after the clock stood still, the load that greeted it still has its second of rest.
    await page.clock.runFor(1_500);
    await page.waitForURL(/\/login\?next=%2Fapprovals$/);
  });

  test("takes what comes live for text, whatever it is", async () => {
    const attack = "<img src=x onerror=window.ran=1><script>window.ran=1</script>";
    await using target = new Target(() => new Response(attack, { headers: { "content-type": "text/html" } }));
    const page = await open("/approvals");
    const id = await created({
      approve: true,
      url: encodeURI(`${target.url}?q=${attack}`),
      body: { [attack]: attack },
    });
    await page.locator(`#${id} .inbox-open`).click();
    await page.waitForURL(`${app.url}/approvals/${id}`);
    await page.locator("#request .json").getByText(attack).first().waitFor();
    await page.goto(`${app.url}/actions/${id}`);
    await app.call("POST", `/v1/actions/${id}/approve`, JSON.stringify({ reason: attack }));
    // Where there is room for one part only, tabs choose it.
    await page.locator(".part-tabs").getByText("Response").click();
    await page.locator(".part-response").getByText(attack).waitFor();
    await page.locator(".part-tabs").getByText("Timeline").click();
    await page.locator(".part-timeline").getByText(attack).waitFor();
    expect(await page.evaluate("[window.ran, document.scripts.length, document.images.length]")).toEqual([
      undefined,
      4,
      0,
    ]);
    expect(watched.troubles).toEqual([]);
  });

  test("is used by keys alone, and no single key decides", async () => {
    const id = await created({ approve: true, url: "http://127.0.0.1:9/keys" });
    const page = await open("/actions?status=awaiting_approval");
    await page.keyboard.press("j");
    expect(await page.evaluate("document.activeElement.closest('tr').id")).toBe(id);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${app.url}/actions/${id}`);
    await page.goto(`${app.url}/actions/${id}`);
    await page.getByRole("button", { name: "Approve" }).waitFor();

    await page.keyboard.press("a");
    await page.getByRole("dialog", { name: "Approve POST 127.0.0.1:9?" }).waitFor();
    await page.keyboard.press("Escape");
    // Keys in a dialog are the dialog's, and it takes a moment to close.
    await page.locator("dialog:not(#palette)").waitFor({ state: "detached" });
    expect((await actionOf(id)).status).toBe("awaiting_approval");
    await page.keyboard.press("r");
    const dialog = page.getByRole("dialog", { name: "Reject POST 127.0.0.1:9?" });
    await dialog.getByText("http://127.0.0.1:9/keys").waitFor();
    await page.keyboard.press("Enter");
    expect((await actionOf(id)).status).toBe("awaiting_approval");
    await dialog.getByRole("button", { name: "Reject" }).focus();
    await page.keyboard.press("Enter");
    await page.locator(".state").getByText("Cancelled").waitFor();
    expect((await actionOf(id)).status).toBe("cancelled");
    await page.waitForLoadState();

    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).getByText("Approve, after a confirmation").waitFor();
    await page.keyboard.press("Escape");
    await page.goto(`${app.url}/actions`);
    await page.keyboard.press("/");
    // A whole id leads to its action as soon as it stands there.
    await page.keyboard.type(id);
    await page.waitForURL(`${app.url}/actions/${id}`);
    await page.keyboard.press("r");
    await page.getByRole("dialog", { name: "Retry POST 127.0.0.1:9?" }).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Retry only" }).click();
    await page.locator(".state").getByText("Awaiting approval").waitFor();
    expect((await actionOf(id)).run).toBe(2);
    expect(watched.troubles).toEqual([]);
  });

  test("shows the request of the inbox again before a key decides, and has the focus on no button", async () => {
    const id = await created({ approve: true, method: "DELETE", url: "http://127.0.0.1:9/inbox-keys", body: { n: 1 } });
    const page = await open(`/approvals/${id}`);
    for (const [key, word] of [
      ["a", "Approve"],
      ["r", "Reject"],
    ] as const) {
      await page.keyboard.press(key);
      const dialog = page.getByRole("dialog", { name: `${word} DELETE 127.0.0.1:9?` });
      await dialog.waitFor();
      for (const seen of ["http://127.0.0.1:9/inbox-keys", '"n": 1', "Details"]) {
        await dialog.getByText(seen).waitFor();
      }
      expect(await page.evaluate("document.activeElement.tagName")).toBe("H2");
      expect(await page.evaluate("document.querySelector('dialog[open]').scrollTop")).toBe(0);
      // Pressed again, or Enter: nothing is decided.
      await page.keyboard.press(key);
      await page.keyboard.press("Enter");
      expect((await actionOf(id)).status).toBe("awaiting_approval");
      expect(await page.evaluate("new Set([...document.querySelectorAll('[id]')].map(({ id }) => id)).size")).toBe(
        await page.locator("[id]").count(),
      );
      await dialog.getByRole("button", { name: "Back" }).click();
      await page.locator("dialog:not(.palette)").waitFor({ state: "detached" });
    }
    await page.keyboard.press("a");
    await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await page.locator(`#decided-${id}`).getByText("Approved by ann@example.com").waitFor();
    expect((await actionOf(id)).approvedBy).toBe("user:ann@example.com");
    expect(watched.troubles).toEqual([]);
  });

  test("shows requests beside the list, each under its address, and takes no note from one to another", async () => {
    const first = await created({ approve: true, url: `${NO_TARGET}one`, title: "The first" });
    const second = await created({ approve: true, url: `${NO_TARGET}two`, title: "The second" });
    const page = await open(`/approvals/${first}`);
    const pane = page.locator("#request");
    await page.keyboard.press("j");
    await page.waitForURL(`${app.url}/approvals/${second}`);
    await pane.getByText("The second").waitFor();
    expect(await page.locator("#waiting [aria-current]").getAttribute("href")).toBe(`/approvals/${second}`);
    await pane.getByText("Add a note").click();
    await pane.locator("textarea").fill("Only for the second.");
    await page.locator(`#${first} .inbox-open`).click();
    await page.waitForURL(`${app.url}/approvals/${first}`);
    await pane.getByText("The first").waitFor();
    expect(await pane.locator("textarea").inputValue()).toBe("");
    expect(await pane.locator("form.decide").getAttribute("action")).toBe(`/approvals/${first}`);
    expect(await isSamePage(page)).toBe(true);
    // Without a request in its address the page takes that of the one it shows: no update can exchange it.
    await page.goto(`${app.url}/approvals`);
    await page.waitForURL(/\/approvals\/act_\w+$/);
    for (const id of [first, second]) await app.call("POST", `/v1/actions/${id}/cancel`);
    expect(watched.troubles).toEqual([]);
  });

  test("says in the button how much of a request is below, until its end was in view", async () => {
    const id = await created({ approve: true, body: { text: "line\n".repeat(60) } });
    const page = await open(`/approvals/${id}`);
    const approve = page.locator("#request button[value=approve]");
    await approve.getByText(/^, \d+ more lines below$/).waitFor();
    expect(await approve.isVisible()).toBe(true);
    await page.getByText(/^↓ \d+ more lines below$/).click();
    await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
    // What was seen stays seen when the page is updated, and when the person goes back up.
    await page.locator("#request .asked-head").scrollIntoViewIfNeeded();
    const other = await created({ approve: true });
    await page.locator(`#${other}`).waitFor();
    expect(await approve.textContent()).toBe("Approve");
    for (const one of [id, other]) await app.call("POST", `/v1/actions/${one}/cancel`);
    expect(watched.troubles).toEqual([]);
  });

  test("takes a second click after a decision for no decision on the next request", async () => {
    const [first, second] = [await created({ approve: true }), await created({ approve: true, body: { next: true } })];
    await app.call("POST", `/v1/actions/${first}/cancel`);
    const page = await enterHerOwn();
    // The time since the page was opened stands still until the test moves it.
    await page.addInitScript("window.openMs = 0; performance.now = () => window.openMs");
    await page.goto(`${app.url}/approvals/${second}?decided=${first}`);
    const click = () => page.evaluate("document.querySelector('#request button[value=approve]').click()");
    await click();
    // A form that was sent would lead away from the page before this is answered.
    expect(await page.evaluate("fetch('/more').then(({ status }) => status)")).toBe(200);
    expect((await actionOf(second)).status).toBe("awaiting_approval");
    await page.evaluate("window.openMs = 1_000");
    await click();
    // Where it leads is loaded before the page is closed: Chromium may not close one that is on its way.
    await page.waitForURL(
      ({ pathname, search }) => pathname.startsWith("/approvals") && search === `?decided=${second}`,
    );
    expect((await actionOf(second)).status).not.toBe("awaiting_approval");
    expect(watched.troubles).toEqual([]);
  });

  test("decides on the run that it shows by now, and a confirmation on the one that it was opened with", async () => {
    const id = await created({ approve: true });
    const page = await open(`/approvals/${id}`);
    // The update that follows the opening of the stream is over, and a retry is shown by one update with the cancel.
    await page.waitForLoadState("networkidle");
    const retried = async (run: number) => {
      await page.waitForTimeout(1_100);
      await page.route("**/approvals/act_*", async (route) => {
        await app.call("POST", `/v1/actions/${id}/retry`);
        await route.continue();
      });
      await app.call("POST", `/v1/actions/${id}/cancel`);
      await page.locator("#request .fact-run").getByText(String(run)).waitFor({ state: "attached" });
      await page.unrouteAll({ behavior: "wait" });
    };
    await retried(2);
    expect(await page.locator("#request input[name=run]").inputValue()).toBe("2");
    await page.keyboard.press("a");
    await page.getByRole("dialog", { name: "Approve" }).waitFor();
    await retried(3);
    await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await page.getByRole("dialog", { name: "This has changed" }).waitFor();
    expect(await actionOf(id)).toMatchObject({ status: "awaiting_approval", run: 3 });
    await page.keyboard.press("Escape");
    await page.locator("dialog:not(.palette)").waitFor({ state: "detached" });
    await page.locator("#request button[value=approve]").click();
    await until(async () => (await actionOf(id)).status !== "awaiting_approval");
    expect((await actionOf(id)).approvedBy).toBe("user:ann@example.com");
  });

  test("takes letters for letters where somebody types, and leads from a row to where the whole request stands", async () => {
    const id = await created({ approve: true });
    const page = await open(`/actions/${id}`);
    await page.locator(".decide-note summary").click();
    await page.locator("textarea").focus();
    await page.keyboard.type("axr?/jk");
    expect(await page.locator("textarea").inputValue()).toBe("axr?/jk");
    expect(await page.locator("dialog[open]").count()).toBe(0);
    await page.goto(`${app.url}/actions`);
    await page.keyboard.press("j");
    await page.keyboard.press("a");
    await page.waitForURL(`${app.url}/actions/${id}`);
    expect((await actionOf(id)).status).toBe("awaiting_approval");
  });

  test("asks now and then while its stream is broken", async () => {
    await using server = await openRealServer({ port: await freePort() });
    const page = await open("/approvals", server, await signedIn(server), "a clock of the test");
    await page.context().route(`${server.url}/events`, (route) => route.abort());
    // The stream ends, and can't be opened again.
    server.drain.abort();
    const { id } = await server.engine.create({ approve: true });
    await until(async () => {
      await page.clock.fastForward(5_000);
      return (await page.locator(`#${id}`).count()) > 0;
    });
    expect(await isSamePage(page)).toBe(true);
  });

  test("listens to nothing while nobody looks, and shows what came meanwhile", async () => {
    await using server = await openRealServer({ port: await freePort() });
    const page = await open("/approvals", server, await signedIn(server));
    const look = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"))`);
    await look(true);
    await eventually(() => server.lines.find(({ event }) => event === "events.ended") ?? null, "the end of the stream");
    const asked: string[] = [];
    page.on("request", (request) => void asked.push(request.url()));
    const { id } = await server.engine.create({ approve: true });
    expect(asked).toEqual([]);
    await look(false);
    await page.locator(`#${id}`).waitFor();
    expect(asked).toContain(`${server.url}/events`);
  });

  test("goes on with a bulk retry by itself, and shows how far it is", async () => {
    await using server = await openRealServer({ port: await freePort() });
    const made = await Promise.all(
      Array.from({ length: 70 }, () => server.engine.create({ retries: 1, url: "http://127.0.0.1:9/" })),
    );
    for (const { id } of made) await server.engine.saw(id, { status: "failed" });
    const page = await enter(await signedIn(server));
    await page.goto(`${server.url}/actions?status=failed`);
    await page.getByText("Retry all 70 failed").first().click();
    await page.getByRole("button", { name: "Retry 70 actions" }).click();
    await page.getByText("70 actions retried.").waitFor();
    expect(await page.locator("progress").getAttribute("value")).toBe("70");
    for (const { id } of made) expect((await server.engine.actionService.get(server.engine.owner, id)).run).toBe(2);
    expect(watched.troubles).toEqual([]);
  });

  test("copies a call as a command, secrets and all left out", async () => {
    const id = await created({ approve: true, headers: { Authorization: "Bearer canary-0123456789abcdef" } });
    const page = await enter(ann, { permissions: ["clipboard-read", "clipboard-write"] });
    await page.goto(`${app.url}/actions/${id}`);
    await page.getByText("As code").click();
    await page.locator(".folds").getByRole("button", { name: "Copy" }).first().click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const copied = String(await page.evaluate("navigator.clipboard.readText()"));
    expect(copied).toContain('"Authorization": "YOUR_AUTHORIZATION"');
    expect(copied).not.toContain("canary");
  });

  test("copies a new key and a signing secret, which are long and must be whole", async () => {
    const page = await enter(ann, { permissions: ["clipboard-read", "clipboard-write"] });
    const copied = async () => {
      await page.getByRole("button", { name: "Copy" }).first().click();
      await page.getByRole("button", { name: "Copied" }).waitFor();
      return page.evaluate("navigator.clipboard.readText()");
    };
    await page.goto(`${app.url}/keys/new`);
    await page.getByLabel("Name").fill("ci");
    await page.getByRole("radio", { name: /^Agent/ }).check();
    await page.getByRole("button", { name: "Create key" }).click();
    expect(await copied()).toMatch(/^og_[0-9A-Za-z]{36}$/);
    await page.goto(`${app.url}/settings/signing`);
    await page.locator("#origin").fill("https://api.example.com");
    await page.getByRole("button", { name: "Show secret", exact: true }).click();
    expect(await copied()).toMatch(/^whsec_[0-9A-Za-z+/]+=*$/);
  });
});
