import { describe, expect, test } from "bun:test";
import { FORM_FIELDS_MAX } from "../../src/core/limits.ts";
import { ACCOUNT, anAction } from "../support/factory.ts";
import { openRealServer, type RealServer, type RealServerOptions } from "./real-server.ts";
import { ANN_PASSWORD, browserOf, sessionIn, SESSION_SECRET, signedIn } from "./signed-in.ts";
import {
  stubActionService,
  stubPeopleService,
  KNOWN_ID,
  KNOWN_BULK_ID,
  KNOWN_CREDENTIAL_REQUEST_ID,
  KNOWN_INVITATION_ID,
  KNOWN_KEY_ID,
  KNOWN_CHANNEL_ID,
  KNOWN_OAUTH_CLIENT_ID,
  KNOWN_PAUSE_ID,
  KNOWN_PERSON_ID,
  KNOWN_RULE_ID,
  openStubServer,
  recorded,
  OWN_ORIGIN,
  stubDeps,
  stubHttp,
  KEYS,
} from "./stub-server.ts";
import { shared } from "../support/shared.ts";
import { exchange, readAnswer } from "./wire.ts";

const SHOWN = `${KNOWN_ID},1,digest`;

type Fields = Readonly<Record<string, string>>;

/** Every form that a session sends and that changes something, or shows a secret; but the logout and the new password. */
const FORMS: readonly (readonly [path: string, fields: Fields])[] = [
  [`/approvals/${KNOWN_ID}`, { decision: "approve", requests: SHOWN }],
  ["/approvals/review", { decision: "approve", requests: SHOWN }],
  [`/actions/${KNOWN_ID}`, { decision: "retry", requests: SHOWN }],
  [`/actions/${KNOWN_ID}/reveal`, {}],
  [`/actions/${KNOWN_ID}/edit`, { method: "POST", url: "https://api.example.com/", body: "{}", sure: "yes" }],
  ["/bulk?status=failed", { operation: "retry", reason: "up again" }],
  [`/bulk/${KNOWN_BULK_ID}/stop`, {}],
  ["/keys", { name: "x", role: "owner", hold: "none" }],
  [`/keys/${KNOWN_KEY_ID}/revoke`, { unfinished: "keep" }],
  ["/keys/key_owner/test", { key: KEYS.owner }],
  ["/settings/server/mail-test", {}],
  ["/settings/grants/grt_01known/end", {}],
  ["/settings/credentials", { name: "stripe-live", kind: "bearer", secret: "0123456789", hosts: "a.example" }],
  ["/settings/credentials/stripe-live", { hosts: "a.example" }],
  ["/settings/credentials/stripe-live/secret", { secret: "0123456789" }],
  ["/settings/credentials/stripe-live/switch", { enabled: "false" }],
  ["/settings/credentials/stripe-live/test", { url: "https://a.example/" }],
  ["/settings/credentials/stripe-live/remove", {}],
  [
    `/approvals/credentials/${KNOWN_CREDENTIAL_REQUEST_ID}/grant`,
    { name: "stripe-live", kind: "bearer", secret: "0123456789", hosts: "a.example" },
  ],
  [`/approvals/credentials/${KNOWN_CREDENTIAL_REQUEST_ID}/decline`, { reason: "no" }],
  ["/settings/oauth-clients", { name: "Workflows", redirect_uris: "https://a.example/cb", type: "confidential" }],
  [`/settings/oauth-clients/${KNOWN_OAUTH_CLIENT_ID}/remove`, {}],
  ["/settings/pauses", { scope: "account" }],
  [`/settings/pauses/${KNOWN_PAUSE_ID}/resume`, {}],
  ["/settings/signing-secret", { origin: "https://a.example", for: "calls" }],
  ["/settings/signing/check", { origin: "https://a.example", headers: "", body: "" }],
  ["/settings/rotation", { origin: "", seen: "none" }],
  ["/settings/callback-hosts", { host: "hooks.example.com" }],
  ["/settings/callback-hosts/test", { url: "https://hooks.example.com/x" }],
  ["/settings/callback-hosts/remove", { host: "hooks.example.com" }],
  ["/settings/hosts", { host: "a.example", timeout_ms: "5000" }],
  ["/settings/hosts/remove", { host: "a.example" }],
  ["/settings/rules", { name: "All", effect: "hold" }],
  ["/settings/rules/undo", { seq: "1" }],
  [`/settings/rules/${KNOWN_RULE_ID}`, { name: "All", effect: "refuse", version: "1" }],
  [`/settings/rules/${KNOWN_RULE_ID}/move`, { direction: "up" }],
  [`/settings/rules/${KNOWN_RULE_ID}/remove`, {}],
  ["/settings/channels", { name: "ops", kind: "slack", url: "https://hooks.example.com/" }],
  [`/settings/channels/${KNOWN_CHANNEL_ID}/test`, {}],
  [`/settings/channels/${KNOWN_CHANNEL_ID}/switch`, { enabled: "false" }],
  [`/settings/channels/${KNOWN_CHANNEL_ID}/remove`, {}],
  ["/settings/accounts/acc_01known/allow", {}],
  ["/settings/people", { email: "bob@example.com", role: "reader" }],
  [`/settings/people/${KNOWN_PERSON_ID}/role`, { role: "approver" }],
  [`/settings/people/${KNOWN_PERSON_ID}/remove`, {}],
  [`/settings/invitations/${KNOWN_INVITATION_ID}/withdraw`, {}],
  ["/settings/login/account", { account: "acc_01known" }],
  ["/overview/first-steps", {}],
  ["/get-started/test", {}],
  ["/settings/login/name", { name: "Acme" }],
  ["/settings/login/leave", { sure: "yes" }],
  ["/settings/login/sessions", { id: "" }],
  ["/join/0123", {}],
];

