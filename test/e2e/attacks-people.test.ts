import { hiddenIn } from "../support/forms.ts";
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
  /** What the form of a request says that its page shows. */
  const shownOf = async (id: string) => hiddenIn(await pageOf(`/approvals/${id}`))["requests"] ?? "";
  const mailsOf = (id: string) =>
    mailbox.mails.filter(({ fields }) => fields["v:action_id"] === id && LINK.test(fields["text"] ?? ""));

  return {
    mode,
    hold,
    base,
    mcp: `${base}/mcp`,
    service,
    mailbox,
    rival,
    evil,
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
    shownOf,
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

async function logIn(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/login`);
  await page.getByLabel("Email").fill(ANN);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL("**/approvals");
}

/** Every form that changes something by a session, or shows a secret. */
const formsFor = (
  id: string,
  keyId: string,
  requests: string,
): readonly (readonly [string, Readonly<Record<string, string>>])[] => [
  [`/approvals/${id}`, { decision: "approve", requests }],
  [`/actions/${id}`, { decision: "approve", requests }],
  [`/actions/${id}`, { decision: "retry_and_approve", requests }],
  [`/actions/${id}/reveal`, {}],
  [`/actions/${id}/again`, { sure: "yes" }],
  ["/actions", { status: "failed" }],
  ["/keys", { name: "evil", role: "owner", hold: "none" }],
  [`/keys/${keyId}/revoke`, { unfinished: "keep" }],
  ["/settings/pauses", { scope: "account" }],
  ["/settings/pauses/pse_00000000000000000000000000/resume", {}],
  ["/settings/signing-secret", { origin: "https://a.example", for: "calls" }],
  ["/settings/rotation", { origin: "https://a.example", for: "calls", seen: "none" }],
  ["/settings/rules", { name: "Everything", effect: "allow" }],
  ["/settings/callback-hosts", { host: "evil.example" }],
  ["/settings/callback-hosts/remove", { host: "evil.example" }],
  ["/settings/password", { current_password: "guessed guess", password: "mine from now on" }],
];

/** Everything that an owner can change, as it is now. */
async function settingsOf(world: World): Promise<readonly string[]> {
  const paths = [
    "/v1/keys",
    "/v1/callback-hosts",
    "/v1/rules",
    "/v1/pauses",
    "/v1/signing-secret?origin=https://a.example",
  ];
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
    name: "asking for what a person rejected, for a reason of characters that cannot be seen",
    async run(world) {
      const members = { body: { amount: 3, to: world.mode } };
      await world.api("POST", `/v1/actions/${await world.held(members)}/cancel`, { body: { reason: "No." } });
      expect((await world.create({ ...members, reason: "\u200b\u2060" })).status).toBe(400);
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
      expect(about.map(({ kind, actor }) => [kind, actor])).toEqual([["cancelled", "key:agent"]]);
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
];

const MAIL_ATTACKS: readonly Attack[] = [
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
      for (const [path, fields] of formsFor(id, world.other.keyId, await world.shownOf(id))) {
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
      const fields = { ...hiddenIn(html), decision: "approve", session_secret: "0".repeat(64) };
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
      const { isSized, isBefore, words } = places as { isSized: boolean; isBefore: boolean; words: string };
      // It is in view before the button, or the button says that lines are missing.
      expect((isSized && isBefore) || /\d+ (?:more )?lines?/.test(words)).toBe(true);
    },
  },
];

const MACHINE_ATTACKS: readonly Attack[] = [
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
    },
  },
  {
    name: "the owner's password, by guesses with the cookie and from many addresses",
    async run(world) {
      const id = await world.held();
      const shown = hiddenIn(await world.pageOf(`/approvals/${id}`));
      const statuses: number[] = [];
      for (let n = 0; n < 8; n += 1) {
        const fields = { ...shown, decision: "approve", confirm_password: `guess number ${n}` };
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
      await owner.page.getByLabel("Email").fill(ANN);
      await owner.page.getByLabel("Password").fill(PASSWORD);
      await owner.page.getByRole("button", { name: "Create login" }).click();
      await owner.page.waitForURL(/\/(approvals|overview|get-started)/);
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
      await fetch(`${base}/approvals/${id}`, {
        method: "POST",
        headers: { cookie, origin: base },
        body: new URLSearchParams({ ...hiddenIn(html), session_secret, decision: "approve" }),
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
