import { describe, expect, test } from "bun:test";
import type { Caller } from "../../src/core/roles.ts";
import { type Engine, openEngine, wrapping } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { type KeptMail, Mailbox } from "../support/mailbox.ts";
import { Target } from "../support/target.ts";

const BOSS = "boss@example.com";

const HELD = { approve: true, notifyEmail: BOSS };

const idOf = ({ fields }: KeptMail) => fields["h:Message-ID"];

const linksIn = ({ fields }: KeptMail) => fields["text"]?.match(/^https?:\/\/\S+\/a\/\S+$/gm) ?? [];

const boss = (owner: Caller): Caller => ({ ...owner, actor: `email:${BOSS}` });

test("a held action with notify.email is asked about by mail, at once, with links that live", async () => {
  await using mailbox = new Mailbox();
  await using engine = await openEngine({ env: { ...mailbox.env, BASE_URL: "https://gate.example.com" } });
  const { id } = await engine.create({ ...HELD, method: "DELETE", url: "https://api.example.com/v1/customers/7" });
  const [mail] = await mailbox.took(1);
  expect(mail?.fields["to"]).toBe(BOSS);
  expect(mail?.fields["subject"]).toStartWith("Approve? api.example.com · DELETE /v1/customers/7 · ");
  const links = mail === undefined ? [] : linksIn(mail);
  expect(links).toHaveLength(2);
  for (const link of links) expect(link).toStartWith("https://gate.example.com/a/");
  expect(mail?.fields["text"]).toContain(`https://gate.example.com${engine.receiptPath(id)}`);
  const token = links[0]?.split("/").at(-1) ?? "";
  expect(engine.secrets.readApprovalToken(token)).toMatchObject({ actionId: id, run: 1, decision: "approve" });
  expect(await engine.told(id, "mail", 1)).toEqual([
    { type: "mail", event: "approval", delivered: true, attempts: 1, error: null, next_retry_at: null },
  ]);
});

test("a mail says until when it can be answered: seven days, or until the action is cancelled", async () => {
  for (const [env, until, members] of [
    [{}, "8 Jan 2026, 00:00 UTC", {}],
    [{ APPROVAL_TTL_HOURS: "48" }, "3 Jan 2026, 00:00 UTC", {}],
    [{ APPROVAL_TTL_HOURS: "1000" }, "8 Jan 2026, 00:00 UTC", {}],
    [{ APPROVAL_TTL_HOURS: "48" }, "2 Jan 2026, 00:00 UTC", { expiresAt: new Date("2026-01-02") }],
  ] as const) {
    await using mailbox = new Mailbox();
    await using engine = await openEngine({ env: { ...mailbox.env, ...env } });
    await engine.create({ ...HELD, ...members });
    const [mail] = await mailbox.took(1);
    expect(mail?.fields["text"]).toContain(`They work until ${until}`);
  }
});

test("without a provider the action is created, nothing is mailed, and the timeline says so", async () => {
  await using engine = await openEngine();
  const { id } = await engine.create(HELD);
  expect(await engine.told(id, "mail", 1)).toEqual([
    {
      type: "mail",
      event: "approval",
      delivered: false,
      attempts: 0,
      error: "No mail was sent: no mail provider is configured (see MAILGUN_API_KEY).",
      next_retry_at: null,
    },
  ]);
  await engine.actionService.approve(engine.owner, id, null);
  await settled(engine);
  // A question that nobody was sent needs no answer.
  expect(await engine.told(id, "mail", 1)).toHaveLength(1);
});

describe("a provider that is down", () => {
  test("for an hour: creating and approving go on, and the mail is sent afterwards, under one Message-ID", async () => {
    await using mailbox = new Mailbox();
    mailbox.script = 500;
    await using engine = await openEngine({ env: mailbox.env });
    const { id } = await engine.create(HELD);
    for (const [at, seconds] of [0, 5, 30, 300, 1_800].entries()) {
      engine.clock.advance(seconds * 1_000);
      const told = await engine.told(id, "mail", at + 1);
      expect(told.at(-1)).toMatchObject({ delivered: false, error: "The mail provider answered with status 500." });
    }
    const decided = await engine.create(HELD);
    await engine.actionService.approve(engine.owner, decided.id, null);
    expect((await engine.get(decided.id)).approvedBy).toBe("key:owner");
    mailbox.script = "take";
    engine.clock.advance(7_200_000);
    await mailbox.took(1);
    expect((await engine.told(id, "mail", 6)).at(-1)).toMatchObject({ delivered: true, attempts: 6 });
    const mine = mailbox.posted.filter(({ fields }) => fields["v:action_id"] === id);
    expect(mine).toHaveLength(6);
    expect(new Set(mine.map(idOf)).size).toBe(1);
    expect(new Set(mine.map((mail) => linksIn(mail).join(" "))).size).toBe(1);
    expect(await engine.get(id)).toMatchObject({
      status: "awaiting_approval",
      revision: 1,
    });
  });

  test("and hangs: no create, no approval and no callback waits for it", async () => {
    await using mailbox = new Mailbox();
    const gate = Promise.withResolvers<Response>();
    mailbox.script = () => gate.promise;
    await using hooks = new Target(200);
    await using engine = await openEngine({ env: mailbox.env });
    const created = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        engine.create({ approve: true, notifyEmail: `boss${n}@example.com`, callback: hooks.url }),
      ),
    );
    await hooks.saw(50);
    for (const { id } of created) await engine.actionService.cancel(engine.owner, id, null);
    await hooks.saw(100);
    // An account alone holds three quarters of the slots, and no more.
    await eventually(() => (mailbox.posted.length >= 6 ? true : null), "six mails under way");
    expect(mailbox.posted).toHaveLength(6);
    gate.resolve(new Response(null, { status: 500 }));
  });

  test("what it says of the mail itself is final, and told", async () => {
    await using mailbox = new Mailbox();
    mailbox.script = 400;
    await using engine = await openEngine({ env: mailbox.env });
    const { id } = await engine.create(HELD);
    expect(await engine.told(id, "mail", 1)).toMatchObject([
      { delivered: false, error: "The mail provider refused the mail (400). Given up after 1 attempt." },
    ]);
  });
});

