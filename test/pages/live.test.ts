import { describe, expect, test } from "bun:test";
import { openRealServer } from "../http/real-server.ts";
import { joined, personOf, signedIn } from "../http/signed-in.ts";
import { HAS_BROWSER } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";
import { useDesk } from "./desk.ts";

describe.skipIf(!HAS_BROWSER)("a page that runs scripts", () => {
  const desk = useDesk({ height: 700 });

  test("shows an action fail twice and succeed, in the list and on its own page, without being loaded anew", async () => {
    await using target = new Target(503, 503, () => Response.json({ done: true }));
    const page = await desk.open("/actions");
    const id = await desk.created({ url: target.url });
    const row = page.locator(`#${id}`);
    await desk.app.engine.saw(id, { status: "pending", attempts: 1 });
    await row.getByText("1 of 3").waitFor();
    desk.app.engine.clock.advance(2_000);
    await desk.app.engine.saw(id, { status: "pending", attempts: 2 });
    await row.getByText("2 of 3").waitFor();
    expect(await desk.isSamePage(page)).toBe(true);

    await page.goto(`${desk.app.url}/actions/${id}`);
    await page.locator(".lane").getByText("Attempt 2").waitFor();
    await page.evaluate("window.mark = 1");
    desk.app.engine.clock.advance(4_000);
    await desk.app.engine.saw(id, { status: "completed" });
    await page.locator(".state").getByText("Completed").waitFor();
    await page.locator(".part-response .json").getByText('"done": true').waitFor();
    expect(await page.locator(".span-bad").count()).toBe(2);
    expect(await desk.isSamePage(page)).toBe(true);
    expect(desk.troubles).toEqual([]);
  });

  test("leaves for the login as soon as its session has ended elsewhere, before its next look", async () => {
    await using server = await openRealServer({ port: await freePort(), starts: false });
    const bob = await signedIn(server);
    const page = await desk.open("/approvals", server, bob, "a clock of the test");
    // Nothing in the page that waits for its clock goes on: neither the polling nor the coming back.
    await page.clock.pauseAt(Number(await page.evaluate("Date.now()")) + 2_000);
    const refused = page.waitForResponse((answer) => answer.url().endsWith("/events") && answer.status() === 403);
    await bob.send("/auth/logout", await bob.hiddenOf("/approvals"));
    await refused;
    // Where the stream opened after the clock stood still, the load that greeted it still has its second of rest.
    await page.clock.runFor(1_500);
    await page.waitForURL(/\/login\?next=%2Fapprovals$/);
  });

  test("says who is logged in by now, as whom it decides", async () => {
    const [bob, cat] = [await joined(desk.app, "approver"), await joined(desk.app, "approver", "cat@example.com")];
    await desk.created({ approve: true });
    const page = await desk.enter(bob);
    await page.goto(`${desk.app.url}/approvals`);
    await desk.updated(page);
    await page.evaluate("window.mark = 1");
    // As in another tab.
    await cat.enter(page.context());
    await bob.send("/auth/logout", await bob.hiddenOf("/approvals"));
    await page.locator(".person-menu summary").getByText("cat@example.com").waitFor();
    const id = await personOf(desk.app, "cat@example.com");
    await desk.app.call("PATCH", `/v1/people/${id}`, { role: "reader" });
    await page.getByRole("button", { name: "Approve" }).waitFor({ state: "detached" });
    expect(await desk.isSamePage(page)).toBe(true);
  });

  test("shows no secrets any more after a logout in another tab, and says that a typed note is not kept", async () => {
    const bob = await joined(desk.app, "approver", "dan@example.com");
    const page = await desk.enter(bob);
    const id = await desk.created({ approve: true, headers: { Authorization: "Bearer cAn4ry9Zq8Xw2Lr5Tn9Vb4K" } });
    await page.goto(`${desk.app.url}/actions/${id}`);
    await page.getByRole("button", { name: "Show secrets" }).click();
    await page.getByText("cAn4ry").first().waitFor();
    const [typed, other] = [await page.context().newPage(), await page.context().newPage()];
    await typed.goto(`${desk.app.url}/approvals/${id}`);
    await typed.getByText("Add note").click();
    await typed.locator("textarea:focus").fill("Not yet.");
    await other.goto(`${desk.app.url}/more`);
    // On a slow line the session ends long after the press: until then, the login page would lead the others back in.
    await other.route("**/auth/logout", async (route) => {
      for (let n = 0; n < 9; n += 1) await typed.evaluate("fetch('/more').then((answer) => answer.text())");
      await route.continue();
    });
    const visited: string[] = [];
    page.on("framenavigated", (frame) => visited.push(new URL(frame.url()).pathname));
    await other.locator("main").getByRole("button", { name: "Log out" }).click();
    await page.waitForURL(/\/login/);
    expect(visited).toEqual(["/login"]);
    await typed.getByRole("status").getByText("What you typed is not kept.").waitFor();
  });

  test("asks now and then while its stream is broken, and says that it may be out of date while no answer comes", async () => {
    await using server = await openRealServer({ port: await freePort() });
    const page = await desk.open("/approvals", server, await signedIn(server), "a clock of the test");
    await page.context().route(`${server.url}/events`, (route) => route.abort());
    // The stream ends, and can't be opened again.
    server.drain.abort();
    const { id } = await server.engine.create({ approve: true });
    await until(async () => {
      await page.clock.fastForward(5_000);
      return (await page.locator(`#${id}`).count()) > 0;
    });
    const notice = page.getByText("What you see may be out of date.");
    const becomes = (isShown: boolean) => async () => {
      await page.clock.fastForward(5_000);
      return (await notice.isVisible()) === isShown;
    };
    expect(await notice.isVisible()).toBe(false);
    expect(await page.evaluate("htmx.config.timeout")).toBe(60_000);
    await page.evaluate("htmx.config.timeout = 500");
    for (const lose of [{ status: 502 }, "abort", "hang"] as const) {
      await page.route("**/approvals", async (route) => {
        if (lose === "abort") await route.abort();
        else if (lose !== "hang") await route.fulfill(lose);
      });
      await until(becomes(true));
      await page.unroute("**/approvals");
      await until(becomes(false));
    }
    expect(await desk.isSamePage(page)).toBe(true);
  });

  test("listens to nothing while nobody looks, and shows what came meanwhile", async () => {
    await using server = await openRealServer({ port: await freePort() });
    const page = await desk.open("/approvals", server, await signedIn(server));
    const look = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"))`);
    await look(true);
    await eventually(() => server.lines.find(({ event }) => event === "events.ended") ?? null, "the end of the stream");
    const asked: string[] = [];
    page.on("request", (request) => void asked.push(request.url()));
    const { id } = await server.engine.create({ approve: true });
    expect(asked).toEqual([]);
    await look(false);
    await page.locator(`#${id}`).waitFor();
    expect(asked).toContain(`${server.url}/events`);
  });

  test("goes on with a bulk retry by itself, and shows how far it is", async () => {
    await using server = await openRealServer({ port: await freePort() });
    const made = await Promise.all(
      Array.from({ length: 70 }, () => server.engine.create({ retries: 1, url: "http://127.0.0.1:9/" })),
    );
    for (const { id } of made) await server.engine.saw(id, { status: "failed" });
    const page = await desk.enter(await signedIn(server));
    await page.goto(`${server.url}/actions?status=failed`);
    await page.getByText("Retry all 70 failed").first().click();
    await page.getByRole("button", { name: "Retry 70 actions" }).click();
    await page.getByText("70 actions retried.").waitFor();
    expect(await page.locator("progress").getAttribute("value")).toBe("70");
    for (const { id } of made) expect((await server.engine.get(id)).run).toBe(2);
    expect(desk.troubles).toEqual([]);
  });
});
