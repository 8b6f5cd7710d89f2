import { describe, expect, test } from "bun:test";
import { OAUTH_CLIENTS_PER_ACCOUNT_MAX } from "../../src/core/limits.ts";
import { anAccount, anAuditQuery, joined } from "../support/factory.ts";
import { outgate } from "../cli/outgate.ts";
import { KEYS } from "../http/stub-server.ts";
import { SESSION_SECRET } from "../http/signed-in.ts";
import { textOf } from "../support/forms.ts";
import {
  askMcp,
  authorizeUrl,
  exchange,
  newCodeFor,
  newProof,
  openRig,
  REDIRECT,
  refresh,
  type Rig,
  type Tokens,
} from "./rig.ts";
import { wrapping } from "../support/engine.ts";
import { once } from "../support/shared.ts";

const WORKFLOWS = { name: "Workflows", redirect_uris: [REDIRECT], type: "confidential" as const };

const PAGE = "/settings/oauth-clients";

interface NewClient {
  readonly id: string;
  readonly secret: string | null;
}

async function added(rig: Rig, body: object = WORKFLOWS): Promise<NewClient> {
  const { status, json } = await rig.call("POST", "/v1/oauth-clients", JSON.stringify(body));
  expect(status).toBe(201);
  return json;
}

/** Tokens for a confidential client that has its secret in the body. */
async function connected(rig: Rig, { id, secret }: NewClient): Promise<Tokens> {
  const { code, verifier } = await newCodeFor(rig, { client_id: id });
  const { status, json } = await exchange(rig, code, verifier, { client_id: id, client_secret: secret ?? "" });
  expect(status).toBe(200);
  return json;
}

const listed = async (rig: Rig) =>
  (await rig.call("GET", "/v1/oauth-clients")).json as unknown as {
    data: readonly Readonly<Record<string, unknown>>[];
  };

