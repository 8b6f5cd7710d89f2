import { describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { fresh, once } from "../support/shared.ts";

let app: RealServer;

let target: Target;

async function open(): Promise<AsyncDisposable> {
  target = new Target(200);
  app = await openRealServer();
  return {
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await target[Symbol.asyncDispose]();
    },
  };
}

const AGENT = { authorization: `Bearer ${KEYS.agent}` };

const agentId = async () => {
  const keys = await app.engine.store.accounts.keys(app.engine.owner.accountId, 99);
  return keys.find(({ hash }) => hash === app.engine.secrets.hash(KEYS.agent))?.id ?? "";
};

const pause = (body: object = {}) => app.call("POST", "/v1/pauses", body);

const create = (body: object = {}, query = "") =>
  app.call("POST", `/v1/actions${query}`, { url: target.url, ...body }, KEYS.agent);

const read = async (path: string, headers = {}) => (await app.call("GET", path, undefined, headers)).json as object;

describe("POST /v1/pauses", () => {
  fresh(open);

  test("stops a key at once; what it creates is taken, stays pending and says so; DELETE sends it", async () => {
    const keyId = await agentId();
    const made = await pause({ key_id: keyId, reason: "It loops." });
    expect(made).toMatchObject({
      status: 201,
      json: { kind: "key", key_id: keyId, reason: "It loops.", cancels: false },
    });
    const { clock } = app.engine;
    const pausedAt = clock.now().toISOString();
    const before = clock.timers;
    const creating = create({ sync: true }, "?wait=1");
    await until(() => clock.timers > before);
    clock.advance(1_000);
    const { status, json } = await creating;
    const expected = {
      id: made.json.id,
      kind: "key",
      reason: "It loops.",
      created_at: pausedAt,
    };
    expect({ status, json }).toMatchObject({ status: 201, json: { status: "pending", paused: true, pause: expected } });
    expect(target.received).toHaveLength(0);
    for (const path of [`/v1/actions/${json.id}`, "/v1/actions"]) {
      const answer = JSON.stringify(await read(path, AGENT));
      expect(answer).toContain(`"paused":true,"pause":${JSON.stringify(expected)}`);
    }
    expect(await read(`/v1/actions/${json.id}/timeline`)).toMatchObject({
      data: [{ type: "created" }, { type: "paused", actor: "key:owner", reason: "It loops." }],
    });
    expect(await read("/v1/pauses")).toMatchObject({ data: [{ id: made.json.id }] });
    const ended = await app.call("DELETE", `/v1/pauses/${made.json.id}`);
    expect(ended.status).toBe(204);
    await target.saw(1);
    const done = await read(`/v1/actions/${json.id}?wait=5`);
    expect(done).toMatchObject({ status: "completed" });
    expect("paused" in done || "pause" in done).toBe(false);
    expect(await read("/v1/pauses")).toEqual({ data: [] });
    expect((await app.call("DELETE", `/v1/pauses/${made.json.id}`)).status).toBe(204);
  });

  test("masks secrets of its reason for agents, also of their own actions", async () => {
    const secret = `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`;
    await pause({ reason: `Leaked: ${secret}` });
    const { json } = await create();
    const paths = [`/v1/actions/${json.id}`, "/v1/actions", `/v1/actions/${json.id}/timeline`];
    const seen = async (headers = {}) =>
      (await Promise.all(paths.map((path) => read(path, headers)))).map((answer) => {
        const text = JSON.stringify(answer);
        return [text.includes("Leaked: "), text.includes(secret)];
      });
    expect(JSON.stringify(json)).toContain("Leaked: ");
    expect(JSON.stringify(json)).not.toContain(secret);
    expect(await seen(AGENT)).toEqual(paths.map(() => [true, false]));
    expect(await seen()).toEqual(paths.map(() => [true, true]));
  });

  test("stops calls to one host, of everybody, however it is written; and says so", async () => {
    const { host } = new URL(target.url);
    const made = await pause({ host: host.toUpperCase(), reason: "It is down." });
    expect(made).toMatchObject({ status: 201, json: { kind: "host", host, key_id: null, reason: "It is down." } });
    expect(await pause({ host })).toMatchObject({ status: 200, json: made.json });
    for (const headers of [AGENT, {}]) {
      const { json } = await app.call("POST", "/v1/actions", { url: target.url }, headers);
      expect(json).toMatchObject({ status: "pending", paused: true, pause: { kind: "host", reason: "It is down." } });
    }
    const { data } = (await app.call("GET", "/v1/audit?kind=paused")).json;
    expect(data).toMatchObject([{ subject: made.json.id, detail: { of: "host", host } }]);
    await app.call("DELETE", `/v1/pauses/${made.json.id}`);
    await target.saw(2);
  });
});

