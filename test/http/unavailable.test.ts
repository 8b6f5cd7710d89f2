import { expect, test } from "bun:test";
import { join } from "node:path";
import { openStartServer } from "../../src/http/listen.ts";
import { systemIds } from "../../src/core/ids.ts";
import { librariesOf } from "../support/libraries.ts";
import { exchange, readAnswer, request } from "./wire.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

/** What a service answers whose store can't be opened yet. */
async function ask(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const server = openStartServer(0, "127.0.0.1", { ids: systemIds, version: "1.2.3", commit: null });
  try {
    const response = await fetch(new URL(path, server.url), { headers });
    return new Response(await response.text(), response);
  } finally {
    await server.stop(true);
  }
}

test.each(["/", "/approvals", "/a/token", "/r/token"])(
  "a person gets a page while the store is away: %s",
  async (path) => {
    const response = await ask(path, BROWSER);
    expect(response.status).toBe(503);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": expect.stringContaining("default-src 'none'"),
      "retry-after": "1",
      vary: "Accept",
    });
    const html = await response.text();
    expect(html).toContain("reload this page");
    expect(html).toContain(response.headers.get("x-request-id") ?? "no id");
    // Nothing else is answered here: neither a style nor the page that a link would lead to.
    expect(html).not.toMatch(/(?:href|src)="\//);
  },
);

test.each([
  ["/approvals", {}],
  ["/approvals", { accept: "application/json" }],
  ["/v1/actions", BROWSER],
  ["/mcp", BROWSER],
])("a program gets the envelope while the store is away: %s, %j", async (path, headers) => {
  const response = await ask(path, headers);
  expect([response.status, response.headers.get("content-type")]).toEqual([503, "application/json"]);
  expect(await response.json()).toMatchObject({ error: { code: "unavailable" } });
});

test("a request line without a path gets the envelope while the store is away", async () => {
  const server = openStartServer(0, "127.0.0.1", { ids: systemIds, version: "1.2.3", commit: null });
  const { text, isClosed } = await exchange(server.port ?? 0, [request("CONNECT [::1")]);
  await server.stop(true);
  expect(isClosed).toBe(true);
  expect(readAnswer(text)).toMatchObject({ status: 400, body: expect.stringContaining("invalid_request") });
});

test.each([
  ["/health", 200, { status: "ok", version: "1.2.3", commit: null }],
  ["/ready", 503, { status: "unavailable", version: "1.2.3", commit: null }],
])("a probe gets what it gets elsewhere, whatever it accepts: %s", async (path, status, answer) => {
  const response = await ask(path, BROWSER);
  expect(response.status).toBe(status);
  expect(await response.json()).toEqual(answer);
});

test("the service listens before it loads a library, but the one of addresses: schemas and routes take most of the start", async () => {
  const libraries = await librariesOf(join(import.meta.dir, "../../src/app.ts"), { isLazyToo: false });
  expect(libraries).toEqual(["ipaddr.js"]);
});
