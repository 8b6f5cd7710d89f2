import { describe, expect, test } from "bun:test";
import { type Answer, openRealServer, type RealServer } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";
import { fresh } from "../support/shared.ts";

let app: RealServer;

fresh(async () => (app = await openRealServer({ starts: false })));

const paid = (amount: unknown, more: object = {}, key: string = KEYS.agent) =>
  app.call("POST", "/v1/actions", { url: "https://api.example.com/pay", body: { amount }, ...more }, key);

const statusOf = async (answer: Promise<Answer>) => {
  const { status, json } = await answer;
  return status < 300 ? json.status : status;
};

const idOf = ({ json }: Answer): string => json.id;

const SUM = { member: "body.amount", per: "day", timezone: "UTC", limit: 10_000 } as const;

const BUDGET = { name: "Budget", effect: "hold", path: "/pay", message: "Ask finance.", sum: SUM };

/** Holds what comes more often in five minutes. */
const loopOf = (count: number) => {
  return { name: "Loop", effect: "hold", more_than: { count, minutes: 5, same: "request" } } as const;
};

const rule = (definition: object) => app.call("POST", "/v1/rules", definition);

const auditOf = async (kind: string) =>
  (await app.call("GET", `/v1/audit?kind=${kind}`)).json.data as readonly object[];

