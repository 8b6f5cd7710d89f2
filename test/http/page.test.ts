import { describe, expect, test } from "bun:test";
import { page, pageHeaders, type PageKind } from "../../src/http/response.ts";
import { ASSETS } from "../../src/ui/assets.ts";
import { SHEET_STYLE } from "../../src/ui/sheet-style.ts";
import { openRealServer } from "./real-server.ts";
import { joined, signedIn } from "./signed-in.ts";
import { openStubServer } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openStubServer());

const KINDS = ["own", "receipt", "live", "approval", "notice"] as const satisfies readonly PageKind[];

describe("a page", () => {
  test("is kept to itself, whatever it is", () => {
    for (const kind of KINDS) {
      expect(Object.fromEntries(page(kind, "").headers)).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cache-control": "private, no-store",
        "cross-origin-resource-policy": "same-origin",
      });
      const policy = pageHeaders(kind)["cross-origin-opener-policy"];
      expect(policy, kind).toEqual(kind === "receipt" ? undefined : "same-origin");
    }
  });

  test("that a token opens tells nobody of it", () => {
    for (const kind of ["receipt", "live", "approval", "notice"] as const) {
      expect(pageHeaders(kind)).toMatchObject({
        "referrer-policy": "no-referrer",
        "x-robots-tag": "noindex, nofollow, noarchive",
      });
    }
    expect(pageHeaders("own")).toMatchObject({ "referrer-policy": "same-origin" });
    expect(pageHeaders("own")).not.toHaveProperty("x-robots-tag");
  });
});

describe("the page of an error", () => {
  const context = async (path: string) => {
    const response = await fetch(app.url + path, { headers: { accept: "text/html" } });
    return { text: await response.text(), id: response.headers.get("x-request-id") };
  };

  test("leads on, and says by what the request is found", async () => {
    const { text, id } = await context("/nothing");
    expect(text).toContain('<a class="button" href="/approvals">Log in</a>');
    expect(text.replaceAll(/<[^>]+>/g, "")).toContain(`If you ask for help, include this request ID: ${id}`);
    expect(text).toContain(`data-copy-text="${id}"`);
    expect(text).not.toContain('id="navigation"');
  });

  test("says of a link that opens nothing what to do and where, and loads nothing", async () => {
    const { text, id } = await context("/r/nothing");
    expect(text.replaceAll(/<[^>]+>/g, "")).toContain(`include this request ID: ${id}`);
    expect(text).toContain("Open it again from the message");
    expect([...text.matchAll(/<a [^>]*href="([^"]*)"/g)].map(([, href]) => href)).toEqual(["/approvals"]);
    expect(text).not.toMatch(/<script|<link [^>]*stylesheet/);
  });

  test("keeps the navigation of whoever is logged in, and reads nobody for others", async () => {
    await using server = await openRealServer({ starts: false });
    const ann = await signedIn(server);
    for (const [path, status, title] of [
      ["/nothing", 404, "Page not found"],
      ["/actions/act_nothing", 404, "Page not found"],
      ["/auth/logout", 405, "This page can’t be opened directly"],
      ["/docs/nothing", 404, "Page not found"],
      ["/join/nothing", 404, "This link doesn’t work"],
    ] as const) {
      const response = await ann.context(path, { headers: { accept: "text/html" } });
      const text = await response.text();
      expect([response.status, text.includes('<nav id="navigation"')], path).toEqual([status, true]);
      expect(text).toContain(`<h1>${title}</h1>`);
      expect(text).toContain(">Open Approvals</a>");
    }
    const reader = await joined(server, "reader");
    const refused = await (await reader.context("/keys", { headers: { accept: "text/html" } })).text();
    expect(refused).toContain("it needs the role owner. Ask an owner of the account.");
    expect(refused).not.toContain("several accounts");
  });
});

describe("what pages load", () => {
  test("is served under a path that names its content, and may be kept", async () => {
    for (const { path, text, type } of ASSETS) {
      const response = await fetch(app.url + path);
      expect(await response.text()).toBe(text);
      expect(response.headers.get("content-type")).toBe(type);
      expect(response.headers.get("cache-control")).toContain("immutable");
    }
    expect((await fetch(`${app.url}/assets/style-0000000000000000.css`)).status).toBe(404);
  });

  test("is compressed for whoever understands that", async () => {
    for (const { path, text } of ASSETS) {
      const encodingFor = async (accepted: string) => {
        const init = { headers: { "accept-encoding": accepted }, decompress: false };
        const response = await fetch(app.url + path, init);
        const bytes = Buffer.from(await response.arrayBuffer());
        const encoding = response.headers.get("content-encoding");
        expect((encoding === null ? bytes : Buffer.from(Bun.gunzipSync(bytes))).toString()).toBe(text);
        expect(response.headers.get("vary")).toBe("Accept-Encoding");
        return encoding;
      };
      for (const accepted of ["gzip", "gzip, deflate, br", "br;q=1, GZIP;q=0.5"])
        expect(await encodingFor(accepted)).toBe("gzip");
      for (const accepted of ["", "identity", "gzip;q=0", "x-gzipped", "br, gzip; q=0.0"]) {
        expect(await encodingFor(accepted)).toBeNull();
      }
    }
  });

  test("is the one thing that is compressed, but for the documentation", async () => {
    const asked = async (path: string, accepted: string) => {
      const response = await fetch(app.url + path, { headers: { "accept-encoding": accepted }, decompress: false });
      const { headers } = response;
      return {
        encoding: headers.get("content-encoding"),
        vary: headers.get("vary"),
        bytes: new Uint8Array(await response.arrayBuffer()),
      };
    };
    const plain = await asked("/docs/api", "identity");
    const small = await asked("/docs/api", "gzip");
    expect([plain.encoding, small.encoding]).toEqual([null, "gzip"]);
    expect([plain.vary, small.vary]).toEqual(["Accept-Encoding", "Accept-Encoding"]);
    expect(Buffer.from(Bun.gunzipSync(small.bytes))).toEqual(Buffer.from(plain.bytes));
    // A form of theirs holds a secret, beside what others wrote.
    for (const path of ["/login", "/signup", "/r/nothing"]) expect((await asked(path, "gzip")).encoding).toBeNull();
  });

  test("is the stylesheet that a token page may hold", () => {
    expect(page("receipt", "").headers.get("content-security-policy")).toContain(`'sha256-${SHEET_STYLE.sha256}'`);
    // What could end the element it stands in, or load something.
    expect(SHEET_STYLE.text).not.toMatch(/<|@import|url\(/);
  });
});

describe("a path that leads nowhere", () => {
  const ask = (path: string, accept: string) => fetch(app.url + path, { headers: { accept } });

  test("is a page for a browser and an envelope for a program", async () => {
    const seen = await ask("/nowhere", "text/html,application/xhtml+xml");
    expect(seen.status).toBe(404);
    expect(seen.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const text = await seen.text();
    expect(text).toContain("Page not found");
    expect(text).toContain(seen.headers.get("x-request-id") ?? "none");
    expect((await ask("/nowhere", "*/*")).headers.get("content-type")).toBe("application/json");
  });

  test("is an envelope under /v1 and /mcp, whoever asks", async () => {
    for (const path of ["/v1/nowhere", "/v1", "/mcp"]) {
      expect((await ask(path, "text/html")).headers.get("content-type")).toBe("application/json");
    }
  });
});
