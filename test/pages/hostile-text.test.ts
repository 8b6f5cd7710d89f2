import { describe, expect, test } from "bun:test";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { HAS_BROWSER, watchPage } from "../support/browser.ts";
import { freePort } from "../support/free-port.ts";
import { Target } from "../support/target.ts";
import { IS_LONG } from "../support/long.ts";
import { shared } from "../support/shared.ts";
import { useBrowser } from "./desk.ts";

/** Who may be asked, with what has a meaning in HTML in it. */
const APPROVERS = "o'hara&co@example.com";

/** Each would run, load, lead away or break out of its place if it were anything but text. */
const ATTACKS = [
  "<script>window.ran=1</script>",
  '"><img src=x onerror=window.ran=1>',
  "'><svg onload=window.ran=1>",
  "</pre></textarea></title></style><script>window.ran=1</script>",
  '<!--><iframe srcdoc="<script>parent.ran=1</script>">',
  "javascript:window.ran=1",
  "<style>body{display:none}</style>",
  "<form action=https://evil.example><button name=decision value=approve>Approve</button></form>",
  '<meta http-equiv="refresh" content="0;url=https://evil.example">',
  "<a href=https://evil.example>View receipt</a>",
  "\u202egnihton\u2066 \u0007\u2028",
  "&amp;&lt;script&gt;",
];

const UNSEEN = ["\u202e", "\u2066", "\u0007", "\u2028"];

const printable = (text: string) => text.replaceAll(/[^ -~]/g, "?");

/** A target that answers with all of them, as a page of its own. */
const hostileTarget = () =>
  new Target(() => {
    const headers = { "content-type": "text/html", "x-attack": printable(ATTACKS.join()) };
    return new Response(ATTACKS.join("\n"), { status: 500, headers });
  });

interface Pages {
  readonly id: string;
  /** While it is held. */
  readonly held: readonly string[];
  /** When it has ended. */
  readonly ended: readonly string[];
}

/** An action with attacks in every field that a caller may set, and where it is shown. */
async function hostileAction(app: RealServer, url: string): Promise<Pages> {
  const path = encodeURI(ATTACKS.join("/").replaceAll(/[\\\s\p{Cc}\u2028]/gu, "")).replaceAll(
    /%3[CE]|%22/g,
    decodeURIComponent,
  );
  const request = {
    url: `${url}${path}?q=<b>'"&x=${encodeURIComponent(ATTACKS.join())}`,
    approve: true,
    retries: 1,
    headers: Object.fromEntries([
      ["Accept", printable(ATTACKS.join())],
      ...ATTACKS.map((attack, at) => [`X-'quote${at}`, printable(attack)]),
    ]),
    body: { ...Object.fromEntries(ATTACKS.map((attack) => [attack, [attack]])), list: ATTACKS },
    dedupe: printable(ATTACKS.join()).slice(0, 250),
    notify: { email: APPROVERS },
  };
  const { json } = await app.call("POST", "/v1/actions", request, KEYS.agent);
  const { approve } = await app.linksOf(json.id);
  return {
    id: json.id,
    held: ["/approvals", `/approvals/${json.id}`, approve, "/actions", `/actions/${json.id}`],
    ended: [
      app.engine.receiptUrl(json.id),
      `/approvals?decided=${json.id}`,
      "/actions?status=failed",
      `/actions/${json.id}`,
    ],
  };
}

async function letRun(app: RealServer, id: string): Promise<void> {
  await app.call("POST", `/v1/actions/${id}/approve`, { reason: ATTACKS.join("\n") });
  await app.engine.saw(id, { status: "failed" });
}

const app = await shared(openRealServer({ env: { APPROVERS } }));
const ann = await signedIn(app);

