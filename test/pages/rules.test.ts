import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { HAS_BROWSER } from "../support/browser.ts";
import { useDesk } from "./desk.ts";

const order = (page: Page) => page.locator(".rule-name b").allInnerTexts();

describe.skipIf(!HAS_BROWSER)("rules, in a browser", () => {
  const desk = useDesk({ height: 800 });

  test("are made from templates, mended, moved by keys with the focus on the button, and removed after a question", async () => {
    const page = await desk.enterHerOwn();
    await page.goto(`${desk.app.url}/settings/rules`);
    await page.getByRole("link", { name: "Hold all writes" }).click();
    await page.getByText("Keep it below all other rules").waitFor();
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.getByRole("link", { name: "Hold payments above an amount" }).click();
    await page.getByRole("textbox", { name: "Expression" }).fill("action.body.amount >\n  limit");
    await page.getByLabel("Place").selectOption("Before “All writes”");
    await page.getByRole("button", { name: "Create rule" }).click();
    const problem = page.locator("#when-problem");
    expect(await problem.innerText()).toBe('There is no "limit". There are action, key, now. (Line 2, column 3.)');
    expect(await page.getByRole("textbox", { name: "Expression" }).getAttribute("aria-describedby")).toBe(
      "when-hint when-problem",
    );
    expect(await page.getByRole("textbox", { name: "Expression" }).inputValue()).toBe("action.body.amount >\n  limit");
    await page.getByRole("textbox", { name: "Expression" }).fill("action.body.amount > 1000");
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.locator(".rule-name:target").waitFor();
    expect(await order(page)).toEqual(["Payments above 1000", "All writes"]);

    const up = page.getByRole("button", { name: "Move up All writes" });
    const id = ((await up.getAttribute("id")) ?? "").slice("up-".length);
    await up.press("Enter");
    await page.locator(`#down-${id}:focus`).waitFor();
    expect(await order(page)).toEqual(["All writes", "Payments above 1000"]);
    await page.keyboard.press("Enter");
    await page.locator(`#up-${id}:focus`).waitFor();
    expect(await order(page)).toEqual(["Payments above 1000", "All writes"]);

    await page.locator("summary", { hasText: "More for All writes" }).click();
    await page.getByRole("link", { name: "Remove All writes" }).click();
    await page.getByRole("heading", { name: "Remove this rule?" }).waitFor();
    await page.getByRole("button", { name: "Remove rule" }).click();
    await page.waitForURL("**/settings/rules");
    expect(await order(page)).toEqual(["Payments above 1000"]);
    expect(desk.troubles.filter((trouble) => !trouble.includes("status of 400"))).toEqual([]);
  });
});
