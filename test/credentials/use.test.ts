import { beforeEach, describe, expect, test } from "bun:test";
import { KEYS } from "../http/stub-server.ts";
import { STRANGER } from "../http/real-server.ts";
import { openCredentials, SECRET } from "./rig.ts";
import { aCredential, anAuditEntry } from "../support/factory.ts";
import { shared } from "../support/shared.ts";
import { usesByDay, sumOf, countUses } from "../../src/credentials/service.ts";

const rig = await shared(openCredentials());

beforeEach(() => rig.clear());

const authorizations = () => rig.target.received.map(({ headers }) => headers.get("authorization"));

describe("a credential", () => {
  test("is added to the calls that name it, beside our own signature, and nobody reads it back", async () => {
    const added = await rig.add();
    expect([added.status, added.json["last4"], added.json["keys"]]).toEqual([201, "4242", [rig.agentId]]);
    const created = await rig.create();
    expect([created.status, created.json["credential"]]).toEqual([201, { name: "stripe-live", kind: "bearer" }]);
    expect((await rig.ended(created)).json.status).toBe("completed");
    const [received] = rig.target.received;
    expect(received?.headers.get("authorization")).toBe(`Bearer ${SECRET}`);
    expect(received?.headers.get("webhook-signature")).toStartWith("v1,");
    const shown = await rig.call("GET", "/v1/credentials/stripe-live");
    expect(shown.json["last_used_at"]).not.toBeNull();
    for (const { text } of [added, created, shown, await rig.call("GET", "/v1/credentials")])
      expect(text).not.toContain(SECRET);
    const audit = await rig.call("GET", "/v1/audit?kind=credential_used");
    expect(audit.json.data).toMatchObject([
      {
        actor: "key:agent",
        detail: { name: "stripe-live", action: created.json.id, key: rig.agentId, host: rig.host },
      },
    ]);
  });

  test("shows nothing of a password, nor of a short secret", async () => {
    for (const more of [{ name: "basic", kind: "basic", username: "ann" }, { secret: "short-1234" }])
      expect((await rig.add(more)).json["last4"]).toBeNull();
  });

  test("signs what is sent, at the time when it is sent", async () => {
    const hmac = { signs: "{timestamp}.{method}.{path}.{body}", time_header: "X-Timestamp" };
    expect((await rig.add({ kind: "hmac", header: "X-Signature", hmac })).status).toBe(201);
    await rig.ended(await rig.create({ body: { a: 1 } }));
    const [received] = rig.target.received;
    const at = received?.headers.get("x-timestamp") ?? "";
    const expected = new Bun.CryptoHasher("sha256", SECRET).update(`${at}.POST./v1/charges.{"a":1}`).digest("hex");
    expect(received?.headers.get("x-signature")).toBe(expected);
    expect(received?.headers.get("webhook-signature")).toStartWith("v1,");
    expect(await rig.call("GET", "/v1/credentials/stripe-live")).toMatchObject({
      json: { hmac: { ...hmac, algorithm: "sha256" }, last4: null },
    });
  });

  test("is for owners and the agents that it lists, and is unknown to all others", async () => {
    await rig.add({ keys: [] });
    await rig.add({ name: "mine" });
    const list = async (key: string) =>
      (await rig.call("GET", "/v1/credentials", undefined, key)).json.data.map(({ name }) => name);
    expect([await list(KEYS.owner), await list(KEYS.agent), await list(STRANGER)]).toEqual([
      ["mine", "stripe-live"],
      ["mine"],
      [],
    ]);
    const seen = await rig.call("GET", "/v1/credentials/mine", undefined, KEYS.agent);
    expect(Object.keys(seen.json).toSorted()).toEqual(["enabled", "expires_at", "header", "hosts", "kind", "name"]);
    // Whether there is one is no business of this key.
    const [other, none] = [await rig.create(), await rig.create({ credential: "nothing" })];
    expect(other.status).toBe(400);
    expect(other.text.replace(/req_\w+/, "")).toBe(none.text.replace(/req_\w+/, ""));
    expect(other.text).toContain("It may use mine.");
    expect((await rig.create({}, KEYS.owner)).status).toBe(201);
    expect((await rig.create({}, STRANGER)).status).toBe(400);
    expect((await rig.create({ credential: "mine" }, KEYS.reader)).status).toBe(403);
    expect((await rig.call("PATCH", "/v1/credentials/mine", { enabled: false }, STRANGER)).status).toBe(404);
    expect((await rig.call("GET", "/v1/credentials/mine", undefined, STRANGER)).status).toBe(404);
  });

  test("is not meant by a name that only looks alike", async () => {
    await rig.add({ name: "mine" });
    expect(await rig.add({ name: "mine" })).toMatchObject({ status: 400, text: expect.stringContaining("already") });
    for (const name of ["Mine", "mіne", "mine ", "mine\u200b", "MINE", "../mine", "mine%00"]) {
      expect((await rig.create({ credential: name })).status, name).toBe(400);
      expect((await rig.call("GET", `/v1/credentials/${encodeURIComponent(name)}`)).status, name).toBe(404);
      expect((await rig.add({ name })).status, name).toBe(400);
    }
  });

  test("is replaced, disabled and deleted for what waits too, and each change is audited", async () => {
    await rig.add();
    const held = () => rig.create({ approve: true });
    const approve = async (answer: Awaited<ReturnType<typeof held>>) => {
      await rig.call("POST", `/v1/actions/${answer.json.id}/approve`, {}, KEYS.approver);
      return (await rig.ended(answer)).json["last_error"];
    };
    const [replaced, disabled, deleted] = [await held(), await held(), await held()];
    const other = "sk_live_other_0123456789";
    await rig.call("PATCH", "/v1/credentials/stripe-live", { secret: other });
    expect(await approve(replaced)).toBeNull();
    expect(authorizations()).toEqual([`Bearer ${other}`]);
    await rig.call("PATCH", "/v1/credentials/stripe-live", { enabled: false });
    expect(await approve(disabled)).toContain("is disabled, so nothing was sent: ask an owner of the account");
    expect((await rig.create()).status).toBe(403);
    expect((await rig.call("DELETE", "/v1/credentials/stripe-live")).status).toBe(204);
    // Another one of this name is not the one that was approved.
    await rig.add({ secret: "sk_live_third_0123456789" });
    expect(await approve(deleted)).toContain("was deleted, so nothing was sent");
    expect(rig.target.received).toHaveLength(1);
    const kinds = ["added", "changed", "removed"].map((kind) => `kind=credential_${kind}`).join("&");
    const audit = await rig.call("GET", `/v1/audit?${kinds}&limit=5`);
    expect(audit.json.data.map(({ kind }) => kind)).toEqual(
      ["added", "removed", "changed", "changed", "added"].map((kind) => `credential_${kind}`),
    );
    expect(audit.text).not.toContain(other);
  });

  test("that has expired, or no longer lists the key, is not sent", async () => {
    await rig.add();
    const [gone, unlisted] = [await rig.create({ approve: true }), await rig.create({ approve: true })];
    await rig.call("PATCH", "/v1/credentials/stripe-live", { keys: [] });
    await rig.call("POST", `/v1/actions/${unlisted.json.id}/approve`, {}, KEYS.approver);
    expect((await rig.ended(unlisted)).json["last_error"]).toContain("may no longer use its credential");
    await rig.call("PATCH", "/v1/credentials/stripe-live", { keys: [rig.agentId] });
    await rig.rewrite(() => ({ expiresAt: rig.app.engine.clock.now() }));
    await rig.call("POST", `/v1/actions/${gone.json.id}/approve`, {}, KEYS.approver);
    expect((await rig.ended(gone)).json["last_error"]).toContain("has expired, so nothing was sent");
    await rig.call("PATCH", "/v1/credentials/stripe-live", { enabled: true });
    expect(await rig.create()).toMatchObject({ status: 403, text: expect.stringContaining("has expired") });
    expect(rig.target.received).toEqual([]);
  });
});

