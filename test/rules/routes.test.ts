import { describe, expect, test } from "bun:test";
import { type Answer, openRealServer, type RealServer, STRANGER } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";
import { eventually } from "../support/eventually.ts";
import { fresh, once } from "../support/shared.ts";

let app: RealServer;

const open = async () => (app = await openRealServer({ starts: false }));

const idOf = ({ json }: Answer): string => json.id;

const created = (request: object = {}, key: string = KEYS.agent) =>
  app.call("POST", "/v1/actions", { url: "https://api.example.com/pay", body: { amount: 7 }, ...request }, key);

const rule = async (definition: object) => {
  const { status, json } = await app.call("POST", "/v1/rules", { name: "R", effect: "hold", ...definition });
  expect(status).toBe(201);
  return json.id;
};

const LARGE = { name: "Payments above 1000", path: "/pay", when: "action.body.amount > 1000" } as const;

describe("a request", () => {
  fresh(open);

  test("is decided by the first rule that applies, and says why it is held", async () => {
    const id = await rule({ ...LARGE, message: "A person checks large payments." });
    await rule({ name: "Others", effect: "refuse", methods: ["DELETE"] });
    const small = await created();
    expect([small.status, small.json.status, small.json["policy"]]).toEqual([201, "pending", undefined]);
    const held = await created({ body: { amount: 1001 } });
    const policy = { effect: "hold", by: "rule", id, version: 1, name: LARGE.name };
    expect(held.json).toMatchObject({ status: "awaiting_approval", approve: true });
    expect(held.json["policy"]).toEqual({ ...policy, reason: "A person checks large payments." });
    const { data } = (await app.call("GET", `/v1/actions/${idOf(held)}/timeline`)).json as { data: unknown };
    expect(data).toMatchObject([
      { type: "created" },
      { type: "held", reason: `The rule "${LARGE.name}" holds it: A person checks large payments.` },
    ]);
    const { facts } = (await app.call("GET", `/v1/actions/${idOf(held)}/facts`)).json as { facts?: unknown };
    expect(facts).toContainEqual({
      name: "policy",
      label: "Held by",
      value: `The rule "${LARGE.name}": A person checks large payments.`,
    });
  });

  test("of more than 128 KB has its lists, and so do rules that are replaced", async () => {
    const rules = Array.from({ length: 400 }, (_, n) => ({
      name: `R${n}`,
      effect: "hold",
      message: "m".repeat(450),
      keys: ["key_x"],
    }));
    expect((await app.call("PUT", "/v1/rules", { rules })).status).toBe(200);
    const { data } = (await app.call("GET", "/v1/rules")).json as { data: unknown };
    expect(data).toMatchObject(rules);
    const large = { body: { list: [1, [2]], text: "x".repeat(200_000) }, give_up_on: [400, 404] };
    const { status, json } = await created(large);
    expect([status, json["give_up_on"], json["body"]]).toEqual([201, [400, 404], large.body]);
    const form = { to: ["a", "b"], text: "x".repeat(200_000) };
    expect((await created({ form, body: undefined })).json["form"]).toEqual(form);
  });

  test("cannot make the rules of an account longer than a megabyte in all", async () => {
    const hosts = Array.from(
      { length: 100 },
      (_, n) => `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.h${n}.example.com`,
    );
    const rules = Array.from({ length: 49 }, (_, n) => ({ name: `R${n}`, effect: "hold", hosts }));
    expect((await app.call("PUT", "/v1/rules", { rules })).status).toBe(200);
    const add = () => app.call("POST", "/v1/rules", { name: "More", effect: "hold", hosts });
    let more = await add();
    for (let n = 0; n < 10 && more.status === 201; n += 1) more = await add();
    expect([more.status, more.json.error?.message]).toEqual([
      400,
      "An account has at most 1048576 characters of rules. Shorten or remove some.",
    ]);
    await rule({ name: "Short" });
  });

  test("that a rule refuses is no action, but one row of the audit log, and the agent is told the owner's words", async () => {
    const id = await rule({
      name: "No deletes",
      effect: "refuse",
      methods: ["DELETE"],
      message: "Archive it instead.",
    });
    const refused = await created({ method: "DELETE", body: undefined });
    expect([refused.status, refused.json.error]).toMatchObject([
      403,
      { code: "forbidden", message: 'The rule "No deletes" refuses this call: Archive it instead.' },
    ]);
    expect((await app.call("GET", "/v1/actions")).json.data).toEqual([]);
    expect((await app.call("GET", "/v1/audit?kind=refused_by_rule")).json.data).toMatchObject([
      { subject: id, detail: { method: "DELETE", host: "api.example.com", name: "No deletes" } },
    ]);
  });

  test("that matches an older action is answered before any rule", async () => {
    const first = await created({ dedupe: "once" });
    await rule({ name: "Nothing", effect: "refuse" });
    const again = await created({ dedupe: "once" });
    expect([again.status, again.json.id, again.json.deduplicated]).toEqual([200, first.json.id, true]);
    expect((await created()).status).toBe(403);
  });

  test("in sync that a rule holds is answered at once; one that asks for approval stays refused", async () => {
    await rule(LARGE);
    const held = await created({ body: { amount: 2000 }, sync: true });
    expect([held.status, held.json.status]).toEqual([201, "awaiting_approval"]);
    const both = await created({ sync: true, approve: true });
    expect([both.status, both.json.error]).toMatchObject([400, { code: "invalid_sync" }]);
  });

  test("that cannot be decided is held and says why; an allow in front of it ends the list", async () => {
    await rule({ name: "Reads", effect: "allow", methods: ["GET"] });
    await rule(LARGE);
    const text = await created({ body: undefined, text: "amount=1" });
    expect(text.json).toMatchObject({ status: "awaiting_approval", policy: { by: "rule", name: LARGE.name } });
    expect(JSON.stringify(text.json["policy"])).toContain("can't be decided");
    const read = await created({ method: "GET", body: undefined });
    expect(read.json).toMatchObject({ status: "pending", policy: { effect: "allow", by: "rule", name: "Reads" } });
    // `approve` of the caller and the hold of a key stay: allow lifts nothing.
    expect((await created({ method: "GET", body: undefined, approve: true })).json).toMatchObject({
      status: "awaiting_approval",
      policy: { by: "caller" },
    });
  });
});

