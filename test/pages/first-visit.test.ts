import { expect, test } from "bun:test";
import { openRealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { docsPath, GUIDES } from "../../src/pages/docs/guides.ts";
import { Target } from "../support/target.ts";
import { shared } from "../support/shared.ts";

/** A page and everything that it loads, as they are sent to a browser. */
const BYTES_MAX = 100_000;

/** What a list shows at a time, and some more. */
const ACTIONS = 60;

const HELD = 12;

const target = await shared(new Target(503, 200));

const app = await shared(openRealServer());
const ann = await signedIn(app);
const create = async (count: number, members: object): Promise<string> => {
  const request = { url: `${target.url}v1/charges/${count}`, body: { amount: count, currency: "eur" }, ...members };
  return (await app.call("POST", "/v1/actions", request)).json.id;
};
const first = await create(0, { callback: `${target.url}hook` });
await app.engine.saw(first, { status: "pending", attempts: 1 });
app.engine.clock.advance(10_000);
await app.engine.saw(first, { status: "completed" });
for (let count = 1; count < ACTIONS; count += 1) await create(count, {});
const body = { charge: "ch_1", amount: 1_200, reason: "requested_by_customer", metadata: { order: "1881" } };
const held = `/approvals/${await create(0, { approve: true, body })}`;
for (let count = 1; count < HELD; count += 1) await create(count, { approve: true, body });
const mailed = await create(0, { approve: true, body, notify: { email: "ann@example.com" } });
for (const name of ["billing", "support", "reports"]) {
  await app.call("POST", "/v1/keys", { name, role: "agent" });
}
const completed = `/actions/${first}`;
const invited = await app.call("POST", "/v1/invitations", `{"email":"bob@example.com","role":"reader"}`);
const invitation = new URL(invited.json.link).pathname;
const { approve: link } = await app.linksOf(mailed);

/** Whoever is logged in has no business there. */
const BEFORE_LOG_IN = new Set(["/login", "/signup"]);

const isBeforeLogIn = (path: string) => BEFORE_LOG_IN.has(path) || path.startsWith("/join/");

/** What may run, load or frame a page of somebody who is logged in. */
const OWN_RULES = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-frame-options": "DENY",
  "cache-control": "private, no-store",
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};

const OWN = /^\/(approvals|actions|overview|get-started|keys|settings|audit)/;

/** What that policy would not let run or show. */
const INLINE =
  /<script(?! (?:type="module"|defer="") src="\/assets\/[a-z]+-[0-9a-f]{16}\.js"><\/script>)|<style| style=| on\w+=/i;

/** An answer as a browser asks for it: its bytes, its headers and its text. */
async function sent(path: string) {
  const response = await fetch(app.url + path, {
    headers: { accept: "text/html", "accept-encoding": "gzip", ...(isBeforeLogIn(path) ? {} : { cookie: ann.cookie }) },
    redirect: "manual",
    decompress: false,
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const isGzip = response.headers.get("content-encoding") === "gzip";
  const text = new TextDecoder().decode(isGzip ? Bun.gunzipSync(bytes) : bytes);
  return { status: response.status, headers: response.headers, bytes: bytes.byteLength, text };
}

const PATHS = [
  ..."/login /signup /approvals /actions /overview /get-started /keys /keys/new /settings /audit".split(" "),
  "/actions?status=completed&status=failed&host=127.0.0.1",
  ..."notifications channels hosts rules rules/new signing server password people login rotation"
    .split(" ")
    .map((name) => `/settings/${name}`),
  held,
  completed,
  `${completed}/edit`,
  invitation,
  app.engine.receiptUrl(first),
  link,
  ...GUIDES.map(({ name }) => docsPath(name)),
  "/docs/api",
  "/docs/errors",
];

test.each<[path: string, status: number]>([
  ...PATHS.map((path): [string, number] => [path, 200]),
  ["/nothing", 404],
  ["/r/nothing", 404],
])("a first visit is small, with all that it loads, and nothing of it inline: %s", async (path, status) => {
  const page = await sent(path);
  const loaded = [...page.text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, asset]) => asset ?? "");
  const assets = await Promise.all([...new Set(loaded)].map(sent));
  expect([page, ...assets].map((answer) => answer.status)).toEqual([status, ...assets.map(() => 200)]);
  expect(page.bytes + assets.reduce((all, { bytes }) => all + bytes, 0)).toBeLessThan(BYTES_MAX);
  if (!OWN.test(path)) return;
  expect(Object.fromEntries(page.headers)).toMatchObject(OWN_RULES);
  expect(page.text).not.toMatch(INLINE);
});
