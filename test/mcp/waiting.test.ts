import { describe, expect, test, spyOn } from "bun:test";
import { HELD_BODY_BYTES_MAX, KEEP_ALIVE_MS } from "../../src/core/limits.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { whileStreaming } from "../../src/http/sse.ts";
import { aRequestContext, KEYS, limitsServer } from "../http/stub-server.ts";
import { fresh } from "../support/shared.ts";
import { wrapping } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { actionIn, REVISIONS, connect, errorIn } from "./clients.ts";
import { type TestServer, openServer } from "./test-server.ts";
import { begin, callModern, open, post } from "./wire.ts";

let server: TestServer;

fresh(async () => (server = await openServer({ starts: false })));

/** A server whose store is away as soon as it has stored an action. */
async function openGoingAway() {
  let isAway = false;
  const wrapStore = wrapping("actions", (actions) => ({
    async create(creation) {
      const created = await actions.create(creation);
      isAway = true;
      return created;
    },
    find: (accountId, id) => (isAway ? Promise.reject(new StoreUnavailable("away")) : actions.find(accountId, id)),
  }));
  return openServer({ starts: false, wrapStore });
}

const hold = async () => (await server.engine.create({ approve: true })).id;

test("a create that waits returns its action where the store goes away meanwhile, so that nobody creates it again", async () => {
  await using away = await openGoingAway();
  await using agent = await connect("modern", away.mcpUrl);
  const created = await agent.call("create", { url: "https://api.example.com/orders", sync: true });
  const next = "It has not ended yet, and goes on: call wait. Do not create it again.";
  expect(actionIn(created)).toMatchObject({ status: "pending", attempts: 0, next_step: next });
  await using other = await openGoingAway();
  const answer = await other.call("POST", "/v1/actions", { url: "https://api.example.com/orders", sync: true });
  expect([answer.status, answer.json.status]).toEqual([201, "pending"]);
  expect(answer.headers.get("location")).toBe(`/v1/actions/${answer.json.id}`);
});

test("so does one that has failed, where its timeline can't be read any more", async () => {
  const wrapStore = wrapping("actions", () => ({
    timeline: () => Promise.reject(new StoreUnavailable("away")),
  }));
  await using away = await openServer({ wrapStore });
  await using agent = await connect("modern", away.mcpUrl);
  const created = await agent.call("create", { url: "http://127.0.0.1:9/orders", sync: true, retries: 1 });
  expect(actionIn(created)).toMatchObject({ status: "pending", attempts: 0 });
});

describe.each(REVISIONS)("a wait by a client of the kind %s", (kind) => {
  test("with a progress token is notified every few seconds and at each change, with growing numbers", async () => {
    const id = await hold();
    await using agent = await connect(kind, server.mcpUrl);
    const base = server.engine.clock.timers;
    const heard: { progress: number; total?: number | undefined; message?: string | undefined }[] = [];
    const waiting = agent.call("wait", { id, wait: 120 }, { onprogress: (progress) => void heard.push(progress) });
    await until(() => server.engine.clock.timers >= base + 2 && heard.length === 1);
    server.engine.clock.advance(5_000);
    await until(() => heard.length === 2);
    await server.engine.actionService.approve(server.engine.owner, id, null);
    await until(() => heard.length === 3);
    await server.engine.actionService.cancel(server.engine.owner, id, null);
    expect(actionIn(await waiting)).toMatchObject({ status: "cancelled" });
    expect(heard.slice(0, 3)).toEqual([
      { progress: 0, total: 120, message: "waiting" },
      { progress: 5, total: 120, message: "waiting" },
      { progress: 5.001, total: 120, message: "pending" },
    ] as never);
    expect(server.engine.clock.timers).toBe(base);
  });

  test("without a progress token returns the current action after 50 seconds", async () => {
    const id = await hold();
    await using agent = await connect(kind, server.mcpUrl);
    const base = server.engine.clock.timers;
    let isOver = false;
    const waiting = agent.call("wait", { id, wait: 120 }).finally(() => (isOver = true));
    await until(() => server.engine.clock.timers > base);
    server.engine.clock.advance(49_999);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isOver).toBe(false);
    server.engine.clock.advance(1);
    expect(actionIn(await waiting)).toMatchObject({ status: "awaiting_approval" });
  });

  test("ends when the call is cancelled, and the action goes on", async () => {
    const id = await hold();
    await using agent = await connect(kind, server.mcpUrl);
    const base = server.engine.clock.timers;
    const giveUp = new AbortController();
    const waiting = agent.call("wait", { id }, { signal: giveUp.signal }).catch(() => "given up" as const);
    await until(() => server.engine.clock.timers > base);
    giveUp.abort();
    expect(await waiting).toBe("given up");
    await until(() => server.engine.clock.timers === base);
    expect(await server.engine.get(id)).toMatchObject({
      status: "awaiting_approval",
    });
  });

  test("ends when the service stops, with the current action", async () => {
    const id = await hold();
    const { id: pending } = await server.engine.create({});
    await using agent = await connect(kind, server.mcpUrl);
    await using asker = await connect(kind, server.mcpUrl, { answer: () => new Promise(() => {}) });
    const base = server.engine.clock.timers;
    const waiting = agent.call("wait", { id: pending });
    const asking = kind === "modern" ? null : asker.call("approve", { id });
    await until(() => server.engine.clock.timers > base && (asking === null || asker.questions.length === 1));
    server.stop();
    expect(actionIn(await waiting)).toMatchObject({ status: "pending" });
    if (asking !== null) expect(actionIn(await asking)).toMatchObject({ decision: "unanswered" });
    expect(server.engine.clock.timers).toBe(kind === "modern" ? base : base - 1);
  });
});