describe("an action that was accepted before", () => {
  fresh(open);

  test("of a key that replaced another is under the rules about that one at its first send too", async () => {
    const key = async (more: object) =>
      (await app.call("POST", "/v1/keys", { name: "ci", role: "agent", ...more })).json;
    const old = await key({});
    const rotated = await key({ replaces: old.id });
    const { json } = await created({ delay_seconds: 60 }, rotated.key);
    await rule({ name: "Old", effect: "refuse", keys: [old.id] });
    expect((await app.call("POST", "/v1/rules/dry-run", {})).json).toMatchObject({ allowed: 0, refused: 1 });
    const { engine } = app;
    await engine.start();
    engine.clock.advance(61_000);
    const ended = await eventually(async () => {
      const { json: now } = await app.call("GET", `/v1/actions/${json.id}`);
      return now.status === "active" || (now.status === "pending" && now["attempts"] === 0) ? null : now;
    }, "the end of the action");
    expect(ended).toMatchObject({ status: "cancelled", attempts: 0, policy: { name: "Old" } });
  });

  test("is not retried past a rule, unless whoever retries it may approve it", async () => {
    const id = idOf(await created({ delay_seconds: 60 }));
    await app.call("POST", `/v1/actions/${id}/cancel`);
    await rule({ name: "All", message: "Ask Dana." });
    const agent = await app.call("POST", `/v1/actions/${id}/retry`, {}, KEYS.agent);
    const message = `The rule "All" holds this call for approval, and action ${id} was created without it. Ask Dana. Create it again`;
    expect([agent.status, agent.json.error]).toMatchObject([
      403,
      { code: "forbidden", message: expect.stringContaining(message) },
    ]);
    expect((await app.call("POST", `/v1/actions/${id}/retry`)).status).toBe(200);
  });
});

