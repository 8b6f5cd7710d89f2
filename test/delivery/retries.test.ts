import { expect, test } from "bun:test";
import { openEngine } from "../support/engine.ts";
import { answering } from "../actions/senders.ts";

test("every attempt carries the same ids, its own number and a signature over its own time", async () => {
  const sender = answering({ kind: "not_sent", fault: "refused" });
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ body: '{"a":1}', headers: { "user-agent": "Agent/1", "X-Plan": "b" } });
  await engine.saw(id, { status: "pending", attempts: 1 });
  engine.clock.advance(2_000);
  await engine.saw(id, { status: "pending", attempts: 2 });
  const [first, second] = sender.sent.map(({ headers }) => new Headers(headers.map(([name, value]) => [name, value])));
  for (const headers of [first, second]) {
    expect(headers?.get("webhook-id")).toBe(id);
    expect(headers?.get("idempotency-key")).toBe(id);
    expect(headers?.get("user-agent")).toMatch(/^Agent\/1 Outgate\/\d/);
    expect(headers?.get("content-type")).toBe("application/json");
    expect(headers?.get("x-plan")).toBe("b");
  }
  expect([first?.get("x-outgate-attempt"), second?.get("x-outgate-attempt")]).toEqual(["1", "2"]);
  expect(first?.get("webhook-timestamp")).not.toBe(second?.get("webhook-timestamp"));
  expect(first?.get("webhook-signature")).not.toBe(second?.get("webhook-signature"));
});

test("ten thousand sleeping retries hold one timer each for alarm, sweep and rescue", async () => {
  await using engine = await openEngine({
    sender: answering({ kind: "not_sent", fault: "refused" }),
    env: { RATE_LIMIT_PER_SECOND: "0" },
  });
  const created = await Promise.all(Array.from({ length: 2_000 }, () => engine.create({})));
  await Promise.all(created.map(({ id }) => engine.saw(id, { status: "pending", attempts: 1 })));
  // Of actions, of callbacks and of mails.
  expect(engine.clock.timers).toBeLessThanOrEqual(3 * 3);
});

test("what is ours is set over whatever a caller sent under the same name, but for an Idempotency-Key", async () => {
  const sender = answering({ kind: "not_sent", fault: "refused" });
  await using engine = await openEngine({ sender });
  const own = { "idempotency-key": "theirs" };
  const headers = { ...own, "Webhook-Id": "forged", "webhook-signature": "v1,forged", "x-outgate-attempt": "9" };
  const { id } = await engine.create({ headers });
  await engine.saw(id, { status: "pending", attempts: 1 });
  const sent = sender.sent[0]?.headers ?? [];
  const valuesOf = (name: string) =>
    sent.filter(([sentName]) => sentName.toLowerCase() === name).map(([, value]) => value);
  expect(valuesOf("idempotency-key")).toEqual(["theirs"]);
  expect(valuesOf("webhook-id")).toEqual([id]);
  expect(valuesOf("x-outgate-attempt")).toEqual(["1"]);
  expect(valuesOf("webhook-signature")).toEqual([expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/)]);
});