const COOKIE = `outgate_session=${"0".repeat(64)}`;

/** As the stub server derives it. */
const FORM_TOKEN = `form token ${ACCOUNT}`;

function stubServer(isRight: boolean, baseUrl = OWN_ORIGIN) {
  const calls: string[] = [];
  const peopleService = stubPeopleService({ sessionSecret: { isRight: () => isRight, confirm: notAsked } });
  const get = () => Promise.resolve(anAction({ id: KNOWN_ID, status: "failed" }));
  const found = recorded(stubActionService({ get }), calls);
  const app = openStubServer({ peopleService, actionService: found, baseUrl });
  const post = (path: string, fields: Fields, headers: Fields = {}) =>
    fetch(app.url + path, {
      method: "POST",
      redirect: "manual",
      headers: { cookie: `${COOKIE}; __Host-${COOKIE}`, origin: baseUrl, ...headers },
      body: new URLSearchParams({ form_token: FORM_TOKEN, ...fields }),
    });
  return { ...app, calls, post };
}

const notAsked = () => Promise.reject(new Error("No password was sent."));

/** The secret is missing, is right, and is none that is asked for. */
const without = await shared(stubServer(false));
const right = await shared(stubServer(true));
const secure = await shared(stubServer(false, "https://outgate.example"));

describe("a form of a session", () => {
  // Which origins and tokens are none of ours: test/http/csrf.test.ts.
  test.each(FORMS)(
    "to %s takes the secret, our own page and the token of its session, or does nothing",
    async (...form) => {
      const [path, fields] = form;
      for (const { calls } of [without, right]) calls.length = 0;
      const foreign = await right.post(path, fields, { origin: "https://evil.example" });
      const tokenless = await right.post(path, { ...fields, form_token: `${FORM_TOKEN}0` });
      // The page of the error reads only what its navigation counts.
      const others = right.calls.filter((name) => name !== "counts");
      expect([foreign.status, tokenless.status, others]).toEqual([403, 403, []]);
      const answer = await without.post(path, fields);
      const html = await answer.text();
      expect([answer.status, html.includes("Confirm with your password")]).toEqual([403, true]);
      expect(html).not.toMatch(/whsec_|og_new/);
      expect([without.calls, answer.headers.getSetCookie()]).toEqual([[], []]);
      // It is the secret that was missing.
      for (const other of [right, secure]) {
        const done = await other.post(path, fields);
        expect(done.status < 400, other.origin).toBe(true);
        expect(await done.text()).not.toContain("Confirm with your password");
      }
    },
  );

  test("is in the list above wherever it leads: one more needs a row", () => {
    const posts = stubHttp(stubDeps()).routes.filter(({ method }) => method === "POST");
    // Those without a session, and those of the password: one asks for it itself, the other is for people who have none.
    const others = /^\/(v1|auth|mcp|a|welcome)\/|^\/settings\/password(\/link)?$/;
    expect(posts.filter(({ path }) => !others.test(path))).toHaveLength(FORMS.length);
  });
});

const app = await shared(openRealServer({ starts: false }));
const ann = await signedIn(app);

