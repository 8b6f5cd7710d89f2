import { beforeAll, describe, expect, test } from "bun:test";
import { type Answer, openRealServer, type RealServer } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";
import { fresh, once } from "../support/shared.ts";

let app: RealServer;

/** With a rule that holds payments. */
async function open(): Promise<RealServer> {
  app = await openRealServer({ starts: false });
  await app.call("POST", "/v1/rules", { name: "Payments", effect: "hold", path: "/pay" });
  return app;
}

const idOf = ({ json }: Answer): string => json.id;

const paid = (amount: unknown, more: object = {}, key: string = KEYS.agent) =>
  app.call(
    "POST",
    "/v1/actions",
    { url: "https://api.example.com/pay", body: { amount, to: "acme" }, headers: { "X-Tenant": "a" }, ...more },
    key,
  );

const statusOf = async (answer: Promise<Answer>) => (await answer).json.status;

const TERMS = { minutes: 60, calls: 2, vary: ["body.amount"], max: { "body.amount": 5000 } };

const allow = (id: string, terms: object, key: string = KEYS.approver) =>
  app.call("POST", `/v1/actions/${id}/approve`, { grant: terms }, key);

const allowed = async (terms: object = TERMS, key: string = KEYS.approver) => allow(idOf(await paid(100)), terms, key);

const grants = async () =>
  (await app.call("GET", "/v1/grants")).json.data as readonly {
    readonly id: string;
    readonly created_by: string;
  }[];

describe("a grant", () => {
  fresh(open);

  test("lets calls pass that differ only in what was named, so many, and each is told and audited", async () => {
    expect((await allow(idOf(await paid(5000)), TERMS)).status).toBe(200);
    expect(await grants()).toMatchObject([{ calls: 2, used: 0, created_by: "key:approver", vary: ["body.amount"] }]);
    const first = await paid(4999.5, { title: "Other words", dedupe: "k1" });
    expect(first.json).toMatchObject({ status: "pending", approve: false, policy: { effect: "allow", by: "grant" } });
    const { reason } = first.json["policy"] as { reason: string };
    expect(reason).toStartWith("approver allowed 2 calls like this");
    expect(reason).toEndWith(" This is 1 of 2.");
    expect((await app.call("GET", `/v1/actions/${idOf(first)}`)).json["policy"]).toMatchObject({ reason });
    // A repeat is the same call.
    expect(idOf(await paid(4999.5, { title: "Other words", dedupe: "k1" }))).toBe(idOf(first));
    expect(await grants()).toMatchObject([{ used: 1 }]);
    const last = await paid(5000);
    expect(last.json).toMatchObject({ status: "pending", policy: { reason: expect.stringMatching(/ 2 of 2\.$/) } });
    expect(await statusOf(paid(1))).toBe("awaiting_approval");
    expect(await grants()).toMatchObject([{ calls: 2, used: 2 }]);
    expect((await app.call("GET", "/v1/audit?kind=grant_used")).json.data).toMatchObject([
      { actor: "key:agent", detail: { used: 2, calls: 2 } },
      { actor: "key:agent", detail: { used: 1, host: "api.example.com" } },
    ]);
    expect((await app.call("GET", "/v1/audit?kind=approved")).json.data).toMatchObject([{ detail: { calls: 2 } }]);
  });

  test("never beats a refusal, and ends by itself, by hand, and with its maker's right to approve", async () => {
    const maker = await app.call("POST", "/v1/keys", { name: "dana", role: "approver" });
    const dana = maker.json.key;
    await allowed({ minutes: 10, calls: 9 }, dana);
    expect(await statusOf(paid(100))).toBe("pending");
    const refusing = idOf(await app.call("POST", "/v1/rules", { name: "Stop", effect: "refuse" }));
    await app.call("POST", "/v1/rules/reorder", { ids: await orderWith(refusing) });
    expect((await paid(100)).status).toBe(403);
    await app.call("DELETE", `/v1/rules/${refusing}`);
    expect(await statusOf(paid(100))).toBe("pending");
    await app.call("DELETE", `/v1/keys/${idOf(maker)}`);
    expect(await grants()).toEqual([]);
    expect(await statusOf(paid(100))).toBe("awaiting_approval");

    await allowed({ minutes: 10, calls: 9 });
    const [mine] = await grants();
    expect(await statusOf(paid(100))).toBe("pending");
    expect((await app.call("DELETE", `/v1/grants/${mine?.id}`, undefined, KEYS.agent)).status).toBe(403);
    expect((await app.call("DELETE", `/v1/grants/${mine?.id}`)).status).toBe(204);
    expect((await app.call("DELETE", `/v1/grants/${mine?.id}`)).status).toBe(404);
    expect(await statusOf(paid(100))).toBe("awaiting_approval");

    const soon = new Date(app.engine.clock.now().getTime() + 90_000).toISOString();
    const short = await app.call("POST", "/v1/keys", { name: "short", role: "approver", expires_at: soon });
    await allowed({ minutes: 1, calls: 9 });
    app.engine.clock.advance(60_000);
    expect(await statusOf(paid(100))).toBe("awaiting_approval");

    await allowed({ minutes: 10, calls: 9 }, short.json.key);
    expect(await statusOf(paid(100))).toBe("pending");
    app.engine.clock.advance(30_000);
    expect(await statusOf(paid(100))).toBe("awaiting_approval");
  });

  test("counts each of many creates at once: never one more passes than it says", async () => {
    await allowed({ ...TERMS, calls: 7 });
    const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => paid(n)));
    expect(answers.filter(({ json }) => json.status === "pending")).toHaveLength(7);
    expect(answers.filter(({ json }) => json.status === "awaiting_approval")).toHaveLength(33);
  });

  test("lets no other agent send again what it let pass the hold of a key", async () => {
    const keyWith = async (members: object) =>
      (await app.call("POST", "/v1/keys", { role: "agent", ...members })).json.key;
    const [bound, free] = [
      await keyWith({ name: "bound", hold: "all" }),
      await keyWith({ name: "free", scope: "account" }),
    ];
    const call = () => app.call("POST", "/v1/actions", { url: "https://api.example.com/x" }, bound);
    await allow(idOf(await call()), { minutes: 60, calls: 1 }, KEYS.owner);
    const passed = await call();
    expect(passed.json).toMatchObject({ status: "pending", policy: { by: "grant" } });
    await app.call("POST", `/v1/actions/${idOf(passed)}/cancel`);
    const retry = (key?: string) => app.call("POST", `/v1/actions/${idOf(passed)}/retry`, {}, key);
    expect((await retry(free)).json.error).toMatchObject({ code: "forbidden" });
    expect((await retry()).json).toMatchObject({ status: "pending", run: 2 });
  });

  test("is not made where the requester itself asked, nor by whoever only passes an answer on", async () => {
    const own = idOf(
      await app.call("POST", "/v1/actions", { url: "https://api.example.com/x", approve: true }, KEYS.agent),
    );
    const { json } = await app.call("POST", `/v1/actions/${own}/approve`, { grant: { minutes: 5, calls: 1 } });
    expect(json.error).toMatchObject({ details: [{ field: "grant" }] });
    expect((await allowed(TERMS, KEYS.agent)).status).toBe(403);
  });
});

