import { expect, test } from "bun:test";
import { REFUSALS_HELD_MAX } from "../../src/core/limits.ts";
import { createRateLimit } from "../../src/http/rate-limit.ts";
import { FakeClock } from "../support/clock.ts";
import { openRealServer, type RealServer, STRANGER } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { until } from "../support/until.ts";

const PER_SECOND = 12;

const CREATE = `{"url":"http://127.0.0.1:9/","approve":true,"dedupe":"same"}`;

type Ask = readonly [method: string, path: string, body?: string, headers?: Readonly<Record<string, string>>];

/** As many requests as an account has in a second: what is answered well, what finds an older action, what is refused. */
const ASKS: readonly (readonly [status: number, ...ask: Ask])[] = [
  [201, "POST", "/v1/actions", CREATE],
  [200, "POST", "/v1/actions", CREATE],
  [200, "POST", "/v1/actions", CREATE],
  [200, "GET", "/v1/actions"],
  [400, "POST", "/v1/actions", "{"],
  [400, "POST", "/v1/actions", `{"url":7}`],
  [400, "GET", "/v1/actions?x=1"],
  [413, "POST", "/v1/actions", " ".repeat(1_048_577)],
  [404, "GET", "/v1/nothing"],
  [404, "GET", "/v1/actions/act_nobody"],
  [405, "PUT", "/v1/actions"],
  [403, "POST", "/v1/actions", CREATE, { authorization: `Bearer ${KEYS.reader}` }],
];

async function refusal(app: RealServer, key: string) {
  const response = await app.ask("/v1/actions", { headers: { authorization: `Bearer ${key}` } });
  const { error } = (await response.json()) as { error: { code: string; message: string; request_id: string } };
  return { status: response.status, wait: response.headers.get("retry-after"), ...error };
}

test("B28 every request of an account counts, refused ones and found ones too, by whichever of its keys; what is refused makes nothing", async () => {
  await using app = await openRealServer({ starts: false, rateLimitPerSecond: PER_SECOND });
  expect(ASKS).toHaveLength(PER_SECOND);
  for (const [status, ...ask] of ASKS) expect([ask[1], (await app.call(...ask)).status]).toEqual([ask[1], status]);

  for (const key of [KEYS.owner, KEYS.agent, KEYS.approver, KEYS.reader]) {
    expect(await refusal(app, key)).toEqual({
      status: 429,
      wait: "1",
      code: "rate_limited",
      message: `This account may make ${PER_SECOND} requests per second. Wait a second.`,
      request_id: expect.stringMatching(/^req_/),
    });
  }
  const another = `{"url":"http://127.0.0.1:9/","approve":true}`;
  expect((await app.call("POST", "/v1/actions", another)).status).toBe(429);
  // Nobody else's requests are fewer for it, and who has no key is none of the account.
  const theirs = await app.call("GET", "/v1/actions", undefined, STRANGER);
  expect({ status: theirs.status, data: theirs.json.data }).toEqual({ status: 200, data: [] });
  expect((await app.call("GET", "/v1/actions", undefined, { authorization: "Bearer nonsense" })).status).toBe(401);
  expect((await app.call("GET", "/health")).status).toBe(200);
  app.engine.clock.advance(1_000);
  expect((await app.call("GET", "/v1/actions")).json.data).toHaveLength(1);
});

/** How many of so many requests of a key are admitted now. */
async function admitted(app: RealServer, key: string, count: number): Promise<number> {
  let passed = 0;
  for (let n = 0; n < count; n += 1) {
    const { status } = await app.ask("/v1/actions", { headers: { authorization: `Bearer ${key}` } });
    if (status === 200) passed += 1;
  }
  return passed;
}

