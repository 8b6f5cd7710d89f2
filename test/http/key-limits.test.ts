import { describe, expect, test } from "bun:test";
import { Listener } from "../support/listener.ts";
import { openRealServer, type RealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { textOf } from "../support/forms.ts";
import { fresh } from "../support/shared.ts";

let app: RealServer;

fresh(async () => (app = await openRealServer({ starts: false })));

interface Limited {
  readonly hosts?: readonly string[];
  readonly methods?: readonly string[];
  readonly daily_actions?: number;
  readonly expires_at?: string;
}

async function keyWith(limits: Limited, role = "agent") {
  const { status, json } = await app.call("POST", "/v1/keys", { name: "lent", role, ...limits });
  expect(status).toBe(201);
  const { id, key } = json;
  const headers = { authorization: `Bearer ${key}` };
  const create = (url: string, more: object = {}) =>
    app.call("POST", "/v1/actions", { url, approve: true, ...more }, headers);
  return { id, headers, create, json: json as unknown as Readonly<Record<string, unknown>> };
}

const listed = async (id: string) =>
  (await app.call("GET", "/v1/keys")).json.data.find((key) => key.id === id) as unknown as Readonly<
    Record<string, unknown>
  >;

const inHours = (hours: number) => new Date(app.engine.clock.now().getTime() + hours * 3_600_000).toISOString();

describe("a key with limits", () => {
  test("shows them, in normal form, and a key without them has none of their members", async () => {
    const expires_at = inHours(24);
    const limits = { methods: ["GET", "POST"], daily_actions: 3, expires_at };
    const { id, json } = await keyWith({ ...limits, hosts: ["API.example.com", "*.internal.example:8443"] });
    const hosts = ["api.example.com", "*.internal.example:8443"];
    expect(json).toMatchObject({ ...limits, hosts });
    expect(await listed(id)).toMatchObject({ ...limits, hosts, last_action_at: null, actions_today: 0 });
    const plain = await keyWith({});
    for (const name of ["hosts", "methods", "daily_actions", "expires_at"]) expect(plain.json).not.toHaveProperty(name);
    expect((await app.call("GET", "/v1/audit")).text).toContain(`"hosts":"${hosts.join(" ")}"`);
  });

  test("is refused with every problem of them at once", async () => {
    const body = {
      name: "x",
      role: "agent",
      hosts: ["fine.example", "https://a.example", "*.*"],
      expires_at: "2020-01-01T00:00:00Z",
    };
    const { status, json } = await app.call("POST", "/v1/keys", body);
    expect([status, json.error.details?.map(({ field }) => field)]).toEqual([
      400,
      ["hosts.1", "hosts.2", "expires_at"],
    ]);
  });

  test("creates only what they allow: 403 says which limit, and who can change it", async () => {
    const { create } = await keyWith({ hosts: ["api.example.com"], methods: ["POST"] });
    expect((await create("https://api.example.com/")).status).toBe(201);
    for (const [url, more, said] of [
      ["https://evil.example/", {}, "may call only api.example.com, and not evil.example"],
      ["https://api.example.com/", { method: "DELETE" }, "may use only POST, and not DELETE"],
    ] as const) {
      const { status, json } = await create(url, more);
      expect([status, json.error.code]).toEqual([403, "forbidden"]);
      expect(json.error.message).toContain(said);
      expect(json.error.message).toContain("An owner can create a key with other limits");
    }
  });

  test("passes each of them on to the key that replaces it, unless the request names it or says otherwise", async () => {
    const limits = { hosts: ["api.example.com"], methods: ["POST"], daily_actions: 3, expires_at: inHours(24) };
    const before = await keyWith(limits);
    const heirWith = (more: object) => {
      const body = { name: "heir", role: "agent", replaces: before.id, ...more };
      return app.call("POST", "/v1/keys", body);
    };
    expect((await heirWith({})).json).toMatchObject(limits);
    expect((await heirWith({ hosts: ["b.example"], daily_actions: 9 })).json).toMatchObject({
      ...limits,
      hosts: ["b.example"],
      daily_actions: 9,
    });
    const free = await heirWith({ inherit_limits: false, methods: ["GET"] });
    expect([free.status, Reflect.get(free.json, "methods")]).toEqual([201, ["GET"]]);
    for (const name of ["hosts", "daily_actions", "expires_at"]) expect(free.json).not.toHaveProperty(name);
    app.engine.clock.advance(24 * 3_600_000);
    const late = await heirWith({});
    expect([late.status, late.json.error.details?.map(({ field }) => field)]).toEqual([400, ["expires_at"]]);
    expect(late.text).toContain("has expired. Give a time");
    const end = inHours(1);
    expect((await heirWith({ expires_at: end })).json).toMatchObject({ ...limits, expires_at: end });
    expect((await heirWith({ inherit_limits: false })).status).toBe(201);
  });

  test("is listed with the newest action of the key, masked, and how many it created in 24 hours", async () => {
    const { id, create } = await keyWith({});
    expect(await listed(id)).toMatchObject({ last_action: null, actions_last_day: 0 });
    await create("https://api.example.com/first");
    const { json } = await create("https://api.example.com/orders?token=8f14e45fceea167a5a36dedd4bea2543");
    const { last_action, actions_last_day } = (await listed(id)) ?? {};
    expect(last_action).toMatchObject({
      id: json.id,
      method: "POST",
      status: "awaiting_approval",
      response_code: null,
    });
    expect(JSON.stringify(last_action)).toContain("https://api.example.com/orders?token=");
    expect(JSON.stringify(last_action)).not.toContain("8f14e45fceea167a5a36dedd4bea2543");
    expect(actions_last_day).toBe(2);
    app.engine.clock.advance(24 * 3_600_000 + 1);
    expect(await listed(id)).toMatchObject({ last_action: { id: json.id }, actions_last_day: 0 });
  });

  test("is refused from its end on, and its streams and waits end then", async () => {
    const { id, headers } = await keyWith({ expires_at: inHours(30) });
    expect((await app.call("GET", "/v1/account", undefined, headers)).status).toBe(200);
    await using stream = await Listener.open(`${app.url}/v1/events`, headers);
    await stream.heard((heard) => heard.others.length > 0);
    for (let hours = 0; hours < 29; hours += 1) app.engine.clock.advance(3_600_000);
    expect((await app.call("GET", "/v1/account", undefined, headers)).status).toBe(200);
    app.engine.clock.advance(3_600_000);
    const over = await app.call("GET", "/v1/account", undefined, headers);
    expect([over.status, over.json.error.code]).toEqual([401, "unauthorized"]);
    expect(await stream.over()).toBe("closed");
    const ann = await signedIn(app);
    expect(await ann.pageOf("/keys")).toContain("Expired");
    expect(await listed(id)).toMatchObject({ revoked_at: null });
  });
});

test("the key pages make a key with limits, show them, and offer them again for a key that replaces it", async () => {
  const ann = await signedIn(app);
  const { form_token = "" } = await ann.hiddenOf("/keys/new");
  const fields = {
    form_token,
    name: "limited",
    role: "agent",
    hold: "none",
    scope: "own",
    hosts: "api.example.com\r\n*.internal.example\r\n",
    method_POST: "yes",
    daily_actions: "25",
    expires_at: "2026-06-01T12:00",
  };
  const wrong = await ann.send("/keys", { ...fields, hosts: "https://a.example", daily_actions: "many" });
  const html = await wrong.text();
  expect(wrong.status).toBe(400);
  for (const said of ["Enter a whole number from 1", `value="many"`, "https://a.example</textarea>"]) {
    expect(html).toContain(said);
  }
  expect((await ann.send("/keys", fields)).status).toBe(200);
  const all = (await app.call("GET", "/v1/keys")).json.data;
  const key = all.find((one) => Reflect.get(one, "name") === "limited");
  expect(key).toMatchObject({
    hosts: ["api.example.com", "*.internal.example"],
    methods: ["POST"],
    daily_actions: 25,
    expires_at: "2026-06-01T12:00:00.000Z",
  });
  const page = await ann.pageOf("/keys");
  expect(textOf(page)).toContain("api.example.com, *.internal.example POST 0 of 25 a day until 1 Jun 2026");
  const soon = new Date(app.engine.clock.now().getTime() + 60_000).toISOString();
  const short = { name: "short", role: "agent", methods: ["GET"], expires_at: soon };
  expect((await app.call("POST", "/v1/keys", short)).status).toBe(201);
  app.engine.clock.advance(120_000);
  expect(await ann.pageOf("/keys")).toMatch(/<span class="says-bad">ended <time/);
  const again = await ann.pageOf(`/keys/new?replaces=${key?.id ?? ""}`);
  expect(again).toContain("*.internal.example</textarea>");
  expect(again).toMatch(/<input name="daily_actions"[^>]* value="25"/);
});
