import { describe, expect, test } from "bun:test";
import { CREDENTIAL_REQUESTS_PER_DAY_MAX, CREDENTIAL_REQUESTS_PER_KEY_MAX, DAY_MS } from "../../src/core/limits.ts";
import { KEYS } from "../http/stub-server.ts";
import { openCredentials, SECRET } from "./rig.ts";
import { shared } from "../support/shared.ts";

const rig = await shared(openCredentials());

const PATH = "/v1/credential-requests";

const ask = (body: object, key: string = KEYS.agent) =>
  rig.call("POST", PATH, { reason: "To refund order 4711.", ...body }, key);

const read = async (id: unknown, key: string = KEYS.agent) =>
  (await rig.call("GET", `${PATH}/${String(id)}`, undefined, key)).json;

const idsOf = async (query = "", key: string = KEYS.owner) => {
  const { json } = await rig.call("GET", `${PATH}${query}`, undefined, key);
  return json.data.map(({ id }) => id);
};

/** An agent's key of its own, so that no other test counts. */
async function newAgent() {
  const { json } = await rig.call("POST", "/v1/keys", { name: "bot", role: "agent" });
  return { key: json.key, id: json.id };
}

const decline = (id: unknown, body: object = {}, key: string = KEYS.owner) =>
  rig.call("POST", `${PATH}/${String(id)}/decline`, body, key);

const grant = (id: unknown, more: object = {}, key: string = KEYS.owner) => {
  const credential = { name: "stripe-live", kind: "bearer", secret: SECRET, hosts: [rig.host], ...more };
  return rig.call("POST", `${PATH}/${String(id)}/grant`, credential, key);
};

const audited = async (id: unknown) => {
  const { json } = await rig.call("GET", "/v1/audit?limit=100");
  const rows = json.data.filter(({ subject }) => subject === id);
  return rows.map(({ kind, actor, detail }) => ({ kind, actor, detail }));
};

