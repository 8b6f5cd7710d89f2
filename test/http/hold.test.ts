import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { HttpMethod } from "../../src/core/action.ts";
import { HOLDS, type Hold } from "../../src/core/roles.ts";
import { answering, type KeepingSender } from "../actions/senders.ts";
import { HELD_PER_KEY_MAX } from "../../src/core/limits.ts";
import { aCreation, answered } from "../support/factory.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";

const CREATORS = ["owner", "agent"] as const;

interface Case {
  readonly role: (typeof CREATORS)[number];
  readonly hold: Hold;
  readonly method: HttpMethod;
  readonly approve?: boolean;
  readonly sync: boolean;
}

/** One of each way through the service; `test/core/policy.test.ts` has every method. */
const cases: readonly Case[] = [
  ...HOLDS.flatMap((hold) =>
    (["GET", "PUT"] as const).flatMap((method) =>
      [false, true].map((sync) => ({ role: "agent" as const, hold, method, approve: false, sync })),
    ),
  ),
  ...[false, true].map((sync) => ({
    role: "agent" as const,
    hold: "none" as const,
    method: "POST" as const,
    approve: true,
    sync,
  })),
  { role: "owner", hold: "all", method: "GET", sync: false },
];

/** What decisions 3 says, in the words of its table and not of the code. */
const HELD: Readonly<Record<Hold, readonly string[]>> = {
  none: [],
  writes: ["PUT"],
  all: ["GET", "PUT"],
};

const keys = new Map<string, string>();

let sender: KeepingSender;

let app: RealServer;

beforeAll(async () => {
  sender = answering(answered(200));
  app = await openRealServer({ sender });
  for (const role of CREATORS) {
    for (const hold of HOLDS) {
      const made = await app.call("POST", "/v1/keys", JSON.stringify({ name: `${role} ${hold}`, role, hold }));
      keys.set(`${role} ${hold}`, made.json.key);
    }
  }
});

afterAll(() => app[Symbol.asyncDispose]());

const as = (role: string, hold: Hold) => ({ authorization: `Bearer ${keys.get(`${role} ${hold}`) ?? ""}` });

describe("what a key creates is held as the key says", () => {
  test.each(cases)("$role, hold $hold: $method, approve $approve, sync $sync", async (one) => {
    const { role, hold, method, approve, sync } = one;
    const isHeld = approve === true || HELD[hold].includes(method);
    const newest = await newestId();
    const sent = sender.sent.length;
    // What was rejected of one is nothing to the others.
    const request = { url: `http://127.0.0.1:9/${cases.indexOf(one)}`, method, approve, sync };
    const { status, json } = await app.call("POST", "/v1/actions", JSON.stringify(request), as(role, hold));

    if (sync && isHeld) {
      expect({ status, code: json.error.code }).toEqual({ status: 400, code: "invalid_sync" });
      expect(await newestId()).toBe(newest);
      return;
    }
    expect(status).toBe(201);
    expect(json).toMatchObject({ approve: isHeld, approved_by: null });
    const unheld = sync ? "completed" : "pending";
    expect(json.status).toBe(isHeld ? "awaiting_approval" : unheld);
    expect((await app.call("GET", `/v1/actions/${json.id}`)).json).toMatchObject({ approve: isHeld });
    if (!isHeld) {
      await app.engine.saw(json.id, { status: "completed" });
      expect(sender.sent).toHaveLength(sent + 1);
      return;
    }
    // As long as nobody says yes nothing leaves, and every later run needs a yes of its own.
    app.engine.clock.advance(3_600_000);
    await app.call("POST", `/v1/actions/${json.id}/cancel`);
    const retried = await app.call("POST", `/v1/actions/${json.id}/retry`, '{"reason":"Please."}', as(role, hold));
    expect(retried.json.status).toBe("awaiting_approval");
    expect(sender.sent).toHaveLength(sent);
  });
});

test("a key with ten thousand actions that wait is told to wait for decisions; other keys and calls go on", async () => {
  await using server = await openRealServer({ starts: false });
  const post = (path: string, key: string, body?: string) =>
    server.call("POST", path, body, { authorization: `Bearer ${key}` });
  const hold = (key: string) => post("/v1/actions", key, `{"url":"http://127.0.0.1:9/","approve":true}`);
  const { id } = (await hold(KEYS.agent)).json;
  await post(`/v1/actions/${id}/cancel`, KEYS.agent);
  const { keyId, accountId } = await server.engine.actionService.get(server.engine.owner, id);
  const many = Array.from({ length: HELD_PER_KEY_MAX }, () => aCreation({ approve: true, keyId, accountId }));
  await Promise.all(many.map((creation) => server.engine.store.actions.create(creation)));

  const { status, json } = await hold(KEYS.agent);
  expect({ status, code: json.error.code }).toEqual({ status: 409, code: "too_many_held" });
  expect(json.error.message).toStartWith("This key has 10000 actions that await approval.");
  const retried = await post(`/v1/actions/${id}/retry`, KEYS.agent);
  expect({ status: retried.status, code: retried.json.error.code }).toEqual({ status: 409, code: "not_retryable" });
  expect((await hold(KEYS.owner)).status).toBe(201);
  expect((await post("/v1/actions", KEYS.agent, `{"url":"http://127.0.0.1:9/"}`)).status).toBe(201);
  await post(`/v1/actions/${many[0]?.action.id}/approve`, KEYS.owner);
  expect((await hold(KEYS.agent)).status).toBe(201);
});

async function newestId(): Promise<string> {
  return (await app.call("GET", "/v1/actions?limit=1")).json.data[0]?.id ?? "";
}
