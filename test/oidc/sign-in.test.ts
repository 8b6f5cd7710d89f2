import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { hiddenIn } from "../support/forms.ts";
import { OIDC_FLOW_MS_MAX, OIDC_FRESH_MS, OIDC_PAUSE_MS, OIDC_PER_CLIENT_MAX } from "../../src/core/limits.ts";
import { createOidc } from "../../src/oidc/oidc.ts";
import { createSender } from "../../src/outbound/send.ts";
import { providerPolicy } from "../../src/config/target-policy.ts";
import { openRealServer, type RealServer } from "../http/real-server.ts";
import { ANN, ANN_PASSWORD, cookiesIn, joined, personOf, SESSION_SECRET, signedIn } from "../http/signed-in.ts";
import type { Mail } from "../../src/mail/messages.ts";
import { OWN_ORIGIN } from "../http/stub-server.ts";
import { OIDC_CLIENT, OidcServer } from "../support/oidc.ts";

const CALLBACK = "/auth/oidc/callback";

let provider: OidcServer;
let app: RealServer;
let ann: Awaited<ReturnType<typeof signedIn>>;

/** What people sent to themselves. */
let mails: Mail[] = [];

async function open({ tellsInIdToken = false, domains = ["example.com"] } = {}): Promise<void> {
  provider = await OidcServer.open({
    redirectUri: OWN_ORIGIN + CALLBACK,
    tellsInIdToken,
    people: {
      ann: { subject: "subject-of-ann", email: "Ann@example.com" },
      bob: { subject: "subject-of-bob", email: "bob@example.com" },
      eve: { subject: "subject-of-eve", email: "ann@example.com", isVerified: false },
      mallory: { subject: "subject-of-mallory", email: "mallory@evil.example" },
      nobody: { subject: "subject-of-nobody" },
    },
  });
  mails = [];
  app = await openRealServer({
    starts: false,
    mailer: {
      send: (mail) => {
        mails.push(mail);
        return Promise.resolve({ kind: "delivered" });
      },
    },
    oidcOf: ({ engine, sessionService, invitationService }) => ({
      ...createOidc(engine.app, {
        settings: { issuer: provider.issuer, ...OIDC_CLIENT, allowedDomains: domains },
        redirectUri: OWN_ORIGIN + CALLBACK,
        sender: createSender(providerPolicy(provider.issuer, "OIDC_ISSUER")),
        secrets: engine.secrets,
        sessionService,
        invitationService,
      }),
      name: "id.example",
    }),
  });
  ann = await signedIn(app);
}

beforeEach(() => open());