describe("a grant of a larger amount to the same receiver", () => {
  once(open);
  beforeAll(() => allowed());

  test.each([
    ["a larger amount", () => paid(5000.001)],
    ["an amount that is a text", () => paid("100")],
    ["an amount below zero", () => paid(-1)],
    ["an amount that a double can't hold", () => paid(0.1234)],
    ["no amount", () => paid(undefined)],
    ["a member that differs by case", () => paid(1, { body: { amount: 1, to: "acme", Amount: 9e9 } })],
    ["its own wish for approval", () => paid(1, { approve: true })],
    ["another key", () => paid(1, {}, KEYS.owner)],
  ])("lets no call pass with %s", async (_name, request) => {
    expect(await statusOf(request())).toBe("awaiting_approval");
    expect(await grants()).toMatchObject([{ used: 0 }]);
  });
});

describe("a grant", () => {
  once(open);

  test.each([
    [{ minutes: 60, calls: 1, vary: ["body.nope"] }, "grant.vary.0"],
    [{ minutes: 60, calls: 1, vary: ["body"] }, "grant.vary.0"],
    [{ minutes: 60, calls: 1, max: { "body.amount": 500 } }, "grant.max.body.amount"],
    [{ minutes: 60, calls: 1, vary: ["body.to"], max: { "body.to": 5 } }, "grant.max.body.to"],
    [{ minutes: 60, calls: 1, vary: ["body.amount"], max: { "body.amount": 99 } }, "grant.max.body.amount"],
    [{ minutes: 0, calls: 1 }, "grant.minutes"],
    [{ minutes: 60, calls: 1001 }, "grant.calls"],
  ])("with terms %j is refused, and nothing is approved", async (terms, field) => {
    const id = idOf(await paid(100));
    const { status, json } = await allow(id, terms);
    expect([status, json.error]).toMatchObject([400, { details: [{ field }] }]);
    expect(await statusOf(app.call("GET", `/v1/actions/${id}`))).toBe("awaiting_approval");
    expect(await grants()).toEqual([]);
  });
});

async function orderWith(first: string): Promise<readonly string[]> {
  const rules = (await app.call("GET", "/v1/rules")).json.data as readonly { readonly id: string }[];
  return [first, ...rules.map(({ id }) => id).filter((id) => id !== first)];
}
