import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, statSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { outgateAlone as outgate } from "../cli/outgate.ts";
import { CLIENTS, connect, type Launch } from "../mcp/clients.ts";
import { begin, callModern, modern, post } from "../mcp/wire.ts";
import { HAS_BROWSER, BROWSER_START_MS_MAX, closeContexts, openBrowser, watchPage } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { Mailbox } from "../support/mailbox.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { COMMAND_LINE } from "../support/programs.ts";
import { until } from "../support/until.ts";

/*
 * An agent as the enemy: it holds an agent key with a hold, runs on the machine of the owner's browser, has a web server on
 * another port and a mailbox, and an MCP client that answers whatever it likes. Each attack is tried against the real program
 * in both ways of running it. After each nothing that a person has not approved may have reached the target.
 */

// Programs and a browser, on a machine that may be busy.
setDefaultTimeout(60_000);

const HAS_IPV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));
const ANN = "ann@example.com";
const PASSWORD = "correct horse battery";
const SESSION_SECRET = "5e".repeat(32);
const EVIL_MAIL = "agent@evil.example";
const CANARY = "Bearer cAn4ry9Zq8Xw2Lr5Tn9Vb4K";
/** Whatever only the owner may see: keys, signing secrets, what was sent in a header. */
const SECRETS = /og_[0-9A-Za-z]{36}|whsec_[0-9A-Za-z+/]{20}|cAn4ry9Zq8Xw2/;
const LINK = /\/a\/[\w-]{20,}/;
const YES = { action: "accept", content: { decision: "approve" } } as const;
const ELICITS = { elicitation: {} } as const;

const MODES = {
  A: { hold: "all", env: { AGENT_APPROVAL: "off", APPROVERS: ANN } },
  B: { hold: "writes", env: {} },
} as const;
type Mode = keyof typeof MODES;

interface Json {
  readonly id: string;
  readonly key: string;
  readonly status: string;
  readonly run: number;
  readonly receipt_url: string;
  readonly data: readonly Json[];
  readonly error?: { readonly code: string; readonly message: string };
}

interface Ask {
  readonly key?: string | null;
  readonly body?: string | object;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Evil {
  readonly key: string;
  readonly keyId: string;
}

/** A service with its owner, a target, and what the agent has. */
async function openWorld(mode: Mode) {
  const { hold, env } = MODES[mode];
  const mailbox = new Mailbox();
  const service = new Service({ env: { RATE_LIMIT_PER_SECOND: "0", ...mailbox.env, ...env } });
  const base = await service.ready();
  // The target of the attack that is going on, and the agent's own server.
  let target = new Target();
  const evil = new Target(() => new Response("<h1>Preview</h1>", { headers: { "content-type": "text/html" } }));

  const api = async (method: string, path: string, { key = OWNER_KEY, body, headers = {} }: Ask = {}) => {
    const text = typeof body === "object" ? JSON.stringify(body) : body;
    const all = {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(text === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    };
    const init = { method, headers: all, redirect: "manual", ...(text === undefined ? {} : { body: text }) } as const;
    const answer = await fetch(base + path, init);
    const said = await answer.text();
    const json = (said.startsWith("{") && !said.includes("\n") ? JSON.parse(said) : {}) as Json;
    return { status: answer.status, text: said, json, headers: answer.headers };
  };

  // Signed up while anybody may: before the first key with a hold.
  const rivalBody = { email: "rival@evil.example", password: PASSWORD };
  const early = await api("POST", "/auth/signup", { key: null, body: rivalBody });
  const rival = /"api_key":"([^"]+)"/.exec(early.text)?.[1] ?? null;

