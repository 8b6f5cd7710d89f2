import { describe, expect, test } from "bun:test";
import { connect, errorIn } from "../mcp/clients.ts";
import { openServer } from "../mcp/test-server.ts";
import { Listener } from "../support/listener.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

/** What agent A sends, and agent B must never read. */
const SECRET = "Bearer sk_live_4eC39HqLyjWDarjtT1zdp7dc";

const REASON_CANARY = "hunter2-canary";

const keys = { a: "", b: "", wide: "" };

const ids = { a: "", b: "", wide: "" };

const target = await shared(new Target(200));
const server = await shared(openServer());

const makeKey = (body: object) => server.call("POST", "/v1/keys", body);

for (const name of ["a", "b", "wide"] as const) {
  const made = await makeKey({ name, role: "agent", ...(name === "wide" ? { scope: "account" } : {}) });
  keys[name] = made.json.key;
  ids[name] = made.json.id;
}

const by = (key: string) => ({ authorization: `Bearer ${key}` });

const create = (key: string, body: object = {}) =>
  server.call("POST", "/v1/actions", { url: target.url, ...HELD, ...body }, key);

const HELD = { approve: true, headers: { Authorization: SECRET }, body: { password: REASON_CANARY } } as const;

const read = (path: string, key: string) => server.call("GET", path, undefined, key);

const post = (path: string, key: string, body = {}) => server.call("POST", path, body, key);

/** The data of the events of a stream that were told so far, once one names the action. */
async function eventsOf(key: string, about: () => Promise<string>): Promise<string> {
  await using listener = await Listener.open(`${server.url}/v1/events`, by(key));
  const id = await about();
  return JSON.stringify(await listener.heard(({ events }) => JSON.stringify(events).includes(id)));
}

describe("an agent that attacks the actions of another agent", () => {
  test("reads no secret of them: get, wait, list, timeline, events, MCP and a create that finds one", async () => {
    const asked = { dedupe: "attack-1", url: `${target.url}?password=${REASON_CANARY}` };
    const { id } = (await create(keys.a, { ...asked, reason: `password=${REASON_CANARY}` })).json;
    // As it is told to whoever decides, and to a reader, too.
    const facts = `/v1/actions/${id}/facts`;
    const toldToBoth = [(await read(facts, keys.b)).text, (await read(facts, KEYS.reader)).text];
    await server.call("POST", `/v1/actions/${id}/approve`, { reason: `password=${REASON_CANARY}` });
    await until(() => target.received.length > 0);
    await using agent = await connect("modern", server.mcpUrl, { key: keys.b });
    const found = await create(keys.b, asked);
    expect(found).toMatchObject({ status: 200, json: { id, deduplicated: true, differs: [] } });
    const answers = [
      (await read(`/v1/actions/${id}`, keys.b)).text,
      (await read(`/v1/actions/${id}?wait=1`, keys.b)).text,
      (await read("/v1/actions", keys.b)).text,
      (await read(`/v1/actions?created_by=${ids.a}`, keys.b)).text,
      (await read(`/v1/actions/${id}/timeline`, keys.b)).text,
      `attempts of act_: ${(await read(`/v1/actions/${id}/attempts`, keys.b)).text}`,
      await eventsOf(keys.b, async () => (await create(keys.a)).json.id),
      JSON.stringify(await agent.call("get", { id })),
      JSON.stringify(await agent.call("wait", { id, wait: 1 })),
      JSON.stringify(await agent.call("list", {})),
      JSON.stringify(await agent.call("create", { ...HELD, ...asked })),
      JSON.stringify(await agent.client.readResource({ uri: `outgate://actions/${id}` })),
      found.text,
      ...toldToBoth,
    ];
    for (const answer of answers) {
      expect(answer).toMatch(/act_|"type":"created"|"facts"/);
      expect(answer).not.toContain("sk_live");
      expect(answer).not.toContain(REASON_CANARY);
    }
    // Its creator, a key of the whole account and an owner read the same whole.
    for (const key of [keys.a, keys.wide, KEYS.owner]) {
      expect((await read(`/v1/actions/${id}`, key)).text).toContain(SECRET);
      expect(await eventsOf(key, async () => (await create(keys.a)).json.id)).toContain(SECRET);
    }
  });

  test("learns no value by trying it: what differs is compared as it is shown", async () => {
    await create(keys.a, { dedupe: "guess", body: { pin: "4711" } });
    const guesses = await Promise.all(
      ["4711", "4712", "0000"].map(async (pin) => (await create(keys.b, { dedupe: "guess", body: { pin } })).json),
    );
    expect(new Set(guesses.map((answer) => JSON.stringify(Reflect.get(answer, "differs")))).size).toBe(1);
    // Its creator is told.
    const own = await create(keys.a, { dedupe: "guess", body: { pin: "4712" } });
    expect(Reflect.get(own.json, "differs")).toEqual(["body"]);
  });

  test("cancels none, retries none that a person cancelled, and asks no person about one", async () => {
    const sent = target.received.length;
    const { id } = (await create(keys.a)).json;
    await using agent = await connect("modern", server.mcpUrl, {
      key: keys.b,
      answer: () => ({ action: "accept", content: { decision: "approve" } }),
    });
    const refused = { status: 403, json: { error: { code: "forbidden" } } };
    const words = `Action ${id} was created by another key`;
    expect(await post(`/v1/actions/${id}/cancel`, keys.b)).toMatchObject(refused);
    for (const tool of ["cancel", "retry", "approve"]) {
      expect(errorIn(await agent.call(tool, { id }))).toMatchObject({ code: "forbidden" });
    }
    expect(agent.questions).toEqual([]);
    await server.engine.actionService.cancel(server.engine.owner, id, "No.");
    const retried = await post(`/v1/actions/${id}/retry`, keys.b, { reason: "Again." });
    expect(retried).toMatchObject(refused);
    expect(retried.json.error.message).toContain(words);
    expect((await read(`/v1/actions/${id}`, KEYS.owner)).json.status).toBe("cancelled");
    expect(target.received.length).toBe(sent);
    // The verbs that it is shown stay those of the status.
    expect(Reflect.get((await read(`/v1/actions/${id}`, keys.b)).json, "actions")).toEqual(["retry"]);
    // Its creator may, and so may a key of the whole account.
    expect((await post(`/v1/actions/${id}/retry`, keys.a, { reason: "Again." })).status).toBe(200);
    expect((await post(`/v1/actions/${id}/cancel`, keys.wide)).status).toBe(200);
  });
});

