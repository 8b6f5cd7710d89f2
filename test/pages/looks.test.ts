import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { URL_CHARS_MAX } from "../../src/config/limits.ts";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { barriersOf, HAS_BROWSER, heightsOf, openBrowser, overflowOf, watchPage } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { Target } from "../support/target.ts";

// A browser, on a machine that may be busy.
setDefaultTimeout(60_000);

describe.skipIf(!HAS_BROWSER)("every page, in a browser", () => {
  let chromium: Browser;
  let app: RealServer;
  let ann: Awaited<ReturnType<typeof signedIn>>;
  let paths: readonly string[];
  const target = new Target(503, () => Response.json({ ok: true, text: "x".repeat(400) }));

  beforeAll(async () => {
    chromium = await openBrowser();
    app = await openRealServer({ port: await freePort() });
    ann = await signedIn(app);
    const ask = async (members: object) => {
      const request = { approve: true, notify: { email: "ann@example.com" }, ...members };
      return (await app.call("POST", "/v1/actions", JSON.stringify(request))).json.id;
    };
    const wide = {
      url: `${target.url}${"a".repeat(300)}?token=x`,
      headers: { "X-Long": "y".repeat(300), Accept: "*/*" },
    };
    const waiting = await ask({
      ...wide,
      body: { text: "z".repeat(300), list: Array.from({ length: 300 }, (_, n) => ({ n })) },
    });
    // Longer than its window in the inbox, and shorter than what stands in one everywhere.
    await ask({ body: { list: Array.from({ length: 40 }, (_, n) => ({ n })) }, url: target.url });
    // As long as a host and a URL may be.
    const url = `https://${"sub.".repeat(61)}a.example/`.padEnd(URL_CHARS_MAX, "x");
    const longest = await ask({ url, callback: url, method: "DELETE", body: { to: "p\u0430ypal" } });
    const done = await ask({ ...wide, body: { amount: 7 } });
    await app.call("POST", `/v1/actions/${done}/approve`, JSON.stringify({ reason: "w".repeat(300) }));
    await app.engine.saw(done, { status: "pending", attempts: 1 });
    app.engine.clock.advance(10_000);
    await app.engine.saw(done, { status: "completed" });
    const failed = await ask({ ...wide, body: { amount: 8 }, approve: false, retries: 1, url: "http://127.0.0.1:9/" });
    await app.engine.saw(failed, { status: "failed" });
    const { approve } = await app.linksOf(waiting);
    const receipts = [waiting, done].map((id) => app.engine.receiptUrl(id));
    paths = [
      "/actions",
      "/actions?status=failed&status=cancelled&host=127.0.0.1",
      "/actions?host=no",
      "/actions?limit=0",
      `/actions/${waiting}`,
      `/actions/${done}`,
      `/actions/${failed}`,
      `/actions/${failed}/again`,
      "/approvals",
      `/approvals?decided=${done}`,
      `/approvals/${waiting}`,
      `/approvals/${longest}`,
      `/approvals/review?id=${waiting}&id=${longest}`,
      `/actions/${longest}`,
      (await app.linksOf(longest)).reject,
      approve,
      ...receipts,
      "/r/nothing",
      "/login",
      "/x",
    ];
  });
  afterAll(async () => {
    await chromium.close();
    await app[Symbol.asyncDispose]();
    await target[Symbol.asyncDispose]();
  });

  const openAs = async (colorScheme: "light" | "dark", width: number) => {
    const watched = await watchPage(chromium, {
      bypassCSP: true,
      colorScheme,
      viewport: { width, height: 700 },
      hasTouch: width < 800,
    });
    await ann.enter(watched.page.context());
    return watched;
  };

  /** What reaches into the edge of the card that it stands in: the page itself need not scroll for that. */
  const OUTSIDE = `[...document.querySelectorAll(".card :is(input, select, textarea, button, a, code)")]
    .filter((part) => {
      const card = part.closest(".card");
      const end = card.getBoundingClientRect().right - parseFloat(getComputedStyle(card).paddingRight);
      return part.checkVisibility() && part.getBoundingClientRect().right > end + 1;
    })
    .map((part) => part.outerHTML)`;

  /** What is folded away is a part of the page, too. */
  const openAll = (page: Page) =>
    page.evaluate(
      "for (const fold of document.querySelectorAll('details')) { fold.removeAttribute('name'); fold.open = true; }",
    );

  test.each(["light", "dark"] as const)("can be read by everybody (axe finds nothing), %s", async (scheme) => {
    await using watched = await openAs(scheme, 900);
    for (const path of paths) {
      await watched.page.goto(app.url + path);
      await openAll(watched.page);
      expect({ path, found: await barriersOf(watched.page, scheme === "light" ? "all" : "of looks") }).toEqual({
        path,
        found: [],
      });
    }
  });

  test("fits a screen of 320 px, and a finger finds its buttons", async () => {
    await using watched = await openAs("light", 320);
    for (const path of paths) {
      await watched.page.goto(app.url + path);
      await openAll(watched.page);
      expect({ path, overflow: await overflowOf(watched.page) }).toEqual({ path, overflow: 0 });
      expect({ path, outside: await watched.page.evaluate(OUTSIDE) }).toEqual({ path, outside: [] });
      const heights = await heightsOf(watched.page, "button:not(.copy), .button, nav a, summary");
      expect({ path, small: heights.filter((height) => height < 44) }).toEqual({ path, small: [] });
    }
  });

  test("is printed whole: no buttons, no navigation, and nothing in a window", async () => {
    await using watched = await openAs("light", 900);
    await watched.page.emulateMedia({ media: "print" });
    const bare = `[...document.querySelectorAll("section.card")]
      .filter((card) => card.checkVisibility() && card.innerText.trim() === card.querySelector("h2")?.innerText.trim())
      .map((card) => card.innerText)`;
    for (const path of paths) {
      await watched.page.goto(app.url + path);
      expect({ path, buttons: await watched.page.locator("button:visible, nav:visible").count() }).toEqual({
        path,
        buttons: 0,
      });
      const cut =
        "[...document.querySelectorAll('pre')].filter((pre) => pre.scrollHeight > pre.clientHeight + 2).length";
      expect({ path, cut: await watched.page.evaluate(cut) }).toEqual({ path, cut: 0 });
      expect({ path, bare: await watched.page.evaluate(bare) }).toEqual({ path, bare: [] });
    }
  });

  test("is printed dark on white, whatever the screen is", async () => {
    const colours = `["html", ".card", ".code", ".quiet", "h1"].flatMap((name) => {
      const part = document.querySelector(name);
      if (part === null) return [];
      const { color, backgroundColor, colorScheme } = getComputedStyle(part);
      return [[name, color, backgroundColor, colorScheme]];
    })`;
    await using dark = await openAs("dark", 900);
    await using light = await openAs("light", 900);
    const printed = async ({ page }: typeof dark, path: string) => {
      await page.emulateMedia({ media: "print" });
      await page.goto(app.url + path);
      return page.evaluate(colours);
    };
    for (const path of paths) {
      expect({ path, colours: await printed(dark, path) }).toEqual({ path, colours: await printed(light, path) });
    }
  });
});
