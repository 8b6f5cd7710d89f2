import { beforeEach, describe, expect, test } from "bun:test";
import { STRANGER } from "../http/real-server.ts";
import { KEYS } from "../http/stub-server.ts";
import { outgate } from "../cli/outgate.ts";
import { fresh, once } from "../support/shared.ts";
import type { Received, Script } from "../support/target.ts";
import { type CredentialRig, openCredentials, SECRET } from "./rig.ts";

/** Answers by path, and knows the credential. */
const service = (received: Received): Response => {
  const { path, headers } = received;
  const authorization = headers.get("authorization") ?? "";
  if (authorization !== `Bearer ${SECRET}`) return new Response(null, { status: 401 });
  if (path === "/v1/echo") {
    return Response.json(
      { sent: authorization, hex: Buffer.from(SECRET).toString("hex") },
      { headers: { etag: SECRET } },
    );
  }
  if (path === "/v1/moved") return Response.redirect(`https://elsewhere.example/?t=${SECRET}`, 302);
  if (path === "/v1/long") return new Response("x".repeat(4_090) + SECRET + "y".repeat(9_000));
  if (path === "/v1/packed") return new Response(Bun.gzipSync(SECRET), { headers: { "content-encoding": "gzip" } });
  if (path === "/v1/token") return Response.json({ token: "ghp_16C7e42F292c6912E7710c838347Ae178B4a" });
  return Response.json({ ok: true }, { headers: { "x-own": "secret-of-a-header" } });
};

let rig: CredentialRig;

async function open(): Promise<CredentialRig> {
  rig = await openCredentials(service satisfies Script);
  await rig.add({ paths: ["/v1"] });
  return rig;
}

const at = (path: string) => new URL(path, rig.target.url).href;

const tried = (path: string, key?: string, name = "stripe-live") =>
  rig.call("POST", `/v1/credentials/${name}/test`, { url: at(path) }, key);

describe("an owner tries a credential with a GET", () => {
  fresh(open);

  test("and sees status, headers and body", async () => {
    const { status, json } = await tried("/v1/charges?limit=1");
    expect(status).toBe(200);
    expect(json).toMatchObject({ status: 200, error: null, body: '{"ok":true}', truncated: false });
    expect(json["headers"]).toMatchObject({ "content-type": "application/json;charset=utf-8", "x-own": "••••" });
    expect(rig.target.received).toMatchObject([{ method: "GET", path: "/v1/charges?limit=1", body: "" }]);
  });

  test("and it is audited as a try, with the note of an echo", async () => {
    await tried("/v1/echo");
    const { json } = await rig.call("GET", "/v1/audit?limit=2");
    expect(json.data).toMatchObject([
      { kind: "credential_echoed", detail: { name: "stripe-live", host: rig.host } },
      { kind: "credential_tested", actor: "key:owner", detail: { name: "stripe-live", host: rig.host, method: "GET" } },
    ]);
    const shown = await rig.call("GET", "/v1/credentials/stripe-live");
    expect(shown.json).toMatchObject({ echoed_by: [rig.host], last_used_at: expect.any(String) });
    expect((await rig.call("GET", "/v1/actions")).json.data).toEqual([]);
  });

  test("on the command line, where it fails with the status", async () => {
    const say = (path: string) =>
      outgate(["credentials", "test", "stripe-live", at(path)], {
        terminal: true,
        env: { OUTGATE_URL: rig.app.url, OUTGATE_API_KEY: KEYS.owner },
      });
    const found = await say("/v1/charges");
    expect([found.code, found.out]).toEqual([0, expect.stringMatching(/^Status 200\n[^]*\n\n\{"ok":true\}\n$/)]);
    rig.app.engine.clock.advance(1_000);
    await rig.call("PATCH", "/v1/credentials/stripe-live", { secret: "another-secret-0815" });
    const refused = await say("/v1/charges");
    expect([refused.code === 0, refused.out.split("\n")[0]]).toEqual([false, "The target answered with status 401."]);
  });
});