describe("/v1/rules", () => {
  fresh(open);

  test("lists rules in the order in which they are asked, and to agents only what they are told anyway", async () => {
    const last = await rule({ ...LARGE, message: "Ask." });
    const first = await rule({ name: "First", effect: "allow", before: last });
    const shown = (key: string) => app.call("GET", "/v1/rules", undefined, key).then(({ json }) => json.data);
    expect(await shown(KEYS.approver)).toMatchObject([
      { id: first, position: 0, name: "First", effect: "allow", created_by: "key:owner" },
      { id: last, position: 1, version: 1, ...LARGE },
    ]);
    expect(await shown(KEYS.agent)).toEqual([
      { id: first, position: 0, version: 1, name: "First", effect: "allow" },
      { id: last, position: 1, version: 1, name: LARGE.name, effect: "hold", message: "Ask." },
    ]);
    expect(await shown(STRANGER)).toEqual([]);
    for (const key of [KEYS.agent, KEYS.approver, KEYS.reader]) {
      expect((await app.call("POST", "/v1/rules", { name: "Mine", effect: "allow" }, key)).status).toBe(403);
    }
  });

  test("refuses a change that gives a condition and takes it away", async () => {
    const id = await rule({ path: "/pay" });
    const changed = await app.call("PATCH", `/v1/rules/${id}`, { path: "/refund", effect: "allow", unset: ["path"] });
    expect([changed.status, changed.json.error]).toMatchObject([
      400,
      { details: [{ field: "path", message: "Is also in unset." }] },
    ]);
    expect((await app.call("GET", "/v1/rules")).json.data).toMatchObject([{ id, path: "/pay", effect: "hold" }]);
  });

  test("changes, reorders, replaces and removes; each is audited, and is in force at once", async () => {
    const [one, two] = [await rule(LARGE), await rule({ name: "Two", effect: "allow" })];
    const changed = await app.call("PATCH", `/v1/rules/${one}`, { effect: "refuse", unset: ["when"] });
    expect(changed.json).toMatchObject({ id: one, version: 2, effect: "refuse", path: "/pay" });
    expect(changed.json).not.toHaveProperty("when");
    expect((await created()).status).toBe(403);
    const ordered = await app.call("POST", "/v1/rules/reorder", { ids: [two, one] });
    expect(ordered.json.data).toMatchObject([{ id: two }, { id: one, position: 1 }]);
    expect((await created()).status).toBe(201);
    const rules = [
      { name: "Two", effect: "allow" },
      { name: "New", effect: "hold" },
    ];
    const replaced = (await app.call("PUT", "/v1/rules", { rules })).json.data;
    expect(replaced).toMatchObject([
      { id: two, version: 1 },
      { name: "New", version: 1 },
    ]);
    expect((await app.call("DELETE", `/v1/rules/${two}`)).status).toBe(204);
    expect((await created()).json.status).toBe("awaiting_approval");
    const data = (await app.call("GET", "/v1/audit?kind=rules_changed")).json.data;
    expect(data.map((entry) => entry["detail"])).toMatchObject([
      { change: "removed", name: "Two" },
      { change: "replaced", rules: 2 },
      { change: "reordered" },
      { change: "changed", changed: "effect, when" },
      { change: "added", name: "Two" },
      { change: "added", name: LARGE.name },
    ]);
  });
});

describe("a change of rules", () => {
  once(open);

  test.each([
    ["POST", "/v1/rules", { name: "R", effect: "hold", when: "action.body.amount >" }, 400, "when"],
    ["POST", "/v1/rules", { name: "R", effect: "hold", before: "rul_none" }, 400, "before"],
    ["POST", "/v1/rules", { name: "R", effect: "maybe" }, 400, "effect"],
    [
      "PUT",
      "/v1/rules",
      {
        rules: [
          { name: "R", effect: "hold" },
          { name: "S", effect: "hold", when: "1" },
        ],
      },
      400,
      "rules.1.when",
    ],
    ["POST", "/v1/rules/reorder", { ids: ["rul_none"] }, 400, "ids"],
    ["PATCH", "/v1/rules/rul_none", { effect: "hold" }, 404, null],
    ["DELETE", "/v1/rules/rul_none", undefined, 404, null],
  ] as const)("by %s %s %j is refused", async (method, path, body, status, field) => {
    const { json, ...answer } = await app.call(method, path, body);
    expect([answer.status, json.error.details?.[0]?.field ?? null]).toEqual([status, field]);
    expect((await app.call("GET", "/v1/rules")).json.data).toEqual([]);
  });
});

