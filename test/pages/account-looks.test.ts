import { describe, expect, test } from "bun:test";
import { openRealServer } from "../http/real-server.ts";
import { confirmPassword, signedIn } from "../http/signed-in.ts";
import { SOME_RULES } from "../http/stub-server.ts";
import { readConfig, serverSettings } from "../../src/config/config.ts";
import { barriersOf, HAS_BROWSER, heightsOf, overflowOf, openPage } from "../support/browser.ts";
import { IS_LONG } from "../support/long.ts";
import { freePort } from "../support/free-port.ts";
import { docsPath, GUIDES } from "../../src/pages/docs/guides.ts";
import { Target } from "../support/target.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";
import { openFolds } from "./visits.ts";

const SETTINGS =
  "notifications channels signing server rotation password accounts pauses people login hosts callback-hosts " +
  "hosts/defaults hosts/edit?host=a.example rules rules/new?template=office-hours grants credentials";

const PAGES = [
  ..."/overview /get-started /keys /keys/new /settings /audit".split(" "),
  ...SETTINGS.split(" ").map((name) => `/settings/${name}`),
];

const DOCS = [
  ...GUIDES.map(({ name }) => docsPath(name)),
  "/docs/api",
  "/docs/api/objects",
  "/docs/errors",
  "/docs/search?q=retry",
  "/docs/api/createAction",
];

/** Pages that are made otherwise than others. */
const OTHER_DOCS = DOCS.slice(-3);

/** Guides are made of the same parts, and so are the operations and objects: one of each. */
const SOME_DOCS = IS_LONG ? DOCS : [docsPath("recipes"), "/docs/api", ...OTHER_DOCS];

const LONG_DOMAIN = `${"mg.".repeat(20)}northwind.example`;

/** Names are plain ASCII, which is enough to try. */
const MARKUP = '"><script>alert(1)</script><img src=x onerror=alert(2)>';

const target = await shared(new Target(503));
const all = serverSettings(readConfig({ MAILGUN_API_KEY: "mail-key-0123456789", MAILGUN_DOMAIN: LONG_DOMAIN }));
const settingsFor = () => Promise.resolve({ ...SOME_RULES, sendsMail: true, all });
const app = await shared(openRealServer({ port: await freePort(), settingsFor }));
const ann = await signedIn(app);
const callback = `${target.url}hook/%22%3E<script>alert(3)</script>`;
const request = { url: `${target.url}x`, retries: 2, callback };
const { id } = (await app.call("POST", "/v1/actions", request)).json;
await app.engine.saw(id, { status: "pending", attempts: 1 });
const held = (await app.call("POST", "/v1/actions", { ...request, approve: true })).json;
await app.engine.told(held.id, "callback", 1);
await app.call("POST", "/v1/invitations", `{"email":"bob@example.com","role":"approver"}`);
const fields = { ...(await ann.hiddenOf("/keys/new")), role: "reader", hold: "all", name: MARKUP };
expect((await ann.send("/keys", fields)).status).toBe(200);
// Wider than a phone, but for where it is broken.
const when = `action.headers['x-${"long-".repeat(30)}name'] == 'x'`;
const rule = {
  name: MARKUP,
  effect: "hold",
  hosts: [LONG_DOMAIN],
  path: `/${"pay".repeat(80)}`,
  when,
  message: MARKUP,
};
const made = (await app.call("POST", "/v1/rules", rule)).json;
await app.call("POST", "/v1/rules", `{"name":"Others","effect":"refuse","when":"action.path == '/x'\n  || false"}`);
await app.call("POST", "/v1/rules", `{"name":"Changes","effect":"hold","methods":["PATCH"]}`);
const change = { url: target.url, method: "PATCH", body: { amount: 7 } };
const [offered, granted] = [
  (await app.call("POST", "/v1/actions", change)).json,
  (await app.call("POST", "/v1/actions", change)).json,
];
expect(
  (await app.call("POST", `/v1/actions/${granted.id}/approve`, { grant: { minutes: 15, calls: 20 } })).status,
).toBe(200);
const pages = [...PAGES, `/settings/rules/${made.id}`, `/settings/rules/${made.id}/remove`, `/approvals/${offered.id}`];

