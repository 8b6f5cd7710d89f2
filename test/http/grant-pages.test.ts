import { beforeEach, describe, expect, test } from "bun:test";
import { GRANT_FIELDS_SHOWN_MAX } from "../../src/core/limits.ts";
import { hiddenIn, textOf } from "../support/forms.ts";
import { openRealServer } from "./real-server.ts";
import { ANN, joined, signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer({ starts: false }));
const ann = await signedIn(app);
await call("POST", "/v1/rules", { name: "Payments", effect: "hold", path: "/pay" }, KEYS.owner);

beforeEach(async () => {
  for (const { id } of await grants()) await call("DELETE", `/v1/grants/${id}`, undefined, KEYS.owner);
});

async function call(method: string, path: string, body?: object, key: string = KEYS.agent) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  return app.call(method, path, text, key);
}

interface Granted {
  readonly id: string;
}

const grants = async (): Promise<readonly Granted[]> => {
  const { text } = await call("GET", "/v1/grants", undefined, KEYS.owner);
  return (JSON.parse(text) as { readonly data: readonly Granted[] }).data;
};

const TOKEN = `ghp_${"a1B2c3D4e5F6".repeat(3)}`;

const BODY = { amount: 1200, currency: "eur", to: { name: "Acme" } };

const held = async (body: unknown = BODY, more: object = {}): Promise<string> =>
  (await call("POST", "/v1/actions", { url: "https://api.example.com/pay", body, ...more })).json.id;

const statusOf = async (id: string) => (await app.engine.get(id)).status;

const foldOf = (html: string) => /<details class="decide-grant".*?<\/details>/s.exec(html)?.[0] ?? "";

const PLACES = ["/approvals/", "/actions/"] as const;

const MORE = { decision: "approve_more", minutes: "60", calls: "20", reason: "Paid often." };

async function say(path: string, fields: Readonly<Record<string, string>>) {
  const answer = await ann.send(path, { ...(await ann.hiddenOf(path)), ...MORE, ...fields });
  return { status: answer.status, html: await answer.text() };
}

