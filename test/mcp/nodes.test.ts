import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { NODE_READ_MS_MIN, NODE_SESSION_MS_MAX } from "../../src/core/limits.ts";
import { KEYS } from "../http/stub-server.ts";
import { STRANGER } from "../http/real-server.ts";
import { FakeClock } from "../support/clock.ts";
import { answered } from "../support/factory.ts";
import { NODES_ENV, SharedStore } from "../support/nodes.ts";
import { temporaryFolder } from "../support/store.ts";
import { actionIn, type Answer, type ClientKind, connect } from "./clients.ts";
import { openServer, type TestServer, type TestServerOptions } from "./test-server.ts";
import { begin, post } from "./wire.ts";

const PING = `{"jsonrpc":"2.0","id":5,"method":"ping"}`;

let stack: AsyncDisposableStack;
let nodes: readonly [TestServer, TestServer];
let clock: FakeClock;
/** A load balancer without affinity: each request goes to the other node. */
let url: string;
/** So many requests it has passed on. */
let routed: number;

async function openNodes(options: TestServerOptions = {}): Promise<void> {
  const { path } = stack.use(await temporaryFolder());
  const shared = new SharedStore(path);
  clock = new FakeClock();
  const given = { clock, env: NODES_ENV, sender: { send: async () => answered(200) }, ...options };
  const a = stack.use(await openServer({ ...given, folder: path, wrapStore: shared.of(0) }));
  const b = stack.use(await openServer({ ...given, wrapStore: shared.of(1) }));
  nodes = [a, b];
  routed = 0;
  const proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 255,
    async fetch(request) {
      const target = routed % 2 === 0 ? a.mcpUrl : b.mcpUrl;
      routed += 1;
      const body = request.method === "POST" ? await request.arrayBuffer() : null;
      return fetch(target, { method: request.method, headers: request.headers, body, signal: request.signal });
    },
  });
  stack.defer(() => proxy.stop(true));
  url = `http://127.0.0.1:${proxy.port}/mcp`;
}

beforeEach(() => {
  stack = new AsyncDisposableStack();
});

afterEach(() => stack.disposeAsync());

/** Lets time pass until the work is done. */
async function passing<T>(work: Promise<T>): Promise<T> {
  const timer = setInterval(() => clock.advance(NODE_READ_MS_MIN), 1);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

const PERSON: Answer = () => ({ action: "accept", content: { decision: "approve" } });

/** The decision on a held action by the tool, and how often the person was asked. */
async function approveBy(kind: ClientKind, key: string, answer: Answer | null) {
  await using agent = await connect(kind, url, { key, answer });
  const { id } = await nodes[0].engine.create({ approve: true });
  const result = await passing(agent.call("approve", { id }));
  return { action: actionIn(result), asked: agent.questions.length };
}

describe("a question to a person with two nodes", () => {
  test.each([KEYS.agent, KEYS.owner])(
    "is asked of a client of 2026 and decides, wherever the answer arrives: %s",
    async (key) => {
      await openNodes();
      const { action, asked } = await approveBy("modern", key, PERSON);
      expect(asked).toBe(1);
      expect(action).toMatchObject({ decision: "approved", decided_via: "elicitation" });
    },
  );

  test.each(["legacy", "first"] as const)(
    "is refused to a client of 2025 (%s), whose key doesn't decide in its place, and says who can",
    async (kind) => {
      await openNodes();
      for (const key of [KEYS.agent, KEYS.owner]) {
        const { action, asked } = await approveBy(kind, key, PERSON);
        expect(asked).toBe(0);
        expect(action).toMatchObject({
          status: "awaiting_approval",
          error: { code: "forbidden", message: expect.stringContaining("/approvals") },
        });
      }
    },
  );

  test("is no matter for a client that can't ask: the role of its key decides, as on one process", async () => {
    await openNodes();
    const { action } = await approveBy("first", KEYS.owner, null);
    expect(action.status).not.toBe("awaiting_approval");
  });
});

describe("the id of a session with two nodes", () => {
  const ping = async (id: string, key: string = KEYS.agent) =>
    Promise.all(
      nodes.map(async ({ mcpUrl }) => (await post(mcpUrl, PING, { key, headers: { "mcp-session-id": id } })).status),
    );

  test("is known to each of them, for its key only", async () => {
    await openNodes();
    const { id, said } = await begin(nodes[0].mcpUrl);
    expect(said.json.result).toMatchObject({ protocolVersion: "2025-11-25" });
    expect(id).toMatch(/^[!-~]{60,200}$/);
    expect(await ping(id)).toEqual([200, 200]);
    for (const key of [STRANGER, KEYS.owner]) expect(await ping(id, key)).toEqual([404, 404]);
    expect((await begin(nodes[0].mcpUrl)).id).not.toBe(id);
  });

  test("isn't valid altered, longer than a day, or as one of a single process", async () => {
    await openNodes();
    const { id } = await begin(nodes[0].mcpUrl);
    const [random, ends, , mac] = id.split(".");
    const altered = [
      "f".repeat(32),
      `${id}x`,
      id.slice(1),
      [random, ends, "a", mac].join("."),
      [random, Number(ends) + 1, "n", mac].join("."),
      ["0".repeat(32), ends, "n", mac].join("."),
      [random, ends, "n", ""].join("."),
    ];
    for (const other of altered) expect(await ping(other)).toEqual([404, 404]);
    clock.advance(NODE_SESSION_MS_MAX - 1);
    expect(await ping(id)).toEqual([200, 200]);
    clock.advance(1);
    expect(await ping(id)).toEqual([404, 404]);
  });

  test("has no stream of its own and can't be ended early", async () => {
    await openNodes();
    const { id } = await begin(nodes[1].mcpUrl);
    const headers = { authorization: `Bearer ${KEYS.agent}`, accept: "text/event-stream", "mcp-session-id": id };
    for (const method of ["GET", "DELETE"]) {
      expect((await fetch(nodes[0].mcpUrl, { method, headers })).status).toBe(405);
    }
    expect(await ping(id)).toEqual([200, 200]);
  });

  test("ends with its key", async () => {
    await openNodes();
    const made = await nodes[0].call("POST", "/v1/keys", '{"name":"lent","role":"agent"}');
    const { id } = await begin(nodes[0].mcpUrl, { key: made.json.key });
    expect(await ping(id, made.json.key)).toEqual([200, 200]);
    await nodes[0].call("DELETE", `/v1/keys/${made.json.id}`);
    clock.advance(5_000);
    expect(await ping(id, made.json.key)).toEqual([401, 401]);
  });

  test("isn't given for an initialize that is refused", async () => {
    await openNodes();
    const said = await post(url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`);
    expect(said.headers.get("mcp-session-id")).toBeNull();
  });

  test("is taken by as many sessions as there are: none of them is kept", async () => {
    await openNodes({ sessionsPerAccount: 1 });
    const ids = await Promise.all(Array.from({ length: 30 }, async () => (await begin(url)).id));
    for (const id of ids) expect(await ping(id)).toEqual([200, 200]);
  });
});
