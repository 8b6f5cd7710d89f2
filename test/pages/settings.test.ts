import { describe, expect, test, beforeAll, beforeEach } from "bun:test";
import { openRealServer } from "../http/real-server.ts";
import { joined, signedIn } from "../http/signed-in.ts";
import { HAS_BROWSER } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { useBrowser, useDesk, useDecisions } from "./desk.ts";
import type { Page } from "playwright-core";

const app = await shared(openRealServer({ port: await freePort(), starts: false }));
const ann = await signedIn(app);

describe.skipIf(!HAS_BROWSER)("people, in a browser", () => {
  const openAs = useBrowser().of(ann);

  test("a role is changed by the menu of a person, that of an owner after a question, which also comes before a removal", async () => {
    await joined(app, "approver", "cleo@example.com");
    const roleOf = async () => {
      const { data } = (await app.call("GET", "/v1/people")).json as unknown as {
        readonly data: readonly { readonly email: string; readonly role: string }[];
      };
      return data.find(({ email }) => email === "cleo@example.com")?.role;
    };
    await using watched = await openAs();
    const { page } = watched;
    await page.goto(`${app.url}/settings/people`);
    const choose = async (name: string) => {
      await page.locator("summary", { hasText: "More for cleo@example.com" }).click();
      await page.getByRole("button", { name: `${name} cleo@example.com` }).click();
    };
    const dialog = page.getByRole("dialog");
    await choose("Make a reader");
    await page.getByText("cleo@example.com is now a reader.").waitFor();
    expect(await roleOf()).toBe("reader");
    await choose("Make an owner");
    await page.getByRole("heading", { name: "Make cleo@example.com an owner?" }).waitFor();
    await page.getByRole("button", { name: "Back" }).click();
    await page.locator("dialog:not(#palette)").waitFor({ state: "detached" });
    expect(await roleOf()).toBe("reader");
    await page.keyboard.press("Escape");
    await choose("Make an owner");
    await dialog.getByRole("button", { name: "Make an owner" }).click();
    await page.getByText("cleo@example.com is now an owner.").waitFor();
    expect(await roleOf()).toBe("owner");
    await choose("Make a reader");
    await page.getByRole("heading", { name: "Take the role of owner from cleo@example.com?" }).waitFor();
    await dialog.getByRole("button", { name: "Make a reader" }).click();
    await page.getByText("cleo@example.com is now a reader.").waitFor();
    expect(await roleOf()).toBe("reader");
    await choose("Remove");
    await page.getByRole("heading", { name: "Remove cleo@example.com?" }).waitFor();
    expect(await roleOf()).toBe("reader");
    await dialog.getByRole("button", { name: "Remove" }).click();
    await page.locator("summary", { hasText: "More for cleo@example.com" }).waitFor({ state: "detached" });
    expect(await roleOf()).toBeUndefined();
  });
});

const order = (page: Page) => page.locator(".rule-name b").allInnerTexts();

describe.skipIf(!HAS_BROWSER)("rules, in a browser", () => {
  const desk = useDesk({ height: 800 });

  test("are made from templates, mended, moved by keys with the focus on the button, and removed after a question", async () => {
    const page = await desk.enterHerOwn();
    await page.goto(`${desk.app.url}/settings/rules`);
    await page.getByRole("link", { name: "Hold all writes" }).click();
    await page.getByText("Keep it below all other rules").waitFor();
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.getByRole("link", { name: "Hold payments above an amount" }).click();
    await page.getByRole("textbox", { name: "Expression" }).fill("action.body.amount >\n  limit");
    await page.getByLabel("Place").selectOption("Before “All writes”");
    await page.getByRole("button", { name: "Create rule" }).click();
    const problem = page.locator("#when-problem");
    expect(await problem.innerText()).toBe('There is no "limit". There are action, key, now. (Line 2, column 3.)');
    expect(await page.getByRole("textbox", { name: "Expression" }).getAttribute("aria-describedby")).toBe(
      "when-hint when-problem",
    );
    expect(await page.getByRole("textbox", { name: "Expression" }).inputValue()).toBe("action.body.amount >\n  limit");
    await page.getByRole("textbox", { name: "Expression" }).fill("action.body.amount > 1000");
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.locator(".rule-name:target").waitFor();
    expect(await order(page)).toEqual(["Payments above 1000", "All writes"]);

    const up = page.getByRole("button", { name: "Move up All writes" });
    const id = ((await up.getAttribute("id")) ?? "").slice("up-".length);
    await up.press("Enter");
    await page.locator(`#down-${id}:focus`).waitFor();
    expect(await order(page)).toEqual(["All writes", "Payments above 1000"]);
    await page.keyboard.press("Enter");
    await page.locator(`#up-${id}:focus`).waitFor();
    expect(await order(page)).toEqual(["Payments above 1000", "All writes"]);

    await page.locator("summary", { hasText: "More for All writes" }).click();
    await page.getByRole("link", { name: "Remove All writes" }).click();
    await page.getByRole("heading", { name: "Remove this rule?" }).waitFor();
    await page.getByRole("button", { name: "Remove rule" }).click();
    await page.waitForURL("**/settings/rules");
    expect(await order(page)).toEqual(["Payments above 1000"]);
    expect(desk.troubles.filter((trouble) => !trouble.includes("status of 400"))).toEqual([]);
  });
});

