import { describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer, STRANGER } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { until } from "../support/until.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer());

/** Bodies of creates: one that is sent at once and one that waits for a person. */
const at = (url: string, members = "") => `{"url":"${url}"${members}}`;

const held = (members = "") => at("http://127.0.0.1:9/", `,"approve":true${members}`);

const create = async (body: string) => (await app.call("POST", "/v1/actions", body)).json;

describe("an action over REST", () => {
  test("is delivered as it was written, and reads back the same", async () => {
    await using target = new Target(200);
    const body = `{"big":12345678901234567890,"one":1.0,"nul":"\\u0000"}`;
    const created = await create(at(target.url, `,"body":${body},"sync":true`));
    expect(created.status).toBe("completed");
    expect(target.received.map((received) => received.body)).toEqual([body]);
    expect((await app.call("GET", `/v1/actions/${created.id}`)).text).toContain(`"body":${body}`);
  });

  test("is answered with its end in sync, and as it was created without", async () => {
    await using target = new Target(200, 200);
    expect(await create(at(target.url))).toMatchObject({ status: "pending", attempts: 0 });
    expect(await create(at(target.url, `,"sync":true`))).toMatchObject({
      status: "completed",
      response_code: 200,
      duration_ms: expect.any(Number),
    });
  });

  test("that is there already is waited for too", async () => {
    const release = Promise.withResolvers<Response>();
    await using target = new Target(() => release.promise);
    const first = await create(at(target.url, `,"dedupe":"slow"`));
    await target.saw(1);
    const again = app.call("POST", "/v1/actions", at(target.url, `,"dedupe":"slow","sync":true`));
    // A wait sets a timer for its end.
    const { timers } = app.engine.clock;
    await until(() => app.engine.clock.timers > timers);
    release.resolve(new Response(null, { status: 204 }));
    const { status, json } = await again;
    expect({ status, id: json.id, state: json.status, deduplicated: json.deduplicated }).toEqual({
      status: 200,
      id: first.id,
      state: "completed",
      deduplicated: true,
    });
    expect(target.received).toHaveLength(1);
  });

  test("is found by the Idempotency-Key that matched it by dedupe, also when it has failed since", async () => {
    const answers = Promise.withResolvers<Response>();
    await using target = new Target(() => answers.promise);
    const first = await create(at(target.url, `,"dedupe":"meant","retries":1`));
    const again = () =>
      app.call("POST", "/v1/actions", at(target.url, `,"dedupe":"meant"`), { "Idempotency-Key": "order-7" });
    const found = await again();
    answers.resolve(new Response(null, { status: 500 }));
    await app.engine.saw(first.id, { status: "failed" });
    const retried = await again();
    const shown = [found, retried].map(({ status, json }) => [status, json.id, json.deduplicated]);
    expect(shown).toEqual([
      [200, first.id, true],
      [200, first.id, true],
    ]);
    expect(target.received).toHaveLength(1);
  });

  test("waits for a person with approve, and the endpoint says yes", async () => {
    const { id, status } = await create(held());
    expect(status).toBe("awaiting_approval");
    const { status: answer, json } = await app.call("POST", `/v1/actions/${id}/approve`, `{"reason":"fine"}`);
    expect(answer).toBe(200);
    expect(json).toMatchObject({ id, status: "pending", approved_by: "key:owner" });
  });

  test("keeps what it is told in its timeline, oldest first", async () => {
    const { id } = await create(held());
    await app.call("POST", `/v1/actions/${id}/cancel`, `{"reason":"Zu teuer.\\n👎"}`);
    const { data } = (await app.call("GET", `/v1/actions/${id}/timeline`)).json;
    expect(data.map(({ type, status }) => [type, status])).toEqual([
      ["created", "awaiting_approval"],
      ["held", "awaiting_approval"],
      ["rejected", "cancelled"],
    ]);
    expect(data[2]).toMatchObject({ actor: "key:owner", reason: "Zu teuer.\n👎" });
  });

  test("takes on_unknown, and shows it only when it is stop", async () => {
    expect(await create(held(`,"on_unknown":"stop"`))).toMatchObject({ on_unknown: "stop" });
    expect(await create(held(`,"on_unknown":"retry"`))).not.toHaveProperty("on_unknown");
  });
});

