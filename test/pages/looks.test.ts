import { beforeAll, describe, expect, test } from "bun:test";
import { URL_CHARS_MAX } from "../../src/core/limits.ts";
import { openRealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { HAS_BROWSER, heightsOf, overflowOf } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";
import { Target } from "../support/target.ts";
import { useBrowser } from "./desk.ts";
import { barriersInBoth, openFolds, type Printed, printedOf } from "./visits.ts";

const target = await shared(new Target(503, () => Response.json({ ok: true, text: "x".repeat(400) })));
const app = await shared(openRealServer({ port: await freePort() }));
const ann = await signedIn(app);
const ask = async (members: object) => {
  const request = { approve: true, notify: { email: "ann@example.com" }, ...members };
  return (await app.call("POST", "/v1/actions", request)).json.id;
};
const wide = { url: `${target.url}${"a".repeat(300)}?token=x`, headers: { "X-Long": "y".repeat(300), Accept: "*/*" } };
const waiting = await ask({
  ...wide,
  body: { text: "z".repeat(300), list: Array.from({ length: 300 }, (_, n) => ({ n })) },
});
// Longer than its window in the inbox, and shorter than what stands in one everywhere.
await ask({ body: { list: Array.from({ length: 40 }, (_, n) => ({ n })) }, url: target.url });
// As long as a host and a URL may be.
const url = `https://${"sub.".repeat(61)}a.example/`.padEnd(URL_CHARS_MAX, "x");
const longest = await ask({ url, callback: url, method: "DELETE", body: { to: "p\u0430ypal" } });
const done = await ask({ ...wide, body: { amount: 7 } });
await app.call("POST", `/v1/actions/${done}/approve`, { reason: "w".repeat(300) });
await app.engine.saw(done, { status: "pending", attempts: 1 });
app.engine.clock.advance(10_000);
await app.engine.saw(done, { status: "completed" });
const failed = await ask({ ...wide, body: { amount: 8 }, approve: false, retries: 1, url: "http://127.0.0.1:9/" });
await app.engine.saw(failed, { status: "failed" });
const { approve } = await app.linksOf(waiting);
// One that has not ended loads itself again, in the middle of a look at it.
const receipts = [waiting, done].map((id) => `${app.engine.receiptUrl(id)}?reload=off`);
const paths = [
  ..."/actions /actions?status=failed&status=cancelled&host=127.0.0.1 /actions?host=no /actions?limit=0".split(" "),
  ...[waiting, done, failed, longest].map((id) => `/actions/${id}`),
  `/actions/${failed}/edit`,
  "/approvals",
  `/approvals?decided=${done}`,
  ...[waiting, longest].map((id) => `/approvals/${id}`),
  `/approvals/review?id=${waiting}&id=${longest}`,
  (await app.linksOf(longest)).reject,
  approve,
  ...receipts,
  ..."/r/nothing /login /x".split(" "),
];

describe.skipIf(!HAS_BROWSER)("every page, in a browser", () => {
  const open = useBrowser().of(ann);
  const openAt = (width: number) => open({ bypassCSP: true, viewport: { width, height: 700 }, hasTouch: width < 800 });

  /** What reaches into the edge of the card that it stands in: the page itself need not scroll for that. */
  const OUTSIDE = `[...document.querySelectorAll(".card :is(input, select, textarea, button, a, code)")]
    .filter((part) => {
      const card = part.closest(".card");
      const end = card.getBoundingClientRect().right - parseFloat(getComputedStyle(card).paddingRight);
      return part.checkVisibility() && part.getBoundingClientRect().right > end + 1;
    })
    .map((part) => part.outerHTML)`;

  interface Seen {
    readonly path: string;
    readonly printed: Printed;
    readonly light: readonly string[];
    readonly dark: readonly string[];
  }

  let seen: readonly Seen[];
  /** Each page is opened once for all that is looked at on a wide screen: opening takes longer than looking. */
  const look = async () => {
    await using watched = await openAt(900);
    const { page } = watched;
    const all: Seen[] = [];
    for (const path of paths) {
      await page.goto(app.url + path);
      all.push({ path, printed: await printedOf(page), ...(await barriersInBoth(page)) });
    }
    return all;
  };
  beforeAll(async () => {
    seen = await look();
  }, 120_000);
  const everywhere = <Part>(part: (one: Seen) => Part, expected: Part) =>
    expect(seen.map((one) => ({ path: one.path, found: part(one) }))).toEqual(
      paths.map((path) => ({ path, found: expected })),
    );

  test("can be read by everybody (axe finds nothing)", () => everywhere(({ light }) => light, []));

  test("can be read by everybody in the dark", () => everywhere(({ dark }) => dark, []));

  test("is printed whole: every row, no buttons, no navigation, and nothing in a window", () =>
    everywhere(({ printed: { buttons, lost, cut, bare } }) => ({ buttons, lost, cut, bare }), {
      buttons: 0,
      lost: 0,
      cut: 0,
      bare: [],
    }));

  test("is printed dark on white, whatever the screen is", () => everywhere(({ printed }) => printed.isDark, false));

  test("fits a screen of 320 px, and a finger finds its buttons", async () => {
    await using watched = await openAt(320);
    for (const path of paths) {
      await watched.page.goto(app.url + path);
      await openFolds(watched.page);
      expect(await overflowOf(watched.page), path).toBe(0);
      expect(await watched.page.evaluate(OUTSIDE), path).toEqual([]);
      const heights = await heightsOf(
        watched.page,
        "button:not(.copy), .button, nav a, summary, .back, .check, .inbox-choose, .reviewed-foot > a",
      );
      expect(
        heights.filter((height) => height < 44),
        path,
      ).toEqual([]);
    }
  });
});
