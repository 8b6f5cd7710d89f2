import { describe, expect, test } from "bun:test";
import { KEYS_SHOWN_MAX } from "../../src/core/limits.ts";
import { ROLES } from "../../src/core/roles.ts";
import { anApiKey } from "../support/factory.ts";
import { openRealServer, STRANGER } from "./real-server.ts";
import { browserOf, cookiesIn, signedIn } from "./signed-in.ts";
import { openStubServer, OWN_ORIGIN } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer());
const ann = await signedIn(app);

const make = async (fields: Readonly<Record<string, string>>, who = ann) => {
  const sent = await who.send("/keys", { ...(await who.hiddenOf("/keys/new")), ...fields });
  const response = sent.status === 303 ? await who.follow(sent) : sent;
  const html = await response.text();
  return { sent, response, html, key: /og_[0-9A-Za-z]{36}/.exec(html)?.[0] ?? "" };
};

const keysOf = async () => app.engine.store.accounts.keys(app.engine.owner.accountId, 1_000);

const keyNamed = async (name: string) => (await keysOf()).find((key) => key.name === name);

const asks = (key: string) => fetch(`${app.url}/v1/account`, { headers: { authorization: `Bearer ${key}` } });

describe("the keys page", () => {
  test("makes a key, shows it once with lines that use it, and keeps it nowhere", async () => {
    const { sent, response, html, key } = await make({ name: "support agent", role: "agent", hold: "writes" });
    expect(sent.status).toBe(200);
    expect(JSON.stringify([...sent.headers])).not.toContain(key.slice(3));
    expect(response.headers.get("cache-control")).toBe("private, no-store");
    expect(response.url).not.toContain(key);
    for (const line of [
      `OUTGATE_URL=${OWN_ORIGIN}\nOUTGATE_API_KEY=${key}`,
      "Authorization: Bearer $OUTGATE_API_KEY",
      `claude mcp add --transport http outgate ${OWN_ORIGIN}/mcp --scope project --header &#39;Authorization: Bearer \${OUTGATE_API_KEY}&#39;`,
      "read -rs OUTGATE_API_KEY; export OUTGATE_API_KEY",
      "bearer_token_env_var = &quot;OUTGATE_API_KEY&quot;",
      `&quot;url&quot;: &quot;${OWN_ORIGIN}/mcp&quot;`,
    ]) {
      expect(html).toContain(line);
    }
    expect(await (await asks(key)).json()).toMatchObject({ key: { name: "support agent", role: "agent" } });
    expect(await keyNamed("support agent")).toMatchObject({ role: "agent", hold: "writes", last4: key.slice(-4) });
    const list = await ann.pageOf("/keys");
    expect(list).toContain("support agent");
    expect(list).toContain(">Writes<");
    expect(list).toContain(`…${key.slice(-4)}</code>`);
    expect(list).not.toContain(key.slice(3));
    expect(JSON.stringify(app.lines)).not.toContain(key.slice(3));
  });

  test("shows a new key again when its form comes again, and makes no other", async () => {
    const before = (await keysOf()).length;
    const fields = { ...(await ann.hiddenOf("/keys/new")), name: "twice", role: "reader", hold: "none" };
    const keyIn = async (sent: Promise<Response>) => /og_[0-9A-Za-z]{36}/.exec(await (await sent).text())?.[0];
    const [one, other] = await Promise.all([keyIn(ann.send("/keys", fields)), keyIn(ann.send("/keys", fields))]);
    expect(one).toMatch(/^og_/);
    expect([other, await keyIn(ann.send("/keys", fields))]).toEqual([one, one]);
    expect(await keysOf()).toHaveLength(before + 1);
    // In no cookie, and at no address that a cookie opens.
    const sent = await ann.send("/keys", fields);
    expect(sent.headers.getSetCookie()).toEqual([]);
    const id = (await keyNamed("twice"))?.id ?? "";
    expect((await ann.context(`/keys/${id}/made`)).status).toBe(404);
    app.engine.clock.advance(5 * 60_000);
    expect(await keyIn(ann.send("/keys", fields))).not.toBe(one);
    expect(await keysOf()).toHaveLength(before + 2);
  });

  test("makes one key of a form that is sent to two nodes at once, and each shows it", async () => {
    const { settingsFor: _rules, readSize: _size, oidc: _none, ...services } = app.engine.services;
    await using other = openStubServer({ ...services, clock: app.engine.clock });
    const fields = {
      ...(await ann.hiddenOf("/keys/new")),
      name: "of two nodes",
      role: "agent",
      hold: "writes",
      scope: "own",
    };
    const onOther = browserOf({ ...app, url: other.url }, ann.cookie);
    const sent = await Promise.all([ann, onOther].map((one) => one.send("/keys", { ...fields, loop_brake: "yes" })));
    const shown = await Promise.all(sent.map(async (answer) => /og_[0-9A-Za-z]{36}/.exec(await answer.text())?.[0]));
    expect(shown).toEqual([expect.stringMatching(/^og_/), shown[0]]);
    const { id } = (await keyNamed("of two nodes")) ?? {};
    expect((await keysOf()).filter(({ name }) => name === "of two nodes")).toHaveLength(1);
    const { text } = await app.call("GET", "/v1/rules");
    expect(text.split(String(id))).toHaveLength(2);
  });

  test("shows a new key again for five minutes with https, on its own page, and makes no other", async () => {
    await using server = await openRealServer({ baseUrl: "https://outgate.example" });
    const bob = await signedIn(server);
    const { sent, key } = await make({ name: "shown", role: "reader", hold: "none" }, bob);
    const path = sent.headers.get("location") ?? "";
    expect(path).toMatch(/^\/keys\/key_\w+\/made$/);
    for (const _load of ["once", "again"]) expect(await (await bob.follow(sent)).text()).toContain(key);
    const keys = await server.engine.store.accounts.keys(server.engine.owner.accountId, 99);
    expect(keys.filter(({ name }) => name === "shown")).toHaveLength(1);
    // By the path alone, and by the cookie of another key.
    const other = await make({ name: "other", role: "reader", hold: "none" }, bob);
    for (const cookies of [[], cookiesIn(other.sent)]) {
      const response = await bob.context(path, { headers: { cookie: [bob.cookie, ...cookies].join("; ") } });
      const html = await response.text();
      expect([response.status, html.includes(key)]).toEqual([404, false]);
      expect(html).toContain("revoke it and create another");
    }
  });

  test("sends a test action with the new key itself, for who has it, and no other", async () => {
    const { key } = await make({ name: "tested", role: "agent", hold: "all" });
    const id = (await keyNamed("tested"))?.id ?? "";
    const { form_token = "" } = await ann.hiddenOf("/keys/new");
    const send = (at: string, given: string) => ann.send(`/keys/${at}/test`, { form_token, key: given });
    const sent = await send(id, key);
    expect(sent.status).toBe(303);
    const actionId = sent.headers.get("location")?.replace("/actions/", "") ?? "";
    expect((await app.call("GET", `/v1/actions/${actionId}`)).json).toMatchObject({
      method: "GET",
      url: `${OWN_ORIGIN}/health`,
      status: "awaiting_approval",
    });
    expect(JSON.stringify(app.lines)).not.toContain(key.slice(3));
    // A wrong key, none, another key of the account, one of another account, and a key that may not create.
    const other = (await make({ name: "other one", role: "agent", hold: "none" })).key;
    for (const given of [`${key.slice(0, -1)}${key.endsWith("x") ? "y" : "x"}`, "", other, STRANGER]) {
      expect((await send(id, given)).status, given).toBe(404);
    }
    const reader = await make({ name: "reads only", role: "reader", hold: "none" });
    expect(reader.html).not.toContain("Send a test action");
    expect((await send((await keyNamed("reads only"))?.id ?? "", reader.key)).status).toBe(403);
  });

  test("rotates a key with its limits, and one that was taken out of the form is gone", async () => {
    const limits = { hosts: ["api.example.com"], methods: ["POST"], daily_actions: 5 };
    const { id } = (await app.call("POST", "/v1/keys", { name: "rotated", role: "agent", ...limits })).json;
    const path = `/keys/new?replaces=${id}`;
    const html = await ann.pageOf(path);
    expect(html).toContain("Rotate a key");
    expect(html).toContain("api.example.com</textarea>");
    const hidden = await ann.hiddenOf(path);
    const fields = { ...hidden, name: "heir", role: "agent", hold: "none", scope: "own", hosts: "api.example.com" };
    expect((await ann.send("/keys", fields)).status).toBe(200);
    const heir = (await app.call("GET", "/v1/keys")).json.data.find((one) => Reflect.get(one, "name") === "heir");
    expect(heir).toMatchObject({ hosts: ["api.example.com"], replaces: id });
    for (const gone of ["methods", "daily_actions"]) expect(heir).not.toHaveProperty(gone);
  });

  test("gives an owner key no line for agents, and every role its own first call", async () => {
    for (const role of ROLES) {
      const { html } = await make({ name: `a ${role}`, role, hold: "none" });
      expect(html.includes("claude mcp add"), role).toEqual(role !== "owner");
      const creates = role === "owner" || role === "agent";
      expect(html.includes("Send a first action"), role).toEqual(creates);
    }
  });

  test("asks again for what is missing or wrong, and keeps what was typed", async () => {
    const before = (await keysOf()).length;
    for (const [fields, problem] of [
      [{ name: "no role", hold: "none" }, "role-problem"],
      [{ name: "odd role", role: "king", hold: "none" }, "role-problem"],
      [{ name: "odd hold", role: "agent", hold: "x" }, "hold-problem"],
      [{ name: "", role: "agent", hold: "none" }, "name-problem"],
      [{ name: "  ", role: "agent", hold: "none" }, "name-problem"],
      [{ name: "\u202e☃", role: "agent", hold: "none" }, "name-problem"],
      [{ name: "x".repeat(101), role: "agent", hold: "none" }, "name-problem"],
    ] as const) {
      const { response, html } = await make(fields);
      expect([response.status, html.includes(`id="${problem}"`)], JSON.stringify(fields)).toEqual([400, true]);
      if (fields.name.startsWith("odd")) expect(html).toContain(`value="${fields.name}"`);
    }
    expect(await keysOf()).toHaveLength(before);
    const { id } = (await app.call("POST", "/v1/keys", { name: "held", role: "agent", hold: "all" })).json;
    const weaker = await make({ name: "weaker", role: "agent", scope: "own", hold: "writes", replaces: id });
    expect(weaker.html).toContain(
      'id="hold-problem" class="problem small">They are fewer than for the key it replaces',
    );
  });

  test("asks before it revokes, then nobody comes in by the key", async () => {
    const { key } = await make({ name: "goes", role: "reader", hold: "none" });
    const id = (await keyNamed("goes"))?.id ?? "";
    const path = `/keys/${id}/revoke`;
    expect(await ann.pageOf("/keys")).toContain(`href="${path}"`);
    expect(await ann.pageOf(path)).toContain("Revoke this key?");
    expect((await asks(key)).status).toBe(200);
    const response = await ann.send(path, await ann.hiddenOf(path));
    expect([response.status, response.headers.get("location")]).toEqual([303, `/keys?revoked=${id}`]);
    expect((await asks(key)).status).toBe(401);
    expect(await ann.pageOf(`/keys?revoked=${id}`)).toContain("is revoked and no longer works.");
    // Nothing is left to ask, and a second time is the same as once.
    expect((await ann.context(path)).headers.get("location")).toBe(`/keys?revoked=${id}`);
    expect((await ann.send(path, await ann.hiddenOf("/keys"))).status).toBe(303);
  });

  test("knows nothing of another account's keys", async () => {
    const [theirs] = await app.engine.store.accounts.keys(app.strangerId, 10);
    const id = theirs?.id ?? "";
    const fields = await ann.hiddenOf("/keys");
    for (const path of [`/keys/${id}/revoke`, "/keys/key_nobody/revoke", "/keys/x/revoke", "/keys/%00/revoke"]) {
      expect((await ann.context(path)).status, path).toBe(404);
      expect((await ann.send(path, fields)).status, path).toBe(404);
    }
    expect((await asks(STRANGER)).status).toBe(200);
    expect(await ann.pageOf(`/keys?revoked=${id}`)).not.toContain("is revoked");
  });

  test("comes in pages, each key once, the live ones first", async () => {
    await using server = await openRealServer();
    const bob = await signedIn(server);
    const { accounts } = server.engine.store;
    const { accountId } = server.engine.owner;
    for (let count = 0; count < KEYS_SHOWN_MAX; count += 1) {
      await accounts.addKey(anApiKey({ accountId, name: `key ${count}`, hash: `hash ${count}` }));
    }
    const all = await accounts.keys(accountId, 1_000);
    const first = await bob.pageOf("/keys");
    const second = await bob.pageOf(/href="(\/keys\?page=2)"/.exec(first)?.[1] ?? "");
    const ids = [...`${first}${second}`.matchAll(/href="\/keys\/(\w+)\/revoke"/g)].map(([, id]) => id ?? "");
    expect(ids).toEqual(all.map(({ id }) => id));
    expect(second).not.toContain("Next page");
    for (const odd of ["?page=0", "?page=x", "?page=9999", "?page=-1", "?revoked=x"]) {
      expect((await bob.context(`/keys${odd}`)).status, odd).toBe(200);
    }
  });
});
