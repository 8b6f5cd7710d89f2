import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Target } from "../support/target.ts";
import { openRealServer, type RealServer, STRANGER } from "./real-server.ts";
import { ANN, signedIn } from "./signed-in.ts";

const NO_TARGET = "http://127.0.0.1:9/";

/** Whose outcome nobody knows: it takes the request and closes. */
const closeWithAnswer = () =>
  Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: (socket) => socket.terminate() } });

let app: RealServer;

let ann: Awaited<ReturnType<typeof signedIn>>;

beforeAll(async () => {
  app = await openRealServer();
  ann = await signedIn(app);
});

afterAll(() => app[Symbol.asyncDispose]());

async function created(members: object = {}): Promise<string> {
  const body = JSON.stringify({ url: NO_TARGET, ...members });
  return (await app.call("POST", "/v1/actions", body)).json.id;
}

const actionOf = (id: string) => app.engine.actionService.get(app.engine.owner, id);

async function ended(members: object, status: "completed" | "failed"): Promise<string> {
  const id = await created({ retries: 1, ...members });
  await app.engine.saw(id, { status });
  return id;
}

const textOf = (html: string) => html.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");

const say = async (id: string, fields: Readonly<Record<string, string>>, tail = "") =>
  ann.send(`/actions/${id}${tail}`, { ...(await ann.hiddenOf(`/actions/${id}`)), ...fields });

describe("the page of an action", () => {
  test("shows a held request before it asks for a decision on it", async () => {
    const held = await ann.pageOf(`/actions/${await created({ approve: true })}`);
    expect(held.indexOf('id="request"')).toBeLessThan(held.indexOf('id="decision"'));
    const failed = await ann.pageOf(`/actions/${await ended({}, "failed")}`);
    expect(failed.indexOf('id="request"')).toBeGreaterThan(failed.indexOf('id="decision"'));
  });

  test("shows what was answered before what can be done about it", async () => {
    const failed = await ann.pageOf(`/actions/${await ended({}, "failed")}`);
    expect(failed).toContain('id="response"');
    expect(failed.indexOf('id="response"')).toBeLessThan(failed.indexOf('id="decision"'));
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
    const drawing = /<svg[^>]*aria-label="([^"]*)"/.exec(html)?.[1];
    expect(drawing).toBe("waiting to be sent, 2 s; 1 failed attempt, 0 ms; 1 successful attempt, 0 ms.");
    const bars = [...html.matchAll(/<rect class="span span-(\w+)" x="(\d+)"/g)].map(([, kind, x]) => [kind, Number(x)]);
    expect(bars).toEqual([
      ["wait", 0],
      ["bad", 0],
      ["good", 995],
    ]);
    expect(html).toContain(`href="${app.engine.receiptUrl(id)}"`);
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
    expect(await ann.pageOf(`/actions/${done}`)).toContain(`href="/actions/${done}/again"`);
  });

  test("does not exist for another account's, nor for what is no id", async () => {
    const theirs = { authorization: `Bearer ${STRANGER}` };
    const { json } = await app.call("POST", "/v1/actions", `{"url":"${NO_TARGET}","approve":true}`, theirs);
    const fields = await ann.hiddenOf("/actions");
    for (const id of [json.id, "act_nobody", "nonsense", "act_%00"]) {
      expect((await ann.context(`/actions/${id}`)).status).toBe(404);
      expect((await ann.context(`/actions/${id}/again`)).status).toBe(404);
      for (const tail of ["", "/again", "/reveal"]) {
        const sent = { ...fields, decision: "approve", run: "1", sure: "yes" };
        expect((await ann.send(`/actions/${id}${tail}`, sent)).status).toBe(404);
      }
    }
  });

  test("lives under the rules of our own pages, with nothing inline", async () => {
    const id = await ended({ body: { a: 1 } }, "failed");
    const before = await actionOf(id);
    for (const path of ["/actions", "/actions?status=failed", `/actions/${id}`, `/actions/${id}/again`]) {
      for (const method of ["GET", "HEAD"]) {
        expect(Object.fromEntries((await ann.context(path, { method })).headers)).toMatchObject({
          "content-security-policy":
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
          "x-frame-options": "DENY",
          "cache-control": "private, no-store",
          "referrer-policy": "same-origin",
        });
      }
      const html = await ann.pageOf(path);
      expect(html).not.toMatch(
        /<script(?! type="module" src="\/assets\/(?:live|session)-[0-9a-f]{16}\.js"><\/script>)/i,
      );
      expect(html).not.toMatch(/<style| style=| on\w+=/i);
    }
    expect(await actionOf(id)).toEqual(before);
  });
});

