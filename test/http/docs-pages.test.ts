import { describe, expect, test } from "bun:test";
import { ENTER_KEY, firstActionCall } from "../../src/api/code-samples.ts";
import { HTTP_STATUS } from "../../src/api/errors.ts";
import { OPERATIONS } from "../support/operations.ts";
import { RISKS } from "../../src/approvals/risks.ts";
import { AUDIT_KINDS } from "../../src/core/audit.ts";
import { ERROR_CODES } from "../../src/core/domain-error.ts";
import { GUIDES } from "../../src/pages/docs/guides.ts";
import { openRealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { shared } from "../support/shared.ts";
import { words } from "../support/words.ts";

const BASE_URL = "http://outgate.example:8080";

const app = await shared(openRealServer({ starts: false, baseUrl: BASE_URL }));

const get = async (path: string) => {
  const response = await fetch(app.url + path, { redirect: "manual", headers: { accept: "text/html" } });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

const pathOf = (name: string) => (name === "start" ? "/docs" : `/docs/${name}`);

const PATHS = [
  ...GUIDES.map(({ name }) => name),
  "api",
  "api/objects",
  ...OPERATIONS.map(({ id }) => `api/${id}`),
  "errors",
  "search?q=retry+%3Cb%3E",
].map(pathOf);

const textOf = (html: string) => html.replaceAll(/<[^>]+>/g, "").replaceAll(/\s+/g, " ");

test.each(["/docs/search?q=retry", "/docs/api", "/nope"])(
  "many who ask for %s at once get it in turns",
  async (path) => {
    await get(path);
    const answered = { inTurn: 0, most: 0 };
    const ask = async () => {
      await app.http.handle(new Request(BASE_URL + path, { headers: { accept: "text/html" } }));
      if (answered.inTurn === 0) setImmediate(() => (answered.inTurn = 0));
      answered.inTurn += 1;
      answered.most = Math.max(answered.most, answered.inTurn);
    };
    await Promise.all(Array.from({ length: 40 }, ask));
    expect(answered.most).toBeLessThanOrEqual(2);
  },
);

describe("the documentation", () => {
  test.each<[guide: string, names: readonly string[]]>([
    ["approvals", RISKS],
    ["security", AUDIT_KINDS],
  ])("names in the guide %s every risk, or every kind of entry of the audit log", (guide, names) => {
    const { text = "" } = GUIDES.find(({ name }) => name === guide) ?? {};
    const named = new Set([...text.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name));
    expect(names.filter((name) => !named.has(name))).toEqual([]);
  });

  test("begins the reference of the API with base URL, authentication and a first request to copy", async () => {
    const { text } = await get("/docs/api");
    const ids = [...text.matchAll(/<h2 id="([^"]+)"/g)].slice(0, 3).map(([, id]) => id);
    expect(ids).toEqual(["base-url", "authentication", "first-request"]);
    const own = text.slice(text.indexOf('id="base-url"'), text.indexOf('id="every-request"'));
    const plain = own
      .replaceAll(/<[^>]+>/g, "")
      .replaceAll("&quot;", '"')
      .replaceAll("&#x27;", "'")
      .replaceAll("&lt;", "<");
    expect(plain).toContain(BASE_URL);
    expect(plain).toContain(ENTER_KEY);
    expect(plain).toContain(firstActionCall(BASE_URL));
  });

  test("is there without any key, login, script or foreign file", async () => {
    for (const path of PATHS) {
      const { status, headers, text } = await get(path);
      expect(status, path).toBe(200);
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(text).not.toMatch(
        /<script(?! (defer="" src|type="module" src)="\/assets\/)|<style| style=| on\w+=|<img|<iframe/i,
      );
      const loaded = [...text.matchAll(/<link [^>]*href="([^"]+)"|src="([^"]+)"/g)].map(([, href, src]) => href ?? src);
      for (const file of loaded) expect(file).toMatch(/^\/assets\//);
      expect(text.match(/<h1/g)).toHaveLength(1);
    }
  });

  test("leads nowhere that is not there: pages, their parts, and every id once", async () => {
    const pages = new Map<string, string>();
    for (const path of PATHS) pages.set(path, (await get(path)).text);
    for (const [path, html] of pages) {
      const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id ?? "");
      expect(
        ids.filter((id, at) => ids.indexOf(id) !== at),
        path,
      ).toEqual([]);
      for (const [, href = ""] of html.matchAll(/<a [^>]*href="([^"]+)"/g)) {
        if (href.startsWith("https://")) continue;
        const [to = "", part] = href.split("#");
        const target = to === "" ? html : pages.get(to);
        const isThere =
          target === undefined ? (await get(to)).status < 400 : part === undefined || target.includes(` id="${part}"`);
        expect(isThere, `${path} ${href}`).toBe(true);
      }
    }
  });

  test("tells the headers of an answer that a client should know", async () => {
    const of = async (id: string) => textOf((await get(`/docs/api/${id}`)).text);
    expect(await of("createAction")).toContain("Headers: Location");
    expect(await of("getReceipt")).toContain("Headers: Cache-Control, Vary, Referrer-Policy");
    expect(await of("getReceipt")).toContain("404not_found The account has no such object");
    expect(await of("getHealth")).not.toContain("Headers:");
  });

  test("finds with and without script: the same list, and the text of the reader only as text", async () => {
    const { status, headers, text } = await get("/docs/search?q=retry+%3Cb%3E");
    expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(text).toContain('value="retry &lt;b&gt;"');
    expect(text).toMatch(/<div id="results">.*<a href="\/docs\/find#/s);
    expect(text).toContain('hx-get="/docs/search"');
    expect(textOf((await get("/docs/search?q=xyzzyplugh")).text)).toContain("No page has “xyzzyplugh”.");
    expect(textOf((await get("/docs/search")).text)).toContain("Type a word");
    for (const query of ["q=%ff%00", `q=${"retry ".repeat(1_000)}`, "q=a&q=b", "x=1"]) {
      expect((await get(`/docs/search?${query}`)).status, query).toBe(200);
    }
  });

  test("tells every error with its status and what to do", async () => {
    const { text } = await get("/docs/errors");
    for (const code of ERROR_CODES) {
      const told = new RegExp(`<div id="${code}"><dt>.*?</dt><dd>.*?</dd></div>`, "s").exec(text)?.[0] ?? "";
      expect(textOf(told)).toContain(`${code} ${HTTP_STATUS[code]}`);
      expect(told).toMatch(/<span class="quiet">[A-Z][^<]{10,}\.<\/span><\/dd>/);
    }
  });

  test("is the documents of the repository, with this service's address in them, as a page and as text", async () => {
    for (const { name, text: written } of GUIDES) {
      const page = await get(pathOf(name));
      const [, title = ""] = /^# (.+)$/m.exec(written) ?? [];
      expect(textOf(page.text)).toContain(title.replaceAll("`", ""));
      const { status, headers, text } = await get(`/docs/${name}.md`);
      expect([status, headers.get("content-type")]).toEqual([200, "text/markdown; charset=utf-8"]);
      expect(text).toBe(written.replaceAll("http://127.0.0.1:3000", BASE_URL));
      expect(page.text).not.toContain("http://127.0.0.1:3000");
    }
    expect((await get("/docs/mcp")).text).toContain(`claude mcp add --transport http outgate ${BASE_URL}/mcp`);
  });

  test("has a list for models, whose links are there", async () => {
    const { headers, text } = await get("/llms.txt");
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(text).toStartWith("# Outgate\n\n> ");
    const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link = ""]) => link);
    expect(links.length).toBe(GUIDES.length + 2);
    for (const link of links) {
      expect(link).toStartWith(BASE_URL);
      expect((await get(link.slice(BASE_URL.length))).status, link).toBe(200);
    }
  });

  test("knows its pages and no others", async () => {
    for (const path of words(`
      /docs/nothing /docs/nothing.md /docs/api/nothing /docs/api/createAction/x /docs/api.md /docs/..%2f.env
      /docs/%00 /docs/.md
    `)) {
      expect((await get(path)).status, path).toBe(404);
    }
    expect((await get("/docs/start")).headers.get("location")).toBe("/docs");
    expect((await fetch(`${app.url}/docs`, { method: "POST" })).status).toBe(405);
  });

  test("leads whoever is logged in back to the console", async () => {
    await using server = await openRealServer({ starts: false });
    const ann = await signedIn(server);
    expect(await ann.pageOf("/docs")).toContain('<a href="/approvals">Console</a>');
    expect(await ann.pageOf("/docs")).not.toContain("Log in");
    expect((await get("/docs")).text).toContain('<a href="/login">Log in</a>');
    expect((await get("/docs")).text).not.toContain('href="/approvals">Console');
  });
});
