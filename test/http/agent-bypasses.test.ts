import { describe, expect, test } from "bun:test";
import { connect, errorIn } from "../mcp/clients.ts";
import { openServer } from "../mcp/test-server.ts";
import { Target } from "../support/target.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

/** What an agent tries to get round the limits of its key and a person's decision, over REST, MCP, pages and bulk jobs. */

const target = await shared(new Target(() => Response.json({ done: true })));
const app = await shared(openServer());
const ann = await signedIn(app);

const post = (path: string, body: object, key: string) => app.call("POST", path, body, key);

const create = (key: string, body: object) => post("/v1/actions", { url: target.url, ...body }, key);

describe("callbacks of a key with limits", () => {
  const EVIL = "http://127.0.0.1:9/v1/payments?amount=9900";
  const makeKey = async (more: object) =>
    (await app.call("POST", "/v1/keys", { name: "lent", role: "agent", ...more })).json;
  const list = (url: string, method = "POST") => {
    const { host } = new URL(url);
    if (method === "POST") return app.call("POST", "/v1/callback-hosts", { host });
    return app.call("DELETE", `/v1/callback-hosts?host=${host}`);
  };
  const callbacksOf = async (id: string) =>
    (await app.engine.events(id)).flatMap((event) => (event.type === "callback" ? [event] : []));
  const dropped = { delivered: false, next_retry_at: null, error: expect.stringContaining("its host is not listed") };

  test("are asked again before each, also when the key is revoked or replaced since, and the timeline says so", async () => {
    await using hooks = new Target();
    for (const since of ["nothing", "revoked", "replaced"]) {
      await list(hooks.url);
      const { id: keyId, key } = await makeKey({ daily_actions: 50 });
      const { id } = (await create(key, { approve: true, callback: `${hooks.url}news` })).json;
      await app.engine.told(id, "callback", 1);
      if (since === "replaced") await makeKey({ replaces: keyId, inherit_limits: false });
      if (since !== "nothing") await app.call("DELETE", `/v1/keys/${keyId}`);
      await list(hooks.url, "DELETE");
      await post(`/v1/actions/${id}/cancel`, {}, KEYS.owner);
      await app.engine.told(id, "callback", 2);
      expect(await callbacksOf(id)).toMatchObject([{ delivered: true }, dropped]);
    }
    expect(hooks.received).toHaveLength(3);
  });

  test("stay bound where a person sends the request again, as it is or edited", async () => {
    await using hooks = new Target();
    const { key } = await makeKey({ hosts: [new URL(target.url).host] });
    for (const edited of [{}, { body: '{"n":2}' }]) {
      await list(hooks.url);
      const made = await create(key, { approve: true, body: { n: 1 }, callback: `${hooks.url}news` });
      const { id } = made.json;
      await app.engine.told(id, "callback", 1);
      const resent = async (of: string, more: object = {}) =>
        ann.send(`/actions/${of}/edit`, { ...(await ann.editFieldsOf(of)), ...more });
      const copied = await resent(id, edited);
      const copy = (copied.headers.get("location") ?? "").replace("/actions/", "");
      await app.engine.told(copy, "callback", 1);
      await list(hooks.url, "DELETE");
      const refused = await resent(id, edited);
      expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("is not listed")]);
      // What was copied while the host was listed, and a copy of the copy.
      await post(`/v1/actions/${copy}/cancel`, {}, KEYS.owner);
      await app.engine.told(copy, "callback", 2);
      expect(await callbacksOf(copy)).toMatchObject([{ delivered: true }, dropped]);
      expect((await resent(copy)).status).toBe(400);
    }
  });

  test("are no way round for a key that retries what another key created, single and in bulk", async () => {
    const { id: oldId, key: old } = await makeKey({});
    const ids = [(await create(old, { approve: true, callback: EVIL })).json.id];
    ids.push((await create(old, { approve: true, callback: EVIL })).json.id);
    for (const id of ids) await post(`/v1/actions/${id}/cancel`, {}, old);
    for (const bound of [{ methods: ["POST"] }, { hold: "writes" }]) {
      const { key } = await makeKey({ replaces: oldId, ...bound });
      const refused = await post(`/v1/actions/${ids[0]}/retry`, {}, key);
      expect([refused.status, refused.json.error.code]).toEqual([403, "forbidden"]);
      expect(refused.json.error.message).toContain("127.0.0.1:9 is not listed");
      const filter = { id: ids, status: ["cancelled"] };
      const begun = await post("/v1/bulk", { operation: "retry", filter }, key);
      await app.bulkRunner.run();
      expect((await app.call("GET", `/v1/bulk/${begun.json.id}`)).json).toMatchObject({ done: 0, failed: 2 });
    }
    expect((await post(`/v1/actions/${ids[0]}/retry`, {}, old)).status).toBe(200);
  });

  test("are none for a key that sends now what another key delayed, nor is its own hold", async () => {
    const { id: oldId, key: old } = await makeKey({});
    const waits = (await create(old, { delay_seconds: 9_999, callback: EVIL })).json.id;
    const plain = (await create(old, { delay_seconds: 9_999 })).json.id;
    const limited = (await makeKey({ replaces: oldId, methods: ["POST"] })).key;
    const held = (await makeKey({ replaces: oldId, hold: "all" })).key;
    for (const [id, key, why] of [
      [waits, limited, "127.0.0.1:9 is not listed"],
      [plain, held, "need approval"],
    ] as const) {
      const refused = await post(`/v1/actions/${id}/send-now`, {}, key);
      expect([refused.status, refused.json.error.code]).toEqual([403, "forbidden"]);
      expect(refused.json.error.message).toContain(why);
    }
    expect((await post(`/v1/actions/${plain}/send-now`, {}, limited)).status).toBe(200);
  });
});

