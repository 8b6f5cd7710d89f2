import { describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer, STRANGER } from "./real-server.ts";
import { ANN, joined, signedIn } from "./signed-in.ts";
import { textOf } from "../support/forms.ts";
import { KEYS } from "./stub-server.ts";
import { shared } from "../support/shared.ts";

const NO_TARGET = "http://127.0.0.1:9/";

/** Whose outcome nobody knows: it takes the request and closes. */
const closeWithAnswer = () =>
  Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: (socket) => socket.terminate() } });

const app = await shared(openRealServer());
const ann = await signedIn(app);

async function created(members: object = {}, key: string = KEYS.owner): Promise<string> {
  return (await app.call("POST", "/v1/actions", { url: NO_TARGET, ...members }, key)).json.id;
}

async function ended(members: object, status: "completed" | "failed"): Promise<string> {
  const id = await created({ retries: 1, ...members });
  await app.engine.saw(id, { status });
  return id;
}

const say = async (id: string, fields: Readonly<Record<string, string>>, tail = "") =>
  ann.send(`/actions/${id}${tail}`, { ...(await ann.hiddenOf(`/actions/${id}`)), ...fields });

describe("the page of an action", () => {
  test("shows a held request before it asks for a decision on it", async () => {
    const held = await ann.pageOf(`/actions/${await created({ approve: true })}`);
    expect(held).toContain("data-asked");
    expect(held.indexOf("data-asked")).toBeLessThan(held.indexOf('value="approve"'));
    expect(held).not.toContain('id="response"');
  });

  test("advises owners, and nobody else, to store a secret that an agent sent itself", async () => {
    const pageWith = async (headers: object, more: object = {}, key: string = KEYS.agent, who = ann) =>
      who.pageOf(`/actions/${await created({ headers, ...more }, key)}`);
    const secret = "Bearer 4711-x9Kq2Lm8Vb3Zt7Rw";
    for (const more of [{}, { approve: true }]) {
      for (const name of ["Authorization", "x-api-key", "X-Auth-Token"]) {
        const html = await pageWith({ [name]: secret }, more);
        expect(html).toContain('href="/settings/credentials?host=127.0.0.1%3A9#add"');
        expect(textOf(html)).toContain(`The agent sent ${name} itself`);
      }
    }
    const approver = await joined(app, "approver");
    for (const html of [
      await pageWith({ Accept: "*/*" }),
      await pageWith({ "Idempotency-Key": crypto.randomUUID() }),
      await pageWith({ Cookie: "sid=4711" }),
      await pageWith({ Authorization: secret }, {}, KEYS.owner),
      await pageWith({ Authorization: secret }, {}, KEYS.agent, approver),
    ]) {
      expect(html).not.toContain("as a credential");
    }
  });

  test("says in its head what happened and what to do, before the response", async () => {
    await using target = new Target(() => Response.json({ error: { message: "No such charge" } }, { status: 422 }));
    const id = await ended({ url: target.url, title: "Refund 4711" }, "failed");
    const html = await ann.pageOf(`/actions/${id}`);
    const text = textOf(html);
    expect(html).toMatch(/<h1><q class="title"><bdi class="untrusted">Refund 4711<[/]bdi>/);
    expect(text).toContain(
      "Failed 422 The target answered 422. It will not be retried. Fix the fields that the target",
    );
    expect(html.indexOf("No such charge")).toBeLessThan(html.indexOf('id="response"'));
    // All of it is in the part that a list loads over itself.
    expect(html.indexOf('<div id="action"')).toBeLessThan(html.indexOf("<h1>"));
  });

  // Which attempt: test/pages/story.test.ts.
  test("shows the response of each attempt, and never that of another one or of an earlier run", async () => {
    const answer = (n: number) => () =>
      Response.json({ answer: n }, { status: 503, headers: { "x-request-id": `r${n}` } });
    await using target = new Target(answer(1), answer(2), answer(3));
    const id = await created({ url: target.url, retries: 2, headers: { "X-A": "1" } });
    await app.engine.saw(id, { status: "pending", attempts: 1 });
    app.engine.clock.advance(60_000);
    await app.engine.saw(id, { status: "failed" });
    const responseOf = async (query = "") => {
      const text = textOf(await ann.pageOf(`/actions/${id}${query}`));
      return /Response (Attempt \d|Run \d, attempt \d).*?answer&quot;: (\d)/.exec(text)?.slice(1) ?? text;
    };
    expect(await responseOf()).toEqual(["Attempt 2", "2"]);
    expect(await responseOf("?attempt=1")).toEqual(["Attempt 1", "1"]);
    expect(textOf(await ann.pageOf(`/actions/${id}?attempt=1`))).toContain("x-request-id r1");
    await say(id, { decision: "retry" });
    await app.engine.saw(id, { status: "pending", run: 2, attempts: 1 });
    expect(await responseOf()).toEqual(["Attempt 1", "3"]);
    expect(await responseOf("?run=1&attempt=2")).toEqual(["Run 1, attempt 2", "2"]);
    await say(id, { decision: "cancel" });
  });

  test("shows its life to scale and in words, request and answer, masked", async () => {
    await using target = new Target(503, () => Response.json({ ok: 1, session: "canary-answerx9Kq2Lm8Vb3Zt7Rw" }));
    const id = await created({
      url: `${target.url}orders?token=canary-queryx9Kq2Lm8Vb3Zt7Rw`,
      headers: { Authorization: "Bearer canary-headerx9Kq2Lm8Vb3Zt7Rw" },
      body: { order: 7, password: "canary-bodyx9Kq2Lm8Vb3Zt7Rw" },
      dedupe: "order-7",
    });
    await app.engine.saw(id, { status: "pending", attempts: 1 });
    app.engine.clock.advance(2_000);
    await app.engine.saw(id, { status: "completed" });
    const html = await ann.pageOf(`/actions/${id}`);
    expect(html).not.toContain("canary");
    const text = textOf(html);
    for (const seen of ["Completed", "Attempt 1: answered 503", "Attempt 2: answered 200", "order-7", "…t7Rw)"]) {
      expect(text).toContain(seen);
    }
    expect(text).toContain("waiting to be sent, 2 s; 1 failed attempt, 0 ms; 1 successful attempt, 0 ms.");
    const bars = [...html.matchAll(/<rect class="span-(\w+)" x="(\d+)"/g)].map(([, kind, x]) => [kind, Number(x)]);
    expect(bars).toEqual([
      ["bad", 0],
      ["wait", 0],
      ["good", 992],
    ]);
    expect(html).toContain(`${app.engine.receiptUrl(id)}">Open the receipt`);
  });

  test("offers what its status and the person's role allow, and nothing else", async () => {
    const buttonsOf = async (id: string) =>
      [...(await ann.pageOf(`/actions/${id}`)).matchAll(/name="decision" value="(\w+)"/g)].map(([, value]) => value);
    const held = await created({ approve: true });
    expect(await buttonsOf(held)).toEqual(["approve", "reject"]);
    await using slow = new Target(500);
    const pending = await created({ url: slow.url });
    await app.engine.saw(pending, { status: "pending", attempts: 1 });
    expect(await buttonsOf(pending)).toEqual(["cancel", "send_now"]);
    expect(await buttonsOf(await ended({}, "failed"))).toEqual(["retry"]);
    await say(held, { decision: "reject" });
    // What a person rejected is not approved by the button that stands out.
    expect(await buttonsOf(held)).toEqual(["retry", "retry_and_approve"]);
    expect(await ann.pageOf(`/actions/${held}`)).toMatch(/class="button-plain"[^>]*value="retry_and_approve"/);
    const approved = await created({ approve: true, retries: 1 });
    await say(approved, { decision: "approve" });
    await app.engine.saw(approved, { status: "failed" });
    expect(await buttonsOf(approved)).toEqual(["retry_and_approve", "retry"]);
    await using target = new Target(200);
    const done = await ended({ url: target.url }, "completed");
    expect(await buttonsOf(done)).toEqual([]);
    const page = await ann.pageOf(`/actions/${done}`);
    expect(page).toContain(`href="/actions/${done}/edit"`);
    // Nobody gave a reason, so it has no row.
    expect(page).not.toContain("<dt>Reason</dt>");
  });

  test("does not exist for another account's, nor for what is no id", async () => {
    const { json } = await app.call("POST", "/v1/actions", `{"url":"${NO_TARGET}","approve":true}`, STRANGER);
    const fields = await ann.hiddenOf("/actions");
    for (const id of [json.id, "act_nobody", "nonsense", "act_%00"]) {
      expect((await ann.context(`/actions/${id}`)).status).toBe(404);
      for (const tail of ["/edit", "/body"]) expect((await ann.context(`/actions/${id}${tail}`)).status).toBe(404);
      for (const tail of ["", "/edit", "/reveal"]) {
        const sent = { ...fields, decision: "approve", requests: `${id},1,2:00`, sure: "yes" };
        expect((await ann.send(`/actions/${id}${tail}`, sent)).status).toBe(404);
      }
    }
  });
});

