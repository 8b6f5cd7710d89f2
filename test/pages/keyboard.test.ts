import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { HAS_BROWSER } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { useDesk } from "./desk.ts";

/** The text of the clipboard, as soon as it is like this. */
const copiedOn = (page: Page, like: RegExp) =>
  eventually(async () => {
    const text = String(await page.evaluate("navigator.clipboard.readText()"));
    return like.test(text) ? text : null;
  }, `a text like ${like} in the clipboard`);

describe.skipIf(!HAS_BROWSER)("whoever works with keys in a browser", () => {
  const desk = useDesk({ height: 700 });

  test("is used by keys alone, and no single key decides", async () => {
    const id = await desk.created({ approve: true, url: "http://127.0.0.1:9/keys" });
    const page = await desk.open("/actions?status=awaiting_approval");
    await page.keyboard.press("j");
    expect(await page.evaluate("document.activeElement.closest('tr').id")).toBe(id);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${desk.app.url}/actions/${id}`);
    await page.goto(`${desk.app.url}/actions/${id}`);
    await page.getByRole("button", { name: "Approve" }).waitFor();

    await page.keyboard.press("a");
    await page.getByRole("dialog", { name: "Approve POST 127.0.0.1:9?" }).waitFor();
    await page.keyboard.press("Escape");
    // Keys in a dialog are the dialog's, and it takes a moment to close.
    await page.locator("dialog:not(#palette)").waitFor({ state: "detached" });
    expect((await desk.actionOf(id)).status).toBe("awaiting_approval");
    await page.keyboard.press("r");
    const dialog = page.getByRole("dialog", { name: "Reject POST 127.0.0.1:9?" });
    await dialog.getByText("http://127.0.0.1:9/keys").waitFor();
    await page.keyboard.press("Enter");
    expect((await desk.actionOf(id)).status).toBe("awaiting_approval");
    await dialog.getByRole("button", { name: "Reject" }).focus();
    await page.keyboard.press("Enter");
    await page.locator(".state").getByText("Cancelled").waitFor();
    expect((await desk.actionOf(id)).status).toBe("cancelled");
    await page.waitForLoadState();

    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).getByText("Approve, after a confirmation").waitFor();
    await page.keyboard.press("Escape");
    await page.goto(`${desk.app.url}/actions`);
    const menu = page.locator("main details.menu").nth(1);
    await menu.locator("summary").press("Enter");
    await menu.getByRole("link").last().press("Tab");
    expect(await menu.getAttribute("open")).toBeNull();
    await page.keyboard.press("/");
    // A whole id leads to its action as soon as it stands there.
    await page.keyboard.type(id);
    await page.waitForURL(`${desk.app.url}/actions/${id}`);
    await page.keyboard.press("r");
    await page.getByRole("dialog", { name: "Retry POST 127.0.0.1:9?" }).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Retry only" }).click();
    await page.locator(".state").getByText("Awaiting approval").waitFor();
    expect((await desk.actionOf(id)).run).toBe(2);
    expect(desk.troubles).toEqual([]);
  });

  test("shows the request of the inbox again before a key decides, and has the focus on no button", async () => {
    const id = await desk.created({
      approve: true,
      method: "DELETE",
      url: "http://127.0.0.1:9/inbox-keys",
      body: { n: 1 },
    });
    const page = await desk.open(`/approvals/${id}`);
    await page.getByRole("link", { name: /^DELETE \/inbox-keys / }).waitFor();
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
      expect((await desk.actionOf(id)).status).toBe("awaiting_approval");
      expect(await page.evaluate("new Set([...document.querySelectorAll('[id]')].map(({ id }) => id)).size")).toBe(
        await page.locator("[id]").count(),
      );
      await dialog.getByRole("button", { name: "Back" }).click();
      await page.locator("dialog:not(.palette)").waitFor({ state: "detached" });
    }
    await page.keyboard.press("a");
    await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await page.locator(`#decided-${id}`).getByText("Approved by ann@example.com").waitFor();
    expect(await page.title()).toStartWith("Approved · ");
    expect((await desk.actionOf(id)).approvedBy).toBe("user:ann@example.com");
    expect(desk.troubles).toEqual([]);
  });

  test("takes letters for letters where somebody types, and leads from a row to where the whole request stands", async () => {
    const id = await desk.created({ approve: true });
    const page = await desk.open(`/actions/${id}`);
    await page.getByText("Add note").click();
    await page.locator("textarea:focus").waitFor();
    await page.keyboard.type("axr?/jk");
    expect(await page.locator("textarea").inputValue()).toBe("axr?/jk");
    expect(await page.locator("dialog[open]").count()).toBe(0);
    await page.goto(`${desk.app.url}/actions`);
    await page.keyboard.press("j");
    await page.keyboard.press("a");
    await page.waitForURL(`${desk.app.url}/actions/${id}`);
    expect((await desk.actionOf(id)).status).toBe("awaiting_approval");
  });

  test.each([1_100, 800])("has the focus in the request that Enter has opened, %i px wide", async (width) => {
    const [first, second] = [
      await desk.created({ approve: true }),
      await desk.created({ approve: true, method: "PUT" }),
    ];
    const page = await desk.enterHerOwn({ width, height: 700 });
    await page.goto(`${desk.app.url}/approvals`);
    await desk.updated(page);
    await page.locator(`#${second} .inbox-open`).press("Enter");
    await page.waitForURL(`${desk.app.url}/approvals/${second}`);
    await page.locator("#request:focus").waitFor();
    await page.keyboard.press("k");
    if (width > 1_023) await page.locator(`#${first} .inbox-open:focus`).waitFor();
  });

  test("walks on from the box of a row, and Escape keeps what was typed in a drawer", async () => {
    const [first, second] = [await desk.created({ approve: true }), await desk.created({ approve: true })];
    const page = await desk.open("/actions?status=awaiting_approval");
    await page.getByRole("checkbox", { name: "Select POST 127.0.0.1:9" }).first().press(" ");
    expect(await page.getByRole("status").filter({ hasText: "selected" }).textContent()).toBe("1 selected");
    await page.keyboard.press("j");
    expect(await page.evaluate("document.activeElement.closest('tr').id")).toBe(first);
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await page.locator("#drawer .decide-note summary").click();
    await page.locator("#drawer textarea").fill("Not again.");
    await page.keyboard.press("Escape");
    expect([page.url(), await page.locator("#drawer textarea").inputValue()]).toEqual([
      `${desk.app.url}/actions/${second}`,
      "Not again.",
    ]);
    await page.locator("#drawer textarea").fill("");
    await page.keyboard.press("Escape");
    await page.waitForURL(`${desk.app.url}/actions?status=awaiting_approval`);
  });

  test("has the focus in the first field that is wrong", async () => {
    const page = await desk.enterHerOwn();
    await page.goto(`${desk.app.url}/keys/new`);
    await page.getByLabel("Name").fill("ci");
    await page.getByRole("radio", { name: /^Agent/ }).check();
    await page.getByText("Limits").click();
    await page.getByLabel("Hosts").fill("not a host");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.locator("#hosts:focus").waitFor();
  });

  test("copies a new key and a signing secret, which are long and must be whole", async () => {
    const page = await desk.enter(desk.ann, { permissions: ["clipboard-read", "clipboard-write"] });
    await page.goto(`${desk.app.url}/keys/new`);
    await page.getByLabel("Name").fill("ci");
    await page.getByRole("radio", { name: /^Agent/ }).check();
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "Copy" }).first().click();
    await copiedOn(page, /^og_[0-9A-Za-z]{36}$/);
    await page.goto(`${desk.app.url}/settings/signing`);
    await page.locator("#origin").fill("https://api.example.com");
    await page.getByRole("button", { name: "Show secret", exact: true }).click();
    await page.getByRole("button", { name: "Copy" }).first().click();
    await copiedOn(page, /^whsec_[0-9A-Za-z+/]+=*$/);
  });
});
