import { expect, test } from "bun:test";
import { answering } from "../actions/senders.ts";
import { HELD_PER_KEY_MAX } from "../../src/core/limits.ts";
import { aCreation, answered } from "../support/factory.ts";
import { openRealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const sender = answering(answered(200));
const app = await shared(openRealServer({ sender }));

/** A row for each way through the service; `test/core/policy.test.ts` has every method. */
test.each([
  ["agent", "none", "POST", true, true],
  ["agent", "writes", "GET", false, false],
  ["agent", "writes", "PUT", false, true],
  ["owner", "all", "GET", false, true],
] as const)(
  "of a key of role %s and hold %s a %s, approve %j, is held: %j",
  async (role, hold, method, approve, isHeld) => {
    const { key } = (await app.call("POST", "/v1/keys", { name: "one", role, hold })).json;
    const sent = sender.sent.length;
    const request = { url: "http://127.0.0.1:9/", method, approve };
    const { status, json } = await app.call("POST", "/v1/actions", request, key);
    expect([status, json]).toMatchObject([
      201,
      { approve: isHeld, approved_by: null, status: isHeld ? "awaiting_approval" : "pending" },
    ]);
    const inSync = await app.call(
      "POST",
      "/v1/actions",
      { ...request, url: "http://127.0.0.1:9/sync", sync: true },
      key,
    );
    if (!isHeld) {
      expect(inSync.json.status).toBe("completed");
      await app.engine.saw(json.id, { status: "completed" });
      expect(sender.sent).toHaveLength(sent + 2);
      return;
    }
    expect([inSync.status, inSync.json.error.code]).toEqual([400, "invalid_sync"]);
    // As long as nobody says yes nothing leaves, and every later run needs a yes of its own.
    app.engine.clock.advance(3_600_000);
    await app.call("POST", `/v1/actions/${json.id}/cancel`);
    const retried = await app.call("POST", `/v1/actions/${json.id}/retry`, { reason: "Please." }, key);
    expect(retried.json.status).toBe("awaiting_approval");
    expect(sender.sent).toHaveLength(sent);
  },
);

test("a key with ten thousand actions that wait is told to wait for decisions; other keys and calls go on", async () => {
  await using server = await openRealServer({ starts: false });
  const post = (path: string, key: string, body?: string) => server.call("POST", path, body, key);
  const hold = (key: string) => post("/v1/actions", key, `{"url":"http://127.0.0.1:9/","approve":true}`);
  const { id } = (await hold(KEYS.agent)).json;
  await post(`/v1/actions/${id}/cancel`, KEYS.agent);
  const { keyId, accountId } = await server.engine.get(id);
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
