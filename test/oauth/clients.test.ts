import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { providerPolicy, publicPolicy } from "../../src/config/target-policy.ts";
import {
  OAUTH_DOCUMENT_CHARS_MAX,
  OAUTH_DOCUMENT_FRESH_MS,
  OAUTH_DOCUMENT_KEPT_MS,
  OAUTH_DOCUMENT_MS_MAX,
  OAUTH_DOCUMENTS_AT_ONCE_MAX,
  OAUTH_DOCUMENTS_KEPT_MAX,
  OAUTH_DOCUMENTS_PER_ACCOUNT_MAX,
  OAUTH_FAILED_DOCUMENT_MS,
} from "../../src/core/limits.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import { createClientDocuments, fetchDocument, isDocumentAddress, isUsableRedirect } from "../../src/oauth/clients.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import { createSender } from "../../src/outbound/send.ts";
import { FakeClock } from "../support/clock.ts";
import { answered as answeredWith } from "../support/factory.ts";
import { CLIENT_ID, DOCUMENT } from "./rig.ts";
import { words } from "../support/words.ts";

/** One test waits for the deadline of a read, which is as long as the usual patience. */
setDefaultTimeout(6 * OAUTH_DOCUMENT_MS_MAX);

/** A document as a host sends it: with 200 as JSON, unless it is told otherwise. */
const answered = (body: string, more: Partial<ReturnType<typeof answeredWith>> = {}): Outcome => ({
  ...answeredWith(200, body),
  headers: typed("application/json"),
  ...more,
});

const typed = (type: string) => JSON.stringify([["content-type", type]]);

const sending = (outcome: Outcome): Sender => ({ send: () => Promise.resolve(outcome) });

const WHOLE = JSON.stringify(DOCUMENT);

const problemOf = (outcome: Outcome) =>
  fetchDocument(sending(outcome), CLIENT_ID).then(
    () => null,
    (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : ""),
  );

const problemOfRead = (read: (id: string) => Promise<unknown>) =>
  read(CLIENT_ID).then(
    () => "",
    (error: unknown) => String(error),
  );