describe("a request for a credential", () => {
  test("is granted by an owner: its key uses the credential at once, and learns its name alone", async () => {
    const asked = await ask({ host: rig.host.toUpperCase(), name: "stripe", paths: ["/v1"], methods: ["POST"] });
    const id = asked.json.id;
    expect(asked).toMatchObject({
      status: 201,
      json: {
        id: expect.stringMatching(/^crq_/),
        status: "pending",
        host: rig.host,
        name: "stripe",
        paths: ["/v1"],
        methods: ["POST"],
        reason: "To refund order 4711.",
        credential: null,
        key_id: rig.agentId,
        created_by: "key:agent",
        decided_at: null,
      },
    });
    expect((await rig.create()).status).toBe(400);
    const other = await newAgent();
    const granted = await grant(id, { keys: [other.id] });
    expect(granted).toMatchObject({
      status: 200,
      json: { status: "granted", credential: "stripe-live", decided_by: "key:owner" },
    });
    expect(await read(id)).toMatchObject({ status: "granted", credential: "stripe-live", decision_reason: null });
    await rig.ended(await rig.create());
    expect(rig.target.received.at(-1)?.headers.get("authorization")).toBe(`Bearer ${SECRET}`);
    const { json: stored } = await rig.call("GET", "/v1/credentials/stripe-live");
    // What the agent has suggested counts for nothing.
    expect(stored).toMatchObject({ keys: [other.id, rig.agentId], hosts: [rig.host] });
    expect(stored).not.toHaveProperty("paths");
    expect(await audited(id)).toEqual([
      {
        kind: "credential_request_granted",
        actor: "key:owner",
        detail: { via: "api", host: rig.host, name: "stripe-live" },
      },
      { kind: "credential_requested", actor: "key:agent", detail: { via: "api", host: rig.host } },
    ]);
    expect([(await grant(id, { name: "second" })).status, (await decline(id)).status]).toEqual([409, 409]);
    const all = [asked, granted, await rig.call("GET", PATH), await rig.call("GET", "/v1/audit?limit=100")];
    expect(JSON.stringify(all)).not.toContain(SECRET);
  });

  test("is declined with a reason, which its key reads, and which answers the same request for a day", async () => {
    const { key } = await newAgent();
    const asked = await ask({ host: "b.example" }, key);
    const { status, json } = await decline(asked.json.id, { reason: "Use the sandbox." });
    expect([status, json.status]).toEqual([200, "declined"]);
    const again = await ask({ host: "b.example", reason: "Please." }, key);
    expect(again).toMatchObject({
      status: 200,
      json: { id: asked.json.id, status: "declined", decision_reason: "Use the sandbox.", credential: null },
    });
    expect((await ask({ host: "b.example", methods: ["GET"] }, key)).status).toBe(201);
    rig.app.engine.clock.advance(DAY_MS);
    expect((await ask({ host: "b.example" }, key)).json.status).toBe("pending");
    expect((await audited(asked.json.id))[0]).toEqual({
      kind: "credential_request_declined",
      actor: "key:owner",
      detail: { via: "api", host: "b.example" },
    });
  });

  test("is answered with itself while it is open, whatever else is asked for that host", async () => {
    const { key } = await newAgent();
    const first = await ask({ host: "c.example:443" }, key);
    const again = await ask({ host: "C.Example.", reason: "Other words.", paths: ["/x"] }, key);
    expect(again).toMatchObject({ status: 200, json: { id: first.json.id, host: "c.example" } });
    expect((await ask({ host: "c.example:8443" }, key)).status).toBe(201);
  });

  test("is seen by its own key, approvers and readers, and answered by owners alone", async () => {
    const [one, other] = [await newAgent(), await newAgent()];
    const words = `With ${SECRET} it works.`;
    const { json } = await ask({ host: "d.example", reason: words, paths: [`/${SECRET}`] }, one.key);
    const { id } = json;
    expect(await idsOf("", one.key)).toEqual([id]);
    expect([await idsOf("?status=declined", one.key), await idsOf("?status=cancelled", one.key)]).toEqual([[], []]);
    expect(await idsOf("?status=pending", other.key)).toEqual([]);
    expect(await read(id, other.key)).toMatchObject({ error: { code: "not_found" } });
    expect(await read(id, one.key)).toMatchObject({ reason: words });
    for (const key of [KEYS.approver, KEYS.reader]) {
      expect(await idsOf("?status=pending", key)).toContain(id);
      expect(JSON.stringify(await read(id, key))).not.toContain(SECRET);
    }
    for (const key of [KEYS.approver, KEYS.reader, one.key]) {
      expect([(await grant(id, {}, key)).status, (await decline(id, {}, key)).status]).toEqual([403, 403]);
    }
    expect((await ask({ host: "d.example" }, KEYS.approver)).status).toBe(403);
    expect((await read(id)) satisfies object).toMatchObject({ error: { code: "not_found" } });
    expect((await read(id, KEYS.owner))["status"]).toBe("pending");
    await decline(id, { reason: `No: ${SECRET}` });
    expect(JSON.stringify(await read(id, KEYS.reader))).not.toContain(SECRET);
    expect(await read(id, one.key)).toMatchObject({ decision_reason: `No: ${SECRET}` });
  });

  test("stays open where its answer is wrong", async () => {
    const { key } = await newAgent();
    const { json } = await ask({ host: "e.example" }, key);
    await rig.add({ name: "taken" });
    expect(await grant(json.id, { name: "taken" })).toMatchObject({
      status: 400,
      json: { error: { details: [{ field: "name" }] } },
    });
    const wrong = await grant(json.id, { name: "fine", secret: "has space", hosts: ["*.com"] });
    expect([wrong.status, wrong.text.includes("has space")]).toEqual([400, false]);
    expect(await read(json.id, key)).toMatchObject({ status: "pending" });
  });

  test("is refused beyond its bounds", async () => {
    const { key } = await newAgent();
    const full = CREDENTIAL_REQUESTS_PER_KEY_MAX;
    for (let n = 0; n < full; n += 1) expect((await ask({ host: `h${n}.example` }, key)).status).toBe(201);
    expect(await ask({ host: "more.example" }, key)).toMatchObject({
      status: 409,
      json: { error: { code: "too_many_held" } },
    });
    for (const id of await idsOf("?status=pending", key)) await decline(id);
    for (let n = full; n < CREDENTIAL_REQUESTS_PER_DAY_MAX; n += 1) {
      const { json } = await ask({ host: `h${n}.example` }, key);
      await decline(json.id);
    }
    expect(await ask({ host: "more.example" }, key)).toMatchObject({
      status: 403,
      json: { error: { code: "forbidden", message: expect.stringContaining("It may ask again from") } },
    });
    const pages = [await idsOf("?limit=3", key), await idsOf("?limit=100", key)];
    expect(pages.map((ids) => ids.length)).toEqual([3, CREDENTIAL_REQUESTS_PER_DAY_MAX]);
  });

  test.each([
    ["a name below a star", { host: "*.example.com" }],
    ["a path", { host: "a.example/x" }],
    ["an empty label", { host: "a..example" }],
    ["a leading dot in other letters", { host: "．example" }],
    ["two hosts", { host: "a.example,b.example" }],
    ["no reason", { reason: "" }],
    ["a blank reason", { reason: " \n\t" }],
    ["a name with look-alike letters", { name: "strіpe" }],
    ["a path that climbs", { paths: ["/v1/../admin"] }],
    ["a secret", { secret: SECRET }],
    ["keys", { keys: ["key_x"] }],
  ])("with %s is refused", async (_what, more) => {
    const answer = await ask({ host: "g.example", ...more });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain(SECRET);
  });

  test("for a name in other letters shows how it is sent", async () => {
    const { key } = await newAgent();
    const { json } = await ask({ host: "аpple.example" }, key);
    expect(json["host"]).toBe("xn--pple-43d.example");
  });

  test("of an owner's key is granted too, and no credential lists that key", async () => {
    const { json } = await ask({ host: "o.example" }, KEYS.owner);
    expect((await grant(json.id, { name: "own" })).status).toBe(200);
    expect((await rig.call("GET", "/v1/credentials/own")).json["keys"]).toEqual([]);
  });
});
