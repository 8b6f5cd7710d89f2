import { createHash, randomBytes } from "node:crypto";
import { agentRoutes } from "../../src/app/http.ts";
import type { MemberRole } from "../../src/core/roles.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import { openRealServer, type RealServerOptions } from "../http/real-server.ts";
import { SESSION_SECRET, signedIn } from "../http/signed-in.ts";
import { answered } from "../support/factory.ts";
import { hiddenIn } from "../support/forms.ts";
import { freePort } from "../support/free-port.ts";

/** The id of a client that has a metadata document, and where its answers go. */
export const CLIENT_ID = "https://client.example/oauth/client.json";
export const REDIRECT = "https://client.example/callback";

export const DOCUMENT = {
  client_id: CLIENT_ID,
  client_name: "Helpful Client",
  redirect_uris: [REDIRECT, "http://127.0.0.1/callback"],
  token_endpoint_auth_method: "none",
};

export type Rig = Awaited<ReturnType<typeof openRig>>;

/** The real server with OAuth and /mcp, and a person who owns the account. Documents of clients come from `documents`. */
export async function openRig(options: RealServerOptions = {}) {
  const port = await freePort();
  const documents = new Map<string, unknown>([[CLIENT_ID, DOCUMENT]]);
  const read: string[] = [];
  const sender: Sender = {
    send: ({ url }): Promise<Outcome> => {
      read.push(url);
      const found = documents.get(url);
      if (found === undefined) return Promise.resolve({ kind: "not_sent", fault: "refused" });
      const headers = JSON.stringify([["content-type", "application/json"]]);
      return Promise.resolve({ ...answered(200, JSON.stringify(found)), headers });
    },
  };
  const app = await openRealServer({
    ...options,
    port,
    env: { OAUTH: "on", ...options.env },
    sender,
    routesOf: (engine) => [agentRoutes(engine.app, engine.services, new AbortController().signal)],
  });
  const ann = await signedIn(app);
  const { invitationService } = app.engine.services;
  let joined = 0;
  return {
    ...app,
    documents,
    read,
    sender,
    ann,
    mcpUrl: `${app.url}/mcp`,
    browser: (cookie = ann.cookie) => new Browser(app, cookie),
    /** Somebody else of the account, logged in. */
    async join(role: MemberRole) {
      const address = `${role}-${(joined += 1)}@example.com`;
      const { link } = await invitationService.invite(app.engine.owner, address, role);
      const source = { client: "", deviceToken: null, sessionSecret: SESSION_SECRET, browser: null };
      const token = link.slice(link.lastIndexOf("/") + 1);
      const { person, sessionToken } = await invitationService.joinByPassword(token, "a password of somebody", source);
      return { personId: person.caller.personId ?? "", cookie: `outgate_session=${sessionToken}` };
    },
    /** The keys of connections that have not ended; they alone have a hold here. */
    liveKeys: async () =>
      (await app.engine.store.accounts.keys(app.engine.owner.accountId, 99)).filter(
        ({ hold, revokedAt }) => hold !== "none" && revokedAt === null,
      ),
  };
}

/** The cookies of one browser, in which somebody is logged in. */
class Browser {
  readonly #app: { readonly url: string; readonly origin: string };
  readonly #jar: Map<string, { readonly value: string; readonly path: string }>;

  constructor(app: { readonly url: string; readonly origin: string }, cookie: string) {
    this.#app = app;
    const [name = "", value = ""] = cookie.split("=");
    this.#jar = new Map([[name, { value, path: "/" }]]);
  }

  async ask(address: string, init: RequestInit = {}): Promise<Response> {
    const url = new URL(address, this.#app.url);
    const fits = [...this.#jar].filter(([, { path }]) => url.pathname.startsWith(path));
    const cookie = fits.map(([name, { value }]) => `${name.split(" ")[0] ?? ""}=${value}`).join("; ");
    const answer = await fetch(url, { redirect: "manual", ...init, headers: { cookie, ...Object(init.headers) } });
    for (const set of answer.headers.getSetCookie()) {
      const [name = "", value = ""] = (set.split(";", 1)[0] ?? "").split("=");
      const path = /; *path=([^;]*)/i.exec(set)?.[1] ?? "/";
      if (/expires=Thu, 01 Jan 1970/i.test(set)) this.#jar.delete(`${name} ${path}`);
      else this.#jar.set(`${name} ${path}`, { value, path });
    }
    return answer;
  }

  /** Opens the page that a client sends its person to; its address is where the form is sent. */
  async open(address: string | URL) {
    const began = await this.ask(String(address));
    const path = new URL(began.headers.get("location") ?? String(address), this.#app.url).pathname;
    const answer = began.status === 303 && path.startsWith("/oauth/consent/") ? await this.ask(path) : began;
    return { began, path, answer, html: await answer.clone().text() };
  }

  /** Sends the form of a consent page, with what it has filled in. Returns the answer to the form. */
  async press(
    { path, html }: { readonly path: string; readonly html: string },
    decision: "allow" | "deny" = "allow",
    fields: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const name = /name="name"[^>]*value="([^"]*)"/.exec(html)?.[1] ?? "";
    const filled = { name, hold: "writes", scope: "own", decision, session_secret: SESSION_SECRET };
    return this.ask(path, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", origin: this.#app.origin, ...headers },
      body: new URLSearchParams({ ...hiddenIn(html), ...filled, ...fields }).toString(),
    });
  }

