import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { CHANNEL_TESTS_PER_HOUR_MAX, CHANNELS_MAX } from "../../src/core/limits.ts";
import { openRealServer, type RealServer, STRANGER } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { anAuditEntry } from "../support/factory.ts";
import { Mailbox } from "../support/mailbox.ts";
import { Target } from "../support/target.ts";
import { fresh } from "../support/shared.ts";

let app: RealServer;

fresh(async () => (app = await openRealServer()));

const SLACK = { name: "ops", kind: "slack", url: "https://hooks.slack.com/services/T0/B0/abcdefgh1234" };

const MAIL = { name: "desk", kind: "mail", to: ["Ann@example.com", "bob@example.com", "ann@example.com"] };

const added = async (body: object) => (await app.call("POST", "/v1/channels", body)).json.id;

describe("/v1/channels", () => {
  test("adds, lists, changes and removes, and shows no URL whole; each change is audited", async () => {
    const made = await app.call("POST", "/v1/channels", { ...SLACK, remind_after_minutes: 30 });
    const id = made.json.id;
    const slack = {
      ...SLACK,
      id,
      url: "https://hooks.slack.com/…1234",
      remind_after_minutes: 30,
      enabled: true,
      created_at: app.engine.clock.now().toISOString(),
      created_by: "key:owner",
    };
    expect([made.status, JSON.parse(made.text)]).toEqual([201, slack]);
    const desk = (await app.call("POST", "/v1/channels", MAIL)).json;
    expect(desk).toMatchObject({ to: ["Ann@example.com", "bob@example.com"], remind_after_minutes: null });
    expect(desk).not.toHaveProperty("url");
    const listed = (await app.call("GET", "/v1/channels")).json.data;
    expect(listed).toBeArrayOfSize(2);
    expect(listed).toContainEqual(slack);
    expect(JSON.parse((await app.call("GET", "/v1/channels", undefined, STRANGER)).text)).toEqual({ data: [] });
    const changed = await app.call("PATCH", `/v1/channels/${id}`, { enabled: false, remind_after_minutes: 0 });
    expect([changed.status, JSON.parse(changed.text)]).toEqual([
      200,
      { ...slack, enabled: false, remind_after_minutes: null },
    ]);
    const moved = await app.call("PATCH", `/v1/channels/${id}`, { url: "https://hooks.example.com/short" });
    expect(moved.json).toMatchObject({ url: "https://hooks.example.com/…", enabled: false });
    expect((await app.call("PATCH", `/v1/channels/${id}`, {})).json).toEqual(moved.json);
    expect((await app.call("DELETE", `/v1/channels/${id}`, undefined, STRANGER)).status).toBe(404);
    expect((await app.call("DELETE", `/v1/channels/${id}`)).status).toBe(204);
    for (const [method, path] of [
      ["DELETE", ""],
      ["PATCH", ""],
      ["POST", "/test"],
    ] as const) {
      const gone = await app.call(method, `/v1/channels/${id}${path}`, method === "PATCH" ? {} : undefined);
      expect(gone.status).toBe(404);
    }
    const { json, status } = await app.call(
      "GET",
      "/v1/audit?kind=channel_added&kind=channel_changed&kind=channel_removed",
    );
    expect(status).toBe(200);
    expect(json.data).toMatchObject([
      { kind: "channel_removed", subject: id },
      { kind: "channel_changed", detail: { changed: "url" } },
      { kind: "channel_changed", detail: { changed: "enabled, remind_after_minutes" } },
      { kind: "channel_added", detail: { name: "desk", kind: "mail" } },
      { kind: "channel_added", detail: { name: "ops", kind: "slack" } },
    ]);
    expect(JSON.stringify(json)).not.toContain("abcdefgh");
  });

  test("refuses what is wrong, and names the field", async () => {
    for (const [body, field] of [
      [{ ...SLACK, url: undefined }, "url"],
      [{ ...SLACK, url: "https://169.254.169.254/latest" }, "url"],
      [{ ...SLACK, url: "http://10.0.0.7/hook" }, "url"],
      [{ ...SLACK, to: ["ann@example.com"] }, "to"],
      [{ ...MAIL, to: undefined }, "to"],
      [{ ...MAIL, to: ["ann"] }, "to.0"],
      [{ ...MAIL, url: SLACK.url }, "url"],
    ] as const) {
      const refused = await app.call("POST", "/v1/channels", body);
      const told = [400, { error: { details: [{ field }] } }];
      expect([refused.status, refused.json], JSON.stringify(body)).toMatchObject(told);
    }
    expect(JSON.parse((await app.call("GET", "/v1/channels")).text)).toEqual({ data: [] });
  });

  test("refuses a change that its kind does not take, and a private URL", async () => {
    const [slack, mail] = [await added(SLACK), await added(MAIL)];
    for (const [id, body, field] of [
      [slack, { to: ["ann@example.com"] }, "to"],
      [slack, { url: "http://10.0.0.7/" }, "url"],
      [slack, { remind_after_minutes: 3 }, "remind_after_minutes"],
      [mail, { url: SLACK.url }, "url"],
    ] as const) {
      const refused = await app.call("PATCH", `/v1/channels/${id}`, body);
      expect([refused.status, refused.json]).toMatchObject([400, { error: { details: [{ field }] } }]);
    }
  });
});

