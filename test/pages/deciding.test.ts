import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import {
  BROWSER_START_MS_MAX,
  HAS_BROWSER,
  closeContexts,
  openBrowser,
  type Watched,
  watchPage,
} from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";

// A browser, on a machine that may be busy.
setDefaultTimeout(60_000);

describe.skipIf(!HAS_BROWSER)("whoever decides in a browser", () => {
  let chromium: Browser;
  let app: RealServer;
  let ann: Awaited<ReturnType<typeof signedIn>>;
  let watched: Watched;
  const made: string[] = [];
  beforeAll(async () => {
    chromium = await openBrowser();
    app = await openRealServer({ port: await freePort() });
    ann = await signedIn(app);
  }, BROWSER_START_MS_MAX);
  afterAll(async () => {
    await closeContexts(chromium);
    await app[Symbol.asyncDispose]();
  });
  afterEach(async () => {
    await watched[Symbol.asyncDispose]();
    for (const id of made.splice(0)) await app.call("POST", `/v1/actions/${id}/cancel`);
  });

  let count = 0;
  /** Each another request: what was rejected of one is nothing to the others. */
  async function created({
    body: content = {},
    ...members
  }: {
    readonly body?: object;
    readonly [name: string]: unknown;
  }): Promise<string> {
    count += 1;
    app.engine.clock.advance(1);
    const all = { url: "http://127.0.0.1:9/v1/messages", approve: true, ...members, body: { ...content, n: count } };
    const body = JSON.stringify(all);
    const { id } = (await app.call("POST", "/v1/actions", body, { authorization: `Bearer ${KEYS.agent}` })).json;
    made.push(id);
    return id;
  }

  async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    watched = await watchPage(chromium, { viewport: { width: 1_280, height: 500 }, ...options });
    await ann.enter(watched.page.context());
    await watched.page.goto(app.url + path);
    return watched.page;
  }

  const LONG = { text: Array.from({ length: 300 }, (_, n) => `line ${n}`).join("\n") };
  const MORE_BELOW = /^Approve ?, \d+ more lines below$/;
  const textOf = (page: Page, selector: string) => page.locator(selector).innerText();

  /** The request whose row has the focus, the one that the list marks, and the one that a decision would be for. */
  const aims = (page: Page): Promise<readonly string[]> =>
    page.evaluate(`[
      document.activeElement.closest("li, tr")?.id,
      document.querySelector("#waiting [aria-current]")?.closest("li, tr").id,
      document.querySelector("#request [data-shown]")?.dataset.shown.split(" ")[0],
    ]`);

  async function pressUntilShown(page: Page, key: "j" | "k", id: string) {
    await page.keyboard.press(key);
    await page.locator(`#of-${id}`).waitFor();
    await page.waitForURL(`${app.url}/approvals/${id}`);
    // What takes long to load would otherwise be seen before its row is marked.
    await page.locator(`#${id} [aria-current]`).waitFor({ state: "attached" });
    expect(await aims(page)).toEqual([id, id, id]);
  }

  test("is told on the action's own page how much of it is below, at any width, until it was in view", async () => {
    const id = await created({ body: LONG });
    for (const viewport of [
      { width: 1_280, height: 500 },
      { width: 375, height: 812 },
    ]) {
      const page = await open(`/actions/${id}`, { viewport });
      await page.getByRole("button", { name: MORE_BELOW }).waitFor();
      await page.locator(".asked-card [data-end]").scrollIntoViewIfNeeded();
      await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
      expect(watched.troubles).toEqual([]);
    }
  });

  test("is told so in the drawer, too", async () => {
    const id = await created({ body: LONG });
    const page = await open("/actions?status=awaiting_approval");
    await page.locator(`#${id} .row-link`).click();
    const drawer = page.locator("#drawer");
    await drawer.getByRole("button", { name: MORE_BELOW }).waitFor();
    await drawer.getByText(/^↓ \d+ more lines below$/).click();
    await drawer.getByRole("button", { name: "Approve", exact: true }).waitFor();
  });

  test("stays in an open drawer with the keyboard, and comes back to the row", async () => {
    const id = await created({ body: LONG });
    const page = await open("/actions?status=awaiting_approval");
    await page.locator(`#${id} .row-link`).click();
    await page.locator("#drawer").getByRole("button", { name: "Close" }).waitFor();
    // Nothing of the request shows below its decision.
    const box = await page.locator("#drawer .decide").boundingBox();
    expect(Math.round((box?.y ?? 0) + (box?.height ?? 0))).toBe(500);
    const isInside = () => page.evaluate("document.getElementById('drawer').contains(document.activeElement)");
    for (const key of [...Array.from({ length: 30 }, () => "Tab"), "Shift+Tab", "Shift+Tab"]) {
      await page.keyboard.press(key);
      expect(await isInside()).toBe(true);
    }
    await page.keyboard.press("Escape");
    await page.locator("#drawer > *").first().waitFor({ state: "detached" });
    expect(await page.evaluate("document.activeElement.closest('tr')?.id")).toBe(id);
    expect(watched.troubles).toEqual([]);
  });

  test("is led to the page of an action on a phone, which has no room for a drawer", async () => {
    const id = await created({});
    const page = await open("/actions", { viewport: { width: 375, height: 812 } });
    await page.locator(`#${id} .row-link`).click();
    await page.waitForURL(`${app.url}/actions/${id}`);
    await page.getByRole("button", { name: "Approve" }).waitFor();
    expect(await page.locator("#drawer > *").count()).toBe(0);
  });

  test("copies the URL, the ID and the body as they are, with the word back after a while", async () => {
    const id = await created({ url: "http://127.0.0.1:9/v1/copied?a=1", body: { a: 1.5 } });
    const page = await open(`/approvals/${id}`, { permissions: ["clipboard-read", "clipboard-write"] });
    const pane = page.locator("#request");
    await page.clock.install();
    const copied = async (name: string) => {
      await pane.getByRole("button", { name, exact: true }).click();
      await pane.locator("[data-told=Copied]").waitFor();
      const text = await page.evaluate("navigator.clipboard.readText()");
      await page.clock.fastForward(5_000);
      await pane.locator("[data-told]").waitFor({ state: "detached" });
      return text;
    };
    expect(await copied("Copy the URL")).toBe("http://127.0.0.1:9/v1/copied?a=1");
    await pane.getByText("Details").click();
    expect(await copied("Copy the action's ID")).toBe(id);
    expect(JSON.parse(String(await copied("Copy")).replace(/^Copy$/, "null"))).toMatchObject({ a: 1.5 });
    expect(watched.troubles).toEqual([]);
  });

  test("has the buttons of a confirmation in view, with the note, and is told there what is below", async () => {
    const id = await created({ body: LONG });
    const page = await open(`/approvals/${id}`);
    await page.getByRole("button", { name: MORE_BELOW }).waitFor();
    await page.keyboard.press("a");
    const dialog = page.getByRole("dialog", { name: "Approve POST 127.0.0.1:9?" });
    const approve = dialog.getByRole("button", { name: MORE_BELOW });
    await approve.waitFor();
    const box = await approve.boundingBox();
    expect((box?.y ?? 999) + (box?.height ?? 0)).toBeLessThan(500);
    await dialog.getByLabel("Note").fill("Order 1882 is paid.");
    await dialog.locator("[data-end]").scrollIntoViewIfNeeded();
    await dialog.getByRole("button", { name: "Approve", exact: true }).click();
    await page.locator(`#decided-${id}`).waitFor();
    const { extras } = await app.engine.actionService.get(app.engine.owner, id);
    const timeline = await app.engine.actionService.timeline(app.engine.owner, id);
    expect(JSON.stringify([extras, timeline])).toContain("Order 1882 is paid.");
  });

  test("is told how much is folded, until it was opened", async () => {
    const id = await created({ body: { rows: Array.from({ length: 60 }, (_, at) => ({ at })) } });
    const page = await open(`/approvals/${id}`, { viewport: { width: 1_280, height: 4_000 } });
    await page.getByRole("button", { name: /^Approve ?, with 40 folded$/ }).waitFor();
    await page.keyboard.press("a");
    const dialog = page.getByRole("dialog", { name: "Approve POST 127.0.0.1:9?" });
    await dialog.getByRole("button", { name: /^Approve ?, with 40 folded$/ }).waitFor();
    await dialog.getByText("40 more items").click();
    await dialog.getByRole("button", { name: "Approve", exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("#request").getByText("40 more items").click();
    await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
    // What was loaded stays through an update of the page.
    const news = await created({ url: "http://127.0.0.1:9/news-of-folds" });
    await page.locator(`#${news}`).waitFor();
    await page.locator("#request").getByText('{"at": 59}').waitFor();
    expect(await page.locator("#request .json-more").count()).toBe(0);
    expect(watched.troubles).toEqual([]);
  });

  test("loads the rest of a long body in its place, and several wait for it", async () => {
    const text = Array.from({ length: 900 }, (_, n) => `line ${n} of a long text`).join("\n");
    const id = await created({ body: { text } });
    const page = await open(`/approvals/${id}`);
    await page.getByRole("button", { name: /^Approve ?, with .* not shown$/ }).waitFor();
    expect(await textOf(page, "#request")).not.toContain("line 899");
    await page.getByRole("link", { name: "View the whole body" }).click();
    await page.locator("#request").getByText("line 899 of a long text").waitFor();
    await page.getByRole("button", { name: MORE_BELOW }).waitFor();
    expect(page.url()).toBe(`${app.url}/approvals/${id}`);
    await page.goto(`${app.url}/approvals/review?id=${id}`);
    await page.keyboard.press("End");
    await page.getByText("View the whole body first").waitFor();
    await page.getByRole("button", { name: /^Approve 1/ }).click({ force: true });
    expect(await page.locator('button[value="approve"]').getAttribute("aria-disabled")).toBe("true");
    await page.getByRole("link", { name: "View the whole body", exact: true }).click();
    // What was loaded has to be seen, too.
    await page.getByText(/^Read to the end first: \d+ more lines below$/).waitFor();
    await page.evaluate("document.activeElement.blur()");
    await page.keyboard.press("End");
    await page.locator('button[value="approve"][aria-disabled="false"]').waitFor();
    expect(watched.troubles).toEqual([]);
  });

  test("reads the folded items without script on a page of their own", async () => {
    const rows = Array.from({ length: 23 }, (_, at) => ({
      at,
      of: Array.from({ length: 22 }, (_one, n) => `${at}-${n}`),
    }));
    // By an owner's key, whose links need no list of approvers.
    const members = { url: "http://127.0.0.1:9/v1/rows", approve: true, body: { rows } };
    const { id } = (await app.call("POST", "/v1/actions", JSON.stringify(members))).json;
    const { approve: link } = await app.linksOf(id);
    const page = await open(`/approvals/${id}`, { javaScriptEnabled: false });
    for (const path of [`/approvals/${id}`, link]) {
      await page.goto(app.url + path);
      // A list inside of a list, and the end of the outer one.
      await page.getByText("2 more items").first().click();
      expect(await textOf(page, "main")).toContain('"0-21"');
      await page.getByRole("link", { name: "Back to the decision" }).click();
      expect(page.url()).toBe(app.url + path);
      await page.getByText("3 more items").click();
      const seen = await textOf(page, "main");
      for (const part of ['"20-0"', '"20-21"', '"22-21"']) expect(seen).toContain(part);
      await page.getByRole("link", { name: "Back to the decision" }).click();
      const whole = `${path === link ? link : `/actions/${id}`}/body`;
      await page.goto(app.url + whole);
      expect(await textOf(page, "main")).toContain('"22-21"');
      for (const query of [
        "?from=x",
        "?at=0&from=23",
        "?at=9&from=0",
        "?at=0..1&from=0",
        "?at=0.0.0&from=0",
        "?from=99999",
      ])
        expect((await page.request.get(app.url + whole + query)).status()).toBe(404);
    }
    const tooLate = await app.call("POST", `/v1/actions/${id}/cancel`);
    expect(tooLate.status).toBe(200);
    expect((await page.request.get(`${app.url}${link}/body`, { maxRedirects: 0 })).status()).toBe(303);
  });

  test("walks with j and k through folded look-alikes, and the ring is always on what is shown", async () => {
    const single = await created({ url: "http://127.0.0.1:9/other", title: "Alone" });
    const alike = [];
    for (const amount of [12, 48, 99]) alike.push(await created({ body: { amount } }));
    const last = await created({ url: "http://127.0.0.1:9/last", title: "Last" });
    const page = await open(`/approvals/${single}`);
    const fold = page.locator(".inbox-group details");
    expect(await fold.getAttribute("open")).toBeNull();
    for (const id of [...alike, last]) await pressUntilShown(page, "j", id);
    expect(await fold.getAttribute("open")).toBe("");
    // A live update between two keys changes neither; a fold that a person closed opens again.
    const [first = "", second = "", third = ""] = alike;
    await fold.locator("summary").click();
    const news = await created({ url: "http://127.0.0.1:9/news", title: "News" });
    await page.locator(`#${news}`).waitFor();
    await page.locator(`#${last} .inbox-open`).focus();
    await pressUntilShown(page, "k", third);
    await app.call("POST", `/v1/actions/${news}/cancel`);
    await page.locator(`#${news}`).waitFor({ state: "detached" });
    expect(await aims(page)).toEqual([third, third, third]);
    await pressUntilShown(page, "k", second);
    await pressUntilShown(page, "k", first);
    expect(watched.troubles).toEqual([]);
  });

  test("sees the last of several requests that were asked for fast, and decides on none before it is there", async () => {
    const [first, second, third] = [
      await created({ title: "1", url: "http://127.0.0.1:9/1" }),
      await created({ title: "2", url: "http://127.0.0.1:9/2" }),
      await created({ title: "3", url: "http://127.0.0.1:9/3" }),
    ];
    const page = await open(`/approvals/${first}`);
    await page.waitForLoadState("networkidle");
    const late = Promise.withResolvers<void>();
    for (const id of [second, third]) {
      await page.route(`**/approvals/${id}`, async (route) => {
        await late.promise;
        await route.continue().catch(() => {});
      });
    }
    await page.keyboard.press("j");
    await page.locator("#request > .skeleton").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("a");
    expect(await page.locator("dialog[open]").count()).toBe(0);
    late.resolve();
    await page.locator(`#of-${third}`).waitFor();
    await page.waitForURL(`${app.url}/approvals/${third}`);
    expect(await aims(page)).toEqual([third, third, third]);
    expect(await page.locator("#request > .skeleton").isVisible()).toBe(false);
  });

  test("approves several only after their end was in view, by keys or by hand, and nothing scrolls sideways", async () => {
    const ids: string[] = [];
    for (const amount of [1_900, 2_100, 9_900_000, 2_000])
      ids.push(await created({ body: { amount, text: "x".repeat(150) } }));
    const path = `/approvals/review?${ids.map((id) => `id=${id}`).join("&")}`;
    for (const viewport of [
      { width: 1_280, height: 500 },
      { width: 820, height: 500 },
      { width: 375, height: 600 },
    ]) {
      const page = await open(path, { viewport });
      const approve = page.getByRole("button", { name: /^Approve 4 · \d+ values$/ });
      await page.getByText(/^Read to the end first: \d+ more lines below$/).waitFor();
      await page.locator('button[value="approve"][aria-disabled="true"]').waitFor();
      // As an update of the page leaves it.
      await approve.evaluate((button) => button.removeAttribute("aria-disabled"));
      await approve.click({ force: true });
      await page.keyboard.press("a");
      expect([page.url(), await page.locator("dialog[open]").count()]).toEqual([app.url + path, 0]);
      const wide = await page.evaluate(
        "[...document.querySelectorAll('html, .inbox-pane, .request-body, .reviewed-card')].filter((one) => one.scrollWidth > one.clientWidth).length",
      );
      expect(wide).toBe(0);
      await page.evaluate("document.activeElement.blur()");
      await page.keyboard.press("End");
      await page.locator('button[value="approve"][aria-disabled="false"]').waitFor();
      expect(watched.troubles).toEqual([]);
    }
    await watched.page.getByRole("button", { name: /^Approve 4/ }).click();
    await watched.page.waitForURL(/decided=/);
    for (const id of ids)
      expect((await app.engine.actionService.get(app.engine.owner, id)).approvedBy).toBe("user:ann@example.com");
  });

  test("reads on first sight that it is one of several look-alikes", async () => {
    const alike = [];
    for (const amount of [12, 48, 99]) alike.push(await created({ body: { amount } }));
    const page = await open("/approvals");
    await page.waitForURL(`${app.url}/approvals/${alike[0]}`);
    expect(await page.locator(".inbox-group details").getAttribute("open")).toBe("");
    expect(await textOf(page, ".alike")).toContain("1 of 3 look-alikes");
    await page.getByRole("button", { name: "Approve this one" }).waitFor();
    await page.locator(".alike").getByRole("link", { name: "Review all 3" }).click();
    await page.getByRole("heading", { name: "Decide on 3 requests" }).waitFor();
    await page.getByRole("button", { name: /^Approve 3 · \d+ values$/ }).waitFor();
  });
});
