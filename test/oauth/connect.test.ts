import { describe, expect, setSystemTime, test } from "bun:test";
import { resolve } from "node:path";
import {
  DAY_MS,
  MINUTE_MS,
  OAUTH_ACCESS_TOKEN_MS_MAX,
  OAUTH_CODE_MS_MAX,
  OAUTH_CONNECTION_MS_MAX,
  OAUTH_CONSENT_MS_MAX,
} from "../../src/core/limits.ts";
import { openRealServer } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";
import { hiddenIn } from "../support/forms.ts";
import { librariesOf } from "../support/libraries.ts";
import { once } from "../support/shared.ts";
import {
  askMcp,
  authorizeUrl,
  CLIENT_ID,
  connect,
  exchange,
  newCode,
  newCodeFor,
  newProof,
  openRig,
  postForm,
  refresh,
  REDIRECT,
  type Rig,
} from "./rig.ts";

const WELL_KNOWN = [
  "/.well-known/oauth-protected-resource",
  "/.well-known/oauth-protected-resource/mcp",
  "/.well-known/oauth-authorization-server",
];

test("the library is loaded by the first request that needs it, not by the start", async () => {
  const starts = ["main.ts", "app.ts", "app/open.ts"].map((start) => resolve(import.meta.dir, "../../src", start));
  const loadedBy = async (isLazyToo: boolean) =>
    (await Promise.all(starts.map((start) => librariesOf(start, { isLazyToo })))).flat();
  expect(await loadedBy(true)).toContain("oidc-provider");
  const libraries = await loadedBy(false);
  expect(libraries).toContain("elysia");
  expect(libraries).not.toContain("oidc-provider");
});

test("where OAuth is off nothing of it answers, and /mcp asks for a key as ever", async () => {
  await using app = await openRealServer();
  for (const path of [...WELL_KNOWN, "/oauth/authorize", "/oauth/consent/x"]) {
    const answer = await fetch(app.url + path);
    expect(answer.status, path).toBe(404);
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
  }
  for (const path of ["/oauth/token", "/oauth/revoke", "/oauth/register"]) {
    expect((await fetch(app.url + path, { method: "POST" })).status).toBe(404);
  }
  const refused = await fetch(`${app.url}/mcp`, { method: "POST" });
  expect(refused.headers.get("www-authenticate")).toBe(
    'Bearer error="invalid_token", error_description="Use an API key"',
  );
});

