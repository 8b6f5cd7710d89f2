import { describe, expect, test } from "bun:test";
import { HAS_BROWSER } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { useDecisions } from "./desk.ts";
import type { Page } from "playwright-core";

describe.skipIf(!HAS_BROWSER)("whoever decides in a browser", () => {
  const { desk, created, openAt, textOf } = useDecisions();
  const LONG = { text: Array.from({ length: 300 }, (_, n) => `line ${n}`).join("\n") };
  const MORE_BELOW = /^Approve ?, \d+ more lines below$/;

  test("sees every space of what is sent: two are not one, and a name that begins with one is another", async () => {
    const json = await created({ body: { "to  ann": "a   b", rows: ["x  y", "z", "x", "y"].map((of) => ({ of })) } });
    const headers = { Accept: "text/plain,  text/csv" };
    const form = await desk.created({ approve: true, form: { " admin": "a   b" }, headers });
    const page = await openAt(`/approvals/${json}`);
    for (const text of ['"to  ann": "a   b"', '{"of": "x  y"}']) expect(await textOf(page, "#request")).toContain(text);
    await page.goto(`${desk.app.url}/approvals/${form}`);
    for (const text of [" admin\ta   b", "text/plain,  text/csv"])
      expect(await textOf(page, "#request")).toContain(text);
  });

  test("is told on the action's own page how much of it is below, at any width, until it was in view", async () => {
    const id = await created({ body: LONG });
    for (const viewport of [
      { width: 1_280, height: 500 },
      { width: 375, height: 812 },
    ]) {
      const page = await openAt(`/actions/${id}`, { viewport });
      await page.getByRole("button", { name: MORE_BELOW }).waitFor();
      await page.locator(".asked-card [data-end]").scrollIntoViewIfNeeded();
      await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
      expect(desk.troubles).toEqual([]);
    }
  });

  test("has the decision below the whole request until the script can tell what is below", async () => {
    const id = await desk.created({ approve: true, body: { lines: Array.from({ length: 200 }, (_, n) => n) } });
    const page = await desk.enterHerOwn();
    const script = Promise.withResolvers<void>();
    await page.route("**/console-*.js", async (route) => {
      await script.promise;
      await route.continue();
    });
    await page.goto(`${desk.app.url}/approvals/${id}`, { waitUntil: "commit" });
    const approve = page.locator("#request button[value=approve]");
    await approve.waitFor();
    const isInView = async () => ((await approve.boundingBox())?.y ?? 0) < (page.viewportSize()?.height ?? 0);
    expect(await isInView()).toBe(false);
    script.resolve();
    await page.getByRole("button", { name: /^Approve, \d+ more lines below/ }).waitFor();
    expect(await isInView()).toBe(true);
  });

  test("stays in an open drawer with the keyboard, and comes back to the row", async () => {
    const id = await created({ body: LONG });
    const page = await openAt("/actions?status=awaiting_approval");
    await page.locator(`#${id} .row-link`).click();
    await page.locator("#drawer").getByRole("button", { name: "Close" }).waitFor();
    await page.locator("#drawer").getByRole("button", { name: MORE_BELOW }).waitFor();
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
    expect(desk.troubles).toEqual([]);
  });

  test("is led to the page of an action on a phone, which has no room for a drawer", async () => {
    const id = await created({});
    const page = await openAt("/actions", { viewport: { width: 375, height: 812 } });
    await page.locator(`#${id} .row-link`).click();
    await page.waitForURL(`${desk.app.url}/actions/${id}`);
    await page.getByRole("button", { name: "Approve" }).waitFor();
    expect(await page.locator("#drawer > *").count()).toBe(0);
  });

  test("copies the URL, the ID and the body as they are, with the word back after a while", async () => {
    const id = await created({ url: "http://127.0.0.1:9/v1/copied?a=1", body: { a: 1.5 } });
    const page = await openAt(`/approvals/${id}`, { permissions: ["clipboard-read", "clipboard-write"] });
    const pane = page.locator("#request");
    // The word stands there until the test lets time pass.
    await page.clock.install();
    await page.clock.pauseAt(Number(await page.evaluate("Date.now()")) + 1_000);
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
    expect(desk.troubles).toEqual([]);
  });

  test("has the buttons of a confirmation in view, with the note, and is told there what is below", async () => {
    const id = await created({ body: LONG });
    const page = await openAt(`/approvals/${id}`);
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
    const { extras } = await desk.app.engine.get(id);
    const timeline = await desk.app.engine.actionService.timeline(desk.app.engine.owner, id);
    expect(JSON.stringify([extras, timeline])).toContain("Order 1882 is paid.");
  });

  test("is told how much is folded, until it was opened", async () => {
    const id = await created({ body: { rows: Array.from({ length: 60 }, (_, at) => ({ at })) } });
    const page = await openAt(`/approvals/${id}`, { viewport: { width: 1_280, height: 4_000 } });
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
    expect(desk.troubles).toEqual([]);
  });

  test("loads the rest of a long body in its place, and several wait for it", async () => {
    const text = Array.from({ length: 900 }, (_, n) => `line ${n} of a long text`).join("\n");
    const id = await created({ body: { text } });
    const page = await openAt(`/approvals/${id}`);
    await page.getByRole("button", { name: /^Approve ?, with .* not shown$/ }).waitFor();
    expect(await textOf(page, "#request")).not.toContain("line 899");
    const rest = page.getByRole("link", { name: "View the whole body" });
    // What the button says of the lines below changes with what is in view, and moves the link: between the press of a mouse
    // that scrolled to it and its release, too, which is no click then.
    await rest.scrollIntoViewIfNeeded();
    await rest.click();
    await page.locator("#request").getByText("line 899 of a long text").waitFor();
    await page.getByRole("button", { name: MORE_BELOW }).waitFor();
    expect(page.url()).toBe(`${desk.app.url}/approvals/${id}`);
    await page.goto(`${desk.app.url}/approvals/review?id=${id}`);
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
    expect(desk.troubles).toEqual([]);
  });
});

