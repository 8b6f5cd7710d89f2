import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { openRealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { HOUR_MS } from "../../src/core/limits.ts";
import { FakeClock } from "../support/clock.ts";
import { HAS_BROWSER, type Watched, watchPageIn } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { Target } from "../support/target.ts";
import { useBrowser } from "./desk.ts";

const target = await shared(
  new Target(({ path }) => Response.json({ message: "Closed." }, { status: path === "/ok" ? 200 : 422 })),
);
const app = await shared(openRealServer({ port: await freePort() }));
const ann = await signedIn(app);
/** The newest first. */
const ids: string[] = [];
for (const path of ["ok", "refunds/1", "refunds/2", "refunds/3"]) {
  app.engine.clock.advance(1);
  const { id } = await app.engine.create({ url: target.url + path, retries: 1 });
  await app.engine.saw(id, { status: path === "ok" ? "completed" : "failed" });
  ids.unshift(id);
}

describe.skipIf(!HAS_BROWSER)("the list of actions, with script", () => {
  const browser = useBrowser();
  let herOwn: BrowserContext;
  let watched: Watched;
  beforeAll(async () => {
    herOwn = await browser.chromium.newContext();
    await ann.enter(herOwn);
  });
  afterEach(() => watched[Symbol.asyncDispose]());

  async function open(path: string, width = 1_280): Promise<Page> {
    watched = await watchPageIn(herOwn);
    const { page } = watched;
    await page.setViewportSize({ width, height: 700 });
    await page.goto(app.url + path);
    await page.evaluate("window.mark = 1");
    return page;
  }

  const isSamePage = (page: Page) => page.evaluate("window.mark === 1");
  const rows = (page: Page) => page.evaluate("[...document.querySelectorAll('tbody tr[id]')].map(({ id }) => id)");
  const checked = (page: Page) =>
    page.evaluate("[...document.querySelectorAll('tbody input')].map(({ checked }) => checked)");
  /** What a screen reader finds on the page, with what style sheets add. */
  const heardOn = async (page: Page) => {
    const session = await page.context().newCDPSession(page);
    const { nodes } = await session.send("Accessibility.getFullAXTree");
    await session.detach();
    return nodes.map(({ name }) => name?.value ?? "").join(" ");
  };
  const hasFocus = (page: Page, selector: string) =>
    page.evaluate(`document.activeElement === document.querySelector(${JSON.stringify(selector)})`);

  test("is searched as one types, with its address, its counts and its filters", async () => {
    const page = await open("/actions?status=failed");
    await page.locator("#search").pressSequentially("refunds/2");
    await page.waitForURL("**/actions?status=failed&q=refunds%2F2");
    expect(await rows(page)).toEqual([ids[1] ?? ""]);
    await page.locator("[aria-label=Status] a[aria-current]").getByText("Failed 1").waitFor();
    expect(await hasFocus(page, "#search")).toBe(true);
    expect(await page.locator("a:has-text('Any host')").getAttribute("href")).toContain("q=refunds%2F2");
    // A status finds what was answered with it.
    await page.locator("#search").fill("422");
    await page.waitForURL("**/actions?status=failed&q=422");
    await page.locator("[aria-label=Status] a[aria-current]").getByText("Failed 3").waitFor();
    // The same element tells what is found, so that screen readers say it.
    const told = await page.locator(".pager [role=status]").elementHandle();
    await page.locator("#search").fill("nowhere");
    await page.getByText("No actions match these filters").waitFor();
    expect(await told?.textContent()).toBe("No actions");
    await page.locator("#search").fill("");
    await page.waitForURL("**/actions?status=failed");
    expect(await isSamePage(page)).toBe(true);
    expect(watched.troubles).toEqual([]);
  });

  test("is divided by the days of the reader, not of UTC", async () => {
    const clock = new FakeClock(new Date("2026-01-01T12:00:00Z"));
    await using server = await openRealServer({ port: await freePort(), clock, starts: false });
    const first = await server.engine.create({});
    clock.advance(7 * HOUR_MS);
    const second = await server.engine.create({});
    const bob = await signedIn(server);
    // Half past midnight there.
    await using indian = await browser.chromium.newContext({ timezoneId: "Asia/Kolkata" });
    await bob.enter(indian);
    watched = await watchPageIn(indian);
    await watched.page.goto(`${server.url}/actions`);
    const shown = "[...document.querySelectorAll('tbody tr')].map((row) => row.id || row.innerText)";
    expect(await watched.page.evaluate(shown)).toEqual([
      second.id,
      expect.stringMatching(/^Thu,? 1 Jan 2026$/),
      first.id,
    ]);
    expect(await watched.page.locator("tbody .day th").getAttribute("colspan")).toBe("7");
    expect(watched.troubles).toEqual([]);
  });

  test("selects rows by box, with Shift and all at once, and keeps them through an update", async () => {
    const page = await open("/actions");
    const boxes = page.locator("tbody input[type=checkbox]");
    const bar = page.locator(".selection");
    await boxes.nth(0).click();
    await boxes.nth(2).click({ modifiers: ["Shift"] });
    expect(await checked(page)).toEqual([true, true, true, false]);
    expect(await bar.isVisible()).toBe(true);
    expect(await heardOn(page)).toMatch(/\b3 +selected\b/);
    expect(await bar.getByRole("button", { name: "Cancel" }).isVisible()).toBe(false);
    app.engine.clock.advance(1);
    const { id } = await app.engine.create({ approve: true });
    await page.locator(`#${id}`).waitFor();
    expect(await checked(page)).toEqual([false, true, true, true, false]);
    await page.getByLabel("Select all on this page").click();
    expect(await bar.getByRole("button", { name: "Cancel" }).isVisible()).toBe(true);
    await bar.getByRole("button", { name: "Clear" }).click();
    expect(await bar.isVisible()).toBe(false);
    await app.engine.actionService.cancel(app.engine.owner, id, null);
    expect(await isSamePage(page)).toBe(true);
    expect(watched.troubles).toEqual([]);
  });

  test("opens a row in a drawer under the action's address, and Escape leads back to the list as it was", async () => {
    const page = await open("/actions?status=failed");
    await page.locator("tbody input[type=checkbox]").nth(2).click();
    await page.locator(`#${ids[0]} .row-link`).click();
    const drawer = page.locator("#drawer");
    await drawer.getByText("Closed.").first().waitFor();
    expect(page.url()).toBe(`${app.url}/actions/${ids[0]}`);
    expect(await hasFocus(page, ".drawer-bar button")).toBe(true);
    // The next row is opened in it, and one step back is still the list.
    await page.keyboard.press("j");
    await page.waitForURL(`${app.url}/actions/${ids[1]}`);
    // The list below is updated under its own address.
    const { id } = await app.engine.create({ url: `${target.url}refunds/4`, retries: 1 });
    await page.locator(`#${id}`).getByText("Failed 422").waitFor({ state: "attached" });
    expect(await drawer.getByText("Closed.").count()).toBeGreaterThan(0);
    await page.keyboard.press("Escape");
    await page.waitForURL(`${app.url}/actions?status=failed`);
    expect(await drawer.isVisible()).toBe(false);
    expect(await page.title()).toContain("Actions");
    expect(await hasFocus(page, `#${ids[1]} .row-link`)).toBe(true);
    expect(await page.locator("tbody input:checked").count()).toBe(1);
    expect(await isSamePage(page)).toBe(true);
    expect(watched.troubles).toEqual([]);
  });

  const TITLE = "Refund 412.50 EUR to Maximilian Mustermann, order 1882";
  const PATH = "services/data/v61.0/sobjects/Account/001Hs00001aBc53";

  test("shows titles and paths of 50 characters whole in rows of 36 px, also beside an open drawer", async () => {
    const titled = await app.engine.create({ url: `${target.url}v1/refunds`, title: TITLE, approve: true });
    const untitled = await app.engine.create({ url: target.url + PATH, approve: true });
    const rowsOf = (page: Page) =>
      page.evaluate(`[...document.querySelectorAll("tbody tr")].slice(0, 2).map((row) => {
        const headline = row.querySelector(".row-link > span");
        const { height, right } = row.getBoundingClientRect();
        return { text: headline.innerText, isCut: headline.scrollWidth > headline.clientWidth, height, right };
      })`);
    const found = [
      { text: `/${PATH}`, isCut: false },
      { text: TITLE, isCut: false },
    ];
    for (const width of [1_280, 1_440]) {
      const page = await open("/actions", width);
      const closed = await rowsOf(page);
      expect(closed).toMatchObject(found);
      await page.locator(`#${untitled.id} .row-link`).click();
      await page.locator("#drawer .drawer-bar").waitFor();
      const left = await page.evaluate("document.querySelector('#drawer').getBoundingClientRect().left");
      const opened = (await rowsOf(page)) as readonly { height: number; right: number }[];
      const heights = [...(closed as typeof opened), ...opened].map(({ height }) => height);
      expect(heights.filter((height) => height < 32 || height > 37)).toEqual([]);
      expect(opened.filter(({ right }) => right >= Number(left))).toEqual([]);
      if (width > 1_280) expect(await rowsOf(page)).toMatchObject(found);
      await watched[Symbol.asyncDispose]();
    }
    for (const { id } of [titled, untitled]) await app.engine.actionService.cancel(app.engine.owner, id, null);
    await open("/actions");
  });

  test("has three lines for each action on a phone, and nothing to scroll sideways", async () => {
    const page = await open("/actions", 375);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(375);
    const [row] = await page.locator("tbody tr").all();
    const box = await row?.boundingBox();
    expect(box?.width).toBeLessThanOrEqual(343);
    expect(box?.height).toBeLessThanOrEqual(73);
    await page.locator("tbody input[type=checkbox]").first().click();
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(375);
  });
});
