import { describe, expect, test } from "bun:test";
import { encodeCursor } from "../../src/api/cursor.ts";
import { KNOWN_ID, openStubServer } from "./stub-server.ts";
import { shared } from "../support/shared.ts";
import { words } from "../support/words.ts";

const app = await shared(openStubServer());

interface Envelope {
  readonly error: { readonly code: string; readonly details?: readonly { readonly field: string }[] };
}

async function refusal(path: string, method = "GET") {
  const response = await app.ask(path, { method });
  const { error } = (await response.json()) as Envelope;
  return { status: response.status, code: error.code, fields: error.details?.map(({ field }) => field) ?? [] };
}

describe("a query that is refused", () => {
  test.each(["0", "121", "abc", "1.5", "-1", "+1", "1e1", " 1", "", "0x1", "99999999999999999999"])(
    "wait=%s",
    async (wait) => {
      const expected = { status: 400, code: "invalid_query", fields: ["wait"] };
      expect(await refusal(`/v1/actions/${KNOWN_ID}?wait=${encodeURIComponent(wait)}`)).toEqual(expected);
      expect(await refusal(`/v1/actions?wait=${encodeURIComponent(wait)}`, "POST")).toEqual(expected);
    },
  );

  test.each([
    ["B101", "limit=0", ["limit"]],
    ["B101", "limit=101", ["limit"]],
    ["B102", "status=done", ["status"]],
    ["B103", "created_after=yesterday", ["created_after"]],
    ["B103 no such day", "created_before=2026-02-30T00:00:00Z", ["created_before"]],
    ["B103 no zone", "created_before=2026-02-03T00:00:00", ["created_before"]],
    ["B104", "cursor=garbage", ["cursor"]],
    ["B105", "colour=red", ["colour"]],
    ["B105 a prototype's", "__proto__=1", ["__proto__"]],
    ["B105 case", "Limit=5", ["Limit"]],
    ["twice", "limit=5&limit=5", ["limit"]],
    ["method", "method=get", ["method"]],
    ["host", "host=a/b", ["host"]],
    ["dedupe", "dedupe=", ["dedupe"]],
    ["all at once", "limit=0&colour=red&status=x&host=", ["colour", "status", "host", "limit"]],
  ])("of a list: %s %s", async (_name, query, fields) => {
    const refused = await refusal(`/v1/actions?${query}`);
    expect({ ...refused, fields: refused.fields.toSorted() }).toEqual({
      status: 400,
      code: "invalid_query",
      fields: fields.toSorted(),
    });
  });
});

describe("a query that is accepted", () => {
  test.each([
    ...words(`
      ? limit=1 limit=100 limit=007 status=failed&status=completed method=GET&host=api.example.com&dedupe=a%20b
      host=%5B%3A%3A1%5D:8080 created_after=2026-01-01T00:00:00Z&created_before=2026-01-01T00:00:00.5%2B02:00
      limit=5#fragment?x=1
    `),
    "",
    `cursor=${encodeCursor(KNOWN_ID)}`,
  ])("of a list: %s", async (query) => {
    expect((await app.ask(`/v1/actions?${query}`)).status).toBe(200);
  });

  test.each(["1", "120"])("wait=%s", async (wait) => {
    expect((await app.ask(`/v1/actions/${KNOWN_ID}?wait=${wait}`)).status).toBe(200);
  });
});
