import { expect, test } from "bun:test";
import { readConfig, serverSettings } from "../../src/config/config.ts";
import { openRealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { SOME_RULES } from "./stub-server.ts";

test("GET /v1/server shows what the page shows, and no secret", async () => {
  const env = { MAILGUN_API_KEY: "mail-key-0123456789", MAILGUN_DOMAIN: "mg.example.com", RETENTION_DAYS: "30" };
  const all = serverSettings(readConfig(env));
  await using app = await openRealServer({ settingsFor: async () => ({ ...SOME_RULES, sendsMail: true, all }) });
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

test("GET /v1/server and the page show the size of the file and what retention would free", async () => {
  const size = { bytes: 48_200_000, freeBytes: 1_000_000, deletableBytes: 30_000_000, canShrink: false };
  await using app = await openRealServer({ readSize: async () => ({ ...size, days: 30, isSet: false }) });
  expect(JSON.parse((await app.call("GET", "/v1/server")).text)).toMatchObject({
    database: {
      bytes: 48_200_000,
      free_bytes: 1_000_000,
      can_shrink: false,
      deletable_bytes: 30_000_000,
      deletable_days: 30,
    },
  });
  const page = (await (await signedIn(app)).pageOf("/settings/server")).replaceAll(/<[^>]+>/g, " ");
  for (const shown of ["48.2 MB", "1 MB", "About 30 MB (RETENTION_DAYS=30, which is not set).", "outgate backup"]) {
    expect(page).toContain(shown);
  }
  await using other = await openRealServer();
  expect(JSON.parse((await other.call("GET", "/v1/server")).text)).toMatchObject({ database: null });
});