describe("what agents and targets write", () => {
  /** Only what our own pages are made of: their tags, with all attributes quoted, and their links. */
  const TAG = /^<(?:!doctype html|\/?[a-z]+[1-3]?(?: [a-zA-Z-]+(?:="[^"]*")?)*\/?)>$/;
  const OURS =
    /^<script (?:type="module"|defer="") src="\/assets\/(?:console|htmx|idiomorph|session)-[0-9a-f]{16}\.js">$|^<\/script>$|^<svg class="(?:lane-bars|icon)" [^<]*>$|^<\/svg>$/;
  const STRANGE = /^<\/?(?:script|img|svg|iframe|object|embed|base|video|audio|math)\b/i;
  const OUR_LINK =
    /^(?:\/$|\/auth\/logout$|\/(?:overview|approvals|actions|bulk|search|keys|settings|docs|more|assets|r)\b|#(?:main|end-of-request)$|data:image\/svg\+xml,)/;

  async function look(path: string): Promise<string> {
    const response = await ann.context(path, { headers: { accept: "text/html" } });
    expect(response.status, path).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const html = await response.text();
    const [styles, tags] = [
      html.match(/<style>/g) ?? [],
      html.replace(/<style>.*?<\/style>/s, "").match(/<[^>]*>/g) ?? [],
    ];
    expect(styles.length).toBeLessThan(2);
    const others = tags.filter((tag) => !OURS.test(tag));
    expect(others.filter((tag) => !TAG.test(tag) || STRANGE.test(tag) || tag.includes("http-equiv"))).toEqual([]);
    const links = tags.flatMap((tag) =>
      [...tag.matchAll(/ (?:href|src|action)="([^"]*)"/g)].map(([, href]) => href ?? ""),
    );
    expect(links.filter((href) => !OUR_LINK.test(href))).toEqual([]);
    for (const character of UNSEEN) expect(html).not.toContain(character);
    return html;
  }

  test("is text on every page, escaped, and never a link", async () => {
    await using target = hostileTarget();
    const { id, held, ended } = await hostileAction(app, target.url);
    for (const path of held) await look(path);
    await letRun(app, id);
    for (const path of ended) await look(path);
    const receipt = await look(ended[0] ?? "");
    // In the body, in the answer, and in the reason; a JSON text writes a quote in its own way.
    for (const attack of ATTACKS.filter((text) => !/["\\]/.test(text) && printable(text) === text)) {
      expect(receipt.split(Bun.escapeHTML(attack)).length).toBeGreaterThan(3);
    }
    expect(receipt).toContain("<i>U+202E</i>");
  });

  test("of a quarter of a megabyte of & as much is shown as of any body, each as a character", async () => {
    const flood = "&".repeat(262_144);
    await using target = new Target(() => new Response(flood));
    const { json } = await app.call("POST", "/v1/actions", { url: target.url, body: { flood }, sync: true });
    const html = await (await fetch(app.url + app.engine.receiptUrl(json.id))).text();
    expect(html.split("&amp;".repeat(65_000))).toHaveLength(3);
    expect(html).not.toContain("&&");
  });
});

describe.skipIf(!HAS_BROWSER)("in a browser that runs scripts", () => {
  const browser = useBrowser();

  // Whoever gets by without the policy gets by with it.
  test.each([["even without our policy", true], ...(IS_LONG ? [["with our policy", false] as const] : [])] as const)(
    "nothing of it runs, loads or leads away, %s",
    async (_what, bypassCSP) => {
      await using target = hostileTarget();
      await using server = await openRealServer({ port: await freePort(), env: { APPROVERS } });
      const bob = await signedIn(server);
      await using watched = await watchPage(browser.chromium, { bypassCSP });
      const { page, troubles } = watched;
      await bob.enter(page.context());
      const look = async (path: string, buttons: readonly string[]) => {
        await page.goto(server.url + path);
        // Images and frames are in before that; what leads away by itself does so now.
        await page.waitForTimeout(100);
        // The list of what waits takes the address of the request that it shows.
        expect(new URL(page.url()).pathname.replace(/^\/approvals\/act_\w+$/, "/approvals")).toBe(
          (path.split("?")[0] ?? "").replace(/^\/approvals\/act_\w+$/, "/approvals"),
        );
        const found = await page.evaluate(
          "[window.ran, document.scripts.length, document.images.length, frames.length]",
        );
        const ours = (await page.locator("#navigation").count()) * 4;
        expect(found, path).toEqual([undefined, ours, 0, 0]);
        const shown = (await page.locator("button:visible:not(.copy)").allTextContents()).map((text) =>
          text.trim().replace(/^Approve, (?:with .* not shown|\d+ more lines? below)$/, "Approve"),
        );
        expect(shown, path).toEqual([...buttons]);
      };
      const { id, held, ended } = await hostileAction(server, target.url);
      const decisions = ["Approve", "Reject"];
      const onItsPage = ["Approve", "Reject"];
      const whileHeld = [decisions, decisions, ["Approve", "Reject"], [], onItsPage];
      for (const [at, path] of held.entries()) await look(path, whileHeld[at] ?? []);
      await letRun(server, id);
      const onceEnded = ["Show secrets"];
      const whenEnded = [[], [], [], onceEnded, ["Send as a new action"]];
      for (const [at, path] of ended.entries()) await look(path, whenEnded[at] ?? []);
      expect(troubles).toEqual([]);
    },
  );
});