describe("a budget", () => {
  test("lets what fits in pass, and holds what goes beyond, however it is split", async () => {
    expect((await rule(BUDGET)).status).toBe(201);
    expect(await statusOf(paid(4999))).toBe("pending");
    expect(await statusOf(paid(4999))).toBe("pending");
    const third = await paid(4999, { sync: true });
    expect(third).toMatchObject({ status: 201, json: { status: "awaiting_approval" } });
    expect(third.json["policy"]).toMatchObject({
      by: "rule",
      name: "Budget",
      reason: "It goes beyond the budget for this day. Ask finance.",
    });
    expect(await statusOf(paid(2))).toBe("pending");
    expect(await statusOf(paid(0.000000001))).toBe("awaiting_approval");
    expect(await statusOf(paid(7, { url: "https://api.example.com/other" }))).toBe("pending");
    // The first call that goes beyond is told, and not each.
    expect(await auditOf("beyond_rule")).toMatchObject([{ detail: { name: "Budget", method: "POST" } }]);
    // What a person approves is beyond the budget and not of it.
    expect((await app.call("POST", `/v1/actions/${idOf(third)}/approve`, {}, KEYS.approver)).status).toBe(200);
    app.engine.clock.advance(86_400_000);
    expect(await statusOf(paid(10_000))).toBe("pending");
    expect(await statusOf(paid(1))).toBe("awaiting_approval");
  });

  test("counts what is delayed where it is due, and lets no agent send it in another day", async () => {
    await rule(BUDGET);
    const tomorrow = { run_at: new Date(app.engine.clock.now().getTime() + 86_400_000).toISOString() };
    const delayed = await paid(9000, tomorrow);
    expect(delayed.json.status).toBe("pending");
    expect(await statusOf(paid(9000))).toBe("pending");
    // Otherwise all that was delayed for weeks could leave in one day.
    expect(await statusOf(paid(2000, tomorrow))).toBe("awaiting_approval");
    const path = `/v1/actions/${idOf(delayed)}/send-now`;
    const early = await app.call("POST", path, {}, KEYS.agent);
    expect([early.status, early.json.error?.code]).toEqual([409, "not_retryable"]);
    expect((await app.call("POST", path, {}, KEYS.owner)).status).toBe(200);
    // Later today is in the budget of today.
    const soon = await paid(1000, { delay_seconds: 1 });
    expect((await app.call("POST", `/v1/actions/${idOf(soon)}/send-now`, {}, KEYS.agent)).status).toBe(200);
    app.engine.clock.advance(86_400_000);
    expect(await statusOf(paid(1000))).toBe("pending");
    expect(await statusOf(paid(1))).toBe("awaiting_approval");
  });

  test("is that of now for a call that is retried at once, whenever it was delayed to", async () => {
    await rule(BUDGET);
    expect(await statusOf(paid(10_000))).toBe("pending");
    const nextDay = new Date(app.engine.clock.now().getTime() + 86_400_000).toISOString();
    const delayed = idOf(await paid(9000, { run_at: nextDay }));
    await app.call("POST", `/v1/actions/${delayed}/cancel`, {}, KEYS.agent);
    expect((await app.call("POST", `/v1/actions/${delayed}/retry`, {}, KEYS.agent)).status).toBe(403);
  });

  test("is that of the zone's day for a call that is sent earlier", async () => {
    // In Honolulu it is the afternoon before.
    await rule({ ...BUDGET, sum: { ...SUM, timezone: "Pacific/Honolulu" } });
    const { clock } = app.engine;
    const evening = new Date(clock.now().getTime() + 11 * 3_600_000).toISOString();
    clock.advance(60_000);
    const delayed = idOf(await paid(9000, { run_at: evening }));
    expect(await statusOf(paid(9000))).toBe("pending");
    expect((await app.call("POST", `/v1/actions/${delayed}/send-now`, {}, KEYS.agent)).status).toBe(409);
    const soon = idOf(await paid(1000, { delay_seconds: 60 }));
    expect((await app.call("POST", `/v1/actions/${soon}/send-now`, {}, KEYS.agent)).status).toBe(200);
  });

  test("counts no repeat, and what a person or the caller cancels before it is sent is free again", async () => {
    await rule(BUDGET);
    const first = await paid(9000, { dedupe: "d" });
    expect(idOf(await paid(9000, { dedupe: "d" }))).toBe(idOf(first));
    expect(await statusOf(paid(2000))).toBe("awaiting_approval");
    await app.call("POST", `/v1/actions/${idOf(first)}/cancel`, {}, KEYS.agent);
    expect(await statusOf(paid(2000))).toBe("pending");
    expect(await statusOf(paid(8001))).toBe("awaiting_approval");
    // Held for another reason, it waits within the budget.
    const held = await paid(8000, { approve: true });
    expect(await statusOf(paid(1))).toBe("awaiting_approval");
    await app.call("POST", `/v1/actions/${idOf(held)}/cancel`, {}, KEYS.approver);
    expect(await statusOf(paid(8000))).toBe("pending");
  });

  test("counts each retry of what was given back, and holds it where that goes beyond", async () => {
    await rule(BUDGET);
    const first = await paid(6000);
    const path = `/v1/actions/${idOf(first)}`;
    await app.call("POST", `${path}/cancel`, {}, KEYS.agent);
    expect(await statusOf(paid(5000))).toBe("pending");
    const retried = await app.call("POST", `${path}/retry`, {}, KEYS.agent);
    expect(retried.status).toBe(403);
    expect(JSON.stringify(retried.json)).toContain('The rule \\"Budget\\" holds this call');
    await rule({ name: "Nothing", effect: "hold", path: "/none" });
    const other = await paid(4000);
    await app.call("POST", `/v1/actions/${idOf(other)}/cancel`, {}, KEYS.agent);
    expect((await app.call("POST", `/v1/actions/${idOf(other)}/retry`, {}, KEYS.agent)).status).toBe(200);
    expect(await statusOf(paid(1001))).toBe("awaiting_approval");
    // Whoever may approve sends it beyond the budget.
    expect((await app.call("POST", `${path}/retry`, {}, KEYS.owner)).status).toBe(200);
  });

  test("of each key counts a retry by another key for both", async () => {
    await rule({ ...BUDGET, sum: { ...SUM, same: "key" } });
    const { key } = (await app.call("POST", "/v1/keys", { name: "two", role: "agent", scope: "account" })).json;
    const first = `/v1/actions/${idOf(await paid(6000))}`;
    await app.call("POST", `${first}/cancel`, {}, KEYS.agent);
    expect((await app.call("POST", `${first}/retry`, {}, key)).status).toBe(200);
    for (const one of [KEYS.agent, key]) expect(await statusOf(paid(4001, {}, one))).toBe("awaiting_approval");
  });

  test("goes on where the rule is edited and restored, and holds what it can't add up", async () => {
    const added = await rule(BUDGET);
    await paid(9000);
    const path = `/v1/rules/${idOf(added)}`;
    await app.call("PATCH", path, { unset: ["sum"] });
    expect(await statusOf(paid(1))).toBe("awaiting_approval");
    await app.call("PATCH", path, { sum: SUM, name: "Other" });
    expect(await statusOf(paid(1001))).toBe("awaiting_approval");
    await app.call("PATCH", path, { sum: { ...SUM, limit: 12_000 } });
    expect(await statusOf(paid(1001))).toBe("pending");
    for (const amount of [-1, "5", null, undefined]) expect(await statusOf(paid(amount))).toBe("awaiting_approval");
  });

  test("that is over lets pass what a person's grant allows", async () => {
    await rule({ ...BUDGET, sum: { ...SUM, limit: 5 } });
    const held = await paid(6);
    const terms = { grant: { minutes: 60, calls: 1, vary: ["body.amount"] } };
    expect((await app.call("POST", `/v1/actions/${idOf(held)}/approve`, terms, KEYS.approver)).status).toBe(200);
    expect((await paid(7)).json["policy"]).toMatchObject({ by: "grant" });
    expect(await statusOf(paid(7))).toBe("awaiting_approval");
    expect(await statusOf(paid(5))).toBe("pending");
  });
});

