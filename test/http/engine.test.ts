import { beforeEach, describe, expect, test } from "bun:test";
import { KEYS, openStubServer } from "./stub-server.ts";
import { exchange, readAnswer, request } from "./wire.ts";
import { REQUESTS_PER_TURN_MAX } from "../../src/core/limits.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openStubServer());

beforeEach(() => {
  app.calls.length = 0;
  app.lines.length = 0;
});

const KEY = `Authorization: Bearer ${KEYS.owner}`;

const TYPE = "Content-Type: application/json";

const BODY = `{"url":"https://api.example.com/"}`;

const SIZE = `Content-Length: ${BODY.length}`;

const NEXT = request("GET /v1/actions", [KEY]);

const create = (headers: readonly string[], body = BODY) => request("POST /v1/actions", [KEY, TYPE, ...headers], body);

const many = (count: number) => Array.from({ length: count }, (_, at) => `X-${at}: v`);

/** What the engine refuses before anybody of ours is asked, by status. */
const REFUSED: readonly (readonly [name: string, status: number, bytes: string])[] = [
  ["B122 a length and chunks", 400, create([SIZE, "Transfer-Encoding: chunked"])],
  ["B122 chunks and a length", 400, create(["Transfer-Encoding: chunked", SIZE])],
  ["B122 two lengths", 400, create([SIZE, "Content-Length: 6"])],
  ["B122 two lengths in one", 400, create([`${SIZE}, 6`])],
  ["B122 +5", 400, create(["Content-Length: +5"])],
  ["B122 -1", 400, create(["Content-Length: -1"])],
  ["a length of 20 digits", 400, create(["Content-Length: 99999999999999999999"])],
  ["a length in hex", 400, create(["Content-Length: 0x5"])],
  ["an empty length", 400, create(["Content-Length:"])],
  ["a coding that is not chunked", 400, create(["Transfer-Encoding: gzip"])],
  ["chunked and something else", 400, create(["Transfer-Encoding: gzip, chunked"])],
  ["a space before the colon", 400, create(["Transfer-Encoding : chunked"])],
  ["a folded header", 400, create(["X-A: a\r\n b"])],
  ["NUL in a header", 400, create(["X-A: a\0b"])],
  ["no host", 400, `GET /v1/actions HTTP/1.1\r\n${KEY}\r\n\r\n`],
  ["TLS", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 \r\n\r\n"],
  ["HTTP/2", 400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["B123 a header of 17 KB", 431, create([SIZE, `X-A: ${"x".repeat(17 * 1_024)}`])],
  ["B123 250 headers", 431, create([SIZE, ...many(250)])],
  ["another version", 505, `GET /v1/actions HTTP/9.9\r\nHost: a\r\n${KEY}\r\n\r\n`],
];

describe("a header that is given twice", () => {
  test.each([
    ["Content-Type", 400, [TYPE]],
    ["Idempotency-Key", 400, ["Idempotency-Key: a", "Idempotency-Key: b"]],
  ])("is refused: %s", async (_name, status, headers) => {
    const { text } = await exchange(app.port, [create([SIZE, "Connection: close", ...headers])]);
    expect(readAnswer(text).status).toBe(status);
    expect(app.calls).toEqual([]);
  });

  test("names no request: of two request ids neither is taken", async () => {
    const ids = ["X-Request-Id: one", "X-Request-Id: two"];
    const { text } = await exchange(app.port, [create([SIZE, "Connection: close", ...ids])]);
    const answer = readAnswer(text);
    expect([answer.status, answer.headers.get("x-request-id")]).toEqual([201, expect.stringMatching(/^req_/)]);
  });
});

describe("what the HTTP engine refuses itself", () => {
  test.each(REFUSED)(
    "has no envelope, reaches no handler and ends the connection: %s",
    async (_name, status, bytes) => {
      const { text, isClosed } = await exchange(app.port, [bytes + NEXT], {
        until: (soFar) => soFar.includes("\r\n\r\n"),
      });
      const answer = readAnswer(text);
      expect({ status: answer.status, body: answer.body }).toEqual({ status, body: "" });
      expect(isClosed || answer.headers.get("connection") === "close").toBe(true);
      expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect([app.calls, app.lines]).toEqual([[], []]);
    },
  );

  test.each([
    ["no number", "zz"],
    ["a negative one", "-1"],
    ["one beyond every number", "ffffffffffffffffff"],
  ])("a chunk whose size is %s: nothing is done, nor what follows", async (_name, size) => {
    const bytes = create(["Transfer-Encoding: chunked"], `${size}\r\n${BODY}\r\n0\r\n\r\n`);
    const { text } = await exchange(app.port, [bytes + NEXT]);
    expect(readAnswer(text)).toMatchObject({ status: 400, body: "" });
    expect(app.calls).toEqual([]);
  });

  test("leaves the neighbours of the bound alone: 16 KB and 150 headers are read", async () => {
    for (const headers of [[`X-A: ${"x".repeat(15 * 1_024)}`], many(150)]) {
      const { text } = await exchange(app.port, [create([SIZE, "Connection: close", ...headers])]);
      expect(readAnswer(text).status).toBe(201);
    }
  });
});

describe("the requests of one turn", () => {
  test("are few: a connection that sends more without waiting for answers is closed", async () => {
    const { text } = await exchange(app.port, [NEXT.repeat(1_000)]);
    expect(text.match(/HTTP\/1\.1 200/g)?.length ?? 0).toBeLessThanOrEqual(REQUESTS_PER_TURN_MAX);
    expect(app.calls.length).toBeLessThanOrEqual(REQUESTS_PER_TURN_MAX + 1);
  });

  test("on connections of their own are all answered, each its own", async () => {
    const names = Array.from({ length: 4 * REQUESTS_PER_TURN_MAX }, (_, at) => `request-${at}`);
    const url = `http://127.0.0.1:${app.port}/v1/actions`;
    const ask = async (name: string) => {
      const headers = { authorization: `Bearer ${KEYS.owner}`, "x-request-id": name, connection: "close" };
      const { status, headers: told } = await fetch(url, { headers });
      return [status, told.get("x-request-id")];
    };
    expect(await Promise.all(names.map(ask))).toEqual(names.map((name) => [200, name]));
  });
});

test("two Authorization headers are none, in whichever order and even when they are equal", async () => {
  const other = `Authorization: Bearer ${KEYS.reader}`;
  for (const headers of [
    [KEY, KEY],
    [KEY, other],
    [KEY, "Authorization:"],
    ["Authorization: Basic eDp5", KEY],
  ]) {
    const { text } = await exchange(app.port, [request("GET /v1/actions", [...headers, "Connection: close"])]);
    expect(readAnswer(text).status).toBe(401);
  }
  expect(app.calls).toEqual([]);
});

describe("a request line without a path of ours", () => {
  const TARGETS = [
    "CONNECT example.com:443",
    "CONNECT \\v1\\account",
    "CONNECT /v1/account",
    "CONNECT http://127.0.0.1/v1/account",
    "CONNECT v1/account",
    "CONNECT [::1",
    "CONNECT a:99999",
  ];
  const HEADERS = [[], [KEY], ["Accept: text/html"], ["Content-Length: 5"]];

  test.each(TARGETS)("%s is 400 with the envelope before anything is routed, and one line of the log", async (line) => {
    for (const headers of HEADERS) {
      app.lines.length = 0;
      const { text, isClosed } = await exchange(app.port, [request(line, headers, "hello") + NEXT]);
      const { status, headers: told, body } = readAnswer(text);
      const { error }: { error: { code: string; request_id: string } } = JSON.parse(body);
      expect({ status, code: error.code, isClosed }).toEqual({ status: 400, code: "invalid_request", isClosed: true });
      expect(error.request_id).toBe(told.get("x-request-id") ?? "");
      expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect(app.lines).toMatchObject([{ event: "http.requested", fields: { status: 400, method: "CONNECT" } }]);
      expect(app.calls).toEqual([]);
    }
  });

  test("has one Host header: two are 400, with a key or without one", async () => {
    for (const headers of [["Host: other.example"], ["Host: other.example", KEY]]) {
      const { text } = await exchange(app.port, [request("GET /v1/account", [...headers, "Connection: close"])]);
      const { status, body } = readAnswer(text);
      expect([status, body]).toEqual([400, expect.stringContaining("more than one Host header")]);
    }
    expect(app.calls).toEqual([]);
  });

  test("is no way round the key where the Host can't be used either", async () => {
    await using anyHost = openStubServer({ pagesGuard: () => {} });
    for (const path of [
      "/x/../v1/account",
      "/x\\..\\v1\\account",
      "/%2e%2e/v1/account",
      "/./v1/account",
      "/.\\v1/account",
    ]) {
      for (const host of ["a b", "[::1", "127.0.0.1"]) {
        const head = [`GET ${path} HTTP/1.1`, `Host: ${host}`, "Connection: close", "", ""].join("\r\n");
        const answer = readAnswer((await exchange(anyHost.port, [head])).text);
        // The key comes before the route; a path that nobody resolves is unknown.
        const route = anyHost.lines.at(-1)?.fields["route"];
        expect([route, [401, 404].includes(answer.status)], `${path} ${host}`).toEqual([null, true]);
      }
    }
  });
});