describe.skipIf(!HAS_BROWSER)("an owner in a browser", () => {
  const { desk, openAt } = useDecisions();
  const service = () => desk.app.engine.services.credentialService;

  test("stores credentials, and sees only the fields of their kind", async () => {
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
    expect(desk.troubles).toEqual([]);
  });
});

describe.skipIf(!HAS_BROWSER)("whoever allows more calls in a browser", () => {
  const { desk, created, openAt } = useDecisions();
  const held = () => created({ url: "http://127.0.0.1:9/pay", approve: false, body: { amount: 1200, to: "acme" } });

  const service = () => desk.app.engine.grantService;
  const grants = () => service().list(desk.app.engine.owner);

  beforeAll(async () => {
    await desk.app.call("POST", "/v1/rules", JSON.stringify({ name: "Payments", effect: "hold", path: "/pay" }));
  });

  beforeEach(async () => {
    for (const { id } of await grants()) await service().end(desk.app.engine.owner, id);
  });

  const openFold = async (path: string, width = 1_280) => {
    const page = await openAt(path, { viewport: { width, height: 667 } });
    const fold = page.locator("details.decide-grant");
    expect(await fold.locator("input").first().isVisible()).toBe(false);
    await fold.getByText("Allow more calls like this").click();
    return { page, fold };
  };

  test.each(["/approvals/", "/actions/"])(
    "ticks what may differ on %s, on a phone too, and sees it listed",
    async (at) => {
      const id = await held();
      const { page, fold } = await openFold(at + id, 375);
      await fold.getByLabel("For how long").selectOption("1 hour");
      await fold.getByLabel("How many calls").fill("3");
      const amount = fold.getByRole("group", { name: "amount" });
      await amount.getByRole("checkbox").check();
      await amount.getByLabel("at most").fill("5000");
      await fold.getByRole("button", { name: /^Approve and allow more/ }).click();
      await page.locator("details.decide-grant").waitFor({ state: "detached" });
      expect(await grants()).toMatchObject([
        { actionId: id, calls: 3, vary: ["body.amount"], max: { "body.amount": 5000 } },
      ]);
      if (at === "/approvals/") await page.locator(`#decided-${id}`).getByText("3 more calls like it until").waitFor();
      await page.goto(`${desk.app.url}/settings/grants`);
      await page.getByText("0 of 3 calls used").waitFor();
      await page.getByRole("button", { name: /^End/ }).click();
      await page.getByText("No grant is in force").waitFor();
      expect(await grants()).toEqual([]);
      expect(desk.troubles).toEqual([]);
    },
  );

  test("keeps what is wrong and what was typed through an update of the page", async () => {
    const id = await held();
    const { page, fold } = await openFold(`/approvals/${id}`);
    await fold.getByLabel("How many calls").fill("5000");
    // Enter presses the button of the fold, not the plain approval.
    await fold.getByLabel("How many calls").press("Enter");
    const wrong = page.getByText("Enter a whole number from 1 to 1,000.");
    await wrong.waitFor();
    const news = await held();
    await page.locator(`#${news}`).waitFor();
    expect(await wrong.isVisible()).toBe(true);
    expect(await fold.getByLabel("How many calls").inputValue()).toBe("5000");
    expect([(await desk.actionOf(id)).status, await grants()]).toEqual(["awaiting_approval", []]);
  });

  test("approves one request alone by the plain button and its key", async () => {
    const id = await held();
    const { page, fold } = await openFold(`/approvals/${id}`);
    await fold.getByRole("group", { name: "amount" }).getByRole("checkbox").check();
    await page.evaluate("document.activeElement.blur()");
    await page.keyboard.press("a");
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByText("Allow more calls").count()).toBe(0);
    await dialog.getByRole("button", { name: /^Approve/ }).click();
    await page.locator(`#decided-${id}`).waitFor();
    expect(await grants()).toEqual([]);
    expect(desk.troubles).toEqual([]);
  });
});