describe("a decision on it", () => {
  test.each([
    ["approve", "approved"],
    ["reject", "rejected"],
  ] as const)("%s is the person's, with a reason", async (decision, type) => {
    const id = await created({ approve: true });
    const response = await say(id, { decision, reason: "Seen by Ann." });
    expect([response.status, response.headers.get("location")]).toEqual([303, `/actions/${id}`]);
    const told = (await app.engine.events(id)).find((event) => event.type === type);
    expect(told).toEqual({ type, actor: `user:${ANN}`, reason: "Seen by Ann." });
  });

  test("cancel and retry are, too", async () => {
    await using target = new Target(500);
    const id = await created({ url: target.url });
    await app.engine.saw(id, { status: "pending", attempts: 1 });
    await say(id, { decision: "cancel", reason: "Wrong order." });
    expect((await actionOf(id)).status).toBe("cancelled");
    await say(id, { decision: "retry" });
    expect((await actionOf(id)).run).toBe(2);
    const told = (await app.engine.events(id)).flatMap((one) => ("actor" in one ? [one.type] : []));
    expect(told).toEqual(["created", "cancelled", "retried"]);
  });

  test("a retry of what needs a yes waits for it, or is given it in the same breath", async () => {
    await using target = new Target(500, 500);
    const id = await created({ url: target.url, approve: true, retries: 1 });
    await say(id, { decision: "approve" });
    await app.engine.saw(id, { status: "failed", run: 1 });
    await say(id, { decision: "retry" });
    expect(await actionOf(id)).toMatchObject({ status: "awaiting_approval", run: 2 });
    await say(id, { decision: "reject" });
    await say(id, { decision: "retry_and_approve", reason: "Agreed." });
    await app.engine.saw(id, { status: "failed", run: 3 });
    expect((await actionOf(id)).approvedBy).toBe(`user:${ANN}`);
    expect(target.received).toHaveLength(2);
  });

  test("that comes too late says so on the page, and keeps what was typed", async () => {
    const id = await created({ approve: true });
    const fields = await ann.hiddenOf(`/actions/${id}`);
    await app.call("POST", `/v1/actions/${id}/cancel`);
    const late = await ann.send(`/actions/${id}`, { ...fields, decision: "approve", reason: "Yes & please" });
    expect(late.status).toBe(409);
    const html = await late.text();
    expect(html).toContain("no longer awaits the decision");
    expect(html).toContain("Yes &amp; please</textarea>");
    const long = await ann.send(`/actions/${id}`, { ...fields, decision: "retry", reason: "x".repeat(1_001) });
    expect(long.status).toBe(400);
    expect((await ann.send(`/actions/${id}`, { ...fields, decision: "maybe" })).status).toBe(400);
    expect((await actionOf(id)).status).toBe("cancelled");
  });

  test("on a run that was not looked at is not taken", async () => {
    const id = await created({ approve: true });
    const fields = await ann.hiddenOf(`/actions/${id}`);
    await app.call("POST", `/v1/actions/${id}/cancel`);
    await app.call("POST", `/v1/actions/${id}/retry`);
    for (const run of [fields["run"] ?? "", "", "x"]) {
      expect((await ann.send(`/actions/${id}`, { ...fields, run, decision: "approve" })).status).toBe(409);
    }
    expect((await actionOf(id)).status).toBe("awaiting_approval");
  });

  test("needs our own page and this session's token, as every form here", async () => {
    const id = await created({ approve: true });
    const fields = { ...(await ann.hiddenOf(`/actions/${id}`)), decision: "approve", sure: "yes" };
    for (const tail of ["", "/reveal", "/again"]) {
      const path = `/actions/${id}${tail}`;
      expect((await ann.send(path, { ...fields, form_token: "x" })).status).toBe(403);
      expect((await ann.send(path, fields, { origin: "https://evil.example" })).status).toBe(403);
      expect((await ann.send(path, fields, { origin: "null" })).status).toBe(403);
    }
    expect((await actionOf(id)).status).toBe("awaiting_approval");
  });
});