describe("a client that an owner adds", () => {
  let rig: Rig;
  once(async () => (rig = await openRig()));

  test("connects with its secret, in the header or in the body, and not without it", async () => {
    const client = await added(rig);
    expect(client.secret).toMatch(/^[0-9a-f]{64}$/);
    const { code, verifier, page } = await newCodeFor(rig, { client_id: client.id });
    expect(page.html).toContain("Workflows");
    // An owner has written the name, and not the client.
    expect(textOf(page.html)).toMatch(/Added to this account 1 Jan 2026 by owner over the API/);
    expect(page.html).not.toContain("a client can call itself by any name");
    expect(page.html).toMatch(/<b class="name"><[^>]*>client\.example</);
    for (const client_secret of ["", "x".repeat(64)]) {
      const refused = await exchange(rig, code, verifier, { client_id: client.id, client_secret });
      expect([refused.status, refused.json.error]).toEqual([401, "invalid_client"]);
    }
    const proven = { client_id: client.id, client_secret: client.secret ?? "" };
    const given = await exchange(rig, code, verifier, proven);
    expect(given.status).toBe(200);
    expect((await askMcp(rig, given.json.access_token)).status).toBe(200);
    const inHeader = await fetch(`${rig.url}/oauth/token`, {
      method: "POST",
      headers: { authorization: `Basic ${btoa(`${client.id}:${client.secret ?? ""}`)}` },
      body: new URLSearchParams({ grant_type: "refresh_token", refresh_token: given.json.refresh_token }),
    });
    expect(inHeader.status).toBe(200);
    expect((await listed(rig)).data).toContainEqual({
      id: client.id,
      ...WORKFLOWS,
      connections: 1,
      created_at: expect.any(String),
      created_by: expect.stringContaining("key:"),
    });
  });

  test("needs PKCE, public or not, and its addresses are exact but for a port on loopback", async () => {
    const local = "http://127.0.0.1/callback";
    const { id, secret } = await added(rig, { ...WORKFLOWS, redirect_uris: [REDIRECT, local], type: "public" });
    expect(secret).toBeNull();
    const refused = await rig.browser().open(authorizeUrl(rig, "", { client_id: id }));
    expect([refused.began.status, refused.began.headers.get("location")]).toEqual([400, null]);
    const other = authorizeUrl(rig, newProof().challenge, { client_id: id, redirect_uri: `${REDIRECT}/` });
    expect((await rig.browser().open(other)).began.status).toBe(400);
    const redirect_uri = "http://127.0.0.1:5000/callback";
    const { code, verifier } = await newCodeFor(rig, { client_id: id, redirect_uri });
    expect((await exchange(rig, code, verifier, { client_id: id, redirect_uri })).status).toBe(200);
  });

  test("can have its answers sent to no address that could be somebody else's", async () => {
    const before = await listed(rig);
    const body = JSON.stringify({ ...WORKFLOWS, redirect_uris: [REDIRECT, "http://client.example/callback"] });
    const { status, json } = await rig.call("POST", "/v1/oauth-clients", body);
    expect([status, JSON.stringify(json)]).toEqual([400, expect.stringContaining("redirect_uris.1")]);
    expect(await listed(rig)).toEqual(before);
  });

  test("is for people of its account alone, also for who changes accounts on the way", async () => {
    const { id } = await added(rig);
    const { store, services } = rig.engine;
    const other = anAccount();
    await store.accounts.create(other, []);
    const { person } = await joined(store, { accountId: other.id, role: "owner" });
    const stranger = { ...rig.engine.owner, accountId: other.id, keyId: null, personId: person.id };
    const { oauth, oauthClients } = services;
    const search = new URL(authorizeUrl(rig, newProof().challenge, { client_id: id })).search;
    const refused = await oauth?.authorize(stranger, search, new Headers());
    expect([refused?.status, refused?.headers.get("location")]).toEqual([400, null]);
    expect(refused?.body).toContain("this account has no client with this id");
    expect(await oauthClients.list(stranger)).toEqual([]);
    expect(await oauthClients.remove(stranger, id).catch(String)).toContain("There is no such client.");

    const begun = await oauth?.authorize(rig.engine.owner, search, new Headers());
    const uid = (begun?.headers.get("location") ?? "").split("/").at(-1) ?? "";
    const cookie = (begun?.headers.getSetCookie() ?? []).map((one) => one.split(";", 1)[0]).join("; ");
    const headers = new Headers({ cookie });
    expect((await oauth?.readConsent(rig.engine.owner, uid, headers))?.clientId).toBe(id);
    for (const [who, request] of [
      [stranger, uid],
      [rig.engine.owner, "another"],
    ] as const) {
      expect(await oauth?.readConsent(who, request, headers).catch(String)).toContain("This request to connect");
    }
    const key = { name: "x", role: "agent" } as const;
    expect(await oauth?.consent(stranger, uid, headers, key, async () => {}).catch(String)).toContain("This request");
    expect(await store.accounts.keys(other.id, 9)).toEqual([]);
  });

  test("that is deleted takes its connections with it, and those of no other", async () => {
    await using own = await openRig();
    const [one, other] = [await added(own), await added(own)];
    const [first, second, kept] = [await connected(own, one), await connected(own, one), await connected(own, other)];
    const unused = await newCodeFor(own, { client_id: one.id });
    expect((await own.call("DELETE", `/v1/oauth-clients/${one.id}`)).status).toBe(204);
    for (const { access_token, refresh_token } of [first, second]) {
      expect((await askMcp(own, access_token)).status).toBe(401);
      const proven = { client_id: one.id, client_secret: one.secret ?? "" };
      expect((await refresh(own, refresh_token, proven)).json.error).toBe("invalid_client");
    }
    const late = { client_id: one.id, client_secret: one.secret ?? "" };
    expect((await exchange(own, unused.code, unused.verifier, late)).json.error).toBe("invalid_client");
    expect((await askMcp(own, kept.access_token)).status).toBe(200);
    const live = await own.liveKeys();
    expect(live).toHaveLength(1);
    expect((await own.call("DELETE", `/v1/oauth-clients/${one.id}`)).status).toBe(404);
    expect((await listed(own)).data.map(({ id, connections }) => [id, connections])).toEqual([[other.id, 1]]);
    const kinds = ["oauth_client_removed", "key_revoked"] as const;
    const { rows } = await own.engine.store.audit.page(anAuditQuery({ accountId: own.engine.owner.accountId, kinds }));
    expect(rows.map(({ kind }) => kind).toSorted()).toEqual([
      "key_revoked",
      "key_revoked",
      "key_revoked",
      "oauth_client_removed",
    ]);
  });

  test("that is deleted ends what was connected while it was", async () => {
    let isRemoved = true;
    const wrapStore = wrapping("oauth", (oauth) => ({
      connections: async (accountId, now) => (isRemoved ? oauth.connections(accountId, now) : []),
      removeClient: async (...args) => oauth.removeClient(...args).finally(() => (isRemoved = true)),
    }));
    await using own = await openRig({ wrapStore });
    const client = await added(own);
    const { access_token } = await connected(own, client);
    expect((await askMcp(own, access_token)).status).toBe(200);
    // Only whoever looks after the client is gone sees the connection.
    isRemoved = false;
    expect((await own.call("DELETE", `/v1/oauth-clients/${client.id}`)).status).toBe(204);
    expect((await askMcp(own, access_token)).status).toBe(401);
  });

  test("gets a new secret, with which it goes on, and the old one is refused", async () => {
    const client = await added(rig);
    const { access_token, refresh_token } = await connected(rig, client);
    const { status, json } = await rig.call("POST", `/v1/oauth-clients/${client.id}/secret`);
    expect([status, json]).toMatchObject([200, { id: client.id, connections: 1 }]);
    const { secret } = json;
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    expect(secret).not.toBe(client.secret ?? "");
    const goOn = (client_secret: string) => refresh(rig, refresh_token, { client_id: client.id, client_secret });
    expect([(await goOn(client.secret ?? "")).status, (await goOn(secret)).status]).toEqual([401, 200]);
    expect((await askMcp(rig, access_token)).status).toBe(200);
    const { json: log } = await rig.call("GET", "/v1/audit?kind=oauth_client_changed");
    expect(log).toMatchObject({ data: [{ subject: client.id, detail: { name: "Workflows" } }] });
  });

  test("gets no secret if it is public, is not known, or belongs to another account", async () => {
    const { id } = await added(rig, { ...WORKFLOWS, type: "public" });
    const asked = async (client: string) => (await rig.call("POST", `/v1/oauth-clients/${client}/secret`)).status;
    expect([await asked(id), await asked("ocl_none")]).toEqual([400, 404]);
    const { oauthClients } = rig.engine.services;
    const other = anAccount();
    await rig.engine.store.accounts.create(other, []);
    const owner = { ...rig.engine.owner, accountId: other.id };
    const theirs = await oauthClients.add(owner, WORKFLOWS);
    expect(await asked(theirs.id)).toBe(404);
  });

  test("is one of few in an account, and what is stored of its secret opens nothing", async () => {
    await using own = await openRig();
    const { secret } = await added(own);
    for (let n = 1; n < OAUTH_CLIENTS_PER_ACCOUNT_MAX; n += 1) await added(own);
    const { status, json } = await own.call("POST", "/v1/oauth-clients", JSON.stringify(WORKFLOWS));
    expect([status, JSON.stringify(json).includes("Delete one first")]).toEqual([400, true]);
    await own.engine.store.probe();
    const files = await Promise.all(
      ["outgate.db", "outgate.db-wal"].map((name) => Bun.file(`${own.engine.folder}/${name}`).text()),
    );
    expect(files.join("")).toContain("oauth_client_added");
    expect(files.join("")).not.toContain(secret ?? "no secret");
    expect(JSON.stringify([own.lines, await listed(own)])).not.toContain(secret ?? "no secret");
  });
});