describe("the question for the password", () => {
  const open = async (options: RealServerOptions = {}) => {
    const server = await openRealServer({ starts: false, ...options });
    return { server, bob: await signedIn(server) };
  };
  const hostsOf = async (server: RealServer) => {
    const { json } = await server.call("GET", "/v1/callback-hosts");
    return (json.data as readonly { readonly host?: string }[]).map(({ host }) => host);
  };
  const WITHOUT = { session_secret: "" };

  test("keeps what was sent, escaped, and nothing that is secret", async () => {
    const { id } = await app.engine.create({ approve: true });
    const token = await ann.hiddenOf(`/approvals/${id}`);
    const reason = `a "quoted" <b>reason</b>\nof two lines`;
    const wrong = "f0".repeat(32);
    const fields = { ...token, decision: "approve", reason, session_secret: wrong, password: "typed-elsewhere" };
    const answer = await ann.send(`/approvals/${id}`, { ...fields, confirm_password: "not the password" });
    const html = await answer.text();
    expect([answer.status, html.includes("This is not your current password.")]).toEqual([401, true]);
    expect(html).toContain(`name="reason" value="a &quot;quoted&quot; &lt;b&gt;reason&lt;/b&gt;\nof two lines"`);
    expect(html).toContain(`action="/approvals/${id}"`);
    for (const secret of [wrong, "typed-elsewhere", "not the password"]) expect(html).not.toContain(secret);
    expect((await app.engine.get(id)).status).toBe("awaiting_approval");
    const kept = await ann.send(`/approvals/${id}`, { ...fields, confirm_password: ANN_PASSWORD });
    expect(kept.headers.get("location")).toBe(`/approvals?decided=${id}`);
    const told = await app.engine.events(id);
    expect(told.find(({ type }) => type === "approved")).toMatchObject({ reason: reason.trim() });
  });

  test("sends an invitation to the address that was typed, and not to that of the login", async () => {
    const { form_token = "" } = await ann.hiddenOf("/settings");
    const fields = { form_token, email: "bob@example.com", role: "reader", ...WITHOUT };
    const asked = await (await ann.send("/settings/people", fields)).text();
    // As a browser sends all of the form, and not only what is hidden.
    const inputs = [...asked.matchAll(/<input[^>]*>/g)].map(([input]) => [
      /name="(\w+)"/.exec(input)?.[1] ?? "",
      /value="([^"]*)"/.exec(input)?.[1] ?? "",
    ]);
    const shown = Object.fromEntries(inputs.filter(([name]) => name !== ""));
    await ann.send("/settings/people", { ...shown, confirm_password: ANN_PASSWORD });
    const { data } = (await app.call("GET", "/v1/invitations")).json;
    expect(data).toMatchObject([{ email: "bob@example.com" }]);
  });

  test("counts wrong answers as wrong logins, and lets nothing through after five", async () => {
    const { server, bob } = await open();
    await using _house = server;
    const token = await bob.hiddenOf("/settings");
    const add = async (confirm_password: string) => {
      const fields = { ...token, ...WITHOUT, host: "hooks.example.com", confirm_password };
      return (await bob.send("/settings/callback-hosts", fields)).status;
    };
    const tried = [];
    for (let count = 0; count < 5; count += 1) tried.push(await add(`wrong number ${count}`));
    expect([...tried, await add(ANN_PASSWORD)]).toEqual([401, 401, 401, 401, 401, 429]);
    expect(await hostsOf(server)).toEqual([]);
    server.engine.clock.advance(60_000);
    expect(await add(ANN_PASSWORD)).toBe(303);
    expect(await hostsOf(server)).toEqual(["hooks.example.com"]);
  });

  test("is asked once of a session from before where scripts run, and each time where none does", async () => {
    const { server, bob } = await open();
    await using _house = server;
    const login = { email: "ann@example.com", password: ANN_PASSWORD };
    const other = browserOf(server, sessionIn(await server.call("POST", "/auth/login", login)));
    const { form_token = "" } = await other.hiddenOf("/settings");
    const send = async (fields: Fields) => {
      const all = { form_token, host: "hooks.example.com", ...fields };
      return (await other.send("/settings/callback-hosts", all)).status;
    };
    const password = { confirm_password: ANN_PASSWORD };
    expect([await send(WITHOUT), await send({ ...WITHOUT, ...password }), await send(WITHOUT)]).toEqual([
      403, 303, 403,
    ]);
    expect([await send({}), await send(password), await send({})]).toEqual([403, 303, 303]);
    // That session's alone: the other one has its own.
    const own: Fields = { ...(await bob.hiddenOf("/settings")), host: "a.example", session_secret: "ab".repeat(32) };
    expect((await bob.send("/settings/callback-hosts", own)).status).toBe(403);
  });

  test("takes no other session's secret, and none that is not one", async () => {
    const fields: Fields = { ...(await ann.hiddenOf("/settings")), host: "hooks.example.com" };
    for (const session_secret of [
      "",
      "0".repeat(64),
      SESSION_SECRET.toUpperCase(),
      SESSION_SECRET.slice(1),
      `${SESSION_SECRET} `,
      ann.cookie.split("=")[1] ?? "",
      fields["form_token"] ?? "",
    ]) {
      const answer = await ann.send("/settings/callback-hosts", { ...fields, session_secret });
      expect(answer.status, session_secret).toBe(403);
    }
    expect(await hostsOf(app)).toEqual([]);
  });

  test("keeps no form of more fields than our pages have", async () => {
    const many = Object.fromEntries(Array.from({ length: FORM_FIELDS_MAX + 1 }, (_, at) => [`f${at}`, "x"]));
    const answer = await ann.send("/settings/callback-hosts", many);
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain(`The form has more than ${FORM_FIELDS_MAX} fields.`);
  });

  test("is none for a new password, which asks for the old one, and the new session has a secret", async () => {
    const { server, bob } = await open();
    await using _house = server;
    const fields = { ...(await bob.hiddenOf("/settings/password")), password: "another long one" };
    const wrong = await bob.send("/settings/password", { ...fields, ...WITHOUT, current_password: "not the one" });
    expect(wrong.status).toBe(401);
    const changed = await bob.send("/settings/password", { ...fields, current_password: ANN_PASSWORD });
    expect(changed.status).toBe(303);
    const again = browserOf(server, sessionIn(changed));
    const host = { ...(await again.hiddenOf("/settings")), host: "hooks.example.com" };
    expect((await again.send("/settings/callback-hosts", host)).status).toBe(303);
  });
});