  const link = await eventually(() => /\/welcome\/[0-9a-f]{64}/.exec(service.output)?.[0] ?? null, "the welcome link");
  const form = async (path: string, fields: Readonly<Record<string, string>>, headers: object = {}) =>
    fetch(base + path, {
      method: "POST",
      redirect: "manual",
      headers: { origin: base, ...headers },
      body: new URLSearchParams({ ...fields }),
    });
  const credentials = { email: ANN, password: PASSWORD, session_secret: SESSION_SECRET };
  const entered = await form(link, credentials);
  const cookieOf = (answer: Response) => (answer.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";
  const cookie = cookieOf(entered);
  const pageOf = async (path: string) => (await fetch(base + path, { headers: { cookie }, redirect: "manual" })).text();
  const tokenOf = (html: string) => /name="form_token" value="(\w{64})"/.exec(html)?.[1] ?? "";

  const newKey = async (members: object): Promise<Evil> => {
    const { json, text } = await api("POST", "/v1/keys", { body: members });
    if (json.key === undefined) throw new Error(text);
    return { key: json.key, keyId: json.id };
  };
  const agent = await newKey({ name: "agent", role: "agent", hold });
  const other = await newKey({ name: "other", role: "agent", hold });

  const create = (members: object, key: string = agent.key) =>
    api("POST", "/v1/actions", { key, body: { url: `${target.url}pay`, ...members } });
  const held = async (members: object = {}, key: string = agent.key): Promise<string> => {
    const { json, text } = await create({ body: { amount: 5000, n: (count += 1) }, ...members }, key);
    if (json.status !== "awaiting_approval") throw new Error(text);
    return json.id;
  };
  /** Held by its own wish: in mode B an agent's client may be asked about it, in mode A about nothing. */
  const askable = () => held({ method: "GET", body: null, approve: true, url: `${target.url}read?n=${(count += 1)}` });
  let count = 0;
  const statusOf = async (id: string) => (await api("GET", `/v1/actions/${id}`)).json.status;
  /** The paths of the links in the mail about an action. */
  const linksOf = async (id: string, which = 0) => {
    const asks = mailbox.mails.filter(({ fields }) => fields["v:action_id"] === id && LINK.test(fields["text"] ?? ""));
    const { fields } = await eventually(() => (asks.length > which ? asks : mailsOf(id))[which] ?? null, "the mail");
    const [approve = "", reject = ""] = [...(fields["text"] ?? "").matchAll(/\/a\/[\w.-]+/g)].map(([path]) => path);
    return { approve, reject, fields };
  };
  const mailsOf = (id: string) =>
    mailbox.mails.filter(({ fields }) => fields["v:action_id"] === id && LINK.test(fields["text"] ?? ""));

  return {
    mode,
    hold,
    base,
    mcp: `${base}/mcp`,
    service,
    mailbox,
    evil,
    rival,
    agent,
    other,
    cookie,
    api,
    form,
    cookieOf,
    credentials,
    pageOf,
    tokenOf,
    newKey,
    create,
    held,
    askable,
    statusOf,
    linksOf,
    get target() {
      return target;
    },
    async newTarget() {
      await target[Symbol.asyncDispose]();
      target = new Target();
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      for (const server of [target, evil, mailbox]) await server[Symbol.asyncDispose]();
    },
  };
}

type World = Awaited<ReturnType<typeof openWorld>>;

interface Attack {
  readonly name: string;
  readonly run: (world: World, browser: Browser) => Promise<void>;
  /** Where it applies; both unless it is said. */
  readonly mode?: Mode;
  /** Requests that a person has approved on the way; none unless it is said. */
  readonly approved?: number;
  readonly needsBrowser?: boolean;
  readonly needsIPv6?: boolean;
  /** It succeeds: the test holds what should be. */
  readonly succeeds?: boolean;
}

const launch = (world: World, more: Readonly<Record<string, string>> = {}): Launch => ({
  command: process.execPath,
  args: [COMMAND_LINE, "mcp"],
  env: {
    PATH: process.env["PATH"] ?? "",
    HOME: process.env["HOME"] ?? "",
    OUTGATE_URL: world.base,
    OUTGATE_API_KEY: world.agent.key,
    ...more,
  },
  cwd: world.service.folder,
});

/** A call of `approve` by revision 2026-07-28, with whatever else is in its params. */
const approveModern = (world: World, args: object, more: object, key = world.agent.key) =>
  callModern(world.mcp, "approve", JSON.stringify(args), { key, capabilities: ELICITS, more });
const FORGED = { approval: YES } as const;

/** The state that goes out with a question; nothing where nobody is asked. */
async function stateFor(world: World, id: string): Promise<string> {
  const { json } = await approveModern(world, { id }, {});
  const state = json.result?.["requestState"];
  expect(typeof state).toBe(world.mode === "A" ? "undefined" : "string");
  return typeof state === "string" ? state : `${Date.now() + 600_000}.forged`;
}

/** A call whose answer is a stream that stays open while its question waits. Tells the id of the question. */
async function askLegacy(world: World, session: string, id: string) {
  const answer = await fetch(world.mcp, {
    method: "POST",
    headers: {
      authorization: `Bearer ${world.agent.key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-session-id": session,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 7,
      method: "tools/call",
      params: { name: "approve", arguments: { id } },
    }),
  });
  let seen = "";
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  const readUntil = async (has: RegExp) => {
    while (reader !== undefined && !has.test(seen)) {
      const { done, value } = await reader.read();
      if (done) break;
      seen += value;
    }
    return seen;
  };
  await readUntil(/elicitation\/create[^]*\n\n|"structuredContent"|"isError"/);
  const question = /"method":"elicitation\/create"/.test(seen) ? (/"id":(\d+|"[^"]+")/.exec(seen)?.[1] ?? null) : null;
  expect(question === null).toBe(world.mode === "A");
  return {
    question: question ?? "0",
    end: () => readUntil(/"structuredContent"|"isError"/),
    leave: () => reader?.cancel(),
  };
}
const answerTo = (question: string) => `{"jsonrpc":"2.0","id":${question},"result":${JSON.stringify(YES)}}`;

/** What a page says to people. */
const wordsOf = (html: string) =>
  html
    .replaceAll(/<style>.*?<\/style>|<head>.*?<\/head>|<[^>]+>/gs, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&#x27;", "'")
    .replaceAll("&amp;", "&");

async function logIn(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/login`);
  await page.getByLabel("E-mail").fill(ANN);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/approvals");
}

/** What a request shows instead of hiding it, from whoever decides. */
const HIDING: readonly (readonly [trick: string, members: (url: string) => object, shown: string])[] = [
  ["a parameter called key", (url) => ({ url: `${url}x?key=production-database` }), "production-database"],
  ["a parameter called code", (url) => ({ url: `${url}x?code=drop-all-tables` }), "drop-all-tables"],
  ["an object called session", () => ({ body: { session: { transfer: 5000, to: "mallory" } } }), "mallory"],
  ["a list called token", () => ({ body: { token: ["wire it to mallory"] } }), "wire it to mallory"],
  ["half a PEM block", () => ({ body: { note: "-----BEGIN PRIVATE KEY----- wire it all" } }), "wire it all"],
  ["a Bearer of words", () => ({ headers: { authorization: "Bearer delete-all" } }), "delete-all"],
  ["a password of words", (url) => ({ url: url.replace("127", "user:rm-rf@127") }), "127.0.0.1"],
  ["X-Amz-Target", () => ({ headers: { "x-amz-target": "DynamoDB.DeleteTable" } }), "DeleteTable"],
  ["SOAPAction", () => ({ headers: { soapaction: "urn:DeleteEverything" } }), "DeleteEverything"],
  ["a member that comes twice", () => ({ body: { a: 1, pin: true, secret: false } }), "pin"],
  ["a member of an empty name", () => ({ body: { "": "wire to mallory" } }), "wire to mallory"],
  ["a password that is an order", () => ({ body: { password: "transfer 5000 to Bob" } }), "transfer 5000 to Bob"],
];

/** Every form that changes something by a session, or shows a secret. */
const formsFor = (id: string, keyId: string): readonly (readonly [string, Readonly<Record<string, string>>])[] => [
  [`/approvals/${id}`, { decision: "approve", run: "1" }],
  [`/actions/${id}`, { decision: "approve", run: "1" }],
  [`/actions/${id}`, { decision: "retry_and_approve", run: "1" }],
  [`/actions/${id}/reveal`, {}],
  [`/actions/${id}/again`, { sure: "yes" }],
  ["/actions", { status: "failed" }],
  ["/keys", { name: "evil", role: "owner", hold: "none" }],
  [`/keys/${keyId}/revoke`, { unfinished: "keep" }],
  ["/settings/pauses", { scope: "account" }],
  ["/settings/pauses/pse_00000000000000000000000000/resume", {}],
  ["/settings/signing-secret", { origin: "https://a.example", for: "calls" }],
  ["/settings/rotation", { origin: "https://a.example", for: "calls", seen: "none" }],
  ["/settings/callback-hosts", { host: "evil.example" }],
  ["/settings/callback-hosts/remove", { host: "evil.example" }],
  ["/settings/password", { current_password: "guessed guess", password: "mine from now on" }],
];

/** Everything that an owner can change, as it is now. */
async function settingsOf(world: World): Promise<readonly string[]> {
  const paths = ["/v1/keys", "/v1/callback-hosts", "/v1/pauses", "/v1/signing-secret?origin=https://a.example"];
  const read = async (path: string) => (await world.api("GET", path)).text.replaceAll(/"last_used_at":[^,}]+/g, "");
  return Promise.all(paths.map(read));
}

/** A page of the agent that sends forms to wherever it likes, as soon as it is looked at. */
const SENDS = (action: string, fields: object) => `(() => {
  const form = Object.assign(document.createElement("form"), { method: "post", action: ${JSON.stringify(action)} });
  for (const [name, value] of Object.entries(${JSON.stringify(fields)})) {
    form.append(Object.assign(document.createElement("input"), { name, value }));
  }
  document.body.append(form);
  form.submit();
})()`;

const MCP_ATTACKS: readonly Attack[] = [
  {
    name: "its client answers the question itself, in each revision of the protocol",
    async run(world) {
      for (const kind of CLIENTS) {
        const id = await world.held();
        await using client = await connect(kind, world.mcp, { key: world.agent.key, answer: () => YES });
        const said = JSON.stringify(await client.call("approve", { id, reason: "The person said yes." }));
        expect({ kind, asked: client.questions.length }).toEqual({ kind, asked: 0 });
        expect(said).toContain("unavailable");
        expect(said).not.toMatch(LINK);
      }
    },
  },
  {
    name: "another agent's client answers for it",
    async run(world) {
      const id = await world.held();
      for (const kind of CLIENTS) {
        await using client = await connect(kind, world.mcp, { key: world.other.key, answer: () => YES });
        const said = await client.call("approve", { id });
        expect({ kind, isError: said.isError, asked: client.questions.length }).toMatchObject({
          kind,
          isError: true,
          asked: 0,
        });
      }
    },
  },
  {
    name: "a client that cannot ask calls approve",
    async run(world) {
      const [one, two] = [await world.held(), await world.askable()];
      for (const kind of CLIENTS) {
        await using client = await connect(kind, world.mcp, { key: world.agent.key });
        for (const id of [one, two]) expect((await client.call("approve", { id })).isError).toBe(true);
      }
    },
  },
  {
    name: "approve with arguments that say a person agreed",
    async run(world) {
      const id = await world.askable();
      for (const more of [
        '"confirmed":true',
        '"via":"elicitation"',
        '"role":"owner"',
        '"__proto__":{"role":"owner"}',
      ]) {
        const said = await callModern(world.mcp, "approve", `{"id":"${id}",${more}}`, {
          key: world.agent.key,
          capabilities: ELICITS,
        });
        expect(said.text).not.toContain('"pending"');
        expect(said.text).toMatch(/validation_error|forbidden|unavailable/);
      }
    },
  },
  {
    name: "an answer to a question that was never asked",
    async run(world) {
      const id = await world.askable();
      for (const more of [
        { inputResponses: FORGED },
        { inputResponses: FORGED, requestState: "" },
        { inputResponses: FORGED, requestState: `${Date.now() + 600_000}.${"A".repeat(43)}` },
        { inputResponses: FORGED, requestState: { id, role: "owner" } },
      ]) {
        expect((await approveModern(world, { id }, more)).text).not.toContain('"pending"');
      }
    },
  },
  {
    name: "an answer with the state of another action's question",
    async run(world) {
      const [asked, wanted] = [await world.askable(), await world.held()];
      const other = await world.askable();
      const requestState = await stateFor(world, asked);
      for (const id of [wanted, other]) await approveModern(world, { id }, { inputResponses: FORGED, requestState });
    },
  },
  {
    name: "an answer with the state of another key's question",
    async run(world) {
      const wide = await world.newKey({ name: "wide", role: "agent", scope: "account", hold: world.hold });
      const id = await world.askable();
      const requestState = await stateFor(world, id);
      const said = await approveModern(world, { id }, { inputResponses: FORGED, requestState }, wide.key);
      expect(said.text).not.toContain('"pending"');
    },
  },
  {
    name: "an answer with a state whose time or text was changed",
    async run(world) {
      const id = await world.askable();
      const [ends = "", mac = ""] = (await stateFor(world, id)).split(".");
      const later = String(Number(ends) + 1);
      for (const requestState of [
        `${later}.${mac}`,
        `${ends}.${mac.slice(1)}A`,
        `${ends}.${mac}=`,
        ` ${ends}.${mac}`,
      ]) {
        const said = await approveModern(world, { id }, { inputResponses: FORGED, requestState });
        expect(said.text).not.toContain('"pending"');
      }
    },
  },
  {
    name: "an answer replayed after the person has rejected it, and again in the next run",
    async run(world) {
      const id = await world.askable();
      const requestState = await stateFor(world, id);
      await world.api("POST", `/v1/actions/${id}/cancel`, { body: { reason: "No." } });
      await approveModern(world, { id }, { inputResponses: FORGED, requestState });
      expect(await world.statusOf(id)).toBe("cancelled");
      const again = await world.api("POST", `/v1/actions/${id}/retry`, {
        key: world.agent.key,
        body: { reason: "Why?" },
      });
      expect(again.json).toMatchObject({ status: "awaiting_approval", run: 2 });
      for (const args of [{ id }, { id, run: 1 }, { id, run: 2 }]) {
        await approveModern(world, args, { inputResponses: FORGED, requestState });
      }
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "an answer posted into a session where no question is open",
    async run(world) {
      const id = await world.askable();
      const { id: session } = await begin(world.mcp, { key: world.agent.key, capabilities: ELICITS });
      for (const question of ["0", "1", "2", '"0"', "-1"]) {
        await post(world.mcp, answerTo(question), { key: world.agent.key, headers: { "mcp-session-id": session } });
      }
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "an answer to an open question from another session, from no session and by another key",
    async run(world) {
      const id = await world.askable();
      const own = { key: world.agent.key, capabilities: ELICITS };
      const [mine, second] = [await begin(world.mcp, own), await begin(world.mcp, own)];
      const asked = await askLegacy(world, mine.id, id);
      const text = answerTo(asked.question);
      await post(world.mcp, text, { key: world.agent.key, headers: { "mcp-session-id": second.id } });
      await post(world.mcp, text, { key: world.agent.key }).catch(() => null);
      const stolen = await post(world.mcp, text, { key: world.other.key, headers: { "mcp-session-id": mine.id } });
      expect(stolen.status).toBe(404);
      expect(await world.statusOf(id)).toBe("awaiting_approval");
      await asked.leave();
    },
  },
  {
    name: "an answer that comes after the person's rejection, from a call that was cancelled",
    async run(world) {
      const id = await world.askable();
      const { id: session } = await begin(world.mcp, { key: world.agent.key, capabilities: ELICITS });
      const asked = await askLegacy(world, session, id);
      const mine = { key: world.agent.key, headers: { "mcp-session-id": session } };
      const cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}';
      await post(world.mcp, cancelled, mine);
      await world.api("POST", `/v1/actions/${id}/cancel`, { body: { reason: "No." } });
      await world.api("POST", `/v1/actions/${id}/retry`, { key: world.agent.key, body: { reason: "Again." } });
      await post(world.mcp, answerTo(asked.question), mine);
      await asked.leave();
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "an answer by a key that was revoked while its question was open",
    async run(world) {
      const lent = await world.newKey({ name: "lent", role: "agent", hold: world.hold });
      const make = { method: "GET", body: null, approve: true };
      const [one, two] = [await world.held(make, lent.key), await world.held(make, lent.key)];
      let open = () => {};
      const isOpen = new Promise<void>((resolve) => (open = resolve));
      const answer = async () => {
        await world.api("DELETE", `/v1/keys/${lent.keyId}`);
        open();
        return YES;
      };
      await using client = await connect("first", world.mcp, { key: lent.key, answer });
      const call = client.call("approve", { id: one }, { timeout: 3_000 }).catch(() => null);
      if (world.mode === "A") {
        await call;
        await world.api("DELETE", `/v1/keys/${lent.keyId}`);
      } else await isOpen;
      const said = await approveModern(world, { id: two }, { inputResponses: FORGED }, lent.key);
      expect(said.status).toBe(401);
      expect(await world.statusOf(one)).toBe("awaiting_approval");
    },
  },
  {
    name: "the session of the owner's client, by its Mcp-Session-Id",
    async run(world) {
      const id = await world.held();
      const owners = await begin(world.mcp, { key: OWNER_KEY, capabilities: ELICITS });
      const headers = { "mcp-session-id": owners.id };
      const call = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"approve","arguments":{"id":"${id}"}}}`;
      expect((await post(world.mcp, call, { key: world.agent.key, headers })).status).toBe(404);
      for (const method of ["GET", "DELETE"]) {
        const accept = "text/event-stream";
        const answer = await world.api(method, "/mcp", { key: world.agent.key, headers: { ...headers, accept } });
        expect(answer.status).toBe(404);
      }
      expect((await post(world.mcp, call, { key: null, headers })).status).toBe(401);
      const ping = '{"jsonrpc":"2.0","id":5,"method":"ping"}';
      expect((await post(world.mcp, ping, { key: OWNER_KEY, headers })).status).toBe(200);
    },
  },
  {
    name: "a batch of calls, and of answers among them",
    async run(world) {
      const id = await world.askable();
      const one = (n: number) => ({
        jsonrpc: "2.0",
        id: n,
        method: "tools/call",
        params: { name: "approve", arguments: { id } },
      });
      const answers = Array.from({ length: 20 }, (_, n) => ({ jsonrpc: "2.0", id: n, result: YES }));
      const batch = JSON.stringify([...Array.from({ length: 20 }, (_, n) => one(n)), ...answers]);
      const { id: session } = await begin(world.mcp, { key: world.agent.key, capabilities: {} });
      for (const headers of [{}, { "mcp-session-id": session }, { "mcp-protocol-version": "2025-03-26" }]) {
        const answer = await world.api("POST", "/mcp", {
          key: world.agent.key,
          body: batch,
          headers: { accept: "application/json, text/event-stream", ...headers },
        });
        expect(answer.text).not.toContain('"pending"');
      }
    },
  },
  {
    name: "tools and methods that do not exist, and questions of its own to the service",
    async run(world) {
      const id = await world.askable();
      const key = world.agent.key;
      for (const name of ["__proto__", "constructor", "Approve", "approve ", "toString"]) {
        const said = await callModern(world.mcp, name, `{"id":"${id}"}`, { key, capabilities: ELICITS });
        expect(said.json.error).toBeDefined();
      }
      for (const method of ["elicitation/create", "sampling/createMessage", "actions/approve", "roots/list"]) {
        const said = await modern(world.mcp, method, `{"id":"${id}"}`, { key, capabilities: ELICITS });
        expect(said.json.error).toBeDefined();
      }
    },
  },
  {
    name: "progress tokens of others' calls and of no sense",
    async run(world) {
      const id = await world.askable();
      const { id: session } = await begin(world.mcp, { key: world.agent.key });
      const owners = await begin(world.mcp, { key: OWNER_KEY });
      const accept = "text/event-stream";
      const leave = new AbortController();
      const listening = await fetch(world.mcp, {
        headers: { authorization: `Bearer ${OWNER_KEY}`, accept, "mcp-session-id": owners.id },
        signal: leave.signal,
      });
      for (const token of ["1", '"1"', '{"a":1}', "null", `"${owners.id}"`]) {
        const call = `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"_meta":{"progressToken":${token}},"name":"wait","arguments":{"id":"${id}","wait":1}}}`;
        // Only the first waits: what a token does is seen there.
        const short =
          token === "1" ? call : call.replace('"wait","arguments"', '"get","arguments"').replace(',"wait":1', "");
        await post(world.mcp, short, { key: world.agent.key, headers: { "mcp-session-id": session } });
      }
      const reader = listening.body?.getReader();
      const seen = await Promise.race([
        reader?.read().then(({ value }) => new TextDecoder().decode(value)),
        Bun.sleep(50),
      ]);
      expect(seen ?? "").not.toContain("progress");
      leave.abort();
    },
  },
  {
    name: "resources of others, by traversal and of other schemes",
    async run(world) {
      const secret = await world.api("POST", "/v1/actions", {
        body: { url: "http://127.0.0.1:1/x", approve: true, headers: { authorization: CANARY } },
      });
      const key = world.agent.key;
      const uris = [
        "outgate://actions/../keys",
        "outgate://keys",
        "outgate://actions/act_01m000000000000000000000000",
        "file:///etc/passwd",
        `${world.base}/v1/keys`,
        `outgate://actions/${secret.json.id}/timeline`,
      ];
      for (const uri of uris) {
        const said = await modern(world.mcp, "resources/read", JSON.stringify({ uri }), { key });
        expect({ uri, error: said.json.error?.code }).toEqual({ uri, error: expect.any(Number) });
      }
      const uri = `outgate://actions/${secret.json.id}`;
      expect((await modern(world.mcp, "resources/read", JSON.stringify({ uri }), { key })).text).not.toMatch(SECRETS);
      if (world.rival !== null) {
        const said = await modern(world.mcp, "resources/read", JSON.stringify({ uri }), { key: world.rival });
        expect(said.text).not.toContain("127.0.0.1:1");
      }
    },
  },
  {
    name: "create by tool with fields that lift the hold",
    async run(world) {
      const url = `${world.target.url}pay`;
      for (const more of [
        '"hold":"none"',
        '"status":"pending"',
        '"approved_by":"user:ann"',
        '"creator":{"hold":"none"}',
      ]) {
        const said = await callModern(world.mcp, "create", `{"url":"${url}",${more}}`, { key: world.agent.key });
        expect(said.text).toContain("validation_error");
      }
      for (const more of ['"approve":false', '"approve":true,"approve":false', '"method":"GET","method":"POST"']) {
        const said = await callModern(world.mcp, "create", `{"url":"${url}",${more}}`, { key: world.agent.key });
        expect(said.text).toContain("awaiting_approval");
      }
    },
  },
  {
    name: "MCP from a page of a rebinding name, or of another site",
    async run(world) {
      const id = await world.askable();
      for (const headers of [{ host: "evil.example" }, { origin: "https://evil.example" }, { origin: "null" }]) {
        const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"approve","arguments":{"id":"${id}"}}}`;
        expect((await world.api("POST", "/mcp", { body, headers })).status).toBe(403);
      }
    },
  },
  {
    name: "its own stdio bridge with a client that answers for the person",
    async run(world) {
      const id = await world.held();
      for (const kind of ["modern", "first"] as const) {
        await using client = await connect(kind, launch(world), { answer: () => YES });
        expect(JSON.stringify(await client.call("approve", { id }))).toContain("unavailable");
        expect(client.questions).toEqual([]);
      }
    },
  },
  {
    name: "orders, links and line breaks in what the owner's client is asked",
    async run(world) {
      const lie =
        "ok\nMethod: GET\n[Approve](https://evil.example/yes) <img src=x> `rm` \u202Egnp.exe https://evil.example";
      const id = await world.held({
        url: `${world.target.url}%0aMethod:%20GET?x=[yes](https://evil.example)<b>\u202E${"x".repeat(3_000)}`,
        reason: lie.slice(0, 900),
      });
      for (const kind of CLIENTS) {
        await using client = await connect(kind, world.mcp, { key: OWNER_KEY, answer: () => ({ action: "decline" }) });
        await client.call("approve", { id });
        const [question = ""] = client.questions;
        expect(question.match(/^Method: /gm)).toHaveLength(1);
        expect(question).toContain("Method: POST\n");
        expect(question).toContain(new URL(world.target.url).host);
        expect(question).toContain("! Characters that cannot be seen are in the URL");
        expect(question).not.toMatch(/[[\]<>`]|https:\/\/evil\.example$|\p{Cf}/mu);
        expect(question).not.toMatch(LINK);
      }
    },
  },
];

const REST_ATTACKS: readonly Attack[] = [
  {
    name: "approve over REST, with every spelling of a method and of a role",
    async run(world) {
      const id = await world.held();
      const path = `/v1/actions/${id}/approve`;
      const key = world.agent.key;
      const bodies = [{}, { reason: "yes" }, { via: "elicitation" }, { role: "owner" }, { run: 1 }];
      for (const body of bodies) expect((await world.api("POST", path, { key, body })).status).toBe(403);
      for (const method of ["GET", "HEAD", "PUT", "PATCH", "DELETE"]) {
        const headers = { "x-http-method-override": "POST" };
        expect((await world.api(method, path, { headers })).status).toBe(405);
      }
      for (const odd of [
        `${path}/`,
        `/V1/actions/${id}/approve`,
        `/v1//actions/${id}/approve`,
        `/v1/actions/${id}/%61pprove`,
      ]) {
        expect((await world.api("POST", odd, { key })).status).toBeGreaterThanOrEqual(400);
      }
    },
  },
  {
    name: "somebody else's authority: two keys, a key in the query, a cookie, a proxy's header",
    async run(world) {
      const id = await world.held();
      const path = `/v1/actions/${id}/approve`;
      const { cookie, agent } = world;
      const tries: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
        [path, { cookie }],
        [path, { authorization: `Bearer ${agent.key}, Bearer x` }],
        [path, { authorization: `Basic ${btoa("owner:owner")}` }],
        [`${path}?key=${agent.key}`, {}],
        [path, { "x-forwarded-user": "ann@example.com", "x-remote-user": "ann@example.com" }],
        [path, { "x-api-key": agent.key, cookie }],
      ];
      for (const [at, headers] of tries) {
        expect((await world.api("POST", at, { key: null, headers })).status).toBe(401);
      }
    },
  },
  {
    name: "create that says it needs no approval",
    async run(world) {
      for (const members of [{ approve: false }, { approve: null }, { method: "DELETE" }, { method: "PATCH" }]) {
        expect((await world.create(members)).json.status).toBe("awaiting_approval");
      }
      const refused = [{ sync: true }, { hold: "none" }, { approve: "false" }, { approved_at: "2026-01-01T00:00:00Z" }];
      for (const members of refused) expect((await world.create(members)).status).toBe(400);
    },
  },
  {
    name: "a harmless method that a header turns into another",
    async run(world) {
      const names = [
        "X-HTTP-Method-Override",
        "x_http_method",
        "X-Method-Override",
        "X-Original-Method",
        "X-Rewrite-URL",
      ];
      for (const name of names) {
        const headers = { [name]: "DELETE" };
        expect((await world.create({ method: "GET", headers })).status).toBe(400);
      }
    },
  },
  {
    name: "retry of what another key has sent without a hold",
    async run(world) {
      const { json } = await world.api("POST", "/v1/actions?wait=10", {
        body: { url: "http://127.0.0.1:1/pay", retries: 1, sync: true },
      });
      expect(json.status).toBe("failed");
      const wide = await world.newKey({ name: "wide retry", role: "agent", scope: "account", hold: world.hold });
      for (const key of [world.agent.key, wide.key]) {
        expect((await world.api("POST", `/v1/actions/${json.id}/retry`, { key })).status).toBe(403);
      }
      expect(await world.statusOf(json.id)).toBe("failed");
    },
  },
  {
    name: "retry of what the key sent that it has replaced, from before the hold",
    async run(world) {
      const old = await world.newKey({ name: "old", role: "agent", hold: "none" });
      const { json } = await world.api("POST", "/v1/actions?wait=10", {
        key: old.key,
        body: { url: "http://127.0.0.1:1/pay", retries: 1, sync: true },
      });
      const next = await world.newKey({ name: "next", role: "agent", hold: world.hold, replaces: old.keyId });
      expect((await world.api("POST", `/v1/actions/${json.id}/retry`, { key: next.key })).status).toBe(403);
      await world.api("DELETE", `/v1/keys/${old.keyId}`);
      expect(await world.statusOf(json.id)).toBe("failed");
    },
  },
  {
    name: "a late approval of the run before",
    async run(world) {
      const id = await world.held();
      const { agent } = world;
      await world.api("POST", `/v1/actions/${id}/cancel`, { key: agent.key });
      await world.api("POST", `/v1/actions/${id}/retry`, { key: agent.key, body: { reason: "x" } });
      const late = await world.api("POST", `/v1/actions/${id}/approve`, { body: { run: 1 } });
      expect(late).toMatchObject({ status: 409, json: { error: { code: "not_approvable" } } });
      const token = world.tokenOf(await world.pageOf(`/approvals/${id}`));
      await world.form(
        `/approvals/${id}`,
        { form_token: token, session_secret: SESSION_SECRET, decision: "approve", run: "1" },
        { cookie: world.cookie },
      );
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "asking again and again for what a person rejected",
    async run(world) {
      const members = { body: { amount: 1, again: world.mode } };
      const id = await world.held(members);
      const reject = (one: string) => world.api("POST", `/v1/actions/${one}/cancel`, { body: { reason: "No." } });
      await reject(id);
      expect((await world.create(members)).status).toBe(400);
      expect((await world.create({ ...members, reason: "Please?" })).status).toBe(201);
      const { json } = await world.create({ ...members, reason: "Please." });
      await reject(json.id);
      for (const more of [
        {},
        { headers: { "x-nonce": "1" } },
        { dedupe: "fresh" },
        { retries: 9 },
        { callback: null },
      ]) {
        expect((await world.create({ ...members, reason: "Please!", ...more })).status).toBe(403);
      }
      const retry = await world.api("POST", `/v1/actions/${id}/retry`, { key: world.agent.key, body: { reason: "P" } });
      expect(retry.status).toBe(409);
    },
  },
  {
    name: "asking for what a person rejected, for a reason of characters that cannot be seen",
    async run(world) {
      const members = { body: { amount: 3, to: world.mode } };
      await world.api("POST", `/v1/actions/${await world.held(members)}/cancel`, { body: { reason: "No." } });
      expect((await world.create({ ...members, reason: "\u200b\u2060" })).status).toBe(400);
    },
  },
  {
    name: "asking for what a person rejected, with the same members in another order",
    async run(world) {
      const id = await world.held({ body: { amount: 2, to: world.mode } });
      await world.api("POST", `/v1/actions/${id}/cancel`, { body: { reason: "No." } });
      expect((await world.create({ body: { to: world.mode, amount: 2 } })).status).toBe(400);
    },
  },
  {
    name: "asking for what a person rejected, with a letter of the path written as its code",
    async run(world) {
      const members = { method: "DELETE", url: `${world.target.url}accounts/7` };
      await world.api("POST", `/v1/actions/${await world.held({ ...members, body: null })}/cancel`);
      expect((await world.create({ ...members, url: `${world.target.url}%61ccounts/7` })).status).toBe(400);
    },
  },
  {
    name: "another key's action by its Idempotency-Key and dedupe: to send it, or to learn what is in it",
    async run(world) {
      const url = "http://127.0.0.1:1/secret";
      const mine = { url, approve: true, dedupe: `d-${world.mode}`, headers: { authorization: CANARY } };
      await world.api("POST", "/v1/actions", { body: mine, headers: { "idempotency-key": `i-${world.mode}` } });
      const told = new Set<string | undefined>();
      // As long as the right one, with the same end: more of it is not shown.
      for (const guess of [CANARY, CANARY.replace("Zq8X", "Zq8Y")]) {
        const found = await world.api("POST", "/v1/actions", {
          key: world.agent.key,
          body: { ...mine, headers: { authorization: guess } },
          headers: { "idempotency-key": `i-${world.mode}` },
        });
        expect(found).toMatchObject({ status: 200, json: { deduplicated: true, status: "awaiting_approval" } });
        expect(found.text).not.toMatch(SECRETS);
        told.add(/"differs":\[[^\]]*\]/.exec(found.text)?.[0]);
      }
      expect(told.size).toBe(1);
    },
  },
  {
    name: "one approval, and then the same create and retry many times",
    approved: 1,
    async run(world) {
      const headers = { "idempotency-key": `once-${world.mode}` };
      const body = { url: `${world.target.url}once`, body: { once: true } };
      const send = () => world.api("POST", "/v1/actions", { key: world.agent.key, body, headers });
      const { json } = await send();
      await world.api("POST", `/v1/actions/${json.id}/approve`);
      await world.target.saw(1);
      expect((await world.api("GET", `/v1/actions/${json.id}?wait=10`)).json.status).toBe("completed");
      for (const answer of await Promise.all(Array.from({ length: 10 }, send))) expect(answer.json.id).toBe(json.id);
      expect((await world.api("POST", `/v1/actions/${json.id}/retry`, { key: world.agent.key })).status).toBe(409);
      expect((await world.create({ ...body })).json.status).toBe("awaiting_approval");
    },
  },
  {
    name: "callbacks to its own server, beside a host that is listed",
    async run(world) {
      await world.api("POST", "/v1/callback-hosts", { body: { host: "127.0.0.1" } });
      await world.api("POST", "/v1/callback-hosts", { body: { host: "hooks.example.com" } });
      const { port } = new URL(world.evil.url);
      const callbacks = [
        world.evil.url,
        `http://localhost:${port}/`,
        `http://hooks.example.com@127.0.0.1:${port}/`,
        `http://127.0.0.1:${port}/#@hooks.example.com`,
        `http://hooks.example.com.127.0.0.1.nip.io:${port}/`,
        "https://hooks.example.com.evil.example/",
        "https://hooks.example.com:8443/",
        "http://hooks.example.com\\@evil.example/",
        "https://evil.example/?hooks.example.com",
      ];
      for (const callback of callbacks) {
        const said = await world.create({ callback, body: { leak: callback } });
        expect({ callback, status: said.status }).toEqual({ callback, status: 400 });
      }
      for (const host of ["127.0.0.1", "hooks.example.com"]) {
        await world.api("DELETE", `/v1/callback-hosts?host=${host}`);
      }
      expect(world.evil.received.filter(({ method }) => method === "POST")).toEqual([]);
    },
  },
  {
    name: "Outgate as its own caller: approve, log in and follow links by a call of its own",
    async run(world) {
      const id = await world.held();
      const { port } = new URL(world.base);
      const hosts = [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f000001",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "127.0.0.2",
        "x.localhost",
      ];
      const paths = [
        `/v1/actions/${id}/approve`,
        "/a/token",
        "/mcp",
        "/auth/login",
        "/%761/keys",
        "/V1/keys",
        "/x/../v1/keys",
      ];
      for (const host of hosts) {
        for (const path of paths) {
          for (const method of ["GET", "POST"]) {
            const said = await world.create({ method, body: null, url: `http://${host}:${port}${path}` });
            expect({ host, path, status: said.status }).toEqual({ host, path, status: 400 });
          }
        }
      }
    },
  },
  {
    name: "what only owners manage: keys, hosts, pauses, secrets, audit, accounts",
    async run(world) {
      const key = world.agent.key;
      const before = await settingsOf(world);
      const tries: readonly (readonly [string, string, object?])[] = [
        ["POST", "/v1/keys", { name: "evil", role: "owner" }],
        [
          "POST",
          "/v1/keys",
          { name: "evil", role: "agent", hold: "none", replaces: world.agent.keyId, weaker_hold: true },
        ],
        ["POST", "/v1/keys", { name: "evil", role: "agent", scope: "account" }],
        ["GET", "/v1/keys"],
        ["DELETE", `/v1/keys/${world.other.keyId}`],
        ["POST", "/v1/callback-hosts", { host: "evil.example" }],
        ["POST", "/v1/pauses", {}],
        ["GET", "/v1/signing-secret?origin=https://a.example"],
        ["POST", "/v1/signing-secret/rotate"],
        ["GET", "/v1/audit"],
        ["GET", "/v1/accounts"],
        ["POST", "/v1/accounts/acc_00000000000000000000000000/allow"],
      ];
      for (const [method, path, body] of tries) {
        const said = await world.api(method, path, body === undefined ? { key } : { key, body });
        expect({ path, status: said.status }).toEqual({ path, status: 403 });
      }
      expect(await settingsOf(world)).toEqual(before);
    },
  },
  {
    name: "a key that was revoked: at once, in its stream, its wait and its MCP session",
    async run(world) {
      const lent = await world.newKey({ name: "stream", role: "agent", hold: world.hold });
      const id = await world.held({}, lent.key);
      const stream = await fetch(`${world.base}/v1/events`, { headers: { authorization: `Bearer ${lent.key}` } });
      const { id: session } = await begin(world.mcp, { key: lent.key });
      const wait = world.api("GET", `/v1/actions/${id}?wait=60`, { key: lent.key });
      await until(() => world.service.log().some(({ action_id }) => action_id === id));
      await world.api("DELETE", `/v1/keys/${lent.keyId}`);
      await world.held({ headers: { authorization: CANARY } });
      expect(await stream.text()).not.toContain(CANARY.slice(7));
      expect((await wait).status).toBe(401);
      for (let n = 0; n < 5; n += 1) expect((await world.create({}, lent.key)).status).toBe(401);
      const ping = '{"jsonrpc":"2.0","id":5,"method":"ping"}';
      const said = await post(world.mcp, ping, { key: lent.key, headers: { "mcp-session-id": session } });
      expect(said.status).toBe(401);
    },
  },
  {
    name: "the actions of another agent: their secrets, and their end",
    async run(world) {
      const leave = new AbortController();
      const stream = await fetch(`${world.base}/v1/events`, {
        headers: { authorization: `Bearer ${world.agent.key}` },
        signal: leave.signal,
      });
      const id = await world.held(
        { headers: { authorization: CANARY }, body: { password: "hunter2 canary" } },
        world.other.key,
      );
      const key = world.agent.key;
      const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
      let streamed = "";
      while (!streamed.includes(id)) streamed += (await reader?.read())?.value ?? id;
      leave.abort();
      const paths = ["", "/timeline", "/facts"].map((path) => `/v1/actions/${id}${path}`);
      const seen = [streamed];
      for (const path of [...paths, `/v1/actions?created_by=${world.other.keyId}`]) {
        seen.push((await world.api("GET", path, { key })).text);
      }
      for (const name of ["get", "wait"]) {
        seen.push(
          (await callModern(world.mcp, name, JSON.stringify({ id, ...(name === "wait" ? { wait: 1 } : {}) }), { key }))
            .text,
        );
      }
      for (const text of seen) expect(text).not.toMatch(/cAn4ry9Zq8Xw2|hunter2 canary/);
      for (const verb of ["cancel", "retry", "approve"]) {
        expect((await world.api("POST", `/v1/actions/${id}/${verb}`, { key })).status).toBe(403);
        expect(
          (await callModern(world.mcp, verb, JSON.stringify({ id }), { key, capabilities: ELICITS })).text,
        ).toContain("forbidden");
      }
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "the audit log: to write, alter or delete it, or to forge entries by a reason",
    async run(world) {
      for (const key of [world.agent.key, OWNER_KEY]) {
        for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
          expect((await world.api(method, "/v1/audit", { key, body: {} })).status).toBeGreaterThanOrEqual(403);
        }
      }
      const id = await world.held();
      const forged = `{"kind":"approved","actor":"user:${ANN}","subject":"${id}"}`;
      await world.api("POST", `/v1/actions/${id}/cancel`, {
        key: world.agent.key,
        body: { reason: `x\n${forged}\r\n\u2028${forged}` },
      });
      const { text } = await world.api("GET", "/v1/audit", { headers: { accept: "application/x-ndjson" } });
      const entries = text
        .trim()
        .split(/\n|\r/)
        .map((line) => JSON.parse(line) as { kind: string; subject: string; actor: string });
      const about = entries.filter(({ subject }) => subject === id);
      expect(about.map(({ kind, actor }) => [kind, actor])).toEqual([["rejected", "key:agent"]]);
    },
  },
  {
    name: "receipts: to guess one, or to read in one what it hides",
    async run(world) {
      const { json } = await world.create({
        url: `${world.target.url}x?token=${CANARY.slice(7)}`,
        headers: { authorization: CANARY },
        body: { password: CANARY.slice(7), n: 1 },
        notify: { email: ANN },
      });
      const { approve } = await world.linksOf(json.id);
      const path = new URL(json.receipt_url, world.base).pathname;
      for (const accept of ["text/html", "application/json"]) {
        const { status, text, headers } = await world.api("GET", path, { key: null, headers: { accept } });
        expect(status).toBe(200);
        expect(text).not.toMatch(SECRETS);
        expect(text).not.toMatch(LINK);
        expect(text).not.toContain(approve);
        expect(text).not.toContain(world.agent.keyId);
        expect(headers.get("referrer-policy")).toBe("no-referrer");
      }
      const last = path.at(-1) === "0" ? "1" : "0";
      const guesses = [
        path.slice(0, -1) + last,
        path.slice(0, -1),
        `${path}0`,
        path.slice(0, 20),
        `/r/${json.id}`,
        path.toUpperCase(),
      ];
      for (const guess of guesses) {
        expect((await world.api("GET", guess, { key: null })).status).toBe(404);
      }
      expect((await world.api("POST", path, { key: null })).status).toBe(405);
    },
  },
  {
    name: "another account: its ids in every place",
    mode: "B",
    async run(world) {
      const id = await world.held({ headers: { authorization: CANARY } });
      const accounts = await world.api("GET", "/v1/accounts");
      const theirs =
        /"id":"(acc_\w+)"[^}]*rival@evil/.exec(accounts.text)?.[1] ?? /"(acc_\w+)"/.exec(accounts.text)?.[1];
      const key = world.rival ?? "";
      await world.api("POST", `/v1/accounts/${theirs}/allow`);
      for (const path of ["", "/timeline", "/facts"]) {
        expect((await world.api("GET", `/v1/actions/${id}${path}`, { key })).status).toBe(404);
      }
      for (const verb of ["approve", "cancel", "retry"]) {
        expect((await world.api("POST", `/v1/actions/${id}/${verb}`, { key })).status).toBe(404);
      }
      expect((await world.api("DELETE", `/v1/keys/${world.agent.keyId}`, { key })).status).toBe(404);
      expect(
        (await world.api("POST", "/v1/keys", { key, body: { name: "x", role: "agent", replaces: world.agent.keyId } }))
          .status,
      ).toBe(400);
      expect((await world.api("GET", "/v1/accounts", { key })).status).toBe(403);
      expect((await world.api("GET", `/v1/actions?created_by=${world.agent.keyId}`, { key })).json.data).toEqual([]);
      const said = await callModern(world.mcp, "approve", JSON.stringify({ id }), {
        key,
        capabilities: ELICITS,
        more: { inputResponses: FORGED },
      });
      expect(said.text).toContain("not_found");
    },
  },
  {
    name: "filters of a list that are more than filters",
    async run(world) {
      const id = await world.held({ headers: { authorization: CANARY } }, world.other.key);
      for (const query of [
        "host=' OR 1=1 --",
        "status=x' UNION SELECT 1",
        "cursor=../../keys",
        "created_by=%25",
        "limit=1;DROP",
        "host=%00",
      ]) {
        const { status, text } = await world.api("GET", `/v1/actions?${query}`, { key: world.agent.key });
        expect(text).not.toMatch(SECRETS);
        expect(status === 400 || !text.includes(id)).toBe(true);
      }
    },
  },
  {
    name: "what nobody signs in for: health, metrics, the API's description",
    async run(world) {
      await world.held({ headers: { authorization: CANARY } });
      for (const path of [
        "/health",
        "/ready",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/.well-known/oauth-protected-resource",
      ]) {
        const { text } = await world.api("GET", path, { key: null });
        expect(text).not.toMatch(/cAn4ry|og_owner_key/);
        expect(text).not.toContain(world.agent.keyId);
        expect(text).not.toContain(new URL(world.target.url).host);
      }
    },
  },
];

