import { describe, expect, test } from "bun:test";
import { KEYS } from "../http/stub-server.ts";
import { type CredentialRig, openCredentials, SECRET } from "./rig.ts";
import { fresh } from "../support/shared.ts";

let rig: CredentialRig;

fresh(async () => (rig = await openCredentials()));

describe("a new key", () => {
  const newKey = async (more: object) => {
    const { status, text, json } = await rig.call("POST", "/v1/keys", { name: "bot", role: "agent", ...more });
    return { status, text, id: json.id, key: json.key };
  };
  const mayUse = async (key: string) =>
    (await rig.call("GET", "/v1/credentials", undefined, key)).json.data.map(({ name }) => name);

  test("may use the credentials that it lists, and none by default", async () => {
    await rig.add();
    await rig.add({ name: "other" });
    const [none, one] = [await newKey({}), await newKey({ credentials: ["stripe-live"] })];
    expect([await mayUse(none.key), await mayUse(one.key)]).toEqual([[], ["stripe-live"]]);
    expect((await rig.create({}, none.key)).status).toBe(400);
    const created = await rig.create({}, one.key);
    expect((await rig.ended(created, one.key)).json.status).toBe("completed");
    const keys = (await rig.call("GET", "/v1/keys")).json.data;
    expect(keys.find(({ id }) => id === one.id)?.["credentials"]).toEqual(["stripe-live"]);
    expect((await rig.call("GET", "/v1/audit?kind=key_created")).text).toContain('"credentials":"stripe-live"');
  });

  test("that replaces another may use what that one may, unless it says otherwise", async () => {
    await rig.add();
    const before = await newKey({ credentials: ["stripe-live"] });
    expect(await mayUse((await newKey({ replaces: before.id })).key)).toEqual(["stripe-live"]);
    expect(await mayUse((await newKey({ replaces: before.id, credentials: [] })).key)).toEqual([]);
    expect(await mayUse((await newKey({ replaces: before.id, inherit_limits: false })).key)).toEqual([]);
  });

  test("lists only what there is, and only where it needs to", async () => {
    await rig.add();
    expect((await newKey({ credentials: ["nothing"] })).text).toContain('"field":"credentials.0"');
    expect((await newKey({ credentials: ["stripe-live"], role: "owner" })).text).toContain('"field":"credentials"');
    expect((await newKey({ credentials: ["Stripe-Live"] })).status).toBe(400);
  });
});

test("a key that may not use the credential of another key's action can't have it sent again", async () => {
  await rig.add();
  const own = await rig.create({ approve: true });
  const id = own.json.id;
  await rig.call("POST", `/v1/actions/${id}/cancel`, {}, KEYS.owner);
  const { json } = await rig.call("POST", "/v1/keys", { name: "bot", role: "agent", scope: "account" });
  const reason = { reason: "It is needed after all." };
  const retry = (key: string) => rig.call("POST", `/v1/actions/${id}/retry`, reason, key);
  const refused = await retry(json.key);
  expect([refused.status, refused.text.includes("may not use")]).toEqual([403, true]);
  expect((await retry(KEYS.agent)).status).toBe(200);
});

test("what another node changed a moment ago decides who may have an action sent again", async () => {
  await rig.add();
  const id = (await rig.create({ approve: true })).json.id;
  await rig.call("POST", `/v1/actions/${id}/cancel`, {}, KEYS.owner);
  const { credentials } = rig.app.engine.store;
  const [credential] = await credentials.list(rig.app.engine.owner.accountId);
  if (credential === undefined) throw new Error("No credential.");
  const { accountId, id: subject } = credential;
  const audit = {
    at: new Date(),
    accountId,
    actor: "key:owner",
    kind: "credential_changed",
    subject,
    client: "",
  } as const;
  expect(await credentials.change(credential, { keys: [] }, { ...audit, detail: {} })).toBe(true);
  const retried = await rig.call("POST", `/v1/actions/${id}/retry`, { reason: "Again." }, KEYS.agent);
  expect([retried.status, retried.text.includes("may not use")]).toEqual([403, true]);
});