describe("a request about pauses", () => {
  once(open);

  test.each([
    ["a key of nobody", { key_id: "key_nobody" }, 404, "not_found"],
    ["what is no id", { key_id: "agent" }, 400, "validation_error"],
    ["a URL as a host", { host: "https://api.example.com/" }, 400, "validation_error"],
    ["a host beside a key", { host: "api.example.com", key_id: "key_nobody" }, 400, "validation_error"],
  ])("with %s is refused, and pauses nothing", async (_name, body, status, code) => {
    expect(await pause(body)).toMatchObject({ status, json: { error: { code } } });
    expect(await read("/v1/pauses")).toEqual({ data: [] });
  });

  test("does not pause the account for a body that was left out", async () => {
    expect(await app.call("POST", "/v1/pauses")).toMatchObject({
      status: 400,
      json: { error: { code: "missing_body" } },
    });
  });

  test.each(["pau_nobody", "x"])("to end the pause %s is answered by 404", async (id) => {
    expect((await app.call("DELETE", `/v1/pauses/${id}`)).status).toBe(404);
  });
});

describe("DELETE /v1/keys/{id}", () => {
  fresh(open);

  const unfinished = async (query: string) => {
    const { id } = (await create({ approve: true })).json;
    const { status } = await app.call("DELETE", `/v1/keys/${await agentId()}${query}`);
    const { data } = (await app.call("GET", "/v1/pauses")).json;
    return { status, id, pauses: data.length };
  };

  test.each(["", "?unfinished=keep"])("%s changes no action", async (query) => {
    const { status, id, pauses } = await unfinished(query);
    expect({ status, pauses }).toEqual({ status: 200, pauses: 0 });
    await app.call("POST", `/v1/actions/${id}/approve`);
    await target.saw(1);
  });

  test("?unfinished=pause keeps what it left from being sent until the pause ends", async () => {
    const { status, id, pauses } = await unfinished("?unfinished=pause");
    expect({ status, pauses }).toEqual({ status: 200, pauses: 1 });
    const approved = await app.call("POST", `/v1/actions/${id}/approve`);
    expect(approved.json).toMatchObject({ status: "pending", paused: true, pause: { reason: "The key was revoked." } });
    expect(target.received).toHaveLength(0);
  });

  test("refuses any other word, and revokes nothing", async () => {
    const { status } = await unfinished("?unfinished=stop");
    expect(status).toBe(400);
    expect((await create()).status).toBe(201);
  });
});

