import { expect, test } from "bun:test";
import { readConfig } from "../../src/config/config.ts";
import { serverSettings } from "../../src/config/server-settings.ts";
import type { OutgoingMail } from "../../src/mail/messages.ts";
import { openRealServer } from "./real-server.ts";
import { ANN, signedIn } from "./signed-in.ts";
import { SOME_RULES } from "./stub-server.ts";

test("GET /v1/server shows what the page shows, and no secret", async () => {
  const env = { MAILGUN_API_KEY: "mail-key-0123456789", MAILGUN_DOMAIN: "mg.example.com", RETENTION_DAYS: "30" };
  const all = serverSettings(readConfig(env));
  await using app = await openRealServer({ rulesFor: async () => ({ ...SOME_RULES, sendsMail: true, all }) });
  const { text } = await app.call("GET", "/v1/server");
  const shown = JSON.parse(text);
  expect(shown).toMatchObject({ sends_mail: true, retention_days: null, rate_limit_per_second: 100 });
  expect(shown.settings).toHaveLength(all.length);
  expect(shown.settings).toContainEqual(expect.objectContaining({ name: "RETENTION_DAYS", value: "30", set: true }));
  const key = expect.objectContaining({ name: "MAILGUN_API_KEY", value: null, set: true, secret: true });
  expect(shown.settings).toContainEqual(key);
  expect(text).not.toContain("mail-key");
  await using other = await openRealServer();
  expect(JSON.parse((await other.call("GET", "/v1/server")).text)).toMatchObject({ settings: null, sends_mail: false });
});

test("POST /v1/server/test-mail mails a person of the account, at once and not too often", async () => {
  const sent: OutgoingMail[] = [];
  await using app = await openRealServer({
    ownMailer: {
      send: (mail) => {
        sent.push(mail);
        return Promise.resolve({ kind: "delivered" });
      },
    },
  });
  await signedIn(app);
  const mail = (to: string) => app.call("POST", "/v1/server/test-mail", JSON.stringify({ to }));
  const refused = await mail("stranger@example.com");
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("a person of this account")]);
  const done = await mail(ANN);
  expect([done.status, JSON.parse(done.text)]).toEqual([200, { delivered: true, error: null }]);
  expect(sent).toMatchObject([{ event: "tested", to: ANN }]);
  expect((await mail(ANN)).status).toBe(429);
});