test("beside a key that floods every other one makes its share of the account's requests, from the first on", async () => {
  await using app = await openRealServer({ starts: false, rateLimitPerSecond: PER_SECOND });
  // Alone it has all of them.
  expect(await admitted(app, KEYS.agent, 14)).toBe(12);
  expect(await admitted(app, KEYS.owner, 4)).toBe(4);
  // From the next second on they stay within the account's twelve, whoever comes first, and nothing is left unused.
  for (let second = 0; second < 2; second += 1) {
    app.engine.clock.advance(1_000);
    expect(await admitted(app, KEYS.agent, 13)).toBe(8);
    expect(await admitted(app, KEYS.owner, 4)).toBe(4);
  }
  app.engine.clock.advance(1_000);
  expect(await admitted(app, KEYS.owner, 13)).toBe(6);
  expect(await admitted(app, KEYS.agent, 13)).toBe(6);
  // Who has gone is waited for no longer than a second.
  app.engine.clock.advance(1_000);
  expect(await admitted(app, KEYS.agent, 13)).toBe(6);
  app.engine.clock.advance(1_000);
  expect(await admitted(app, KEYS.agent, 13)).toBe(12);
});

test("however many keys begin to ask at once, the account makes twice its requests at most", async () => {
  await using app = await openRealServer({ starts: false, rateLimitPerSecond: 3 });
  const more = (await app.call("POST", "/v1/keys", '{"name":"more","role":"reader"}')).json;
  app.engine.clock.advance(2_000);
  const passed: number[] = [];
  passed.push(await admitted(app, KEYS.agent, 5));
  for (const key of [KEYS.owner, KEYS.approver, KEYS.reader, more.key]) passed.push(await admitted(app, key, 3));
  expect(passed).toEqual([3, 1, 1, 1, 0]);
  // Another account has its own.
  expect(await admitted(app, STRANGER, 4)).toBe(3);
});

test("a key that floods hears of its refusals a second later, and nobody else waits", async () => {
  await using app = await openRealServer({ starts: false, rateLimitPerSecond: 3 });
  const timers = app.engine.clock.timers;
  const ask = () => app.ask("/v1/actions", { headers: { authorization: `Bearer ${KEYS.agent}` } });
  for (let count = 0; count < 6; count += 1) await ask();
  const held = [ask(), ask(), ask()];
  const answered: number[] = [];
  for (const answer of held) answer.then(({ status }) => answered.push(status)).catch(() => {});
  await until(() => app.engine.clock.timers >= timers + 3);
  const theirs = await app.call("GET", "/v1/actions", undefined, STRANGER);
  expect(theirs.status).toBe(200);
  const owners = await app.call("GET", "/v1/actions");
  expect(owners.status).toBe(200);
  expect(answered).toEqual([]);

  // Not all at the same moment, and none later than after a second and a half.
  app.engine.clock.advance(499);
  await Bun.sleep(5);
  expect(answered).toEqual([]);
  app.engine.clock.advance(501);
  await until(() => answered.length > 0);
  expect(answered.length).toBeLessThan(3);
  app.engine.clock.advance(500);
  for (const answer of await Promise.all(held)) {
    expect({ status: answer.status, wait: answer.headers.get("retry-after") }).toEqual({ status: 429, wait: "1" });
  }
  expect(app.engine.clock.timers).toBe(timers);
});

test("so many refusals wait at a time, and those that were told make room", async () => {
  const clock = new FakeClock();
  const rate = createRateLimit(clock, 1);
  const caller = { accountId: "acc", keyId: "key" };
  /** How many of these are told at once. */
  const toldOf = async (count: number) => {
    for (let at = 0; at < 3; at += 1) expect(() => rate.count(caller, 2)).toThrow();
    let told = 0;
    for (let at = 0; at < count; at += 1) {
      const waits = rate.slowDown(caller);
      waits.then(() => (told += 1)).catch(() => {});
    }
    await Bun.sleep(0);
    return told;
  };
  expect(await toldOf(REFUSALS_HELD_MAX + 2)).toBe(2);
  clock.advance(2_000);
  await Bun.sleep(0);
  expect(await toldOf(2)).toBe(0);
});
