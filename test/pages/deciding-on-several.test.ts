import { describe, expect, test } from "bun:test";
import { HAS_BROWSER } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { useDecisions } from "./desk.ts";
import type { Page } from "playwright-core";

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
