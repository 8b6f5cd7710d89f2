import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { useBrowser } from "../pages/desk.ts";
import { barriersOf, HAS_BROWSER, openPage, overflowOf } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { Service } from "../support/service.ts";
import { shared } from "../support/shared.ts";

/** Browsers and services, one after the other, on a machine that may be busy. */
setDefaultTimeout(60_000);
const PASSWORD = "correct horse battery staple";
const url = await (await shared(new Service())).ready();
const signUp = async (base: string, email: string) => {
  const body = JSON.stringify({ email, password: PASSWORD });
  const headers = { "content-type": "application/json" };
  return (await fetch(`${base}/auth/signup`, { method: "POST", headers, body })).status;
};

test("strangers sign up on loopback only, unless SIGNUPS says otherwise", async () => {
  const expected = [
    [{}, 201],
    [{ HOST: "0.0.0.0" }, 403],
    [{ HOST: "0.0.0.0", SIGNUPS: "open" }, 201],
    [{ SIGNUPS: "closed" }, 403],
    [{ BASE_URL: "https://outgate.example.com" }, 403],
  ] as const;
  const statusUnder = async (env: Readonly<Record<string, string>>) => {
    // Its own, since a public address or BASE_URL says nothing of where it listens.
    const port = await freePort();
    await using service = new Service({ env: { ...env, PORT: String(port) } });
    await service.ready();
    // Awaited here: the service has gone at the return.
    return await signUp(`http://127.0.0.1:${port}`, "ann@example.com");
  };
  const seen = await Promise.all(expected.map(async ([env]) => [env, await statusUnder(env)]));
  expect(seen).toEqual(expected.map(([env, status]) => [env, status]));
});

describe.skipIf(!HAS_BROWSER)("with a browser and no script", () => {
  const browser = useBrowser();

  test("another name of this machine leads to the one address of the pages", async () => {
    await signUp(url, "local@example.com");
    const { port } = new URL(url);
    const page = await openPage(browser.chromium);
    await page.goto(`http://localhost:${port}/login`);
    expect(new URL(page.url()).hostname).toBe("127.0.0.1");
    await page.getByLabel("Email").fill("local@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.waitForURL(`http://127.0.0.1:${port}/approvals`);
  });

  test("every page of theirs fits 320 px, and has no barrier that an audit finds, light and dark", async () => {
    for (const isDark of [false, true]) {
      const page = await openPage(browser.chromium, { width: 320, isDark, scripts: true });
      for (const path of ["/login", "/signup", "/welcome/none"]) {
        await page.goto(url + path);
        expect(
          { overflow: await overflowOf(page), barriers: await barriersOf(page, isDark ? "of looks" : "all") },
          [path, isDark].join(" "),
        ).toEqual({ overflow: 0, barriers: [] });
      }
      await page.goto(`${url}/signup`);
      await page.getByLabel("Email").fill("audited@example.com");
      await page.getByLabel("Password").fill(PASSWORD);
      await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name: "Sign up" }).click()]);
      expect(await barriersOf(page)).toEqual([]);
      await page.context().close();
    }
  });
});
