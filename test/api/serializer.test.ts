import { expect, test } from "bun:test";
import Type from "typebox";
import * as t from "../../src/api/schema-helpers.ts";
import { fromJson, toJson } from "../../src/api/serializer.ts";

const Thing = t.answerObject("Thing", "A thing.", {
  id: t.plainText("Its id.", "x"),
  created_at: t.dateTime("When it was made."),
  ended_at: t.nullable(t.dateTime("When it ended; null: it has not.")),
  max_per_second: Type.Optional(t.quantity("Absent: no limit.", 1)),
  parts: Type.Array(Type.Object({ part_name: t.plainText("Its name.", "y") })),
  detail: t.anyObject("Details."),
});

const AT = new Date("2026-03-04T12:00:00.000Z");

test("a row is shown by the names of its schema, in the order of the schema, and with nothing else", () => {
  const row = {
    sealedSecret: "hidden",
    detail: { createdAt: 1 },
    parts: [{ partName: "a", secret: "hidden" }],
    maxPerSecond: 2,
    endedAt: AT,
    createdAt: AT,
    id: "1",
  };
  expect(JSON.stringify(toJson(Thing, row))).toBe(
    `{"id":"1","created_at":"${AT.toISOString()}","ended_at":"${AT.toISOString()}","max_per_second":2,"parts":[{"part_name":"a"}],"detail":{"createdAt":1}}`,
  );
});

test("null is shown where the schema has it, and left out where a member may be absent", () => {
  const row = { id: "1", createdAt: AT, endedAt: null, maxPerSecond: null, parts: [], detail: {} };
  expect(Object(toJson(Thing, row))).toEqual({
    id: "1",
    created_at: AT.toISOString(),
    ended_at: null,
    parts: [],
    detail: {},
  });
});

test("a body is read by the names of its schema, with null for what is absent", () => {
  const Body = t.closedObject({
    max_per_second: Type.Optional(t.quantity("Absent: no limit.", 1)),
    back_off: Type.Optional(
      Type.Object({ base_ms: t.quantity("The first.", 1), cap_ms: Type.Optional(t.quantity("The last.", 9)) }),
    ),
    give_up_on: Type.Optional(Type.Array(Type.Integer())),
  });
  expect(fromJson(Body, {})).toEqual({ maxPerSecond: null, backOff: null, giveUpOn: null });
  const body = { back_off: { base_ms: 1 }, give_up_on: [401] };
  expect(fromJson(Body, body)).toEqual({ maxPerSecond: null, backOff: { baseMs: 1, capMs: null }, giveUpOn: [401] });
});
