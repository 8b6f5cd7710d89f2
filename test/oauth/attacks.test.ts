import { describe, expect, test } from "bun:test";
import type { OAuthArtifact } from "../../src/core/oauth-store.ts";
import {
  OAUTH_INTERACTIONS_PER_ACCOUNT_MAX,
  OAUTH_REGISTRATIONS_PER_CLIENT_MAX,
  OAUTH_UNUSED_CLIENT_MS,
} from "../../src/core/limits.ts";
import { wrapping } from "../support/engine.ts";
import {
  addSigned,
  askMcp,
  authorizeUrl,
  CLIENT_ID,
  connect,
  DOCUMENT,
  exchange,
  newCode,
  newCodeFor,
  newProof,
  openRig,
  postForm,
  REDIRECT,
  refresh,
  register,
  type Rig,
  SIGNED_ID,
} from "./rig.ts";
import { once, shared } from "../support/shared.ts";
import { words } from "../support/words.ts";

/*
 * What attackers try (RFC 9700), by subject. Elsewhere: documents of clients that lead to private addresses, redirect, or are
 * slow or large, and their keys (clients.test.ts); clients of other accounts (account-clients.test.ts); assertions in two
 * requests at once, and tokens on other nodes after the end of their key, person or account (nodes.test.ts); a frame around the
 * consent in a real browser (test/pages/login.test.ts); and the bounds of what is stored (test/db/conformance/oauth.ts).
 */

const rig = await shared(openRig());

/** What the client is told at its address if the person goes there; null: nothing. Nobody is led anywhere but to us. */
async function toldClient(changes: Readonly<Record<string, string>>): Promise<string | null> {
  const { began, html } = await rig.browser().open(authorizeUrl(rig, newProof().challenge, changes));
  const location = began.headers.get("location");
  expect({ status: began.status, location }, JSON.stringify(changes)).toEqual({ status: 400, location: null });
  const link = /<a href="([^"]*)"[^>]*>Go back to the client</.exec(html)?.[1];
  if (link === undefined) return null;
  const back = new URL(link.replaceAll("&amp;", "&"));
  expect(back.origin + back.pathname).toBe(REDIRECT);
  // Where the client asked for a token, the library answers as such clients expect it.
  const told = new URLSearchParams(back.hash === "" ? back.search : back.hash.slice(1));
  expect(told.get("iss")).toBe(rig.url);
  return told.get("error");
}

describe("a code", () => {
  test("that is used twice ends the connection, with the tokens of the first use", async () => {
    const { code, verifier } = await newCode(rig);
    const first = await exchange(rig, code, verifier);
    expect((await askMcp(rig, first.json.access_token)).status).toBe(200);
    const second = await exchange(rig, code, verifier);
    expect([second.status, second.json.error]).toEqual([400, "invalid_grant"]);
    expect((await askMcp(rig, first.json.access_token)).status).toBe(401);
    expect((await refresh(rig, first.json.refresh_token)).json.error).toBe("invalid_grant");
  });

  test("that several requests race for gives tokens to one at most, and what it gave ends", async () => {
    const { code, verifier } = await newCode(rig);
    const answers = await Promise.all(Array.from({ length: 6 }, () => exchange(rig, code, verifier)));
    const given = answers.filter(({ status }) => status === 200);
    expect(given.length).toBeLessThanOrEqual(1);
    for (const { json } of given) expect((await askMcp(rig, json.access_token)).status).toBe(401);
  });

  test("is worth nothing without its verifier, to another client, or with another address", async () => {
    const other = "https://other.example/client.json";
    rig.documents.set(other, { ...DOCUMENT, client_id: other });
    const { code, challenge, verifier } = await newCode(rig);
    const tries = [
      await exchange(rig, code, newProof().verifier),
      // As `plain` would compare it.
      await exchange(rig, code, challenge),
      await exchange(rig, code, ""),
      await exchange(rig, code, verifier, { client_id: other }),
      await exchange(rig, code, verifier, { redirect_uri: "http://127.0.0.1/callback" }),
      await exchange(rig, code, verifier, { resource: "https://other.example/mcp" }),
    ];
    expect(tries[0]?.json.error_description).toContain("belongs to another client, redirect_uri or code_verifier");
    const refusals = new Set(["invalid_grant", "invalid_target"]);
    for (const { status, json } of tries) expect([status, refusals.has(json.error ?? "")]).toEqual([400, true]);
    const next = await newCode(rig);
    const wide = await exchange(rig, next.code, next.verifier, { scope: "mcp admin" });
    expect([wide.status, wide.json.scope]).toEqual([200, "mcp"]);
  });

  test("is for the port on loopback that it was given to", async () => {
    const redirect_uri = "http://127.0.0.1:5000/callback";
    const { back, code, verifier } = await newCodeFor(rig, { redirect_uri });
    expect(back.origin).toBe("http://127.0.0.1:5000");
    const other = await exchange(rig, code, verifier, { redirect_uri: "http://127.0.0.1:5001/callback" });
    expect(other.json.error).toBe("invalid_grant");
    expect((await exchange(rig, code, verifier, { redirect_uri })).status).toBe(200);
  });
});