describe("for people, without script,", () => {
  fresh(open);

  test("a page pauses a key, shows it wherever it matters, and resumes it", async () => {
    const ann = await signedIn(app);
    const keyId = await agentId();
    const page = await ann.pageOf(`/settings/pauses?key=${keyId}`);
    expect(page).toContain(`value="${keyId}" selected`);
    const hidden = await ann.hiddenOf("/settings/pauses");
    const answer = await ann.send("/settings/pauses", {
      ...hidden,
      scope: "key",
      key_id: keyId,
      reason: "<b>loops</b>",
    });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/settings/pauses"]);
    const { id } = (await create()).json;
    expect(await ann.pageOf("/settings/pauses")).toContain("&lt;b&gt;loops&lt;/b&gt;");
    const shown = await ann.pageOf(`/actions/${id}`);
    expect(shown).toContain("Paused since");
    expect(shown).toContain("&lt;b&gt;loops&lt;/b&gt;");
    expect(await ann.pageOf("/actions")).toContain("Paused");
    expect(await ann.pageOf("/keys")).toContain(">Paused<");
    const [row] = (await app.engine.pauseService.list(app.engine.owner)).map((one) => one.id);
    expect((await ann.send(`/settings/pauses/${row}/resume`, hidden)).status).toBe(303);
    await target.saw(1);
    expect(await ann.pageOf("/settings/pauses")).toContain("No pause is in force");
  });

  test("a page pauses a host, and shows a refused one again", async () => {
    const ann = await signedIn(app);
    const hidden = await ann.hiddenOf("/settings/pauses");
    const { host } = new URL(target.url);
    const refused = await ann.send("/settings/pauses", { ...hidden, scope: "host", host: "<b>" });
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain("&lt;b&gt;");
    expect(await read("/v1/pauses")).toEqual({ data: [] });
    expect(
      (await ann.send("/settings/pauses", { ...hidden, scope: "host", key_id: "", host: ` ${host} ` })).status,
    ).toBe(303);
    expect(await ann.pageOf("/settings/pauses")).toContain(host);
    const { id } = (await create()).json;
    expect(await ann.pageOf(`/actions/${id}`)).toContain("nothing is sent to this host");
    expect(await ann.pageOf("/settings/pauses?host=a.example")).toContain('value="a.example"');
  });

  test("a page pauses nothing until it was chosen what, and then what was chosen alone", async () => {
    const ann = await signedIn(app);
    const hidden = await ann.hiddenOf("/settings/pauses");
    const unclear = [
      { key_id: "", host: "" },
      { scope: "key", key_id: "" },
      { scope: "host", host: "", key_id: await agentId() },
      { scope: "everything" },
    ];
    for (const form of unclear) expect((await ann.send("/settings/pauses", { ...hidden, ...form })).status).toBe(400);
    expect(await read("/v1/pauses")).toEqual({ data: [] });
    const whole = { ...hidden, scope: "account", host: "left.example", key_id: await agentId() };
    expect((await ann.send("/settings/pauses", whole)).status).toBe(303);
    expect(await read("/v1/pauses")).toMatchObject({ data: [{ kind: "account" }] });
  });

  test("a paused action offers to end its pause, by name, instead of a Send now that does nothing", async () => {
    const ann = await signedIn(app);
    const { clock } = app.engine;
    const { host } = new URL(target.url);
    const runAt = new Date(clock.now().getTime() + 3_600_000).toISOString();
    const { id } = (await create({ run_at: runAt })).json;
    expect(await ann.pageOf(`/actions/${id}`)).toContain('value="send_now"');
    for (const [body, name] of [
      [{ host }, "Resume host"],
      [{ key_id: await agentId() }, "Resume key"],
    ] as const) {
      const { id: pauseId } = (await pause(body)).json;
      const paused = await ann.pageOf(`/actions/${id}`);
      expect({ offers: paused.includes(`>${name}</button>`), sends: paused.includes("send_now") }, name).toEqual({
        offers: true,
        sends: false,
      });
      const hidden = await ann.hiddenOf(`/actions/${id}`);
      expect(hidden["next"]).toBe(`/actions/${id}`);
      const answer = await ann.send(`/settings/pauses/${pauseId}/resume`, hidden);
      expect([answer.status, answer.headers.get("location")]).toEqual([303, `/actions/${id}`]);
    }
    expect(await read("/v1/pauses")).toEqual({ data: [] });
    expect(await ann.pageOf(`/actions/${id}`)).toContain('value="send_now"');
    // No other site is led to.
    const { id: pauseId } = (await pause({ host })).json;
    const hidden = { ...(await ann.hiddenOf(`/actions/${id}`)), next: "//evil.example/" };
    const away = await ann.send(`/settings/pauses/${pauseId}/resume`, hidden);
    expect(away.headers.get("location")).toBe("/settings/pauses");
  });

  test("an owner pauses everything from the account menu, and every page says so until it is resumed", async () => {
    const ann = await signedIn(app);
    const { id } = (await create({ approve: true })).json;
    const pages = [
      "/approvals",
      "/actions",
      "/overview",
      "/keys",
      "/audit",
      "/more",
      `/actions/${id}`,
      "/settings/none",
    ];
    const shown = async (path: string) => (await ann.context(path, { headers: { accept: "text/html" } })).text();
    const banner = "Everything is paused: nothing is sent.";
    const menu = await ann.pageOf("/overview");
    expect(menu).toContain('href="/settings/pauses?scope=account#add"');
    expect(menu).not.toContain(banner);
    // On a phone, at the head of the page behind the tabs.
    expect(await ann.pageOf("/more")).toMatch(/class="button button-bad" href="\/settings\/pauses\?scope=account#add"/);
    const asked = await ann.pageOf("/settings/pauses?scope=account");
    expect(asked).toMatch(/value="account" required="" checked/);
    const hidden = await ann.hiddenOf("/settings/pauses");
    const reason = `<b>Wrong refunds</b>, Authorization: Bearer sk_live_0123456789abcdefghij`;
    expect((await ann.send("/settings/pauses", { ...hidden, scope: "account", reason })).status).toBe(303);
    for (const path of pages) {
      const html = await shown(path);
      expect({ told: html.includes(banner), resumes: html.includes(">Resume everything</button>") }, path).toEqual({
        told: true,
        resumes: true,
      });
      expect(html).toContain("&lt;b&gt;Wrong refunds&lt;/b&gt;");
      expect(html).not.toContain("0123456789abcdefghij");
      expect(html).not.toContain('class="brake"');
    }
    // The page that answers a refused form has it, too.
    const refused = await ann.send("/settings/pauses", { ...hidden, scope: "host", host: "<b>" });
    expect(await refused.text()).toContain(banner);
    const [row] = (await app.engine.pauseService.list(app.engine.owner)).map((one) => one.id);
    await ann.send(`/settings/pauses/${row}/resume`, hidden);
    for (const path of pages) expect(await shown(path)).not.toContain(banner);
  });

  test("a pause of one host or key is no pause of everything", async () => {
    const ann = await signedIn(app);
    await pause({ host: "a.example" });
    await pause({ key_id: await agentId() });
    expect(await ann.pageOf("/overview")).not.toContain('class="stop"');
  });

  test("the page that revokes a key asks what becomes of its actions, and keeps them unless it is said", async () => {
    const ann = await signedIn(app);
    const path = `/keys/${await agentId()}/revoke`;
    expect(await ann.pageOf(path)).toMatch(/value="keep" required="" checked/);
    const fields = await ann.hiddenOf(path);
    expect((await ann.send(path, { ...fields, unfinished: "all" })).status).toBe(400);
    expect((await ann.send(path, { ...fields, unfinished: "pause" })).status).toBe(303);
    expect(await read("/v1/pauses")).toMatchObject({ data: [{ created_by: "user:ann@example.com" }] });
  });
});
