import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { hiddenIn, wordsOf } from "../support/forms.ts";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { joined, signedIn } from "../http/signed-in.ts";
import { EXAMPLES, ruleFields, ruleIn } from "../../src/pages/rules/rule-form.tsx";
import { TEMPLATES } from "../../src/pages/rules/rule-templates.ts";
import { ruleFrom } from "../../src/rules/rule.ts";
import type { RuleDefinition } from "../../src/rules/schemas.ts";

let app: RealServer;
let ann: Awaited<ReturnType<typeof signedIn>>;
let hidden: Readonly<Record<string, string>>;

beforeEach(async () => {
  app = await openRealServer({ starts: false });
  ann = await signedIn(app);
  hidden = await ann.hiddenOf("/settings");
});

afterEach(() => app[Symbol.asyncDispose]());

const PAGE = "/settings/rules";

interface Rule {
  readonly id: string;
  readonly name: string;
  readonly version: number;
}

const rules = async (): Promise<readonly Rule[]> => JSON.parse((await app.call("GET", "/v1/rules")).text).data;

const send = async (path: string, fields: Readonly<Record<string, string>> = {}) => {
  const answer = await ann.send(path, { ...hidden, ...fields });
  return { status: answer.status, to: answer.headers.get("location"), html: await answer.text() };
};

const rule = async (definition: object): Promise<string> => {
  const { status, json } = await app.call("POST", "/v1/rules", { name: "R", effect: "hold", ...definition });
  expect(status).toBe(201);
  return json.id;
};

/** Every member, but keys, which have ids. */
const ALL: Required<Omit<RuleDefinition, "keys">> = {
  name: "Payments above 1000",
  effect: "hold",
  when: "action.body.amount > 1000",
  methods: ["POST", "PUT"],
  hosts: ["api.example.com", "*.example.org"],
  path: "/payments",
  credentials: ["stripe-live"],
  body_kind: "json",
  body_bytes: { over: 10_000 },
  between: { from: "18:00", to: "08:00", days: ["mon", "tue"], timezone: "Europe/Berlin" },
  sum: { member: "body.amount", per: "month", timezone: "Europe/Paris", limit: 1000.5, same: "key" },
  more_than: { count: 20, minutes: 5, same: "request" },
  message: "A person checks large payments.",
  explain: true,
};

/** The same as the form has it. */
const FIELDS = {
  name: ALL.name,
  effect: "hold",
  when: ALL.when,
  method_POST: "yes",
  method_PUT: "yes",
  hosts: "api.example.com\r\n*.example.org",
  path: "/payments",
  credentials: "stripe-live",
  body_kind: "json",
  "body_bytes.over": "10000",
  "between.from": "18:00",
  "between.to": "08:00",
  "between.day_mon": "yes",
  "between.day_tue": "yes",
  "between.timezone": "Europe/Berlin",
  "sum.limit": "1000.5",
  "sum.member": "body.amount",
  "sum.per": "month",
  "sum.timezone": "Europe/Paris",
  "sum.same": "key",
  "more_than.count": "20",
  "more_than.minutes": "5",
  "more_than.same": "request",
  message: ALL.message,
  explain: "yes",
};

