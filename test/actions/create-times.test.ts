import { describe, expect, test } from "bun:test";
import { readTimes } from "../../src/actions/create-schema.ts";
import { later, NOON } from "../support/factory.ts";
import { refusalOf, rigCreate } from "./create-rig.ts";

const check = rigCreate();

const create = (members: object, rest = {}) => check(JSON.stringify({ url: "https://a.example/", ...members }), rest);

const [HOUR, DAY] = [3_600_000, 86_400_000];

const iso = (ms: number) => later(ms).toISOString();

describe("when an action is sent", () => {
  test.each([
    ["a time", { run_at: iso(HOUR) }, HOUR],
    ["a time in another zone", { run_at: "2026-03-04T14:00:00+01:00" }, HOUR],
    ["a time in the past, which means now", { run_at: iso(-HOUR) }, -HOUR],
    ["a delay", { delay_seconds: 90 }, 90_000],
    ["a year", { delay_seconds: 31_536_000 }, 365 * DAY],
    ["a leap year ahead", { run_at: iso(366 * DAY) }, 366 * DAY],
  ])("is %s", (_what, members, runMs) => {
    const { request } = create(members);
    expect(request.extras.runAt).toBe(later(runMs).getTime());
    expect(request.extras.delaySeconds).toBe("delay_seconds" in members ? members.delay_seconds : undefined);
  });

  test("is not said by most creates, which store nothing of it", () => {
    expect(create({}).request).toMatchObject({ extras: {}, expiresAt: null });
    expect(readTimes({}, NOON)).toEqual({ runAt: null, expiresAt: null, issues: [], overdue: null });
  });

  test.each([
    [{ expires_at: iso(HOUR), run_at: iso(HOUR) }, "Must be after run_at."],
    [{ expires_at: iso(HOUR), delay_seconds: 7_200 }, "Must be after the end of delay_seconds."],
  ])("that ends before it may begin names what it must come after: %j", (members, message) => {
    const { issues, overdue } = readTimes(members, NOON);
    expect(overdue === null ? issues : [overdue]).toEqual([{ field: "expires_at", message }]);
  });

  test.each([
    [{ run_at: iso(366 * DAY + 1) }, ["run_at"]],
    [{ run_at: "2026-02-30T00:00:00Z" }, ["run_at"]],
    [{ run_at: "tomorrow" }, ["run_at"]],
    [{ run_at: iso(1), delay_seconds: 1 }, ["delay_seconds"]],
    [{ expires_at: iso(0) }, ["expires_at"]],
    [{ expires_at: iso(HOUR), run_at: iso(HOUR) }, ["expires_at"]],
    [{ expires_at: iso(HOUR), delay_seconds: 7_200 }, ["expires_at"]],
    [{ expires_at: iso(731 * DAY + 1) }, ["expires_at"]],
    [{ expires_at: "" }, ["expires_at"]],
    [
      { timeout_ms: 999, backoff: { base_ms: 200, cap_ms: 100 }, give_up_on: [200] },
      ["timeout_ms", "backoff", "give_up_on.0"],
    ],
  ])("is refused: %j", (members, fields) => {
    const refusal = refusalOf(() => create(members));
    expect({ ...refusal, fields: refusal.fields.toSorted() }).toEqual({
      code: "validation_error",
      fields: fields.toSorted(),
    });
  });

  test("may not lie beyond the wait of an answer in sync, with any other problem named too", () => {
    const late = { sync: true, delay_seconds: 31 };
    expect(refusalOf(() => create(late))).toEqual({ code: "invalid_sync", fields: ["sync"] });
    expect(refusalOf(() => create({ ...late, retries: 0 })).fields.toSorted()).toEqual(["retries", "sync"]);
    expect(create(late, { waitSeconds: 60 }).sync).toBe(true);
    expect(create({ sync: true, delay_seconds: 30 }).sync).toBe(true);
    expect(refusalOf(() => create({ sync: true, delay_seconds: 2 }, { waitSeconds: 1 })).code).toBe("invalid_sync");
  });

  test("and how attempts are made is stored as it was given", () => {
    const { request } = create({
      timeout_ms: 1_000,
      backoff: { base_ms: 100, cap_ms: 200 },
      give_up_on: [],
      expires_at: iso(DAY),
    });
    expect(request.extras).toEqual({ timeoutMs: 1_000, backoff: { baseMs: 100, capMs: 200 }, giveUpOn: [] });
    expect(request.expiresAt).toEqual(later(DAY));
  });
});