test("a request of a stranger has no document read, and leaves those of clients alone", async () => {
  const { tokens } = await connect(rig);
  const read = [...rig.read];
  const strange = { client_id: "https://victim.example/path", code: "x", code_verifier: newProof().verifier };
  for (const [path, fields] of [
    ["/oauth/token", { grant_type: "authorization_code", redirect_uri: REDIRECT, ...strange }],
    ["/oauth/token", { grant_type: "refresh_token", refresh_token: "x", ...strange }],
    ["/oauth/token", { grant_type: "client_credentials", ...strange }],
    ["/oauth/revoke", { token: "x", ...strange }],
  ] as const) {
    const { status, json } = await postForm(rig, path, fields);
    expect({ isRefused: status >= 400, error: json.error !== undefined }, path).toEqual({
      isRefused: true,
      error: true,
    });
  }
  expect(rig.read).toEqual(read);
  // A client that is known is told what it was told before.
  expect((await refresh(rig, "x")).json.error).toBe("invalid_grant");
  expect((await refresh(rig, tokens.refresh_token)).status).toBe(200);
});

describe("a refresh token", () => {
  test("that is used twice ends the whole family", async () => {
    const live = await rig.liveKeys();
    const { tokens } = await connect(rig);
    const next = await refresh(rig, tokens.refresh_token);
    const last = await refresh(rig, next.json.refresh_token);
    expect(last.status).toBe(200);
    expect((await refresh(rig, tokens.refresh_token)).json.error).toBe("invalid_grant");
    expect((await askMcp(rig, last.json.access_token)).status).toBe(401);
    expect((await refresh(rig, last.json.refresh_token)).json.error).toBe("invalid_grant");
    expect(await rig.liveKeys()).toEqual(live);
  });

  test("that several requests race for gives tokens to one at most", async () => {
    const live = await rig.liveKeys();
    const { tokens } = await connect(rig);
    const answers = await Promise.all(Array.from({ length: 6 }, () => refresh(rig, tokens.refresh_token)));
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
    expect(await rig.liveKeys()).toEqual(live);
  });

  test("gives no more than it had, and is of no use to another client or for another resource", async () => {
    const other = "https://other.example/client.json";
    rig.documents.set(other, { ...DOCUMENT, client_id: other });
    const { tokens } = await connect(rig);
    const tries = [
      await refresh(rig, tokens.refresh_token, { scope: "mcp admin" }),
      await refresh(rig, tokens.refresh_token, { client_id: other }),
      await refresh(rig, tokens.access_token),
    ];
    expect(tries.map(({ json }) => json.error)).toEqual(["invalid_scope", "invalid_grant", "invalid_grant"]);
    await postForm(rig, "/oauth/revoke", { token: tokens.refresh_token, client_id: other });
    expect((await askMcp(rig, tokens.access_token)).status).toBe(200);
    const elsewhere = await refresh(rig, tokens.refresh_token, { resource: "https://other.example/mcp" });
    expect(elsewhere.json.error).toBe("invalid_target");
  });
});