describe("nothing is sent", () => {
  fresh(open);

  test("where GET is no method of it, or the query names another one", async () => {
    await rig.call("PATCH", "/v1/credentials/stripe-live", { methods: ["GET"] });
    expect((await tried("/v1/charges?_method=DELETE")).status).toBe(403);
    await rig.call("PATCH", "/v1/credentials/stripe-live", { methods: ["POST"] });
    expect((await tried("/v1/charges")).status).toBe(403);
    expect(rig.target.received).toHaveLength(0);
  });

  test("for a key whose hold needs approval for it, also where only the query names a write", async () => {
    const keyWith = async (hold: string) =>
      (await rig.call("POST", "/v1/keys", { name: "x", role: "owner", hold })).json.key;
    const writes = await keyWith("writes");
    expect((await tried("/v1/charges?_method=DELETE", writes)).status).toBe(403);
    expect((await tried("/v1/charges", await keyWith("all"))).status).toBe(403);
    expect(rig.target.received).toHaveLength(0);
    expect((await tried("/v1/charges", writes)).status).toBe(200);
  });

  test("with one that is disabled, has another name or is of another account", async () => {
    expect((await tried("/v1/charges", undefined, "other")).status).toBe(404);
    expect((await tried("/v1/charges", STRANGER)).status).toBe(404);
    await rig.call("PATCH", "/v1/credentials/stripe-live", { enabled: false });
    const { status, text } = await tried("/v1/charges");
    expect([status, text]).toEqual([403, expect.stringContaining("is disabled")]);
    expect(rig.target.received).toHaveLength(0);
  });

  test("while calls to the host are paused", async () => {
    await rig.call("POST", "/v1/pauses", { host: rig.host });
    expect((await tried("/v1/charges")).status).toBe(403);
    expect(rig.target.received).toHaveLength(0);
  });

  test("for a second one within a second", async () => {
    await tried("/v1/charges");
    expect((await tried("/v1/charges")).status).toBe(429);
    rig.app.engine.clock.advance(1_000);
    expect((await tried("/v1/charges")).status).toBe(200);
    expect(rig.target.received).toHaveLength(2);
  });
});

describe("a try", () => {
  once(open);
  // One a second.
  beforeEach(() => rig.app.engine.clock.advance(1_000));

  test.each([
    ["an echo of it in any form", "/v1/echo", { status: 200, body: '{"sent":"••••","hex":"••••"}' }],
    ["an answer that can't be searched", "/v1/packed", { body: "withheld: it may contain the credential" }],
    ["another secret", "/v1/token", { body: '{"token":"••••(token,40-chars,…8B4a)"}' }],
    ["a long body", "/v1/long", { truncated: true, body: `${"x".repeat(4_090)}••••yy` }],
    [
      "a redirect, which is not followed",
      "/v1/moved",
      { status: 302, error: "The target answered with a redirect (302); redirects are never followed." },
    ],
  ])("is shown with what is secret masked: %s", async (_, path, expected) => {
    const sent = rig.target.received.length;
    const { json, text } = await tried(path);
    expect(json).toMatchObject(expected);
    expect(text).not.toContain(SECRET.slice(0, 8));
    expect(rig.target.received).toHaveLength(sent + 1);
  });

  test.each([
    ["outside of the path", "/v2/charges", "may go only to"],
    ["behind dots", "/v1/%2e%2e%2fadmin", "may go only to"],
    ["to another port", "http://127.0.0.1:9/v1", "may go only to"],
    ["to an address that calls may not go to", "http://169.254.169.254/v1", "never allowed"],
    ["to what is no URL", "ftp://127.0.0.1/v1", "http"],
  ])("is not sent %s", async (_, path, message) => {
    const sent = rig.target.received.length;
    const { status, text } = await tried(path);
    expect([status === 403 || status === 400, text]).toEqual([true, expect.stringContaining(message)]);
    expect(rig.target.received).toHaveLength(sent);
  });
});
