import { describe, expect, test } from "bun:test";
import { openRealServer } from "../http/real-server.ts";
import { barriersOf, HAS_BROWSER, openPage, overflowOf } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";

const app = await shared(openRealServer({ port: await freePort(), starts: false }));

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