describe("when it was decided", () => {
  test("before the mail could be sent, none is sent, and the timeline says so", async () => {
    await using mailbox = new Mailbox();
    mailbox.script = 500;
    await using engine = await openEngine({ env: mailbox.env });
    const { id } = await engine.create(HELD);
    await engine.told(id, "mail", 1);
    await engine.actionService.cancel(engine.owner, id, null);
    mailbox.script = "take";
    engine.clock.advance(5_000);
    expect((await engine.told(id, "mail", 2)).at(-1)).toMatchObject({
      delivered: false,
      attempts: 1,
      error: "No mail was sent: it was decided before.",
      next_retry_at: null,
    });
    await settled(engine);
    expect(mailbox.mails).toEqual([]);
  });

  test("elsewhere, the mail is answered in its thread", async () => {
    await using mailbox = new Mailbox();
    await using target = new Target(200);
    await using engine = await openEngine({ env: mailbox.env });
    const { id } = await engine.create({ ...HELD, url: target.url });
    await mailbox.took(1);
    await engine.actionService.approve(engine.owner, id, "Agreed with Ann.");
    const [question, answer] = await mailbox.took(2);
    expect(answer?.fields["h:In-Reply-To"]).toBe(question === undefined ? "" : idOf(question));
    expect(answer?.fields["subject"]).toBe(`Re: ${question?.fields["subject"]}`);
    expect(answer?.fields["text"]).toContain("Approved by owner, over the API.");
    expect(answer?.fields["text"]).toContain("Reason: Agreed with Ann.");
    expect(answer === undefined ? null : linksIn(answer)).toEqual([]);
    expect(await engine.told(id, "mail", 2)).toMatchObject([
      { event: "approval", delivered: true },
      { event: "decided", delivered: true },
    ]);
  });

  test("by whoever asked, the mail is answered that it was withdrawn", async () => {
    await using mailbox = new Mailbox();
    await using engine = await openEngine({ env: mailbox.env });
    const { id } = await engine.create(HELD);
    await mailbox.took(1);
    await engine.actionService.cancel({ ...engine.owner, role: "agent", scope: "account" }, id, "Asked twice.");
    const [, answer] = await mailbox.took(2);
    expect(answer?.fields["text"]).toContain("Withdrawn by owner, over the API.");
    expect(answer?.fields["text"]).toContain("Reason: Asked twice.");
  });

  test("by the link of the mail, it needs no answer", async () => {
    await using mailbox = new Mailbox();
    await using engine = await openEngine({ env: mailbox.env });
    const { id } = await engine.create(HELD);
    await mailbox.took(1);
    await engine.actionService.cancel(boss(engine.owner), id, null);
    await settled(engine);
    expect(mailbox.mails).toHaveLength(1);
  });
});

test("a mail beyond those of an hour is not sent, and the timeline says so", async () => {
  await using mailbox = new Mailbox();
  const wrapStore = wrapping("outbox", () => ({ permitMail: async () => false }));
  await using engine = await openEngine({ env: mailbox.env, wrapStore });
  const { id } = await engine.create(HELD);
  expect(await engine.told(id, "mail", 1)).toMatchObject([
    {
      delivered: false,
      attempts: 0,
      error:
        "No mail was sent: at most 100 go to one address and 1,000 from one account in an hour, and half as many answers and reminders.",
      next_retry_at: null,
    },
  ]);
  expect(mailbox.posted).toEqual([]);
});

/** Resolves when nothing is owed that could be sent now. */
async function settled(engine: Engine): Promise<void> {
  await eventually(async () => ((await engine.store.outbox.waiting()).mail === 0 ? true : null), "an empty outbox");
}
