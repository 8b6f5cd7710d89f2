import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { HAS_BROWSER } from "../support/browser.ts";
import { useDecisions } from "./desk.ts";

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
