import { beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { outgate } from "../cli/outgate.ts";
import { useBrowser } from "../pages/desk.ts";
import { HAS_BROWSER, openPage } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { IS_LONG } from "../support/long.ts";
import { Target } from "../support/target.ts";
import { openRealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const URL_OF = "http://127.0.0.1:9/";

const mailgun = await shared(
  new Target(() => Response.json({ id: "<1@mg.example.com>", message: "Queued. Thank you." })),
);

const mails = { MAILGUN_API_KEY: "key-of-mailgun", MAILGUN_DOMAIN: "mg.example.com", MAILGUN_URL: mailgun.url };
const app = await shared(openRealServer({ env: { ...mails, APPROVERS: "boss@example.com" } }));
const ann = await signedIn(app);

/** Creates a held action; what each place of decision shows of it. A text is the body as it is written in JSON. */
async function shownOf(members: object | string) {
  const before = mailgun.received.length;
  const request = { url: URL_OF, approve: true, notify: { email: "boss@example.com" } };
  const { json, text } = await app.call(
    "POST",
    "/v1/actions",
    typeof members === "string"
      ? JSON.stringify(request).replace("{", () => `{"body":${members},`)
      : { ...request, ...members },
  );
  const { id } = json;
  if (id === undefined) throw new Error(text);
  const links = await app.linksOf(id);
  await mailgun.saw(before + 1);
  const approver = await app.call("GET", `/v1/actions/${id}`, undefined, KEYS.approver);
  return {
    id,
    links,
    places: {
      // Dots that could make a link of a text are written in brackets there.
      mail: (mailgun.received[before]?.body ?? "").replaceAll("[.]", ".").replaceAll("[:]", ":"),
      "link page": await (await fetch(app.url + links.approve)).text(),
      "held page": await ann.pageOf(`/approvals/${id}`),
      "action page": await ann.pageOf(`/actions/${id}`),
      review: await ann.pageOf(`/approvals/review?id=${id}`),
      "approver's key": approver.text,
    },
  };
}

/** Ways to hide a request from its approver behind what a mask takes for a secret; the text that has to be seen. */
const TRICKS: readonly (readonly [trick: string, request: object | string, payload: string])[] = [
  ["escapes of JSON beside a number", String.raw`{"n":1.0,"a":"\u0064elete \u0061ll"}`, "delete all"],
  ["a name in escapes of JSON", String.raw`{"n":1.0,"\u0064rop it \u0061ll":1}`, "drop it all"],
  ["a parameter called key", { method: "DELETE", url: `${URL_OF}?key=production-database` }, "production-database"],
  ["a parameter called code", { url: `${URL_OF}?code=delete-all-customers-now` }, "delete-all-customers-now"],
  ["an object called session", { body: { session: { op: "transfer-it-all-1" } } }, "transfer-it-all-1"],
  ["an object called auth", { body: { auth: { op: "transfer-it-all-2" } } }, "transfer-it-all-2"],
  ["an object called token", { body: { token: [{ op: "transfer-it-all-3" }] } }, "transfer-it-all-3"],
  ["a text behind BEGIN", { body: { note: "-----BEGIN X-----\nwire 5000 to Bob" } }, "wire 5000 to Bob"],
  ["a Bearer that is an order", { headers: { Authorization: "Bearer delete-all" } }, "Bearer delete-all"],
  ["a login in a URL", { body: { to: "ssh://user:rm-rf@host.example" } }, "user:rm-rf@host.example"],
  ["X-Amz-Target", { headers: { "X-Amz-Target": "DynamoDB_20120810.DeleteTable" } }, "DynamoDB_20120810.DeleteTable"],
  ["SOAPAction", { headers: { SOAPAction: "urn:Bank1/TransferAllFunds2026x" } }, "urn:Bank1/TransferAllFunds2026x"],
  ["a token that is a sentence", { body: { token: "please wire 4711 dollars" } }, "please wire 4711 dollars"],
  ["a password of capitals", { body: { password: "DeleteAllCustomersAndOrders" } }, "DeleteAllCustomersAndOrders"],
];

describe("whoever decides sees", () => {
  test.each(TRICKS)("what hides behind %s", async (_trick, request, payload) => {
    const { places } = await shownOf(request);
    // A mail stays where it was sent: it counts values of headers, and the pages show them.
    if (typeof request === "object" && "headers" in request && places.mail.includes("1 value hidden"))
      places.mail = payload;
    const without = Object.entries(places).filter(([, text]) => !text.includes(payload));
    expect(without.map(([place]) => place)).toEqual([]);
  });

  const TOKEN = "ghp_a1b2C3d4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
  const PASSWORD = "x9Kq2Lm8Vb3Zt7Rw4Yp6";

  test("how many values are hidden, at the top of every place", async () => {
    const request = { url: `${URL_OF}hooks/${TOKEN}`, body: { password: PASSWORD, note: "hello" } };
    const { id, places } = await shownOf(request);
    const { "approver's key": json, ...pages } = places;
    for (const [place, text] of Object.entries(pages)) {
      expect(text.includes("2 values hidden"), place).toBe(true);
      expect(text.indexOf("2 values hidden")).toBeLessThan(text.lastIndexOf("(GitHub-token,40-chars"));
      for (const secret of [TOKEN, PASSWORD]) expect(text.includes(secret), place).toBe(false);
    }
    expect(JSON.parse(json).hidden_values).toBe(2);
    const env = { OUTGATE_URL: app.url, OUTGATE_API_KEY: KEYS.approver };
    const { out } = await outgate(["get", id], { env, terminal: true });
    expect(out).toContain("2 values hidden");
  });

  test("the hidden values after a form was sent, which the audit log tells, and decides there", async () => {
    const url = `${URL_OF}?token=${PASSWORD}-of-query`;
    const { id, links } = await shownOf({ url, headers: { "X-Key": PASSWORD }, body: { a: TOKEN } });
    const html = await ann.pageOf(`/approvals/${id}`);
    expect(html).toContain(`action="/actions/${id}/reveal"`);
    const fields = await ann.hiddenOf(`/approvals/${id}`);
    const answer = await ann.send(`/actions/${id}/reveal`, fields);
    expect(answer.headers.get("cache-control")).toBe("private, no-store");
    const revealed = await answer.text();
    for (const secret of [`>${PASSWORD}<`, `${PASSWORD}-of-query`, TOKEN]) expect(revealed).toContain(secret);
    expect((await ann.context(`/actions/${id}/reveal`)).status).toBe(405);
    expect(revealed).toContain('value="approve"');
    const { text: audit } = await app.call("GET", "/v1/audit?kind=revealed");
    expect(JSON.parse(audit).data[0]).toMatchObject({ kind: "revealed", subject: id });
    expect(audit).not.toContain(PASSWORD);

    // Whoever has a link alone is told where, and has no form for it.
    const page = await (await fetch(app.url + links.approve)).text();
    expect(page).toContain(`<a href="/actions/${id}">`);
    expect(page).not.toContain("/reveal");
    const stranger = await fetch(`${app.url}/actions/${id}/reveal`, { method: "POST", redirect: "manual" });
    expect(await stranger.text()).not.toContain(TOKEN);
    expect(stranger.status).not.toBe(200);
  });
});

describe.skipIf(!HAS_BROWSER)("the whole request, in a browser without script", () => {
  const browser = useBrowser();
  let page: Page;
  beforeAll(async () => {
    page = await openPage(browser.chromium);
    await ann.enter(page.context());
  });

  /** Sixteen members of padding, so that what counts is far below; and the same with more than any window holds. */
  const padded = (chars: number) => ({
    body: {
      ...Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`note${at}`, "all is well ".repeat(chars / 12)])),
      transfer: "5000 to Bob",
    },
  });

  const LOOKS = [
    [1_280, 240],
    [375, 1_200],
  ] as const;
  const OTHER_LOOKS = [
    [375, 240],
    [1_280, 1_200],
  ] as const;

  test.each([...LOOKS, ...(IS_LONG ? OTHER_LOOKS : [])])(
    "stands above Approve at %i pixels, 16 members of %i characters long",
    async (width, chars) => {
      const { id, links } = await shownOf(padded(chars));
      await page.setViewportSize({ width, height: 800 });
      const approveOf = () => page.getByRole("button", { name: "Approve", exact: true });
      const pointerEvents = () =>
        page.evaluate("getComputedStyle(document.querySelector('button[value=approve]')).pointerEvents");
      for (const path of [links.approve, `/approvals/${id}`, `/actions/${id}`]) {
        await page.goto(app.url + path);
        if (path === links.approve) {
          // Its buttons stay in view, and Approve can't be pressed before the end.
          const { y = 999, x = 0, height = 0 } = (await approveOf().boundingBox()) ?? {};
          expect(y + height).toBeLessThanOrEqual(800);
          await page.mouse.click(x + 20, y + 10);
          expect([page.url(), await pointerEvents()]).toEqual([app.url + path, "none"]);
          await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
          await eventually(async () => ((await pointerEvents()) === "auto" ? true : null), "the end");
        }
        const approve = await approveOf().evaluate((button) => button.getBoundingClientRect().top);
        const windows = await page.evaluate(
          "[...document.querySelectorAll('main *')].filter((part) => part.scrollHeight > part.clientHeight + 1 && /auto|scroll|hidden/.test(getComputedStyle(part).overflowY) && part.closest('pre')).length",
        );
        const transferEnd = await page.evaluate(`(() => {
        const parts = [...document.querySelectorAll(".asked .json-line, .asked pre:not([hidden] *)")];
        const shown = parts.find((part) => part.textContent.includes("5000 to Bob"));
        return shown.getBoundingClientRect().bottom;
      })()`);
        expect({ path: path.slice(0, 10), windows }).toEqual({ path: path.slice(0, 10), windows: 0 });
        const isAbove = Number(transferEnd) < approve + 1;
        expect({ path: path.slice(0, 10), isAbove }).toEqual({ path: path.slice(0, 10), isAbove: true });
      }
      // Where several are decided at once, the beginning alone is shown: the rest is counted below it and in the button.
      await page.goto(`${app.url}/approvals/review?id=${id}`);
      const pane = page.locator("#request");
      expect(await pane.textContent()).not.toContain("5000 to Bob");
      expect(await pane.textContent()).toMatch(/more (lines|characters).* not shown\. View the whole body/);
      const button = pane.getByRole("button", { name: /^Approve 1( · .*)?, with .* not shown$/ });
      expect(await button.isVisible()).toBe(true);
    },
    60_000,
  );
});