test("an agent tells no target who somebody is: by REST, by MCP, nor where a person edits its request", async () => {
  const headers = { "X-WebAuth-User": "admin" };
  const field = { details: [{ field: "headers.X-WebAuth-User" }] };
  expect((await create(KEYS.agent, { headers })).json.error).toMatchObject(field);
  await using agent = await connect("modern", app.mcpUrl);
  expect(errorIn(await agent.call("create", { url: target.url, headers }))).toMatchObject(field);
  const { id } = (await create(KEYS.agent, { approve: true })).json;
  const fields = { ...(await ann.editFieldsOf(id)), headers: "X-WebAuth-User: admin" };
  const edited = await ann.send(`/actions/${id}/edit`, fields);
  expect([edited.status, await edited.text()]).toEqual([400, expect.stringContaining("tell a target who the user is")]);
  expect((await create(KEYS.owner, { headers })).status).toBe(201);
});

test("the daily limit of a key counts each retry of the key that calls it, single and in bulk, and attempts never", async () => {
  await using down = new Target(500);
  await using server = await openServer();
  const { engine } = server;
  const made = await server.call("POST", "/v1/keys", {
    name: "lent",
    role: "agent",
    scope: "account",
    daily_actions: 4,
  });
  const { key } = made.json;
  const today = async () =>
    (await server.call("GET", "/v1/keys")).json.data.find(({ id }) => id === made.json.id) as unknown as object;
  const failed = async (by: string) => {
    const { id } = (await server.call("POST", "/v1/actions", { url: down.url, retries: 3 }, by)).json;
    for (const attempts of [1, 2]) {
      await engine.saw(id, { status: "pending", attempts });
      engine.clock.advance(60_000);
    }
    await engine.saw(id, { status: "failed", attempts: 3 });
    return id;
  };
  const own = await failed(key);
  const theirs = [await failed(KEYS.agent), await failed(KEYS.agent), await failed(KEYS.agent)];
  expect(await today()).toMatchObject({ actions_today: 1 });
  const retry = (id: string, by: string) => server.call("POST", `/v1/actions/${id}/retry`, "{}", by);
  expect((await retry(own, key)).status).toBe(200);
  expect(await today()).toMatchObject({ actions_today: 2 });
  const begun = await server.call("POST", "/v1/bulk", { operation: "retry", filter: { id: theirs } }, key);
  await server.bulkRunner.run();
  expect((await server.call("GET", `/v1/bulk/${begun.json.id}`)).json).toMatchObject({ done: 2, failed: 1 });
  const results = (await server.call("GET", `/v1/bulk/${begun.json.id}/results?status=failed`)).json.data;
  expect(results).toMatchObject([
    { error: { code: "forbidden", message: expect.stringContaining("may create 4 actions a day (UTC)") } },
  ]);
  expect(await today()).toMatchObject({ actions_today: 4 });
  const [refused = { id: "" }] = results;
  const again = await retry(refused.id, key);
  expect([again.status, again.json.error.message]).toEqual([403, expect.stringContaining("retries included")]);
  await using agent = await connect("modern", server.mcpUrl, { key });
  expect(errorIn(await agent.call("retry", { id: refused.id }))).toMatchObject({ code: "forbidden" });
  expect(await engine.get(refused.id)).toMatchObject({ status: "failed", run: 1 });
  // A key without a daily limit pays for nothing.
  expect((await retry(refused.id, KEYS.agent)).status).toBe(200);
  expect(await today()).toMatchObject({ actions_today: 4 });
  engine.clock.advance(86_400_000);
  expect(await today()).toMatchObject({ actions_today: 0 });
});

