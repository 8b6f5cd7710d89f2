import { beforeEach, describe, expect, test } from "bun:test";
import { KEYS, KNOWN_ID, openStubServer } from "./stub-server.ts";
import { contentLength } from "../../src/http/body.ts";
import { exchange, readAnswer, request } from "./wire.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openStubServer());

beforeEach(() => void app.calls.splice(0));

const KEY = `Authorization: Bearer ${KEYS.owner}`;

const TYPE = "Content-Type: application/json";

const URL = `"url":"https://api.example.com/"`;

const BYTES_MAX = 1_048_576;

interface Sent {
  readonly headers?: readonly string[];
  readonly body?: string | Uint8Array;
  readonly path?: string;
}

/** Sends a POST byte by byte as said, and waits for the whole answer. */
async function post({ headers = [TYPE], body = "", path = "/v1/actions" }: Sent) {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const length = bytes.length === 0 ? [] : [`Content-Length: ${bytes.length}`];
  const head = request(`POST ${path}`, [KEY, "Connection: close", ...headers, ...length]);
  const { text } = await exchange(app.port, [head, bytes]);
  const answer = readAnswer(text);
  const code = /"code":"([a-z_]+)"/.exec(answer.body)?.[1] ?? null;
  return { status: answer.status, code, requestId: answer.headers.get("x-request-id") };
}

/** A create of exactly so many bytes. */
function createOf(bytes: number): string {
  const [before, after] = [`{${URL},"body":{"a":"`, `"}}`];
  return before + "x".repeat(bytes - before.length - after.length) + after;
}

const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

/** `depth` counts the whole request: the create, its body and what is in it. */
const deep = (depth: number) => `{${URL},"body":{"a":${nested(depth - 2)}}}`;

const members = (count: number) => Array.from({ length: count }, (_, at) => `"k${at}":1`).join(",");

