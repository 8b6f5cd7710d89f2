import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Browser } from "playwright-core";
import { createOidcThrottle } from "../../src/accounts/throttle.ts";
import { createOidcProvider } from "../../src/oidc/provider.ts";
import { createOidcSignIn } from "../../src/oidc/sign-in.ts";
import { providerPolicy } from "../../src/config/target-policy.ts";
import { createSender } from "../../src/outbound/send.ts";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { BROWSER_START_MS_MAX, HAS_BROWSER, closeContexts, openBrowser } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { OIDC_CLIENT, OidcServer } from "../support/oidc.ts";

// A browser, on a machine that may be busy.
setDefaultTimeout(60_000);

describe.skipIf(!HAS_BROWSER)("log-in by an identity provider, in a browser under our own CSP", () => {
  let chromium: Browser;
  let provider: OidcServer;
  let app: RealServer;

  beforeAll(async () => {
    chromium = await openBrowser();
    const port = await freePort();
    const redirectUri = `http://127.0.0.1:${port}/auth/oidc/callback`;
    const people = { ann: { subject: "1", email: "ann@example.com" }, bob: { subject: "2", email: "bob@example.com" } };
    provider = await OidcServer.open({ redirectUri, people });
    app = await openRealServer({
      port,
      starts: false,
      oidcOf: ({ engine, peopleService, teamService }) => ({
        provider: createOidcProvider(
          { issuer: provider.issuer, ...OIDC_CLIENT },
          { sender: createSender(providerPolicy(provider.issuer, "OIDC_ISSUER")), clock: engine.clock, redirectUri },
        ),
        signIn: createOidcSignIn(engine.app, {
          secrets: engine.secrets,
          peopleService,
          teamService,
          allowedDomains: ["example.com"],
        }),
        throttle: createOidcThrottle(engine.clock),
        name: "id.example",
      }),
    });
    await signedIn(app);
  }, BROWSER_START_MS_MAX);

  afterAll(async () => {
    await closeContexts(chromium);
    await app[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
  });

  async function enterAs(name: string, javaScriptEnabled: boolean, path = "/login") {
    const context = await chromium.newContext({ javaScriptEnabled });
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
    await page.getByRole("link", { name: "To the log-in page" }).click();
    await page.getByLabel("Password").waitFor();
    await page.context().close();
  });
});
