import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { type KeptMail, Mailbox } from "../support/mailbox.ts";
import { newFolder, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

const HELD = { approve: true, notify: { email: "boss@example.com" } };

test("a person who gets the mail decides by its buttons, and nobody else had to set anything up", async () => {
  await using mailbox = new Mailbox();
  await using target = new Target(200);
  await using service = new Service({ env: mailbox.env });
  await service.ready();
  const yes = await service.create({ ...HELD, url: target.url });
  const no = await service.create({ ...HELD, url: target.url });
  const mails = await mailbox.took(2);
  const decide = async (id: unknown, decision: "approve" | "reject") => {
    const mail = mails.find(({ fields }) => fields["v:action_id"] === id);
    const [approve = "", reject = ""] = mail?.fields["text"]?.match(/^http\S+\/a\/\S+$/gm) ?? [];
    const link = decision === "approve" ? approve : reject;
    expect((await fetch(link)).status).toBe(200);
    const answer = await fetch(link, { method: "POST", body: new URLSearchParams({ decision }), redirect: "manual" });
    expect(answer.status).toBe(303);
    expect(answer.headers.get("location")).toContain("/r/");
  };
  await decide(yes["id"], "approve");
  await decide(no["id"], "reject");
  expect(await service.final(yes["id"])).toMatchObject({ status: "completed", approved_by: "email:boss@example.com" });
  expect(await service.final(no["id"])).toMatchObject({ status: "cancelled" });
  expect(target.received).toHaveLength(1);
  // Neither needs an answer: who decided got the mail.
  expect(mailbox.mails).toHaveLength(2);
});

test("a kill in the middle of a mail: the next start sends the same mail at once", async () => {
  await using mailbox = new Mailbox();
  const folder = newFolder();
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  mailbox.script = () => {
    arrive();
    return new Promise<never>(() => {});
  };
  {
    await using killed = new Service({ env: mailbox.env, folder });
    await killed.create({ ...HELD, url: "http://127.0.0.1:9/" });
    await arrived;
    await killed.end("SIGKILL");
  }
  mailbox.script = "take";
  await using service = new Service({ env: mailbox.env, folder });
  await service.ready();
  const [mail] = await mailbox.took(1);
  // The next process listens on another port.
  const written = (kept: KeptMail | undefined) => kept?.fields["text"]?.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, "");
  expect(written(mail)).toBe(written(mailbox.posted[0]) ?? "");
  expect(mail?.fields["h:Message-ID"]).toBe(mailbox.posted[0]?.fields["h:Message-ID"] ?? "");
  rmSync(folder, { recursive: true });
});
