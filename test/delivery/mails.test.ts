import { describe, expect, test } from "bun:test";
import type { Caller } from "../../src/core/roles.ts";
import { MAILS_PER_RECIPIENT_MAX } from "../../src/core/limits.ts";
import type { Store } from "../../src/core/store.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { type KeptMail, Mailbox } from "../support/mailbox.ts";
import { Target } from "../support/target.ts";
import { newFolders } from "../support/shared.ts";

const BOSS = "boss@example.com";

const HELD = { approve: true, notifyEmail: BOSS };

const newFolder = newFolders();

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
  for (const [env, until] of [
    [{}, "8 Jan 2026, 00:00 UTC"],
    [{ APPROVAL_TTL_HOURS: "48" }, "3 Jan 2026, 00:00 UTC"],
    [{ APPROVAL_TTL_HOURS: "1000" }, "8 Jan 2026, 00:00 UTC"],
  ] as const) {
    await using mailbox = new Mailbox();
    await using engine = await openEngine({ env: { ...mailbox.env, ...env } });
    await engine.create(HELD);
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

test("the hundred-and-first mail of an hour to one recipient is not sent, and the timeline says so", async () => {
  await using mailbox = new Mailbox();
  await using engine = await openEngine({ env: { ...mailbox.env, RATE_LIMIT_PER_SECOND: "0" } });
  await Promise.all(Array.from({ length: MAILS_PER_RECIPIENT_MAX }, () => engine.create(HELD)));
  await mailbox.took(MAILS_PER_RECIPIENT_MAX);
  const { id } = await engine.create({ ...HELD, notifyEmail: "BOSS@example.com" });
  expect(await engine.told(id, "mail", 1)).toMatchObject([
    {
      delivered: false,
      attempts: 0,
      error: "No mail was sent: at most 100 go to one address and 1,000 from one account in an hour.",
      next_retry_at: null,
    },
  ]);
  await engine.create({ ...HELD, notifyEmail: "ann@example.com" });
  await mailbox.took(MAILS_PER_RECIPIENT_MAX + 1);
  engine.clock.advance(3_600_001);
  await engine.create(HELD);
  await mailbox.took(MAILS_PER_RECIPIENT_MAX + 2);
});

test.each(["claim", "permit", "take", "settle"] as const)(
  "a crash at the %s: the next process sends the same mail, with the same links",
  async (point) => {
    const folder = newFolder();
    await using mailbox = new Mailbox();
    const died = Promise.withResolvers<void>();
    const die = () => {
      died.resolve();
      return new Promise<never>(() => {});
    };
    const wrapStore = (store: Store): Store => {
      const { outbox: real } = store;
      const outbox: Store["outbox"] = {
        ...real,
        mails: {
          ...real.mails,
          claimDue: async (claim) => {
            const won = await real.mails.claimDue(claim);
            return point === "claim" ? die() : won;
          },
        },
        permitMail: async (mail, at) => {
          const may = await real.permitMail(mail, at);
          return point === "permit" ? die() : may;
        },
        settle: (change, at) => (point === "settle" ? die() : real.settle(change, at)),
      };
      return { ...store, outbox };
    };
    if (point === "take") mailbox.script = () => die();
    const before = await openEngine({ folder, env: mailbox.env, wrapStore });
    const { id } = await before.create(HELD);
    await died.promise;
    await before.abandon();
    mailbox.script = "take";
    await using engine = await openEngine({ folder, env: mailbox.env });
    const told = await engine.told(id, "mail", 2);
    expect(told).toMatchObject([
      { delivered: false, attempts: 1 },
      { delivered: true, attempts: 2 },
    ]);
    const wasPosted = point === "take" || point === "settle";
    expect(mailbox.posted).toHaveLength(wasPosted ? 2 : 1);
    expect(new Set(mailbox.posted.map(idOf)).size).toBe(1);
    expect(new Set(mailbox.posted.map((mail) => linksIn(mail).join(" "))).size).toBe(1);
  },
);

/** Resolves when nothing is owed that could be sent now. */
async function settled(engine: Engine): Promise<void> {
  await eventually(async () => ((await engine.store.outbox.waiting()).mail === 0 ? true : null), "an empty outbox");
}