describe("for people, without script, pages of rules", () => {
  test("create a rule with every condition, and say it in words", async () => {
    expect(await ann.pageOf(PAGE)).toContain("No rules yet");
    const { data } = JSON.parse((await app.call("GET", "/v1/keys")).text);
    const key = data.find(({ name }: { readonly name: string }) => name === "agent");
    const made = await send(PAGE, { ...FIELDS, [`key_${key.id}`]: "yes" });
    const [stored] = await rules();
    expect([made.status, made.to]).toEqual([303, `${PAGE}#${stored?.id ?? ""}`]);
    // A double click is one rule.
    expect((await send(PAGE, { ...FIELDS, [`key_${key.id}`]: "yes" })).to).toBe(made.to);
    expect(await rules()).toHaveLength(1);
    expect(stored).toMatchObject({ ...ALL, keys: [key.id], version: 1, changed_by: "user:ann@example.com" });
    const text = wordsOf(await ann.pageOf(PAGE));
    expect(text).toContain(
      "POST or PUT to api.example.com or *.example.org under /payments by the key agent with the credential stripe-live with a JSON body of more than " +
        "10,000 bytes, from 18:00 to 08:00 on Mon and Tue (Europe/Berlin), when action.body.amount &gt; 1000" +
        ", beyond a sum of 1000.5 of body.amount in a month for the same key (Europe/Paris)" +
        ", beyond 20 calls in 5 minutes for the same request",
    );
    expect(text).toContain("“A person checks large payments.”Version 1 · just now by ann@example.com");
  });

  test("try a rule on past requests before it is saved, beside the rules in force", async () => {
    const pay = (amount: number) =>
      app.call("POST", "/v1/actions", { url: "https://api.example.com/pay", body: { amount } });
    expect(wordsOf((await send(PAGE, { name: "Big", effect: "hold", try: "yes" })).html)).toContain(
      "There are no requests yet to try it on.",
    );
    for (const amount of [1, 20, 3000]) await pay(amount);
    const big = { name: "Big", effect: "hold", when: "action.body.amount > 10" };
    const tried = await send(PAGE, { ...big, try: "yes" });
    expect([tried.status, await rules()]).toEqual([200, []]);
    const text = wordsOf(tried.html);
    expect(text).toContain("With this rule, 1 would have been sent, 2 held and 0 refused");
    expect(text).toContain("people had approved 0 and rejected 0, and 2 had no decision.");
    expect(tried.html).toContain("action.body.amount &gt; 10</textarea>");
    await send(PAGE, big);
    const [stored] = await rules();
    const lower = { ...big, when: "action.body.amount > 0", version: String(stored?.version), try: "yes" };
    const changed = wordsOf((await send(`${PAGE}/${stored?.id}`, lower)).html);
    expect(changed).toContain("With this rule, 0 would have been sent, 3 held and 0 refused");
    expect(changed).not.toContain("2 more requests");
    // It is tried on what is sent, though pages show that masked.
    const body = { amount: 5, secret: "Zq9vT3mKx8LpW2nRb7Yc" };
    await app.call("POST", "/v1/actions", { url: "https://api.example.com/pay", body });
    const when = 'has(action.body.secret) && action.body.secret.startsWith("Zq9")';
    expect(wordsOf((await send(PAGE, { ...big, when, try: "yes" })).html)).toContain("1 would have been sent, 3 held");
    const wrong = await send(PAGE, { ...big, when: "action.body.amount >", try: "yes" });
    expect([wrong.status, wrong.html.includes('id="when-problem"')]).toEqual([400, true]);
    expect(await rules()).toHaveLength(1);
  });

  test("say how often each rule held, refused and let pass a call in the last week", async () => {
    await rule({ name: "Deletes", effect: "refuse", methods: ["DELETE"] });
    await rule({ name: "Puts", methods: ["PUT"] });
    await rule({ name: "Gets", effect: "allow", methods: ["GET"] });
    await rule({ name: "Patches", methods: ["PATCH"] });
    for (const method of ["DELETE", "PUT", "DELETE", "PUT", "PUT", "GET"]) {
      await app.call("POST", "/v1/actions", { url: "https://api.example.com/a", method });
    }
    const text = wordsOf(await ann.pageOf(PAGE));
    for (const said of ["2 refused in 7 days", "3 held in 7 days", "1 let pass in 7 days", "No hit in 7 days"]) {
      expect(text).toContain(said);
    }
  });

  test("undo the last change of a rule, and no other", async () => {
    const said = async () => {
      const html = await ann.pageOf(PAGE);
      return { seq: /name="seq" value="(\d+)"/.exec(html)?.[1] ?? "", text: wordsOf(html) };
    };
    const names = async () => (await rules()).map(({ id, name, version }) => [id, name, version]);
    const [first, second, third] = [await rule({ name: "A" }), await rule({ name: "B" }), await rule({ name: "C" })];
    const before = await names();
    await app.call("DELETE", `/v1/rules/${second}`);
    const removed = await said();
    expect(removed.text).toContain("removed B just now.");
    expect((await send(`${PAGE}/undo`, { seq: removed.seq })).to).toBe(PAGE);
    expect(await names()).toEqual(before.with(1, [second, "B", 2]));
    expect((await said()).text).toContain("ann@example.com added B just now.");
    expect((await send(`${PAGE}/undo`, { seq: removed.seq })).status).toBe(404);

    await app.call("PATCH", `/v1/rules/${first}`, { name: "A2", path: "/a" });
    const changed = await said();
    await app.call("POST", "/v1/rules/reorder", { ids: [third, first, second] });
    expect((await said()).seq).toBe("");
    const stale = await send(`${PAGE}/undo`, { seq: changed.seq });
    expect([stale.status, stale.html.includes("The rules have changed since then.")]).toEqual([404, true]);
    await app.call("PATCH", `/v1/rules/${first}`, { name: "A3" });
    await send(`${PAGE}/undo`, { seq: (await said()).seq });
    expect(await names()).toEqual([
      [third, "C", 1],
      [first, "A2", 4],
      [second, "B", 2],
    ]);
    expect((await rules())[1]).toMatchObject({ path: "/a" });

    await rule({ name: "D" });
    await send(`${PAGE}/undo`, { seq: (await said()).seq });
    expect((await names()).length).toBe(3);
  });

  test("show a refused form again with all that was typed, what is wrong at its field, and where in the expression", async () => {
    const typed = {
      ...FIELDS,
      name: `<em>"x"`,
      hosts: "a.example\nb_.example?",
      path: "pay",
      when: "\n action.body >\n  foo",
    };
    const refused = await send(PAGE, typed);
    expect(refused.status).toBe(400);
    for (const name of ["hosts", "path", "when"]) expect(refused.html).toContain(`id="${name}-problem"`);
    expect(refused.html).toContain("(Line 3, column 3.)");
    for (const kept of [
      'value="&lt;em&gt;&quot;x&quot;"',
      "b_.example?",
      'value="pay"',
      // Browsers drop the first line break.
      "\n\n action.body &gt;\n  foo</textarea>",
      'value="18:00"',
      'name="between.day_mon" value="yes" checked',
      'name="method_PUT" value="yes" checked',
      'value="10000"',
      'value="json" selected',
    ]) {
      expect(refused.html).toContain(kept);
    }
    expect(refused.html).not.toContain("<em>");
    for (const [name, value] of Object.entries({
      effect: "",
      "between.from": "25:00",
      "sum.member": "amount",
      "more_than.minutes": "0",
    })) {
      const other = await send(PAGE, { ...FIELDS, [name]: value });
      expect({ status: other.status, asks: other.html.includes(`id="${name}-problem"`) }, name).toEqual({
        status: 400,
        asks: true,
      });
    }
    expect(await rules()).toEqual([]);
  });

  test("change a rule, and write what differs to the audit log", async () => {
    const id = await rule(ALL);
    const html = await ann.pageOf(`${PAGE}/${id}`);
    expect(hiddenIn(html)).toMatchObject({ version: "1" });
    for (const name of Object.keys(FIELDS)) expect(html).toContain(`name="${name}"`);
    for (const shown of [
      'value="Payments above 1000"',
      "api.example.com\n*.example.org",
      'name="explain" value="yes" checked',
    ]) {
      expect(html).toContain(shown);
    }
    const { path: _path, explain: _explain, ...rest } = FIELDS;
    const saved = await send(`${PAGE}/${id}`, { ...rest, path: "", effect: "refuse", version: "1" });
    expect([saved.status, saved.to]).toEqual([303, `${PAGE}#${id}`]);
    const { path: _, explain: __, ...left } = ALL;
    const [changed] = await rules();
    expect(changed).toMatchObject({ ...left, effect: "refuse", version: 2 });
    expect(changed).not.toHaveProperty("path");
    expect(changed).not.toHaveProperty("explain");
    const [entry] = JSON.parse((await app.call("GET", "/v1/audit?kind=rules_changed")).text).data;
    expect(entry.detail).toMatchObject({ change: "changed", name: ALL.name, changed: "effect, path, explain" });
    // The form as it is now: nothing to write.
    await send(`${PAGE}/${id}`, { ...rest, path: "", effect: "refuse", version: "2" });
    expect((await rules())[0]?.version).toBe(2);
  });

  test("keep what another client has written: keys that are gone, lines of a message, lists in another order", async () => {
    const made = { ...ALL, keys: ["key_gone"], methods: ["PUT", "POST"], message: "Two\nlines" };
    const id = await rule(made);
    const html = await ann.pageOf(`${PAGE}/${id}`);
    expect(html).toContain('name="key_key_gone" value="yes" checked');
    expect(html).toContain("Two\nlines</textarea>");
    await send(`${PAGE}/${id}`, { ...FIELDS, key_key_gone: "yes", message: "Two\r\nlines", version: "1" });
    expect((await rules())[0]).toMatchObject({ ...made, version: 1 });
  });

  test("ask again where another person has changed the rule since it was opened", async () => {
    const id = await rule(ALL);
    await app.call("PATCH", `/v1/rules/${id}`, `{"effect":"refuse"}`);
    // A refusal for another reason says nothing of the change, so the form stays one from before it.
    const wrong = await send(`${PAGE}/${id}`, { ...FIELDS, name: "", version: "1" });
    expect([wrong.status, hiddenIn(wrong.html)["version"]]).toEqual([400, "1"]);
    const late = await send(`${PAGE}/${id}`, { ...FIELDS, message: "Mine", version: "1" });
    expect(late.status).toBe(400);
    expect(late.html).toContain("owner has changed this rule since you opened it: it has version 2 now.");
    expect(late.html).toContain("Mine</textarea>");
    expect((await rules())[0]).toMatchObject({ effect: "refuse", message: ALL.message });
    const again = await send(`${PAGE}/${id}`, { ...FIELDS, message: "Mine", ...hiddenIn(late.html) });
    expect(again.status).toBe(303);
    expect((await rules())[0]).toMatchObject({ effect: "hold", message: "Mine", version: 3 });
  });

  test("save one of two changes of a rule that come at once, and ask again about the other", async () => {
    const path = `${PAGE}/${await rule(ALL)}`;
    const both = ["Mine", "Theirs"].map((message) => send(path, { ...FIELDS, message, version: "1" }));
    const statuses = (await Promise.all(both)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([303, 400]));
    expect((await rules())[0]).toMatchObject({ message: statuses[0] === 303 ? "Mine" : "Theirs", version: 2 });
  });

  test("put a new rule before another, move rules up and down, and remove one after a question", async () => {
    const [one, two] = [await rule({ name: "One" }), await rule({ name: "Two" })];
    await send(PAGE, { name: "Three", effect: "allow", before: two });
    const names = async () => (await rules()).map(({ name }) => name);
    expect(await names()).toEqual(["One", "Three", "Two"]);
    // The focus stays on the button, or goes to the other one where it can't be pressed any more.
    expect((await send(`${PAGE}/${two}/move`, { direction: "up" })).to).toBe(`${PAGE}#up-${two}`);
    expect((await send(`${PAGE}/${two}/move`, { direction: "up" })).to).toBe(`${PAGE}#down-${two}`);
    expect(await names()).toEqual(["Two", "One", "Three"]);
    expect((await send(`${PAGE}/${two}/move`, { direction: "up" })).status).toBe(303);
    expect((await send(`${PAGE}/${one}/move`, { direction: "down" })).to).toBe(`${PAGE}#up-${one}`);
    expect(await names()).toEqual(["Two", "Three", "One"]);
    const asked = wordsOf(await ann.pageOf(`${PAGE}/${one}/remove`));
    expect(await ann.pageOf(`${PAGE}/${one}`)).toContain("<title>One ·");
    expect(asked).toContain("Remove this rule?What it would hold is decided by the next rules, immediately.");
    await app.call("PATCH", `/v1/rules/${one}`, `{"effect":"refuse"}`);
    // The question was about another effect.
    const { status, html } = await send(`${PAGE}/${one}/remove`, { version: "1" });
    expect([status, wordsOf(html)]).toEqual([400, expect.stringContaining("owner has changed this rule since")]);
    expect(await names()).toHaveLength(3);
    for (const _time of [1, 2]) {
      expect(await send(`${PAGE}/${one}/remove`, { version: "2" })).toMatchObject({ status: 303, to: PAGE });
    }
    expect(await names()).toEqual(["Two", "Three"]);
    expect((await send(`${PAGE}/${one}/move`, { direction: "up" })).status).toBe(404);
    expect((await ann.context(`${PAGE}/${one}`)).status).toBe(404);
  });

  test("show readers names, effects and messages, approvers also conditions, and only owners what changes them", async () => {
    const id = await rule(ALL);
    for (const [role, isRead] of [
      ["approver", true],
      ["reader", false],
    ] as const) {
      const bob = await joined(app, role);
      const html = await bob.pageOf(PAGE);
      expect(html).toContain(`<a href="${PAGE}" aria-current="page">`);
      for (const shown of [ALL.name, ">Hold<", ALL.message]) expect(html).toContain(shown);
      for (const shown of ["/payments", "action.body.amount", "Europe/Berlin"]) {
        expect(html.includes(shown), `${role} ${shown}`).toEqual(isRead);
      }
      for (const owners of ["/move", "/remove", `${PAGE}/new`, `${PAGE}/${id}`]) expect(html).not.toContain(owners);
      for (const path of [`${PAGE}/new`, `${PAGE}/${id}`, `${PAGE}/${id}/remove`]) {
        const { status } = await bob.context(path);
        expect(status, `${role} ${path}`).toBe(403);
      }
    }
  });
});