test("a create with sync waits as long as its argument says, with progress", async () => {
  await using agent = await connect("modern", server.mcpUrl);
  const base = server.engine.clock.timers;
  const heard: unknown[] = [];
  const args = { url: "https://api.example.com/", sync: true, wait: 7 };
  const creating = agent.call("create", args, { onprogress: (progress) => void heard.push(progress) });
  await until(() => server.engine.clock.timers >= base + 2);
  server.engine.clock.advance(7_000);
  const action = actionIn(await creating);
  expect(action).toMatchObject({ status: "pending" });
  expect(heard.length).toBeGreaterThanOrEqual(2);
  expect(await server.engine.get(action.id)).toMatchObject({ status: "pending" });
});

test("calls that wait with large bodies are so many that the memory lasts, for each key", async () => {
  const id = await hold();
  const call = { name: "wait", arguments: { id, wait: 120 }, _meta: { progressToken: 1, pad: "x".repeat(1_000_000) } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call });
  const left = new AbortController();
  // What nobody refers to any more, the collector would cancel.
  const opened: Response[] = [];
  // Of the stream of a blob, fetch sends the length.
  const inChunks = (text: string) =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from(text));
        controller.close();
      },
    });
  const ask = async (key: string = KEYS.agent, sent: string | ReadableStream = body) => {
    const answer = await open(server.mcpUrl, sent, { key, signal: left.signal });
    opened.push(answer);
    return answer.status;
  };
  const fitting = Math.floor(HELD_BODY_BYTES_MAX / body.length);
  // In chunks, each counts as what it has, and not as the most that it may have, once it was read.
  for (let count = 0; count < fitting; count += 1) {
    expect(await ask(KEYS.agent, count % 2 === 0 ? body : inChunks(body))).toBe(200);
  }
  expect(await ask()).toBe(429);
  expect(await ask(KEYS.agent, inChunks(body))).toBe(429);
  // Small ones go on, however they are sent, and so do those of other keys.
  const small = body.replace("x".repeat(1_000_000), "").replace('"wait"', '"get"').replace(',"wait":120', "");
  for (const text of [small, inChunks(small)]) expect(await ask(KEYS.agent, text)).toBe(200);
  expect(await ask(KEYS.owner)).toBe(200);
  left.abort();
  await until(() => server.engine.clock.timers <= 1);
  const again = body.replace('"wait"', '"get"').replace(',"wait":120', "");
  expect((await post(server.mcpUrl, again)).status).toBe(200);
});

describe("the time limit of a stream", () => {
  const contextOf = (limits: number[]) =>
    aRequestContext({ request: new Request("http://localhost/mcp"), path: "/mcp", server: limitsServer(limits) });
  const stream = (type: string) => {
    const sent = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>();
    const body = new ReadableStream<Uint8Array>({ start: (controller) => sent.resolve(controller) });
    return { response: new Response(body, { headers: { "content-type": type } }), sent: sent.promise };
  };

  test("is lifted until the stream has ended, and its end is reported", async () => {
    for (const end of ["close", "error", "cancel"] as const) {
      const limits: number[] = [];
      const { response, sent } = stream("text/event-stream");
      let isOver = false;
      const answer = await whileStreaming(contextOf(limits), (over) => {
        over.addEventListener("abort", () => (isOver = true));
        return Promise.resolve(response);
      });
      const reader = answer.body?.getReader();
      await reader?.read();
      expect({ limits, isOver }).toEqual({ limits: [0], isOver: false });
      const controller = await sent;
      if (end === "cancel") await reader?.cancel();
      else {
        if (end === "close") controller.close();
        else controller.error(new Error("broken"));
        await reader?.read().catch(() => {});
      }
      expect({ limits, isOver }).toEqual({ limits: [0, 30], isOver: true });
    }
  });

  test("is restored at once where there is no stream, and when the work fails", async () => {
    const limits: number[] = [];
    await whileStreaming(contextOf(limits), () => Promise.resolve(Response.json({})));
    await whileStreaming(contextOf(limits), () => Promise.reject(new Error("x"))).catch(() => {});
    expect(limits).toEqual([0, 30, 0, 30]);
  });
});