describe("an agent that wants its action to be sent earlier", () => {
  const sendNow = (id: string, key: string) => post(`/v1/actions/${id}/send-now`, {}, key);

  test("can't send what a person approved for a time before that time; an owner key and a person can", async () => {
    await using calm = new Target(() => new Response("later", { status: 503 }));
    for (const how of ["owner key", "person"] as const) {
      const body = { url: calm.url, approve: true, delay_seconds: 30 * 86_400, retries: 1 };
      const { id } = (await create(KEYS.agent, body)).json;
      expect((await post(`/v1/actions/${id}/approve`, {}, KEYS.approver)).status).toBe(200);
      const refused = await sendNow(id, KEYS.agent);
      expect([refused.status, refused.json.error.code]).toEqual([409, "not_retryable"]);
      expect(refused.json.error.message).toContain("Wait until then, or ask a person");
      // Neither by another run: it needs another approval.
      expect((await post(`/v1/actions/${id}/retry`, {}, KEYS.agent)).status).toBe(409);
      expect(await app.engine.get(id)).toMatchObject({
        status: "pending",
        attempts: 0,
      });
      const path = `/actions/${id}`;
      if (how === "owner key") expect((await sendNow(id, KEYS.owner)).status).toBe(200);
      else expect((await ann.send(path, { ...(await ann.hiddenOf(path)), decision: "send_now" })).status).toBe(303);
      await app.engine.saw(id, { status: "failed", attempts: 1 });
    }
    expect(calm.received).toHaveLength(2);
    // An approval of another run is for the same time.
    const again = (await create(KEYS.agent, { url: calm.url, approve: true, delay_seconds: 86_400 })).json.id;
    await post(`/v1/actions/${again}/approve`, {}, KEYS.approver);
    await post(`/v1/actions/${again}/cancel`, {}, KEYS.agent);
    await post(`/v1/actions/${again}/retry`, {}, KEYS.agent);
    const facts = (await app.call("GET", `/v1/actions/${again}/facts`)).text;
    expect(facts).toContain("Not sent before");
    await post(`/v1/actions/${again}/approve`, {}, KEYS.approver);
    expect(await app.engine.get(again)).toMatchObject({ status: "pending", run: 2 });
    expect(calm.received).toHaveLength(2);
    // What nobody approved, its agent may send when it likes.
    const { id } = (await create(KEYS.agent, { delay_seconds: 86_400 })).json;
    expect((await sendNow(id, KEYS.agent)).status).toBe(200);
  });

  test("sends an approved call once, whatever it presses, where the target answered Retry-After", async () => {
    await using busy = new Target(() => new Response("", { status: 503, headers: { "retry-after": "3600" } }));
    const { id } = (await create(KEYS.agent, { url: busy.url, approve: true, retries: 100 })).json;
    await post(`/v1/actions/${id}/approve`, {}, KEYS.approver);
    const { dueAt } = await app.engine.saw(id, { status: "pending", attempts: 1 });
    for (let press = 0; press < 20; press += 1) {
      const refused = await sendNow(id, KEYS.agent);
      expect([refused.status, refused.json.error.code]).toEqual([409, "not_retryable"]);
      expect(refused.json.error.message).toContain(`before ${dueAt?.toISOString()}`);
    }
    expect(busy.received).toHaveLength(1);
  });

  test("does not get round Retry-After by another run either, single or in bulk, until the time is over", async () => {
    // More headers than are kept.
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`a-${at}`, "v"]));
    const answer = () => new Response("", { status: 503, headers: { ...many, "retry-after": "3600" } });
    await using busy = new Target(answer, answer, 200, 200);
    const failed = (await create(KEYS.agent, { url: busy.url, retries: 1 })).json.id;
    await app.engine.saw(failed, { status: "failed" });
    const cancelled = (await create(KEYS.agent, { url: busy.url })).json.id;
    await app.engine.saw(cancelled, { status: "pending", attempts: 1 });
    app.engine.clock.advance(60_000);
    await post(`/v1/actions/${cancelled}/cancel`, {}, KEYS.agent);
    const begun = await post(
      "/v1/bulk",
      { operation: "retry", filter: { id: [failed, cancelled], status: ["failed", "cancelled"] } },
      KEYS.agent,
    );
    await app.bulkRunner.run();
    expect((await app.call("GET", `/v1/bulk/${begun.json.id}`)).json).toMatchObject({ done: 0, failed: 2 });
    await using agent = await connect("modern", app.mcpUrl);
    for (const id of [failed, cancelled]) {
      const refused = await post(`/v1/actions/${id}/retry`, {}, KEYS.agent);
      expect([refused.status, refused.json.error.code]).toEqual([409, "not_retryable"]);
      expect(refused.json.error.message).toContain("Retry-After");
      expect(errorIn(await agent.call("retry", { id }))).toMatchObject({ code: "not_retryable" });
    }
    expect(busy.received).toHaveLength(2);
    // An owner key may, and from the time on the agent may too.
    expect((await post(`/v1/actions/${failed}/retry`, {}, KEYS.owner)).status).toBe(200);
    await app.engine.saw(failed, { status: "completed" });
    app.engine.clock.advance(3_600_000 - 60_000);
    expect((await post(`/v1/actions/${cancelled}/retry`, {}, KEYS.agent)).status).toBe(200);
    await app.engine.saw(cancelled, { status: "completed" });
  });
});