test("the command line adds, lists and removes clients", async () => {
  await using own = await openRig();
  const say = (...args: readonly string[]) =>
    outgate(["oauth-clients", ...args], {
      terminal: true,
      env: { OUTGATE_URL: own.url, OUTGATE_API_KEY: KEYS.owner },
    });
  expect((await say()).out).toContain("No clients.");
  expect((await say("add", "Workflows")).out).toContain("takes --redirect");
  const made = await say("add", "Workflows", "--redirect", REDIRECT, "--redirect", `${REDIRECT}2`);
  const [, id = "", secret = ""] = /^client id {6}(ocl_\w+)\nclient secret {2}([0-9a-f]{64})\n/.exec(made.out) ?? [];
  expect([made.code, made.out.endsWith("\nThe secret is shown only this once.\n")]).toEqual([0, true]);
  await connected(own, { id, secret });
  const open = await say("add", "Desktop", "--public", "--redirect", "http://127.0.0.1/cb");
  expect([open.code, /^client id {6}ocl_\w+\n$/.test(open.out)]).toEqual([0, true]);
  expect((await say()).out).toMatch(new RegExp(`${id} +confidential +1 +Workflows`));
  const renewed = await say("new-secret", id);
  expect(renewed.out).toMatch(new RegExp(`^client id {6}${id}\nclient secret {2}[0-9a-f]{64}\n`));
  expect(renewed.out).not.toContain(secret);
  expect((await say("remove", id)).out).toBe(`${id} is deleted, and the keys of its connections are revoked.\n`);
  expect((await say("remove", id)).code).not.toBe(0);
  expect((await listed(own)).data.map(({ name }) => name)).toEqual(["Desktop"]);
});

