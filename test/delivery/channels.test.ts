import { describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import type { Channel } from "../../src/core/channel.ts";
import { NO_EXTRAS } from "../../src/core/action.ts";
import { anAuditEntry, aChannel } from "../support/factory.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { Mailbox } from "../support/mailbox.ts";
import { Target } from "../support/target.ts";

const BASE_URL = "https://gate.example.com";

const CANARY = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";

const REFUND = {
  approve: true,
  method: "POST",
  url: "https://api.stripe.com/v1/refunds",
  hostname: "api.stripe.com",
  host: "api.stripe.com",
  headers: { Authorization: `Bearer ${CANARY}` },
  body: `{"charge":"ch_1","api_key":"${CANARY}"}`,
  title: "Refund <https://evil.example|Ann> & @channel <!channel>",
  extras: { ...NO_EXTRAS, reason: `It was paid twice, see ${CANARY}` },
} as const;

async function added(engine: Engine, overrides: Partial<Channel>): Promise<Channel> {
  const channel = aChannel({ accountId: engine.owner.accountId, createdAt: engine.clock.now(), ...overrides });
  await engine.store.channels.put(channel, anAuditEntry({ kind: "channel_added", subject: channel.id }));
  await engine.known.channels.refresh(channel.accountId);
  return channel;
}

const listed = async ({ store, owner }: Engine, actionId: string) =>
  (await store.outbox.list(owner.accountId, null, 50)).filter((entry) => entry.actionId === actionId);

const ended = (engine: Engine, actionId: string, count: number) =>
  eventually(async () => {
    const states = (await listed(engine, actionId)).map(({ status }) => status);
    return states.filter((status) => status !== "pending" && status !== "active").length >= count ? states : null;
  }, `${count} notifications of ${actionId} to end`);

/** No text of it may decide, open without a sign-in, or hold a secret. */
function expectHarmless(text: string, engine: Engine, actionId: string): void {
  expect(text).not.toContain(CANARY);
  expect(text).not.toContain(engine.receiptPath(actionId));
  expect(text).not.toMatch(/\/a\/|\/r\//);
  expect(text).toContain(`${BASE_URL}/actions/${actionId}`);
}

describe("a channel of Slack", () => {
  test("is asked at once, in words that hold no link of the requester", async () => {
    await using slack = new Target(200);
    await using engine = await openEngine({ env: { BASE_URL } });
    await added(engine, { url: `${slack.url}services/T0/B0/secret` });
    const { id } = await engine.create(REFUND);
    expect(await engine.told(id, "message", 1)).toEqual([
      {
        type: "message",
        event: "requested",
        channel: "ops",
        delivered: true,
        attempts: 1,
        error: null,
        next_retry_at: null,
      },
    ]);
    const [post] = slack.received;
    expect(post).toMatchObject({ method: "POST", path: "/services/T0/B0/secret" });
    expect(post?.headers.get("webhook-signature")).toBeNull();
    const body = post?.body ?? "";
    expectHarmless(body, engine, id);
    expect(body).not.toContain("<https://evil.example");
  });

  test("is told nothing of a decision, and what waits is dropped", async () => {
    await using slack = new Target(500);
    await using engine = await openEngine({ env: { BASE_URL } });
    await added(engine, { url: slack.url });
    const { id } = await engine.create(REFUND);
    await engine.told(id, "message", 1);
    await engine.actionService.cancel(engine.owner, id, null);
    engine.clock.advance(6_000);
    expect(await ended(engine, id, 1)).toEqual(["dropped"]);
    expect(slack.received).toHaveLength(1);
    expect(await engine.told(id, "message", 1)).toHaveLength(1);
  });

  test("that was switched off or removed meanwhile gets nothing, and one that is off owes no row", async () => {
    await using slack = new Target(500);
    await using engine = await openEngine({ env: { BASE_URL } });
    const { accountId } = engine.owner;
    const one = await added(engine, { url: slack.url });
    const two = await added(engine, { url: `${slack.url}two` });
    await added(engine, { url: `${slack.url}off`, enabled: false });
    const { id } = await engine.create(REFUND);
    expect(await listed(engine, id)).toHaveLength(2);
    await slack.saw(2);
    await engine.told(id, "message", 2);
    const entry = anAuditEntry({ kind: "channel_changed", subject: one.id });
    await engine.store.channels.change(accountId, one.id, { enabled: false }, entry);
    await engine.store.channels.remove(accountId, two.id, entry);
    engine.clock.advance(6_000);
    expect(await ended(engine, id, 2)).toEqual(["dropped", "dropped"]);
    expect(slack.received).toHaveLength(2);
  });

  test("at a private address is refused at the attempt, and not tried again", async () => {
    await using engine = await openEngine({ env: { BASE_URL } });
    await added(engine, { url: "http://10.0.0.7/services" });
    const { id } = await engine.create(REFUND);
    const [refused] = await engine.told(id, "message", 1);
    expect(refused).toMatchObject({ delivered: false, attempts: 1, next_retry_at: null });
    expect(await ended(engine, id, 1)).toEqual(["given_up"]);
  });
});

describe("a reminder", () => {
  test("follows once after its time while nobody has decided", async () => {
    await using slack = new Target(200);
    await using engine = await openEngine({ env: { BASE_URL } });
    await added(engine, { url: slack.url, remindAfterMinutes: 30 });
    const { id } = await engine.create(REFUND);
    await engine.told(id, "message", 1);
    engine.clock.advance(29 * 60_000);
    expect(slack.received).toHaveLength(1);
    engine.clock.advance(60_000);
    expect(await engine.told(id, "message", 2)).toMatchObject([{ event: "requested" }, { event: "reminded" }]);
    const body = slack.received[1]?.body ?? "";
    expect(body).toContain("Reminder: still awaiting approval");
    expectHarmless(body, engine, id);
    engine.clock.advance(86_400_000);
    expect(await ended(engine, id, 2)).toEqual(["delivered", "delivered"]);
    expect(slack.received).toHaveLength(2);
  });

  test("does not follow a decision, and another run has its own", async () => {
    await using slack = new Target(200);
    await using engine = await openEngine({ env: { BASE_URL } });
    await added(engine, { url: slack.url, remindAfterMinutes: 30 });
    const { id } = await engine.create(REFUND);
    await engine.told(id, "message", 1);
    await engine.actionService.cancel(engine.owner, id, null);
    await engine.actionService.retry(engine.owner, id, "Ann agreed.");
    await slack.saw(2);
    await engine.told(id, "message", 2);
    engine.clock.advance(30 * 60_000);
    await slack.saw(3);
    expect((await ended(engine, id, 4)).toSorted()).toEqual(["delivered", "delivered", "delivered", "dropped"]);
  });
});

test("a webhook gets a POST that its secret of callbacks signs, with the masked action", async () => {
  await using hooks = new Target(200);
  await using engine = await openEngine({ env: { BASE_URL } });
  await added(engine, { kind: "webhook", name: "desk", url: `${hooks.url}desk` });
  const { id } = await engine.create(REFUND);
  await engine.told(id, "message", 1);
  const [post] = hooks.received;
  const [secret] = await engine.signingService.inUse(
    engine.owner.accountId,
    hooks.url.slice(0, -1),
    engine.clock.now(),
    "callbacks",
  );
  const body = post?.body ?? "";
  const headers = Object.fromEntries(post?.headers ?? []);
  // The library compares with the real time.
  const signed = new Webhook(secret ?? "").sign(headers["webhook-id"] ?? "", engine.clock.now(), body);
  expect(headers["webhook-signature"]?.split(" ")).toContain(signed);
  expectHarmless(body, engine, id);
  const { type, data } = JSON.parse(body);
  expect(type).toBe("approval.requested");
  expect(data).toMatchObject({
    action: { id, status: "awaiting_approval", title: REFUND.title, receipt_url: null },
    url: `${BASE_URL}/actions/${id}`,
  });
  expect(data.facts.map(({ name }: { name: string }) => name)).toContain("requester");
  expect(data.risks).toBeArray();
});

test("a mail goes to each address, without links that decide, and counts for the limits of mails", async () => {
  await using mailbox = new Mailbox();
  await using engine = await openEngine({ env: { ...mailbox.env, BASE_URL } });
  const to = ["ann@example.com", "bob@example.com"];
  const { id: channelId } = await added(engine, { kind: "mail", to, url: null, remindAfterMinutes: 5 });
  const { id } = await engine.create(REFUND);
  const mails = await mailbox.took(2);
  expect(mails.map(({ fields }) => fields["to"] ?? "").toSorted()).toEqual(to);
  const title = '"Refund <https[:]//evil[.]example|Ann> & @channe…"';
  const subject = `Approve? api.stripe.com · POST /v1/refunds · ${title} · ${id.slice(-6)}`;
  for (const { fields } of mails) {
    expect(fields["subject"]).toBe(subject);
    for (const part of ["text", "html"]) expectHarmless(fields[part] ?? "", engine, id);
    expect(fields["text"]).toContain("| Refund <https[:]//evil[.]example|Ann>");
    expect(fields["html"]).not.toContain("<https://evil.example");
  }
  expect(await engine.told(id, "mail", 2)).toMatchObject([{ channel: "ops" }, { channel: "ops" }]);
  // Whoever was taken out meanwhile is not reminded.
  const entry = anAuditEntry({ kind: "channel_changed", subject: channelId });
  await engine.store.channels.change(
    engine.owner.accountId,
    channelId,
    { target: { to: ["bob@example.com"], url: null } },
    entry,
  );
  engine.clock.advance(300_000);
  const [, , reminder] = await mailbox.took(3);
  expect(reminder?.fields["to"]).toBe("bob@example.com");
  expect(reminder?.fields["subject"]).toBe(`Reminder: ${subject}`);
  expect(reminder?.fields["h:In-Reply-To"]).toBe(mails[0]?.fields["h:Message-ID"]);
  expect((await ended(engine, id, 4)).toSorted()).toEqual(["delivered", "delivered", "delivered", "dropped"]);
});

test("a mail to somebody who may not be asked is withheld, and the timeline says so", async () => {
  await using mailbox = new Mailbox();
  await using engine = await openEngine({ env: { ...mailbox.env, BASE_URL, APPROVERS: "@example.com" } });
  await added(engine, { kind: "mail", to: ["ann@elsewhere.example"], url: null });
  const { id } = await engine.create(REFUND);
  expect(await engine.told(id, "mail", 1)).toMatchObject([
    { delivered: false, attempts: 0, error: expect.stringContaining("neither of a person of this account") },
  ]);
  expect(mailbox.posted).toEqual([]);
});

test("without a provider the timeline says that nothing was mailed, once: a reminder that nobody needs is dropped", async () => {
  await using engine = await openEngine({ env: { BASE_URL } });
  await added(engine, { kind: "mail", to: ["ann@example.com"], url: null, remindAfterMinutes: 5 });
  const { id } = await engine.create(REFUND);
  expect(await engine.told(id, "mail", 1)).toMatchObject([{ error: expect.stringContaining("MAILGUN_API_KEY") }]);
  await engine.actionService.cancel(engine.owner, id, null);
  engine.clock.advance(300_000);
  expect((await ended(engine, id, 2)).toSorted()).toEqual(["dropped", "given_up"]);
  expect(await engine.told(id, "mail", 1)).toHaveLength(1);
});