describe("a rule against loops", () => {
  test("holds the same call when it comes too often, asks channels once, and lets others pass", async () => {
    const channel = { name: "Team", kind: "slack", url: "https://hooks.slack.com/services/T0/B0/abcdefgh1234" };
    expect((await app.call("POST", "/v1/channels", channel)).status).toBe(201);
    const askedOf = async () => (await app.call("GET", "/v1/notifications")).json.data.length;
    await rule({ ...loopOf(3), methods: ["POST"] });
    const looped = (n: number) => paid(7, { body: { amount: 7, request: 1_000_000 + n } });
    const statuses = [];
    for (let n = 0; n < 6; n += 1) statuses.push(await statusOf(looped(n)));
    expect(statuses.map((status) => status === "pending")).toEqual([true, true, true, false, false, false]);
    expect(await statusOf(paid(8))).toBe("pending");
    expect(await statusOf(looped(9))).toBe("awaiting_approval");
    expect([(await auditOf("beyond_rule")).length, await askedOf()]).toEqual([1, 1]);
    app.engine.clock.advance(5 * 60_000 + 5_000);
    for (let n = 0; n < 3; n += 1) expect(await statusOf(looped(n))).toBe("pending");
    expect(await statusOf(looped(3))).toBe("awaiting_approval");
    expect([(await auditOf("beyond_rule")).length, await askedOf()]).toEqual([2, 2]);
  });

  test("bounds what is delayed to one time, or to times before and after one", async () => {
    await rule({ ...loopOf(3), methods: ["POST"] });
    const dueIn = (minutes: number) => {
      const run_at = new Date(app.engine.clock.now().getTime() + minutes * 60_000).toISOString();
      return statusOf(paid(1, { run_at }));
    };
    // However slowly they are created.
    for (const minutes of [60, 59, 58]) {
      expect(await dueIn(minutes)).toBe("pending");
      app.engine.clock.advance(60_000);
    }
    // All three are due at 60 minutes from the first create, 57 from now.
    for (const minutes of [57, 53, 61]) expect(await dueIn(minutes)).toBe("awaiting_approval");
    for (const minutes of [0, 51, 63]) expect(await dueIn(minutes)).toBe("pending");
  });

  test("leaves callbacks of agents alone, as other rules do not", async () => {
    await rule(loopOf(3));
    const callback = { callback: "https://hooks.example.com/" };
    expect((await paid(1, callback)).status).toBe(201);
    await rule(BUDGET);
    expect((await paid(1, callback)).json).toMatchObject({ error: { code: "invalid_url" } });
  });
});