  /** Follows our own redirects until one leads elsewhere. */
  async follow(answer: Response): Promise<URL> {
    for (let hops = 0, last = answer; hops < 5; hops += 1) {
      const next = new URL(last.headers.get("location") ?? "", this.#app.url);
      if (next.origin !== new URL(this.#app.url).origin) return next;
      last = await this.ask(next.href);
    }
    throw new Error("The redirects lead to no client.");
  }
}

/** What a client sends that registers itself. */
export function register(rig: Rig, body: object): Promise<Response> {
  return fetch(`${rig.url}/oauth/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** A proof key for one login. */
export function newProof() {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}

/** What a client asks for, with changes; an empty text leaves one out. */
export function authorizeUrl(rig: Rig, challenge: string, changes: Readonly<Record<string, string>> = {}): string {
  const all = {
    response_type: "code",
    client_id: CLIENT_ID,
    redirect_uri: REDIRECT,
    code_challenge: challenge,
    code_challenge_method: "S256",
    state: "state of the client",
    resource: rig.mcpUrl,
    ...changes,
  };
  const given = Object.entries(all).filter(([, value]) => value !== "");
  return `${rig.url}/oauth/authorize?${new URLSearchParams(given).toString()}`;
}

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly scope: string;
  readonly error?: string;
  readonly error_description?: string;
}

export async function postForm(rig: Rig, path: string, fields: Readonly<Record<string, string>>) {
  const response = await fetch(rig.url + path, { method: "POST", body: new URLSearchParams(fields) });
  const text = await response.text();
  // Safe: what tests read of it.
  return { status: response.status, headers: response.headers, json: JSON.parse(text === "" ? "{}" : text) as Tokens };
}

export const exchange = (rig: Rig, code: string, verifier: string, changes: Readonly<Record<string, string>> = {}) =>
  postForm(rig, "/oauth/token", {
    grant_type: "authorization_code",
    client_id: CLIENT_ID,
    code,
    code_verifier: verifier,
    redirect_uri: REDIRECT,
    ...changes,
  });

export const refresh = (rig: Rig, token: string, changes: Readonly<Record<string, string>> = {}) =>
  postForm(rig, "/oauth/token", {
    grant_type: "refresh_token",
    client_id: CLIENT_ID,
    refresh_token: token,
    ...changes,
  });

/** A code, as a client gets it after its person has consented. */
export async function newCode(
  rig: Rig,
  fields: Readonly<Record<string, string>> = {},
  cookie = rig.ann.cookie,
  changes: Readonly<Record<string, string>> = {},
) {
  const proof = newProof();
  const browser = rig.browser(cookie);
  const page = await browser.open(authorizeUrl(rig, proof.challenge, changes));
  const back = await browser.follow(await browser.press(page, "allow", fields));
  return { ...proof, back, code: back.searchParams.get("code") ?? "", browser, page };
}

/** The same for another client, or with another address. */
export const newCodeFor = (rig: Rig, changes: Readonly<Record<string, string>>) => newCode(rig, {}, undefined, changes);

/** A connection with its tokens. */
export async function connect(rig: Rig, fields: Readonly<Record<string, string>> = {}, cookie = rig.ann.cookie) {
  const { code, verifier } = await newCode(rig, fields, cookie);
  const { json } = await exchange(rig, code, verifier);
  return { tokens: json, code, verifier };
}

/** The id of a client that proves by a key of its own who it is. */
export const SIGNED_ID = "https://signed.example/client.json";

const SIGNED_KEYS = "https://signed.example/jwks.json";

const ALGORITHM = {
  name: "RSASSA-PKCS1-v1_5",
  hash: "SHA-256",
  modulusLength: 2_048,
  publicExponent: new Uint8Array([1, 0, 1]),
};

/** Lets a client be known that signs, and returns how it signs and gets codes. */
export async function addSigned(rig: Rig) {
  const { publicKey, privateKey } = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const key = { ...(await crypto.subtle.exportKey("jwk", publicKey)), kid: "one", use: "sig" };
  rig.documents.set(SIGNED_KEYS, { keys: [key] });
  const method = { token_endpoint_auth_method: "private_key_jwt", token_endpoint_auth_signing_alg: "RS256" };
  rig.documents.set(SIGNED_ID, { ...DOCUMENT, client_id: SIGNED_ID, ...method, jwks_uri: SIGNED_KEYS });
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return {
    assertion: async (changes: object = {}, header: object = { alg: "RS256", kid: "one" }) => {
      const exp = Math.floor(Date.now() / 1_000) + 300;
      const claims = { iss: SIGNED_ID, sub: SIGNED_ID, aud: rig.url, jti: crypto.randomUUID(), exp, ...changes };
      const text = `${encoded(header)}.${encoded(claims)}`;
      const signature = await crypto.subtle.sign(ALGORITHM.name, privateKey, Buffer.from(text));
      return {
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        client_assertion: `${text}.${Buffer.from(signature).toString("base64url")}`,
      };
    },
    code: () => newCodeFor(rig, { client_id: SIGNED_ID }),
  };
}

/** What /mcp answers, by default to a list of its tools. */
export async function askMcp(rig: Rig, token: string, method = "tools/list", params: object = {}): Promise<Response> {
  return fetch(rig.mcpUrl, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-06-18",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
}
