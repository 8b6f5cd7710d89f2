import { beforeEach, describe, expect, test } from "bun:test";
import { dropBody } from "../../src/http/body.ts";
import { FakeClock } from "../support/clock.ts";
import { until } from "../support/until.ts";
import { KEYS, KNOWN_ID, openStubServer } from "./stub-server.ts";
import { exchange, readAnswer, request } from "./wire.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openStubServer());

beforeEach(() => void app.calls.splice(0));

const KEY = `Authorization: Bearer ${KEYS.owner}`;

const TYPE = "Content-Type: application/json";

const NEXT = request("GET /v1/actions", [KEY]);

const MEBIBYTE = 1_048_576;

/** Bodies that nobody will read, and why. */
const REFUSED: readonly (readonly [string, number, string, readonly string[]])[] = [
  ["no key", 401, "POST /v1/actions", [TYPE]],
  ["unknown path", 404, "POST /v1/nothing", [KEY, TYPE]],
  ["wrong method", 405, "PUT /v1/actions", [KEY, TYPE]],
  ["wrong role", 403, "POST /v1/actions", [`Authorization: Bearer ${KEYS.reader}`, TYPE]],
  ["unknown parameter", 400, "POST /v1/actions?x=1", [KEY, TYPE]],
  ["wrong type", 400, "POST /v1/actions", [KEY, "Content-Type: text/plain"]],
  ["a body with GET, though answered", 200, `GET /v1/actions/${KNOWN_ID}`, [KEY]],
];

