import { afterAll, describe, expect, test } from "bun:test";
import type { BrowserContextOptions } from "playwright-core";
import { confirmPassword } from "../http/signed-in.ts";
import { authorizeUrl, exchange, newProof, openRig } from "../oauth/rig.ts";
import { barriersOf, HAS_BROWSER, overflowOf } from "../support/browser.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";

const rig = await shared(openRig());
/** A client on the person's machine, at a port that only it knows. */
const client = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("The client has it.") });
afterAll(() => client.stop(true));

describe.skipIf(!HAS_BROWSER)("connecting a client, in a browser under our own CSP", () => {
  const browser = useBrowser();

  async function openConsent(options: BrowserContextOptions = {}) {
    const context = await browser.chromium.newContext(options);
    await rig.ann.enter(context);
    const { challenge, verifier } = newProof();
    const redirect_uri = `http://127.0.0.1:${client.port}/callback`;
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
    await outside.goto(`http://127.0.0.1:${client.port}/`);
    await outside.setContent(`<iframe src="${address}"></iframe>`);
    await outside.waitForLoadState("load");
    const frame = outside.frames().find((one) => one !== outside.mainFrame());
    expect(await frame?.getByRole("button", { name: "Connect", exact: true }).count()).toBe(0);
    await context.close();
  });
});