describe("a request to connect", () => {
  test("needs PKCE by S256, a code, and this resource; whatever else it asks for, it gets the one scope", async () => {
    const told = [
      await toldClient({ code_challenge_method: "plain" }),
      await toldClient({ code_challenge: "" }),
      await toldClient({ code_challenge_method: "" }),
      await toldClient({ code_challenge: "", code_challenge_method: "" }),
      await toldClient({ response_type: "token" }),
      await toldClient({ resource: "https://other.example/mcp" }),
      await toldClient({ prompt: "none" }),
    ];
    expect(told).toEqual([
      "invalid_request",
      "invalid_request",
      "invalid_request",
      "invalid_request",
      "unsupported_response_type",
      "invalid_target",
      "login_required",
    ]);
    const wide = await rig.browser().open(authorizeUrl(rig, newProof().challenge, { scope: "openid admin mcp" }));
    expect(wide.answer.status).toBe(200);
  });

  test("leads nowhere but to an address of its document, whatever it looks like", async () => {
    const tricks = [
      ...words(`
        https://client.example/CALLBACK https://CLIENT.example/callback https://client.example:8443/callback
        https://client.example:443/callback https://client.example/callback/
        https://client.example/callback?x=1 https://client.example/callback#x
        https://client.example@evil.example/callback https://ann@client.example/callback
        https://client.example.evil.example/callback https://xn--clent-tya.example/callback
        https://client.example/callback/../callback http://client.example/callback javascript:alert(1)
        //client.example/callback http://localhost:5000/callback http://127.0.0.1:5000/other
        http://127.0.0.1.evil.example/callback http://[::1]:5000/callback https://127.0.0.1/callback
        http://ann@127.0.0.1:5000/callback http://127.0.0.1:5000@evil.example/callback
        http://127.0.0.1:5000/CALLBACK http://127.0.0.1:5000/callback/ http://127.0.0.1:5000/callback?x=1
        http://127.0.0.1:5000/callback#x http://127.0.0.1:5000/x/../callback http://127.0.0.1:5000/%63allback
        http://127.0.0.1:99999/callback HTTP://127.0.0.1:5000/callback http:127.0.0.1:5000/callback
        http://127.1:5000/callback http://2130706433:5000/callback
      `),
      "https://clıent.example/callback",
      "https://client.example\\@evil.example/callback",
      "http://１２７.0.0.1:5000/callback",
      "",
    ];
    for (const redirect_uri of tricks) expect(await toldClient({ redirect_uri })).toBeNull();
    for (const again of ["redirect_uri=https%3A%2F%2Fevil.example%2F", "client_id=https%3A%2F%2Fevil.example%2Fc"]) {
      const { began } = await rig.browser().open(`${authorizeUrl(rig, newProof().challenge)}&${again}`);
      expect([began.status, began.headers.get("location")]).toEqual([400, null]);
    }
    // A program on the person's machine takes any port that is free.
    const local = await rig
      .browser()
      .open(authorizeUrl(rig, newProof().challenge, { redirect_uri: "http://127.0.0.1:5000/callback" }));
    expect(local.answer.status).toBe(200);
    expect(local.answer.headers.get("content-security-policy")).toContain("form-action 'self' http://127.0.0.1:5000;");
  });

  test("leads nobody to the address of whoever wrote it unless they go there", async () => {
    const evil = "https://evil.example/client.json";
    const redirect = "https://evil.example/login";
    rig.documents.set(evil, { ...DOCUMENT, client_id: evil, redirect_uris: [redirect] });
    const changes = { client_id: evil, redirect_uri: redirect, prompt: "none" };
    const { began, html } = await rig.browser().open(authorizeUrl(rig, newProof().challenge, changes));
    expect([began.status, began.headers.get("location")]).toEqual([400, null]);
    expect(html).toMatch(/Go back to the client<\/a>, at <[^>]*>evil\.example</);
  });

  test("is neither begun nor answered by HEAD", async () => {
    const browser = rig.browser();
    const address = authorizeUrl(rig, newProof().challenge);
    const seen = await browser.ask(address, { method: "HEAD" });
    expect([seen.status, seen.headers.get("location"), seen.headers.getSetCookie()]).toEqual([200, null, []]);
    const pressed = await browser.press(await browser.open(address));
    const ahead = await browser.ask(pressed.headers.get("location") ?? "", { method: "HEAD" });
    expect([ahead.status, ahead.headers.get("location")]).toEqual([200, null]);
    expect((await browser.follow(pressed)).searchParams.get("code")).not.toBeNull();
  });

  test("is answered in the name of this server, so that a client can tell it from another", async () => {
    for (const decision of ["allow", "deny"] as const) {
      const browser = rig.browser();
      const page = await browser.open(authorizeUrl(rig, newProof().challenge));
      const back = await browser.follow(await browser.press(page, decision));
      expect(back.searchParams.get("iss"), decision).toEqual(rig.url);
    }
  });

  test("of an unknown client leads nowhere", async () => {
    for (const client_id of ["unknown", "https://unknown.example/client.json", "http://client.example/c.json", ""]) {
      expect(await toldClient({ client_id })).toBeNull();
    }
  });

  test("of a client that names itself like another shows its own host", async () => {
    const evil = "https://evil.example/claude.ai/client.json";
    const redirect = "https://evil.example/callback";
    rig.documents.set(evil, {
      ...DOCUMENT,
      client_id: evil,
      client_name: "Claude (claude.ai)",
      redirect_uris: [redirect],
    });
    const changes = { client_id: evil, redirect_uri: redirect };
    const { html } = await rig.browser().open(authorizeUrl(rig, newProof().challenge, changes));
    expect(html).toMatch(/<b class="name"><[^>]*>evil\.example</);
    expect(html).not.toMatch(/<b class="name"><[^>]*>claude\.ai</);
    expect(html).toMatch(/name="name"[^>]*value="Claude \(claude\.ai\) \(evil\.example\)"/);
    // The key is named by the end of a long host, which is registered to somebody.
    const long = `https://claude.ai.${"a".repeat(50)}.evil.example/client.json`;
    rig.documents.set(long, { ...DOCUMENT, client_id: long, client_name: "Claude" });
    const longPage = await rig.browser().open(authorizeUrl(rig, newProof().challenge, { client_id: long }));
    expect(longPage.html).toMatch(/name="name"[^>]*value="Claude \(\.\.\.evil\.example\)"/);
    // With a letter that looks like another one: as it is asked for, never as it is meant to look.
    const like = "https://xn--clent-o2e.example/client.json";
    rig.documents.set(like, { ...DOCUMENT, client_id: like });
    const other = await rig.browser().open(authorizeUrl(rig, newProof().challenge, { client_id: like }));
    expect(other.html).toMatch(/<b class="name"><[^>]*>xn--clent-o2e\.example</);
  });
});