describe("where OAuth is on", () => {
  let rig: Rig;
  once(async () => (rig = await openRig()));

  test("a client without a key learns where to log in, and what is there", async () => {
    const refused = await fetch(rig.mcpUrl, { method: "POST" });
    const metadata = `${rig.url}/.well-known/oauth-protected-resource/mcp`;
    expect(refused.status).toBe(401);
    expect(refused.headers.get("www-authenticate")).toBe(`Bearer resource_metadata="${metadata}"`);
    expect((await askMcp(rig, "x".repeat(43))).headers.get("www-authenticate")).toBe(
      `Bearer resource_metadata="${metadata}", error="invalid_token"`,
    );
    const resource = (await (await fetch(metadata)).json()) as object;
    expect(resource).toMatchObject({ resource: rig.mcpUrl, authorization_servers: [rig.url] });
    const server = await fetch(`${rig.url}/.well-known/oauth-authorization-server`);
    expect(server.headers.get("access-control-allow-origin")).toBe("*");
    const described = (await server.json()) as object;
    expect(described).toMatchObject({
      issuer: rig.url,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    });
    expect(described).not.toHaveProperty("registration_endpoint");
    // A key works as ever, and /v1 knows keys alone.
    expect((await askMcp(rig, KEYS.agent)).status).toBe(200);
    expect((await fetch(`${rig.url}/v1/account`)).headers.get("www-authenticate")).toBe("Bearer");
  });

  test("pages of other sites may ask for what is public and for tokens, and for nothing else", async () => {
    await using own = await openRig({ env: { OAUTH_REGISTRATION: "on" } });
    const asked = { method: "OPTIONS", headers: { origin: "https://other.example" } };
    for (const path of [...WELL_KNOWN, "/oauth/token", "/oauth/register"]) {
      const answer = await fetch(own.url + path, asked);
      expect(answer.headers.get("access-control-allow-origin"), path).toBe("*");
    }
    for (const path of ["/oauth/authorize", "/oauth/revoke", "/oauth/consent/x", "/mcp", "/v1/actions", "/login"]) {
      const answer = await fetch(own.url + path, asked);
      expect(answer.headers.get("access-control-allow-origin"), path).toBeNull();
    }
  });

  test("a person connects a client: it gets a key of its own, held as the person has chosen", async () => {
    await using own = await openRig();
    const { challenge, verifier } = newProof();
    const browser = own.browser();
    const page = await browser.open(authorizeUrl(own, challenge));
    for (const words of ["Helpful Client", "ann@example.com", REDIRECT]) {
      expect(page.html).toContain(words);
    }
    expect(page.html).toMatch(/<b class="name"><[^>]*>client\.example</);
    expect(page.html).toContain("a client can call itself by any name");
    expect(page.html).not.toContain("Added to this account");
    expect(page.html).toMatch(/value="writes"[^>]* checked/);
    expect(page.html).toMatch(/name="expires_at"[^>]*value="\d{4}-/);
    expect(page.html).toContain("A connection lasts at most a year");
    const { headers } = page.answer;
    expect(headers.get("content-security-policy")).toContain("form-action 'self' https://client.example;");

    expect(page.html).toMatch(/name="loop_brake"[^>]* checked/);

    const limits = { hosts: "api.example.com", daily_actions: "5", method_GET: "yes", method_POST: "yes" };
    const fields = { ...limits, loop_brake: "yes" };
    const back = await browser.follow(await browser.press(page, "allow", fields));
    expect(back.origin + back.pathname).toBe(REDIRECT);
    expect(back.searchParams.get("state")).toBe("state of the client");
    expect(back.searchParams.get("iss")).toBe(own.url);
    const { status, json } = await exchange(own, back.searchParams.get("code") ?? "", verifier);
    expect({ status, type: json.token_type, seconds: json.expires_in, scope: json.scope }).toEqual({
      status: 200,
      type: "Bearer",
      seconds: 3_600,
      scope: "mcp",
    });
    expect((await askMcp(own, json.access_token)).status).toBe(200);

    const { engine } = own;
    const [key] = await own.liveKeys();
    expect(key).toMatchObject({
      name: "Helpful Client (client.example)",
      role: "agent",
      hold: "writes",
      scope: "own",
      hosts: ["api.example.com"],
      methods: ["GET", "POST"],
      dailyActions: 5,
      createdBy: "user:ann@example.com",
      revokedAt: null,
    });
    expect(key?.lastUsedAt).not.toBeNull();
    const created = await own.call("GET", "/v1/audit?kind=key_created&limit=1");
    expect(created.json.data).toMatchObject([{ detail: { oauth_client: CLIENT_ID, redirect_uri: REDIRECT } }]);
    const [rule] = await engine.services.ruleService.list(engine.owner);
    expect(JSON.stringify(rule)).toContain(key?.id ?? "no key");
    const keysPage = await own.ann.pageOf("/keys");
    expect(keysPage).toContain("Helpful Client (client.example)");
    expect(keysPage).toContain("connected by");
  });

  test("a connection may use the credentials, and manage the actions, that the person has chosen", async () => {
    await using own = await openRig();
    for (const name of ["stripe-live", "github"]) {
      const secret = { kind: "bearer", secret: `secret-of-${name}-0123456789`, hosts: ["api.example.com"] };
      const added = await own.call("POST", "/v1/credentials", JSON.stringify({ name, ...secret }));
      expect(added).toMatchObject({ status: 201 });
    }
    await connect(own, { credential_github: "yes", scope: "account" });
    const [key] = await own.liveKeys();
    expect(key?.scope).toBe("account");
    const all = await own.engine.services.credentialService.list(own.engine.owner);
    const used = all.filter(({ keys }) => keys.includes(key?.id ?? "")).map(({ name }) => name);
    expect(used).toEqual(["github"]);
    // The box that holds loops was not ticked.
    expect(await own.engine.services.ruleService.list(own.engine.owner)).toEqual([]);
  });

  test("what is stored of a connection opens nothing to whoever reads it", async () => {
    const { tokens, code } = await connect(rig);
    await rig.engine.store.probe();
    const file = await Bun.file(`${rig.engine.folder}/outgate.db`).text();
    const log = await Bun.file(`${rig.engine.folder}/outgate.db-wal`).text();
    for (const secret of [tokens.access_token, tokens.refresh_token, code]) {
      expect((file + log).includes(secret)).toBe(false);
    }
    expect(JSON.stringify(rig.lines)).not.toContain(tokens.access_token);
  });

  test("the token works for /mcp alone, an hour, and is renewed", async () => {
    const { tokens } = await connect(rig);
    const other = await fetch(`${rig.url}/v1/account`, { headers: { authorization: `Bearer ${tokens.access_token}` } });
    expect(other.status).toBe(401);
    const renewed = await refresh(rig, tokens.refresh_token);
    expect(renewed.status).toBe(200);
    expect((await askMcp(rig, renewed.json.access_token)).status).toBe(200);
    rig.engine.clock.advance(OAUTH_ACCESS_TOKEN_MS_MAX + 1_000);
    expect((await askMcp(rig, renewed.json.access_token)).status).toBe(401);
  });

  test("a code and a token last by the clock of all nodes, however wrong that of a machine is", async () => {
    await using own = await openRig();
    const [first, second] = [await newCode(own), await newCode(own)];
    const realMs = Date.now();
    try {
      setSystemTime(realMs + OAUTH_CODE_MS_MAX + OAUTH_ACCESS_TOKEN_MS_MAX);
      const { status, json } = await exchange(own, first.code, first.verifier);
      expect(status).toBe(200);
      setSystemTime(realMs - DAY_MS);
      expect((await askMcp(own, json.access_token)).status).toBe(200);
      expect((await refresh(own, json.refresh_token)).status).toBe(200);
      own.engine.clock.advance(OAUTH_CODE_MS_MAX + 1_000);
      expect((await exchange(own, second.code, second.verifier)).json.error).toBe("invalid_grant");
    } finally {
      setSystemTime();
    }
  });

  test("a form with a mistake is shown again, and can be corrected", async () => {
    const { challenge, verifier } = newProof();
    const browser = rig.browser();
    const page = await browser.open(authorizeUrl(rig, challenge));
    const again = await browser.press(page, "allow", { hosts: "not a host!" });
    expect(again.status).toBe(400);
    expect(again.headers.get("content-security-policy")).toContain("form-action 'self' https://client.example;");
    const back = await browser.follow(await browser.press({ path: page.path, html: await again.text() }));
    expect((await exchange(rig, back.searchParams.get("code") ?? "", verifier)).status).toBe(200);
  });

  test("somebody who is not logged in logs in first, and comes back", async () => {
    const read = [...rig.read];
    const address = authorizeUrl(rig, newProof().challenge);
    const answer = await fetch(address, { redirect: "manual" });
    expect(answer.status).toBe(303);
    const { pathname, search } = new URL(address);
    const next = new URLSearchParams({ next: pathname + search });
    expect(answer.headers.get("location")).toBe(`/login?${next.toString()}`);
    expect(rig.read).toEqual(read);
    // Some clients put all that they know into the state.
    const long = authorizeUrl(rig, newProof().challenge, { state: "s".repeat(7_000) });
    const login = await fetch(long);
    expect(hiddenIn(await login.text())["next"]).toBe(long.slice(rig.url.length).replaceAll("&", "&amp;"));
  });

  test.each(["access_token", "refresh_token"] as const)(
    "a client ends its connection by its %s: the key is revoked at once",
    async (token) => {
      const live = await rig.liveKeys();
      const { tokens } = await connect(rig);
      expect((await askMcp(rig, tokens.access_token)).status).toBe(200);
      const revoked = await postForm(rig, "/oauth/revoke", { token: tokens[token], client_id: CLIENT_ID });
      expect(revoked.status).toBe(200);
      expect((await askMcp(rig, tokens.access_token)).status).toBe(401);
      expect(await rig.liveKeys()).toEqual(live);
      expect((await refresh(rig, tokens.refresh_token)).json.error).toBe("invalid_grant");
    },
  );

  test.each([
    ["with an end lasts until then", (now: Date) => new Date(now.getTime() + 2 * DAY_MS).toISOString(), 2 * DAY_MS],
    ["without an end lasts a year", () => "", OAUTH_CONNECTION_MS_MAX],
    ["with an end beyond a year lasts a year", () => "2031-01-01T00:00", OAUTH_CONNECTION_MS_MAX],
  ])("a connection %s, and the list of keys says so", async (_what, endOf, lastsMs) => {
    await using own = await openRig();
    const { clock } = own.engine;
    const end = new Date(clock.now().getTime() + lastsMs);
    const { tokens } = await connect(own, { expires_at: endOf(clock.now()).slice(0, 16) });
    const { data } = (await own.call("GET", "/v1/keys")).json;
    const ends = new Date(String(data.find((key) => key["hold"] === "writes")?.["expires_at"]));
    expect(Math.abs(ends.getTime() - end.getTime())).toBeLessThan(MINUTE_MS);
    clock.advance(lastsMs + MINUTE_MS);
    expect((await askMcp(own, tokens.access_token)).status).toBe(401);
    expect((await refresh(own, tokens.refresh_token)).json.error).toBe("invalid_grant");
  });

  test.each(["a code that nobody used", "a consent whose code nobody fetched"])(
    "%s takes its key with it",
    async (what) => {
      const before = await rig.liveKeys();
      if (what.startsWith("a code")) await newCode(rig);
      else {
        const browser = rig.browser();
        await browser.press(await browser.open(authorizeUrl(rig, newProof().challenge)));
      }
      expect(await rig.liveKeys()).toHaveLength(before.length + 1);
      const { clock, store } = rig.engine;
      await store.oauth.prune(new Date(clock.now().getTime() + OAUTH_CONSENT_MS_MAX + 1_000));
      expect(await rig.liveKeys()).toEqual(before);
    },
  );

  test("behind TLS every cookie is secure, and everything is known by the address that people open", async () => {
    const baseUrl = "https://outgate.example";
    await using own = await openRig({ baseUrl, env: { BASE_URL: baseUrl } });
    const resource = `${baseUrl}/mcp`;
    const described = (await (await fetch(`${own.url}/.well-known/oauth-protected-resource/mcp`)).json()) as object;
    expect(described).toMatchObject({ resource, authorization_servers: [baseUrl] });
    const { back, code, verifier, page } = await newCodeFor(own, { resource });
    const cookies = page.began.headers.getSetCookie();
    expect(cookies.length).toBeGreaterThan(0);
    for (const cookie of cookies) expect(cookie).toMatch(/; secure; httponly$/i);
    expect(back.searchParams.get("iss")).toBe(baseUrl);
    const { json } = await exchange(own, code, verifier);
    expect((await askMcp(own, json.access_token)).status).toBe(200);
  });
});