describe.each(PLACES)("the decision on %s", (place) => {
  test("offers more calls below a closed fold, with nothing ticked", async () => {
    const fold = foldOf(await ann.pageOf(place + (await held())));
    expect(fold).toStartWith('<details class="decide-grant"><summary>Allow more calls like this</summary>');
    expect(textOf(fold)).toContain(
      "Everything that is not ticked must be the same: key, method, target, headers and the rest of the body.",
    );
    expect(fold).not.toContain("checked");
    expect([...fold.matchAll(/type="checkbox" name="(\w+)" value="([^"]+)"/g)].map(([, ...said]) => said)).toEqual([
      ["vary_0", "body.amount"],
      ["vary_1", "body.currency"],
      ["vary_2", "body.to.name"],
    ]);
    expect([...fold.matchAll(/name="(most_\d+|calls)"[^>]* value="([^"]+)"/g)].map(([, ...said]) => said)).toEqual([
      ["calls", "20"],
      ["most_0", "1200"],
    ]);
    expect(/<option value="(\d+)" selected="">/.exec(fold)?.[1]).toBe("15");
    // The same form approves without a grant.
    expect(fold).not.toContain("required");
  });

  test("approves one and allows what was typed, for its page to list and its calls to name", async () => {
    const id = await held();
    const fields = { vary_0: "body.amount", most_0: " 5000.5 ", most_1: "x" };
    expect((await say(place + id, fields)).status).toBe(303);
    expect(await statusOf(id)).toBe("pending");
    expect(await grants()).toMatchObject([
      { calls: 20, used: 0, action_id: id, vary: ["body.amount"], max: { "body.amount": 5000.5 } },
    ]);
    const next = await held({ ...BODY, amount: 4000 });
    expect(await statusOf(next)).toBe("pending");
    const list = await ann.pageOf("/settings/grants");
    expect(textOf(list)).toContain(
      `agent Made by ${ANN} with the approval of an action amount ≤ 5000.5 1 of 20 calls used in 1 h`,
    );
    expect(list).toContain(`href="/actions/${id}"`);
    expect(textOf(await ann.pageOf(`/actions/${next}`))).toContain(
      `Allowed by ${ANN} ’s grant: ${ANN} allowed 20 calls like this until `,
    );
  });

  test.each([
    [{ calls: "2.5" }, "calls", "2.5", "Enter a whole number from 1 to 1,000."],
    [{ calls: "1001" }, "calls", "1001", "Enter a whole number from 1 to 1,000."],
    [{ most_0: "a <b>lot" }, "most_0", "a &lt;b&gt;lot", "Enter a number from 0 with at most 3 decimals."],
    [{ most_0: "" }, "most_0", "", "Enter a number from 0 with at most 3 decimals."],
    [{ most_0: "1199" }, "most_0", "1199", "Must be at least 1200, which this action has."],
  ])("is not made where %j is wrong: it says so there and keeps the rest", async (wrong, field, typed, problem) => {
    const id = await held();
    const { status, html } = await say(place + id, { minutes: "480", vary_0: "body.amount", most_0: "1300", ...wrong });
    expect([status, await statusOf(id), await grants()]).toEqual([400, "awaiting_approval", []]);
    const fold = foldOf(html);
    expect(fold).toStartWith('<details class="decide-grant" open=""');
    expect(fold).toContain(`id="${field}-problem" class="problem small">${problem}<`);
    expect(new RegExp(`name="${field}"[^>]* value="([^"]*)"`).exec(fold)?.[1]).toBe(typed);
    expect(fold).toContain('name="vary_0" value="body.amount" checked=""');
    expect(fold).toContain('<option value="480" selected="">');
    expect(textOf(html)).toContain("It was not approved.");
    expect(html).toContain("Paid often.</textarea>");
  });

  test("is not made for more members than a grant may have, nor for a time that is not offered", async () => {
    const id = await held({ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 });
    const ticked = Object.fromEntries(["a", "b", "c", "d", "e", "f"].map((name, at) => [`vary_${at}`, `body.${name}`]));
    const { status, html } = await say(place + id, { ...ticked, minutes: "10081" });
    expect([status, await statusOf(id), await grants()]).toEqual([400, "awaiting_approval", []]);
    expect(textOf(foldOf(html))).toMatch(/Choose for how long[.].*Tick at most 5[.]/);
  });

  test("offers no value that is hidden, and shows texts as they are", async () => {
    const body = `{"<b>n</b>":"</code><img src=x>","token":"${TOKEN}","long":"${"x".repeat(300)}"}`;
    const text = `{"url":"https://api.example.com/pay","body":${body}}`;
    const { id } = (await app.call("POST", "/v1/actions", text, KEYS.agent)).json;
    const fold = foldOf(await ann.pageOf(place + id));
    expect(fold).not.toContain("<img");
    expect(fold).not.toContain("<b>n");
    expect(fold).not.toContain(TOKEN.slice(4, 20));
    expect(fold).not.toContain("x".repeat(61));
    expect([...fold.matchAll(/name="vary_\d+" value="([^"]+)"/g)].map(([, path]) => path)).toEqual([
      "body.&lt;b&gt;n&lt;/b&gt;",
      "body.long",
    ]);
  });

  test("offers only so many members of a long body, and equal calls of one without JSON", async () => {
    const many = foldOf(
      await ann.pageOf(place + (await held(Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`m${n}`, n]))))),
    );
    expect(many.match(/type="checkbox"/g)?.length).toBe(GRANT_FIELDS_SHOWN_MAX);
    expect(textOf(many)).toContain(`Only the first ${GRANT_FIELDS_SHOWN_MAX} values are listed.`);
    const id = await held(null, { text: "pay them" });
    expect(foldOf(await ann.pageOf(place + id))).not.toContain("May differ");
    expect((await say(place + id, {})).status).toBe(303);
    expect(await grants()).toMatchObject([{ vary: [], calls: 20 }]);
  });

  test("offers none where the requester asked, and makes none", async () => {
    const id = await held(BODY, { url: "https://api.example.com/other", approve: true });
    expect(foldOf(await ann.pageOf(place + id))).toBe("");
    const { status, html } = await say(place + id, {});
    expect([status, await statusOf(id), await grants()]).toEqual([400, "awaiting_approval", []]);
    expect(textOf(html)).toContain("Would change nothing: the requester itself asks for approval of these calls.");
  });

  test("says that somebody else was first, and makes no grant", async () => {
    const id = await held();
    const hidden = await ann.hiddenOf(place + id);
    await call("POST", `/v1/actions/${id}/approve`, {}, KEYS.owner);
    const answer = await ann.send(place + id, { ...hidden, ...MORE });
    expect([answer.status, await grants()]).toEqual([409, []]);
    expect(textOf(await answer.text())).toContain(`Action ${id} no longer awaits`);
  });
});

