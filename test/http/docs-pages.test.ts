import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { HTTP_STATUS } from "../../src/api/errors.ts";
import { OPERATIONS } from "../support/operations.ts";
import { ERROR_CODES } from "../../src/api/domain-error.ts";
import { GUIDES } from "../../src/pages/docs.tsx";
import { openRealServer, type RealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";

const BASE_URL = "http://outgate.example:8080";

let app: RealServer;

beforeAll(async () => {
  app = await openRealServer({ starts: false, baseUrl: BASE_URL });
});

afterAll(() => app[Symbol.asyncDispose]());

const get = async (path: string) => {
  const response = await fetch(app.url + path, { redirect: "manual", headers: { accept: "text/html" } });
  return { status: response.status, headers: response.headers, text: await response.text() };
};

const pathOf = (name: string) => (name === "start" ? "/docs" : `/docs/${name}`);

const PATHS = [...GUIDES.map(({ name }) => name), "api", "errors"].map(pathOf);

const textOf = (html: string) => html.replaceAll(/<[^>]+>/g, "").replaceAll(/\s+/g, " ");

describe("the documentation", () => {
  test("is there without any key, log-in, script or foreign file", async () => {
    for (const path of PATHS) {
      const { status, headers, text } = await get(path);
      expect({ path, status }).toEqual({ path, status: 200 });
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(text).not.toMatch(/<script|<style| style=| on\w+=|<img|<iframe/i);
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
      expect({ path, twice: ids.filter((id, at) => ids.indexOf(id) !== at) }).toEqual({ path, twice: [] });
      for (const [, href = ""] of html.matchAll(/<a [^>]*href="([^"]+)"/g)) {
        if (href.startsWith("https://")) continue;
        const [to = "", part] = href.split("#");
        const target = to === "" ? html : pages.get(to);
        const isThere =
          target === undefined ? (await get(to)).status < 400 : part === undefined || target.includes(` id="${part}"`);
        expect({ path, href, isThere }).toEqual({ path, href, isThere: true });
      }
    }
  });

  test("tells the headers of an answer that a client should know", async () => {
    const { text } = await get("/docs/api");
    const of = (id: string) => textOf(text.split(`aria-labelledby="${id}"`)[1]?.split("</section>")[0] ?? "");
    expect(of("createAction")).toContain("Headers: Location");
    expect(of("getReceipt")).toContain("Headers: Cache-Control, Vary, Referrer-Policy");
    expect(of("getReceipt")).toContain("404 not_found");
    expect(of("getHealth")).not.toContain("Headers:");
  });

  test("tells every operation with its parameters, body, answers and errors", async () => {
    const { text } = await get("/docs/api");
    const sections = text.split('<section class="operation"');
    for (const { id, method, path, summary, errors, success, body, query, headers = [] } of OPERATIONS) {
      const section = sections.find((one) => one.includes(`<h3 id="${id}"`)) ?? "";
      const words = textOf(section);
      expect(words).toContain(`${method} ${path}`);
      expect(words).toContain(summary.replaceAll("'", "&#39;"));
      for (const code of errors)
        expect({ id, code, isTold: section.includes(`/docs/errors#${code}`) }).toMatchObject({ isTold: true });
      for (const status of success) expect(section).toContain(`<b>${status}</b>`);
      const { properties = {} } = (body?.schema ?? {}) as { properties?: object };
      const fields = [...Object.keys(query?.properties ?? {}), ...headers, ...Object.keys(properties)];
      for (const field of fields)
        expect({ id, field, isTold: section.includes(`<code>${field}</code>`) }).toMatchObject({ isTold: true });
    }
    expect(textOf(text)).toContain("notify.email string (email) required");
    expect(text).toContain('id="schema-Action"');
    // Examples can be pasted: they are where this service is.
    expect(text).toContain(`curl -s &#39;${BASE_URL}/v1/actions&#39;`);
    expect(text).toMatch(/\/r\/\w+&#39; \\\s+-H &#39;Accept: application\/json&#39;/);
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
      expect({ link, status: (await get(link.slice(BASE_URL.length))).status }).toEqual({ link, status: 200 });
    }
  });

  test("knows its pages and no others", async () => {
    for (const path of [
      "/docs/nothing",
      "/docs/nothing.md",
      "/docs/api.md",
      "/docs/..%2f.env",
      "/docs/%00",
      "/docs/.md",
    ]) {
      expect({ path, status: (await get(path)).status }).toEqual({ path, status: 404 });
    }
    expect((await get("/docs/start")).headers.get("location")).toBe("/docs");
    expect((await fetch(`${app.url}/docs`, { method: "POST" })).status).toBe(405);
  });

  test("keeps whoever is logged in where they were", async () => {
    await using server = await openRealServer({ starts: false });
    const ann = await signedIn(server);
    expect(await ann.pageOf("/docs")).toContain('<a href="/docs" aria-current="page">Docs</a>');
    expect(await ann.pageOf("/docs")).not.toContain("Log in");
    expect((await get("/docs")).text).toContain('<a href="/login">Log in</a>');
  });
});
