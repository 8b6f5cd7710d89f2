import { expect, spyOn, test } from "bun:test";
import { KEEP_ALIVE_MS } from "../../src/core/limits.ts";
import { KEYS } from "../http/stub-server.ts";
import { fresh } from "../support/shared.ts";
import { until } from "../support/until.ts";
import { actionIn, connect, errorIn } from "./clients.ts";
import { type TestServer, openServer } from "./test-server.ts";
import { begin, callModern } from "./wire.ts";

let server: TestServer;

fresh(async () => (server = await openServer({ starts: false })));

const hold = async () => (await server.engine.create({ approve: true })).id;

const HEADERS = {
  authorization: `Bearer ${KEYS.agent}`,
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** A wait as no library would send it; without a session it is answered all the same. */
function wait(id: string, { more = {}, session, signal }: { more?: object; session?: string; signal?: AbortSignal }) {
  const params = { ...more, name: "wait", arguments: { id } };
  return fetch(server.mcpUrl, {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    headers: session === undefined ? HEADERS : { ...HEADERS, "mcp-session-id": session },
    ...(signal === undefined ? {} : { signal }),
  });
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
    const news = { headers: { ...HEADERS, accept: "text/event-stream", "mcp-session-id": session } };
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
  const asked = agent.call("approve", { id: await hold() });
  await until(() => agent.questions.length === 1);
  await revoke();
  expect(errorIn(await asked).code).toBe("unauthorized");
});