describe("a decision on it", () => {
  test("a retry of what needs a yes waits for it, or is given it in the same breath", async () => {
    await using target = new Target(500, 500);
    const id = await created({ url: target.url, approve: true, retries: 1 });
    await say(id, { decision: "approve" });
    await app.engine.saw(id, { status: "failed", run: 1 });
    await say(id, { decision: "retry" });
    expect(await app.engine.get(id)).toMatchObject({ status: "awaiting_approval", run: 2 });
    await say(id, { decision: "reject" });
    await say(id, { decision: "retry_and_approve", reason: "Agreed." });
    await app.engine.saw(id, { status: "failed", run: 3 });
    expect((await app.engine.get(id)).approvedBy).toBe(`user:${ANN}`);
    expect(target.received).toHaveLength(2);
  });

  test("that comes too late says so on the page, and keeps what was typed", async () => {
    const id = await created({ approve: true });
    const fields = await ann.hiddenOf(`/actions/${id}`);
    await app.call("POST", `/v1/actions/${id}/cancel`);
    const late = await ann.send(`/actions/${id}`, { ...fields, decision: "approve", reason: "Yes & please" });
    expect(late.status).toBe(409);
    const html = await late.text();
    expect(html).toContain("no longer awaits this decision");
    expect(html).toContain("Yes &amp; please</textarea>");
    const long = await ann.send(`/actions/${id}`, { ...fields, decision: "retry", reason: "x".repeat(1_001) });
    expect(long.status).toBe(400);
    expect((await ann.send(`/actions/${id}`, { ...fields, decision: "maybe" })).status).toBe(400);
    expect((await app.engine.get(id)).status).toBe("cancelled");
  });
});