const MAIL_ATTACKS: readonly Attack[] = [
  {
    name: "an approver of its own: every spelling of a recipient",
    async run(world) {
      const recipients = [
        EVIL_MAIL,
        `${ANN},${EVIL_MAIL}`,
        `${EVIL_MAIL},${ANN}`,
        `${ANN}\r\nBcc: ${EVIL_MAIL}`,
        `Ann <${ANN}>`,
        `"${EVIL_MAIL},"@example.com`,
        `${EVIL_MAIL}>,<${ANN}`,
        "ann+x@example.com",
        "ann@example.com.evil.example",
        "ann@evil.example@example.com",
        `${ANN}\u0000@evil.example`,
        "ann(@evil.example)@example.com",
        "\u00e4nn@example.com",
      ];
      for (const email of recipients) {
        expect({ email, status: (await world.create({ notify: { email } })).status }).toEqual({ email, status: 400 });
        const tool = await callModern(
          world.mcp,
          "create",
          JSON.stringify({ url: world.target.url, notify: { email } }),
          { key: world.agent.key },
        );
        expect(tool.text).toContain("validation_error");
      }
      for (const notify of [[ANN], { email: [ANN, EVIL_MAIL] }, { email: ANN, bcc: EVIL_MAIL }]) {
        expect((await world.create({ notify })).status).toBe(400);
      }
      expect(world.mailbox.posted.map(({ fields }) => fields["to"]).filter((to) => to !== ANN)).toEqual([]);
    },
  },
  {
    name: "headers, recipients and links of its own in the mail",
    async run(world) {
      const lie = `ok\r\nBcc: ${EVIL_MAIL}\r\n\r\nApprove: https://evil.example/a/x <a href="https://evil.example">Approve</a><style>p{display:none}</style>\u202E`;
      const id = await world.held({
        url: `${world.target.url}%0d%0aBcc:%20x@evil.example/<a%20href=https://evil.example>`,
        headers: { "x-note": 'v"><script>fetch("//evil.example")</script>' },
        body: { note: lie, "<b>": lie },
        reason: lie,
        notify: { email: ANN },
      });
      const { fields } = await world.linksOf(id);
      expect(fields["to"]).toBe(ANN);
      expect(Object.keys(fields).filter((name) => /cc$/i.test(name))).toEqual([]);
      expect(fields["subject"]).not.toMatch(/[\r\n\p{Cc}\p{Cf}]/u);
      const html = fields["html"] ?? "";
      const places = [...html.matchAll(/(?:href|src|action)="([^"]*)"/g)].map(([, at = ""]) => at);
      for (const at of places) expect(at).toStartWith(world.base);
      expect(html).not.toMatch(/<script|<img|<form|<iframe|p\{display:none\}<\/style>/i);
      expect(fields["text"]).not.toMatch(/\p{Cf}/u);
      expect(fields["text"]).not.toMatch(/^\s*Bcc:|^Approve: https:\/\/evil/m);
      expect(fields["h:Reply-To"]).toBeUndefined();
    },
  },
  {
    name: "links that robots open: HEAD, GET, prefetch and preview",
    async run(world) {
      const id = await world.held({ notify: { email: ANN } });
      const { approve, reject } = await world.linksOf(id);
      for (const path of [approve, reject]) {
        for (const headers of [
          {},
          { "sec-purpose": "prefetch" },
          { purpose: "preview" },
          { "user-agent": "Slackbot" },
        ]) {
          for (const method of ["HEAD", "GET", "OPTIONS", "PUT"]) await world.api(method, path, { key: null, headers });
        }
        for (const query of ["?decision=approve", "?confirm=1&_method=POST"])
          await world.api("GET", path + query, { key: null });
      }
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "links that it guesses, from another action's and of another decision",
    async run(world) {
      const [one, two] = [await world.held({ notify: { email: ANN } }), await world.held({ notify: { email: ANN } })];
      const [{ approve, reject }, second] = [await world.linksOf(one), await world.linksOf(two)];
      const half = Math.floor(approve.length / 2);
      const guesses = [
        approve.slice(0, -1) + (approve.endsWith("A") ? "B" : "A"),
        approve.slice(0, half) + second.approve.slice(half),
        approve.slice(0, half) + reject.slice(half),
        approve.slice(0, -4),
        `${approve}A`,
        `/a/${one}`,
        `/a/${"0".repeat(64)}`,
      ].filter((guess) => ![approve, reject, second.approve, second.reject].includes(guess));
      for (const guess of guesses) {
        const answer = await world.form(guess, { decision: "approve" });
        expect({ guess, status: answer.status }).toEqual({ guess, status: 404 });
      }
      for (const id of [one, two]) expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "links of a run that was rejected, used again after a retry",
    async run(world) {
      const id = await world.held({ notify: { email: ANN } });
      const { approve, reject } = await world.linksOf(id);
      expect((await world.form(reject, { decision: "reject", reason: "No." })).status).toBe(303);
      const again = await world.api("POST", `/v1/actions/${id}/retry`, {
        key: world.agent.key,
        body: { reason: "Yes?" },
      });
      expect(again.json).toMatchObject({ status: "awaiting_approval", run: 2 });
      for (const path of [approve, reject]) {
        const answer = await world.form(path, { decision: "approve" });
        expect(answer.headers.get("location")).toStartWith("/r/");
      }
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "the link from wherever an agent may look, and a page that makes the approver's browser send it",
    async run(world) {
      const id = await world.held({ notify: { email: ANN } });
      const { approve, reject } = await world.linksOf(id);
      const key = world.agent.key;
      const said = [
        await world.api("GET", `/v1/actions/${id}`, { key }),
        await world.api("GET", `/v1/actions/${id}/timeline`, { key }),
        await world.api("GET", `/v1/actions/${id}/facts`, { key }),
        await world.api("GET", "/v1/actions?limit=100", { key }),
        await callModern(world.mcp, "get", JSON.stringify({ id }), { key }),
        await callModern(world.mcp, "approve", JSON.stringify({ id }), { key, capabilities: ELICITS }),
      ];
      for (const { text, headers } of said) {
        for (const path of [approve, reject]) expect(text + JSON.stringify([...headers])).not.toContain(path.slice(3));
      }
      expect(world.service.output).not.toContain(approve.slice(3));
      const page = await world.api("GET", approve, { key: null });
      expect(page.headers.get("referrer-policy")).toBe("no-referrer");
      expect(page.headers.get("x-frame-options")).toBe("DENY");
      const origin = new URL(world.evil.url).origin;
      for (const headers of [
        { origin },
        { "sec-fetch-site": "same-site" },
        { "sec-fetch-site": "cross-site", origin: "null" },
      ]) {
        expect((await world.form(approve, { decision: "approve" }, headers)).status).toBe(403);
      }
    },
  },
  {
    name: "a payload behind a mask: twelve ways to hide it from whoever decides",
    async run(world) {
      for (const [trick, members, shown] of HIDING) {
        const said = await world.create({ body: { n: trick }, notify: { email: ANN }, ...members(world.target.url) });
        if (said.status !== 201) {
          // A name and a password in a URL are refused.
          expect({ trick, status: said.status }).toEqual({ trick, status: 400 });
          continue;
        }
        const { id } = said.json;
        const { approve, fields } = await world.linksOf(id);
        const pages = [approve, `/approvals/${id}`, `/actions/${id}`].map(async (path) =>
          wordsOf(await world.pageOf(path)),
        );
        for (const place of [fields["text"] ?? "", ...(await Promise.all(pages))]) {
          expect({ trick, isShown: place.includes(shown) }).toEqual({ trick, isShown: true });
        }
      }
    },
  },
  {
    name: "a body that reads in two ways: members that come twice, escapes and unseen characters",
    async run(world) {
      const body = String.raw`{"url":"${world.target.url}two","body":{"amount":5,"amount":5000,"to":"b\u006fb\u202e"},"notify":{"email":"${ANN}"}}`;
      const { json } = await world.api("POST", "/v1/actions", { key: world.agent.key, body });
      const { approve, fields } = await world.linksOf(json.id);
      const places = [
        fields["text"] ?? "",
        wordsOf(await world.pageOf(approve)),
        wordsOf(await world.pageOf(`/approvals/${json.id}`)),
      ];
      for (const place of places) {
        expect(place).toContain("5000");
        expect(place).toContain("Characters that cannot be seen are in the body");
      }
    },
  },
  {
    name: "secrets by a role or a link that may not reveal them",
    async run(world) {
      const id = await world.held({ headers: { authorization: CANARY }, notify: { email: ANN } });
      const { approve } = await world.linksOf(id);
      const keys = [
        await world.newKey({ name: "approver", role: "approver" }),
        await world.newKey({ name: "reader", role: "reader" }),
      ];
      for (const { key } of [...keys, world.other]) {
        const headers = { origin: world.base, "content-type": "application/x-www-form-urlencoded" };
        const asked = await world.api("POST", `/actions/${id}/reveal`, { key, headers, body: "form_token=x" });
        expect(asked).toMatchObject({ status: 303, text: "" });
        for (const path of ["", "/timeline", "/facts"]) {
          expect((await world.api("GET", `/v1/actions/${id}${path}`, { key })).text).not.toContain(CANARY.slice(7));
        }
        expect((await callModern(world.mcp, "get", JSON.stringify({ id }), { key })).text).not.toContain(
          CANARY.slice(7),
        );
      }
      for (const path of [approve, `${approve}/reveal`, `${approve}?reveal=1`]) {
        expect((await world.api("GET", path, { key: null })).text).not.toContain(CANARY.slice(7));
      }
      for (const { keyId } of keys) await world.api("DELETE", `/v1/keys/${keyId}`);
    },
  },
];

const SESSION_ATTACKS: readonly Attack[] = [
  {
    name: "the owner's cookie, taken by a server on another port: every form, with the form's own token",
    async run(world) {
      const id = await world.held({ headers: { authorization: CANARY } });
      const own = { cookie: world.cookie, referer: `${world.base}/approvals`, "sec-fetch-site": "same-origin" };
      const form_token = world.tokenOf(await world.pageOf(`/approvals/${id}`));
      expect(form_token).not.toBe("");
      const before = await settingsOf(world);
      for (const [path, fields] of formsFor(id, world.other.keyId)) {
        for (const session_secret of [null, "", form_token, "0".repeat(64), `${SESSION_SECRET} `]) {
          // Five wrong passwords a minute keep the owner out, too: one is enough here.
          if (path === "/settings/password" && session_secret !== null) continue;
          const more = session_secret === null ? {} : { session_secret };
          const answer = await world.form(path, { form_token, ...fields, ...more }, own);
          expect({ path, isRefused: answer.status >= 401 }).toEqual({ path, isRefused: true });
          expect(await answer.text()).not.toMatch(SECRETS);
        }
      }
      expect(await settingsOf(world)).toEqual(before);
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "the pages that the owner's cookie opens: keys, settings and secrets on them",
    async run(world) {
      const id = await world.held({ headers: { authorization: CANARY } });
      const pages = [
        "/approvals",
        `/approvals/${id}`,
        `/actions/${id}`,
        "/actions",
        "/keys",
        "/keys/new",
        "/settings",
        "/audit",
        "/signup/done",
      ];
      for (const path of [
        ...pages,
        `/keys/${world.agent.keyId}/made`,
        "/settings/rotated",
        "/settings/accounts",
        "/overview",
      ]) {
        expect(await world.pageOf(path)).not.toMatch(SECRETS);
      }
    },
  },
  {
    name: "the form's token, and the secret, of another session with the owner's cookie",
    async run(world) {
      const id = await world.held();
      const second = await world.form("/auth/login", { ...world.credentials, session_secret: "6f".repeat(32) });
      const cookie = world.cookieOf(second);
      const html = await (await fetch(`${world.base}/approvals/${id}`, { headers: { cookie } })).text();
      const theirs = world.tokenOf(html);
      const mine = world.tokenOf(await world.pageOf(`/approvals/${id}`));
      expect(theirs).not.toBe(mine);
      const fields = { decision: "approve", run: "1" };
      for (const [form_token, session_secret] of [
        [theirs, SESSION_SECRET],
        [mine, "6f".repeat(32)],
        [theirs, "6f".repeat(32)],
      ] as const) {
        const answer = await world.form(
          `/approvals/${id}`,
          { ...fields, form_token, session_secret },
          { cookie: world.cookie },
        );
        expect(answer.status).toBe(403);
      }
    },
  },
  {
    name: "a session that it has chosen before the log-in, and one that was logged out",
    async run(world) {
      const chosen = `outgate_session=${"ab".repeat(32)}`;
      const entered = await world.form("/auth/login", world.credentials, { cookie: chosen });
      const cookie = world.cookieOf(entered);
      expect(cookie).not.toBe(chosen);
      const isIn = async (one: string) =>
        (await fetch(`${world.base}/keys`, { headers: { cookie: one }, redirect: "manual" })).status;
      expect([await isIn(chosen), await isIn(cookie)]).toEqual([303, 200]);
      const form_token = world.tokenOf(await (await fetch(`${world.base}/keys`, { headers: { cookie } })).text());
      await world.form("/auth/logout", { form_token }, { cookie });
      expect(await isIn(cookie)).toBe(303);
      const id = await world.held();
      const fields = { form_token, session_secret: SESSION_SECRET, decision: "approve", run: "1" };
      await world.form(`/approvals/${id}`, fields, { cookie });
    },
  },
  {
    name: "a log-in, log-out or sign-up that its page sends in the owner's browser",
    async run(world) {
      const { origin } = new URL(world.evil.url);
      for (const path of ["/auth/login", "/auth/signup", "/auth/logout", "/welcome/x"]) {
        for (const headers of [{ origin }, { origin: "null" }, { origin, "sec-fetch-site": "same-site" }]) {
          const answer = await world.form(path, world.credentials, { ...headers, cookie: world.cookie });
          expect({ path, status: answer.status }).toEqual({ path, status: 403 });
          expect(answer.headers.get("set-cookie")).toBeNull();
        }
        const plain = { origin, "content-type": "text/plain", cookie: world.cookie };
        const body = JSON.stringify(world.credentials);
        const answer = await fetch(world.base + path, { method: "POST", headers: plain, body });
        expect(answer.status).toBe(403);
      }
    },
  },
  {
    name: "a way out of our own pages in next",
    async run(world) {
      const nexts = [
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/%09/evil.example\n",
        "\\\\evil.example",
        "/\r\nSet-Cookie: a=b",
      ];
      for (const next of nexts) {
        const answer = await world.form("/auth/login", { ...world.credentials, next });
        expect({ next, location: answer.headers.get("location") }).toEqual({ next, location: "/approvals" });
        const query = new URLSearchParams({ next }).toString();
        const page = await world.api("GET", `/login?${query}`, { key: null, headers: { cookie: world.cookie } });
        expect({ next, location: page.headers.get("location") }).toEqual({ next, location: "/approvals" });
      }
      for (const path of ["/approvals?decided=//evil.example", "/actions/%2f%2fevil.example"]) {
        const location =
          (await world.api("GET", path, { key: null, headers: { cookie: world.cookie } })).headers.get("location") ??
          "/";
        expect(location).toMatch(/^\/(?![/\\])/);
      }
    },
  },
  {
    name: "pages under a name that was made to lead here, and in frames",
    async run(world) {
      const id = await world.held({ notify: { email: ANN } });
      const { approve } = await world.linksOf(id);
      const hosts = [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.1@evil.example",
        "evil.example:80",
      ];
      for (const path of ["/login", "/approvals", approve, `/actions/${id}`, "/keys"]) {
        for (const host of hosts) {
          const answer = await world.api("GET", path, { key: null, headers: { cookie: world.cookie, host } });
          expect({ path, host, status: answer.status }).toEqual({ path, host, status: 421 });
        }
        const { status, headers } = await world.api("GET", path, { key: null, headers: { cookie: world.cookie } });
        expect(headers.get("x-frame-options")).toBe("DENY");
        if (status === 200) expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
        expect(headers.get("access-control-allow-origin")).toBeNull();
        expect(headers.get("cache-control")).toContain("no-store");
      }
      const signIn = await world.api("POST", "/auth/login", {
        key: null,
        body: world.credentials,
        headers: { host: "evil.example" },
      });
      expect(signIn.status).toBe(421);
    },
  },
  {
    name: "its page on another port, in the browser in which the owner is signed in",
    needsBrowser: true,
    async run(world, browser) {
      const id = await world.held({ headers: { authorization: CANARY } });
      await using watched = await watchPage(browser);
      const { page } = watched;
      await logIn(page, world.base);
      await page.goto(world.evil.url);
      expect(await page.evaluate("localStorage.length + document.cookie.length")).toBe(0);
      const cookie = world.evil.received.at(-1)?.headers.get("cookie") ?? "";
      expect(cookie).toContain("outgate_session=");
      const html = await (await fetch(`${world.base}/approvals/${id}`, { headers: { cookie } })).text();
      const fields = { form_token: world.tokenOf(html), decision: "approve", run: "1", session_secret: "0".repeat(64) };
      const path = `${world.base}/approvals/${id}`;
      const told = await page.evaluate(`(async () => {
        const init = { method: "POST", credentials: "include", body: new URLSearchParams(${JSON.stringify(fields)}) };
        const opaque = await fetch(${JSON.stringify(path)}, { ...init, mode: "no-cors" }).then((r) => r.status, () => 0);
        return [opaque, await fetch(${JSON.stringify(path)}, init).then(() => "read it", () => "blocked")];
      })()`);
      expect(told).toEqual([0, "blocked"]);
      const frame = `new Promise((done) => {
        const frame = Object.assign(document.createElement("iframe"), { src: ${JSON.stringify(path)} });
        frame.onload = () => { try { done(frame.contentDocument === null ? "hidden" : frame.contentDocument.body.innerText); } catch { done("hidden"); } };
        document.body.append(frame);
      })`;
      expect(await page.evaluate(frame)).not.toContain("Approve");
      const answered = page.waitForResponse(path);
      await page.evaluate(SENDS(path, fields));
      expect((await answered).status()).toBe(403);
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "markup of its own on every page of a held request, and what it loads",
    needsBrowser: true,
    async run(world, browser) {
      const bad = `"><img src=${world.evil.url}hit><script>fetch("${world.evil.url}hit")</script><style>@import "${world.evil.url}hit"</style><a href="javascript:alert(1)">x</a>`;
      const id = await world.held({
        url: `${world.target.url}?q=${encodeURIComponent(bad)}#${bad.replaceAll(" ", "%20")}`,
        headers: { "x-note": bad },
        body: { note: bad, [bad]: bad },
        reason: bad,
        notify: { email: ANN },
      });
      const { approve, fields } = await world.linksOf(id);
      await using watched = await watchPage(browser);
      const { page, troubles } = watched;
      await logIn(page, world.base);
      for (const path of [approve, "/approvals", `/approvals/${id}`, `/actions/${id}`, "/actions"]) {
        await page.goto(world.base + path);
        expect(await page.locator("a[href^='javascript'], img[src*='hit'], main script").count()).toBe(0);
      }
      // Of nobody's policy, as in a mail program.
      await page.goto("about:blank");
      await page.setContent(fields["html"] ?? "");
      expect(await page.locator("script, img, a[href*='hit'], a[href^='javascript']").count()).toBe(0);
      expect(troubles).toEqual([]);
      expect(world.evil.received.filter(({ path }) => path.includes("hit"))).toEqual([]);
    },
  },
  {
    name: "a payload pushed out of sight by what stands before and behind it",
    needsBrowser: true,
    async run(world, browser) {
      const pad = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`note_${n}`, " ".repeat(40)]));
      const id = await world.held({
        body: { hello: "world", ...pad, transfer_all_to: "mallory", zz: "\n".repeat(300) },
      });
      await using watched = await watchPage(browser);
      const { page } = watched;
      await logIn(page, world.base);
      await page.goto(`${world.base}/approvals/${id}`);
      const places: unknown = await page.evaluate(`(() => {
        const button = [...document.querySelectorAll("button")].find((one) => one.textContent.trim().startsWith("Approve"));
        const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
        const range = document.createRange();
        while (walker.nextNode()) {
          const at = walker.currentNode.data.indexOf("mallory");
          if (at === -1) continue;
          range.setStart(walker.currentNode, at);
          range.setEnd(walker.currentNode, at + 7);
        }
        const [text, act] = [range.getBoundingClientRect(), button.getBoundingClientRect()];
        return { isSized: text.height > 0 && text.width > 0, isBefore: text.bottom <= act.top, words: button.closest("form").innerText };
      })()`);
      expect(places).toMatchObject({ isSized: true });
      const { isBefore, words } = places as { isBefore: boolean; words: string };
      expect(isBefore || /\d+ (?:more )?lines?/.test(words)).toBe(true);
    },
  },
];

const MACHINE_ATTACKS: readonly Attack[] = [
  {
    name: "an account of its own, by every way to sign up",
    async run(world) {
      const email = `new-${world.mode}@evil.example`;
      const body = { email, password: PASSWORD };
      for (const headers of [{}, { "x-forwarded-for": "10.0.0.1" }, { origin: world.base }]) {
        const said = await world.api("POST", "/auth/signup", { key: null, body, headers });
        expect(said.status).toBe(403);
        expect(said.text).not.toContain("og_");
      }
      expect((await world.form("/auth/signup", body)).status).toBe(403);
      expect((await world.api("GET", "/signup", { key: null })).status).toBe(403);
      for (const token of ["0".repeat(64), "x", "%00"]) {
        expect((await world.form(`/welcome/${token}`, body)).status).toBeGreaterThanOrEqual(400);
      }
    },
  },
  {
    name: "many accounts at the very moment at which the first hold closes sign-ups, and what they had pending",
    mode: "B",
    async run(world) {
      await using service = new Service({ env: { RATE_LIMIT_PER_SECOND: "0" } });
      const base = await service.ready();
      const json = { "content-type": "application/json" };
      const signUp = async (name: string) => {
        const body = JSON.stringify({ email: `${name}@evil.example`, password: PASSWORD });
        const answer = await fetch(`${base}/auth/signup`, { method: "POST", headers: json, body });
        return { status: answer.status, key: /"api_key":"([^"]+)"/.exec(await answer.text())?.[1] ?? null };
      };
      const early = await signUp("early");
      const pending = await service.request("/v1/actions", {
        method: "POST",
        key: early.key ?? "",
        body: JSON.stringify({ url: `http://127.0.0.1:1/x`, retries: 5 }),
      });
      expect(pending.status).toBe(201);
      const closing = Bun.sleep(60).then(() =>
        service.request("/v1/keys", {
          method: "POST",
          body: JSON.stringify({ name: "a", role: "agent", hold: "writes" }),
        }),
      );
      const all = await Promise.all(Array.from({ length: 5 }, (_, n) => signUp(`racer${n}`)));
      expect((await closing).status).toBe(201);
      for (const { status, key } of [...all, early, await signUp("late")]) {
        if (key === null) {
          expect(status).toBe(403);
          continue;
        }
        const body = JSON.stringify({ url: `${world.target.url}racer` });
        expect((await service.request("/v1/actions", { method: "POST", key, body })).status).toBe(403);
        expect((await service.request("/v1/account", { key })).status).toBe(403);
      }
    },
  },
  {
    name: "an account from before the hold",
    mode: "B",
    async run(world) {
      expect(world.rival).toStartWith("og_");
      await using service = new Service();
      const base = await service.ready();
      const body = JSON.stringify({ email: "rival@evil.example", password: PASSWORD });
      const answer = await fetch(`${base}/auth/signup`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      const cookie = (answer.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";
      const key = /"api_key":"([^"]+)"/.exec(await answer.text())?.[1] ?? "";
      await service.request("/v1/keys", {
        method: "POST",
        body: JSON.stringify({ name: "a", role: "agent", hold: "all" }),
      });
      const send = JSON.stringify({ url: `${world.target.url}rival` });
      expect((await service.request("/v1/actions", { method: "POST", key, body: send })).status).toBe(403);
      const html = await (await fetch(`${base}/keys`, { headers: { cookie } })).text();
      const form_token = world.tokenOf(html);
      const fields = { form_token, name: "new", role: "owner", hold: "none", confirm_password: PASSWORD };
      const made = await fetch(`${base}/keys`, {
        method: "POST",
        headers: { cookie, origin: base },
        body: new URLSearchParams(fields),
      });
      expect(made.status).toBe(403);
      expect(await made.text()).not.toMatch(SECRETS);
    },
  },
  {
    name: "the command line with the agent's own key",
    async run(world) {
      const id = await world.held();
      const env = { OUTGATE_URL: world.base, OUTGATE_API_KEY: world.agent.key };
      for (const args of [
        ["approve", id, "--yes"],
        ["keys", "create", "--name", "evil", "--role", "owner"],
        ["audit"],
      ]) {
        const { code, out } = await outgate(args, { env });
        expect({ args, isRefused: code !== 0 }).toEqual({ args, isRefused: true });
        expect(out).not.toMatch(SECRETS);
      }
    },
  },
  {
    name: "the files of the service, as another user of the machine",
    async run(world) {
      const { folder } = world.service;
      const files = readdirSync(join(folder, "data")).map((name) => join(folder, "data", name));
      expect(files.length).toBeGreaterThanOrEqual(2);
      for (const file of [join(folder, "data"), ...files]) {
        expect({ file, mode: statSync(file).mode & 0o077 }).toEqual({ file, mode: 0 });
      }
      if (process.getuid?.() !== 0 || !existsSync("/usr/bin/setpriv")) return;
      const nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
      Bun.spawnSync(["chmod", "755", folder]);
      for (const file of [
        ...files,
        `/proc/${world.service.process.pid}/environ`,
        `/proc/${world.service.process.pid}/mem`,
      ]) {
        const { stdout } = Bun.spawnSync([...nobody, "head", "-c", "100", file]);
        expect({ file, bytes: stdout.length }).toEqual({ file, bytes: 0 });
      }
      Bun.spawnSync(["chmod", "700", folder]);
    },
  },
  {
    name: "a second Outgate of its own on the owner's database",
    async run(world) {
      const env = {
        DATABASE_URL: `file:${join(world.service.folder, "data/outgate.db")}`,
        PORT: "0",
        AGENT_APPROVAL: "elicit",
      };
      const { code, err, out } = await outgate(["mcp"], { env });
      expect(code).not.toBe(0);
      expect(err + out).not.toMatch(SECRETS);
    },
  },
  {
    name: "what the log of the service tells",
    async run(world) {
      const secret = "s3cr3tQ8z7Xw2Lr5Tn9";
      await world.held({
        url: `${world.target.url}x?token=${secret}`,
        headers: { authorization: CANARY },
        body: { password: secret },
      });
      await world.api("GET", `/r/${secret}?token=${secret}`, { key: null });
      await world.api("GET", `/a/${secret}`, { key: null });
      const lines = world.service
        .log()
        .map((line) => JSON.stringify(line))
        .join("\n");
      expect(lines).not.toContain(secret);
      expect(lines).not.toMatch(/cAn4ry9Zq8Xw2/);
      expect(lines).not.toContain(world.agent.key);
      expect(lines).not.toMatch(/\/welcome\/[0-9a-f]{64}/);
    },
  },
  {
    name: "the owner's password, by guesses with the cookie and from many addresses",
    async run(world) {
      const id = await world.held();
      const form_token = world.tokenOf(await world.pageOf(`/approvals/${id}`));
      const statuses: number[] = [];
      for (let n = 0; n < 8; n += 1) {
        const fields = { form_token, decision: "approve", run: "1", confirm_password: `guess number ${n}` };
        const headers = { cookie: world.cookie, "x-forwarded-for": `10.0.0.${n}` };
        statuses.push((await world.form(`/approvals/${id}`, fields, headers)).status);
      }
      // One was wrong before.
      expect(statuses).toEqual([401, 401, 401, 401, 429, 429, 429, 429]);
      expect(await world.statusOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "the port of the service at the other address of localhost, while the service runs",
    mode: "B",
    needsBrowser: true,
    needsIPv6: true,
    async run(_world, browser) {
      const port = await freePort();
      await using target = new Target();
      await using service = new Service({ env: { PORT: String(port) } });
      await service.ready();
      const link = await eventually(() => /\/welcome\/[0-9a-f]{64}/.exec(service.output)?.[0] ?? null, "the link");
      const agent = await service.request("/v1/keys", {
        method: "POST",
        body: JSON.stringify({ name: "a", role: "agent", hold: "all" }),
      });
      const { key } = (await agent.json()) as Json;
      const held = await service.request("/v1/actions", {
        method: "POST",
        key,
        body: JSON.stringify({ url: target.url }),
      });
      const { id } = (await held.json()) as Json;
      // The owner has signed in under a name of this machine that is ours, too.
      await using owner = await watchPage(browser);
      await owner.page.goto(`http://localhost:${port}${link}`);
      await owner.page.getByLabel("E-mail").fill(ANN);
      await owner.page.getByLabel("Password").fill(PASSWORD);
      await owner.page.getByRole("button", { name: "Make it mine" }).click();
      await owner.page.waitForURL("**/approvals");
      const state = await owner.page.context().storageState();
      // The agent listens at [::1], which browsers ask first. It may be refused that.
      let cookie = "";
      let evil: ReturnType<typeof Bun.serve> | null = null;
      try {
        evil = Bun.serve({
          port,
          hostname: "::1",
          reusePort: false,
          fetch(request) {
            cookie = request.headers.get("cookie") ?? cookie;
            return new Response("<h1>Preview</h1>", { headers: { "content-type": "text/html" } });
          },
        });
      } catch {
        return;
      }
      // The same browser, some seconds later: no connection of before is open.
      await using later = await watchPage(browser, { storageState: state });
      await later.page.goto(`http://localhost:${port}/approvals`);
      const session_secret = String(await later.page.evaluate('localStorage.getItem("outgate_session_secret")'));
      await evil.stop(true);
      const base = `http://127.0.0.1:${port}`;
      const html = await (await fetch(`${base}/approvals/${id}`, { headers: { cookie } })).text();
      const form_token = /name="form_token" value="(\w{64})"/.exec(html)?.[1] ?? "";
      await fetch(`${base}/approvals/${id}`, {
        method: "POST",
        headers: { cookie, origin: base },
        body: new URLSearchParams({ form_token, session_secret, decision: "approve", run: "1" }),
        redirect: "manual",
      });
      const answer = (await (await service.request(`/v1/actions/${id}?wait=2`)).json()) as Json;
      expect({ status: answer.status, received: target.received.length }).toEqual({
        status: "awaiting_approval",
        received: 0,
      });
    },
  },
];

const ATTACKS = [...MCP_ATTACKS, ...REST_ATTACKS, ...MAIL_ATTACKS, ...SESSION_ATTACKS, ...MACHINE_ATTACKS];

/** They take most of a minute: `npm run test:long`. */
const MODES_NOW = process.env["LONG_TESTS"] === undefined ? [] : (["A", "B"] as const);

test.skipIf(MODES_NOW.length > 0)("attacks over MCP, mail and pages (npm run test:long)", () => {});

describe.each(MODES_NOW)("in mode %s", (mode) => {
  let world: World;
  let browser: Browser;
  beforeAll(async () => {
    world = await openWorld(mode);
    if (HAS_BROWSER) browser = await openBrowser();
  }, BROWSER_START_MS_MAX);
  afterAll(async () => {
    if (HAS_BROWSER) await closeContexts(browser);
    await world[Symbol.asyncDispose]();
  });

  for (const {
    name,
    run,
    approved = 0,
    needsBrowser = false,
    needsIPv6 = false,
    succeeds = false,
    ...attack
  } of ATTACKS) {
    if (attack.mode !== undefined && attack.mode !== mode) continue;
    const isPossible = (!needsBrowser || HAS_BROWSER) && (!needsIPv6 || HAS_IPV6);
    const kind = succeeds ? test.failing : test;
    (isPossible ? kind : test.skip)(name, async () => {
      await world.newTarget();
      const { host } = new URL(world.target.url);
      await run(world, browser);
      // What goes out at all has gone out by then: each that was let through would be under way.
      const { json } = await world.api("GET", `/v1/actions?host=${host}&limit=100`);
      const sent = json.data.filter(({ status }) => status !== "awaiting_approval" && status !== "cancelled");
      expect(sent).toHaveLength(approved);
      expect(world.target.received).toHaveLength(approved);
    });
  }
});
