import { describe, expect, test } from "bun:test";
import { OPERATIONS } from "../support/operations.ts";
import { createClient } from "../../src/client/client.ts";
import { OutgateError } from "../../src/client/transport.ts";
import { openRealServer } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";
import { Target } from "../support/target.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer());
const target = await shared(new Target(() => Response.json({ ok: true })));

const client = (apiKey: string | null) => createClient({ url: `${app.url}/`, apiKey });

const owner = client(KEYS.owner);

/** What a call was refused with; anything but an `OutgateError` fails the test. */
async function refusalOf(call: Promise<unknown>): Promise<OutgateError> {
  const error: unknown = await call.then(
    () => "nothing",
    (thrown: unknown) => thrown,
  );
  if (error instanceof OutgateError) return error;
  throw new Error(`Not refused: ${String(error)}`);
}

/** What the client has beside the operations. */
const OWN_METHODS = ["actions", "create", "waitFor"];

test("has a method for every operation of the API, by its name, but for those of people", () => {
  const operations = OPERATIONS.filter(({ path }) => !path.startsWith("/auth/"));
  const names = [...operations.map(({ id }) => id), ...OWN_METHODS];
  expect(Object.keys(owner).toSorted()).toEqual(names.toSorted());
});

test("is made only with the address of a service: a variable that is not set is no server that is down", () => {
  for (const url of [process.env["NOT_SET"], "", "127.0.0.1:3000", "outgate.example.com", "file:///etc"]) {
    // Safe: what a program without types passes.
    expect(() => createClient({ url: url as string, apiKey: null })).toThrow("url must be the address of Outgate");
  }
});

test("sends no key where a variable that should hold it is not set", async () => {
  const keyless = createClient({ url: app.url, apiKey: process.env["NOT_SET"] });
  expect(await keyless.getHealth()).toMatchObject({ status: "ok" });
  expect((await refusalOf(keyless.getAccount())).code).toBe("unauthorized");
});

test("says of what can't be sent that it can't, and does not try again", async () => {
  const slow = createClient({ url: app.url, apiKey: KEYS.owner, tries: 5, retryBaseMs: 60_000 });
  const calls = [
    slow.create({ url: target.url, body: { amount: 10n } }),
    slow.create({ url: target.url }, { idempotencyKey: "order\n7" }),
    slow.listActions({ id: [] }),
  ];
  for (const call of calls) expect(await call.catch((error: unknown) => error)).toBeInstanceOf(TypeError);
});

