import { describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { openRealServer } from "../http/real-server.ts";
import { ANN, ANN_PASSWORD, confirmPassword, signedIn } from "../http/signed-in.ts";
import { HAS_BROWSER, watchPage } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";

const CANARY = "Bearer cAn4ry9Zq8Xw2Lr5Tn9Vb4K";

const app = await shared(openRealServer({ port: await freePort() }));
await signedIn(app);

describe.skipIf(!HAS_BROWSER)("the secret of a session, in a browser", () => {
  const browser = useBrowser();

  async function logIn(page: Page): Promise<void> {
    await page.goto(`${app.url}/login`);
    await page.getByLabel("Email").fill(ANN);
    await page.getByLabel("Password").fill(ANN_PASSWORD);
    await page.getByRole("button", { name: "Log in" }).click();
    // Where something waits, the page takes the address of the request that it shows.
    await page.waitForURL(/\/approvals(\/act_\w+)?$/);
  }
  const asked = async () => {
    const headers = { Authorization: CANARY };
    return (await app.engine.create({ approve: true, url: "http://127.0.0.1:9/x", headers })).id;
  };

  test("changes nothing for whoever works with script: no question comes up, but once where the storage was emptied", async () => {
    await using watched = await watchPage(browser.chromium);
    const { page, troubles } = watched;
    await logIn(page);
    const secret = () => page.evaluate(`localStorage.getItem("outgate_session_secret")`);
    const first = await secret();
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    const addHost = async (host: string) => {
      await page.goto(`${app.url}/settings/callback-hosts`);
      // The form is closed where the list has a host.
      if (host !== "one.example") await page.getByText("Add a host").click();
      await page.getByLabel("Host", { exact: true }).fill(host);
      await page.getByRole("button", { name: "Add host" }).click();
    };
    await addHost("one.example");
    await page.getByText("one.example").first().waitFor();
    const id = await asked();
    await page.goto(`${app.url}/actions/${id}`);
    await page.getByRole("button", { name: "Reveal" }).click();
    await page.getByText(CANARY).first().waitFor();

    await page.evaluate("localStorage.clear()");
    await addHost("two.example");
    await confirmPassword(page, "not the password");
    await page.getByText("This is not your current password.").waitFor();
    await confirmPassword(page);
    await page.getByText("two.example").first().waitFor();
    await addHost("three.example");
    await page.getByText("three.example").first().waitFor();
    expect(await secret()).not.toBe(first);

    // Another login makes another secret.
    const second = await secret();
    await page.goto(`${app.url}/more`);
    await page.locator("main").getByRole("button", { name: "Log out" }).click();
    await page.waitForURL("**/login");
    await logIn(page);
    expect(await secret()).not.toBe(second);
    await addHost("four.example");
    await page.getByText("four.example").first().waitFor();
    // The refusals are lines of the browser's own.
    expect(troubles.filter((trouble) => !/status of (401|403)/.test(trouble))).toEqual([]);
  });
});
