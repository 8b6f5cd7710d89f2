import { expect, test } from "bun:test";
import { join } from "node:path";
import { openStartServer } from "../../src/http/listen.ts";
import { systemIds } from "../../src/core/ids.ts";
import { START_HELD_MAX, START_HOLD_MS_MAX } from "../../src/core/limits.ts";
import { FakeClock } from "../support/clock.ts";
import { librariesOf } from "../support/libraries.ts";
import { until } from "../support/until.ts";
import { exchange, readAnswer, request } from "./wire.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

function open() {
  const clock = new FakeClock();
  const server = openStartServer(0, "127.0.0.1", { clock, ids: systemIds, version: "1.2.3", commit: null });
  const { listening } = server;
  return {
    ...server,
    clock,
    ask: (path: string, init: RequestInit = {}) => fetch(new URL(path, listening.url), init),
    [Symbol.asyncDispose]: () => listening.stop(true),
  };
}

/** What a service answers whose store can't be opened yet. */
async function ask(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  await using server = open();
  server.letGo();
  const response = await server.ask(path, { headers });
  return new Response(await response.text(), response);
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
  await using server = open();
  const { text, isClosed } = await exchange(server.listening.port ?? 0, [request("CONNECT [::1")]);
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

test("what is asked during a start is answered once the service serves, with its body, and probes at once", async () => {
  await using server = open();
  const held = [
    server.ask("/v1/actions", { method: "POST", body: "{}" }),
    server.ask("/approvals", { headers: BROWSER }),
  ];
  expect((await server.ask("/health")).status).toBe(200);
  expect((await server.ask("/ready")).status).toBe(503);
  server.serve(async (asked) => new Response(`${asked.method} ${await asked.text()}`));
  expect(await Promise.all(held.map(async (answer) => (await answer).text()))).toEqual(["POST {}", "GET "]);
  expect(await (await server.ask("/ready")).text()).toBe("GET ");
});

test("what is asked during a start waits for no more than its time, and only so many at a time", async () => {
  await using server = open();
  const statuses: number[] = [];
  const asked = Array.from({ length: START_HELD_MAX + 1 }, async () => {
    statuses.push((await server.ask("/v1/actions")).status);
  });
  await Promise.race(asked);
  expect(statuses).toEqual([503]);
  server.clock.advance(START_HOLD_MS_MAX);
  await Promise.all(asked);
  expect(new Set(statuses)).toEqual(new Set([503]));
});

test("what is asked during a start that ends without serving is refused, and no connection broken", async () => {
  await using server = open();
  const asked = Array.from({ length: 5 }, () => server.ask("/v1/actions"));
  // Each of them is held.
  await until(() => server.clock.timers === asked.length);
  await server.close();
  for (const answer of await Promise.all(asked)) expect(answer.status).toBe(503);
});

test("the service listens before it loads a library, but the one of addresses: schemas and routes take most of the start", async () => {
  const libraries = await librariesOf(join(import.meta.dir, "../../src/app.ts"), { isLazyToo: false });
  expect(libraries).toEqual(["ipaddr.js"]);
});