describe("the page of clients", () => {
  const add = async (rig: Rig, fields: Readonly<Record<string, string>>) =>
    rig.ann.send(PAGE, { ...(await rig.ann.hiddenOf(PAGE)), session_secret: SESSION_SECRET, ...fields });

  test("adds a client, shows its secret once, and deletes it", async () => {
    await using own = await openRig();
    expect(await own.ann.pageOf(PAGE)).toContain("No clients yet");
    const wrong = await add(own, { name: "Workflows", redirect_uris: "http://client.example/cb", type: "public" });
    expect(wrong.status).toBe(400);
    expect(await wrong.text()).toContain("A redirect URI must be https");
    const made = await add(own, {
      name: "Workflows",
      redirect_uris: `${REDIRECT}\n${REDIRECT}2`,
      type: "confidential",
    });
    const html = await made.text();
    const [client] = (await listed(own)).data;
    expect(client).toMatchObject({ redirect_uris: [REDIRECT, `${REDIRECT}2`], type: "confidential" });
    expect(html).toContain(String(client?.["id"]));
    const secret = /[0-9a-f]{64}(?=\s*<\/code>)/.exec(html)?.[0] ?? "no secret";
    await connected(own, { id: String(client?.["id"]), secret });
    const page = await own.ann.pageOf(PAGE);
    expect(page).toContain("Workflows");
    expect(page).not.toContain(secret);
    const path = `${PAGE}/${String(client?.["id"])}`;
    expect((await own.browser().ask(`${path}/made`)).status).toBe(404);
    const fields = { ...(await own.ann.hiddenOf(PAGE)), session_secret: SESSION_SECRET };
    expect((await own.ann.send(`${path}/remove`, fields)).status).toBe(303);
    expect((await listed(own)).data).toEqual([]);
  });

  test("says where OAuth is off that no client can log in", async () => {
    await using own = await openRig({ env: { OAUTH: "off" } });
    await added(own);
    expect(await own.ann.pageOf(PAGE)).toContain("OAuth is off on this server");
  });
});