const stub = await shared(openStubServer());

describe("on loopback", () => {
  const ask = async (path: string, host: string, more: readonly string[] = [], method = "GET") => {
    const head = [
      `${method} ${path} HTTP/1.1`,
      `Host: ${host}`,
      "Connection: close",
      "Content-Length: 0",
      ...more,
      "",
      "",
    ];
    return readAnswer((await exchange(stub.port, [head.join("\r\n")])).text);
  };
  const FOREIGN = [
    "evil.example",
    "abc.ngrok.app",
    "127.0.0.1.evil.example:3000",
    "192.168.1.5:3000",
    "127.0.0.1@evil.example",
    "",
  ];

  test.each(FOREIGN)("pages, /auth and /a are not served under the Host %j: 421 says what to set", async (host) => {
    for (const [path, method] of [
      ["/", "GET"],
      ["/login", "GET"],
      ["/approvals", "GET"],
      ["/approvals", "HEAD"],
      ["/events", "GET"],
      ["/docs", "GET"],
      ["/a/token", "GET"],
      ["/a/token", "POST"],
      ["/welcome/token", "POST"],
      ["/auth/login", "POST"],
      ["/nothing", "GET"],
    ] as const) {
      const answer = await ask(path, host, [`Cookie: ${COOKIE}`], method);
      expect(answer.status, path).toBe(421);
      if (method === "HEAD") continue;
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: "invalid_request" } });
      expect(answer.body).toContain("BASE_URL");
    }
    const page = await ask("/login", host, ["Accept: text/html"]);
    expect([
      page.status,
      page.body.includes("set BASE_URL to the address"),
      /<link rel="stylesheet"/.test(page.body),
    ]).toEqual([421, true, false]);
    expect(page.body).not.toContain("evil");
    expect(stub.calls).toEqual([]);
  });

  test("probes and /v1 answer as ever, and so does everything under its own names", async () => {
    for (const path of ["/health", "/ready", "/metrics", "/openapi.json"]) {
      expect((await ask(path, "evil.example")).status, path).toBe(200);
    }
    expect((await ask("/v1/account", "evil.example")).status).toBe(401);
    expect((await ask("/docs", "127.0.0.1:3000")).status).toBe(200);
    // At another name of this machine somebody else may listen tomorrow, and get what is stored for that name.
    for (const host of ["localhost", "localhost:8080", "[::1]:3000", "LOCALHOST:3000", "127.1.2.3"]) {
      const answer = await ask("/docs?a=b", host);
      const led = [answer.status, answer.headers.get("location")];
      expect(led, host).toEqual([307, `${OWN_ORIGIN}/docs?a=b`]);
    }
  });
});