/** A wait as no library would send it; without a session it is answered all the same. */
function wait(id: string, { more = {}, session, signal }: { more?: object; session?: string; signal?: AbortSignal }) {
  const params = { ...more, name: "wait", arguments: { id } };
  const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const headers: Record<string, string> = session === undefined ? {} : { "mcp-session-id": session };
  return open(server.mcpUrl, text, { headers, ...(signal === undefined ? {} : { signal }) });
}

async function revoke() {
  const { engine, authenticate } = server;
  const hash = engine.secrets.hash(KEYS.agent);
  const key = await engine.store.accounts.keyByHash(hash);
  await engine.store.accounts.revokeKey(engine.owner.accountId, key?.id ?? "", engine.clock.now());
  authenticate.forget(hash);
}

test("a client that leaves ends its wait, with and without a session", async () => {
  const id = await hold();
  const session = (await begin(server.mcpUrl)).id;
  for (const more of [{}, { _meta: { progressToken: 7 } }]) {
    for (const of of [{}, { session }]) {
      const base = server.engine.clock.timers;
      const gone = new AbortController();
      const asked = wait(id, { more, ...of, signal: gone.signal }).then((response) => response.text());
      await until(() => server.engine.clock.timers > base);
      gone.abort();
      await asked.catch(() => {});
      await until(() => server.engine.clock.timers === base);
    }
  }
});

/** What a stream sends, with this at its end; nobody listens any more then. */
async function textUntil(end: string, { body }: Response): Promise<string> {
  let text = "";
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    if (text.includes(end)) break;
  }
  return text;
}

test("an idle stream sends a keep-alive every few seconds", async () => {
  const beats: (() => void)[] = [];
  const realInterval = globalThis.setInterval;
  const spy = spyOn(globalThis, "setInterval");
  // Safe: the arguments are handed on as they came.
  spy.mockImplementation(((...args: Parameters<typeof realInterval>) => {
    if (args[1] === KEEP_ALIVE_MS) beats.push(args[0] as () => void);
    return realInterval(...args);
  }) as typeof realInterval);
  try {
    await server[Symbol.asyncDispose]();
    server = await openServer({ starts: false });
    const id = await hold();
    const session = (await begin(server.mcpUrl)).id;
    const news = {
      headers: { authorization: `Bearer ${KEYS.agent}`, accept: "text/event-stream", "mcp-session-id": session },
    };
    for (const ask of [() => fetch(server.mcpUrl, news), () => wait(id, { session }), () => wait(id, {})]) {
      beats.length = 0;
      const answer = await ask();
      await until(() => beats.length === 1);
      beats[0]?.();
      expect(await textUntil("keepalive", answer)).toEndWith(": keepalive\n\n");
    }
  } finally {
    spy.mockRestore();
  }
});

test("at most twenty questions of one key are open, and an answered one frees its place", async () => {
  const answers: ((answer: object) => void)[] = [];
  await using agent = await connect("legacy", server.mcpUrl, {
    answer: () => new Promise<object>((resolve) => answers.push(resolve)),
  });
  const ids = await Promise.all(Array.from({ length: 21 }, hold));
  const asked = ids.slice(0, 20).map((id) => agent.call("approve", { id }));
  await until(() => answers.length === 20);
  expect(errorIn(await agent.call("approve", { id: ids[20] }))).toMatchObject({ code: "rate_limited" });
  await using owner = await connect("legacy", server.mcpUrl, {
    key: KEYS.owner,
    answer: () => ({ action: "decline" }),
  });
  expect(actionIn(await owner.call("approve", { id: ids[20] })).status).toBe("awaiting_approval");
  answers[0]?.({ action: "decline" });
  await Promise.race(asked);
  asked.push(agent.call("approve", { id: ids[20] }));
  await until(() => answers.length === 21);
  server.stop();
  for (const result of await Promise.all(asked)) expect(actionIn(result).status).toBe("awaiting_approval");
});

test("a waiting call ends at once when its key is revoked", async () => {
  const id = await hold();
  const base = server.engine.clock.timers;
  const waiting = callModern(server.mcpUrl, "wait", `{"id":"${id}"}`);
  await until(() => server.engine.clock.timers > base);
  await revoke();
  expect((await waiting).text).toContain("unauthorized");
});

test("a question ends at once when its key is revoked", async () => {
  await using agent = await connect("legacy", server.mcpUrl, { answer: () => new Promise(() => {}) });
  const id = await hold();
  const asked = agent.call("approve", { id });
  await until(() => agent.questions.length === 1);
  await revoke();
  expect(errorIn(await asked).code).toBe("unauthorized");
  expect((await server.engine.get(id)).status).toBe("awaiting_approval");
});
