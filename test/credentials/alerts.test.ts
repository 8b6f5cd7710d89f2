import { describe, expect, test } from "bun:test";
import type { Channel } from "../../src/core/channel.ts";
import { DAY_MS } from "../../src/core/limits.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { aChannel, anAuditEntry, joined } from "../support/factory.ts";
import { Mailbox } from "../support/mailbox.ts";
import { Target } from "../support/target.ts";
import { signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { openCredentials, SECRET } from "./rig.ts";

const BASE_URL = "https://gate.example.com";

async function opened(mailbox: Mailbox | null) {
  const engine = await openEngine({ env: { ...mailbox?.env, BASE_URL } });
  const { store, owner, services, clock } = engine;
  const member = (role: "owner" | "approver") => joined(store, { accountId: owner.accountId, role, at: clock.now() });
  return {
    engine,
    member,
    channel: async (more: Partial<Channel>) => {
      const channel = aChannel({ accountId: owner.accountId, createdAt: clock.now(), ...more });
      await store.channels.put(channel, anAuditEntry({ kind: "channel_added", subject: channel.id }));
      await engine.known.channels.refresh(channel.accountId);
    },
    add: (name: string, days: number) =>
      services.credentialService.add(owner, {
        name,
        kind: "bearer",
        secret: SECRET,
        hosts: ["api.stripe.com"],
        expires_at: new Date(clock.now().getTime() + days * DAY_MS).toISOString(),
      }),
    check: () => services.credentialAlerts(clock.now(), new AbortController().signal),
    ended: (count: number) =>
      eventually(async () => {
        const rows = await store.outbox.list(owner.accountId, null, 50);
        const states = rows.map(({ status }) => status);
        return states.length === count && !states.some((one) => one === "pending" || one === "active") ? states : null;
      }, `${count} notifications to end`),
    /** Once so many wait to be tried again. */
    failed: (count: number) =>
      eventually(async () => {
        const rows = await store.outbox.list(owner.accountId, null, 50);
        return rows.filter(({ status, attempts }) => status === "pending" && attempts === 1).length === count || null;
      }, `${count} notifications to fail`),
    rows: async () => (await store.outbox.list(owner.accountId, null, 50)).length,
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

describe("the end of a credential", () => {
  test("is mailed to each owner 7 days before and when it has come, each once", async () => {
    await using mailbox = new Mailbox();
    await using rig = await opened(mailbox);
    const [ann, bob] = [await rig.member("owner"), await rig.member("owner")];
    await rig.member("approver");
    await rig.add("stripe-live", 30);
    await rig.add("forever", 300);
    const { clock } = rig.engine;
    clock.advance(23 * DAY_MS - 1);
    await rig.check();
    expect(await rig.rows()).toBe(0);
    clock.advance(1);
    await Promise.all([rig.check(), rig.check(), rig.check()]);
    const soon = await mailbox.took(2);
    expect(new Set(soon.map(({ fields }) => fields["to"]))).toEqual(new Set([ann.person.email, bob.person.email]));
    const [mail] = soon;
    expect(mail?.fields["subject"]).toBe("Credential stripe-live expires soon at gate.example.com");
    expect(mail?.fields["text"]).toContain("expires on 31 Jan 2026, 00:00 UTC. From then on calls with it fail.");
    expect(mail?.fields["text"]).toContain(`${BASE_URL}/settings/credentials/stripe-live`);
    expect(mail?.fields["v:action_id"]).toBeUndefined();
    for (const { fields } of soon) expect(JSON.stringify(fields)).not.toMatch(/sk_live|4242/);
    await rig.check();
    expect(await rig.rows()).toBe(2);
    clock.advance(7 * DAY_MS);
    await rig.check();
    expect((await mailbox.took(4)).at(-1)?.fields["subject"]).toBe(
      "Credential stripe-live has expired at gate.example.com",
    );
    await rig.check();
    expect(await rig.ended(4)).toEqual(["delivered", "delivered", "delivered", "delivered"]);
    expect(new Set(mailbox.mails.map(({ fields }) => fields["h:Message-ID"])).size).toBe(2);
  });

  test("is told to channels of Slack and webhooks, without a mail provider too", async () => {
    await using slack = new Target(200);
    await using hook = new Target(200);
    await using rig = await opened(null);
    await rig.member("owner");
    await rig.channel({ url: `${slack.url}services/T0` });
    await rig.channel({ name: "hook", kind: "webhook", url: `${hook.url}told` });
    await rig.channel({ name: "off", url: `${slack.url}off`, enabled: false });
    await rig.channel({ name: "mails", kind: "mail", url: null, to: ["boss@example.com"] });
    const { expiresAt } = await rig.add("stripe-live", 30);
    rig.engine.clock.advance(24 * DAY_MS);
    await rig.check();
    expect(await rig.ended(2)).toEqual(["delivered", "delivered"]);
    const [post] = slack.received;
    expect(JSON.parse(post?.body ?? "")).toMatchObject({
      text: expect.stringContaining("stripe-live expires on 31 Jan 2026"),
      blocks: [
        {},
        { text: { type: "mrkdwn", text: `<${BASE_URL}/settings/credentials/stripe-live|Open it in Outgate>` } },
      ],
    });
    const [told] = hook.received;
    expect(JSON.parse(told?.body ?? "")).toEqual({
      type: "credential.expiring",
      timestamp: rig.engine.clock.now().toISOString(),
      data: {
        credential: { name: "stripe-live", hosts: ["api.stripe.com"], expires_at: expiresAt?.toISOString() },
        url: `${BASE_URL}/settings/credentials/stripe-live`,
      },
    });
    expect(told?.headers.get("webhook-id")).toBeTruthy();
  });
});

describe("an alert that waits is dropped", () => {
  const cases: readonly [string, (engine: Engine) => Promise<unknown>][] = [
    [
      "once the end was put off",
      ({ services, owner }) =>
        services.credentialService.change(owner, "stripe-live", { expires_at: "2027-01-01T00:00:00.000Z" }),
    ],
    [
      "once the credential is disabled",
      ({ services, owner }) => services.credentialService.change(owner, "stripe-live", { enabled: false }),
    ],
    ["once it is deleted", ({ services, owner }) => services.credentialService.remove(owner, "stripe-live")],
  ];
  test.each(cases)("%s", async (_, change) => {
    await using mailbox = new Mailbox();
    await using slack = new Target(500);
    await using rig = await opened(mailbox);
    mailbox.script = 500;
    await rig.member("owner");
    await rig.channel({ url: `${slack.url}services/T0` });
    await rig.add("stripe-live", 30);
    rig.engine.clock.advance(24 * DAY_MS);
    await rig.check();
    await rig.failed(2);
    await change(rig.engine);
    rig.engine.clock.advance(60_000);
    expect(await rig.ended(2)).toEqual(["dropped", "dropped"]);
    expect([mailbox.posted.length, slack.received.length]).toEqual([1, 1]);
  });
});

test("owners are told by mail of what an agent asks for, with a link that decides nothing", async () => {
  await using mailbox = new Mailbox();
  await using rig = await openCredentials(200, { env: mailbox.env });
  await signedIn(rig.app);
  await rig.call("POST", "/v1/invitations", { email: "bob@example.com", role: "approver" });
  await mailbox.took(1);
  const reason = `See https://evil.example/\u202e <b>${SECRET}</b>\nand more.`;
  const ask = () => rig.call("POST", "/v1/credential-requests", { host: "api.stripe.com", reason }, KEYS.agent);
  const { json } = await ask();
  const [, mail] = await mailbox.took(2);
  expect(mail?.fields["to"]).toBe("ann@example.com");
  expect(mail?.fields["subject"]).toBe("Credential for api.stripe.com");
  for (const part of [mail?.fields["text"] ?? "", mail?.fields["html"] ?? ""]) {
    expect(part).toContain(`/approvals/credentials/${json.id}`);
    // The agent chose the name: no mail program makes a link of it.
    expect(part).toContain("api[.]stripe[.]com");
    for (const unsafe of [SECRET, "https://evil.example", "\u202e", "/a/", "/grant"])
      expect(part).not.toContain(unsafe);
  }
  expect(mail?.fields["html"]).not.toContain("<b>sk");
  // The same request again is no other mail, and nobody is told of one that is over.
  await ask();
  await rig.call("POST", `/v1/credential-requests/${json.id}/decline`);
  const { json: listed } = await rig.call("GET", "/v1/notifications");
  expect(listed["data"]).toMatchObject([
    { event: "credential_requested", target: "ann@example.com" },
    { event: "invited" },
  ]);
});

test("channels of Slack and webhooks are told which host an agent asks for, in none of its words", async () => {
  await using slack = new Target(200);
  await using hook = new Target(200);
  await using rig = await openCredentials();
  await rig.call("POST", "/v1/channels", { name: "ops", kind: "slack", url: `${slack.url}services/T0` });
  await rig.call("POST", "/v1/channels", { name: "hook", kind: "webhook", url: `${hook.url}told` });
  await rig.call("POST", "/v1/channels", { name: "mails", kind: "mail", to: ["boss@example.com"] });
  const asked = { host: "api.stripe.com", reason: "Words of the agent.", name: "words" };
  const { json } = await rig.call("POST", "/v1/credential-requests", asked, KEYS.agent);
  const path = `/approvals/credentials/${json.id}`;
  await Promise.all([slack.saw(1), hook.saw(1)]);
  const [post, told] = [slack.received[0]?.body ?? "", hook.received[0]?.body ?? ""];
  expect(post).toContain("asks for a credential for api");
  expect(post).toContain(`${path}|Open it in Outgate>`);
  expect(JSON.parse(told)).toMatchObject({
    type: "credential.requested",
    data: {
      credential_request: { id: json.id, host: "api.stripe.com", expires_at: json["expires_at"] },
      url: expect.stringContaining(path),
    },
  });
  expect(post + told).not.toMatch(/words/i);
});
