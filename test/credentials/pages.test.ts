import { describe, expect, test } from "bun:test";
import { AUDITED_KEYS_MAX, CREDENTIAL_KEYS_MAX, DAY_MS, LIVE_KEYS_MAX } from "../../src/core/limits.ts";
import { openRealServer } from "../http/real-server.ts";
import { signedIn } from "../http/signed-in.ts";
import { textOf } from "../support/forms.ts";
import type { AuditRow } from "../../src/core/audit.ts";
import { echoes, openCredentials, SECRET } from "./rig.ts";
import { shared } from "../support/shared.ts";

const PATH = "/settings/credentials";

const rig = await shared(openCredentials());
const ann = await signedIn(rig.app);

async function send(path: string, fields: Readonly<Record<string, string>>, page = PATH) {
  const answer = await ann.send(path, { ...(await ann.hiddenOf(page)), ...fields });
  return { status: answer.status, html: await answer.text() };
}

const stored = async (name: string) => (await rig.call("GET", `/v1/credentials/${name}`)).json;

describe("the page of credentials", () => {
  test("adds one of each kind, and shows nothing of its secret", async () => {
    const common = { secret: SECRET, hosts: rig.host };
    const bearer = {
      name: "stripe-live",
      kind: "bearer",
      paths: "/v1\n/v2",
      method_POST: "yes",
      [`key_${rig.agentId}`]: "yes",
    };
    // What other kinds have is hidden, and may be filled in.
    expect((await send(PATH, { ...common, ...bearer, header: "X-Left", username: "left" })).status).toBe(303);
    expect((await send(PATH, { ...common, name: "api-key", kind: "header", header: "X-Api-Key" })).status).toBe(303);
    expect((await send(PATH, { ...common, name: "login", kind: "basic", username: "ann" })).status).toBe(303);
    const signing = { signs: "{method}.{body}", time_header: "X-Time" };
    const fields = { "hmac.signs": signing.signs, "hmac.time_header": signing.time_header };
    const hmac = { name: "internal", kind: "hmac", header: "X-Sign", ...fields };
    expect((await send(PATH, { ...common, ...hmac })).status).toBe(303);
    expect(await stored("stripe-live")).toMatchObject({
      paths: ["/v1", "/v2"],
      methods: ["POST"],
      keys: [rig.agentId],
    });
    expect(await stored("internal")).toMatchObject({ hmac: signing });
    const html = await ann.pageOf(PATH);
    expect(html).not.toContain(SECRET);
    const text = textOf(html);
    for (const shown of [
      "stripe-live",
      "Bearer ••••4242",
      "/v1, /v2",
      "POST",
      "Owners, agent",
      "Header X-Api-Key",
      "HMAC X-Sign",
      "Never used",
    ])
      expect(text).toContain(shown);
  });

  test("keeps what was typed where it is refused, but the secret", async () => {
    const typed = { name: "Wrong Name", kind: "bearer", secret: "short", hosts: "*.com", paths: "/ok" };
    const { status, html } = await send(PATH, typed);
    expect(status).toBe(400);
    expect(html).toContain("Wrong Name");
    expect(html).not.toContain('value="short"');
    expect(textOf(html)).toContain("lower-case letters");
    const again = await send(PATH, { ...typed, name: "stripe-live", secret: SECRET, hosts: rig.host });
    expect(again.html).toContain(
      'id="name-problem" class="problem small">This account already has a credential named stripe-live',
    );
  });

  test("replaces a secret, changes bounds, disables and deletes", async () => {
    const path = `${PATH}/api-key`;
    expect((await send(`${path}/secret`, { secret: "another-secret-0815" }, path)).status).toBe(303);
    expect(await stored("api-key")).toMatchObject({ last4: "0815" });
    expect((await send(`${path}/secret`, { secret: "short" }, path)).status).toBe(400);
    const bounds = { hosts: `${rig.host}\napi.example.com`, paths: "/v1", expires_at: "2027-03-04T12:00:00Z" };
    expect((await send(path, bounds, path)).status).toBe(303);
    expect(await stored("api-key")).toMatchObject({ hosts: [rig.host, "api.example.com"], paths: ["/v1"] });
    const html = await ann.pageOf(path);
    expect(textOf(html)).toContain("Where it may go");
    // In the reader's time zone where scripts run, as every time that is asked for.
    expect(html).toMatch(/<input [^>]*name="expires_at"[^>]*type="datetime-local" value="2027-03-04T12:00"/);
    // One with seconds, as the API takes it, stays as it is where the form is sent unchanged.
    const withSeconds = { ...bounds, expires_at: "2027-03-04T12:00:30Z" };
    expect((await send(path, withSeconds, path)).status).toBe(303);
    expect(await ann.pageOf(path)).toContain('value="2027-03-04T12:00:30"');
    expect((await send(path, { hosts: rig.host, paths: "", expires_at: "" }, path)).status).toBe(303);
    const after = await stored("api-key");
    expect([after["paths"], after["expires_at"], after["hosts"]]).toEqual([undefined, null, [rig.host]]);
    expect((await send(path, { hosts: "" }, path)).status).toBe(400);
    await send(`${path}/switch`, { enabled: "false" });
    expect((await stored("api-key"))["enabled"]).toBe(false);
    expect(textOf(await ann.pageOf(PATH))).toContain("Disabled");
    expect((await send(`${path}/remove`, {})).status).toBe(303);
    expect((await rig.call("GET", "/v1/credentials/api-key")).status).toBe(404);
  });

  test("saves no form over what somebody else has changed since it was opened, until it is sent again", async () => {
    await rig.add({ name: "shared", keys: [rig.agentId] });
    const path = `${PATH}/shared`;
    const opened = { ...(await ann.hiddenOf(path)), hosts: rig.host, paths: "/v1", [`key_${rig.agentId}`]: "yes" };
    await rig.call("PATCH", "/v1/credentials/shared", { keys: [] });
    const refused = await send(path, opened, path).then(({ status, html }) => [status, textOf(html)]);
    expect(refused).toEqual([400, expect.stringContaining("Someone has changed this credential since you opened it")]);
    expect((await stored("shared"))["keys"]).toEqual([]);
    const { version = "" } = await ann.hiddenOf(path);
    expect((await send(path, { ...opened, version }, path)).status).toBe(303);
    expect((await stored("shared"))["keys"]).toEqual([rig.agentId]);
    // What was changed, not what the form has, and who may use the secret. The same form again changes nothing.
    expect((await send(path, { ...opened, ...(await ann.hiddenOf(path)) }, path)).status).toBe(303);
    const log = await rig.call("GET", "/v1/audit?kind=credential_changed&kind=credential_added&limit=3");
    const [saved, patched, added] = (log.json.data as unknown as readonly AuditRow[]).map(({ detail }) => detail);
    const key = { keys_added: rig.agentId };
    expect(saved).toEqual({ via: "page", name: "shared", changed: "paths, keys", ...key });
    expect(patched).toEqual({ via: "api", name: "shared", changed: "keys", keys_removed: rig.agentId });
    expect(added).toMatchObject({ name: "shared", ...key });
  });

  test("warns of endpoints that give out secrets, and tells who has sent one back", async () => {
    await rig.add({ name: "wide", hosts: ["api.stripe.com"] });
    expect(textOf(await ann.pageOf(PATH))).toMatch(/Its bounds include Stripe.{1,6}s \/v1\/api_keys/);
  });
});

