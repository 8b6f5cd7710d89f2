import { describe, expect, test } from "bun:test";
import { HAS_BROWSER } from "../support/browser.ts";
import { useDecisions } from "./desk.ts";

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
