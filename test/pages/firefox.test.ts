import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { type Firefox, FIREFOX_START_MS_MAX, HAS_FIREFOX, openFirefox } from "../support/firefox.ts";
import { freePort } from "../support/free-port.ts";
import { Target } from "../support/target.ts";

// A browser, on a machine that may be busy.
setDefaultTimeout(120_000);

describe.skipIf(!HAS_FIREFOX)("every page, in Firefox", () => {
  let firefox: Firefox;
  let app: RealServer;
  let paths: readonly string[];
  const target = new Target(503, () => Response.json({ ok: true }));

  beforeAll(async () => {
    firefox = await openFirefox();
    app = await openRealServer({ port: await freePort() });
    const ann = await signedIn(app);
    const [name = "", value = ""] = ann.cookie.split("=");
    await firefox.setCookie("127.0.0.1", name, value);
    const ask = async (members: object) => {
      const request = { url: target.url, notify: { email: "ann@example.com" }, ...members };
      return (await app.call("POST", "/v1/actions", request)).json.id;
    };
    const held = await ask({ approve: true, title: "Refund 12.00 EUR", body: { amount: 1_200, lines: ["a", "b"] } });
    const sent = await ask({});
    await app.engine.saw(sent, { status: "pending", attempts: 1 });
    const receipts = [held, sent].map((id) => app.engine.receiptPath(id));
    const { approve } = await app.linksOf(held);
    const own = "/approvals /actions /overview /keys /settings /settings/people /settings/login /more";
    const docs = "/docs /docs/api /docs/api/createAction /docs/search?q=retry /docs/errors";
    const one = [`/approvals/${held}`, `/actions/${sent}`, approve, ...receipts, "/nothing", "/r/nothing"];
    paths = [...own.split(" "), ...docs.split(" "), ...one];
  }, FIREFOX_START_MS_MAX);
  afterAll(async () => {
    await firefox[Symbol.asyncDispose]();
    await app[Symbol.asyncDispose]();
    await target[Symbol.asyncDispose]();
  });

  const SIZES = [
    { width: 1_280, height: 800 },
    { width: 375, height: 812 },
  ] as const;

  test("opens with one title, its style and no error, and does not scroll sideways, on a phone neither", async () => {
    const seen: object[] = [];
    const expected: object[] = [];
    for (const path of paths) {
      await firefox.resize(1_280, 800);
      await firefox.open(app.url + path);
      for (const { width, height } of SIZES) {
        await firefox.resize(width, height);
        const found = await firefox.evaluate(`{
          isLoggedOut: location.pathname === "/login",
          titles: document.querySelectorAll("h1").length,
          width: innerWidth,
          overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
          isStyled: getComputedStyle(document.body).fontFamily.includes("system-ui"),
        }`);
        seen.push({ path, found, troubles: firefox.takeTroubles() });
        expected.push({
          path,
          found: { isLoggedOut: false, titles: 1, width, overflow: 0, isStyled: true },
          troubles: [],
        });
      }
    }
    expect(seen).toEqual(expected);
  });

  test("finds in the documentation as one types", async () => {
    await firefox.resize(1_280, 800);
    await firefox.open(`${app.url}/docs`);
    const found = await firefox.evaluate(`new Promise((resolve) => {
      const place = document.getElementById("docs-found");
      new MutationObserver(() => resolve(place.querySelectorAll("a").length)).observe(place, { childList: true });
      const field = document.getElementById("search");
      field.value = "idempotency";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    })`);
    expect(found).toBeGreaterThan(2);
    expect(await firefox.evaluate("location.pathname")).toBe("/docs");
  });
});
