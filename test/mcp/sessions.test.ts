import { describe, expect, test } from "bun:test";
import { KEYS } from "../http/stub-server.ts";
import { STRANGER } from "../http/real-server.ts";
import { fresh } from "../support/shared.ts";
import { until } from "../support/until.ts";
import { type TestServer, openServer } from "./test-server.ts";
import { begin, post, type RawOptions } from "./wire.ts";

let server: TestServer;

fresh(async () => (server = await openServer({ starts: false })));

const PING = `{"jsonrpc":"2.0","id":5,"method":"ping"}`;

const ping = async (id: string, options: RawOptions = {}) =>
  (await post(server.mcpUrl, PING, { ...options, headers: { "mcp-session-id": id } })).status;

const openStream = (id: string, key: string = KEYS.agent) =>
  fetch(server.mcpUrl, {
    headers: { authorization: `Bearer ${key}`, accept: "text/event-stream", "mcp-session-id": id },
  });

describe("a session of a client of 2025", () => {
  test("belongs to the key that began it, and doesn't exist for others", async () => {
    const { id } = await begin(server.mcpUrl);
    expect(await ping(id)).toBe(200);
    for (const key of [STRANGER, KEYS.owner]) {
      const answer = await post(server.mcpUrl, PING, { key, headers: { "mcp-session-id": id } });
      const unknown = await post(server.mcpUrl, PING, { key, headers: { "mcp-session-id": "f".repeat(32) } });
      // What the official server says: clients know it and begin another session.
      expect({ status: answer.status, json: Object(answer.json) }).toEqual({
        status: 404,
        json: {
          jsonrpc: "2.0",
          id: null,
          error: { code: -32_001, message: "Session not found. Begin a new one with initialize." },
        },
      });
      expect(answer.text).toBe(unknown.text);
      const stream = await openStream(id, key);
      expect([stream.status, await stream.text()]).toEqual([404, answer.text]);
    }
    expect(await ping(id)).toBe(200);
  });

  test("ends with DELETE", async () => {
    const { id } = await begin(server.mcpUrl);
    const headers = { authorization: `Bearer ${KEYS.agent}`, "mcp-session-id": id };
    expect((await fetch(server.mcpUrl, { method: "DELETE", headers })).status).toBe(200);
    expect(await ping(id)).toBe(404);
  });

  test("ends at once with its key, its open stream too, and frees its place", async () => {
    const lent = (await server.call("POST", "/v1/keys", '{"name":"lent","role":"agent"}')).json;
    const timers = server.engine.clock.timers;
    const mine: string[] = [];
    const streams: Response[] = [];
    for (let count = 0; count < 20; count += 1) {
      const { id } = await begin(server.mcpUrl, { key: lent.key });
      mine.push(id);
      streams.push(await openStream(id, lent.key));
    }
    expect((await begin(server.mcpUrl, { key: lent.key })).said.status).toBe(429);
    await server.call("DELETE", `/v1/keys/${lent.id}`);
    for (const stream of streams) expect(await stream.text()).toStartWith(":");
    const { id } = await begin(server.mcpUrl);
    expect(await ping(id)).toBe(200);
    expect(await ping(mine[0] ?? "")).toBe(404);
    server.engine.clock.advance(22 * 60_000);
    expect(server.engine.clock.timers).toBe(timers);
  });

  test("is closed after ten idle minutes", async () => {
    const [used, unused] = [await begin(server.mcpUrl), await begin(server.mcpUrl)];
    server.engine.clock.advance(5 * 60_000);
    expect(await ping(used.id)).toBe(200);
    server.engine.clock.advance(5 * 60_000);
    expect(await ping(unused.id)).toBe(404);
    expect(await ping(used.id)).toBe(200);
    server.engine.clock.advance(11 * 60_000);
    expect(await ping(used.id)).toBe(404);
  });

  test("with an open stream is not idle", async () => {
    const { id } = await begin(server.mcpUrl);
    const stream = await openStream(id);
    expect(stream.status).toBe(200);
    server.engine.clock.advance(60 * 60_000);
    expect(await ping(id)).toBe(200);
    await stream.body?.cancel();
    await until(async () => {
      server.engine.clock.advance(11 * 60_000);
      return (await ping(id)) === 404;
    });
  });

  test("is one of twenty per account: the longest idle is closed for a new one, one in use never", async () => {
    const streams: Response[] = [];
    const ids: string[] = [];
    for (let count = 0; count < 20; count += 1) {
      const { id } = await begin(server.mcpUrl);
      ids.push(id);
      // The longest idle ones were used most.
      for (let used = count; used < 3; used += 1) await ping(id);
      server.engine.clock.advance(1_000);
    }
    const [first = "", second = "", third = ""] = ids;
    streams.push(await openStream(first));
    const other = await begin(server.mcpUrl, { key: STRANGER });
    ids.push((await begin(server.mcpUrl)).id);
    expect([await ping(first), await ping(second), await ping(third)]).toEqual([200, 404, 200]);
    expect(await ping(other.id, { key: STRANGER })).toBe(200);

    for (const id of ids) if (id !== first && id !== second) streams.push(await openStream(id));
    const { said } = await begin(server.mcpUrl);
    expect([said.status, said.json.error?.code]).toEqual([429, "rate_limited"]);
    expect(said.json.error?.message).toContain("20 MCP sessions");
    expect(said.json.error?.message).toContain("MCP_SESSIONS_PER_ACCOUNT");
    for (const stream of streams) await stream.body?.cancel();
  });

  test("of a key with all places is closed for another key's: idle ones first, then those with only a stream", async () => {
    await server[Symbol.asyncDispose]();
    server = await openServer({ starts: false, sessionsPerAccount: 4 });
    const [first, second, third, fourth] = [
      (await begin(server.mcpUrl)).id,
      (await begin(server.mcpUrl)).id,
      (await begin(server.mcpUrl)).id,
      (await begin(server.mcpUrl)).id,
    ];
    const streams = [await openStream(first), await openStream(second), await openStream(fourth)];
    const { id: owners } = await begin(server.mcpUrl, { key: KEYS.owner });
    expect(await Promise.all([first, second, third, fourth].map((id) => ping(id)))).toEqual([200, 200, 404, 200]);
    // It was used last, and the first one longest ago.
    server.engine.clock.advance(1_000);
    for (const id of [second, fourth]) await ping(id);
    const { id: alsoOwners } = await begin(server.mcpUrl, { key: KEYS.owner });
    expect(await streams[0]?.text()).toStartWith(":");
    expect(await Promise.all([first, second, fourth].map((id) => ping(id)))).toEqual([404, 200, 200]);
    // Each has its share now: nobody takes over what another one uses, nor what it does not use.
    const { said } = await begin(server.mcpUrl);
    expect(said.status).toBe(429);
    const { id: instead } = await begin(server.mcpUrl, { key: KEYS.owner });
    const owned = await Promise.all([owners, alsoOwners, instead].map((id) => ping(id, { key: KEYS.owner })));
    expect(owned).toEqual([404, 200, 200]);
    for (const stream of streams.slice(1)) await stream.body?.cancel();
  });

  test("is not begun by a malformed initialize", async () => {
    for (const body of [
      `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
      `{"jsonrpc":"2.0","method":"initialize"}`,
    ]) {
      expect((await post(server.mcpUrl, body)).headers.get("mcp-session-id")).toBeNull();
    }
    const { said } = await begin(server.mcpUrl, { headers: { accept: "application/json" } });
    expect(said.status).toBe(406);
    // What was never begun is in nobody's way.
    for (let count = 0; count < 30; count += 1) await begin(server.mcpUrl, { headers: { accept: "text/html" } });
    const { id } = await begin(server.mcpUrl);
    expect(await ping(id)).toBe(200);
  });

  test("has its streams closed when the service stops, and leaves no timer behind", async () => {
    const before = server.engine.clock.timers;
    const { id } = await begin(server.mcpUrl);
    const stream = await openStream(id);
    expect(server.engine.clock.timers).toBe(before + 1);
    server.stop();
    expect(await stream.text()).toBe(":\n\n");
    expect(server.engine.clock.timers).toBe(before);
  });
});