describe("a test message", () => {
  test("says how it fared, once a second, and so often in an hour", async () => {
    await using slack = new Target(200, 404, 200);
    const id = await added({ ...SLACK, url: slack.url });
    const tested = () => app.call("POST", `/v1/channels/${id}/test`);
    expect(JSON.parse((await tested()).text)).toEqual({ delivered: true, error: null });
    expect(slack.received[0]?.body).toContain("Test from Outgate: the channel ops works.");
    const early = await tested();
    const message = expect.stringContaining("Try again in 1 s.");
    expect([early.status, early.json]).toMatchObject([429, { error: { code: "rate_limited", message } }]);
    app.engine.clock.advance(1_000);
    expect(JSON.parse((await tested()).text)).toEqual({
      delivered: false,
      error: "The target answered with status 404.",
    });
    expect((await app.call("GET", "/v1/audit?kind=channel_tested")).json.data).toMatchObject([
      { subject: id, detail: { delivered: false } },
      { subject: id, detail: { delivered: true } },
    ]);
    for (let n = 2; n < CHANNEL_TESTS_PER_HOUR_MAX; n += 1) {
      app.engine.clock.advance(1_000);
      expect((await tested()).status).toBe(200);
    }
    app.engine.clock.advance(1_000);
    expect((await tested()).status).toBe(429);
    app.engine.clock.advance(3_600_000);
    expect((await tested()).status).toBe(200);
  });

  test("to a webhook is signed, and goes also where the channel is off", async () => {
    await using hooks = new Target(204);
    const id = await added({ name: "desk", kind: "webhook", url: hooks.url, enabled: false });
    expect(JSON.parse((await app.call("POST", `/v1/channels/${id}/test`)).text)).toEqual({
      delivered: true,
      error: null,
    });
    const [post] = hooks.received;
    expect(post?.headers.get("webhook-signature")).toStartWith("v1,");
    expect(JSON.parse(post?.body ?? "")).toMatchObject({
      type: "channel.test",
      data: { channel: { id, name: "desk" } },
    });
  });

  test("to addresses is a mail to each whom this server may mail, or says that no provider is configured", async () => {
    const id = await added(MAIL);
    const { json } = await app.call("POST", `/v1/channels/${id}/test`);
    expect(json).toMatchObject({ delivered: false, error: expect.stringContaining("MAILGUN_API_KEY") });
    await using mailbox = new Mailbox();
    const env = { ...mailbox.env, APPROVERS: "ann@example.com,bob@example.com" };
    await using mailing = await openRealServer({ env });
    const made = await mailing.call("POST", "/v1/channels", MAIL);
    const tested = await mailing.call("POST", `/v1/channels/${made.json.id}/test`);
    expect({ ...tested.json }).toEqual({ delivered: true, error: null } as never);
    const mails = await mailbox.took(2);
    expect(mails.map(({ fields }) => fields["to"] ?? "").toSorted()).toEqual(["Ann@example.com", "bob@example.com"]);
    expect(mails[0]?.fields["subject"]).toBe("Test email from Outgate");
    const strange = { to: ["eve@example.com"] };
    const { clock, owner, store } = mailing.engine;
    const unread = "can't be read. Set its";
    const slack = await mailing.call("POST", "/v1/channels", SLACK);
    for (const [channel, to, error] of [
      [made.json.id, strange.to, "nor one of the APPROVERS"],
      [made.json.id, [], `${unread} addresses`],
      [slack.json.id, [], `${unread} URL`],
    ] as const) {
      await store.channels.change(owner.accountId, channel, { target: { to, url: null } }, anAuditEntry());
      clock.advance(1_000);
      const now = await mailing.call("POST", `/v1/channels/${channel}/test`);
      expect(now.json).toMatchObject({ delivered: false, error: expect.stringContaining(error) });
    }
    for (const [method, path, body] of [
      ["POST", "", { ...MAIL, ...strange }],
      ["PATCH", `/${made.json.id}`, strange],
    ] as const) {
      const refused = await mailing.call(method, `/v1/channels${path}`, body);
      expect([refused.status, refused.json.error.details?.[0]?.field], path).toEqual([400, "to.0"]);
    }
  });
});