describe("send again as new", () => {
  const again = async (id: string, more: object = {}) =>
    ann.send(`/actions/${id}/edit`, { ...(await ann.editFieldsOf(id)), ...more });

  test("makes a new action of the same request, with nothing that made the old one the only one", async () => {
    await using target = new Target(200);
    const headers = { "Idempotency-Key": "theirs", "X-Order": "7" };
    const body = { n: 12345678901234567000, text: "x" };
    const id = await ended({ url: target.url, method: "PUT", headers, body, dedupe: "one", retries: 4 }, "completed");
    expect(await ann.pageOf(`/actions/${id}/edit`)).not.toContain('name="sure"');
    const location = (await again(id)).headers.get("location") ?? "";
    const copy = location.replace("/actions/", "");
    expect(copy).toMatch(/^act_/);
    expect(copy).not.toBe(id);
    const [old, young] = [await app.engine.get(id), await app.engine.saw(copy, { status: "completed" })];
    expect(young).toMatchObject({
      url: old.url,
      method: "PUT",
      body: old.body,
      headers: { "X-Order": "7" },
      retries: 4,
      dedupe: null,
      idempotencyKey: expect.stringMatching(/^req_/),
      createdBy: `user:${ANN}`,
    });
    const keys = target.received.map((received) => received.headers.get("idempotency-key"));
    expect(keys).toEqual(["theirs", copy]);
  });

  test("has a key by which nobody who sees it masked can find out what was typed", async () => {
    const id = await created({ body: { pin: "4711" } });
    const { headers } = await again(id, { form_id: "req_canaryform" });
    const copy = (headers.get("location") ?? "").replace("/actions/", "");
    const { json } = await app.call("GET", `/v1/actions/${copy}`, undefined, KEYS.reader);
    expect(JSON.stringify(json)).not.toContain("4711");
    // If it contained the id of the form, its digest could be tried with ten thousand PINs.
    expect(json["idempotency_key"]).toMatch(/^req_[0-9a-f]{32}$/);
  });

  test("is held again if it was held", async () => {
    const id = await created({ approve: true, notify: { email: "ann@example.com" } });
    await say(id, { decision: "reject" });
    expect(await ann.pageOf(`/actions/${id}/edit`)).toContain("It is held for approval, like the original.");
    const location = (await again(id)).headers.get("location") ?? "";
    expect(await app.engine.get(location.replace("/actions/", ""))).toMatchObject({
      status: "awaiting_approval",
      notifyEmail: "ann@example.com",
    });
  });

  test("asks first where nobody knows whether it was received, and without a yes makes nothing", async () => {
    const silent = closeWithAnswer();
    const id = await ended({ url: `http://127.0.0.1:${silent.port}/` }, "failed");
    silent.stop(true);
    expect(await app.engine.events(id)).toContainEqual(expect.objectContaining({ outcome: "unknown" }));
    expect(await ann.pageOf(`/actions/${id}`)).toContain("The outcome of an attempt is unknown");
    expect(await ann.pageOf(`/actions/${id}/edit`)).toContain('name="sure"');
    const refused = await again(id);
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain("Tick the box");
    const taken = await again(id, { sure: "yes" });
    expect(taken.headers.get("location")).toStartWith("/actions/act_");
  });

  test("creates one action of a form that is sent twice", async () => {
    await using target = new Target(422, 200);
    const id = await ended({ url: target.url, method: "PUT", body: { n: 1 } }, "failed");
    const path = `/actions/${id}/edit`;
    const fields = { ...(await ann.hiddenOf(path)), method: "PUT", url: target.url, body: '{"n":2}' };
    const copyOf = async (sent: Readonly<Record<string, string>>) => {
      const { status, headers } = await ann.send(path, sent);
      return [status, headers.get("location")?.replace("/actions/", "")] as const;
    };
    const [one, other] = await Promise.all([copyOf(fields), copyOf(fields)]);
    expect(one[0]).toBe(303);
    expect(other).toEqual(one);
    await app.engine.saw(one[1] ?? "", { status: "completed" });
    expect(target.received).toHaveLength(2);
    // Another form, or the same one with other values, is another request.
    const anew = await copyOf({ ...fields, ...(await ann.hiddenOf(path)) });
    expect(anew[1]).not.toBe(one[1]);
    expect((await copyOf({ ...fields, body: '{"n":3}' }))[1]).not.toBe(one[1]);
  });
});

