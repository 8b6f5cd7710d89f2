import { describe, expect, test } from "bun:test";
import { toRequester } from "../../src/core/judge.ts";
import type { Caller } from "../../src/core/roles.ts";
import { answering } from "../actions/senders.ts";
import { type Answer, openRealServer, type RealServer } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";
import { eventually } from "../support/eventually.ts";
import { requestFor } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { fresh } from "../support/shared.ts";

let app: RealServer;

fresh(async () => (app = await openRealServer({ starts: false, sender: answering(answered(503)) })));

const created = (request: object = {}, key: string = KEYS.agent) =>
  app.call("POST", "/v1/actions", { url: "https://api.example.com/pay", body: { amount: 7 }, ...request }, key);

/** The action as soon as it has this status, and so many attempts. */
function ended(id: string, status: string, attempts?: number) {
  return eventually(
    async () => {
      const { json } = await app.call("GET", `/v1/actions/${id}`);
      return json.status === status && (attempts === undefined || json["attempts"] === attempts) ? json : null;
    },
    `${status} after ${attempts ?? "some"} attempts`,
  );
}

const rule = (definition: object = {}) => app.call("POST", "/v1/rules", { name: "R", effect: "hold", ...definition });

describe("a client of an agent that says that its person agreed", () => {
  /** The agent's key over MCP. */
  async function elicited(): Promise<Caller> {
    const agent = await app.authenticate(`Bearer ${KEYS.agent}`);
    return { ...agent, via: "elicitation", isAgentCall: true };
  }

  test.each(["hold", "refuse"] as const)("approves nothing that a rule has come to %s", async (effect) => {
    const [before, after] = [await created({ approve: true }), await created({ approve: true })];
    const { actionService } = app.engine;
    const caller = await elicited();
    expect((await actionService.approve(caller, before.json.id, null)).status).toBe("pending");
    await rule({ effect });
    const id = after.json.id;
    expect(actionService.approve(caller, id, null)).rejects.toMatchObject({ code: "forbidden" });
    expect((await app.call("GET", `/v1/actions/${id}`)).json.status).toBe("awaiting_approval");
    expect((await app.call("POST", `/v1/actions/${id}/approve`, {}, KEYS.approver)).status).toBe(200);
  });
});

test("what a rule says and compares is told to the account, and not to whoever has the link of a receipt", async () => {
  const secret = { message: "Ask Dana", explain: true };
  const [held, refused] = [await created({ delay_seconds: 60 }), await created({ method: "PUT", delay_seconds: 60 })];
  await rule({ name: "Above 6", when: "action.method == 'PUT'", effect: "refuse", ...secret });
  await rule({ name: "Above 5", when: "action.body.amount > 5", ...secret });
  const atOnce = await created();
  expect(atOnce.json["policy"]).toMatchObject({ reason: "Ask Dana. It compares action.body.amount > 5" });
  await app.engine.start();
  app.engine.clock.advance(61_000);
  const actions = [
    [await ended(held.json.id, "awaiting_approval"), "Above 5"],
    [await ended(refused.json.id, "cancelled"), "Above 6"],
    [atOnce.json, "Above 5"],
  ] as const;
  for (const [{ id, receipt_url: receipt }, name] of actions) {
    const { json: timeline } = await app.call("GET", `/v1/actions/${id}/timeline`, undefined, KEYS.agent);
    expect(JSON.stringify(timeline)).toContain(`The rule \\"${name}\\" `);
    for (const accept of ["application/json", "text/html"]) {
      const shown = await fetch(app.url + receipt, { headers: { accept } });
      const text = await shown.text();
      expect(shown.status).toBe(200);
      expect(text).toContain("amount");
      expect(text).not.toMatch(/Above|Dana|action\.body|action\.method/);
    }
  }
});