test("a request to connect is what its address says, and nothing that another address holds", async () => {
  const readBefore = rig.read.length;
  const changes = { request_uri: "http://169.254.169.254/x", request: "eyJhbGciOiJub25lIn0.e30.", claims: "{" };
  const { code, verifier } = await newCodeFor(rig, { ...changes, response_mode: "form_post" });
  expect((await exchange(rig, code, verifier)).status).toBe(200);
  expect(rig.read.slice(readBefore).filter((url) => url !== CLIENT_ID)).toEqual([]);
});

describe("consent", () => {
  test("is taken from our own page in the session and the browser that began, and once", async () => {
    const live = await rig.liveKeys();
    const browser = rig.browser();
    const page = await browser.open(authorizeUrl(rig, newProof().challenge));
    const refusals = [
      await browser.press(page, "allow", {}, { origin: "https://evil.example" }),
      await browser.press(page, "allow", {}, { origin: "null" }),
      await browser.press(page, "allow", { form_token: "x".repeat(64) }),
      // On plain http the cookie alone is not enough.
      await browser.press(page, "allow", { session_secret: "" }),
    ];
    expect(refusals.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    expect(await refusals.at(-1)?.text()).toContain("Confirm with your password");
    // Another browser, in which the same person is logged in: an attacker began this, and sent its address to the victim.
    const victim = rig.browser();
    expect((await victim.ask(page.path)).status).toBe(404);
    expect((await victim.press(page)).status).toBe(404);
    // An address that is opened decides nothing.
    expect((await browser.ask(`${page.path}?decision=allow&name=x&hold=none&scope=own`)).status).toBe(200);
    expect(await rig.liveKeys()).toEqual(live);

    const presses = await Promise.all([browser.press(page), browser.press(page)]);
    expect(presses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 404]);
    expect(await rig.liveKeys()).toHaveLength(live.length + 1);
    expect((await browser.press(page)).status).toBe(404);
    expect((await browser.ask(page.path)).status).toBe(404);
  });

  test("is shown in no frame, also where it is refused or shown again", async () => {
    const browser = rig.browser();
    const page = await browser.open(authorizeUrl(rig, newProof().challenge));
    const refused = await browser.open(authorizeUrl(rig, newProof().challenge, { code_challenge_method: "plain" }));
    const pages = [page.answer, await browser.press(page, "allow", { hosts: "no host!" }), refused.began];
    expect(pages.map(({ status }) => status)).toEqual([200, 400, 400]);
    for (const { headers } of pages) {
      expect(headers.get("x-frame-options")).toBe("DENY");
      expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    }
  });

  test.each(["reader", "approver"] as const)("is not a %s's to give", async (role) => {
    const live = await rig.liveKeys();
    const { cookie } = await rig.join(role);
    const browser = rig.browser(cookie);
    const page = await browser.open(authorizeUrl(rig, newProof().challenge));
    expect(page.html).toContain("Ask an owner of the account");
    expect(page.html).not.toContain('value="allow"');
    expect((await browser.press(page, "allow", { name: "x" })).status).toBe(403);
    expect(await rig.liveKeys()).toEqual(live);
    const back = await browser.follow(await browser.press(page, "deny"));
    expect(back.searchParams.get("error")).toBe("access_denied");
  });

  test("stays open while somebody else of the account begins any number of requests", async () => {
    const { challenge } = newProof();
    const browser = rig.browser();
    const page = await browser.open(authorizeUrl(rig, challenge));
    const { cookie } = await rig.join("reader");
    const reader = rig.browser(cookie);
    const first = await reader.open(authorizeUrl(rig, challenge));
    for (let n = 0; n < OAUTH_INTERACTIONS_PER_ACCOUNT_MAX; n += 1) await reader.ask(authorizeUrl(rig, challenge));
    expect((await reader.ask(first.path)).status).toBe(404);
    const back = await browser.follow(await browser.press(page));
    expect(back.searchParams.get("code")).not.toBeNull();
  });

  test.each([
    ["is removed", 303],
    ["owns the account no more", 403],
  ])("of somebody who %s is worth nothing any more", async (how, status) => {
    const { personId, cookie } = await rig.join("owner");
    const browser = rig.browser(cookie);
    const open = await browser.open(authorizeUrl(rig, newProof().challenge));
    const { tokens } = await connect(rig, {}, cookie);
    const unused = await newCode(rig, {}, cookie);
    expect((await askMcp(rig, tokens.access_token)).status).toBe(200);
    if (how === "is removed") await rig.teamService.remove(rig.engine.owner, personId);
    else await rig.teamService.changeRole(rig.engine.owner, personId, "reader");
    expect((await askMcp(rig, tokens.access_token)).status).toBe(401);
    expect((await refresh(rig, tokens.refresh_token)).json.error).toBe("invalid_grant");
    expect((await exchange(rig, unused.code, unused.verifier)).json.error).toBe("invalid_grant");
    const answer = await browser.press(open);
    const leadsToLogIn = answer.headers.get("location")?.startsWith("/login?") ?? false;
    expect([answer.status, leadsToLogIn]).toEqual([status, status === 303]);
  });
});