test("created_by names the key that created an action, everywhere, and filters lists by it", async () => {
  const { id } = (await create(keys.b)).json;
  const creator = { id: ids.b, name: "b" };
  expect((await read(`/v1/actions/${id}`, keys.a)).json).toMatchObject({ created_by: creator });
  const listed = await read(`/v1/actions?created_by=${ids.b}`, keys.a);
  expect(listed.json.data.length).toBeGreaterThan(0);
  for (const one of listed.json.data) expect(one).toMatchObject({ created_by: creator });
  expect((await read("/v1/actions?created_by=key_nobody", keys.a)).json.data).toEqual([]);
  expect((await read("/v1/actions?created_by=ci", keys.a)).status).toBe(400);
  await using agent = await connect("modern", server.mcpUrl, { key: keys.a });
  expect(await agent.call("list", { created_by: ids.b, limit: 1 })).toMatchObject({
    structuredContent: { data: [{ id, created_by: creator }] },
  });
});

describe("a key that replaces another", () => {
  test("acts on what that one created, and on what the one before created, with its hold and scope", async () => {
    const first = (await makeKey({ name: "first", role: "agent", hold: "writes" })).json;
    const { id } = (await create(first.key)).json;
    const second = (await makeKey({ name: "second", role: "agent", replaces: first.id })).json;
    const third = (await makeKey({ name: "third", role: "agent", replaces: second.id })).json;
    expect(third).toMatchObject({ hold: "writes", scope: "own", replaces: second.id });
    await server.call("DELETE", `/v1/keys/${first.id}`);
    for (const { key } of [second, third]) {
      expect((await read(`/v1/actions/${id}`, key)).text).toContain(SECRET);
    }
    expect((await read(`/v1/actions/${id}`, keys.b)).text).not.toContain(SECRET);
    const late = (await create(third.key)).json.id;
    // Not the other way: what was handed over is what the older key created.
    expect((await read(`/v1/actions/${late}`, second.key)).text).not.toContain(SECRET);
    expect((await post(`/v1/actions/${id}/cancel`, third.key)).status).toBe(200);
    expect((await read(`/v1/actions/${id}`, third.key)).json).toMatchObject({ created_by: { id: first.id } });
    const audit = (await read("/v1/audit?kind=key_created&limit=1", KEYS.owner)).text;
    expect(audit).toContain(`"replaces":"${second.id}"`);
  });

  test("has no weaker hold and no other scope unless an owner says so, and takes the place of none of another account", async () => {
    const held = (await makeKey({ name: "held", role: "agent", hold: "all" })).json;
    const weaker = { name: "weaker", role: "agent", hold: "writes", replaces: held.id };
    expect(await makeKey(weaker)).toMatchObject({ status: 400, json: { error: { details: [{ field: "hold" }] } } });
    expect((await makeKey({ ...weaker, weaker_hold: false })).status).toBe(400);
    expect(await makeKey({ ...weaker, weaker_hold: true })).toMatchObject({ status: 201, json: { hold: "writes" } });
    const wide = (await makeKey({ name: "wide", role: "agent", scope: "account" })).json;
    expect((await makeKey({ name: "heir", role: "agent", replaces: wide.id })).json).toMatchObject({
      scope: "account",
    });
    // A key of another role has no scope to hand on.
    const reader = (await makeKey({ name: "reader", role: "reader", replaces: wide.id })).json;
    expect((await makeKey({ name: "narrow", role: "agent", replaces: reader.id })).json).toMatchObject({
      scope: "own",
    });
    const { accounts } = server.engine.store;
    const [theirs] = await accounts.keys(server.strangerId, 1);
    expect(await makeKey({ name: "x", role: "agent", replaces: theirs?.id })).toMatchObject({
      status: 400,
      json: { error: { details: [{ field: "replaces" }] } },
    });
    expect(await makeKey({ name: "x", role: "owner", scope: "own" })).toMatchObject({
      status: 400,
      json: { error: { details: [{ field: "scope" }] } },
    });
  });
});
