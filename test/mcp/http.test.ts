import { describe, expect, test } from "bun:test";
import { exchange, readAnswer, request } from "../http/wire.ts";
import { KEYS } from "../http/stub-server.ts";
import { connect } from "./clients.ts";
import { openServer } from "./test-server.ts";
import { begin, callModern, modern, post } from "./wire.ts";
import { shared } from "../support/shared.ts";

const server = await shared(openServer({ starts: false }));

const LIST = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`;

const codeOf = (said: { json: { error?: { code: unknown } } }) => said.json.error?.code;

describe("the key", () => {
  test.each([
    ["none", null],
    ["an unknown one", "og_nobody_0123456789abcdefghij"],
    ["a revoked one", KEYS.revoked],
    ["an empty one", ""],
  ])("that is %s is 401 with our envelope, in words that a client can show", async (_what, key) => {
    for (const answer of [
      await post(server.mcpUrl, LIST, { key }),
      await post(server.mcpUrl, "not even JSON", { key }),
      await modern(server.mcpUrl, "tools/list", "{}", { key }),
    ]) {
      expect(answer.status).toBe(401);
      // Clients that know OAuth alone show its words.
      expect(answer.headers.get("www-authenticate")).toBe(
        'Bearer error="invalid_token", error_description="Use an API key"',
      );
      expect(answer.json.error).toMatchObject({ code: "unauthorized" });
      expect(answer.json.error?.message).toContain("Authorization: Bearer <key>");
      expect(answer.headers.get("x-request-id")).toStartWith("req_");
    }
  });

  test("is not read from a query or a cookie", async () => {
    const headers = { cookie: `__Host-session=${KEYS.owner}` };
    expect((await post(`${server.mcpUrl}?key=${KEYS.owner}`, LIST, { key: null, headers })).status).toBe(401);
  });

  test("is required by every method", async () => {
    for (const method of ["GET", "HEAD", "DELETE", "PUT", "OPTIONS"]) {
      expect((await fetch(server.mcpUrl, { method })).status).toBe(401);
      expect((await fetch(`${server.mcpUrl}/`, { method })).status).toBe(401);
    }
    expect((await fetch(`${server.url}/mcp/more`)).status).toBe(404);
    const put = await server.ask("/mcp", { method: "PUT" });
    expect([put.status, put.headers.get("allow")]).toEqual([405, "DELETE, GET, HEAD, POST"]);
  });
});

/** Of a request that says of itself where it comes from, and has no key. */
async function answerTo(header: string) {
  const lines = header.startsWith("Host") ? [header] : ["Host: localhost", header];
  const text = ["POST /mcp HTTP/1.1", ...lines, "Connection: close", "Content-Length: 0", "", ""].join("\r\n");
  return readAnswer((await exchange(server.port, [text])).text);
}

describe("where a request comes from", () => {
  test.each([
    ["Origin: https://evil.example"],
    ["Origin: null"],
    ["Origin: "],
    ["Origin: https://outgate.example.com.evil.example"],
    ["Origin: https://localhost.evil.example"],
    ["Origin: chrome-extension://abcdefgh"],
    ["Host: evil.example"],
    ["Host: 127.0.0.1.evil.example"],
    ["Host: evil.example@127.0.0.1"],
    ["Host: 192.168.0.7"],
    ["Host: "],
  ])("is foreign: %s, and 403 comes before the key is looked at", async (header) => {
    const answer = await answerTo(header);
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: "forbidden" } });
    expect(answer.headers.has("www-authenticate")).toBe(false);
  });

  test.each([
    ["Host: 127.0.0.1:1"],
    ["Host: localhost"],
    ["Host: [::1]:3000"],
    ["Host: app.localhost"],
    ["Host: outgate.example.com"],
    ["Host: OUTGATE.example.com:8443"],
    ["Host: outgate.example.com.:8443"],
    ["Host: localhost."],
    ["Origin: https://outgate.example.com:8443"],
    ["Origin: http://localhost:6274"],
    ["Origin: http://127.0.0.1"],
  ])("is our own: %s", async (header) => {
    expect((await answerTo(header)).status).toBe(401);
  });

  test("does not matter to /v1, which no browser can call with a key of ours", async () => {
    expect((await server.ask("/v1/account", { headers: { origin: "https://evil.example" } })).status).toBe(200);
  });
});

describe("an HTTP error", () => {
  test.each([
    ["no body", "", {}, "400 missing_body"],
    ["no JSON", "{", {}, "400 invalid_request"],
    ["too deep", `${"[".repeat(65)}${"]".repeat(65)}`, {}, "400 invalid_request"],
    ["100,000 levels", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, {}, "400 invalid_request"],
    ["another type", LIST, { "content-type": "text/plain" }, "400 invalid_content_type"],
    ["too large", `"${"x".repeat(1_048_576)}"`, {}, "413 payload_too_large"],
  ])("has our envelope: %s", async (_what, body, headers, expected) => {
    const answer = await post(server.mcpUrl, body, { headers });
    expect(`${answer.status} ${String(codeOf(answer))}`).toBe(expected);
    expect(answer.headers.get("x-request-id")).toStartWith("req_");
  });

  test("answers a GET or DELETE with a body", async () => {
    for (const method of ["GET", "DELETE"]) {
      const head = [`Authorization: Bearer ${KEYS.agent}`, "Content-Length: 2", "Connection: close"];
      const { text } = await exchange(server.port, [request(`${method} /mcp`, head, "{}")]);
      expect(readAnswer(text).status).toBe(400);
    }
  });

  test("HEAD opens no stream", async () => {
    const answer = await server.ask("/mcp", { method: "HEAD" });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  });
});

test("an MCP error has the code of the protocol", async () => {
  expect(codeOf(await post(server.mcpUrl, `{"jsonrpc":"2.0"}`))).toBe(-32_600);
  expect(codeOf(await post(server.mcpUrl, "[]"))).toBe(-32_600);
  expect(codeOf(await modern(server.mcpUrl, "tools/nothing", "{}"))).toBe(-32_601);
  expect(codeOf(await callModern(server.mcpUrl, "nothing", "{}"))).toBe(-32_602);
  const mismatch = { headers: { "mcp-method": "tools/call" } };
  expect((await modern(server.mcpUrl, "tools/list", "{}", mismatch)).status).toBe(400);
});

describe("the rate", () => {
  const call = (id: number) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "list", arguments: {} } });

  test("counts each call of a batch, and runs no part of a batch over the limit", async () => {
    await using strict = await openServer({ starts: false, rateLimitPerSecond: 50 });
    const batchOf = (size: number) => JSON.stringify(Array.from({ length: size }, (_, id) => call(id)));
    expect((await post(strict.mcpUrl, batchOf(40))).status).toBe(200);
    const over = await post(strict.mcpUrl, batchOf(11));
    expect([over.status, codeOf(over), over.headers.get("retry-after")]).toEqual([429, "rate_limited", "1"]);
    expect(strict.logged.filter(({ event }) => event === "mcp.called")).toHaveLength(40);
    strict.engine.clock.advance(1_000);
    expect((await post(strict.mcpUrl, batchOf(1_000))).status).toBe(429);
    strict.engine.clock.advance(1_000);
    expect((await post(strict.mcpUrl, batchOf(50))).status).toBe(200);
    expect((await post(strict.mcpUrl, LIST)).status).toBe(429);
  });

  test("refuses a batch of a thousand also without a limit", async () => {
    const before = server.logged.length;
    const batch = JSON.stringify(Array.from({ length: 1_000 }, (_, id) => call(id)));
    expect((await post(server.mcpUrl, batch)).status).toBe(400);
    expect(server.logged).toHaveLength(before);
  });
});

test("calls of a batch answer in several turns of the event loop, which serves others in between", async () => {
  const batch = Array.from({ length: 60 }, (_, id) => ({
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: { name: "list" },
  }));
  let [seen, most, isOver] = [server.logged.length, 0, false];
  const look = () => {
    most = Math.max(most, server.logged.length - seen);
    seen = server.logged.length;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  expect((await post(server.mcpUrl, JSON.stringify(batch))).status).toBe(200);
  isOver = true;
  expect(most).toBeWithin(1, 10);
});

test("a call is one line of the log with its tool, code and key, and without its content", async () => {
  await using agent = await connect("modern", server.mcpUrl);
  await agent.call("get", { id: "act_nobody" });
  const line = server.logged.findLast(({ event }) => event === "mcp.called");
  expect(line?.fields).toMatchObject({ tool: "get", code: "not_found", account_id: server.engine.owner.accountId });
  expect(Object.keys(line?.fields ?? {}).toSorted()).toEqual(["account_id", "code", "duration_ms", "key_id", "tool"]);
});

test("a 2025 client without a session is answered", async () => {
  const answer = await post(server.mcpUrl, LIST, { headers: { "mcp-protocol-version": "2025-06-18" } });
  expect(answer.status).toBe(200);
  expect(answer.text).toContain(`"name":"create"`);
  expect((await begin(server.mcpUrl)).id).toMatch(/^[0-9a-f]{32}$/);
});