describe("what is secret", () => {
  test("is shown by a form alone, on a page that nothing keeps", async () => {
    await using target = new Target(() => Response.json({ session: "canary-answerx9Kq2Lm8Vb3Zt7Rw" }));
    const id = await ended(
      {
        url: `${target.url}?token=canary-queryx9Kq2Lm8Vb3Zt7Rw`,
        headers: { Authorization: "Bearer canary-header" },
        body: { password: "canary-bodyx9Kq2Lm8Vb3Zt7Rw" },
      },
      "completed",
    );
    expect(await ann.pageOf(`/actions/${id}`)).toContain("Show secrets");
    const response = await say(id, {}, "/reveal");
    expect(response.headers.get("cache-control")).toBe("private, no-store");
    const html = await response.text();
    for (const secret of [
      "canary-queryx9Kq2Lm8Vb3Zt7Rw",
      "Bearer canary-header",
      "canary-bodyx9Kq2Lm8Vb3Zt7Rw",
      "canary-answerx9Kq2Lm8Vb3Zt7Rw",
    ]) {
      expect(html).toContain(secret);
    }
    expect((await ann.context(`/actions/${id}/reveal`)).status).toBe(405);
  });
});

describe("send again as new", () => {
  test("makes a new action of the same request, with nothing that made the old one the only one", async () => {
    await using target = new Target(200);
    const headers = { "Idempotency-Key": "theirs", "X-Order": "7" };
    const body = { n: 12345678901234567000, text: "x" };
    const id = await ended({ url: target.url, method: "PUT", headers, body, dedupe: "one", retries: 4 }, "completed");
    expect(await ann.pageOf(`/actions/${id}/again`)).not.toContain('name="sure"');
    const location = (await say(id, {}, "/again")).headers.get("location") ?? "";
    const copy = location.replace("/actions/", "");
    expect(copy).toMatch(/^act_/);
    expect(copy).not.toBe(id);
    const [old, young] = [await actionOf(id), await app.engine.saw(copy, { status: "completed" })];
    expect(young).toMatchObject({
      url: old.url,
      method: "PUT",
      body: old.body,
      headers: { "X-Order": "7" },
      retries: 4,
      dedupe: null,
      idempotencyKey: null,
      createdBy: `user:${ANN}`,
    });
    const keys = target.received.map((received) => received.headers.get("idempotency-key"));
    expect(keys).toEqual(["theirs", copy]);
  });

  test("makes the same of any body, with its title and metadata", async () => {
    await using target = new Target(200);
    const bodies = [
      { form: { b: ["2", "1"], a: "ä" } },
      { json: [1, null] },
      { text: "a,b", headers: { "Content-Type": "text/csv" } },
      { base64: "AAEC/w==" },
    ];
    for (const body of bodies) {
      const id = await ended({ url: target.url, ...body, title: "A title", metadata: { a: "b" } }, "completed");
      const location = (await say(id, {}, "/again")).headers.get("location") ?? "";
      const copy = await app.engine.saw(location.replace("/actions/", ""), { status: "completed" });
      const old = await actionOf(id);
      expect([copy.body, copy.title, copy.extras]).toEqual([old.body, old.title, old.extras]);
      const [sent, again] = target.received.slice(-2);
      expect(again?.body).toBe(sent?.body ?? "");
      expect(again?.headers.get("content-type")).toBe(sent?.headers.get("content-type") ?? "");
    }
  });

  test("is held again if it was held", async () => {
    const id = await created({ approve: true, notify: { email: "ann@example.com" } });
    await say(id, { decision: "reject" });
    expect(await ann.pageOf(`/actions/${id}/again`)).toContain("It is held for approval, like the original.");
    const location = (await say(id, {}, "/again")).headers.get("location") ?? "";
    expect(await actionOf(location.replace("/actions/", ""))).toMatchObject({
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
    expect(await ann.pageOf(`/actions/${id}/again`)).toContain('name="sure"');
    const refused = await say(id, {}, "/again");
    expect(refused.status).toBe(400);
    expect(await refused.text()).toContain("Tick the box");
    const taken = await say(id, { sure: "yes" }, "/again");
    expect(taken.headers.get("location")).toStartWith("/actions/act_");
  });

  test("is judged as every create is", async () => {
    const id = await ended({}, "failed");
    const { store } = app.engine;
    const stored = await actionOf(id);
    const find = store.actions.find.bind(store.actions);
    // As if the settings had changed since.
    Object.assign(store.actions, { find: async () => ({ ...stored, url: "http://169.254.169.254/" }) });
    try {
      const refused = await say(id, {}, "/again");
      expect(refused.status).toBe(400);
      expect(await refused.text()).toContain("url: ");
    } finally {
      Object.assign(store.actions, { find });
    }
  });
});