test("a person who stops to own the account while they consent connects nothing", async () => {
  await using own = await openRig();
  const { personId, cookie } = await own.join("owner");
  const { oauth } = own.engine.store;
  const real = { ...oauth };
  // The key is there, and the connection is not yet.
  Object.assign(oauth, {
    async put(artifact: OAuthArtifact) {
      if (artifact.kind === "Grant") await own.teamService.changeRole(own.engine.owner, personId, "reader");
      return real.put(artifact);
    },
  });
  const browser = own.browser(cookie);
  const answer = await browser.press(await browser.open(authorizeUrl(own, newProof().challenge)));
  expect([answer.status, (await answer.text()).includes("can no longer connect clients")]).toEqual([403, true]);
  expect(await own.liveKeys()).toEqual([]);
});

describe("a token", () => {
  // On other nodes: nodes.test.ts.
  test("dies with its key, at once", async () => {
    const others = new Set((await rig.liveKeys()).map(({ id }) => id));
    const { tokens } = await connect(rig);
    expect((await askMcp(rig, tokens.access_token)).status).toBe(200);
    const key = (await rig.liveKeys()).find(({ id }) => !others.has(id));
    await rig.engine.services.keyService.revoke(rig.engine.owner, key?.id ?? "");
    expect((await askMcp(rig, tokens.access_token)).status).toBe(401);
    expect((await refresh(rig, tokens.refresh_token)).json.error).toBe("invalid_grant");
  });

  test("is what the limits of its key say: a held call waits for a person", async () => {
    const { tokens } = await connect(rig, { hosts: "api.example.com" });
    const call = async (url: string) => {
      const create = { name: "create", arguments: { url, method: "POST", body: { a: 1 } } };
      return (await askMcp(rig, tokens.access_token, "tools/call", create)).text();
    };
    expect(await call("https://api.example.com/x")).toContain("awaiting_approval");
    expect(await call("https://other.example.com/x")).toContain("forbidden");
  });
});

