import { describe, expect, spyOn, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { createClient } from "../../src/client/client.ts";
import { readMessages } from "../../src/client/follow.ts";
import type { OutgateEvent } from "../../src/client/types.ts";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";
import { until } from "../support/until.ts";
import { fresh } from "../support/shared.ts";

let app: RealServer;

// One each: a reader of the test before leaves a moment later than the test does.
fresh(async () => (app = await openRealServer({ starts: false })));

const held = async () => (await app.engine.create({ approve: true })).id;

/** Stands before the service, and cuts its connections when it is told to; a client comes back to it sooner. */
async function proxy() {
  const seen: (string | null)[] = [];
  const refusals: string[] = [];
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const service = connect(app.port, "127.0.0.1");
    for (const socket of [client, service]) {
      open.add(socket);
      socket.on("error", () => {}).on("close", () => open.delete(socket));
    }
    client.once("data", (head) => {
      seen.push(/last-event-id: (\S+)/i.exec(head.toString("latin1"))?.[1] ?? null);
      const refusal = refusals.shift();
      if (refusal === undefined) {
        service.write(head);
        client.pipe(service);
        // Of the same length, since it is a part of a chunk.
        service.on("data", (bytes) =>
          client.write(bytes.toString("latin1").replace("retry: 1000\n", "retry: 0010\n"), "latin1"),
        );
        service.on("end", () => client.end());
      } else client.end(refusal);
    });
  });
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    seen,
    refusals,
    cut,
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`,
    [Symbol.dispose]() {
      cut();
      server.close();
    },
  };
}

async function take(events: AsyncGenerator<OutgateEvent>, count: number): Promise<readonly OutgateEvent[]> {
  const taken: OutgateEvent[] = [];
  while (taken.length < count) {
    const { value, done } = await events.next();
    if (done === true) break;
    taken.push(value);
  }
  return taken;
}

describe("streamEvents", () => {
  test("tells of what happens, and goes on behind an event that was seen", async () => {
    const client = createClient({ url: app.url, apiKey: KEYS.owner });
    const release = new AbortController();
    const before = Buffer.from(String(await app.engine.store.actions.position())).toString("base64url");
    const ids = [await held(), await held(), await held()];
    const events = client.streamEvents({ after: before, signal: release.signal });
    const told = await take(events, 3);
    expect(told.map(({ data, type }) => `${data.id} ${data.status} ${type}`)).toEqual(
      ids.map((id) => `${id} awaiting_approval action.awaiting_approval`),
    );
    expect(told[0]?.timestamp).toBe(told[0]?.data.created_at ?? "");
    release.abort();
    expect((await events.next()).done).toBe(true);

    const again = client.streamEvents({ after: told[0]?.id });
    expect((await take(again, 2)).map(({ data }) => data.id)).toEqual(ids.slice(1));
    await again.return(undefined);
  });

  test("comes back after a break, from where it was, and misses and repeats nothing", async () => {
    using between = await proxy();
    const breaks: unknown[] = [];
    const release = new AbortController();
    const client = createClient({ url: between.url, apiKey: KEYS.owner });
    const events = client.streamEvents({ signal: release.signal, onBreak: (error) => breaks.push(error) });
    const first = take(events, 1);
    await until(() => app.engine.clock.timers > 0);
    const ids = [await held()];
    const seen = [...(await first)];
    const next = take(events, 3);
    // As proxies answer for a service that is away.
    for (const status of ["502 Bad Gateway", "404 Not Found"])
      between.refusals.push(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
    between.cut();
    ids.push(await held(), await held(), await held());
    seen.push(...(await next));
    expect(seen.map(({ data }) => data.id)).toEqual(ids);
    expect(between.seen.length).toBeGreaterThanOrEqual(4);
    expect(new Set(between.seen.slice(1))).toEqual(new Set([seen[0]?.id ?? null]));
    expect(breaks).toMatchObject([{ code: "unreachable" }, { status: 502 }, { status: 404 }]);
    release.abort();
    await events.return(undefined);
  });

  test("comes back behind the beginning of the stream after a break before the first event", async () => {
    using between = await proxy();
    const open = Promise.withResolvers<void>();
    const events = createClient({ url: between.url, apiKey: KEYS.owner }).streamEvents({ onOpen: open.resolve });
    const first = events.next();
    await open.promise;
    between.refusals.push("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
    const begin = Buffer.from(String(await app.engine.store.actions.position())).toString("base64url");
    between.cut();
    const id = await held();
    expect((await first).value).toMatchObject({ data: { id } });
    expect(between.seen.slice(0, 2)).toEqual([null, begin]);
    await events.return(undefined);
  });

  test("throws what the service refuses for good, and a service that is not there at all", async () => {
    const wrong = createClient({ url: app.url, apiKey: "og_unknown_0123456789abcdefghij" }).streamEvents();
    expect(await wrong.next().catch((error: unknown) => error)).toMatchObject({ code: "unauthorized" });
    const old = createClient({ url: app.url, apiKey: KEYS.owner }).streamEvents({ after: "garbage" });
    expect(await old.next().catch((error: unknown) => error)).toMatchObject({ code: "invalid_query" });
    const nobody = createClient({ url: "http://127.0.0.1:9", apiKey: null }).streamEvents();
    expect(await nobody.next().catch((error: unknown) => error)).toMatchObject({ code: "unreachable" });
  });

  test("comes back where nothing is heard for half a minute, and says so", async () => {
    // Nothing else of this file waits for as long.
    const lost = spyOn(globalThis, "setTimeout");
    using between = await proxy();
    const [open, broken] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()];
    const client = createClient({ url: between.url, apiKey: KEYS.owner });
    const events = client.streamEvents({ onOpen: open.resolve, onBreak: broken.resolve });
    const first = events.next();
    await open.promise;
    const silences = lost.mock.calls.filter(([, ms]) => ms === 30_000);
    lost.mockRestore();
    const [lose] = silences.at(-1) ?? [];
    if (typeof lose === "function") lose();
    expect(await broken.promise).toMatchObject({ code: "timed_out", message: "The event stream is silent." });
    const id = await held();
    expect((await first).value).toMatchObject({ data: { id } });
    await events.return(undefined);
  });

  test("leaves the service when its reader does", async () => {
    const events = createClient({ url: app.url, apiKey: KEYS.owner }).streamEvents();
    const first = events.next();
    await until(() => app.engine.clock.timers > 0);
    await held();
    await first;
    await events.return(undefined);
    await until(() => app.engine.clock.timers === 0);
  });
});

describe("server-sent events", () => {
  const read = async (...chunks: readonly (string | Uint8Array)[]) => {
    async function* bytes() {
      for (const chunk of chunks) yield typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
    }
    return Array.fromAsync(readMessages(bytes()));
  };
  const message = (data: string | null, id: string | null = null, retryMs: number | null = null) => ({
    id,
    data,
    retryMs,
  });

  test.each<[string, readonly string[], readonly ReturnType<typeof message>[]]>([
    ["of one line", ["data: a\n\n"], [message("a")]],
    ["of several lines", ["data: a\ndata:b\ndata:  c\n\n"], [message("a\nb\n c")]],
    ["with an id", ["id: 7\nevent: x\ndata: a\n\n"], [message("a", "7")]],
    ["without data", [": hello\nretry: 1000\nid: 3\n\n"], [message(null, "3", 1_000)]],
    ["with an empty id", ["id\ndata\n\n"], [message("", "")]],
    ["with what means nothing", ["foo: 1\nretry: 1s\nid: a\0b\n\n"], [message(null)]],
    ["with other line ends", ["data: a\r\n\r\ndata: b\r\rdata: c\n\n"], [message("a"), message("b"), message("c")]],
    ["cut anywhere", ["da", "ta: a\n", "\nid: 4\r", "\n", "data: b\r\n", "\r\n"], [message("a"), message("b", "4")]],
    ["that is not whole", ["data: a\n\ndata: b\n"], [message("a")]],
  ])("%s", async (_what, chunks, messages) => {
    expect(await read(...chunks)).toEqual([...messages]);
  });

  test("in characters of several bytes, cut in the middle of one", async () => {
    const bytes = new TextEncoder().encode("data: é😀\n\n");
    const cuts = Array.from({ length: bytes.length }, (_, at) => bytes.subarray(at, at + 1));
    expect(await read(...cuts)).toEqual([message("é😀")]);
  });

  test("longer than any of ours are refused", async () => {
    const chunks = Array.from({ length: 17 }, () => "x".repeat(1_048_576));
    expect(await read(...chunks).catch(String)).toBe("Error: An event is too long.");
  });
});