describe("a decision that comes at the wrong time", () => {
  const codes = { approve: "not_approvable", cancel: "not_cancellable", retry: "not_retryable" } as const;
  type Verb = keyof typeof codes;

  const refuses = async (id: string, ...verbs: readonly Verb[]) => {
    for (const verb of verbs) {
      const { status, json } = await app.call("POST", `/v1/actions/${id}/${verb}`);
      expect({ status, code: json.error.code }, verb).toEqual({ status: 409, code: codes[verb] });
    }
  };

  test("is 409 with its own code, in every state", async () => {
    const release = Promise.withResolvers<Response>();
    await using target = new Target(() => release.promise);
    const active = await create(at(target.url, `,"retries":1`));
    await target.saw(1);
    await refuses(active.id, "approve", "cancel", "retry");
    release.resolve(new Response(null, { status: 500 }));
    await app.engine.saw(active.id, { status: "failed" });
    await refuses(active.id, "approve", "cancel");

    const waiting = await create(held());
    await refuses(waiting.id, "retry");
    expect((await app.call("POST", `/v1/actions/${waiting.id}/cancel`)).status).toBe(200);
    await refuses(waiting.id, "approve", "cancel");

    await using fine = new Target(200);
    const done = await create(at(fine.url, `,"sync":true`));
    await refuses(done.id, "approve", "cancel", "retry");
  });
});

describe("a list", () => {
  const list = async (query: string) => (await app.call("GET", `/v1/actions?${query}`)).json;
  const idsOf = async (query: string) => (await list(query)).data.map(({ id }) => id);

  test("is narrowed by every parameter, and by all of them together", async () => {
    const before = app.engine.clock.now().toISOString();
    app.engine.clock.advance(5);
    const one = await create(`{"url":"http://127.0.0.1:4001/","method":"PUT","approve":true,"dedupe":"narrow 1"}`);
    app.engine.clock.advance(5);
    const between = app.engine.clock.now().toISOString();
    app.engine.clock.advance(5);
    const two = await create(`{"url":"http://127.0.0.1:4002/","method":"PATCH","approve":true,"dedupe":"narrow 2"}`);
    await app.call("POST", `/v1/actions/${two.id}/cancel`);
    const since = `created_after=${before}`;

    expect(await idsOf(since)).toEqual([two.id, one.id]);
    expect(await idsOf(`${since}&created_before=${between}`)).toEqual([one.id]);
    expect(await idsOf(`${since}&status=cancelled`)).toEqual([two.id]);
    expect(await idsOf(`${since}&status=cancelled&status=awaiting_approval`)).toEqual([two.id, one.id]);
    expect(await idsOf(`${since}&method=PUT`)).toEqual([one.id]);
    expect(await idsOf(`${since}&host=127.0.0.1:4002`)).toEqual([two.id]);
    expect(await idsOf(`${since}&host=127.0.0.1`)).toEqual([two.id, one.id]);
    expect(await idsOf("dedupe=narrow%201")).toEqual([one.id]);
    expect(await idsOf(`${since}&status=cancelled&method=PUT`)).toEqual([]);
  });

  test("goes on at its cursor, newest first, without a page that skips or repeats", async () => {
    const before = app.engine.clock.now().toISOString();
    app.engine.clock.advance(5);
    const made: string[] = [];
    for (let count = 0; count < 5; count += 1) made.unshift((await create(held())).id);
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page = await list(`created_after=${before}&limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
      expect(page.data.length).toBeLessThanOrEqual(2);
      seen.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor;
      // What comes in between belongs to no later page.
      await create(held());
    }
    expect(seen).toEqual(made);
  });
});

test("an owner reads the secret of an origin, and nobody else does", async () => {
  const read = (origin: string, key: string = KEYS.owner) =>
    app.call("GET", `/v1/signing-secret?origin=${origin}`, undefined, key);
  const { json } = await read("https://api.example.com");
  expect(json.secret).toMatch(/^whsec_/);
  expect((await read("https://API.example.com:443")).json.secret).toBe(json.secret);
  expect((await read("https://api.example.com:8443")).json.secret).not.toBe(json.secret);
  expect((await read("https://api.example.com", STRANGER)).json.secret).not.toBe(json.secret);
  for (const key of [KEYS.agent, KEYS.approver, KEYS.reader]) {
    expect((await read("https://api.example.com", key)).json.error.code).toBe("forbidden");
  }
});
