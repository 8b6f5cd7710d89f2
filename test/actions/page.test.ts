import { describe, expect, test } from "bun:test";
import { encodeCursor } from "../../src/api/cursor.ts";
import { checkList, pageJson } from "../../src/api/list-schemas.ts";
import { NO_SEARCH } from "../../src/core/search.ts";
import { refusalOf } from "./create-rig.ts";

const ID = "act_01jf8a7q3v0000000000000000";

describe("a cursor", () => {
  test("is opaque, and gives back where the page ended", () => {
    expect(encodeCursor(ID)).not.toContain("act_");
    expect(checkList({ cursor: encodeCursor(ID) }).before).toBe(ID);
  });

  test.each([
    "",
    "x",
    ID,
    "AAAA",
    `${encodeCursor(ID)}=`,
    `${encodeCursor(ID)}A`,
    Buffer.from("act_a b").toString("base64url"),
    Buffer.from(`act_${"a".repeat(65)}`).toString("base64url"),
  ])("that is garbage is refused: %s", (cursor) => {
    expect(refusalOf(() => checkList({ cursor }))).toEqual({ code: "invalid_query", fields: ["cursor"] });
  });
});

describe("what a list is asked for", () => {
  test("is 20 of everything by default", () => {
    expect(checkList({})).toEqual({
      statuses: [],
      method: null,
      host: null,
      dedupe: null,
      createdBy: null,
      createdAfter: null,
      createdBefore: null,
      search: NO_SEARCH,
      before: null,
      limit: 20,
    });
  });

  test("holds dates that exist, in any zone, and hosts without case", () => {
    const query = checkList({ created_after: "2026-03-04T12:00:00+01:00", host: "API.Example.com:8443" });
    expect(query.createdAfter?.toISOString()).toBe("2026-03-04T11:00:00.000Z");
    expect(query.host).toBe("api.example.com:8443");
  });
});

test("a page is its actions as they are written and the next cursor or null", () => {
  expect(pageJson([], { before: null, searchedUntil: null })).toBe(`{"data":[],"next_cursor":null}`);
  expect(pageJson([`{"a":1.0}`, `{"b":2}`], { before: ID, searchedUntil: null })).toBe(
    `{"data":[{"a":1.0},{"b":2}],"next_cursor":"${encodeCursor(ID)}"}`,
  );
  expect(pageJson([], { before: ID, searchedUntil: new Date(0) })).toBe(
    `{"data":[],"next_cursor":"${encodeCursor(ID)}","searched_until":"1970-01-01T00:00:00.000Z"}`,
  );
});