describe.skipIf(!HAS_BROWSER)("the looks of overview, keys, settings and docs, in a browser", () => {
  const openAs = useBrowser().of(ann);

  /** What is neither ours nor text. */
  const FOREIGN =
    "script:not([src^='/assets/console-'], [src^='/assets/htmx-'], [src^='/assets/idiomorph-'], [src^='/assets/session-']), iframe, main img";

  /** Times that take more than one line of a table; where it is narrow, a list is none. */
  const BROKEN_TIMES = `[...document.querySelectorAll(".data time")]
    .filter((time) => time.getClientRects().length > 1 && getComputedStyle(time.closest(".data")).display === "table")
    .map((time) => time.outerHTML)`;

  // Each page is opened twice for all that is looked at: opening takes longer than looking. Fifty pages take a busy machine a minute.
  test("they can be read by everybody (axe finds nothing), and nothing that others wrote runs in them", async () => {
    await using watched = await openAs({ viewport: { width: 900, height: 700 } });
    const { page, troubles } = watched;
    for (const path of [...pages, ...SOME_DOCS]) {
      await page.goto(app.url + path);
      const elements = await page.locator(FOREIGN).count();
      await openFolds(page);
      expect({ elements, found: await barriersOf(page) }, path).toEqual({ elements: 0, found: [] });
    }
    await page.goto(`${app.url}/keys`);
    expect(await page.locator("main").innerText()).toContain(MARKUP);
    await page.goto(`${app.url}/settings/rules`);
    expect(await page.locator("main").innerText()).toContain(`“${MARKUP}”`);
    await page.goto(`${app.url}/settings/notifications`);
    expect(await page.locator("main").innerText()).toContain("<script>alert(3)</script>");
    await page.goto(`${app.url}/settings/signing`);
    await page.locator("#origin").fill(MARKUP);
    await page.getByRole("button", { name: "Show secret", exact: true }).click();
    expect(await page.locator("#origin").inputValue()).toBe(MARKUP);
    // That it was not understood is a line of the browser's own.
    expect(troubles.filter((trouble) => !trouble.includes("status of 400"))).toEqual([]);
  }, 120_000);

  test.each(["light", "dark"] as const)(
    "so can the question for the password, and it fits 320 px, %s",
    async (colorScheme) => {
      await using watched = await openAs({
        bypassCSP: true,
        colorScheme,
        viewport: { width: 320, height: 700 },
        hasTouch: true,
      });
      const { page } = watched;
      // As if nothing had been kept.
      await page.addInitScript("localStorage.clear()");
      await page.goto(`${app.url}/settings/callback-hosts`);
      await page.getByLabel("Host", { exact: true }).fill("a.example");
      await page.getByRole("button", { name: "Add host" }).click();
      await confirmPassword(page, "not the password");
      await page.getByText("This is not your current password.").waitFor();
      expect([await barriersOf(page), await overflowOf(page)]).toEqual([[], 0]);
      const heights = await heightsOf(page, "main :is(button, .button)");
      expect(heights.filter((height) => height < 44)).toEqual([]);
    },
  );

  test("they fit a screen of 320 px and of 820 px, can be read there in the dark, and are found by keys", async () => {
    await using watched = await openAs({
      bypassCSP: true,
      colorScheme: "dark",
      viewport: { width: 320, height: 700 },
      hasTouch: true,
    });
    const { page } = watched;
    for (const path of [...pages, ...DOCS]) {
      await page.goto(app.url + path);
      expect(await overflowOf(page), path).toBe(0);
      const heights = await heightsOf(page, "main :is(button, .button, .option, summary, .back, .check, .between > a)");
      expect(
        heights.filter((height) => height < 44),
        path,
      ).toEqual([]);
      if (pages.includes(path)) {
        for (const width of [820, 1_280]) {
          await page.setViewportSize({ width, height: 700 });
          expect(await overflowOf(page), path).toBe(0);
          expect(await page.evaluate(BROKEN_TIMES), path).toEqual([]);
        }
        await page.setViewportSize({ width: 320, height: 700 });
      }
      if (!IS_LONG && DOCS.includes(path) && !OTHER_DOCS.includes(path)) continue;
      await openFolds(page);
      expect(await barriersOf(page, "of looks"), path).toEqual([]);
    }
    await page.goto(`${app.url}/keys/new`);
    await page.getByLabel("Name").focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await page.keyboard.press("ArrowDown");
    expect(await page.getByRole("radio", { name: /^Approver/ }).isChecked()).toBe(true);
    expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
  }, 120_000);
});

describe.skipIf(!HAS_BROWSER)("the pages of somebody who is not logged in, in a browser", () => {
  const browser = useBrowser();

  test.each([false, true])("fit 320 px, and have no barrier that an audit finds, dark: %p", async (isDark) => {
    const page = await openPage(browser.chromium, { width: 320, isDark, scripts: true });
    const seen = async () => ({
      overflow: await overflowOf(page),
      barriers: await barriersOf(page, isDark ? "of looks" : "all"),
    });
    for (const path of ["/login", "/signup", "/welcome/none"]) {
      await page.goto(app.url + path);
      expect(await seen(), path).toEqual({ overflow: 0, barriers: [] });
    }
    await page.goto(`${app.url}/signup`);
    await page.getByLabel("Email").fill(`audited-${isDark}@example.com`);
    await page.getByLabel("Password").fill("correct horse battery staple");
    await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name: "Sign up" }).click()]);
    expect(await barriersOf(page)).toEqual([]);
    await page.context().close();
  });
});
