import { describe, expect, test, afterAll } from "bun:test";
import { createOidc } from "../../src/oidc/oidc.ts";
import { providerPolicy } from "../../src/config/target-policy.ts";
import { createSender } from "../../src/outbound/send.ts";
import { openRealServer } from "../http/real-server.ts";
import { signedIn, ANN, confirmPassword, logIn } from "../http/signed-in.ts";
import { HAS_BROWSER, watchPage, barriersOf, overflowOf } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { OIDC_CLIENT, OidcServer } from "../support/oidc.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";
import type { BrowserContextOptions } from "playwright-core";
import { authorizeUrl, exchange, newProof, openRig } from "../oauth/rig.ts";

const port = await freePort();
const redirectUri = `http://127.0.0.1:${port}/auth/oidc/callback`;
const people = { ann: { subject: "1", email: "ann@example.com" }, bob: { subject: "2", email: "bob@example.com" } };
const provider = await shared(OidcServer.open({ redirectUri, people }));
const app = await shared(
  openRealServer({
    port,
    starts: false,
    oidcOf: ({ engine, sessionService, invitationService }) => ({
      ...createOidc(engine.app, {
        settings: { issuer: provider.issuer, ...OIDC_CLIENT, allowedDomains: ["example.com"] },
        redirectUri,
        sender: createSender(providerPolicy(provider.issuer, "OIDC_ISSUER")),
        secrets: engine.secrets,
        sessionService,
        invitationService,
      }),
      name: "id.example",
    }),
  }),
);
await signedIn(app);

describe.skipIf(!HAS_BROWSER)("login by an identity provider, in a browser under our own CSP", () => {
  const browser = useBrowser();

  async function enterAs(name: string, javaScriptEnabled: boolean, path = "/login") {
    const context = await browser.chromium.newContext({ javaScriptEnabled });
    await context.addCookies([{ name: "who", value: name, url: provider.issuer }]);
    const page = await context.newPage();
    await page.goto(app.url + path);
    await page.getByRole("button", { name: "Log in with id.example" }).click();
    await page.waitForURL(/127\.0\.0\.1:\d+\/(approvals|auth\/oidc\/callback)/);
    return page;
  }

  test("works with scripts, and forms then need no password", async () => {
    const page = await enterAs("ann", true);
    expect(new URL(page.url()).pathname).toBe("/approvals");
    await page.goto(`${app.url}/settings/callback-hosts`);
    await page.getByLabel("Host", { exact: true }).fill("hooks.example.com");
    await page.getByRole("button", { name: "Add host" }).click();
    await page.getByText("hooks.example.com").first().waitFor();
    expect(await page.getByRole("heading", { name: "Confirm with your password" }).count()).toBe(0);
    await page.context().close();
  });

  test("works without scripts, and from the page of an invitation", async () => {
    const invited = await app.call("POST", "/v1/invitations", `{"email":"bob@example.com","role":"reader"}`);
    const page = await enterAs("bob", false, new URL(invited.json.link).pathname);
    expect(new URL(page.url()).pathname).toBe("/approvals");
    expect(await page.getByRole("navigation").innerText()).not.toContain("Keys");
    await page.context().close();
  });

  test("says what to do when it fails", async () => {
    const page = await enterAs("refuses", false);
    expect(await page.getByRole("heading").innerText()).toBe("You are not logged in");
    await page.getByRole("link", { name: "To the login page" }).click();
    await page.getByLabel("Password").waitFor();
    await page.context().close();
  });
});

const CANARY = "Bearer cAn4ry9Zq8Xw2Lr5Tn9Vb4K";

const plain = await shared(openRealServer({ port: await freePort() }));
await signedIn(plain);

