import { describe, expect, test } from "bun:test";
import { createOidc } from "../../src/oidc/oidc.ts";
import { providerPolicy } from "../../src/config/target-policy.ts";
import { createSender } from "../../src/outbound/send.ts";
import { openRealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { HAS_BROWSER } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { OIDC_CLIENT, OidcServer } from "../support/oidc.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";

const port = await freePort();
const redirectUri = `http://127.0.0.1:${port}/auth/oidc/callback`;
const people = { ann: { subject: "1", email: "ann@example.com" }, bob: { subject: "2", email: "bob@example.com" } };
const provider = await shared(OidcServer.open({ redirectUri, people }));
const app = await shared(
  openRealServer({
    port,
    starts: false,
    oidcOf: ({ engine, peopleService, teamService }) => ({
      ...createOidc(engine.app, {
        settings: { issuer: provider.issuer, ...OIDC_CLIENT, allowedDomains: ["example.com"] },
        redirectUri,
        sender: createSender(providerPolicy(provider.issuer, "OIDC_ISSUER")),
        secrets: engine.secrets,
        peopleService,
        teamService,
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