afterEach(async () => {
  await app[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

/** One browser, with its cookies. */
class Visitor {
  readonly cookies = new Map<string, string>();

  get header(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  async ask(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { cookie: this.header, ...Object(init.headers) };
    const answer = await fetch(app.url + path, { redirect: "manual", ...init, headers });
    for (const each of cookiesIn(answer)) {
      const at = each.indexOf("=");
      if (each.slice(at + 1) === "") this.cookies.delete(each.slice(0, at));
      else this.cookies.set(each.slice(0, at), each.slice(at + 1));
    }
    return answer;
  }

  post(path: string, fields: Readonly<Record<string, string>>, origin = app.origin): Promise<Response> {
    return this.ask(path, {
      method: "POST",
      headers: { origin },
      body: new URLSearchParams({ session_secret: SESSION_SECRET, ...fields }),
    });
  }

  /** Presses the button: where the page leads. */
  async begin(fields: Readonly<Record<string, string>> = {}): Promise<string> {
    const html = await (await this.post("/auth/oidc", fields)).text();
    const address = /http-equiv="refresh" content="0; url=([^"]*)"/.exec(html)?.[1] ?? "";
    return address.replaceAll("&amp;", "&");
  }

  /** All of it, as somebody at the provider: the answer of the callback. */
  async signIn(name: string, fields: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.ask(pathOf(await provider.logIn(await this.begin(fields), name)));
  }

  get isIn(): Promise<boolean> {
    return this.ask("/settings/login").then(({ status }) => status === 200);
  }
}

const pathOf = (url: string) => url.slice(new URL(url).origin.length);

const auditText = async () => (await app.call("GET", "/v1/audit?limit=100")).text;

const peopleOf = async () => (await app.call("GET", "/v1/people")).json.data.map(({ email }) => String(email));

async function refusedWith(answer: Response, status: number, said: string): Promise<void> {
  const html = await answer.text();
  expect([answer.status, html.includes(said)]).toEqual([status, true]);
  expect(html).toContain(`href="/login"`);
  expect(cookiesIn(answer).some((one) => one.startsWith("outgate_session=") && one.length > 20)).toBe(false);
}

const invite = async (email: string, role = "reader") => {
  const { json } = await app.call("POST", "/v1/invitations", { email, role });
  return new URL(json.link).pathname;
};

describe("somebody with an account", () => {
  test("logs in by the provider, as the person of the verified address, and goes on where they wanted", async () => {
    const visitor = new Visitor();
    expect(await (await visitor.ask("/login")).text()).toContain("Log in with id.example");
    const address = new URL(await visitor.begin({ next: "/actions?status=failed" }));
    expect(address.origin).toBe(provider.issuer);
    expect(Object.fromEntries(address.searchParams)).toMatchObject({
      response_type: "code",
      scope: "openid email",
      code_challenge_method: "S256",
      redirect_uri: OWN_ORIGIN + CALLBACK,
      client_id: "outgate",
    });
    const answer = await visitor.ask(pathOf(await provider.logIn(address.href, "ann")));
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/actions?status=failed"]);
    expect(await visitor.isIn).toBe(true);
    expect(visitor.cookies.has("outgate_oidc")).toBe(false);
    expect(await auditText()).toContain(`"kind":"identity_linked"`);
    expect(await peopleOf()).toEqual([ANN]);
    // The session has its secret: a form needs no password.
    const html = await (await visitor.ask("/settings")).text();
    const { form_token = "" } = hiddenIn(html);
    expect((await visitor.post("/settings/callback-hosts", { form_token, host: "hooks.example.com" })).status).toBe(
      303,
    );
    // Logging out is local.
    const asked = provider.asked.length;
    expect((await visitor.post("/auth/logout", { form_token })).status).toBe(303);
    expect([await visitor.isIn, provider.asked.length]).toEqual([false, asked]);
  });

  test("sets a password by a link to their own address, and logs in with it from then on", async () => {
    await invite("bob@example.com");
    const bob = new Visitor();
    await bob.signIn("bob");
    const page = await (await bob.ask("/settings/password")).text();
    for (const said of ["You log in with id.example and have no password here", "Email me a link to set one"]) {
      expect(page).toContain(said);
    }
    expect(page).not.toContain("Current password");
    const { form_token = "" } = hiddenIn(page);
    expect((await bob.post("/settings/password/link", { form_token: "another" })).status).toBe(403);
    expect((await bob.post("/settings/password/link", { form_token })).status).toBe(303);
    expect(await (await bob.ask("/settings/password")).text()).toContain("A link is on its way");
    expect((await bob.ask("/settings/password/link")).headers.get("location")).toBe("/settings/password");
    // One a second.
    expect((await bob.post("/settings/password/link", { form_token })).status).toBe(429);
    const [mail] = mails;
    expect([mails.length, mail?.to]).toEqual([1, "bob@example.com"]);
    expect(await auditText()).toContain(`"kind":"password_link_sent"`);
    const [path = ""] = /\/welcome\/\w+/.exec(mail?.text ?? "") ?? [];
    const fields = { email: "bob@example.com", password: "a password of bob" };
    const fresh = new Visitor();
    expect((await fresh.post(path, fields)).status).toBe(303);
    // Setting it ended the other session.
    expect([await bob.isIn, await fresh.isIn]).toEqual([false, true]);
    expect((await new Visitor().post("/auth/login", fields)).status).toBe(303);
    expect(await (await fresh.ask("/settings/password")).text()).toContain("Current password");
    const { form_token: token = "" } = hiddenIn(await (await fresh.ask("/settings/password")).text());
    const refused = await fresh.post("/settings/password/link", { form_token: token });
    expect([refused.status, mails.length]).toEqual([400, 1]);
  });

  test("also where the provider tells the address in the ID token", async () => {
    await app[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
    await open({ tellsInIdToken: true });
    const visitor = new Visitor();
    expect((await visitor.signIn("ann")).status).toBe(303);
    expect(provider.asked).not.toContain("/me");
  });

  test("stays the same person when their address at the provider changes, to somebody else's too", async () => {
    await invite("bob@example.com");
    await new Visitor().signIn("bob");
    const first = new Visitor();
    await first.signIn("ann");
    provider.people.set("ann", { subject: "subject-of-ann", email: "bob@example.com" });
    const visitor = new Visitor();
    expect((await visitor.signIn("ann")).status).toBe(303);
    expect(await (await visitor.ask("/settings/login")).text()).toMatch(/<dt>You<\/dt><dd>[^.]*ann@example\.com/);
    provider.people.set("ann", { subject: "subject-of-ann", email: "ann@elsewhere.example" });
    await refusedWith(await new Visitor().signIn("ann"), 403, "your domain");
  });

  test("is nobody else who was given their address at the provider", async () => {
    await new Visitor().signIn("ann");
    provider.people.set("other", { subject: "subject-of-another", email: ANN });
    await refusedWith(await new Visitor().signIn("other"), 403, "belongs to someone else");
  });

  test("is nobody whose address differs by a letter that only looks the same without case", async () => {
    await joined(app, "owner", "kim@example.com");
    provider.people.set("other", { subject: "subject-of-another", email: "\u212aim@example.com" });
    await refusedWith(await new Visitor().signIn("other"), 403, "No one with your address");
  });

  test("loses a password that was never used in this browser: it may be of whoever signed up with their address", async () => {
    await invite("bob@example.com");
    const visitor = new Visitor();
    await visitor.signIn("bob");
    await visitor.signIn("ann");
    const old = await ann.context("/approvals");
    expect(old.headers.get("location")).toStartWith("/login");
    const wrong = await new Visitor().post("/auth/login", { email: ANN, password: ANN_PASSWORD });
    expect(wrong.status).toBe(401);
    expect(await auditText()).toContain(`"password_removed":true`);
  });

  test("keeps the password where they have logged in with it before", async () => {
    const visitor = new Visitor();
    expect((await visitor.post("/auth/login", { email: ANN, password: ANN_PASSWORD })).status).toBe(303);
    visitor.cookies.delete("outgate_session");
    expect((await visitor.signIn("ann")).status).toBe(303);
    expect((await visitor.post("/auth/login", { email: ANN, password: ANN_PASSWORD })).status).toBe(303);
    expect(await auditText()).toContain(`"password_removed":false`);
    expect((await ann.context("/approvals")).status).toBe(200);
  });
});

describe("somebody without an account", () => {
  test("needs an invitation, and joins by it without a password", async () => {
    await refusedWith(await new Visitor().signIn("bob"), 403, "Ask an owner of the account to invite you");
    expect(await peopleOf()).toEqual([ANN]);
    const path = await invite("Bob@example.com", "approver");
    // A newer one of another account, whose link they have not opened.
    const { engine, strangerId: accountId } = app;
    const [theirs] = await engine.store.accounts.keys(accountId, 1);
    engine.clock.advance(1_000);
    const stranger = { ...engine.owner, accountId, keyId: theirs?.id ?? "" };
    await engine.services.invitationService.invite(stranger, "bob@example.com", "reader");
    const visitor = new Visitor();
    const html = await (await visitor.ask(path)).text();
    expect(html).toContain("Log in with id.example");
    const entered = await visitor.signIn("bob", { next: path });
    expect([entered.status, entered.headers.get("location")]).toEqual([303, "/approvals"]);
    expect((await peopleOf()).toSorted()).toEqual(["Bob@example.com", ANN]);
    expect((await fetch(app.url + path)).status).toBe(404);
    // No password lets them in, and the provider does again.
    for (const password of ["a password of Bob", "        ", "12345678"]) {
      expect((await new Visitor().post("/auth/login", { email: "bob@example.com", password })).status).toBe(401);
    }
    expect((await new Visitor().signIn("bob")).status).toBe(303);
  });

  test("takes up no invitation of another address, even from its own page", async () => {
    const path = await invite("carol@example.com");
    await refusedWith(await new Visitor().signIn("bob", { next: path }), 403, "invite you");
    expect((await fetch(app.url + path)).status).toBe(200);
  });

  test("who was removed needs another invitation", async () => {
    await invite("bob@example.com");
    await new Visitor().signIn("bob");
    await app.call("DELETE", `/v1/people/${await personOf(app, "bob@example.com")}`);
    await refusedWith(await new Visitor().signIn("bob"), 403, "invite you");
  });
});

describe("a provider's word", () => {
  test("counts for verified addresses of the allowed domains alone", async () => {
    await refusedWith(await new Visitor().signIn("eve"), 403, "doesn&#39;t confirm");
    await refusedWith(await new Visitor().signIn("nobody"), 403, "doesn&#39;t confirm");
    provider.people.set("eve", { subject: "subject-of-eve", email: ANN, isVerified: "false" });
    await refusedWith(await new Visitor().signIn("eve"), 403, "doesn&#39;t confirm");
    await invite("mallory@evil.example");
    await refusedWith(await new Visitor().signIn("mallory"), 403, "your domain");
    for (const email of [
      "ann@example.com.evil.example",
      "ann@notexample.com",
      "ann@sub.example.com",
      "a@b@evil.example",
    ]) {
      provider.people.set("mallory", { subject: "subject-of-mallory", email });
      await refusedWith(await new Visitor().signIn("mallory"), 403, "your domain");
    }
  });

  test("is shown in our words when it is a refusal", async () => {
    const answer = await new Visitor().signIn("refuses");
    const html = await answer.clone().text();
    await refusedWith(answer, 403, "was cancelled at the identity provider");
    expect(html).not.toContain("canary");
  });
});

describe("the note of a decision that came after the session had ended", () => {
  const decideLate = async (reason: string) => {
    const request = { url: "https://api.example.com/pay", body: {}, approve: true };
    const { id } = (await app.call("POST", "/v1/actions", request)).json;
    const visitor = new Visitor();
    const path = `/approvals/${id}`;
    const login = await visitor.post(path, { ...(await ann.hiddenOf(path)), decision: "reject", reason });
    expect(login.status).toBe(401);
    const [, form = ""] = (await login.text()).split('action="/auth/oidc"');
    return { visitor, path, answer: await visitor.signIn("ann", hiddenIn(form)) };
  };
  const noteOf = async ({ visitor, path }: Awaited<ReturnType<typeof decideLate>>) =>
    /<textarea[^>]*name="reason"[^>]*>([^<]*)</.exec(await (await visitor.ask(path)).text())?.[1];

  test("is in the form to which the login leads", async () => {
    const late = await decideLate(`Zu teuer: ${"ä".repeat(900)}`);
    expect([late.answer.status, late.answer.headers.get("location")]).toEqual([303, late.path]);
    expect(await noteOf(late)).toBe(`Zu teuer: ${"ä".repeat(900)}`);
  });

  test("is left out if the cookie has no room for it, and the login leads there all the same", async () => {
    const late = await decideLate("高".repeat(1_000));
    expect([late.answer.status, late.answer.headers.get("location")]).toEqual([303, late.path]);
    expect(await noteOf(late)).toBe("");
  });
});

describe("the answer of a provider", () => {
  test("is of the browser that began, once, and for ten minutes", async () => {
    const [visitor, other] = [new Visitor(), new Visitor()];
    const callback = pathOf(await provider.logIn(await visitor.begin(), "ann"));
    await refusedWith(await other.ask(callback), 403, "not started in this browser");
    await other.begin();
    await refusedWith(await other.ask(callback), 403, "not started in this browser");
    const kept = visitor.header;
    expect((await visitor.ask(callback)).status).toBe(303);
    // The cookie is gone; and who kept it finds the code used.
    await refusedWith(await visitor.ask(callback), 403, "not started in this browser");
    await refusedWith(await new Visitor().ask(callback, { headers: { cookie: kept } }), 403, "was used before");

    const late = new Visitor();
    const second = pathOf(await provider.logIn(await late.begin(), "ann"));
    app.engine.clock.advance(OIDC_FLOW_MS_MAX);
    await refusedWith(await late.ask(second), 403, "more than ten minutes ago");
  });

  test("with another's code, state, issuer or claims is refused", async () => {
    const [visitor, attacker] = [new Visitor(), new Visitor()];
    const theirs = new URL(await provider.logIn(await attacker.begin(), "bob"));
    const begin = async () => new URL(await provider.logIn(await visitor.begin(), "ann"));
    // A code that another browser got: its challenge is not ours (PKCE), and neither is its nonce.
    const injected = await begin();
    injected.searchParams.set("code", theirs.searchParams.get("code") ?? "");
    await refusedWith(await visitor.ask(pathOf(injected.href)), 403, "was refused");
    const swapped = await begin();
    swapped.searchParams.set("state", theirs.searchParams.get("state") ?? "");
    await refusedWith(await visitor.ask(pathOf(swapped.href)), 403, "not started in this browser");
    // Another provider's answer (RFC 9207).
    for (const iss of ["https://evil.example", `${provider.issuer}/`]) {
      const mixed = await begin();
      mixed.searchParams.set("iss", iss);
      await refusedWith(await visitor.ask(pathOf(mixed.href)), 403, "was refused");
    }
    const claims = JSON.stringify({ sub: "subject-of-bob", email: ANN, email_verified: true });
    provider.instead = { path: "/me", status: 200, body: claims };
    await refusedWith(await visitor.ask(pathOf((await begin()).href)), 403, "was refused");
    provider.instead = null;
    const bare = await begin();
    bare.searchParams.delete("iss");
    await refusedWith(await visitor.ask(pathOf(bare.href)), 403, "was refused");
    for (const search of ["", "?state=", "?code=x", "?code=x&state=x"]) {
      await refusedWith(await visitor.ask(CALLBACK + search), 403, "not started in this browser");
    }
    const twice = await begin();
    twice.searchParams.append("code", "another");
    await refusedWith(await visitor.ask(pathOf(twice.href)), 403, "was refused");
    expect(await visitor.isIn).toBe(false);
  });

  test("leads back to a long address, and signs in also where that is too long for a cookie", async () => {
    const to = async (next: string) => (await new Visitor().signIn("ann", { next })).headers.get("location");
    const address = (length: number) => "/oauth/authorize?state=".padEnd(length, "s");
    expect(await to(address(2_048))).toBe(address(2_048));
    expect(await to(address(8_192))).toBe("/approvals");
  });

  test("leads to no other site", async () => {
    const answer = await new Visitor().signIn("ann", { next: "//evil.example" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/approvals"]);
  });

  test("whose cookie was altered counts for nothing", async () => {
    const visitor = new Visitor();
    const callback = pathOf(await provider.logIn(await visitor.begin(), "ann"));
    const sealed = visitor.cookies.get("outgate_oidc") ?? "";
    for (const altered of [`${sealed.slice(0, -4)}AAAA`, sealed.slice(0, 60), "x", "00000000.AAAA"]) {
      const cookie = `outgate_oidc=${altered}`;
      await refusedWith(await new Visitor().ask(callback, { headers: { cookie } }), 403, "not started in this browser");
    }
    expect(sealed).not.toContain(callback.slice(0, 5));
  });
});

describe("the button", () => {
  test("works on our own pages alone, and a client presses it forty times a minute at most", async () => {
    const visitor = new Visitor();
    for (const origin of ["https://evil.example", "null"]) {
      expect((await visitor.post("/auth/oidc", {}, origin)).status).toBe(403);
    }
    for (let count = 0; count < OIDC_PER_CLIENT_MAX; count += 1) await visitor.begin();
    const late = await visitor.post("/auth/oidc", {});
    expect([late.status, (await late.text()).includes("Too many sign-ins")]).toEqual([429, true]);
    expect(late.headers.get("retry-after")).toBe("60");
    app.engine.clock.advance(60_000);
    expect(await visitor.begin()).toStartWith(provider.issuer);
  });

  test("is not there where no provider is configured", async () => {
    await using plain = await openRealServer({ starts: false });
    expect(await (await fetch(`${plain.url}/login`)).text()).not.toContain("/auth/oidc");
    expect((await fetch(plain.url + CALLBACK)).status).toBe(404);
    expect((await fetch(`${plain.url}/auth/oidc`, { method: "POST", headers: { origin: plain.origin } })).status).toBe(
      404,
    );
  });
});

describe("while the provider is away", () => {
  const DISCOVERY = "/.well-known/openid-configuration";
  const countOf = (path: string) => provider.asked.filter((one) => one === path).length;

  test("people log in by password, and by the provider as soon as it is back", async () => {
    provider.instead = { status: 503 };
    const visitor = new Visitor();
    const answer = await visitor.post("/auth/oidc", { next: "/actions" });
    const html = await answer.text();
    expect([answer.status, html.includes("can&#39;t be reached")]).toEqual([503, true]);
    // The login page, with where they wanted to go.
    expect(html).toContain(`name="next" value="/actions"`);
    expect((await visitor.post("/auth/login", { email: ANN, password: ANN_PASSWORD })).status).toBe(303);
    // It is not asked at every click.
    await Promise.all([visitor.post("/auth/oidc", {}), visitor.post("/auth/oidc", {})]);
    expect(countOf(DISCOVERY)).toBe(1);
    provider.instead = null;
    app.engine.clock.advance(OIDC_PAUSE_MS);
    expect((await new Visitor().signIn("ann")).status).toBe(303);
    await new Visitor().signIn("ann");
    expect(countOf(DISCOVERY)).toBe(2);
    app.engine.clock.advance(OIDC_FRESH_MS);
    await new Visitor().signIn("ann");
    expect(countOf(DISCOVERY)).toBe(3);
    expect(JSON.stringify(app.lines)).toContain("oidc.away");
  });

  test("an answer that can't be checked lets nobody in", async () => {
    for (const path of ["/token", "/jwks", "/me"]) {
      const visitor = new Visitor();
      const callback = pathOf(await provider.logIn(await visitor.begin(), "ann"));
      provider.instead = { path, status: 502 };
      await refusedWith(await visitor.ask(callback), 503, "can&#39;t be reached");
      provider.instead = null;
    }
  });

  test("a document that is none, or of another issuer, is not believed", async () => {
    const documents = [
      "<html>",
      "[]",
      JSON.stringify({ issuer: "https://evil.example", authorization_endpoint: "https://evil.example/auth" }),
      `{"issuer":"${provider.issuer}","x":"${"x".repeat(300_000)}"}`,
    ];
    for (const body of documents) {
      provider.instead = { path: DISCOVERY, status: 200, body };
      expect((await new Visitor().post("/auth/oidc", {})).status).toBe(503);
      app.engine.clock.advance(OIDC_PAUSE_MS);
    }
  });
});

test("tokens and codes stand in no log line and no entry of the audit log", async () => {
  const visitor = new Visitor();
  const callback = await provider.logIn(await visitor.begin(), "ann");
  await visitor.ask(pathOf(callback));
  await visitor.ask(pathOf(callback));
  const { searchParams } = new URL(callback);
  const shown = [JSON.stringify(app.lines), JSON.stringify(app.engine.lines), await auditText()].join();
  for (const secret of [searchParams.get("code"), searchParams.get("state"), OIDC_CLIENT.clientSecret]) {
    expect(shown).not.toContain(secret ?? "none");
  }
});