describe("a client that signs with a key of its own", () => {
  const signed = addSigned(rig);

  test("gets tokens by it, and by each signature once", async () => {
    const { assertion, code } = await signed;
    const { code: given, verifier } = await code();
    const first = await assertion();
    const tokens = await exchange(rig, given, verifier, { client_id: SIGNED_ID, ...first });
    expect(tokens.status).toBe(200);
    expect((await askMcp(rig, tokens.json.access_token)).status).toBe(200);
    const replayed = await refresh(rig, tokens.json.refresh_token, { client_id: SIGNED_ID, ...first });
    expect([replayed.status, replayed.json.error]).toEqual([401, "invalid_client"]);
    const next = await refresh(rig, tokens.json.refresh_token, { client_id: SIGNED_ID, ...(await assertion()) });
    expect(next.status).toBe(200);
    expect(rig.read).toContain("https://signed.example/jwks.json");
  });

  test("gets none without it, or with one for others, for long, or by another algorithm", async () => {
    const { assertion, code } = await signed;
    const { code: given, verifier } = await code();
    const tries = [
      {},
      await assertion({ aud: "https://other.example" }),
      await assertion({ iss: CLIENT_ID, sub: CLIENT_ID }),
      await assertion({ exp: Math.floor(Date.now() / 1_000) - 60 }),
      await assertion({ exp: Math.floor(Date.now() / 1_000) + 90_000 }),
      await assertion({}, { alg: "none" }),
      await assertion({}, { alg: "HS256", kid: "one" }),
    ];
    for (const proof of tries) {
      const { status, json } = await exchange(rig, given, verifier, { client_id: SIGNED_ID, ...proof });
      expect([status >= 400, "access_token" in json]).toEqual([true, false]);
    }
    expect((await exchange(rig, given, verifier, { client_id: SIGNED_ID, ...(await assertion()) })).status).toBe(200);
  });
});

