import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { ANN, ANN_PASSWORD, confirmPassword, signedIn } from "../http/signed-in.ts";
import { HAS_BROWSER, BROWSER_START_MS_MAX, closeContexts, openBrowser, watchPage } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { Target } from "../support/target.ts";

// A browser, on a machine that may be busy.

// A browser, on a machine that may be busy.
setDefaultTimeout(60_000);

const CANARY = "Bearer cAn4ry9Zq8Xw2Lr5Tn9Vb4K";

/** Whatever only the owner may see: keys, signing secrets, what was sent in a header. */
const SECRETS = /og_[0-9A-Za-z]{36}|whsec_[0-9A-Za-z+/]{20}|cAn4ry9Zq8Xw2/;

describe.skipIf(!HAS_BROWSER)("a server on another port of the same host", () => {
  let chromium: Browser;
  let app: RealServer;
  beforeAll(async () => {
    chromium = await openBrowser();
    app = await openRealServer({ port: await freePort() });
    await signedIn(app);
  }, BROWSER_START_MS_MAX);
  afterAll(async () => {
    await closeContexts(chromium);
    await app[Symbol.asyncDispose]();
  });

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
  /** Everything that an owner can change, as it is now. */
  const stateOf = async (id: string) => {
    const read = async (path: string) => (await app.call("GET", path)).text;
    const account = [
      "/v1/keys",
      "/v1/callback-hosts",
      "/v1/pauses",
      "/v1/hosts",
      "/v1/signing-secret?origin=https://a.example",
    ];
    return Promise.all([...account, "/v1/actions?limit=100", `/v1/actions/${id}/timeline`].map(read));
  };
  const formsFor = (id: string): readonly (readonly [path: string, fields: Readonly<Record<string, string>>])[] => [
    [`/approvals/${id}`, { decision: "approve", run: "1" }],
    [`/actions/${id}`, { decision: "approve", run: "1" }],
    [`/actions/${id}`, { decision: "cancel", run: "1" }],
    [`/actions/${id}/reveal`, {}],
    [`/actions/${id}/again`, { sure: "yes" }],
    ["/keys", { name: "evil", role: "owner", hold: "none" }],
    ["/settings/pauses", { scope: "account" }],
    ["/settings/signing-secret", { origin: "https://a.example", for: "calls" }],
    ["/settings/rotation", { origin: "https://a.example", for: "calls", seen: "none" }],
    ["/settings/callback-hosts", { host: "evil.example" }],
    ["/settings/hosts", { host: "evil.example", timeout_ms: "5000" }],
    ["/settings/password", { current_password: "guessed guess", password: "mine from now on" }],
  ];

  test("gets the owner's cookies and the form's token, and changes and reveals nothing by them", async () => {
    await using evil = new Target(() => new Response("<h1>Preview</h1>", { headers: { "content-type": "text/html" } }));
    await using watched = await watchPage(chromium);
    const { page } = watched;
    await logIn(page);
    const id = await asked();
    // The owner makes a key while the other server looks on.
    await page.goto(`${app.url}/keys/new`);
    await page.getByLabel("Name").fill("looked on");
    await page.getByRole("radio", { name: /^Agent/ }).check();
    await page.getByRole("button", { name: "Create key" }).click();
    const key = (await page.locator("#key").innerText()).trim();
    expect(key).toMatch(SECRETS);
    const made = (await app.engine.store.accounts.keys(app.engine.owner.accountId, 1_000)).find(
      ({ name }) => name === "looked on",
    );
    // It makes the browser ask it for each path for which a cookie may be kept.
    const shown = [`/keys/${made?.id}/made`, "/settings/rotated", "/signup/done"];
    const cookies = new Set<string>();
    for (const path of ["/", ...shown]) {
      await page.goto(new URL(path, evil.url).href);
      for (const cookie of (evil.received.at(-1)?.headers.get("cookie") ?? "").split("; ")) cookies.add(cookie);
    }
    const cookie = [...cookies].join("; ");
    expect(cookie).toContain("outgate_session=");
    const before = await stateOf(id);

    // What its server can do with them, with every header of its own choice.
    const own = { cookie, origin: app.url, referer: `${app.url}/approvals`, "sec-fetch-site": "same-origin" };
    const read = await (await fetch(`${app.url}/approvals/${id}`, { headers: own })).text();
    const form_token = /name="form_token" value="(\w{64})"/.exec(read)?.[1] ?? "";
    expect(form_token).not.toBe("");
    const seen = [read];
    for (const path of [...shown, "/keys", "/actions", `/actions/${id}`, "/settings", "/approvals"]) {
      seen.push(await (await fetch(app.url + path, { headers: own, redirect: "manual" })).text());
    }
    for (const [path, fields] of formsFor(id)) {
      for (const session_secret of [null, "", form_token, "0".repeat(64)]) {
        const more: Readonly<Record<string, string>> = session_secret === null ? {} : { session_secret };
        const body = new URLSearchParams({ form_token, ...fields, ...more });
        const answer = await fetch(app.url + path, { method: "POST", redirect: "manual", headers: own, body });
        expect({ path, isRefused: answer.status >= 401 }).toEqual({ path, isRefused: true });
        seen.push(await answer.text());
      }
    }
    for (const text of seen) expect(text).not.toMatch(SECRETS);
    expect(await stateOf(id)).toEqual(before);

    // What its page can do in the owner's browser.
    const page2 = await page.context().newPage();
    await page2.goto(evil.url);
    expect(await page2.evaluate("localStorage.length")).toBe(0);
    for (const [path, fields] of formsFor(id)) {
      const all = { form_token, ...fields };
      const told = await page2.evaluate(`(async () => {
        const init = { method: "POST", credentials: "include", body: new URLSearchParams(${JSON.stringify(all)}) };
        const url = ${JSON.stringify(app.url + path)};
        const opaque = await fetch(url, { ...init, mode: "no-cors" }).then((r) => r.type + (r.body === null), String);
        return [opaque, await fetch(url, init).then(() => "read it", () => "blocked")];
      })()`);
      expect({ path, told }).toEqual({ path, told: [expect.not.stringMatching(/false$/), "blocked"] });
      const inputs = Object.entries(all).map(([name, value]) => [name, value] as const);
      const answered = page2.waitForResponse(app.url + path);
      await page2.evaluate(`{
        const form = document.createElement("form");
        form.method = "post";
        form.action = ${JSON.stringify(app.url + path)};
        for (const [name, value] of ${JSON.stringify(inputs)}) {
          const input = document.createElement("input");
          [input.name, input.value] = [name, value];
          form.append(input);
        }
        document.body.append(form);
        form.submit();
      }`);
      expect({ path, status: (await answered).status() }).toEqual({ path, status: 403 });
      await page2.getByRole("heading", { name: "Not allowed" }).waitFor();
      await page2.goto(evil.url);
    }
    expect(await stateOf(id)).toEqual(before);

    // The owner goes on as before, and is asked nothing.
    await page.goto(`${app.url}/approvals/${id}`);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.waitForURL(/\/approvals(\/act_\w+)?\?decided=/);
    expect((await app.engine.actionService.get(app.engine.owner, id)).status).not.toBe("awaiting_approval");
  });

  test("changes nothing for whoever works with script: no question comes up, but once where the storage was emptied", async () => {
    await using watched = await watchPage(chromium);
    const { page, troubles } = watched;
    await logIn(page);
    const secret = () => page.evaluate(`localStorage.getItem("outgate_session_secret")`);
    const first = await secret();
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    const addHost = async (host: string) => {
      await page.goto(`${app.url}/settings/callback-hosts`);
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

    // Another log-in makes another secret.
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
