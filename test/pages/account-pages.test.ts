import { describe, expect, test } from "bun:test";
import { openRealServer } from "../http/real-server.ts";
import { joined, signedIn } from "../http/signed-in.ts";
import { HAS_BROWSER } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { anAuditEntry } from "../support/factory.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";

const app = await shared(openRealServer({ port: await freePort(), starts: false }));
const ann = await signedIn(app);

describe.skipIf(!HAS_BROWSER)("keys, settings and the audit log, in a browser", () => {
  const openAs = useBrowser().of(ann);

  test("a role is changed by the menu of a person, that of an owner after a question", async () => {
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
  });

  test("the audit log has the days of the reader, not of UTC", async () => {
    const { accountId } = app.engine.owner;
    const days = ["2025-03-01T23:30:00Z", "2025-03-01T09:30:00Z", "2025-03-02T10:30:00Z"];
    for (const at of days)
      await app.engine.store.audit.record(anAuditEntry({ accountId, at: new Date(at), kind: "bulk_stopped" }));
    await using watched = await openAs({ timezoneId: "Pacific/Kiritimati" });
    const { page } = watched;
    await page.goto(`${app.url}/audit?kind=bulk_stopped`);
    await page.getByText("Mon, 3 Mar 2025").waitFor();
    // Fourteen hours ahead.
    expect(await page.locator(".audit").innerText()).toMatch(
      /^Mon, 3 Mar 2025\s+00:30.*Sat, 1 Mar 2025\s+23:30.*Sun, 2 Mar 2025\s+13:30/s,
    );
  });
});