describe("the metadata document of a client", () => {
  test("makes a client with nothing but what we know", async () => {
    const given = { ...DOCUMENT, jwks_uri: "http://10.0.0.1/", scope: "admin", application_type: "web", extra: 1 };
    expect(await fetchDocument(sending(answered(JSON.stringify(given))), CLIENT_ID)).toEqual({
      client_id: CLIENT_ID,
      client_name: "Helpful Client",
      redirect_uris: DOCUMENT.redirect_uris,
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      application_type: "native",
    });
  });

  test.each<[string, Outcome, string]>([
    ["no answer", { kind: "unknown", fault: "timed_out" }, "can't be reached"],
    ["a private address", { kind: "not_sent", fault: "address_private" }, "private address"],
    ["a redirect", answered("", { code: 302, location: "https://x.example/" }), "redirects"],
    ["an error", answered("{}", { code: 404 }), "answers 404"],
    ["half of it", answered("{", { brokenBy: "closed", truncated: true }), "did not answer whole"],
    ["a page", answered('"<html>"'), "no valid client_id"],
    ["no JSON", answered("<html>"), "no valid client_id"],
    ["a long text", answered(JSON.stringify({ ...DOCUMENT, x: "x".repeat(OAUTH_DOCUMENT_CHARS_MAX) })), "more than"],
    ["another client", answered(JSON.stringify({ ...DOCUMENT, client_id: `${CLIENT_ID}2` })), "another client_id"],
    ["no addresses", answered(JSON.stringify({ ...DOCUMENT, redirect_uris: [] })), "no valid client_id"],
    [
      "a secret",
      answered(JSON.stringify({ ...DOCUMENT, token_endpoint_auth_method: "client_secret_post" })),
      "auth_method",
    ],
    ["a file that somebody has put there", answered(WHOLE, { headers: typed("text/plain") }), "content type"],
    ["a type that only begins so", answered(WHOLE, { headers: typed("application/jsonp") }), "content type"],
    ["no type", answered(WHOLE, { headers: null }), "content type"],
    [
      "a script",
      answered(JSON.stringify({ ...DOCUMENT, redirect_uris: ["https://x.example/", "javascript:x"] })),
      "redirect URI",
    ],
    ["a part of it", answered(WHOLE, { code: 206 }), "answers 206"],
    ["its beginning", answered(WHOLE, { truncated: true }), "more than"],
  ])("is refused with %s", async (_what, outcome, problem) => {
    expect(await problemOf(outcome)).toContain(problem);
  });

  test.each(["application/json; charset=utf-8", "Application/JSON", "application/vnd.client+json"])(
    "may be %s",
    async (type) => {
      expect(await problemOf(answered(WHOLE, { headers: typed(type) }))).toBe(null);
    },
  );

  test("may prove who the client is by a key of its own, as ChatGPT does, or do without", async () => {
    const signed = {
      ...DOCUMENT,
      token_endpoint_auth_method: "private_key_jwt",
      token_endpoint_auth_methods_supported: ["none", "private_key_jwt"],
      token_endpoint_auth_signing_alg: "RS256",
    };
    const jwks_uri = "https://client.example/jwks.json";
    const jwks = { keys: [{ kty: "RSA", n: "n", e: "AQAB" }] };
    const made = (given: object, found: object = jwks) => {
      const answer = (url: string) =>
        url === jwks_uri ? answered(JSON.stringify(found), { headers: null }) : answered(JSON.stringify(given));
      return fetchDocument({ send: ({ url }) => Promise.resolve(answer(url)) }, CLIENT_ID);
    };
    const method = { token_endpoint_auth_method: "private_key_jwt", jwks, token_endpoint_auth_signing_alg: "RS256" };
    expect(await made({ ...signed, jwks_uri })).toMatchObject(method);
    expect(await made({ ...signed, jwks_uri }, { no: "keys" }).catch(String)).toContain("JSON Web Key Set");
    expect(await made(signed)).toMatchObject({ token_endpoint_auth_method: "none" });
    for (const none of [
      { ...signed, jwks_uri: "http://client.example/jwks" },
      { ...signed, jwks_uri: "https://a@b.example/x" },
    ]) {
      expect(await made(none)).toMatchObject({ token_endpoint_auth_method: "none" });
    }
    const only = { ...signed, token_endpoint_auth_methods_supported: ["private_key_jwt"] };
    expect(await problemOf(answered(JSON.stringify(only)))).toContain("with a jwks_uri");
    expect(
      await problemOf(answered(JSON.stringify({ ...signed, jwks_uri, token_endpoint_auth_signing_alg: "HS256" }))),
    ).toContain("no valid");
  });

  test("is read from public addresses alone, whatever the settings allow", async () => {
    const sender = createSender(publicPolicy());
    const addresses = [
      "127.0.0.1",
      "10.0.0.1",
      "169.254.169.254",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "localhost",
      "100.64.0.1",
    ];
    for (const host of addresses) {
      const problem = await fetchDocument(sender, `https://${host}/client.json`).catch((error: unknown) =>
        String(error),
      );
      expect(problem, host).toContain("private address");
    }
    sender.close();
  });

  test("leads to no private address by the keys that it names", async () => {
    const guarded = createSender(publicPolicy());
    const jwks_uri = "https://169.254.169.254/latest/meta-data";
    const signed = { ...DOCUMENT, token_endpoint_auth_method: "private_key_jwt", jwks_uri };
    const sender: Sender = {
      send: (request, options) =>
        request.url === CLIENT_ID ? Promise.resolve(answered(JSON.stringify(signed))) : guarded.send(request, options),
    };
    expect(await fetchDocument(sender, CLIENT_ID).catch(String)).toContain("client's keys is a private address");
    guarded.close();
  });

  test("follows no redirect, and neither much nor slow text is waited for", async () => {
    const asked: string[] = [];
    const never = Promise.withResolvers<Response>();
    // Never silent for long, and never done.
    const drips = () =>
      async function* () {
        for (;;) {
          yield " ";
          await Bun.sleep(100);
        }
      };
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch({ url }) {
        const { pathname } = new URL(url);
        asked.push(pathname);
        if (pathname === "/redirect") return Response.redirect("/secret", 302);
        if (pathname === "/slow") return never.promise;
        if (pathname === "/drips") return new Response(drips(), { headers: { "content-type": "application/json" } });
        return new Response(`{"client_id":"${"x".repeat(10_000_000)}"}`, {
          headers: { "content-type": "application/json" },
        });
      },
    });
    const base = `http://127.0.0.1:${server.port}`;
    const sender = createSender(providerPolicy(base, "TEST"));
    const problem = (path: string) => fetchDocument(sender, base + path).catch((error: unknown) => String(error));
    expect(await problem("/redirect")).toContain("redirects");
    expect(await problem("/large")).toMatch(/did not answer whole|more than/);
    const [slow, dripping] = await Promise.all([problem("/slow"), problem("/drips")]);
    expect(slow).toContain("can't be reached");
    expect(dripping).toMatch(/can't be reached|did not answer whole/);
    expect(asked).not.toContain("/secret");
    never.resolve(new Response());
    sender.close();
  });

  test("is kept for a while, and through an outage of its host, but not when it changes", async () => {
    const clock = new FakeClock();
    let outcome: Outcome = answered(JSON.stringify(DOCUMENT));
    let calls = 0;
    const documents = createClientDocuments({
      clock,
      sender: { send: () => ((calls += 1), Promise.resolve(outcome)) },
    });
    const read = (id: string) => documents(id, "acc_one");
    await Promise.all([read(CLIENT_ID), read(CLIENT_ID), read(CLIENT_ID)]);
    outcome = answered("", { code: 503 });
    clock.advance(OAUTH_DOCUMENT_FRESH_MS - 1);
    await read(CLIENT_ID);
    clock.advance(1);
    expect((await documents(CLIENT_ID, null)).client_name).toBe("Helpful Client");
    expect(calls).toBe(1);
    expect((await read(CLIENT_ID)).client_name).toBe("Helpful Client");
    expect((await read(CLIENT_ID)).client_name).toBe("Helpful Client");
    expect(calls).toBe(2);
    clock.advance(OAUTH_DOCUMENT_KEPT_MS - OAUTH_DOCUMENT_FRESH_MS);
    expect(await problemOfRead(read)).toContain("answers 503");
    // A failure is not asked for again at once.
    expect(await problemOfRead(read)).toContain("answers 503");
    expect(calls).toBe(3);
    outcome = answered(JSON.stringify({ ...DOCUMENT, client_name: "Renamed" }));
    clock.advance(OAUTH_FAILED_DOCUMENT_MS);
    expect((await read(CLIENT_ID)).client_name).toBe("Renamed");
    outcome = answered(JSON.stringify({ ...DOCUMENT, redirect_uris: ["javascript:x"] }));
    clock.advance(OAUTH_DOCUMENT_FRESH_MS);
    expect(await problemOfRead(read)).toContain("redirect URI");
  });

  test("is read with few others at a time", async () => {
    const never = new Promise<Outcome>(() => {});
    const documents = createClientDocuments({ clock: new FakeClock(), sender: { send: () => never } });
    let accounts = 0;
    const read = (id: string) => documents(id, `acc_${(accounts += 1)}`);
    const open = Array.from({ length: OAUTH_DOCUMENTS_AT_ONCE_MAX }, (_, n) => read(`https://c${n}.example/c.json`));
    expect(open).toHaveLength(OAUTH_DOCUMENTS_AT_ONCE_MAX);
    expect(await problemOfRead(read)).toContain("Too many documents");
    expect(await problemOfRead((id) => documents(id, null))).toContain("not known here");
  });

  test("is read with fewer others of the same account, so that no account keeps out the rest", async () => {
    const never = new Promise<Outcome>(() => {});
    const send: Sender["send"] = ({ url }) =>
      url.includes("slow") ? never : Promise.resolve(answered(JSON.stringify(DOCUMENT)));
    const read = createClientDocuments({ clock: new FakeClock(), sender: { send } });
    const open = ["a", "b"].map((name) => read(`https://slow.example/${name}`, "acc_one"));
    expect(open).toHaveLength(OAUTH_DOCUMENTS_PER_ACCOUNT_MAX);
    expect(await problemOfRead((id) => read(id, "acc_one"))).toContain("Too many documents");
    expect((await read(CLIENT_ID, "acc_two")).client_name).toBe("Helpful Client");
  });

  test("goes on while others keep all from being read, or are found unusable in any number", async () => {
    const clock = new FakeClock();
    const never = new Promise<Outcome>(() => {});
    const sent: string[] = [];
    const read = createClientDocuments({
      clock,
      sender: {
        send({ url }) {
          sent.push(url);
          if (url.includes("slow")) return never;
          return Promise.resolve(answered(url === CLIENT_ID ? JSON.stringify(DOCUMENT) : "{}"));
        },
      },
    });
    expect((await read(CLIENT_ID, "acc_one")).client_name).toBe("Helpful Client");
    const bad = (n: number) => read(`https://bad.example/${n}`, "acc_one").catch(() => sent.length);
    for (let n = 0; n < OAUTH_DOCUMENTS_KEPT_MAX; n += 1) await bad(n);
    // The first of them is forgotten, and no other.
    const [before, second, first] = [sent.length, await bad(1), await bad(0)];
    expect([second, first]).toEqual([before, before + 1]);
    clock.advance(OAUTH_DOCUMENT_FRESH_MS);
    const open = Array.from({ length: OAUTH_DOCUMENTS_AT_ONCE_MAX }, (_, n) =>
      read(`https://slow.example/${n}`, `acc_${n}`),
    );
    expect(open).toHaveLength(OAUTH_DOCUMENTS_AT_ONCE_MAX);
    expect((await read(CLIENT_ID, "acc_one")).client_name).toBe("Helpful Client");
  });
});