describe("a body that is refused before its fields are looked at", () => {
  test.each<[string, Sent, string]>([
    ["B29", { headers: [TYPE, "Content-Length: 0"] }, "missing_body"],
    ["B29 no length", { headers: [TYPE] }, "missing_body"],
    ["B29 empty chunks", { headers: [TYPE, "Transfer-Encoding: chunked", "\r\n0"] }, "missing_body"],
    ["B30", { headers: [] }, "missing_body"],
  ])("%s", async (_name, sent, code) => {
    expect(await post(sent)).toMatchObject({ status: 400, code });
    expect(app.calls).toEqual([]);
  });

  const body = `{${URL}}`;
  test.each<[string, Sent]>([
    ["B33", { headers: [], body }],
    ["B34", { headers: ["Content-Type: text/plain"], body }],
    ["B35", { headers: ["Content-Type: application/jsonx"], body }],
    ["B36", { headers: ["Content-Type: multipart/form-data; boundary=x"], body }],
    ["B37", { headers: ["Content-Type: application/json; charset=utf-16"], body }],
    ["B37 quoted", { headers: ['Content-Type: application/json; a=b; charset="latin1"'], body }],
    ["B38", { headers: [TYPE, "Content-Encoding: gzip"], body }],
    ["two types", { headers: [TYPE, "Content-Type: text/plain"], body }],
    ["a form", { headers: ["Content-Type: application/x-www-form-urlencoded"], body: "url=x" }],
    ["no body, but a wrong type", { headers: ["Content-Type: text/plain"] }],
  ])("%s is invalid_content_type", async (_name, sent) => {
    expect(await post(sent)).toMatchObject({ status: 400, code: "invalid_content_type" });
    expect(app.calls).toEqual([]);
  });

  test.each<[string, string | Uint8Array]>([
    ["B41", `{"url":`],
    ["B42", " \r\n\t "],
    ["B43 in a string", new Uint8Array([...new TextEncoder().encode(`{"url":"http://a/`), 0xff, 0x22, 0x7d])],
    ["B43 outside", new Uint8Array([0x7b, 0x80, 0x7d])],
    ["B43 half a pair in UTF-8", new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ["B44", deep(65)],
    ["B45", nested(100_000)],
    ["B45 open only", "[".repeat(100_000)],
    ["B46", `{${URL},"body":{${members(9_999)}}}`],
    ["two texts", `{${URL}}{}`],
    ["a comma too many", `{${URL},}`],
    ["a comment", `{${URL}/* x */}`],
    ["NaN", `{${URL},"retries":NaN}`],
    ["a NUL behind it", `{${URL}}\0`],
  ])("%s is invalid_request", async (_name, body_) => {
    expect(await post({ body: body_ })).toMatchObject({ status: 400, code: "invalid_request" });
    expect(app.calls).toEqual([]);
  });

  test.each([
    ["too deep and broken", `${"[".repeat(65)}!`, "nested deeper than 64"],
    ["too many members in two objects, and broken", `{${members(5_000)},"x":{${members(5_001)}}!`, "10000 members"],
    ["as deep as may be, and broken", `${"[".repeat(64)}!`, "not valid JSON"],
    ["depth in a string", `["${"[".repeat(65)}"!`, "not valid JSON"],
  ])("is judged by its bytes before anything is parsed: %s", async (_name, sent, message) => {
    const init = { method: "POST", body: sent, headers: { "content-type": "application/json" } };
    const { error } = (await (await app.ask("/v1/actions", init)).json()) as {
      error: { code: string; message: string };
    };
    expect(error).toMatchObject({ code: "invalid_request", message: expect.stringContaining(message) });
  });

  test("B24 one byte too many is 413 with the envelope, by length and by count", async () => {
    const tooLarge = createOf(BYTES_MAX + 1);
    expect(await post({ body: tooLarge })).toMatchObject({ status: 413, code: "payload_too_large" });
    const chunked = [KEY, TYPE, "Transfer-Encoding: chunked", "Connection: close"];
    const { text } = await exchange(app.port, [request("POST /v1/actions", chunked), chunk(tooLarge), "0\r\n\r\n"]);
    const answer = readAnswer(text);
    expect(answer.status).toBe(413);
    expect(answer.body).toContain(`"code":"payload_too_large"`);
    expect(answer.body).toContain(`"request_id":"${answer.headers.get("x-request-id")}"`);
    expect(app.calls).toEqual([]);
  });
});

test("a length that is said twice bounds a body as one that is said once", async () => {
  const tooLarge = createOf(BYTES_MAX + 1);
  const lengths = Array.from({ length: 2 }, () => `Content-Length: ${tooLarge.length}`);
  const head = request("POST /v1/actions", [KEY, TYPE, "Connection: close", ...lengths]);
  const { text } = await exchange(app.port, [head, tooLarge]);
  expect(readAnswer(text)).toMatchObject({ status: 413, body: expect.stringContaining("payload_too_large") });
  // What a key holds is counted by it.
  expect(contentLength({ headers: new Headers({ "content-length": "7, 7" }) })).toBe(7);
});

describe("a body in many chunks", () => {
  /** A create of a hundred kilobytes or more in so many chunks, the last one with what is left. */
  const sendIn = async (chunks: number, chars: number) => {
    const body = createOf(100_000);
    const single = Array.from({ length: chunks - 1 }, (_, at) => chunk(body.slice(at * chars, (at + 1) * chars)));
    const headers = [KEY, TYPE, "Transfer-Encoding: chunked", "Connection: close"];
    const all = `${single.join("")}${chunk(body.slice((chunks - 1) * chars))}0\r\n\r\n`;
    const { text, isClosed } = await exchange(app.port, [request("POST /v1/actions", headers), all]);
    const answer = readAnswer(text);
    return { status: answer.status, body: answer.body, connection: answer.headers.get("connection"), isClosed };
  };

  test.each([1, 5])("is read where it has 16,384 small ones, of %i bytes", async (chars) => {
    expect(await sendIn(16_385, chars)).toMatchObject({ status: 201 });
  });

  test.each([1, 5])("is 413 where it has one more, of %i bytes, and the connection closes", async (chars) => {
    // The last one is large, and does not count.
    const answer = await sendIn(16_386, chars);
    expect(answer).toMatchObject({ status: 413, connection: "close", isClosed: true });
    expect(answer.body).toContain("too many chunks: 16384 at most");
    expect(app.calls).toEqual([]);
  });
});

describe("a body that is accepted", () => {
  test.each<[string, Sent]>([
    ["B39", { headers: ["Content-Type: application/json; charset=utf-8"], body: `{${URL}}` }],
    ["B39 quoted, in capitals", { headers: ['Content-Type: application/json;charset="UTF-8"; x=y'], body: `{${URL}}` }],
    ["B40", { headers: ["Content-Type: APPLICATION/JSON"], body: `{${URL}}` }],
    ["identity", { headers: [TYPE, "Content-Encoding: Identity"], body: `{${URL}}` }],
    ["B47", { body: `\ufeff{${URL}}` }],
    ["B48", { body: deep(64) }],
    ["B46 one less", { body: `{${URL},"body":{${members(9_998)}}}` }],
    ["B49", { body: `{"url":"nonsense",${URL}}` }],
    ["white space around it", { body: `\r\n {${URL}}\n` }],
  ])("%s", async (_name, sent) => {
    expect(await post(sent)).toMatchObject({ status: 201, code: null });
  });

  test("B27 exactly 1,048,576 bytes, by length and in chunks", async () => {
    const largest = createOf(BYTES_MAX);
    expect((await post({ body: largest })).status).toBe(201);
    const half = BYTES_MAX / 2;
    const chunked = [KEY, TYPE, "Transfer-Encoding: chunked", "Connection: close"];
    const parts = [request("POST /v1/actions", chunked), chunk(largest.slice(0, half)), chunk(largest.slice(half))];
    const { text } = await exchange(app.port, [...parts, "0\r\n\r\n"]);
    expect(readAnswer(text).status).toBe(201);
  });

  test.each<[string, Sent]>([
    ["no body", { headers: [] }],
    [
      "no body, whatever its type",
      { headers: ["Content-Type: application/x-www-form-urlencoded", "Content-Length: 0"] },
    ],
    ["an empty object", { body: "{}" }],
    ["a reason", { body: `{"reason":"no longer needed"}` }],
  ])("a decision takes %s", async (_name, sent) => {
    for (const verb of ["approve", "cancel", "retry"]) {
      expect((await post({ ...sent, path: `/v1/actions/${KNOWN_ID}/${verb}` })).status).toBe(200);
    }
  });

  test("a decision's body is judged like any other", async () => {
    const path = `/v1/actions/${KNOWN_ID}/cancel`;
    expect((await post({ path, headers: ["Content-Type: text/plain"], body: "x" })).code).toBe("invalid_content_type");
    expect((await post({ path, body: "null" })).code).toBe("validation_error");
    expect((await post({ path, body: `{"reason":"${"x".repeat(1_001)}"}` })).code).toBe("validation_error");
    expect(app.calls).toEqual([]);
  });
});

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}
