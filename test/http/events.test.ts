import { Database } from "bun:sqlite";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { ActionJson } from "../../src/api/action-schemas.ts";
import { compile } from "../../src/api/check.ts";
import { EVENT_HEARTBEAT_MS, EVENT_STREAMS_PER_ACCOUNT_MAX } from "../../src/core/limits.ts";
import { Listener } from "../support/listener.ts";
import { broken } from "../support/promised.ts";
import { Target } from "../support/target.ts";
import { openRealServer, type RealServer, STRANGER } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { exchange, readAnswer, request } from "./wire.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer());

const action = compile(ActionJson);

const listen = (headers: Readonly<Record<string, string>> = {}, key: string = KEYS.owner, server: RealServer = app) =>
  Listener.open(`${server.url}/v1/events`, { authorization: `Bearer ${key}`, ...headers });

const create = async (members: object) => (await app.call("POST", "/v1/actions", members)).json;

/** Waits for nobody: it is there, and that is news. */
const held = () => create({ url: "http://127.0.0.1:9/", approve: true });

const bodyOf = ({ data }: { readonly data: string }) =>
  JSON.parse(data) as { type: string; timestamp: string; data: Record<string, unknown> };

describe("GET /v1/events", () => {
  test("tells of every change of status with the whole action, as it was then", async () => {
    await using target = new Target(503, 200);
    await using stream = await listen();
    const { id } = await create({ url: target.url, body: { n: 1 }, approve: true });
    await app.call("POST", `/v1/actions/${id}/approve`);
    await stream.heard((heard) => heard.events.at(-1)?.event === "action.pending" && heard.events.length > 3);
    app.engine.clock.advance(2_000);
    await stream.heard((heard) => heard.events.at(-1)?.event === "action.completed");

    const statuses = ["awaiting_approval", "pending", "active", "pending", "active", "completed"];
    expect(stream.events.map(({ event }) => event)).toEqual(statuses.map((status) => `action.${status}`));
    const bodies = stream.events.map(bodyOf);
    expect(bodies.map(({ type }) => type)).toEqual(stream.events.map(({ event }) => event));
    expect(bodies.map(({ data }) => data["status"])).toEqual(statuses);
    expect(bodies.map(({ data }) => data["attempts"])).toEqual([0, 0, 1, 1, 2, 2]);
    expect(bodies.flatMap(({ data }) => action.issues(data))).toEqual([]);
    const told = (await app.call("GET", `/v1/actions/${id}/timeline`)).json.data as unknown as { at: string }[];
    expect(told.map(({ at }) => at)).toEqual(expect.arrayContaining(bodies.map(({ timestamp }) => timestamp)));
    expect(new Set(stream.events.map((event) => event.id)).size).toBe(6);
    const read = await app.call("GET", `/v1/actions/${id}`);
    expect(stream.events.at(-1)?.data).toEndWith(`"data":${read.text}}`);
  });

  test("is an answer of the API description, that no proxy keeps back", async () => {
    await using stream = await listen();
    await stream.heard((heard) => heard.others.length > 0);
    const { status, headers } = stream.response;
    expect(headers.get("content-type")).toBe("text/event-stream");
    expect(headers.get("x-accel-buffering")).toBe("no");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(broken({ method: "GET", path: "/v1/events", status, headers, text: "" })).toEqual([]);
    // A client that has heard nothing yet knows where to go on, and browsers come back soon.
    expect(stream.others[0]).toMatch(/^: .*\nretry: 1000\nid: [\w-]+$/);
  });

  test("with an empty Last-Event-ID begins now", async () => {
    await held();
    await using stream = await listen({ "last-event-id": "" });
    const { id } = await held();
    expect((await stream.heard(1)).map((event) => bodyOf(event).data["id"])).toEqual([id]);
  });

  test("refuses a Last-Event-ID that it never gave", async () => {
    const { status, json } = await app.call("GET", "/v1/events", undefined, { "last-event-id": "garbage" });
    expect({ status, code: json.error.code }).toEqual({ status: 400, code: "invalid_query" });
    expect(json.error.details?.map(({ field }) => field)).toEqual(["Last-Event-ID"]);
  });

  test("refuses a Last-Event-ID behind which something may have been deleted", async () => {
    await using other = await openRealServer({ starts: false });
    for (let count = 0; count < 3; count += 1) await other.engine.create({ approve: true });
    const database = new Database(join(other.engine.folder, "outgate.db"));
    const [row] = database.query("SELECT seq, action_id FROM timeline ORDER BY seq LIMIT 1").values();
    database.query("DELETE FROM timeline WHERE action_id = ?").run(String(row?.[1]));
    database.close();
    const id = Buffer.from(String(row?.[0])).toString("base64url");
    const { status, json } = await other.call("GET", "/v1/events", undefined, { "last-event-id": id });
    expect({ status, code: json.error.code }).toEqual({ status: 400, code: "invalid_query" });
    expect(json.error.details?.[0]?.message).toStartWith("Is too old");
  });

  test("tells nobody of another account's actions", async () => {
    await using stream = await listen({}, STRANGER);
    await held();
    const own = (await app.call("POST", "/v1/actions", { url: "http://127.0.0.1:9/", approve: true }, STRANGER)).json;
    const events = await stream.heard(1);
    expect(events.map((event) => bodyOf(event).data["id"])).toEqual([own.id]);
  });

  test("keeps an answer with line ends in one line, as the same JSON", async () => {
    const pretty = '{\r\n  "text": "a\\nb",\n  "big": 12345678901234567890,\r  "end": []\n}';
    await using target = new Target(() => new Response(pretty));
    await using stream = await listen();
    await create({ url: target.url });
    await stream.heard((heard) => heard.events.at(-1)?.event === "action.completed");
    const last = stream.events.at(-1);
    expect(last?.data).not.toMatch(/[\r\n]/);
    expect(last?.data).toContain("12345678901234567890");
    expect(bodyOf(last ?? { data: "" }).data["response_body"]).toEqual(JSON.parse(pretty));
  });

  test("shows that it lives, and lets the reader's place move on with what others write", async () => {
    await using stream = await listen();
    await stream.heard((heard) => heard.others.length === 1);
    const beat = async (count: number) => {
      app.engine.clock.advance(EVENT_HEARTBEAT_MS);
      await stream.heard((heard) => heard.others.length >= count);
    };
    await beat(2);
    expect(stream.others[1]).toBe(":");
    await app.call("POST", "/v1/actions", { url: "http://127.0.0.1:9/", approve: true }, STRANGER);
    const before = stream.lastEventId;
    // One looks, and one that comes when it has looked tells.
    for (let count = 3; stream.lastEventId === before; count += 1) await beat(count);
    const place = stream.lastEventId;
    expect(stream.events).toEqual([]);
    const { id } = await held();
    await using resumed = await listen({ "last-event-id": place });
    expect((await resumed.heard(1)).map((event) => bodyOf(event).data["id"])).toEqual([id]);
  });

  test("to HEAD is its head alone, and nothing stays open", async () => {
    for (let count = 0; count <= EVENT_STREAMS_PER_ACCOUNT_MAX; count += 1) {
      const response = await app.ask("/v1/events", { method: "HEAD" });
      expect({ status: response.status, text: await response.text() }).toEqual({ status: 200, text: "" });
      expect(response.headers.get("content-type")).toBe("text/event-stream");
    }
    await using stream = await listen();
    expect(stream.response.status).toBe(200);
  });

  test("is refused to the 101st listener, until another leaves", async () => {
    // Of its own, since a listener of the test before leaves a moment later.
    await using server = await openRealServer({ starts: false });
    const enter = () => listen({}, KEYS.owner, server);
    const streams: Listener[] = [];
    for (let count = 0; count < EVENT_STREAMS_PER_ACCOUNT_MAX; count += 1) streams.push(await enter());
    expect(streams.map(({ response }) => response.status)).toEqual(streams.map(() => 200));
    const { status, json } = await server.call("GET", "/v1/events");
    expect({ status, code: json.error.code }).toEqual({ status: 429, code: "rate_limited" });
    await streams.pop()?.[Symbol.asyncDispose]();
    let again = await enter();
    // The server hears of it a moment later.
    while (again.response.status === 429) again = await enter();
    for (const stream of [...streams, again]) await stream[Symbol.asyncDispose]();
  });

  test("does not wait for a body that nobody needs", async () => {
    const head = ["Authorization: Bearer " + KEYS.owner, "Content-Length: 7"];
    const { text } = await exchange(app.port, [request("GET /v1/events", head, '{"a":1}')], {
      until: (soFar) => soFar.includes("retry:"),
    });
    expect(readAnswer(text).status).toBe(200);
  });
});

test("streams end when the service stops, and hold up no stop", async () => {
  await using other = await openRealServer();
  const key = { authorization: `Bearer ${KEYS.owner}` };
  const streams = await Promise.all([1, 2, 3].map(() => Listener.open(`${other.url}/v1/events`, key)));
  for (const stream of streams) await stream.heard((heard) => heard.others.length > 0);
  other.drain.abort();
  const stopped = other.http.stop(60_000);
  expect(await Promise.all(streams.map((stream) => stream.over()))).toEqual(["closed", "closed", "closed"]);
  await stopped;
});
