import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser } from "playwright-core";
import {
  barriersOf,
  HAS_BROWSER,
  BROWSER_START_MS_MAX,
  closeContexts,
  openBrowser,
  openPage,
  overflowOf,
} from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { Service } from "../support/service.ts";

/** Browsers and services, one after the other, on a machine that may be busy. */
setDefaultTimeout(60_000);
const PASSWORD = "correct horse battery staple";
const signUp = async (base: string, email: string) => {
  const body = JSON.stringify({ email, password: PASSWORD });
  const headers = { "content-type": "application/json" };
  return (await fetch(`${base}/auth/signup`, { method: "POST", headers, body })).status;
};
/** The link that the first start prints. */
const linkIn = (service: Service) =>
  eventually(() => /http:[^"\s]+\/welcome\/[0-9a-f]{64}/.exec(service.output)?.[0] ?? null, "the welcome link");

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
  let browser: Browser;
  let service: Service;
  beforeAll(async () => {
    browser = await openBrowser();
    service = new Service();
    await service.ready();
  }, BROWSER_START_MS_MAX);
  afterAll(async () => {
    await closeContexts(browser);
    await service[Symbol.asyncDispose]();
  });

  test("the first start's link makes its visitor the owner of the first account, once", async () => {
    const link = await linkIn(service);
    const page = await openPage(browser, { width: 320 });
    await page.goto(link);
    expect(await overflowOf(page)).toBe(0);
    await page.getByLabel("Email").fill("owner@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create login" }).click();
    await page.waitForURL("**/get-started");
    const me = (await (await service.request("/v1/account")).json()) as { email: string };
    expect(me.email).toBe("owner@example.com");
    expect((await page.goto(link))?.status()).toBe(404);
  });

  test("a person signs up, logs out, mistypes, logs in, and comes to where they wanted to go", async () => {
    const base = await service.ready();
    const page = await openPage(browser, { width: 375, isDark: true });
    await page.goto(`${base}/login?next=/approvals%3Ffrom%3Dhere`);
    await page.getByRole("link", { name: "Sign up" }).click();
    await page.getByLabel("Email").fill("walk@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign up" }).click();
    expect(await page.locator("code").innerText()).toMatch(/^og_[0-9A-Za-z]{36}$/);
    expect(await page.getByRole("link", { name: "Continue" }).getAttribute("href")).toBe("/approvals?from=here");
    const kept = { httpOnly: true, sameSite: "Lax" };
    expect(await page.context().cookies()).toMatchObject([
      { name: "outgate_session", path: "/", ...kept },
      { name: "outgate_device", path: "/", ...kept },
    ]);

    await page.goto(`${base}/more`);
    await page.locator("main").getByRole("button", { name: "Log out" }).click();
    await page.waitForURL("**/login");
    expect((await page.context().cookies(`${base}/`)).map(({ name }) => name)).toEqual(["outgate_device"]);

    await page.goto(`${base}/login?next=/approvals%3Ffrom%3Dhere`);
    await page.getByLabel("Email").fill("walk@example.com");
    await page.getByLabel("Password").fill("something else");
    await page.getByRole("button", { name: "Log in" }).click();
    expect(await page.getByRole("status").innerText()).toBe("Incorrect email or password.");
    expect(await page.getByLabel("Email").inputValue()).toBe("walk@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.waitForURL(`${base}/approvals?from=here`);
  });

  test("another name of this machine leads to the one address of the pages", async () => {
    await signUp(await service.ready(), "local@example.com");
    const { port } = new URL(await service.ready());
    const page = await openPage(browser);
    await page.goto(`http://localhost:${port}/login`);
    expect(new URL(page.url()).hostname).toBe("127.0.0.1");
    await page.getByLabel("Email").fill("local@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.waitForURL(`http://127.0.0.1:${port}/approvals`);
  });

  test("every page of theirs fits 320 px, and has no barrier that an audit finds, light and dark", async () => {
    const base = await service.ready();
    for (const isDark of [false, true]) {
      const page = await openPage(browser, { width: 320, isDark, scripts: true });
      for (const path of ["/login", "/signup", "/welcome/none"]) {
        await page.goto(base + path);
        expect(
          { overflow: await overflowOf(page), barriers: await barriersOf(page, isDark ? "of looks" : "all") },
          [path, isDark].join(" "),
        ).toEqual({ overflow: 0, barriers: [] });
      }
      await page.goto(`${base}/signup`);
      await page.getByLabel("Email").fill("audited@example.com");
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("button", { name: "Sign up" }).click();
      expect(await barriersOf(page)).toEqual([]);
      await page.context().close();
    }
  });
});