describe("a dry run", () => {
  fresh(open);

  test("tells what rules would have done with what was requested, and what differs from the rules in force", async () => {
    const small = idOf(await created());
    const approved = idOf(await created({ body: { amount: 2000 }, approve: true }));
    const rejected = idOf(await created({ body: { amount: 3000 }, approve: true }));
    await app.call("POST", `/v1/actions/${approved}/approve`);
    await app.call("POST", `/v1/actions/${rejected}/cancel`);
    const large = idOf(await created({ body: { amount: 4000 }, title: "A large one" }));
    const text = idOf(
      await created({
        body: undefined,
        text: "amount=1",
        url: "https://api.example.com/pay?api_key=sk_live_4eC39HqLyjWDarjtT1zdp7dc",
      }),
    );
    const rules = [LARGE, { name: "Small", when: "action.body.amount < 10", effect: "refuse" }].map((one) => ({
      effect: "hold",
      ...one,
    }));
    const tried = await app.call("POST", "/v1/rules/dry-run", { rules }, KEYS.approver);
    expect(tried.status).toBe(200);
    expect(tried.json).toMatchObject({
      looked_at: 5,
      allowed: 0,
      held: 4,
      refused: 1,
      differing: 3,
      unknown: 0,
      undecidable: 1,
      held_approved: 1,
      held_rejected: 1,
      held_undecided: 2,
      differences: [
        { id: text, in_force: "allow", tried: "hold", rule: LARGE.name },
        { id: large, in_force: "allow", tried: "hold", rule: LARGE.name, title: "A large one", status: "pending" },
        { id: small, in_force: "allow", tried: "refuse", rule: "Small" },
      ],
    });
    const shown = await app.call("GET", `/v1/actions/${text}`, undefined, KEYS.approver);
    expect((tried.json["differences"] as readonly object[])[0]).toMatchObject({ url: shown.json["url"] });
    // Nothing has changed.
    expect((await app.call("GET", "/v1/rules")).json.data).toEqual([]);
    expect((await app.call("POST", "/v1/rules/dry-run", { rules, last: 1 })).json).toMatchObject({ looked_at: 1 });
    expect((await app.call("POST", "/v1/rules/dry-run", { rules }, KEYS.agent)).status).toBe(403);
    expect((await app.call("POST", "/v1/rules/dry-run", { rules }, STRANGER)).json).toMatchObject({ looked_at: 0 });
    // Those in force, and what they have refused since: nobody knows what others would say of that.
    await app.call("PUT", "/v1/rules", { rules });
    await created();
    expect((await app.call("POST", "/v1/rules/dry-run", {})).json).toMatchObject({
      refused: 1,
      differing: 0,
      unknown: 1,
    });
  });

  test("tells of refusals where nothing else was requested in that time", async () => {
    await rule({ name: "All", effect: "refuse" });
    const since = app.engine.clock.now().toISOString();
    await created();
    for (const [range, unknown] of [
      [{}, 1],
      [{ since }, 1],
      [{ since: "2100-01-01T00:00:00Z" }, 0],
    ] as const) {
      expect((await app.call("POST", "/v1/rules/dry-run", range)).json).toMatchObject({ looked_at: 0, unknown });
    }
  });

  test("tells nobody a value that is masked for them, whatever rules they try", async () => {
    const secret = "Zq9vT3mKx8LpW2nRb7YcD4";
    const id = idOf(
      await created({
        url: `https://api.example.com/pay?api_key=${secret}`,
        headers: { "X-Api-Key": secret },
        body: { amount: 7, client_secret: secret },
        title: `Pay with sk_live_4eC39HqLyjWDarjtT1zdp7dc`,
      }),
    );
    const guesses = [
      'action.headers["x-api-key"].startsWith("Zq9")',
      'action.query["api_key"].startsWith("Zq9")',
      'action.body.client_secret.startsWith("Zq9")',
      'action.title.contains("_4eC3")',
    ];
    const held = async (when: string, key: string) => {
      const { json } = await app.call(
        "POST",
        "/v1/rules/dry-run",
        { rules: [{ name: "R", effect: "hold", when }] },
        key,
      );
      return { when, held: json["held"] };
    };
    expect(JSON.stringify((await app.call("GET", `/v1/actions/${id}`, undefined, KEYS.approver)).json)).not.toContain(
      "Zq9",
    );
    for (const when of guesses) {
      expect(await held(when, KEYS.owner)).toEqual({ when, held: 1 });
      expect(await held(when, KEYS.approver)).toEqual({ when, held: 0 });
    }
    const when = 'action.body.amount == 7 && action.title.startsWith("Pay with")';
    expect(await held(when, KEYS.approver)).toEqual({ when, held: 1 });
  });

  test("comes as lines where one asks for them, and refuses rules that are none", async () => {
    await created();
    const request = new Request(`${app.url}/v1/rules/dry-run`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${KEYS.owner}`,
        accept: "application/x-ndjson",
        "content-type": "application/json",
      },
      body: JSON.stringify({ rules: [{ name: "All", effect: "hold" }] }),
    });
    const lines = (await (await fetch(request)).text()).trim().split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { looked_at: 1 },
      { looked_at: 1, held: 1 },
    ]);
    const wrong = await app.call("POST", "/v1/rules/dry-run", { rules: [{ name: "All", effect: "hold", path: "x" }] });
    const leap = await app.call("POST", "/v1/rules/dry-run", { since: "2016-12-31T23:59:60Z" });
    expect([leap.status, leap.json.error]).toMatchObject([400, { details: [{ field: "since" }] }]);
    expect([wrong.status, wrong.json.error]).toMatchObject([400, { details: [{ field: "rules.0.path" }] }]);
  });
});