describe("bounds", () => {
  test("are checked when a call is requested, and say what is allowed and who changes it", async () => {
    await rig.add({ paths: ["/v1/charges"], methods: ["POST"] });
    for (const [more, found] of [
      [{ url: `${rig.target.url}v1/api_keys` }, "/v1/api_keys"],
      [{ url: `${rig.target.url}v1/charges/%2e%2e/api_keys` }, "/v1/api_keys"],
      [{ method: "DELETE" }, "DELETE"],
      [{ url: "https://evil.example/v1/charges" }, "evil.example"],
      [{ headers: { "X-Verb": "DELETE" } }, "DELETE"],
    ] as const) {
      const { status, text } = await rig.create(more);
      expect([status, text.includes(`and not to ${found}`)]).toEqual([403, true]);
      expect(text).toMatch(/An owner can change its \w+ on the page Credentials, or by PATCH/);
    }
    expect(rig.target.received).toEqual([]);
  });

  test("are checked again at the send, as they are then", async () => {
    await rig.add();
    const held = await rig.create({ approve: true });
    await rig.call("PATCH", "/v1/credentials/stripe-live", { paths: ["/v1/customers"] });
    await rig.call("POST", `/v1/actions/${held.json.id}/approve`, {}, KEYS.approver);
    expect((await rig.ended(held)).json["last_error"]).toContain("outside of where its credential may go now");
    expect(rig.target.received).toEqual([]);
    await rig.call("PATCH", "/v1/credentials/stripe-live", { unset: ["paths"] });
    expect((await rig.call("GET", "/v1/credentials/stripe-live")).json["paths"]).toBeUndefined();
    expect((await rig.ended(await rig.create())).json.status).toBe("completed");
  });

  test("are never left by a redirect, and a callback gets nothing", async () => {
    await using elsewhere = await openCredentials(({ path }) =>
      path === "/v1/charges"
        ? new Response(null, { status: 302, headers: { location: "/elsewhere" } })
        : new Response(""),
    );
    await elsewhere.add();
    await elsewhere.ended(
      await elsewhere.create({ callback: `${elsewhere.target.url}callback` }, KEYS.owner),
      KEYS.owner,
    );
    await elsewhere.target.saw(2);
    const paths = elsewhere.target.received.map(({ path, headers }) => [path, headers.has("authorization")]);
    expect(paths).toEqual([
      ["/v1/charges", true],
      ["/callback", false],
    ]);
  });

  test("include plain http only to loopback and private hosts", async () => {
    await rig.add({ hosts: ["api.example.com", "8.8.8.8", rig.host] });
    for (const host of ["api.example.com", "8.8.8.8"]) {
      const { status, text } = await rig.create({ url: `http://${host}/v1/charges` });
      expect([status, text.includes("use https://")], host).toEqual([403, true]);
    }
  });

  test("of no sense are refused, each at its field", async () => {
    const { keyId } = await rig.app.authenticate(`Bearer ${KEYS.approver}`);
    await rig.add({ name: "stored" });
    for (const [name, value] of [
      ["hosts", ["*.com"]],
      ["hosts", ["*"]],
      ["hosts", ["*.0.0.1"]],
      ["hosts", ["https://api.example.com/"]],
      ["hosts", []],
      ["paths", ["v1"]],
      ["paths", ["/a/%2e%2e/b"]],
      ["paths", ["/a?b"]],
      ["paths", []],
      ["methods", ["TRACE"]],
      ["keys", ["key_unknown"]],
      ["keys", [keyId]],
      ["secret", "short"],
      ["secret", "line one\r\nX-Evil: 1"],
      ["expires_at", "2020-01-01T00:00:00Z"],
      ["username", "ann"],
      ["header", "X-Api-Key"],
    ] as const) {
      const { status, text } = await rig.add({ [name]: value });
      expect([status, text.includes(`"field":"${name}`)], `${name} ${JSON.stringify(value)}`).toEqual([400, true]);
      expect(text).not.toContain("X-Evil");
      const changed = await rig.call("PATCH", "/v1/credentials/stored", { [name]: value });
      expect([changed.status, changed.text.includes(`"field":"${name}`)], `stored: ${name}`).toEqual([400, true]);
    }
  });

  test("set no header that is not theirs", async () => {
    const names =
      "Host Content-Length webhook-signature X-Outgate-Attempt X-Forwarded-For Cookie User-Agent X_HTTP_Method";
    for (const header of names.split(" ")) {
      expect((await rig.add({ kind: "header", header })).status, header).toBe(400);
    }
  });
});