describe.skipIf(!HAS_BROWSER)("the secret of a session, in a browser", () => {
  const browser = useBrowser();

  const asked = async () => {
    const headers = { Authorization: CANARY };
    return (await plain.engine.create({ approve: true, url: "http://127.0.0.1:9/x", headers })).id;
  };

  test("changes nothing for whoever works with script: no question comes up, but once where the storage was emptied", async () => {
    await using watched = await watchPage(browser.chromium);
    const { page, troubles } = watched;
    await page.goto(`${plain.url}/login`);
    await logIn(page, ANN);
    const secret = () => page.evaluate(`localStorage.getItem("outgate_session_secret")`);
    const first = await secret();
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    const addHost = async (host: string) => {
      await page.goto(`${plain.url}/settings/callback-hosts`);
      // The form is closed where the list has a host.
      if (host !== "one.example") await page.getByText("Add a host").click();
      await page.getByLabel("Host", { exact: true }).fill(host);
      await page.getByRole("button", { name: "Add host" }).click();
    };
    await addHost("one.example");
    await page.getByText("one.example").first().waitFor();
    const id = await asked();
    await page.goto(`${plain.url}/actions/${id}`);
    await page.getByRole("button", { name: "Show secrets" }).click();
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
    await page.goto(`${plain.url}/more`);
    await page.locator("main").getByRole("button", { name: "Log out" }).click();
    await page.waitForURL("**/login");
    await logIn(page, ANN);
    expect(await secret()).not.toBe(second);
    await addHost("four.example");
    await page.getByText("four.example").first().waitFor();
    // The refusals are lines of the browser's own.
    expect(troubles.filter((trouble) => !/status of (401|403)/.test(trouble))).toEqual([]);
  });
});

const rig = await shared(openRig());
/** A client on the person's machine, at a port that only it knows. */
const listener = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("The client has it.") });
afterAll(() => listener.stop(true));

describe.skipIf(!HAS_BROWSER)("connecting a client, in a browser under our own CSP", () => {
  const browser = useBrowser();

  async function openConsent(options: BrowserContextOptions = {}) {
    const context = await browser.chromium.newContext(options);
    await rig.ann.enter(context);
    const { challenge, verifier } = newProof();
    const redirect_uri = `http://127.0.0.1:${listener.port}/callback`;
    const page = await context.newPage();
    await page.goto(authorizeUrl(rig, challenge, { redirect_uri }));
    await page.getByRole("heading", { name: "Connect a client" }).waitFor();
    const fetched = async () => {
      await page.getByText("The client has it.").waitFor();
      const code = new URL(page.url()).searchParams.get("code") ?? "";
      return exchange(rig, code, verifier, { redirect_uri });
    };
    return { context, page, fetched };
  }

  test("works with scripts: one press, and the client has its code", async () => {
    const { context, page, fetched } = await openConsent();
    expect(await page.getByRole("radio", { name: /Writes/ }).isChecked()).toBe(true);
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    expect((await fetched()).status).toBe(200);
    await page.goto(`${rig.url}/keys`);
    await page.getByText("Helpful Client (client.example)").first().waitFor();
    await page
      .getByText(/connected by/)
      .first()
      .waitFor();
    await context.close();
  });

  test("works without scripts, where plain http asks for the password", async () => {
    const { context, page, fetched } = await openConsent({ javaScriptEnabled: false });
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await confirmPassword(page);
    expect((await fetched()).status).toBe(200);
    await context.close();
  });

  test("can be used by everybody, also on a phone", async () => {
    const { context, page } = await openConsent({ viewport: { width: 390, height: 800 }, bypassCSP: true });
    expect(await barriersOf(page)).toEqual([]);
    expect(await overflowOf(page)).toBe(0);
    await context.close();
  });

  test("is shown in no frame", async () => {
    const { context, page } = await openConsent();
    const address = page.url();
    const outside = await context.newPage();
    await outside.goto(`http://127.0.0.1:${listener.port}/`);
    await outside.setContent(`<iframe src="${address}"></iframe>`);
    await outside.waitForLoadState("load");
    const frame = outside.frames().find((one) => one !== outside.mainFrame());
    expect(await frame?.getByRole("button", { name: "Connect", exact: true }).count()).toBe(0);
    await context.close();
  });
});
