import { describe, expect, test } from "bun:test";
import { RESPONSE_HEADER_CHARS_MAX, RESPONSE_HEADERS_BYTES_MAX, RESPONSE_HEADERS_MAX } from "../../src/core/limits.ts";
import { keptHeaders, readHeaders } from "../../src/receipts/response-headers.ts";
import { MASK } from "../../src/receipts/mask-rules.ts";

const keptOf = async (headers: [string, string][]) => readHeaders(await keptHeaders(new Headers(headers), null));

describe("the headers of a response", () => {
  test("are kept by name, but only values that are no secret", async () => {
    const kept = await keptOf([
      ["Content-Type", "application/json"],
      ["X-RateLimit-Remaining", "7"],
      ["Set-Cookie", "session=1; Path=/"],
      ["Set-Cookie", "theme=dark"],
      ["X-Api-Key", "abc"],
      ["Authorization", "Basic YTpi"],
    ]);
    expect(kept.toSorted(([a], [b]) => a.localeCompare(b))).toEqual([
      ["authorization", MASK],
      ["content-type", "application/json"],
      ["set-cookie", MASK],
      ["set-cookie", MASK],
      ["x-api-key", MASK],
      ["x-ratelimit-remaining", "7"],
    ]);
  });

  test("are bounded in number, in bytes and each in length", async () => {
    const many = Array.from({ length: 100 }, (_, n): [string, string] => [`x-${n}`, "1"]);
    expect(await keptOf(many)).toHaveLength(RESPONSE_HEADERS_MAX);
    const large = Array.from({ length: 30 }, (_, n): [string, string] => [`x-ratelimit-${n}`, "v".repeat(400)]);
    expect(Buffer.byteLength(JSON.stringify(await keptOf(large)))).toBeLessThan(RESPONSE_HEADERS_BYTES_MAX * 1.2);
    expect(await keptOf([["etag", "e".repeat(9_000)]])).toEqual([
      ["etag", `${"e".repeat(RESPONSE_HEADER_CHARS_MAX)}…`],
    ]);
    expect(await keptOf([["n".repeat(RESPONSE_HEADER_CHARS_MAX + 1), "1"]])).toEqual([]);
  });

  test("always have Retry-After, since nobody is to be called before it", async () => {
    const many = Array.from({ length: 100 }, (_, n): [string, string] => [`a-${n}`, "1"]);
    expect(await keptOf([...many, ["Retry-After", "3600"]])).toHaveLength(RESPONSE_HEADERS_MAX);
    expect(await keptOf([...many, ["Retry-After", "3600"]])).toContainEqual(["retry-after", "3600"]);
  });

  test("are none where there are none", async () => {
    expect(await keptHeaders(new Headers(), null)).toBeNull();
    expect(readHeaders(null)).toEqual([]);
  });
});