describe.skipIf(!HAS_BROWSER)("whoever decides on several requests in a browser", () => {
  const { desk, created, openAt, textOf } = useDecisions();
  const seesIn = (page: Page, text: string) => page.locator("main").getByText(text).first().waitFor();

  /** The request whose row has the focus, the one that the list marks, and the one that a decision would be for. */
  const aims = (page: Page): Promise<readonly string[]> =>
    page.evaluate(`[
      document.activeElement.closest("li, tr")?.id,
      document.querySelector("#waiting [aria-current]")?.closest("li, tr").id,
      document.querySelector("#request [data-shown]")?.dataset.shown.split(" ")[0],
    ]`);

  /** Focus, mark and request may come one after the other. */
  const aimsAt = (page: Page, id: string) =>
    eventually(async () => (await aims(page)).every((aim) => aim === id) || null, `all that aims at ${id}`);

  async function pressUntilShown(page: Page, key: "j" | "k", id: string) {
    await page.keyboard.press(key);
    await page.locator(`#of-${id}`).waitFor();
    await page.waitForURL(`${desk.app.url}/approvals/${id}`);
    // What takes long to load would otherwise be seen before its row is marked.
    await page.locator(`#${id} [aria-current]`).waitFor({ state: "attached" });
    await aimsAt(page, id);
  }

  test("reads the folded items without script on a page of their own", async () => {
    const rows = Array.from({ length: 23 }, (_, at) => ({
      at,
      of: Array.from({ length: 22 }, (_one, n) => `${at}-${n}`),
    }));
    // By an owner's key, whose links need no list of approvers.
    const members = { url: "http://127.0.0.1:9/v1/rows", approve: true, body: { rows } };
    const { id } = (await desk.app.call("POST", "/v1/actions", JSON.stringify(members))).json;
    const { approve: link } = await desk.app.linksOf(id);
    const page = await openAt(`/approvals/${id}`, { javaScriptEnabled: false });
    for (const path of [`/approvals/${id}`, link]) {
      await page.goto(desk.app.url + path);
      // The end of a list inside of a list, or of the outer one: the whole body has both.
      await page.getByText("2 more items").first().click();
      for (const part of ['"0-21"', '"20-0"', '"20-21"', '"22-21"']) await seesIn(page, part);
      await page.getByRole("link", { name: "Back to the decision" }).click();
      const whole = `${path === link ? link : `/actions/${id}`}/body`;
      await page.goto(desk.app.url + whole);
      await seesIn(page, '"22-21"');
    }
    const tooLate = await desk.app.call("POST", `/v1/actions/${id}/cancel`);
    expect(tooLate.status).toBe(200);
    expect((await page.request.get(`${desk.app.url}${link}/body`, { maxRedirects: 0 })).status()).toBe(303);
  });

  test("walks with j and k through folded look-alikes, and the ring is always on what is shown", async () => {
    const single = await created({ url: "http://127.0.0.1:9/other", title: "Alone" });
    const alike = [];
    for (const amount of [12, 48, 99]) alike.push(await created({ body: { amount } }));
    const last = await created({ url: "http://127.0.0.1:9/last", title: "Last" });
    const page = await openAt(`/approvals/${single}`);
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
    await desk.app.call("POST", `/v1/actions/${news}/cancel`);
    await page.locator(`#${news}`).waitFor({ state: "detached" });
    expect(await aims(page)).toEqual([third, third, third]);
    await pressUntilShown(page, "k", second);
    await pressUntilShown(page, "k", first);
    expect(desk.troubles).toEqual([]);
  });

  test("sees the last of several requests that were asked for fast, and decides on none before it is there", async () => {
    const [first, second, third] = [
      await created({ title: "1", url: "http://127.0.0.1:9/1" }),
      await created({ title: "2", url: "http://127.0.0.1:9/2" }),
      await created({ title: "3", url: "http://127.0.0.1:9/3" }),
    ];
    const page = await openAt(`/approvals/${first}`);
    await desk.updated(page);
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
    await page.waitForURL(`${desk.app.url}/approvals/${third}`);
    await page.locator(`#${third} [aria-current]`).waitFor({ state: "attached" });
    await aimsAt(page, third);
    await page.locator("#request > .skeleton").waitFor({ state: "hidden" });
  });

  test("approves several only after their end was in view, by keys or by hand, and nothing scrolls sideways", async () => {
    const ids: string[] = [];
    for (const amount of [1_900, 2_100, 9_900_000, 2_000])
      ids.push(await created({ body: { amount, text: "x".repeat(150) } }));
    // It has a button of its own, above those of the decision.
    const headers = { Authorization: "Bearer sk_live_4eC39HqLyjWDarjtT1zdp7dc" };
    ids.push(await created({ headers, body: { note: "of another shape" } }));
    const path = `/approvals/review?${ids.map((id) => `id=${id}`).join("&")}`;
    for (const viewport of [
      { width: 1_280, height: 500 },
      { width: 820, height: 500 },
      { width: 375, height: 600 },
    ]) {
      const page = await openAt(path, { viewport });
      // Those that are chosen in the list, also after an update of it.
      await desk.updated(page);
      expect(await page.locator("[data-selected]").textContent()).toBe("5 selected");
      const approve = page.getByRole("button", { name: /^Approve 5 · \d+ values$/ });
      await page.getByRole("button", { name: "Show secrets" }).first().waitFor();
      await page.getByText(/^Read to the end first: \d+ more lines below$/).waitFor();
      await page.locator('button[value="approve"][aria-disabled="true"]').waitFor();
      // As an update of the page leaves it.
      await approve.evaluate((button) => button.removeAttribute("aria-disabled"));
      await approve.click({ force: true });
      await page.keyboard.press("a");
      expect([page.url(), await page.locator("dialog[open]").count()]).toEqual([desk.app.url + path, 0]);
      const wide = await page.evaluate(
        "[...document.querySelectorAll('html, .inbox-pane, .request-body, .reviewed-card')].filter((one) => one.scrollWidth > one.clientWidth).length",
      );
      expect(wide).toBe(0);
      await page.evaluate("document.activeElement.blur()");
      await page.keyboard.press("End");
      await page.locator('button[value="approve"][aria-disabled="false"]').waitFor();
      expect(desk.troubles).toEqual([]);
    }
    await desk.page.getByRole("button", { name: /^Approve 5/ }).click();
    await desk.page.waitForURL(/decided=/);
    for (const id of ids) expect((await desk.app.engine.get(id)).approvedBy).toBe("user:ann@example.com");
  });

  test("takes a second click after a decision for no decision on the next page of the review", async () => {
    const ids: string[] = [];
    // Too large together for one page.
    for (let n = 0; n < 9; n += 1) ids.push(await created({ url: `http://127.0.0.1:9/${n}?${"q".repeat(8_000)}` }));
    const page = await desk.enter(desk.ann);
    // The time since the page was opened stands still.
    await page.addInitScript("performance.now = () => 0");
    await page.goto(`${desk.app.url}/approvals/review?${ids.map((id) => `id=${id}`).join("&")}`);
    await page.getByText("1 more selected request on the next page").waitFor();
    await page.locator('#review button[value="reject"]').click();
    await page.locator(`#review[data-shown="${ids[8]} 1"]`).waitFor();
    await page.evaluate("document.querySelector('#review button[value=reject]').click()");
    // A form that was sent would lead away from the page before this is answered.
    expect(await page.evaluate("fetch('/more').then(({ status }) => status)")).toBe(200);
    const decided = await Promise.all(ids.map(async (id) => (await desk.actionOf(id)).status !== "awaiting_approval"));
    expect(decided).toEqual(ids.map((_id, at) => at < 8));
  });

  test("finds no boxes ticked that the browser ticks at the places of others when going back", async () => {
    const ids: string[] = [];
    for (const name of ["one", "two", "three"]) ids.push(await created({ url: `http://127.0.0.1:9/${name}` }));
    const page = await openAt("/approvals");
    for (const [path, change] of [
      ["/approvals", () => desk.app.call("POST", `/v1/actions/${ids[0]}/cancel`)],
      ["/actions", () => created({ url: "http://127.0.0.1:9/four" })],
    ] as const) {
      await page.goto(desk.app.url + path);
      await desk.updated(page);
      await page.locator(`input[name=id][value="${ids[1]}"]`).check();
      await page.goto(`${desk.app.url}/more`);
      await change();
      await page.goBack();
      await desk.updated(page);
      expect(
        await page.evaluate("[...document.querySelectorAll('[name=id]:checked')].map(({ value }) => value)"),
      ).toEqual([]);
    }
  });

  test("reads on first sight that it is one of several look-alikes", async () => {
    const alike = [];
    for (const amount of [12, 48, 99]) alike.push(await created({ body: { amount } }));
    const page = await openAt("/approvals");
    await page.waitForURL(`${desk.app.url}/approvals/${alike[0]}`);
    expect(await page.locator(".inbox-group details").getAttribute("open")).toBe("");
    expect(await textOf(page, ".alike")).toContain("1 of 3 look-alikes");
    await page.getByRole("button", { name: "Approve this one" }).waitFor();
    // A click on a box selects and opens nothing, though a link covers its row.
    await page.locator(`[name=id][value=${alike[1]}]`).click();
    expect(await page.locator(`[name=id][value=${alike[1]}]`).isChecked()).toBe(true);
    await page.locator(".alike").getByRole("link", { name: "Review all 3" }).click();
    await page.getByRole("heading", { name: "Decide on 3 requests" }).waitFor();
    await page.getByRole("button", { name: /^Approve 3 · \d+ values$/ }).waitFor();
  });
});
