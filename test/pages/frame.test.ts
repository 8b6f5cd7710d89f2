import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { BrowserContext } from "playwright-core";
import { openRealServer } from "../http/real-server.ts";
import { joined, signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { HAS_BROWSER, type Watched, watchPageIn } from "../support/browser.ts";
import { textOf } from "../support/forms.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";

const SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";

/** IDs of actions. */
const own = { refund: "", failed: "", plain: "" };

async function create(members: object): Promise<string> {
  app.engine.clock.advance(1);
  return (await app.call("POST", "/v1/actions", { url: "http://127.0.0.1:9/", ...members }, KEYS.agent)).json.id;
}

const app = await shared(openRealServer({ port: await freePort() }));
const ann = await signedIn(app);
own.refund = await create({ approve: true, title: `Refund <b> with ${SECRET}`, body: { n: 1 } });
own.failed = await create({ retries: 1, title: "Close ticket 991" });
await app.engine.saw(own.failed, { status: "failed" });
own.plain = await create({ approve: true, url: "http://127.0.0.1:9/v1/plain?x=1" });

const found = async (text: string) => textOf(await ann.pageOf(`/palette?q=${encodeURIComponent(text)}`)).trim();

test("the navigation counts what waits and what failed in the last day, and the icon tells that something waits", async () => {
  const html = await ann.pageOf("/overview");
  expect(textOf(html)).toMatch(/Approvals 2 awaiting approval Actions 1 failed in the last day Overview Keys/);
  expect(html).toMatch(/<link id="icon"[^>]* href="\/assets\/icon-waiting-/);
  await using empty = await openRealServer({ starts: false });
  const bob = await signedIn(empty);
  const page = await bob.pageOf("/overview");
  expect(page).not.toContain('class="badge');
  expect(page).toMatch(/<link id="icon"[^>]* href="\/assets\/icon-[0-9a-f]/);
});

test("the navigation counts on every page: refused forms, what a form shows, and errors too", async () => {
  const reader = await joined(app, "reader");
  const key = { name: "counted", role: "reader", hold: "none" };
  const shown = {
    "a refused form": ann.press("/keys", { ...key, name: "" }),
    "a refused form of one's own account": ann.press("/settings/login/leave"),
    "a new key": ann.press("/keys", key),
    "a signing secret": ann.press("/settings/signing-secret", { origin: "https://a.example" }),
    "an action's secrets": ann.press(`/actions/${own.refund}/reveal`),
    "no such page": ann.context("/nowhere", { headers: { accept: "text/html" } }),
    "not allowed": reader.context("/keys/new", { headers: { accept: "text/html" } }),
  };
  for (const [what, answer] of Object.entries(shown)) {
    const text = textOf(await (await answer).text());
    expect({ what, text }).toEqual({ what, text: expect.stringContaining("Approvals 2 awaiting approval") });
  }
});

describe("the palette", () => {
  test("finds pages by their name, and actions by title, host or ID", async () => {
    expect(await found("over")).toBe("Go to Overview");
    expect(await found("rule")).toBe("Go to Rules Create a rule");
    const ticket = /^Actions “ Close ticket 991 ” Failed · agent · \S.* Do Retry “ Close ticket 991 ”$/;
    expect(await found("ticket")).toMatch(ticket);
    expect(await found(`see ${own.failed}`)).toMatch(ticket);
    // A title is in quotation marks, so it can't pass for an entry of ours.
    expect(await ann.pageOf("/palette?q=ticket")).toContain(`href="/bulk/new?id=${own.failed}&amp;operation=retry"`);
    expect(await found(own.plain)).toMatch(/^Actions POST 127\.0\.0\.1:9\/v1\/plain\?x=1 Awaiting approval · agent/);
    expect(await found("act_01kdvdna01eqda3v8th819zzzz")).toMatch(/^No page or action matches\./);
    expect(await found("zz-nothing")).toMatch(/^No page or action matches\./);
  });

  test("finds requests for credentials that wait, without what looks like a secret", async () => {
    const { json } = await app.call(
      "POST",
      "/v1/credential-requests",
      { host: "pay.example", reason: `With ${SECRET} it works.` },
      KEYS.agent,
    );
    const entry = "Credentials that agents ask for Credential for pay.example agent · just now";
    expect(await found("pay.ex")).toContain(entry);
    expect(await found("credential for")).toContain(entry);
    expect(await found(json.id)).toContain(entry);
    expect(await found("")).toContain(entry);
    const html = await ann.pageOf("/palette?q=pay.example");
    expect(html).toContain(`href="/approvals/credentials/${json.id}"`);
    expect(html).not.toContain(SECRET);
    expect(await found("other.example")).not.toContain("Credential for");
    await app.call("POST", `/v1/credential-requests/${json.id}/decline`);
    expect(await found("pay.example")).not.toContain("Credential for");
  });

  test("shows first what waits for a decision, with secrets masked and markup as text", async () => {
    const html = await ann.pageOf("/palette");
    expect(html).toContain(`href="/approvals/${own.refund}"`);
    expect(html).toContain("Refund &lt;b&gt; with");
    expect(html).not.toContain(SECRET);
  });

  test("offers owners to pause a host that it names, and nobody else", async () => {
    for (const text of ["api.example.com", "Pause api.example.com"])
      expect(await found(text)).toContain("Pause api.example.com");
    expect(await found("refund")).not.toContain("Pause");
  });
});

test("the page behind More leads to everything that the tabs of a phone leave out", async () => {
  const html = await ann.pageOf("/more");
  expect(html).toContain('<a href="/more" aria-current="page">');
  for (const path of ["/keys", "/settings", "/docs", "/settings/people", "/audit", "/auth/logout"]) {
    expect(html).toContain(`"${path}"`);
  }
  const [, list = ""] = html.split('<ul class="card more">');
  const paths = [...list.matchAll(/<a href="([^"]+)"/g)].map(([, path]) => path ?? "");
  expect(paths.length).toBeGreaterThan(10);
  for (const path of paths) {
    const { status } = await ann.context(path);
    expect(status === 303 ? 200 : status, path).toBe(200);
  }
});

describe.skipIf(!HAS_BROWSER)("in a browser", () => {
  const browser = useBrowser();
  let herOwn: BrowserContext;
  let watched: Watched;
  beforeAll(async () => {
    const viewport = { width: 1_000, height: 700 };
    herOwn = await browser.chromium.newContext({ viewport, timezoneId: "Asia/Kolkata" });
    await ann.enter(herOwn);
  });
  afterEach(() => watched[Symbol.asyncDispose]());

  async function open(path: string) {
    watched = await watchPageIn(herOwn);
    await watched.page.goto(app.url + path);
    return watched.page;
  }

  test("Ctrl K opens the palette from anywhere, arrows choose, and Enter goes there", async () => {
    const page = await open("/overview");
    await page.keyboard.press("Control+k");
    await page.locator("#found").getByText("Awaiting approval").first().waitFor();
    // At once: while it is typed letter by letter, the answer to the last one may come after that to a part of the word.
    await page.keyboard.insertText("ticket");
    const chosen = page.locator("#found [aria-selected=true]");
    await page.locator("#found [role=option]").nth(1).getByText("Retry “Close ticket 991”").waitFor();
    await chosen.getByText("Close ticket 991").waitFor();
    const field = page.locator("#palette-text");
    expect(await field.getAttribute("aria-activedescendant")).toBe(`found-${own.failed}`);
    await page.keyboard.press("ArrowDown");
    expect(await chosen.innerText()).toStartWith("Retry “Close ticket 991”");
    await page.keyboard.press("ArrowUp");
    // The first Escape closes it, with text in the field too.
    await page.keyboard.press("Escape");
    expect(await page.locator("#palette[open]").count()).toBe(0);
    await page.keyboard.press("Control+k");
    await chosen.getByText("Close ticket 991").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`${app.url}/actions/${own.failed}`);
    expect(watched.troubles).toEqual([]);
  });

  test("the palette fits a phone, and what it finds stands above its facts", async () => {
    const page = await open("/overview");
    await page.setViewportSize({ width: 375, height: 700 });
    await page.keyboard.press("Control+k");
    await page.keyboard.insertText("ticket");
    const entry = page.locator(`#found-${own.failed}`);
    await entry.waitFor();
    expect(
      await page.evaluate(
        "document.getElementById('found').scrollWidth <= document.getElementById('found').clientWidth",
      ),
    ).toBe(true);
    const [name, facts] = await Promise.all([
      entry.getByText("Close ticket 991").boundingBox(),
      entry.locator(".found-facts").boundingBox(),
    ]);
    expect(facts?.y).toBeGreaterThan(name?.y ?? Number.NaN);
    await page.setViewportSize({ width: 1_000, height: 700 });
  });

  test("times are in the reader's zone, and their tooltip has the other form", async () => {
    const page = await open(`/actions/${own.failed}`);
    const time = page.locator("time[data-time=full]").first();
    const at = new Date((await time.getAttribute("datetime")) ?? "");
    const zone = { timeZone: "Asia/Kolkata", hour: "2-digit", minute: "2-digit" } as const;
    expect(await time.innerText()).toContain(new Intl.DateTimeFormat("en-GB", zone).format(at));
    expect(await time.getAttribute("title")).toContain("GMT+5:30");
  });

  test("a field for a time is in the reader's zone, and sends UTC", async () => {
    const page = await open("/actions?created_after=2026-03-04T06:30:00Z");
    await page.locator(".menu > summary", { hasText: "More" }).click();
    const field = page.getByLabel("Created after (GMT+5:30)");
    expect(await field.inputValue()).toStartWith("2026-03-04T12:00");
    await field.fill("2026-03-05T05:30:00");
    await field.press("Enter");
    await page.waitForURL((url) => url.searchParams.get("created_after") === "2026-03-05T00:00:00Z");
    expect(await field.inputValue()).toStartWith("2026-03-05T05:30");
  });

  test("Escape closes an open menu, and so does a click beside it", async () => {
    const page = await open("/overview");
    const menu = page.locator(".person-menu");
    for (const close of [() => page.keyboard.press("Escape"), () => page.locator("h1").first().click()]) {
      await page.locator(".person-menu summary").click();
      expect(await menu.getAttribute("open")).toBe("");
      await close();
      expect(await menu.getAttribute("open")).toBeNull();
    }
  });
});