describe("a person's role", () => {
  test("lets approvers make, see and end grants", async () => {
    const approver = await joined(app, "approver");
    const path = `/approvals/${await held()}`;
    const html = await approver.pageOf(path);
    expect(foldOf(html)).toContain("Allow more calls like this");
    expect((await approver.send(path, { ...hiddenIn(html), ...MORE })).status).toBe(303);
    const [{ id } = { id: "" }] = await grants();
    const list = await approver.pageOf("/settings/grants");
    expect(textOf(list)).toContain("agent Made by approver@example.com");
    expect(list).toContain('href="/settings/grants"');
    expect((await approver.send(`/settings/grants/${id}/end`, hiddenIn(list))).status).toBe(303);
    expect(await grants()).toEqual([]);
  });

  test("gives readers no form, no list and no link to it, and takes none from them", async () => {
    const reader = await joined(app, "reader");
    const id = await held();
    const shown = await ann.hiddenOf(`/actions/${id}`);
    for (const place of PLACES) {
      const html = await reader.pageOf(place + id);
      expect([foldOf(html), html.includes("/settings/grants")]).toEqual(["", false]);
      expect(html).toContain(id);
      const own = hiddenIn(html);
      const answer = await reader.send(place + id, { ...shown, ...own, ...MORE });
      expect([answer.status, await statusOf(id), await grants()]).toEqual([403, "awaiting_approval", []]);
      expect(textOf(await answer.text())).toContain("it needs the role owner or approver");
    }
    expect((await reader.context("/settings/grants")).status).toBe(403);
    const own = hiddenIn(await reader.pageOf(`/actions/${id}`));
    const ended = await reader.send("/settings/grants/grt_01kjwa5v00e7v8c9x2m4n6p8qr/end", own);
    expect(ended.status).toBe(403);
    expect(await reader.pageOf("/settings")).not.toContain("/settings/grants");
  });
});

describe("a grant", () => {
  test("is made by no link of a mail", async () => {
    const id = await held(BODY, { notify: { email: ANN } });
    const { approve: link } = await app.linksOf(id);
    const html = await ann.pageOf(link);
    expect([foldOf(html), html.includes('value="approve"')]).toEqual(["", true]);
    const answer = await ann.send(link, { ...hiddenIn(html), ...MORE });
    expect([answer.status, await statusOf(id), await grants()]).toEqual([400, "awaiting_approval", []]);
  });

  test("ends with one press, once", async () => {
    await say(`/actions/${await held()}`, {});
    const [{ id } = { id: "" }] = await grants();
    const path = `/settings/grants/${id}/end`;
    const list = await ann.pageOf("/settings/grants");
    expect(list).toContain(`action="${path}"`);
    expect(textOf(list)).toContain("0 of 20 calls used");
    const hidden = hiddenIn(list);
    // Somebody else may have been first.
    for (const _ of [1, 2]) expect((await ann.send(path, hidden)).headers.get("location")).toBe("/settings/grants");
    expect(await grants()).toEqual([]);
    expect(await ann.pageOf("/settings/grants")).toContain("No grant is in force");
    expect(await statusOf(await held())).toBe("awaiting_approval");
  });

  test("that is used up is listed as such, and is ended so that its delayed calls are held again", async () => {
    const later = { delay_seconds: 60 };
    await say(`/actions/${await held(BODY, later)}`, { calls: "1" });
    const delayed = await held(BODY, later);
    expect(await statusOf(delayed)).toBe("pending");
    const list = await ann.pageOf("/settings/grants");
    expect(textOf(list)).toContain("1 of 1 call used Used up. End it to stop calls that have not been sent yet.");
    const path = /\/settings\/grants\/\w+\/end/.exec(list)?.[0] ?? "";
    expect((await ann.send(path, hiddenIn(list))).status).toBe(303);
    expect(await grants()).toEqual([]);
  });
});