test("one that another node has just added can be named at once", async () => {
  const { store, owner } = rig.app.engine;
  const added = aCredential({ accountId: owner.accountId, hosts: [rig.host], keys: [rig.agentId] });
  await store.credentials.add(added, anAuditEntry({ accountId: owner.accountId }));
  expect((await rig.create({ approve: true })).status).toBe(201);
});

test("a request may not set the header itself, in any case", async () => {
  await rig.add();
  for (const name of ["Authorization", "AUTHORIZATION", "authorization"]) {
    const { status, text } = await rig.create({ headers: { [name]: "Bearer mine" } });
    expect([status, text.includes(`"field":"headers.${name}"`)], name).toEqual([400, true]);
  }
});

test("a repeat is answered with its action, whatever has become of the credential, and sends nothing", async () => {
  await rig.add();
  const first = await rig.create({ dedupe: "k" });
  await rig.ended(first);
  await rig.call("PATCH", "/v1/credentials/stripe-live", { enabled: false });
  const again = await rig.create({ dedupe: "k" });
  expect([again.status, again.json.id, again.json["differs"]]).toEqual([200, first.json.id, []]);
  await rig.call("DELETE", "/v1/credentials/stripe-live");
  expect((await rig.create({ dedupe: "k" })).json.id).toBe(first.json.id);
  expect((await rig.create({ dedupe: "other" })).status).toBe(400);
  expect((await rig.create({ dedupe: "k", credential: "another" })).status).toBe(400);
  expect(rig.target.received).toHaveLength(1);
});