describe("a client that registers itself", () => {
  let open: Rig;
  let isFull = false;
  const wrapStore = wrapping("oauth", (oauth) => ({
    put: async (artifact) => !(isFull && artifact.kind === "Client") && oauth.put(artifact),
  }));
  once(async () => (open = await openRig({ env: { OAUTH_REGISTRATION: "on" }, wrapStore })));

  test("is one like any other, known by where its answers go", async () => {
    const answer = await register(open, {
      client_name: "Registered",
      redirect_uris: [REDIRECT],
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
      scope: "mcp",
      jwks_uri: "http://169.254.169.254/",
    });
    expect(answer.status).toBe(201);
    const client = (await answer.json()) as { client_id: string; jwks_uri?: string };
    expect(client.jwks_uri).toBeUndefined();
    const { code, verifier, page } = await newCodeFor(open, { client_id: client.client_id });
    expect(page.html).toMatch(/<b class="name"><[^>]*>client\.example</);
    const given = await exchange(open, code, verifier, { client_id: client.client_id });
    expect(given.status).toBe(200);
    // It stays as long as it is connected; one that nobody connects is swept.
    await open.engine.store.oauth.prune(new Date(open.engine.clock.now().getTime() + 3 * 86_400_000));
    expect((await refresh(open, given.json.refresh_token, { client_id: client.client_id })).status).toBe(200);
  });

  test("is known by the scheme of an app, not by what that calls a host", async () => {
    const redirect_uri = "com.evil.app://claude.ai/callback";
    const asked = { client_name: "Claude", redirect_uris: [redirect_uri], token_endpoint_auth_method: "none" };
    const { client_id } = (await (await register(open, asked)).json()) as { client_id: string };
    const { html } = await open.browser().open(authorizeUrl(open, newProof().challenge, { client_id, redirect_uri }));
    expect(html).toMatch(/<b class="name"><[^>]*>com\.evil\.app:</);
    expect(html).not.toMatch(/<b class="name"><[^>]*>claude\.ai</);
    // Nobody has connected it in time.
    open.engine.clock.advance(OAUTH_UNUSED_CLIENT_MS);
    const late = await open.browser().open(authorizeUrl(open, newProof().challenge, { client_id, redirect_uri }));
    expect(late.html).toContain("no client with this id");
  });

  test("may name no address that could be somebody else's, and is refused beyond a few a minute", async () => {
    await using limited = await openRig({ env: { OAUTH_REGISTRATION: "on" } });
    const bad = [
      "javascript:alert(1)",
      "http://client.example/cb",
      "https://a@client.example/cb",
      "https://x/#y",
      "data:x",
    ];
    for (const uri of bad) {
      const answer = await register(limited, { redirect_uris: [REDIRECT, uri], token_endpoint_auth_method: "none" });
      expect(answer.status, uri).toBe(400);
    }
    expect((await register(limited, { redirect_uris: [] })).status).toBe(400);
    expect(
      (await register(limited, { redirect_uris: [REDIRECT], token_endpoint_auth_method: "private_key_jwt" })).status,
    ).toBe(400);
    const left = OAUTH_REGISTRATIONS_PER_CLIENT_MAX - bad.length - 2;
    const good = { redirect_uris: [REDIRECT], token_endpoint_auth_method: "none" };
    for (let n = 0; n < left; n += 1) expect((await register(limited, good)).status).toBe(201);
    const refused = await register(limited, good);
    expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([429, true]);
    expect(((await refused.json()) as { error: string }).error).toBe("temporarily_unavailable");
  });

  test("is refused while there are too many, and those that are there go on", async () => {
    const body = { redirect_uris: [REDIRECT], token_endpoint_auth_method: "none" };
    const { client_id } = (await (await register(open, body)).json()) as { client_id: string };
    isFull = true;
    const refused = await register(open, body);
    expect(((await refused.json()) as { error: string }).error).toBe("temporarily_unavailable");
    expect((await open.browser().open(authorizeUrl(open, newProof().challenge, { client_id }))).answer.status).toBe(
      200,
    );
  });

  test("can't while the operator does not allow it", async () => {
    expect((await register(rig, { redirect_uris: [REDIRECT] })).status).toBe(404);
  });
});
