import { describe, expect, test } from "bun:test";
import { HAS_BROWSER } from "../support/browser.ts";
import { KEYS } from "../http/stub-server.ts";
import { useDecisions } from "./desk.ts";

describe.skipIf(!HAS_BROWSER)("an owner in a browser", () => {
  const { desk, created, openAt } = useDecisions();
  const service = () => desk.app.engine.services.credentialService;

  test("stores credentials, sees only the fields of their kind, and what a held call is sent with", async () => {
    const page = await openAt("/settings/credentials", { viewport: { width: 375, height: 667 } });
    await page.getByText("No credentials yet").waitFor();
    const form = page.locator("#add form");
    await form.getByLabel("Name", { exact: true }).fill("stripe-live");
    await form.getByText("HMAC", { exact: true }).click();
    expect(await form.getByLabel("What is signed").isVisible()).toBe(true);
    await form.getByText("Bearer", { exact: true }).click();
    expect(await form.getByLabel("What is signed").isVisible()).toBe(false);
    expect(await form.getByLabel("Header", { exact: true }).isVisible()).toBe(false);
    await form.getByLabel("Secret").fill("sk_live_0123456789abcd4242");
    await form.getByLabel("Hosts").fill("api.stripe.com\n127.0.0.1:9");
    await form.getByRole("button", { name: "Add credential" }).click();
    await page.getByText("••••4242").waitFor();
    expect(await page.evaluate<boolean>("document.documentElement.scrollWidth <= innerWidth")).toBe(true);

    await page.getByRole("link", { name: /^Change/ }).click();
    await page.getByLabel("Paths").fill("/v1/charges");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("/v1/charges", { exact: true }).waitFor();
    expect(await service().find(desk.app.engine.owner, "stripe-live")).toMatchObject({ paths: ["/v1/charges"] });

    const { keyId } = await desk.app.authenticate(`Bearer ${KEYS.agent}`);
    await service().change(desk.app.engine.owner, "stripe-live", { keys: [keyId ?? ""] });
    const id = await created({ url: "http://127.0.0.1:9/v1/charges", credential: "stripe-live" });
    await page.goto(`${desk.app.url}/approvals/${id}`);
    await page.getByText("with stripe-live (Bearer, ••••4242)").waitFor();
    expect(desk.troubles).toEqual([]);
  });
});