test("an owner tries a credential on its page, and sees the answer masked", async () => {
  await using own = await openCredentials(echoes((authorization) => `<b>you sent</b> ${authorization}`));
  const owner = await signedIn(own.app);
  await own.add({ paths: ["/v1"] });
  const path = `${PATH}/stripe-live`;
  expect(await owner.pageOf(path)).toContain(`value="https://${own.host}/v1"`);
  const hidden = await owner.hiddenOf(path);
  const tried = async (url: string) => {
    const answer = await owner.send(`${path}/test`, { ...hidden, url });
    const html = await answer.text();
    expect(html).not.toContain(SECRET.slice(0, 8));
    return { status: answer.status, retryAfter: answer.headers.get("retry-after"), html, text: textOf(html) };
  };
  const first = await tried(`${own.target.url}v1/charges`);
  expect([first.status, first.html.includes("<b>you sent")]).toEqual([200, false]);
  expect(first.text).toContain("Status 200");
  expect(first.text).toMatch(/&lt;b&gt;you sent&lt;\/b&gt; (Bearer )?••••/);
  const outside = await tried(`${own.target.url}v2/charges`);
  expect([outside.status, outside.text]).toEqual([403, expect.stringContaining("may go only to")]);
  expect(outside.html).toContain(`value="${own.target.url}v2/charges"`);
  expect((await tried("ftp://a.example")).status).toBe(400);
  const early = await tried(`${own.target.url}v1/charges`);
  expect([early.status, early.retryAfter]).toEqual([429, "1"]);
  expect(own.target.received).toMatchObject([{ method: "GET", path: "/v1/charges" }]);
  const again = await owner.context(`${path}/test`);
  expect([again.status, again.headers.get("location")]).toEqual([303, `${path}#try`]);
  await own.call("PATCH", "/v1/credentials/stripe-live", { methods: ["POST"] });
  expect(await owner.pageOf(path)).not.toContain("Send GET");
});