test.each(['key.role == "agent"', 'key.name == "stdio"'])(
  "the agent at standard input is held where %s",
  async (when) => {
    const { owner, actionService } = app.engine;
    const stdio = { ...owner, keyId: null, keyName: "stdio", role: "agent", actor: "key:stdio" } as const;
    const ann = {
      ...owner,
      keyId: null,
      personId: "per_ann",
      keyName: "stdio",
      actor: "user:ann@example.com",
    } as const;
    await rule({ when });
    const statusOf = async (caller: Caller) => (await actionService.create(caller, requestFor({}))).action.status;
    expect([await statusOf(stdio), await statusOf(ann)]).toEqual(["awaiting_approval", "pending"]);
    // So is its own at a later look, and not what a person has copied of it.
    const held = await app.engine.get((await actionService.create(stdio, requestFor({}))).action.id);
    const copy = (await actionService.create(ann, requestFor({}), { original: held })).action;
    expect([toRequester(held).role, toRequester(copy).role]).toEqual(["agent", "owner"]);
  },
);

test("why a rule can't be decided has no secret of the request in it", async () => {
  const secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
  await rule({ methods: ["PUT"], when: "action.query.a == '1'" });
  await rule({ when: "action.headers[action.body.name] == '1'" });
  const twice = `https://api.example.com/pay?${secret}&${secret}`;
  for (const request of [{ method: "PUT", url: twice }, { body: { name: secret } }]) {
    const id = (await created(request)).json.id;
    for (const path of ["", "/timeline", "/facts"]) {
      const { json } = await app.call("GET", `/v1/actions/${id}${path}`, undefined, KEYS.approver);
      const text = JSON.stringify(json);
      expect(text).toContain("can't be decided");
      expect(text).not.toContain(secret);
    }
  }
});

test("an agent can't send callbacks by a retry to hosts that its rules do not see", async () => {
  const ids = await Promise.all(
    ["https://evil.example/x", "https://listed.example/x"].map(async (callback) => {
      const id = (await created({ callback })).json.id;
      await app.call("POST", `/v1/actions/${id}/cancel`, {}, KEYS.agent);
      return id;
    }),
  );
  await rule({ path: "/other" });
  await app.call("POST", "/v1/callback-hosts", { host: "listed.example" });
  const retried = (id: string | undefined, key: string) => app.call("POST", `/v1/actions/${id}/retry`, {}, key);
  const refused = await retried(ids[0], KEYS.agent);
  expect([refused.status, refused.json.error]).toMatchObject([403, { code: "forbidden" }]);
  expect(JSON.stringify(refused.json)).toContain("of agents where the account has rules");
  expect((await retried(ids[1], KEYS.agent)).status).toBe(200);
  expect((await retried(ids[0], KEYS.owner)).status).toBe(200);
});

test("of creates that run while a rule is edited, those that begin behind the edit are all decided by it", async () => {
  const path = `/v1/rules/${(await rule({ effect: "allow" })).json.id}`;
  const some = () => Array.from({ length: 15 }, () => created());
  const fateOf = ({ status, json }: Answer) =>
    status === 403 ? "refuse" : (json["policy"] as { effect: string }).effect;
  for (const [before, after] of [
    ["allow", "hold"],
    ["hold", "refuse"],
    ["refuse", "allow"],
  ] as const) {
    const racing = some();
    const edited = app.call("PATCH", path, { effect: after });
    racing.push(...some());
    expect((await edited).status).toBe(200);
    const later = await Promise.all(some());
    expect(new Set(later.map(fateOf))).toEqual(new Set([after]));
    expect(new Set((await Promise.all(racing)).map(fateOf)).isSubsetOf(new Set([before, after]))).toBe(true);
  }
});

describe("a call under way", () => {
  test.each([
    ["hold", "pending", 2],
    ["refuse", "cancelled", 1],
  ] as const)("that a rule comes to %s is %s after its next attempt", async (effect, status, attempts) => {
    const { engine } = app;
    await engine.start();
    // Its name leads nowhere here.
    const id = (await created()).json.id;
    await ended(id, "pending", 1);
    await rule({ effect });
    engine.clock.advance(60_000);
    await ended(id, status, attempts);
  });

  test("in a run that a person approved ends where a rule refuses it", async () => {
    const id = (await created({ approve: true })).json.id;
    await app.call("POST", `/v1/actions/${id}/cancel`);
    await app.call("POST", `/v1/actions/${id}/retry`);
    await rule({ effect: "refuse" });
    expect((await app.call("POST", `/v1/actions/${id}/approve`)).status).toBe(200);
    await app.engine.start();
    expect(await ended(id, "cancelled")).toMatchObject({ run: 2, attempts: 0, policy: { by: "rule" } });
  });
});
