import { describe, expect, test } from "bun:test";
import { WrittenActions } from "../../db/libsql/context.ts";
import { anAction } from "../support/factory.ts";

describe("what was written a moment ago", () => {
  test("is given out once, by id and revision", () => {
    const recent = new WrittenActions();
    const action = anAction({ revision: 3 });
    recent.keep(action);
    expect(recent.take(action.id, 3)).toEqual(action);
    expect(recent.take(action.id, 3)).toBeNull();
    expect(recent.take("act_x", 1)).toBeNull();
  });

  test("is not given out as another revision", () => {
    const recent = new WrittenActions();
    const action = anAction({ revision: 3 });
    recent.keep(action);
    expect(recent.take(action.id, 4)).toBeNull();
  });

  test("is the newest of an action", () => {
    const recent = new WrittenActions();
    const action = anAction({ revision: 1 });
    recent.keep(action);
    recent.keep({ ...action, revision: 3, attempts: 1 });
    expect(recent.take(action.id, 3)).toMatchObject({ attempts: 1 });
  });

  test("is only what can be claimed", () => {
    const recent = new WrittenActions();
    const held = anAction({ approve: true });
    recent.keep(held);
    expect(recent.take(held.id, held.revision)).toBeNull();
  });

  test("stays small: no large body, no last answer, and the oldest goes first", () => {
    const recent = new WrittenActions();
    const large = anAction({ body: "x".repeat(16_385) });
    const result = { lastError: null, errorSource: null, responseCode: 503, responseBody: "x".repeat(100_000) };
    const answered = anAction({ result: { ...result, responseTruncated: false, durationMs: 1 } });
    recent.keep(large);
    recent.keep(answered);
    expect(recent.take(large.id, 1)).toBeNull();
    expect(recent.take(answered.id, 1)?.result).toBeNull();

    const many = Array.from({ length: 2_001 }, () => anAction());
    for (const action of many) recent.keep(action);
    expect(many.map(({ id }) => recent.take(id, 1) !== null).indexOf(true)).toBe(1);
    expect(recent.take(many.at(-1)?.id ?? "", 1)).toBeNull();
  });
});