describe("a dry run", () => {
  const tried = async (rules: readonly object[] | undefined, more: object = {}) =>
    (await app.call("POST", "/v1/rules/dry-run", { ...(rules === undefined ? {} : { rules }), ...more })).json;

  test("counts what was requested, from the oldest on, and gives back what was cancelled by then", async () => {
    for (let n = 0; n < 5; n += 1) {
      await paid(3000, { title: `Payment ${n}` });
      app.engine.clock.advance(1000);
    }
    expect(await tried([BUDGET])).toMatchObject({ allowed: 3, held: 2, uncertain: 0, differing: 2 });
    const shown = (await tried([BUDGET]))["differences"] as readonly {
      readonly title: string;
      readonly reason: string;
    }[];
    expect(shown.map(({ title }) => title)).toEqual(["Payment 4", "Payment 3"]);
    expect(shown[0]?.reason).toStartWith("It goes beyond the budget for this day.");
    expect(await tried([{ ...BUDGET, effect: "refuse" }])).toMatchObject({ allowed: 3, refused: 2 });
    // What was before these may have counted.
    expect(await tried([BUDGET], { last: 2 })).toMatchObject({ allowed: 2, held: 0, uncertain: 2 });
    expect(await tried([{ name: "Writes", effect: "hold" }], { last: 2 })).toMatchObject({ held: 2, uncertain: 0 });
    const cancelled = await paid(1, { url: "https://api.example.com/other" });
    await app.call("POST", `/v1/actions/${idOf(cancelled)}/cancel`, {});
    expect(await tried([loopOf(2)])).toMatchObject({ allowed: 3, held: 3 });
    app.engine.clock.advance(1000);
    expect(await statusOf(paid(2, { url: "https://api.example.com/other" }))).toBe("pending");
    const other = { ...BUDGET, path: "/other", sum: { ...SUM, limit: 2 } };
    expect(await tried([other])).toMatchObject({ held: 0 });
  });

  test("counts what is delayed where it is due, and what is not beside it", async () => {
    const tomorrow = { run_at: new Date(app.engine.clock.now().getTime() + 86_400_000).toISOString() };
    for (const more of [{}, tomorrow, {}, tomorrow, tomorrow]) {
      await paid(4000, more);
      app.engine.clock.advance(1000);
    }
    expect(await tried([BUDGET])).toMatchObject({ allowed: 4, held: 1 });
    app.engine.clock.advance(86_400_000);
    await paid(2000);
    await paid(2000);
    expect(await tried([BUDGET])).toMatchObject({ allowed: 5, held: 2 });
  });

  test("is certain of no count to which older calls may have added, however late they were due", async () => {
    const loop = loopOf(1);
    const startMs = app.engine.clock.now().getTime();
    const inAnHour = { run_at: new Date(startMs + 3_600_000).toISOString() };
    await paid(1, inAnHour);
    await paid(1, inAnHour);
    app.engine.clock.advance(3_600_000);
    await paid(2);
    await paid(1);
    expect(await tried([loop])).toMatchObject({ allowed: 2, held: 2, uncertain: 0 });
    expect(await tried([loop], { last: 2 })).toMatchObject({ allowed: 2, held: 0, uncertain: 2 });
    expect(await tried([loop], { since: new Date(startMs + 1).toISOString() })).toMatchObject({
      allowed: 2,
      held: 0,
      uncertain: 2,
    });
    // What the newer ones alone go beyond is certain.
    await paid(1);
    expect(await tried([loop], { last: 3 })).toMatchObject({ allowed: 2, held: 1, uncertain: 2 });
  });

  test("says of which calls nobody knows, since those before them were retried", async () => {
    const first = await paid(6000);
    await app.call("POST", `/v1/actions/${idOf(first)}/cancel`, {});
    expect((await app.call("POST", `/v1/actions/${idOf(first)}/retry`, {})).status).toBe(200);
    app.engine.clock.advance(1000);
    await paid(3000);
    await paid(3000, { url: "https://api.example.com/other" });
    expect(await tried([BUDGET])).toMatchObject({ looked_at: 3, held: 0, uncertain: 1 });
  });

  test("says as a create does that a later rule refuses what goes beyond, too", async () => {
    await paid(20_000);
    const rules = [BUDGET, { name: "None", effect: "refuse" }];
    expect(await tried(rules, { last: 1 })).toMatchObject({ held: 0, refused: 1, uncertain: 0 });
    await app.call("PUT", "/v1/rules", { rules });
    expect(await statusOf(paid(20_000))).toBe(403);
  });

  test("compares with the rules in force, which count too", async () => {
    for (let n = 0; n < 3; n += 1) await paid(3000);
    await rule({ ...BUDGET, sum: { ...SUM, limit: 6000 } });
    expect(await tried(undefined)).toMatchObject({ allowed: 2, held: 1, differing: 0 });
    expect(await tried([BUDGET])).toMatchObject({ allowed: 3, held: 0, differing: 1 });
  });
});

describe("warnings", () => {
  const warnings = ({ json }: Answer) => json["warnings"];

  test("name a rule that an earlier one keeps from applying, in answers and in lists for whoever may approve", async () => {
    await rule({ name: "All", effect: "hold", hosts: ["*.example.com"], path: "/pay" });
    const dead = await rule({
      name: "Dead",
      effect: "refuse",
      hosts: ["api.example.com:8443"],
      path: "/pay/large",
      methods: ["POST"],
    });
    expect(warnings(dead)).toEqual(['Never applies: "All" before it decides on all calls that it is about.']);
    for (const [key, shown] of [
      [KEYS.approver, true],
      [KEYS.agent, false],
    ] as const) {
      const { data } = (await app.call("GET", "/v1/rules", undefined, key)).json as { data: readonly object[] };
      expect(data.map((one) => "warnings" in one)).toEqual([false, shown]);
    }
    expect(warnings(await rule({ name: "Alive", effect: "refuse", path: "/pay" }))).toBeUndefined();
    const moved = await app.call("PATCH", `/v1/rules/${idOf(dead)}`, { path: "/other" });
    expect(warnings(moved)).toBeUndefined();
  });

  test("try a rule on the newest requests", async () => {
    for (let n = 0; n < 3; n += 1) await paid(n);
    await paid(undefined);
    const made = await rule({ name: "Typo", effect: "hold", when: "action.body.amuont > 5" });
    expect(warnings(made)).toEqual([
      'Undecidable on 4 of the newest 4 requests, which it would hold: It can\'t be decided, so a person decides. The request has no "amuont".',
    ]);
    expect(warnings(await rule(BUDGET))).toEqual([
      expect.stringMatching(/^Undecidable on 1 of the newest 4 requests.*has no "amount"\.$/),
    ]);
  });
});