describe("the default credential of a host", () => {
  const setDefault = (name: string) => rig.call("PUT", `/v1/hosts/${rig.host}`, { default_credential: name });
  const plain = (more: object = {}, key: string = KEYS.agent) => rig.create({ credential: null, ...more }, key);
  const sent = async (answer: Awaited<ReturnType<typeof plain>>, key: string = KEYS.agent) => {
    await rig.ended(answer, key);
    return rig.target.received.at(-1)?.headers.get("authorization") ?? null;
  };

  test("is added to calls that name none, for keys that may use it, new ones too", async () => {
    await rig.add();
    expect((await setDefault("stripe-live")).status).toBe(200);
    expect(await sent(await plain())).toBe(`Bearer ${SECRET}`);
    const { key } = (await rig.call("POST", "/v1/keys", { name: "bot", role: "agent", credentials: ["stripe-live"] }))
      .json;
    expect(await sent(await plain({}, key), key)).toBe(`Bearer ${SECRET}`);
    await rig.call("PATCH", "/v1/credentials/stripe-live", { keys: [] });
    const without = await plain();
    expect([without.json["credential"], await sent(without)]).toEqual([undefined, null]);
    expect(await sent(await plain({}, KEYS.owner), KEYS.owner)).toBe(`Bearer ${SECRET}`);
    expect((await rig.call("GET", "/v1/hosts", undefined, KEYS.agent)).text).not.toContain("stripe-live");
  });

  test("is left out where the call sets its header, or lies outside of its bounds", async () => {
    await rig.add({ paths: ["/v1/charges"] });
    await setDefault("stripe-live");
    expect(await sent(await plain({ headers: { Authorization: "Bearer mine" } }))).toBe("Bearer mine");
    expect(await sent(await plain({ url: `${rig.target.url}v1/customers` }))).toBeNull();
    await rig.call("PATCH", "/v1/credentials/stripe-live", { enabled: false });
    expect(await sent(await plain())).toBeNull();
  });

  test("is one that there is, and goes with the settings of the host", async () => {
    expect((await setDefault("nothing")).status).toBe(400);
    await rig.add();
    await setDefault("stripe-live");
    await rig.call("DELETE", `/v1/hosts/${rig.host}`);
    expect(await sent(await plain())).toBeNull();
    await setDefault("stripe-live");
    await rig.call("DELETE", "/v1/credentials/stripe-live");
    expect(await sent(await plain())).toBeNull();
  });
});

describe("rules and grants", () => {
  test("decide by the credential of a call", async () => {
    await rig.add();
    await rig.add({ name: "other" });
    await rig.call("POST", "/v1/rules", { name: "Live", effect: "refuse", credentials: ["stripe-live"] });
    await rig.call("POST", "/v1/rules", { name: "Any", effect: "hold", when: "action.credential != ''" });
    expect((await rig.create()).status).toBe(403);
    expect((await rig.create({ credential: "other" })).json.status).toBe("awaiting_approval");
    expect((await rig.create({ credential: null })).json.status).toBe("pending");
  });

  test("a grant is for calls with the same credential", async () => {
    await rig.add();
    await rig.add({ name: "other" });
    await rig.call("POST", "/v1/rules", { name: "All", effect: "hold" });
    const held = await rig.create({ body: { amount: 1 } });
    const grant = { grant: { minutes: 60, calls: 9, vary: ["body.amount"] } };
    await rig.call("POST", `/v1/actions/${held.json.id}/approve`, grant, KEYS.approver);
    const status = async (more: object) => (await rig.create({ body: { amount: 2 }, ...more })).json.status;
    expect([await status({}), await status({ credential: "other" }), await status({ credential: null })]).toEqual([
      "pending",
      "awaiting_approval",
      "awaiting_approval",
    ]);
  });
});

test("an approver is warned where a credential was changed since the request", async () => {
  await rig.add();
  const { json } = await rig.create({ approve: true });
  const risks = async () => {
    const facts = await rig.call("GET", `/v1/actions/${json.id}/facts`, undefined, KEYS.approver);
    return (facts.json["risks"] as readonly { name: string; text: string }[])
      .filter(({ name }) => name === "credential")
      .map(({ text }) => text);
  };
  expect(await risks()).toEqual([]);
  await rig.call("PATCH", "/v1/credentials/stripe-live", { secret: "another-secret-0815" });
  expect(await risks()).toEqual([]);
  await rig.call("PATCH", "/v1/credentials/stripe-live", { paths: ["/v1"] });
  expect(await risks()).toEqual(["Where its credential stripe-live may go was changed since it was requested."]);
  await rig.call("PATCH", "/v1/credentials/stripe-live", { enabled: false });
  expect(await risks()).toEqual(["Its credential stripe-live is disabled: nothing would be sent."]);
  await rig.call("DELETE", "/v1/credentials/stripe-live");
  expect(await risks()).toEqual(["Its credential stripe-live was deleted: nothing would be sent."]);
});