test("the pages say when a credential ends, how often it was used, and that people were told", async () => {
  await using own = await openCredentials();
  const { engine } = own.app;
  const { id: channel } = (
    await own.call("POST", "/v1/channels", { name: "ops", kind: "webhook", url: `${own.target.url}told` })
  ).json;
  const expiresIn = (days: number) => ({
    expires_at: new Date(engine.clock.now().getTime() + days * DAY_MS).toISOString(),
  });
  await own.add(expiresIn(30));
  await own.add({ ...expiresIn(55), name: "other" });
  await own.ended(await own.create());
  engine.clock.advance(25 * DAY_MS);
  await own.ended(await own.create({ body: { n: 2 } }));
  const owner = await signedIn(own.app);
  expect(textOf(await owner.pageOf(PATH))).toContain("On expires in 30 d");
  for (const path of [PATH, `${PATH}/stripe-live`]) {
    const text = textOf(await owner.pageOf(path));
    expect(text).toContain("Expires in 5 d");
    expect(text).toMatch(
      /Owners, agent Uses a day, the last day at the end: 0, 0, 0, 0, 0, 0, 1 1 in 7 days Last used/,
    );
  }
  await engine.services.credentialAlerts(engine.clock.now(), new AbortController().signal);
  const { json } = await own.call("GET", "/v1/notifications");
  expect(json.data).toMatchObject([{ kind: "message", event: "credential_expiring", target: channel }]);
  const told = await owner.pageOf("/settings/notifications");
  expect(textOf(told)).toContain("Credential message ops");
  expect(told).not.toContain("/actions/crd_");
});

test("an action without a credential gets none by being sent again, also where its host has a default", async () => {
  const { json } = await rig.ended(await rig.create({ credential: null }));
  await rig.call("PUT", `/v1/hosts/${rig.host}`, { default_credential: "stripe-live" });
  const sent = rig.target.received.length;
  expect((await ann.send(`/actions/${json.id}/edit`, await ann.editFieldsOf(json.id))).status).toBe(303);
  await rig.target.saw(sent + 1);
  expect(rig.target.received.at(-1)?.headers.has("authorization")).toBe(false);
  await rig.call("DELETE", `/v1/hosts/${rig.host}`);
});

test("the page of an action whose agent sent a secret of its own leads to a form with its host", async () => {
  const advice = async (more: object) => {
    const { json } = await rig.ended(await rig.create(more));
    const html = await ann.pageOf(`/actions/${json.id}`);
    return /<a href="([^"]+)">Store the secret as a credential/.exec(html)?.[1];
  };
  const path = await advice({ credential: null, headers: { authorization: "Bearer mine" } });
  expect(path).toBe(`${PATH}?host=${encodeURIComponent(rig.host)}#add`);
  expect(await ann.pageOf(path ?? "")).toMatch(
    new RegExp(`id="add" open[^]*<textarea[^>]*name="hosts"[^>]*>${rig.host}`),
  );
  expect(await advice({})).toBeUndefined();
});