describe("the client", () => {
  test("takes an action through its life", async () => {
    const held = await owner.createAction(
      { url: target.url, body: { n: 1 }, approve: true, dedupe: "life" },
      { idempotencyKey: "life, 1" },
    );
    expect(held).toMatchObject({
      status: "awaiting_approval",
      idempotency_key: "life, 1",
      actions: ["approve", "cancel"],
    });
    const again = await owner.createAction(
      { url: target.url, body: { n: 2 }, approve: true },
      { idempotencyKey: "life, 1" },
    );
    expect(again).toMatchObject({ id: held.id, deduplicated: true, differs: ["body", "dedupe"] });
    expect((await owner.approveAction(held.id, { reason: "fine" })).status).not.toBe("awaiting_approval");
    const done = await owner.getAction(held.id, { waitSeconds: 5 });
    expect(done).toMatchObject({ status: "completed", response_body: { ok: true }, approved_by: "key:owner" });
    const receipt = await client(null).getReceipt(done.receipt_url ?? "");
    expect(receipt).toMatchObject({ id: held.id, status: "completed", receipt_url: null });
    expect(receipt.timeline.map(({ type }) => type)).toContain("completed");
    const { data } = await owner.getTimeline(held.id);
    expect(data.map(({ type }) => type)).toEqual(["created", "held", "approved", "started", "attempt", "completed"]);
    expect(data[2]).toMatchObject({ actor: "key:owner", reason: "fine" });
  });

  test("cancels, retries, and lists what it looks for", async () => {
    const { id } = await owner.createAction({ url: target.url, approve: true, method: "PUT" });
    expect(await owner.cancelAction(id)).toMatchObject({ status: "cancelled" });
    expect(await owner.retryAction(id, { reason: "once more" })).toMatchObject({ status: "awaiting_approval" });
    const page = await owner.listActions({ status: ["awaiting_approval", "failed"], method: "PUT", limit: 1 });
    expect(page.data.map((action) => action.id)).toEqual([id]);
    expect((await owner.listActions({ limit: 1 })).next_cursor).toBeString();
  });

  test.each(["", ".", "..", "../keys", "act_a?wait=1"])("sends the id %j as one part of the path", async (id) => {
    expect((await refusalOf(owner.getAction(id))).code).toBe("not_found");
  });

  test("waits for the end of a create that is in sync", async () => {
    const done = await owner.createAction({ url: target.url, sync: true }, { waitSeconds: 5 });
    expect(done).toMatchObject({ status: "completed", response_code: 200 });
  });

  test("create makes one action, however often it has to be sent", async () => {
    let answers = 0;
    using lossy = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        const { pathname, search } = new URL(request.url);
        const { method, headers } = request;
        const answer = await fetch(`${app.url}${pathname}${search}`, { method, headers, body: await request.text() });
        answers += 1;
        // The first answer is lost on its way.
        return answers === 1 ? new Response("Bad Gateway", { status: 502 }) : answer;
      },
    });
    const far = createClient({ url: `http://127.0.0.1:${lossy.port}`, apiKey: KEYS.owner, retryBaseMs: 1 });
    const action = await far.create({ url: target.url, approve: true });
    expect(answers).toBe(2);
    expect(action).toMatchObject({ deduplicated: true, differs: [] });
    expect((await far.create({ url: target.url, approve: true })).id).not.toBe(action.id);
  });

  test("waitFor resolves with the end of an action, and rejects when its time is over", async () => {
    const { id } = await owner.create({ url: target.url, approve: true });
    const late = await refusalOf(owner.waitFor(id, { timeoutSeconds: 0 }));
    expect(late).toMatchObject({ code: "timed_out", status: null });
    expect(late.message).toContain("awaiting_approval");
    const ended = owner.waitFor(id, { timeoutSeconds: 20 });
    await owner.approveAction(id);
    expect(await ended).toMatchObject({ id, status: "completed" });
  });

  test("actions goes through all pages", async () => {
    const made: string[] = [];
    for (let n = 0; n < 5; n += 1)
      made.push((await owner.create({ url: target.url, approve: true, dedupe: `page-${n}` })).id);
    const seen: string[] = [];
    for await (const { id } of owner.actions({ limit: 2, status: ["awaiting_approval"] })) seen.push(id);
    expect(seen.slice(0, 5)).toEqual(made.toReversed());
    expect(new Set(seen).size).toBe(seen.length);
  });

  test("makes keys, lists and revokes them, and knows who it is", async () => {
    const { id, key } = await owner.createKey({ name: "lent", role: "agent", hold: "writes" });
    const lent = client(key);
    expect(await lent.getAccount()).toMatchObject({ key: { id, name: "lent", role: "agent" } });
    expect(await owner.revokeKey(id)).toMatchObject({ id, unfinished_actions: 0, held_actions: 0, created_keys: 0 });
    const { key: own } = await owner.getAccount();
    const { data } = await owner.listKeys({ createdBy: own?.id });
    expect(data.find((one) => one.id === id)?.revoked_at).toBeString();
    expect(await refusalOf(lent.getAccount())).toMatchObject({ code: "unauthorized", status: 401 });
  });

  test("reads the rest", async () => {
    expect(await owner.getSigningSecret("https://api.example.com")).toMatchObject({
      origin: "https://api.example.com",
      secret: expect.stringMatching(/^whsec_/),
    });
    const nobody = client(null);
    expect(await nobody.getHealth()).toMatchObject({ status: "ok" });
    expect(await nobody.getReady()).toMatchObject({ status: "ok" });
    expect(await nobody.getMetrics()).toContain("outgate_");
    expect(await nobody.getOpenApi()).toMatchObject({ openapi: "3.1.1" });
  });

  test("tells of a refusal all that the service told", async () => {
    const wrong = await refusalOf(owner.createAction({ url: target.url, retries: 0, dedupe: "" }));
    expect(wrong).toMatchObject({ name: "OutgateError", code: "validation_error", status: 400 });
    expect(wrong.details.map(({ field }) => field).toSorted()).toEqual(["dedupe", "retries"]);
    expect(wrong.detailsLeftOut).toBe(0);
    expect(wrong.requestId).toMatch(/^req_/);
    expect(wrong.message).toBe("The request has fields that are not valid.");
    const headers = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`X-${n}`, "\n"]));
    const { details, detailsLeftOut } = await refusalOf(owner.createAction({ url: target.url, headers }));
    expect([details.length > 50, details.length + detailsLeftOut]).toEqual([true, 501]);
    expect(await refusalOf(client(KEYS.reader).createAction({ url: target.url }))).toMatchObject({ code: "forbidden" });
    expect(await refusalOf(owner.getAction("act_nobody"))).toMatchObject({ code: "not_found", status: 404 });
    const { id } = await owner.createAction({ url: target.url, sync: true });
    expect(await refusalOf(owner.cancelAction(id))).toMatchObject({ code: "not_cancellable", status: 409 });
  });

  test("ends a call when its caller wants no more of it, with the caller's own reason", async () => {
    const { id } = await owner.createAction({ url: target.url, approve: true });
    const release = new AbortController();
    const waiting = owner.getAction(id, { waitSeconds: 60, signal: release.signal }).catch((error: unknown) => error);
    await Bun.sleep(20);
    const reason = new Error("no time");
    release.abort(reason);
    expect(await waiting).toBe(reason);
  });

  test("reads JSON as it is told to", async () => {
    const texts: string[] = [];
    const parse = (text: string): unknown => {
      texts.push(text);
      return JSON.parse(text);
    };
    await createClient({ url: app.url, apiKey: KEYS.owner, parse }).getAccount();
    expect(texts).toHaveLength(1);
  });
});