test("the id of a client with a document is an address as URLs are written, with a path", () => {
  expect([CLIENT_ID, "https://client.example:8443/c"].every(isDocumentAddress)).toBe(true);
  const others = [
    ...words(`
      http://client.example/c https://client.example https://client.example/ https://client.example/c#x
      https://a@client.example/c https://CLIENT.example/c https://client.example/a/../c client
      https://client.example:443/c https://client.example/c?x https://:b@client.example/c
    `),
    "",
    `https://client.example/${"x".repeat(3_000)}`,
  ];
  for (const id of others) expect(isDocumentAddress(id), id).toBe(false);
});

test("a redirect URI leads to https, to this machine, or to an app", () => {
  const usable = words(`
    https://claude.ai/api/mcp/auth_callback https://chatgpt.com https://x.example/cb?a=b http://localhost/callback
    http://127.0.0.1:33418/ http://[::1]:1/x cursor://anysphere.cursor/cb com.example.app:/cb
  `);
  for (const uri of usable) expect(isUsableRedirect(uri), uri).toBe(true);
  const others = [
    ...words(`
      http://x.example/cb http://127.0.0.2/cb http://localhost.evil.example/ http://0177.0.0.1/ http://127.1/
      https://a@x.example/cb https://:b@x.example/cb com.example.app: com.example.app:/é https://x.example/cb#x https://X.example/cb https://x.example:443/cb
      javascript:alert(1) JavaScript:alert(1) data:text/html,x vbscript:x file:///etc/passwd about:blank /cb //x
      https://x.example/a/../b http://localhost@evil.example/ ms-msdt:/id itms-services:/x x-apple.systempreferences:x search-ms:query=x intent://x/ mailto:a@x.example
      tel:112 ldap://x.example/ ssh://x.example/ smb://x.example/ jar:https://x.example/ shell:startup chrome://settings
    `),
    "https://exämple.com/",
    "",
    " https://x.example/cb",
    "https://x.example/\tcb",
  ];
  for (const uri of others) expect(isUsableRedirect(uri), uri).toBe(false);
});