test.each([
  "",
  "*.com",
  "a b",
  "</textarea><b>x",
  "javascript:alert(1)",
  "a.example/path",
  "user@a.example",
  "\u202ea.example",
])("a form for what is no host is empty: %p", async (host) => {
  const html = await ann.pageOf(`${PATH}?host=${encodeURIComponent(host)}`);
  expect(html).toMatch(/name="hosts"[^>]*><\/textarea>/);
  expect(html).not.toContain('id="add" open');
  for (const part of ["javascript", "<b>x", "user@"]) expect(html).not.toContain(part);
});

test("an action that is edited and sent again keeps its credential", async () => {
  const first = await rig.ended(await rig.create());
  const id = first.json.id;
  const path = `/actions/${id}/edit`;
  const sent = rig.target.received.length;
  const { status } = await send(
    path,
    { method: "POST", url: `${rig.target.url}v1/other`, body: "", title: "", headers: "" },
    path,
  );
  expect(status).toBe(303);
  await rig.target.saw(sent + 1);
  expect(rig.target.received.at(-1)?.headers.get("authorization")).toBe(`Bearer ${SECRET}`);
});

test("the form of a key chooses credentials, and keeps them for the key that replaces it", async () => {
  const fields = { name: "bot", role: "agent", hold: "none", scope: "own" };
  const made = await send("/keys", { ...fields, "credential_stripe-live": "yes", form_id: "f1" }, "/keys/new");
  expect(made.status).toBeLessThan(400);
  const listed = async () => (await rig.call("GET", "/v1/keys")).json.data;
  const bot = (await listed()).find(({ name }) => name === "bot");
  expect(bot?.["credentials"]).toEqual(["stripe-live"]);
  const html = await ann.pageOf(`/keys/new?replaces=${bot?.id}`);
  expect(html).toMatch(/name="credential_stripe-live" value="yes" checked/);
  expect(html).not.toMatch(/name="credential_internal" value="yes" checked/);
});

test("a review of requests that look alike names the credential that they are sent with", async () => {
  await rig.add({ name: "shop-live" });
  const ids: string[] = [];
  for (const amount of [1, 2, 3]) {
    ids.push((await rig.create({ credential: "shop-live", approve: true, body: { amount } })).json.id);
  }
  const page = textOf(await ann.pageOf(`/approvals/review?${ids.map((id) => `id=${id}`).join("&")}`));
  expect(page).toMatch(/v1\/charges × 3 .*Credential shop-live \(Bearer, ••••4242\), for /);
});

test("a credential keeps its keys when its page is saved, as many as it may list", async () => {
  await using app = await openRealServer();
  const owner = await signedIn(app);
  const keys: string[] = [];
  // Besides those of the server.
  for (let at = 0; at < Math.min(CREDENTIAL_KEYS_MAX, LIVE_KEYS_MAX) - 10; at += 1) {
    keys.push((await app.call("POST", "/v1/keys", { name: `k${at}`, role: "agent" })).json.id);
  }
  const added = { name: "many", kind: "bearer", secret: SECRET, hosts: ["a.example"], keys };
  expect((await app.call("POST", "/v1/credentials", added)).status).toBe(201);
  // The log says that it doesn't name them all.
  const log = await app.call("GET", "/v1/audit?kind=credential_added");
  const named = `${keys.slice(0, AUDITED_KEYS_MAX).join(" ")} and ${keys.length - AUDITED_KEYS_MAX} more`;
  expect(log.json.data).toMatchObject([{ detail: { keys_added: named } }]);
  const page = `${PATH}/many`;
  const boxes = Object.fromEntries(keys.map((id) => [`key_${id}`, "yes"]));
  const saved = await owner.send(page, { ...(await owner.hiddenOf(page)), ...boxes, hosts: "b.example" });
  expect(saved.status).toBe(303);
  const { json } = await app.call("GET", "/v1/credentials/many");
  // The page has them in another order.
  const expected = { hosts: ["b.example"], keys: expect.arrayContaining(keys) };
  expect(json).toMatchObject(expected);
}, 30_000);