test("an action that is held over the API is told, and its timeline and the notifications say so", async () => {
  await using slack = new Target(200);
  await added({ ...SLACK, url: slack.url, remind_after_minutes: 30 });
  const created = await app.call("POST", "/v1/actions", {
    url: "https://api.example.com/pay",
    approve: true,
    title: "Pay",
  });
  const id = created.json.id;
  await app.engine.told(id, "message", 1);
  expect((await app.call("GET", `/v1/actions/${id}/timeline`)).json.data).toContainEqual(
    expect.objectContaining({ type: "message", event: "requested", channel: "ops", delivered: true }),
  );
  const { json } = await app.call("GET", "/v1/notifications");
  expect(json.data).toMatchObject([
    { kind: "message", event: expect.stringMatching(/requested|reminded/), action_id: id },
    { kind: "message", target: expect.stringMatching(/^chn_/), action_id: id },
  ]);
  const ann = await signedIn(app);
  expect(await ann.pageOf(`/actions/${id}`)).toContain("Message to channel ops delivered");
  const log = await ann.pageOf("/settings/notifications");
  for (const shown of ["Channel message", ">ops<", "Delivered"]) expect(log).toContain(shown);
});

describe("for people, without script,", () => {
  test("a page adds a channel, shows a refused form again, tests, switches and removes", async () => {
    await using slack = new Target(200, 500);
    const ann = await signedIn(app);
    const hidden = await ann.hiddenOf("/settings/channels");
    expect(await ann.pageOf("/settings")).toContain('href="/settings/channels"');
    const fields = { ...hidden, name: "ops", kind: "slack", to: "", remind_after_minutes: "" };
    const refused = await ann.send("/settings/channels", { ...fields, url: "http://10.0.0.7/<b>" });
    const html = await refused.text();
    expect(refused.status).toBe(400);
    expect(html).toContain("10.0.0.7/&lt;b&gt;");
    expect(html).not.toContain("/<b>");
    const url = `${slack.url}services/T0/B0/abcdefgh1234`;
    const saved = await ann.send("/settings/channels", { ...fields, url, remind_after_minutes: "30" });
    expect([saved.status, saved.headers.get("location")]).toEqual([303, "/settings/channels"]);
    const page = await ann.pageOf("/settings/channels");
    expect(page).toContain("…1234");
    expect(page).not.toContain("abcdefgh");
    expect(page).toContain("After 30 min");
    const [channel] = await app.engine.store.channels.list(app.engine.owner.accountId);
    const of = (verb: string) => `/settings/channels/${channel?.id ?? ""}/${verb}`;
    const tested = async () => (await ann.follow(await ann.send(of("test"), hidden))).text();
    expect(await tested()).toContain("The test message was delivered,");
    app.engine.clock.advance(1_000);
    expect(await tested()).toContain("answered with status 500");
    expect((await ann.send(of("switch"), { ...hidden, enabled: "false" })).status).toBe(303);
    expect(await ann.pageOf("/settings/channels")).toContain("Switch on");
    const mail = { ...fields, kind: "mail", url: "", to: "ann@example.com\nbob@example.com" };
    expect((await ann.send("/settings/channels", mail)).status).toBe(303);
    expect(await ann.pageOf("/settings/channels")).toContain("ann@example.com, bob@example.com");
    expect((await ann.send(of("remove"), hidden)).status).toBe(303);
    expect((await ann.send(of("remove"), hidden)).status).toBe(303);
    expect(await app.engine.store.channels.list(app.engine.owner.accountId)).toHaveLength(1);
  });

  test("what is wrong stands below its field, and a field that the kind hides does not count", async () => {
    const ann = await signedIn(app);
    const hidden = await ann.hiddenOf("/settings/channels");
    const typed = {
      ...hidden,
      name: "",
      kind: "mail",
      to: "nobody",
      url: "https://hooks.example.com/",
      remind_after_minutes: "x",
    };
    const html = await (await ann.send("/settings/channels", typed)).text();
    for (const name of ["name", "to", "remind_after_minutes"]) expect(html).toContain(`id="${name}-problem"`);
    expect(html).toContain('value="https://hooks.example.com/"');
    const whole = { ...typed, name: "ops", to: "ann@example.com", remind_after_minutes: "" };
    expect((await ann.send("/settings/channels", { ...whole, kind: "pager" })).status).toBe(400);
    expect((await ann.send("/settings/channels", whole)).status).toBe(303);
    expect(await app.engine.store.channels.list(app.engine.owner.accountId)).toMatchObject([
      { kind: "mail", url: null },
    ]);
    // Also where the list has no room for another one.
    for (let n = 1; n < CHANNELS_MAX; n += 1) await added({ ...SLACK, name: `n${n}` });
    expect((await app.call("POST", "/v1/channels", SLACK)).status).toBe(400);
    expect(await (await ann.send("/settings/channels", typed)).text()).toContain('id="name-problem"');
  });
});

test("the example of the guide is taken as it is written", async () => {
  const guide = await Bun.file(join(import.meta.dir, "../../docs/approvals.md")).text();
  const [, body = ""] =
    /\/v1\/channels[^']*'[^']*'[^']*'([^']*)'/.exec(guide.slice(guide.indexOf("## Channels"))) ?? [];
  const made = await app.call("POST", "/v1/channels", JSON.parse(body));
  expect([made.status, made.json]).toMatchObject([201, { name: "ops", kind: "slack", remind_after_minutes: 30 }]);
});
