import { describe, expect, test } from "bun:test";
import { bootstrap } from "../../src/accounts/bootstrap.ts";
import { createAuthenticate } from "../../src/accounts/authenticate.ts";
import { AccountJson } from "../../src/accounts/account.ts";
import { compile } from "../../src/api/check.ts";
import { systemIds } from "../../src/core/ids.ts";
import { refusalOf } from "../actions/callers.ts";
import { eventually } from "../support/eventually.ts";
import { openRealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { exchange, readAnswer, request } from "./wire.ts";
import { shared } from "../support/shared.ts";
import { until } from "../support/until.ts";

const account = compile(AccountJson);

// Nothing is dispatched and the clock stands still: whoever waits waits until something ends it.
const app = await shared(openRealServer({ starts: false }));

const bytesOf = (text: string) => text.replace(/"req_[^"]+"/, '"req"');

const read = (key: string) => app.call("GET", "/v1/account", undefined, key);

const revoke = (id: string) => app.call("DELETE", `/v1/keys/${id}`);

async function newKey(role = "agent") {
  const { json } = await app.call("POST", "/v1/keys", { name: "lent", role });
  return { id: json.id, key: json.key };
}

/** Lets requests come to where they wait: each has a timer on the clock from then on. */
const untilTimers = (count: number) => until(() => app.engine.clock.timers >= count);

describe("DELETE /v1/keys/{id}", () => {
  test("answers with the key and what it left, and the key is the same 401 as an unknown one at once", async () => {
    const { id, key } = await newKey();
    // In use, and so remembered.
    expect((await read(key)).status).toBe(200);
    const bodies = [{ approve: true }, { run_at: "2027-01-01T00:00:00Z" }];
    for (const body of bodies) {
      await app.call("POST", "/v1/actions", { url: "http://127.0.0.1:9/", ...body }, key);
    }
    const { status, json } = await revoke(id);
    const left = { unfinished_actions: 2, held_actions: 1, created_keys: 0 };
    expect({ status, json }).toMatchObject({ status: 200, json: { id, revoked_by: "key:owner", ...left } });
    const [refused, unknown] = [await read(key), await read("og_unknown_0123456789abcdefghij")];
    expect([refused.status, bytesOf(refused.text)]).toEqual([401, bytesOf(unknown.text)]);
    const shown = (await app.call("GET", "/v1/keys")).json.data.find((one) => one.id === id);
    expect(shown).toMatchObject({ revoked_at: app.engine.clock.now().toISOString() });
  });

  test("with unfinished=cancel rejects nothing: the key that follows may ask at once, and nobody is warned", async () => {
    const { id, key } = await newKey();
    const ask = (url: string, by: string) => app.call("POST", "/v1/actions", { url, approve: true }, by);
    const { json: first } = await ask("http://127.0.0.1:9/refunds/1", key);
    const next = (await app.call("POST", "/v1/keys", { name: "next", role: "agent", replaces: id })).json.key;
    await app.call("DELETE", `/v1/keys/${id}?unfinished=cancel`);
    const ended = async () =>
      (await app.engine.events(first.id)).find(({ type }) => type !== "created" && type !== "held");
    const end = await eventually(async () => (await ended()) ?? null, "the action of the revoked key ends");
    expect(end).toMatchObject({ type: "cancelled", actor: "key:owner" });
    const again = await ask("http://127.0.0.1:9/refunds/1", next);
    expect(again.status).toBe(201);
    const { json: similar } = await ask("http://127.0.0.1:9/refunds/2", next);
    const { risks } = (await app.call("GET", `/v1/actions/${similar.id}/facts`)).json as unknown as {
      risks: { name: string }[];
    };
    expect(risks.map(({ name }) => name)).not.toContain("similar_rejected");
    // By contrast a person's no.
    await app.call("POST", `/v1/actions/${again.json.id}/cancel`);
    expect((await ask("http://127.0.0.1:9/refunds/1", next)).status).toBe(400);
  });

  test("refuses a key that the revoked one is just creating", async () => {
    const { id } = await newKey("owner");
    await revoke(id);
    const { owner, services } = app.engine;
    const late = services.keyService.create({ ...owner, keyId: id }, { name: "late", role: "owner" });
    expect(await refusalOf(late)).toMatchObject({ code: "unauthorized" });
  });

  test("ends what waits by the key: it is told no more, and the action goes on", async () => {
    const { id, key } = await newKey();
    const held = await app.engine.create({ approve: true });
    const timers = app.engine.clock.timers;
    const body = `{"url":"http://127.0.0.1:9/","sync":true}`;
    const waiting = [
      app.call("GET", `/v1/actions/${held.id}?wait=120`, undefined, key),
      app.call("POST", "/v1/actions?wait=120", body, key),
    ];
    const others = app.call("GET", `/v1/actions/${held.id}?wait=120`);
    await untilTimers(timers + 3);
    await revoke(id);
    for (const answer of await Promise.all(waiting)) {
      expect({ status: answer.status, code: answer.json.error.code }).toEqual({ status: 401, code: "unauthorized" });
    }
    // Nobody else's wait has ended.
    expect(app.engine.clock.timers).toBe(timers + 1);
    await app.engine.actionService.cancel(app.engine.owner, held.id, null);
    expect((await others).json.status).toBe("cancelled");
  });

  test("refuses a create whose body was still on its way: no row", async () => {
    const { id, key } = await newKey();
    const newest = async () => (await app.call("GET", "/v1/actions?limit=1")).json.data[0]?.id;
    const before = await newest();
    const body = `{"url":"http://127.0.0.1:9/","approve":true}`;
    const headers = [
      `Authorization: Bearer ${key}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
      "Connection: close",
    ];
    // In use before, so that the half request is let in on what is remembered.
    await read(key);
    const head = request("POST /v1/actions", headers, body.slice(0, 10));
    const startSession = async () => Bun.sleep(50);
    const revoked = async () => void (await revoke(id));
    const { text } = await exchange(app.port, [head, startSession, revoked, body.slice(10)]);
    expect(readAnswer(text).status).toBe(401);
    expect(await newest()).toBe(before);
  });

  test("may end its own key, and the account's last: only the first account's way back is left", async () => {
    await using lonely = await openRealServer({ starts: false });
    const { store, secrets, clock } = lonely.engine;
    const keys = (await lonely.call("GET", "/v1/keys")).json.data;
    const me: unknown = (await lonely.call("GET", "/v1/account")).json;
    if (!account.accepts(me)) throw new Error("not an account");
    const own = me.key.id;
    for (const { id } of keys.filter((key) => key.id !== own)) await lonely.call("DELETE", `/v1/keys/${id}`);
    expect((await lonely.call("DELETE", `/v1/keys/${own}`)).status).toBe(200);
    expect((await lonely.call("GET", "/v1/account")).status).toBe(401);

    // The next start with the same key does not bring it back; a new one is let in.
    const { accounts, people, facts } = store;
    const deps = { accounts, people, facts, secrets, ids: systemIds, clock };
    const authenticate = createAuthenticate({ store, clock }, { secrets, isStopped: () => false });
    await bootstrap({ ...deps, givenOwnerKey: KEYS.owner });
    expect(await refusalOf(authenticate(`Bearer ${KEYS.owner}`))).toMatchObject({ code: "unauthorized" });
    await bootstrap({ ...deps, givenOwnerKey: "a-new-key-of-the-operator" });
    expect(await authenticate("Bearer a-new-key-of-the-operator")).toMatchObject({ role: "owner" });
  });
});
