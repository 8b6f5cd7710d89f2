import { describe, expect, test } from "bun:test";
import { readConfig, serverSettings } from "../../src/config/config.ts";
import type { Mail } from "../../src/mail/messages.ts";
import { SOME_RULES } from "./stub-server.ts";
import { hiddenIn, textOf } from "../support/forms.ts";
import { Target } from "../support/target.ts";
import { openRealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { shared } from "../support/shared.ts";

const ORIGIN = "https://api.example.com";

const app = await shared(openRealServer());
const ann = await signedIn(app);

const apiSecret = async (origin: string): Promise<{ secret: string; previous: { secret: string } | null }> =>
  JSON.parse((await app.call("GET", `/v1/signing-secret?origin=${origin}`)).text);

const send = async (path: string, fields: Readonly<Record<string, string>>) => {
  const response = await ann.send(path, { ...(await ann.hiddenOf("/settings")), ...fields });
  return { status: response.status, url: response.url, html: await response.text(), headers: response.headers };
};

test.each([
  ["/overview/first-steps", "/overview"],
  ["/get-started/test", "/get-started"],
  ["/settings/rules/undo", "/settings/rules"],
  ["/settings/rules/rul_1/move", "/settings/rules"],
  ["/settings/grants/grt_1/end", "/settings/grants"],
  ["/settings/signing-secret", "/settings/signing"],
  ["/settings/signing/check", "/settings/signing#check"],
  ["/settings/password/link", "/settings/password"],
  ["/settings/server/mail-test", "/settings/server"],
  ["/settings/callback-hosts/test", "/settings/callback-hosts"],
])("%s, where a refused form is answered, leads to its page when it is loaded again", async (path, shown) => {
  const { status, headers } = await ann.context(path);
  expect([status, headers.get("location")]).toEqual([303, shown]);
});

describe("signing secrets on the settings page", () => {
  test("are shown in the answer to a form, and in no URL", async () => {
    const { secret } = await apiSecret(ORIGIN);
    expect(await ann.pageOf("/settings")).not.toContain("whsec_");
    const answer = await send("/settings/signing-secret", { origin: ` ${ORIGIN}/ ` });
    expect(answer.status).toBe(200);
    expect(answer.html).toContain(secret);
    expect(answer.url).not.toContain("api.example");
    expect(answer.headers.get("cache-control")).toBe("private, no-store");
    expect(JSON.stringify(app.lines)).not.toContain(secret);
  });

  test("of one origin are rotated after a question; both are shown while both sign", async () => {
    const origin = "https://one.example";
    const before = await apiSecret(origin);
    const asked = await send("/settings/rotation", { origin });
    expect(asked.html).toContain("Rotate this secret?");
    expect((await apiSecret(origin)).previous).toBeNull();
    const done = await ann.send("/settings/rotation", hiddenIn(asked.html));
    expect([done.status, done.headers.getSetCookie()]).toEqual([200, []]);
    const html = await done.text();
    const after = await apiSecret(origin);
    expect((await ann.context("/settings/rotated")).headers.get("location")).toBe("/settings/signing");
    expect(after.previous?.secret).toBe(before.secret);
    for (const shown of [after.secret, before.secret, "Valid until"]) expect(html).toContain(shown);
    expect((await apiSecret(ORIGIN)).previous).toBeNull();
  });

  test("of one origin are shown with https by a page that can be loaded again", async () => {
    await using server = await openRealServer({ baseUrl: "https://outgate.example" });
    const bob = await signedIn(server);
    const origin = "https://one.example";
    const yes = await bob.send("/settings/rotation", { ...(await bob.hiddenOf("/settings")), origin });
    const done = await bob.send("/settings/rotation", hiddenIn(await yes.text()));
    expect([done.status, done.headers.get("location")]).toEqual([303, "/settings/rotated"]);
    const html = await (await bob.follow(done)).text();
    expect(html).toContain("whsec_");
    // Loaded again it asks and does nothing again.
    expect(await (await bob.follow(done)).text()).toBe(html);
  });

  test("are rotated once by a yes that comes twice, and a further question says what it would end", async () => {
    const origin = "https://twice.example";
    const yes = hiddenIn((await send("/settings/rotation", { origin })).html);
    await ann.send("/settings/rotation", yes);
    const after = await apiSecret(origin);
    const again = await (await ann.send("/settings/rotation", yes)).text();
    expect(again).toContain("It was rotated a moment ago. Nothing else was changed.");
    expect(again).toContain("rotating again ends it immediately");
    expect(await apiSecret(origin)).toEqual(after);
    // To this question a yes counts.
    await ann.send("/settings/rotation", hiddenIn(again));
    expect((await apiSecret(origin)).secret).not.toBe(after.secret);
  });
});

describe("the page of notifications", () => {
  test("tell target, event, attempts, the last error and the next try, masked", async () => {
    await using server = await openRealServer();
    const bob = await signedIn(server);
    expect(await bob.pageOf("/settings/notifications")).toContain("No notifications yet");
    const moved = await bob.context("/settings/callbacks");
    expect([moved.status, moved.headers.get("location")]).toEqual([303, "/settings/notifications"]);
    await using target = new Target(500);
    const url = `${target.url}hook?token=canary-tokenx9Kq2Lm8Vb3Zt7Rw`;
    const request = { url: "http://127.0.0.1:9/", approve: true, callback: url };
    const { id } = (await server.call("POST", "/v1/actions", request)).json;
    await server.engine.told(id, "callback", 1);
    const html = await bob.pageOf("/settings/notifications");
    for (const told of [
      "action.awaiting_approval",
      "Waiting",
      "again <time",
      "status 500",
      "hook?token=••••(token,28-chars,…t7Rw)",
      id,
    ]) {
      expect(html).toContain(told);
    }
    expect(html).not.toContain("canary");
  });
});

test("the page of the server says in words what is in force for the calls of others", async () => {
  const text = textOf(await ann.pageOf("/settings/server"));
  for (const words of [
    "ALLOWED_PRIVATE_TARGETS Calls may go to public addresses only.",
    "APPROVAL_TTL_HOURS Not set",
    "RETENTION_DAYS Not set",
    "RATE_LIMIT_PER_SECOND 100 a second",
    "RETRY_BASE_MS 2 s",
    "RETRY_CAP_MS 1 h",
    "This server sends no mail",
  ]) {
    expect(text).toContain(words);
  }
  expect(text).not.toContain("DATABASE_URL");
});

test("the page of the server lists every setting for its operator, and tests the mail", async () => {
  const sent: Mail[] = [];
  const all = serverSettings(
    readConfig({
      MAILGUN_API_KEY: "mail-key-0123456789",
      MAILGUN_DOMAIN: "mg.example.com",
      RETRY_CAP_MS: "5400000",
      RETENTION_DAYS: "1",
      APPROVAL_TTL_HOURS: "72",
      RATE_LIMIT_PER_SECOND: "0",
    }),
  );
  await using server = await openRealServer({
    settingsFor: async () => ({ ...SOME_RULES, sendsMail: true, all }),
    mailer: {
      send: (mail) => {
        sent.push(mail);
        return Promise.resolve({ kind: "delivered" });
      },
    },
  });
  const bob = await signedIn(server);
  const html = await bob.pageOf("/settings/server");
  for (const shown of ["RETENTION_DAYS", "mg.example.com", "Deadline of one attempt"]) expect(html).toContain(shown);
  // What people read first, then what the environment has.
  const text = textOf(html);
  for (const shown of [
    "ATTEMPT_TIMEOUT_MS 30 s 30000 , default",
    "RETRY_CAP_MS 1.5 h 5400000 ",
    "RETENTION_DAYS 1 day 1 ",
    "APPROVAL_TTL_HOURS 3 days 72 ",
    "RATE_LIMIT_PER_SECOND Not limited 0 ",
    "PORT 3000 default",
  ]) {
    expect(text).toContain(shown);
  }
  expect(html).not.toContain("mail-key");
  const tested = await bob.send("/settings/server/mail-test", await bob.hiddenOf("/settings/server"));
  expect(await (await bob.follow(tested)).text()).toContain("was delivered to the mail provider");
  expect(sent).toMatchObject([{ event: "tested" }]);
  const again = await bob.send("/settings/server/mail-test", await bob.hiddenOf("/settings/server"));
  expect([again.status, await again.text()]).toEqual([429, expect.stringContaining("Try again in")]);
});

test("GET /v1/server shows what the page shows, and no secret", async () => {
  const env = { MAILGUN_API_KEY: "mail-key-0123456789", MAILGUN_DOMAIN: "mg.example.com", RETENTION_DAYS: "30" };
  const all = serverSettings(readConfig(env));
  await using server = await openRealServer({ settingsFor: async () => ({ ...SOME_RULES, sendsMail: true, all }) });
  const { text } = await server.call("GET", "/v1/server");
  const shown = JSON.parse(text);
  expect(shown).toMatchObject({ sends_mail: true, retention_days: null, rate_limit_per_second: 100 });
  expect(shown.settings).toHaveLength(all.length);
  expect(shown.settings).toContainEqual(expect.objectContaining({ name: "RETENTION_DAYS", value: "30", set: true }));
  const key = expect.objectContaining({ name: "MAILGUN_API_KEY", value: null, set: true, secret: true });
  expect(shown.settings).toContainEqual(key);
  expect(text).not.toContain("mail-key");
  expect(JSON.parse((await app.call("GET", "/v1/server")).text)).toMatchObject({ settings: null, sends_mail: false });
});

test("GET /v1/server and the page show the size of the file and what retention would free", async () => {
  const size = { bytes: 48_200_000, freeBytes: 1_000_000, deletableBytes: 30_000_000, canShrink: false };
  await using server = await openRealServer({ readSize: async () => ({ ...size, days: 30, isSet: false }) });
  expect(JSON.parse((await server.call("GET", "/v1/server")).text)).toMatchObject({
    database: {
      bytes: 48_200_000,
      free_bytes: 1_000_000,
      can_shrink: false,
      deletable_bytes: 30_000_000,
      deletable_days: 30,
    },
  });
  const page = textOf(await (await signedIn(server)).pageOf("/settings/server"));
  for (const shown of ["48.2 MB", "1 MB", "About 30 MB (RETENTION_DAYS=30, which is not set).", "outgate backup"]) {
    expect(page).toContain(shown);
  }
  expect(JSON.parse((await app.call("GET", "/v1/server")).text)).toMatchObject({ database: null });
});

test("signing secrets are listed by the origins that were called, with a form for each", async () => {
  await using server = await openRealServer({ starts: false });
  const bob = await signedIn(server);
  expect(await bob.pageOf("/settings/signing")).toContain("No calls yet");
  await server.call("POST", "/v1/actions", { url: "https://used.example:8443/x", approve: true });
  const html = await bob.pageOf("/settings/signing");
  expect(html).toContain('name="origin" value="https://used.example:8443"');
  const shown = await bob.send("/settings/signing-secret", { ...hiddenIn(html), for: "calls" });
  expect(await shown.text()).toContain("whsec_");
  const refused = await bob.send("/settings/signing-secret", { ...hiddenIn(html), origin: "https://used.example/x" });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("Enter only the scheme, host")]);
});