describe("edit and resend", () => {
  const SECRETS = {
    headers: { Authorization: "Bearer sk_live_0123456789abcdefABCDEF", "X-Order": "7" },
    body: { order: 7, password: "canary-bodyx9Kq2Lm8Vb3Zt7Rw", big: 12345678901234567000 },
  };

  const resend = async (id: string, fields: Readonly<Record<string, string>>) => {
    const answer = await say(id, fields, "/edit");
    const copy = (answer.headers.get("location") ?? "").replace("/actions/", "");
    return { status: answer.status, copy, html: await answer.text() };
  };

  test("creates a new action with what was changed, and with the values that stay masked", async () => {
    await using target = new Target(422, 200);
    const id = await ended({ url: target.url, ...SECRETS, title: "First" }, "failed");
    const fields = await ann.editFieldsOf(id);
    expect(JSON.stringify(fields)).not.toMatch(/sk_live|canary/);
    expect(fields.headers).toContain("X-Order: 7");
    const { copy } = await resend(id, {
      ...fields,
      title: "Second",
      headers: `${fields.headers}\nX-More: yes`,
      body: fields.body.replace('"order": 7', '"order": 8'),
    });
    const young = await app.engine.saw(copy, { status: "completed" });
    expect(young).toMatchObject({
      title: "Second",
      headers: { ...SECRETS.headers, "X-More": "yes" },
      body: '{"order":8,"password":"canary-bodyx9Kq2Lm8Vb3Zt7Rw","big":12345678901234567000}',
      extras: { metadata: { copy_of: id } },
      createdBy: `user:${ANN}`,
    });
    expect(target.received.at(-1)?.headers.get("authorization")).toBe(SECRETS.headers.Authorization);
    expect(await ann.pageOf(`/actions/${copy}`)).toContain(`href="/actions/${id}"`);
    expect((await app.engine.get(id)).status).toBe("failed");
  });

  test("sends no mask, and no hidden value to another host", async () => {
    const id = await ended({ url: "http://127.0.0.1:9/", ...SECRETS }, "failed");
    const fields = await ann.editFieldsOf(id);
    const count = async () => (await app.call("GET", "/v1/actions?limit=100")).json.data.length;
    const before = await count();
    for (const [wrong, said] of [
      [{ url: "http://127.0.0.1:10/" }, "kept only for the same host"],
      [{ headers: "X-Copy: ••••(Stripe-key,30-chars,…CDEF)" }, "can&#39;t be kept"],
      [{ url: "http://169.254.169.254/", headers: "", body: "" }, "url: "],
    ] as const) {
      const refused = await resend(id, { ...fields, ...wrong });
      expect([refused.status, refused.html.includes(said)]).toEqual([400, true]);
      expect(refused.html).not.toMatch(/sk_live|canary/);
    }
    expect(await count()).toBe(before);
    // With values of one's own it may go elsewhere.
    const own = await resend(id, { ...fields, url: "http://127.0.0.1:10/", headers: "", body: '{"order":9}' });
    expect(own.status).toBe(303);
  });
});