test("the same request with another credential is another one", async () => {
  await rig.add();
  await rig.add({ name: "other" });
  const dedupe = { dedupe: "held", approve: true };
  await rig.create(dedupe);
  expect((await rig.create({ ...dedupe, credential: "other" })).json["differs"]).toEqual(["credential"]);
});

test("uses are counted by credential and day, the oldest first", () => {
  const row = (subject: string, daysAgo: number, count: number) => ({ subject, daysAgo, count });
  const uses = countUses({ counts: [row("a", 0, 3), row("b", 6, 1), row("a", 2, 4)], isWhole: false });
  expect(usesByDay(uses, "a")).toEqual([0, 0, 0, 0, 4, 0, 3]);
  expect(usesByDay(uses, "b")).toEqual([1, 0, 0, 0, 0, 0, 0]);
  expect(sumOf(usesByDay(uses, "c"))).toBe(0);
  expect(uses.isWhole).toBe(false);
});

test("an answer to an owner says how often a credential was sent in the last week, also to try it", async () => {
  const { json: added } = await rig.add();
  await rig.add({ name: "other" });
  expect(added["uses_last_week"]).toBe(0);
  const { clock } = rig.app.engine;
  await rig.ended(await rig.create());
  clock.advance(3 * 86_400_000);
  await rig.ended(await rig.create({ body: { n: 2 } }));
  await rig.call("POST", "/v1/credentials/stripe-live/test", { url: rig.target.url });
  const uses = async (key?: string) => {
    const { json } = await rig.call("GET", "/v1/credentials", undefined, key);
    return (json.data as readonly object[]).map((one) => ("uses_last_week" in one ? one.uses_last_week : null));
  };
  expect(await uses()).toEqual([0, 3]);
  expect(await uses(KEYS.agent)).toEqual([null, null]);
  clock.advance(5 * 86_400_000);
  expect(await uses()).toEqual([0, 2]);
  const changed = await rig.call("PATCH", "/v1/credentials/stripe-live", { enabled: true });
  expect(changed.json["uses_last_week"]).toBe(2);
});

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
  const own = await rig.create({ approve: true, body: { n: 1 } });
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
  const id = (await rig.create({ approve: true, body: { n: 2 } })).json.id;
  await rig.call("POST", `/v1/actions/${id}/cancel`, {}, KEYS.owner);
  await rig.rewrite(() => ({ keys: [] }));
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
    expect([(await setDefault("other")).status, (await setDefault("stripe-live")).status]).toEqual([400, 200]);
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
