import { describe, expect, test } from "bun:test";
import { answers, openRawTarget, says } from "../support/raw-target.ts";
import { answer, attempt, base64, IN_TIME, OK, sender, whole, withoutHeaders } from "./attempt.ts";
import { requestTo } from "./policies.ts";

describe("a target that is odd but right", () => {
  test.each([
    ["the same length twice", `${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`],
    ["length and chunked", `${OK}Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
    ["LF-only line ends", "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}"],
    ["HTTP/1.0 until close", "HTTP/1.0 200 OK\r\n\r\n{}"],
  ])("%s: accepted", async (_name, text) => {
    expect(await attempt(says(text))).toEqual(whole(200, "{}"));
  });

  test("100, 103, then 200: the last counts", async () => {
    const text = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nLink: </x>\r\n\r\n${OK}Content-Length: 2\r\n\r\n{}`;
    expect(await attempt(says(text))).toEqual(whole(200, "{}"));
  });

  test.each([204, 205, 304])("a body with status %d is none", async (status) => {
    expect(await attempt(answers(status, "{}"))).toEqual(whole(status, null));
  });

  test("a 413 before the request was read is an answer", async () => {
    await using target = await openRawTarget(() => {}, {
      onConnect: (socket) => socket.once("data", () => answers(413, "{}")(socket, "")),
    });
    const body = JSON.stringify("x".repeat(1_000_000));
    const outcome = await sender.send(requestTo(target.url(), { body }), IN_TIME);
    expect(withoutHeaders(outcome)).toEqual(whole(413, "{}"));
  });
});

describe("a target that wants more than one attempt", () => {
  test("a redirect is an answer: not followed, its Location kept as text", async () => {
    for (const location of ["http://169.254.169.254/latest", "/", "//127.0.0.1:1/", "file:///etc/passwd", null]) {
      const headers = location === null ? [] : [`Location: ${location}`];
      expect(await attempt(answers(302, "{}", headers))).toEqual({ ...whole(302, "{}"), location });
    }
    for (const status of [301, 303, 307, 308]) {
      expect(await answer(answers(status, "", ["Location: /again"]))).toMatchObject({
        code: status,
        location: "/again",
      });
    }
  });

  test("cookies are not kept, and a demand for authentication is not answered", async () => {
    await using target = await openRawTarget(
      answers(401, "", [
        "Set-Cookie: a=b; Path=/",
        "WWW-Authenticate: Basic realm=x",
        "WWW-Authenticate: Digest realm=x",
      ]),
    );
    for (const path of ["/", "/again"]) await sender.send(requestTo(target.url(path)), IN_TIME);
    expect(target.requests.length).toBe(2);
    expect(target.requests.join("\n")).not.toMatch(/cookie|authorization/i);
  });
});

describe("the body of an answer", () => {
  test("gzip that nobody asked for, and bytes that only say so, are stored as they came", async () => {
    const gzip = Bun.gzipSync(Buffer.from("{}"));
    expect(await attempt(answers(200, gzip, ["Content-Encoding: gzip"]))).toEqual(whole(200, base64(gzip)));
    const broken = gzip.subarray(0, 12);
    expect(await attempt(answers(200, broken, ["Content-Encoding: gzip"]))).toEqual(whole(200, base64(broken)));
    expect(await attempt(answers(200, "{}", ["Content-Encoding: br"]))).toEqual(whole(200, "{}"));
  });

  test("a JSON value is kept as it was written, whatever its content type", async () => {
    const text =
      ' {"big": 12345678901234567890, "one":1.0, "z":-0, "e":1E400, "\\u0000":"\\ud800", "__proto__":[null]}\n';
    expect(await attempt(answers(200, text, ["Content-Type: text/html"]))).toEqual(whole(200, text));
    for (const value of ["null", "false", "0", '""', "[]", `${"[".repeat(64)}${"]".repeat(64)}`]) {
      expect(await attempt(answers(500, value))).toEqual(whole(500, value));
    }
    expect(await attempt(answers(200, "\ufeff{}"))).toEqual(whole(200, "{}"));
  });

  test("other text is a string, bytes are base64, nothing is null", async () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    for (const text of [
      "{",
      "{'a':1}",
      "NaN",
      "hello",
      "a\0b",
      "<script>",
      "1 2",
      " ",
      "€",
      `${"[".repeat(65)}${"]".repeat(65)}`,
      deep,
    ]) {
      expect(await attempt(answers(200, text))).toEqual(whole(200, JSON.stringify(text)));
    }
    for (const bytes of [
      [0xff, 0xfe],
      [0x7b, 0x80, 0x7d],
      [0xed, 0xa0, 0x80],
      [0xc0, 0xaf],
      [0xe2, 0x82],
    ]) {
      expect(await attempt(answers(200, Uint8Array.from(bytes)))).toEqual(whole(200, base64(Uint8Array.from(bytes))));
    }
    expect(await attempt(answers(200, ""))).toEqual(whole(200, null));
  });
});