describe("what follows on a connection whose body was not read", () => {
  test.each(REFUSED)("is not executed, and the connection closes: %s", async (_name, status, line, headers) => {
    for (const whole of [
      request(line, [...headers, "Content-Length: 5"], "hello"),
      request(line, [...headers, "Transfer-Encoding: chunked"], "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
    ]) {
      const { text, isClosed } = await exchange(app.port, [whole + NEXT]);
      const answer = readAnswer(text);
      expect([answer.status, answer.headers.get("connection"), isClosed]).toEqual([status, "close", true]);
      expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect(app.calls).not.toContain("list");
    }
  });

  test.each(REFUSED)("is not executed when it comes later: %s", async (_name, status, line, headers) => {
    const half = request(line, [...headers, "Content-Length: 10"], "hello");
    const seen = Promise.withResolvers<void>();
    const parts = [half, () => seen.promise, `world${NEXT}`];
    const { text } = await exchange(app.port, parts, {
      until: (soFar) => {
        // The answer is there before the rest of the body was sent.
        if (soFar.includes("\r\n\r\n")) seen.resolve();
        return false;
      },
    });
    expect(readAnswer(text).status).toBe(status);
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(app.calls).not.toContain("list");
  });

  test("is executed when the body was read, also a refused one", async () => {
    const broken = request("POST /v1/actions", [KEY, TYPE, "Content-Length: 2"], `{"`);
    const { text } = await exchange(app.port, [broken + NEXT], { until: (soFar) => soFar.includes("next_cursor") });
    expect(readAnswer(text).status).toBe(400);
    expect(app.calls).toEqual(["list"]);
  });
});

describe("a body without end", () => {
  test("B25 a length of 10 GB and no body is 413 at once, and the connection closes after 2 seconds", async () => {
    const head = request("POST /v1/actions", [KEY, TYPE, "Content-Length: 10000000000"]);
    const clock = new FakeClock();
    await using slow = openStubServer({ clock });
    const answered = Promise.withResolvers<void>();
    const later = async () => {
      await answered.promise;
      await until(() => clock.timers === 1);
      clock.advance(2_000);
    };
    const { text, isClosed } = await exchange(slow.port, [head, later], {
      until: (soFar) => {
        if (soFar.includes("payload_too_large")) answered.resolve();
        return false;
      },
    });
    const answer = readAnswer(text);
    expect(answer.status).toBe(413);
    expect(answer.body).toContain("payload_too_large");
    expect(isClosed).toBe(true);
  });

  test("real clients see the 413 and not a reset, with 20 MB behind it", async () => {
    const body = new Uint8Array(20_000_000);
    const statuses: number[] = [];
    for (let time = 0; time < 5; time += 1) {
      const response = await app.ask("/v1/actions", {
        method: "POST",
        body,
        headers: { "content-type": "application/json" },
      });
      statuses.push(response.status);
      expect(await response.text()).toContain("payload_too_large");
    }
    expect(statuses).toEqual([413, 413, 413, 413, 413]);
  });
});

describe("what is dropped of a body that nobody reads", () => {
  /** A body without end, a quarter of a mebibyte at a time; and how much of it was taken. */
  function endless(isSilentAfter = Number.POSITIVE_INFINITY) {
    const seen = { taken: 0, isCancelled: false };
    const body = new ReadableStream({
      pull(controller) {
        if (seen.taken >= isSilentAfter) return new Promise<void>(() => {});
        seen.taken += MEBIBYTE / 4;
        controller.enqueue(new Uint8Array(MEBIBYTE / 4));
        return undefined;
      },
      cancel: () => void (seen.isCancelled = true),
    });
    return { seen, request: new Request("http://localhost/", { method: "POST", body }) };
  }

  test("are 4 MiB of it at most", async () => {
    const { seen, request: asked } = endless();
    const clock = new FakeClock();
    let isOver = false;
    const dropped = dropBody({ request: asked, chunked: null }, clock).then(() => (isOver = true));
    // Two timers: the 2 s, and the rest behind the 4 MiB, in which the client sees the answer before the reset.
    await until(() => clock.timers >= 2);
    expect(seen.taken).toBeWithin(4 * MEBIBYTE, 5 * MEBIBYTE);
    clock.advance(249);
    await new Promise((resolve) => setImmediate(resolve));
    expect({ isOver, isCancelled: seen.isCancelled }).toEqual({ isOver: false, isCancelled: false });
    clock.advance(1);
    await dropped;
    expect(seen.isCancelled).toBe(true);
    expect(clock.timers).toBe(0);
  });

  test("is what comes in 2 s", async () => {
    const { seen, request: asked } = endless(MEBIBYTE);
    const clock = new FakeClock();
    let isOver = false;
    const dropped = dropBody({ request: asked, chunked: null }, clock).then(() => (isOver = true));
    await until(() => seen.taken >= MEBIBYTE);
    clock.advance(1_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(isOver).toBe(false);
    clock.advance(1);
    await dropped;
    expect(clock.timers).toBe(0);
  });
});

describe("routing", () => {
  test.each(["x", "a b", "a/v1/actions", "a/v1/actions?", "a#", "a@b", "", "[::1", "a:99999"])(
    "B18 looks at the path only, never at the host: %j",
    async (host) => {
      await using anyHost = openStubServer({ pagesGuard: () => {} });
      const ask = async (path: string, headers: readonly string[] = []) => {
        const head = [`GET ${path} HTTP/1.1`, `Host: ${host}`, "Connection: close", ...headers, "", ""].join("\r\n");
        return readAnswer((await exchange(anyHost.port, [head])).text).status;
      };
      expect(await ask("/health")).toBe(200);
      expect(await ask("/ab/v1/actions")).toBe(404);
      // Eight characters: where a fixed offset into a URL without a host would begin to read.
      expect(await ask("/abcdefg/v1/actions")).toBe(404);
      expect(await ask("/v1/actions")).toBe(401);
      expect(await ask("/v1/actions", [KEY])).toBe(200);
    },
  );

  test("ends at a fragment, and takes the path of a whole URL", async () => {
    const status = async (target: string) => {
      const { text } = await exchange(app.port, [request(`GET ${target}`, [KEY, "Connection: close"])]);
      return readAnswer(text).status;
    };
    expect(await status("/v1/actions#/../../health")).toBe(200);
    expect(await status("http://elsewhere.example/v1/actions")).toBe(200);
    expect(await status("//v1/actions")).toBe(404);
  });
});