describe("the form for a new key", () => {
  const made = (name: string, fields: Readonly<Record<string, string>>) =>
    send("/keys", { form_id: name, name, role: "agent", hold: "none", scope: "own", ...fields });
  const stored = async () => JSON.parse((await app.call("GET", "/v1/rules")).text).data;

  test("has loops of agents held, unless that is unticked, by one rule behind those that refuse", async () => {
    expect(await ann.pageOf("/keys/new")).toContain('name="loop_brake" value="yes" checked');
    await rule({ name: "Refuse", effect: "refuse", path: "/x" });
    await rule({ name: "Allow", effect: "allow" });
    for (const [name, fields] of Object.entries({
      ann: { loop_brake: "yes" },
      bob: {},
      own: { loop_brake: "yes", role: "owner" },
      eve: { loop_brake: "yes" },
    })) {
      await made(name, fields);
    }
    const { data: keys } = JSON.parse((await app.call("GET", "/v1/keys")).text);
    const idOf = (wanted: string) => keys.find(({ name }: { readonly name: string }) => name === wanted).id;
    const [, brake, ...others] = await stored();
    expect(brake).toMatchObject({
      name: "Loop brake",
      effect: "hold",
      keys: [idOf("ann"), idOf("eve")],
      more_than: { count: 20, minutes: 5, same: "request" },
      version: 2,
    });
    expect(others.map(({ name }: { readonly name: string }) => name)).toEqual(["Allow"]);
    // The new key in place of one is ruled with it.
    const replaced = await ann.pageOf(`/keys/new?replaces=${idOf("ann")}`);
    expect(replaced).not.toContain("loop_brake");
    expect((await app.call("POST", "/v1/keys", '{"name":"rest","role":"agent"}')).status).toBe(201);
    expect((await stored())[1].keys).toHaveLength(2);
  });

  test("shows the key also where there can't be one rule more, and says so", async () => {
    const full = Array.from({ length: 500 }, (_, n) => ({ name: `R${n}`, effect: "hold", path: `/${n}` }));
    await app.call("PUT", "/v1/rules", { rules: full });
    const answer = await made("ann", { loop_brake: "yes" });
    const shown = answer.to === null ? answer.html : await ann.pageOf(answer.to);
    expect(wordsOf(shown)).toContain("Its loops are not held");
  });
});

test("templates and examples are rules that can be saved as they are", async () => {
  for (const { name, rule: definition } of TEMPLATES) {
    expect(await ann.pageOf(`${PAGE}/new?template=${name}`)).toContain(`value="${definition.name}"`);
    expect({ name, ...ruleIn(ruleFields(definition).values) }).toEqual({ name, definition, before: null });
    expect(ruleFrom(definition, "", 1).definition.name).toBe(definition.name);
  }
  for (const [when] of EXAMPLES)
    expect(ruleFrom({ name: "x", effect: "hold", when }, "", 1).definition.when).toBe(when);
});
