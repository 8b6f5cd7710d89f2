import { hiddenIn } from "../support/forms.ts";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { exchange } from "../http/wire.ts";
import { eventually } from "../support/eventually.ts";
import { type KeptMail, Mailbox } from "../support/mailbox.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

// An agent that has a key, runs on the same machine, has a web server and a mailbox of its own, and is malicious.
setDefaultTimeout(30_000);

const ANN = "ann@example.com";
const MALLORY = "mallory@evil.example";
const PASSWORD = "correct horse battery staple";
const SESSION_SECRET = "5e".repeat(32);
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JSON_TYPE = { "content-type": "application/json" };
/** How long a call that should not be sent has to leave after an attack; all targets are looked at again in the end. */
const SETTLE_MS = 30;
const RACERS = 30;

type Fields = Readonly<Record<string, unknown>>;
type Headers_ = Readonly<Record<string, string>>;
interface Answer {
  readonly status: number;
  readonly json: Fields;
  readonly text: string;
  readonly headers: Headers;
}
interface Asked {
  readonly key?: string;
  /** A text is sent as it is. */
  readonly body?: unknown;
  readonly headers?: Headers_;
}

interface Mode {
  readonly name: string;
  readonly hold: "all" | "writes";
  readonly env: Readonly<Record<string, string>>;
}
const MODES: readonly Mode[] = [
  { name: "mode A", hold: "all", env: { AGENT_APPROVAL: "off", APPROVERS: ANN } },
  { name: "mode B", hold: "writes", env: {} },
];

/** One service, and everybody who has to do with it. */
class World implements AsyncDisposable {
  readonly mode: Mode;
  readonly mailbox = new Mailbox();
  readonly service: Service;
  /** The agent's own web server: what comes here has got out. */
  readonly evil = new Target();
  /** A host that the owner has listed for callbacks. */
  readonly listed = new Target();
  readonly keys: Record<string, string> = {};
  readonly keyIds: Record<string, string> = {};
  /** Keys of accounts that were signed up before, and while, the first key with a hold was made. */
  readonly early: string[] = [];
  readonly victims: { readonly name: string; readonly target: Target; allowed: number }[] = [];
  base = "";
  /** The session cookie of the account's person. */
  cookie = "";

  constructor(mode: Mode) {
    this.mode = mode;
    // Without a limit, since one attack makes hundreds of requests; and with short delays, so that a retry would be seen.
    const quick = { RATE_LIMIT_PER_SECOND: "0", RETRY_BASE_MS: "10", RETRY_CAP_MS: "20" };
    this.service = new Service({ env: { ...this.mailbox.env, ...quick, ...mode.env } });
  }

  /** Starts it, with its first person. */
  async start(): Promise<void> {
    this.base = await this.service.ready();
    const welcome = await eventually(
      () => /\/welcome\/[0-9a-f]{64}/.exec(this.service.output)?.[0] ?? null,
      "the link",
    );
    const form = new URLSearchParams({ email: ANN, password: PASSWORD, session_secret: SESSION_SECRET }).toString();
    const entered = await this.ask("POST", welcome, { body: form, headers: { ...FORM, origin: this.base } });
    this.cookie = (entered.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";
  }

  async open(): Promise<this> {
    await this.start();
    const signUp = async (email: string) => {
      const { json } = await this.ask("POST", "/auth/signup", { body: { email, password: PASSWORD } });
      if (typeof json["api_key"] === "string") this.early.push(json["api_key"]);
    };
    await signUp("early@evil.example");
    await Promise.all([
      ...[1, 2].map((count) => signUp(`race-${count}@evil.example`)),
      Bun.sleep(100).then(() => this.newAgent()),
    ]);
    await this.addKey("other", { role: "agent" });
    await this.addKey("wide", { role: "agent", scope: "account" });
    await this.addKey("reader", { role: "reader", hold: "none" });
    await this.addKey("approver", { role: "approver", hold: "none" });
    await this.ask("POST", "/v1/callback-hosts", { key: OWNER_KEY, body: { host: hostOf(this.listed) } });
    return this;
  }

  async addKey(name: string, members: object): Promise<string> {
    const { json } = await this.ask("POST", "/v1/keys", {
      key: OWNER_KEY,
      body: { name, hold: this.mode.hold, ...members },
    });
    this.keys[name] = String(json["key"]);
    this.keyIds[name] = String(json["id"]);
    return String(json["key"]);
  }

  /** The agent is given another key, so that what it asks for next stands on the first page of the inbox. */
  newAgent(): Promise<string> {
    return this.addKey("agent", { role: "agent" });
  }

  async ask(method: string, path: string, { key, body, headers = {} }: Asked = {}): Promise<Answer> {
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const answer = await fetch(this.base + path, {
      method,
      redirect: "manual",
      headers: { ...(text === undefined ? {} : JSON_TYPE), ...authorization, ...headers },
      ...(text === undefined ? {} : { body: text }),
    });
    return answerOf(answer);
  }

  /** The same with the key of the agent that attacks. */
  by(method: string, path: string, asked: Asked = {}): Promise<Answer> {
    return this.ask(method, path, { key: this.keys["agent"] ?? "", ...asked });
  }

  create(request: unknown, headers: Headers_ = {}): Promise<Answer> {
    return this.by("POST", "/v1/actions", { body: request, headers });
  }

  async held(request: object): Promise<string> {
    const { status, json } = await this.create(request);
    expect({ status, state: json["status"] ?? json }).toEqual({ status: 201, state: "awaiting_approval" });
    return String(json["id"]);
  }

  owner(verb: "approve" | "cancel" | "retry", id: string, body: object = { reason: "said the owner" }) {
    return this.ask("POST", `/v1/actions/${id}/${verb}`, { key: OWNER_KEY, body });
  }

  async stateOf(id: string): Promise<unknown> {
    return (await this.ask("GET", `/v1/actions/${id}`, { key: OWNER_KEY })).json["status"];
  }

  async final(id: string): Promise<unknown> {
    return (await this.ask("GET", `/v1/actions/${id}?wait=10`, { key: OWNER_KEY })).json["status"];
  }

  /** Mails that ask about an action, when so many have come. */
  mailOf(id: string, count = 1): Promise<KeptMail> {
    const asks = ({ fields }: KeptMail) => fields["v:action_id"] === id && !(fields["subject"] ?? "").startsWith("Re:");
    return eventually(() => this.mailbox.mails.filter(asks)[count - 1] ?? null, "the mail");
  }

  /** A page as the account's person sees it. */
  async page(path: string): Promise<string> {
    return textOf((await this.ask("GET", path, { headers: { cookie: this.cookie } })).text);
  }

  async decideBy(link: string, decision = "approve", headers: Headers_ = {}): Promise<Answer> {
    return (await this.opened(link))(decision, headers);
  }

  /** Presses a button of the page of a link as often as it is called. */
  async opened(link: string) {
    const shown = hiddenIn((await this.ask("GET", link)).text);
    return (decision = "approve", headers: Headers_ = {}): Promise<Answer> => {
      const body = new URLSearchParams({ ...shown, decision }).toString();
      return this.ask("POST", link, { body, headers: { ...FORM, ...headers } });
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    const targets = [this.evil, this.listed, this.mailbox, ...this.victims.map(({ target }) => target)];
    await Promise.all(targets.map((one) => one[Symbol.asyncDispose]()));
  }
}

async function answerOf(answer: Response): Promise<Answer> {
  const text = await answer.text();
  let json: Fields = {};
  try {
    json = JSON.parse(text) as Fields;
  } catch {
    // A page.
  }
  return { status: answer.status, json, text, headers: answer.headers };
}

function hostOf(target: Target): string {
  return new URL(target.url).host;
}

function textOf(html: string): string {
  return html
    .replaceAll(/<style>.*?<\/style>|<head>.*?<\/head>|<[^>]+>/gs, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll(/&#x27;|&#39;/g, "'")
    .replaceAll("&amp;", "&");
}

/** The links of a mail: approve, reject. */
function linksIn({ fields }: KeptMail): readonly [approve: string, reject: string] {
  const [approve = "", reject = ""] = [...(fields["text"] ?? "").matchAll(/\/a\/[\w-]+/g)].map(([path]) => path);
  return [approve, reject];
}

const isRefused = ({ status }: Answer) => status >= 400 && status < 500;
const statuses = (answers: readonly Answer[]) =>
  [...new Set(answers.map(({ status }) => status))].toSorted((a, b) => a - b);
const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const NOTIFY = { notify: { email: ANN } };

/** What an attack has to do with: the service, and a target that nobody but a person may have called. */
interface Scene {
  readonly w: World;
  readonly victim: Target;
  readonly url: string;
}

interface Attack {
  /** What it tries. */
  readonly name: string;
  /** How many calls a person has approved by the end of it: so many may have come to the target, and no more. */
  readonly run: (scene: Scene) => Promise<number | void>;
  /** What the target answers. */
  readonly target?: () => Target;
  /** In which modes it still succeeds. */
  readonly succeeds?: readonly string[];
}

/** Creates that all have to be refused, and none of which may leave a row. */
async function allRefused({ w }: Scene, requests: readonly unknown[], headers: Headers_ = {}): Promise<void> {
  for (const request of requests) {
    const answer = await w.create(request, headers);
    expect({ request, status: answer.status, isRefused: isRefused(answer) }).toMatchObject({ isRefused: true });
  }
}

/** A person rejects the first; how many of the variants may be asked for all the same. */
async function askedAgain({ w }: Scene, first: object, variants: readonly unknown[]): Promise<number> {
  const id = await w.held(first);
  expect((await w.owner("cancel", id)).status).toBe(200);
  let asked = 0;
  for (const variant of variants) {
    const { status, json } = await w.create(variant);
    if (status === 201) asked += 1;
    else expect({ status, code: (json["error"] as Fields)["code"] }).toEqual({ status: 403, code: "forbidden" });
  }
  return asked;
}

/** What whoever decides reads of a request: mail, link page, page for several at once, page of the inbox. */
async function placesOf({ w }: Scene, id: string): Promise<Readonly<Record<string, string>>> {
  const mail = await w.mailOf(id);
  const [approve] = linksIn(mail);
  return {
    mail: mail.fields["text"] ?? "",
    link: textOf((await w.ask("GET", approve)).text),
    review: await w.page(`/approvals/review?id=${id}`),
    held: await w.page(`/approvals/${id}`),
  };
}

/** What "View the whole body" leads to, on the page of the link and on that of whoever is logged in. */
async function wholeBodiesOf({ w }: Scene, id: string): Promise<readonly string[]> {
  const [approve] = linksIn(await w.mailOf(id));
  const views = [
    { page: approve, headers: {} },
    { page: `/approvals/${id}`, headers: { cookie: w.cookie } },
  ];
  return Promise.all(
    views.map(async ({ page, headers }) => {
      const { text } = await w.ask("GET", page, { headers });
      const [, path = ""] = /<a href="([^"]+)"[^>]*>\s*View the whole body/.exec(text) ?? [];
      return textOf((await w.ask("GET", path.replaceAll("&amp;", "&"), { headers })).text);
    }),
  );
}

const SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
const HUNTER = "hunter2-canary";

const ATTACKS: readonly Attack[] = [
  // ---- Unapproved sends
  {
    name: "A writing method is spelled so that a hold on writes takes it for a read, and a GET carries a body",
    run: async (scene) => {
      const { w, url } = scene;
      for (const method of ["POST", "PUT", "PATCH", "DELETE"]) await w.held({ url, method });
      const methods = ["get", "Get", " GET", "GET ", "GET\r\n", "HEAD", "OPTIONS", "QUERY", "TRACE", "", 0, ["GET"]];
      await allRefused(
        scene,
        methods.map((method) => ({ url, method })),
      );
      await allRefused(scene, [
        { url, method: "GET", body: {} },
        { url, method: "GET", headers: { "Content-Length": "9" } },
        { url, method: "GET", headers: { "Transfer-Encoding": "chunked" } },
        `{"url":"${url}","method":"GET","method":"POST","sync":true}`,
      ]);
    },
  },
  {
    name: "Approve is asked for under other spellings of its path and by method overrides",
    run: async ({ w, url }) => {
      const id = await w.held({ url });
      const path = `/v1/actions/${id}`;
      const ways: readonly (readonly [string, string, Headers_?])[] = [
        ["POST", `${path}/approve/`],
        ["POST", `${path}/%61pprove`],
        ["POST", `/V1/actions/${id}/approve`],
        ["POST", `//v1/actions/${id}/approve`],
        ["POST", `${path}/./approve`],
        ["POST", `${path}/cancel/../approve`],
        ["POST", `${path}/approve?role=owner`],
        ["POST", `${path}/approve;x`],
        ["GET", `${path}/approve`],
        ["PUT", `${path}/approve`],
        ["GET", `${path}/approve`, { "x-http-method-override": "POST" }],
        ["POST", path, { "x-original-url": `${path}/approve`, "x-rewrite-url": `${path}/approve` }],
        ["POST", `${path}/approve`, { "x-forwarded-user": "ann", "x-role": "owner", "x-outgate-role": "owner" }],
      ];
      for (const [method, at, headers = {}] of ways) {
        expect({ method, at, isRefused: isRefused(await w.by(method, at, { headers })) }).toMatchObject({
          isRefused: true,
        });
      }
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "Somebody else's key is put beside the agent's, or guessed",
    run: async ({ w, url }) => {
      const id = await w.held({ url });
      const agent = w.keys["agent"] ?? "";
      const tries = [
        `Bearer ${agent}, Bearer owner`,
        `Bearer ${agent} owner`,
        `Basic ${btoa(`owner:${agent}`)}`,
        `Bearer ${agent.slice(0, -1)}`,
        `Bearer ${agent.toUpperCase()}`,
        `Bearer ' OR 1=1 --`,
        `Bearer ${w.keyIds["approver"]}`,
        "Bearer null",
      ];
      for (const authorization of tries) {
        const answer = await w.ask("POST", `/v1/actions/${id}/approve`, { headers: { authorization } });
        expect({ authorization, status: answer.status }).toEqual({ authorization, status: 401 });
      }
      const inQuery = await w.ask("POST", `/v1/actions/${id}/approve?access_token=${agent}`);
      expect(inQuery.status).toBe(401);
    },
  },
  {
    name: "What was approved is edited while it waits and before it is sent",
    run: async ({ w, url }) => {
      const id = await w.held({ url, body: { amount: 1 }, headers: { "X-Order": "1" } });
      const edited = { url: w.evil.url, body: { amount: 1_000_000 } };
      const edits = async () => {
        for (const method of ["PUT", "PATCH", "POST", "DELETE"]) {
          expect(isRefused(await w.by(method, `/v1/actions/${id}`, { body: edited }))).toBe(true);
        }
        for (const verb of ["cancel", "retry"]) {
          expect(isRefused(await w.by("POST", `/v1/actions/${id}/${verb}`, { body: edited }))).toBe(true);
        }
      };
      await edits();
      await w.owner("approve", id);
      await edits();
      expect(await w.final(id)).toBe("completed");
      return 1;
    },
    target: () => new Target(({ body }) => new Response(null, { status: body === '{"amount":1}' ? 200 : 500 })),
  },
  {
    name: "A member is given twice, once with an escaped name, so that another one is sent than was judged",
    run: async (scene) => {
      const { w, url } = scene;
      const exact = String.raw`{"url":"${w.evil.url}","method":"GET","body":{"amount":1.0},"\u0062ody":{"amount":2.0,"amount":3.0},"\u0075rl":"${url}","meth\u006fd":"POST","approve":true,"approve":false,"notify":{"email":"${ANN}"}}`;
      const { status, json } = await w.create(exact);
      expect({ status, state: json["status"], url: json["url"] }).toEqual({
        status: 201,
        state: "awaiting_approval",
        url,
      });
      const places = await placesOf(scene, String(json["id"]));
      for (const shown of Object.values(places)) expect(shown).toMatch(/"amount": ?3\.0/);
      await w.owner("approve", String(json["id"]));
      expect(await w.final(String(json["id"]))).toBe("completed");
      return 1;
    },
    target: () => new Target(({ body }) => new Response(null, { status: body === '{"amount":3.0}' ? 200 : 500 })),
  },
  {
    name: "Numbers that no double holds and halves of surrogate pairs are sent other than they are shown",
    run: async (scene) => {
      const { w, url } = scene;
      const body = String.raw`{"to":12345678901234567890,"e":1e999,"s":"\ud800","z":"a\u0000b"}`;
      const { json } = await w.create(`{"url":"${url}","body":${body},"notify":{"email":"${ANN}"}}`);
      const id = String(json["id"]);
      const { held } = await placesOf(scene, id);
      for (const part of ["12345678901234567890", "1e999"]) expect(held).toContain(part);
      await w.owner("approve", id);
      await w.final(id);
      for (const part of ["12345678901234567890", "1e999"]) expect(scene.victim.received[0]?.body).toContain(part);
      return 1;
    },
  },
  // ---- Roles
  {
    name: "The agent's key is shown to the pages, as bearer, cookie and form",
    run: async ({ w, url }) => {
      const id = await w.held({ url });
      const key = w.keys["agent"] ?? "";
      const headers = { ...FORM, cookie: `outgate_session=${key}`, origin: w.base };
      for (const path of [
        `/approvals/${id}`,
        "/keys",
        "/settings/callback-hosts",
        "/settings/pauses",
        "/settings/rules",
        `/actions/${id}`,
      ]) {
        const body = "decision=approve&run=1&role=owner&name=x&hold=none&host=evil.example";
        const answer = await w.by("POST", path, { body, headers });
        expect([303, 401, 403]).toContain(answer.status);
        expect(answer.headers.get("location") ?? "/login").toStartWith("/login");
      }
      expect((await w.by("GET", "/approvals")).headers.get("location") ?? "").toStartWith("/login");
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "An account that was signed up before, or in the very moment in which sign-ups closed, sends",
    run: async ({ w, url }) => {
      expect(w.early.length).toBeGreaterThanOrEqual(w.mode.hold === "writes" ? 1 : 0);
      for (const key of w.early) {
        for (const request of [{ url }, { url, method: "GET" }]) {
          const answer = await w.ask("POST", "/v1/actions", { key, body: request });
          expect([answer.status, answer.json["status"]]).toEqual([403, undefined]);
        }
        expect((await w.ask("GET", "/v1/accounts", { key })).status).toBe(403);
      }
    },
  },
  // ---- Callbacks
  {
    name: "A listed callback host redirects the callback to the agent's server",
    run: async ({ w, url }) => {
      const redirecting = new Target(() => new Response(null, { status: 307, headers: { location: w.evil.url } }));
      w.victims.push({ name: "redirects", target: redirecting, allowed: Number.POSITIVE_INFINITY });
      await w.ask("POST", "/v1/callback-hosts", { key: OWNER_KEY, body: { host: hostOf(redirecting) } });
      const id = await w.held({ url, callback: redirecting.url, body: { password: HUNTER } });
      await redirecting.saw(1);
      expect(redirecting.received[0]?.headers.get("webhook-signature")).toBeTruthy();
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "A callback goes on to a host that the owner has struck off the list",
    run: async ({ w, url }) => {
      const struck = new Target();
      w.victims.push({ name: "struck", target: struck, allowed: 1 });
      await w.ask("POST", "/v1/callback-hosts", { key: OWNER_KEY, body: { host: hostOf(struck) } });
      const id = await w.held({ url, callback: struck.url });
      await struck.saw(1);
      const path = `/v1/callback-hosts?host=${encodeURIComponent(hostOf(struck))}`;
      expect((await w.ask("DELETE", path, { key: OWNER_KEY })).status).toBe(204);
      await w.by("POST", `/v1/actions/${id}/cancel`);
      await Bun.sleep(SETTLE_MS);
      expect(struck.received).toHaveLength(1);
    },
  },
  // ---- Mail and approval links
  {
    name: "notify.email is spelled so that it looks like an approver's: plus, unicode, lists, quotes, line ends",
    run: async (scene) => {
      const { w, url } = scene;
      const spelled = [
        "ann+x@example.com",
        "ann@example.com.evil.example",
        "ann@example.com@evil.example",
        `${ANN},${MALLORY}`,
        `${ANN};${MALLORY}`,
        `${ANN} ${MALLORY}`,
        `Ann <${MALLORY}>`,
        `${ANN}\r\nBcc: ${MALLORY}`,
        `${ANN}\nTo: ${MALLORY}`,
        `${ANN}\u0000${MALLORY}`,
        `"${ANN}"@evil.example`,
        "\u0430nn@example.com",
        "ann@ex\u0430mple.com",
        "ann@\uff45xample.com",
        "ann@example.com.",
        "ann@example\u3002com",
        "ann%evil.example@example.com",
        " ann@example.com",
      ];
      const emails = [...spelled, [ANN, MALLORY], { address: ANN }];
      await allRefused(
        scene,
        emails.map((email) => ({ url, notify: { email } })),
      );
      await allRefused(scene, [{ url, notify: { email: ANN, bcc: MALLORY } }]);
      expect(w.mailbox.posted.filter(({ fields }) => fields["to"] !== ANN)).toEqual([]);
    },
  },
  {
    name: "Tokens of approval links are guessed, altered and read out of ids and receipts",
    run: async ({ w, url }) => {
      const id = await w.held({ url, ...NOTIFY });
      const [approve] = linksIn(await w.mailOf(id));
      const token = approve.slice(3);
      const receipt = String((await w.by("GET", `/v1/actions/${id}`)).json["receipt_url"]);
      const guesses = [
        ...times(30, () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url")),
        token.slice(0, -1),
        `${token}A`,
        (token.startsWith("A") ? "B" : "A") + token.slice(1),
        token.toUpperCase() === token ? token.toLowerCase() : token.toUpperCase(),
        receipt.split("/").at(-1) ?? "",
        id,
        "",
        "%00",
        "../a",
      ];
      const answers = await Promise.all(guesses.map((guess) => w.decideBy(`/a/${guess}`)));
      expect(answers.every(isRefused)).toBe(true);
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
  {
    name: "An approval link is looked for in every answer, callback, receipt and log line",
    run: async ({ w, url }) => {
      const id = await w.held({ url, ...NOTIFY, callback: w.listed.url });
      const links = linksIn(await w.mailOf(id)).map((link) => link.slice(3));
      const paths = [
        `/v1/actions/${id}`,
        `/v1/actions/${id}/timeline`,
        `/v1/actions/${id}/facts`,
        "/v1/actions?limit=100",
        "/metrics",
        "/health",
      ];
      const told = await Promise.all(paths.map(async (path) => (await w.by("GET", path)).text));
      const receipt = String((await w.by("GET", `/v1/actions/${id}`)).json["receipt_url"]);
      told.push((await w.ask("GET", new URL(receipt, w.base).pathname)).text);
      told.push(w.service.output, JSON.stringify(w.listed.received));
      for (const text of told) for (const link of links) expect(text).not.toContain(link);
    },
  },
  {
    name: "The Host and forwarding headers of a create make the links of its mail lead to the agent's server",
    run: async ({ w, url }) => {
      const evil = hostOf(w.evil);
      const headers = {
        host: evil,
        "x-forwarded-host": evil,
        forwarded: `host=${evil}`,
        origin: new URL(w.evil.url).origin,
      };
      const { json } = await w.create({ url, ...NOTIFY }, headers);
      const mail = await w.mailOf(String(json["id"]));
      expect(JSON.stringify(mail.fields)).not.toContain(evil);
      expect(mail.fields["text"]).toContain(`${w.base}/a/`);
    },
  },
  {
    name: "Links are opened by HEAD, GET, prefetches and pages of other sites",
    run: async ({ w, url }) => {
      const id = await w.held({ url, ...NOTIFY });
      const [approve] = linksIn(await w.mailOf(id));
      const sites: readonly Headers_[] = [
        {},
        { "sec-purpose": "prefetch" },
        { purpose: "prefetch" },
        { "x-moz": "prefetch" },
        { "x-http-method-override": "POST" },
      ];
      for (const headers of sites) {
        for (const method of ["HEAD", "GET", "OPTIONS"])
          await w.ask(method, `${approve}?decision=approve`, { headers });
      }
      const evil = new URL(w.evil.url).origin;
      for (const headers of [{ origin: evil }, { "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }]) {
        expect((await w.decideBy(approve, "approve", headers)).status).toBe(403);
      }
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
  // ---- Races
  {
    name: "30 approvals of agents race one rejection",
    run: async ({ w, url }) => {
      const id = await w.held({ url });
      const names = ["agent", "other", "wide"];
      await Promise.all([
        ...times(RACERS, (at) =>
          w.ask("POST", `/v1/actions/${id}/approve`, { key: w.keys[names[at % 3] ?? ""] ?? "" }),
        ),
        w.owner("cancel", id),
      ]);
      expect(await w.stateOf(id)).toBe("cancelled");
    },
  },
  {
    name: "30 presses of the link race a cancel: what was cancelled before it was approved is sent",
    run: async ({ w, url }) => {
      let approved = 0;
      for (let round = 0; round < 3; round += 1) {
        const id = await w.held({ url, ...NOTIFY, body: { round } });
        const [approve] = linksIn(await w.mailOf(id));
        const press = await w.opened(approve);
        await Promise.all([...times(RACERS, () => press()), w.by("POST", `/v1/actions/${id}/cancel`)]);
        const state = await w.final(id);
        const { json } = await w.ask("GET", `/v1/actions/${id}/timeline`, { key: OWNER_KEY });
        const types = (json["data"] as readonly { readonly type: string }[]).map(({ type }) => type);
        // One decision: it was approved and perhaps cancelled before it left, or rejected.
        expect(types.filter((type) => type === "approved" || type === "rejected")).toHaveLength(1);
        if (types.includes("approved") && state === "completed") approved += 1;
      }
      return approved;
    },
  },
  {
    name: "A cancel, a retry and the person's press of run 1 race 30 times: run 2 goes out on the approval of run 1",
    run: async ({ w, url }) => {
      let sent = 0;
      for (let round = 0; round < 4; round += 1) {
        const id = await w.held({ url, ...NOTIFY, body: { round: `swap ${round}` } });
        const [approve] = linksIn(await w.mailOf(id));
        const swap = async () => {
          await w.by("POST", `/v1/actions/${id}/cancel`);
          await w.by("POST", `/v1/actions/${id}/retry`);
        };
        const press = await w.opened(approve);
        await Promise.all([...times(5, swap), ...times(5, () => press())]);
        const { json } = await w.ask("GET", `/v1/actions/${id}/timeline`, { key: OWNER_KEY });
        const rows = json["data"] as readonly { readonly type: string; readonly run: number }[];
        const approvals = rows.filter(({ type }) => type === "approved");
        for (const approval of approvals) expect(approval.run).toBe(1);
        for (const row of rows.filter(({ type }) => type === "started")) expect(row.run).toBe(1);
        sent += approvals.length;
      }
      return sent;
    },
  },
  {
    name: "60 creates with one Idempotency-Key and 60 different bodies race, and one is approved",
    run: async ({ w, url, victim }) => {
      const headers = { "idempotency-key": `race-${url}` };
      const answers = await Promise.all(times(2 * RACERS, (at) => w.create({ url, body: { at } }, headers)));
      const ids = new Set(answers.map(({ json }) => String(json["id"])));
      expect([ids.size, answers.filter(({ status }) => status === 201).length]).toEqual([1, 1]);
      const [id = ""] = ids;
      const shown = await w.ask("GET", `/v1/actions/${id}`, { key: OWNER_KEY });
      await w.owner("approve", id);
      await w.final(id);
      expect(victim.received.map(({ body }) => body)).toEqual([JSON.stringify(shown.json["body"])]);
      return 1;
    },
  },
  {
    name: "30 creates, retries and reads race the revocation of their key",
    run: async ({ w, url }) => {
      const key = await w.addKey("leaked", { role: "agent" });
      const isOver: number[] = [];
      let isRevoked = false;
      const flood = times(RACERS, async (at) => {
        for (let count = 0; count < 10; count += 1) {
          const begunAfter = isRevoked;
          const body = { url, body: { at, count } };
          const { status } = await w.ask("POST", "/v1/actions", { key, body });
          if (begunAfter) isOver.push(status);
        }
      });
      const revoked = await w.ask("DELETE", `/v1/keys/${w.keyIds["leaked"]}?unfinished=cancel`, { key: OWNER_KEY });
      isRevoked = true;
      await Promise.all(flood);
      const late = await Promise.all(times(RACERS, () => w.ask("POST", "/v1/actions", { key, body: { url } })));
      expect([revoked.status, statuses(late), [...new Set(isOver)].filter((status) => status !== 401)]).toEqual([
        200,
        [401],
        [],
      ]);
    },
  },
  {
    name: "What a pause stops is created, approved and retried in the moment of the pause",
    run: async ({ w, url, victim }) => {
      const method = w.mode.hold === "writes" ? "GET" : "POST";
      const key = await w.addKey("paused", { role: "agent" });
      const pause = await w.ask("POST", "/v1/pauses", { key: OWNER_KEY, body: { key_id: w.keyIds["paused"] } });
      expect(pause.status).toBe(201);
      const id = String(pause.json["id"]);
      const made = await Promise.all(times(RACERS, () => w.ask("POST", "/v1/actions", { key, body: { url, method } })));
      await Promise.all(
        made.flatMap(({ json }) => [
          w.owner("approve", String(json["id"])),
          w.ask("POST", `/v1/actions/${String(json["id"])}/retry`, { key }),
        ]),
      );
      expect((await w.ask("DELETE", `/v1/pauses/${id}`, { key })).status).toBe(403);
      await Bun.sleep(SETTLE_MS);
      expect(victim.received).toEqual([]);
      await w.ask("DELETE", `/v1/keys/${w.keyIds["paused"]}?unfinished=cancel`, { key: OWNER_KEY });
    },
  },
  // ---- A no is heard
  {
    name: "A rejected request is asked for 30 times at once",
    run: async ({ w, url }) => {
      const id = await w.held({ url, body: { at: "once" } });
      await w.owner("cancel", id);
      const body = { url, body: { at: "once" }, reason: "please" };
      const answers = await Promise.all(times(RACERS, () => w.create(body)));
      expect(answers.filter(({ status }) => status === 201).length).toBeLessThanOrEqual(2);
    },
  },
  {
    name: "A rejected request is asked for under another spelling of host, path, fragment, headers and type",
    run: async (scene) => {
      const { url } = scene;
      const { port } = new URL(url);
      const body = { to: "x" };
      const reason = "please";
      const variants = [
        `HTTP://127.0.0.1:${port}/pay`,
        `http://127.1:${port}/pay`,
        `http://0x7f000001:${port}/pay`,
        `http://127.0.0.1.:${port}/pay`,
        `http://127.0.0.1:0${port}/pay`,
        `${url}pay#other`,
        `${url}./pay`,
        `${url}x/../pay`,
        `${url}%2e/pay`,
        `${url}x/%2E%2e/pay`,
      ].map((spelled) => ({ url: spelled, body, reason }));
      const dressed = [
        { headers: { "X-Try": "1" } },
        { headers: { "Content-Type": "application/json; charset=utf-8" } },
        { headers: { "Content-Type": "application/vnd.x+json" } },
        { retries: 7, on_unknown: "stop" },
        { dedupe: `pay-${port}` },
        { ...NOTIFY },
        { callback: scene.w.listed.url },
      ].map((more) => ({ url: `${url}pay`, body, reason, ...more }));
      expect(await askedAgain(scene, { url: `${url}pay`, body }, [...variants, ...dressed])).toBe(2);
    },
  },
  {
    name: "A rejected request is asked for with its members in another order, other white space, escapes and numbers",
    run: async (scene) => {
      const { url } = scene;
      const bodies = [
        `{"to":"bob","amount":100}`,
        `{ "to" : "bob" ,\n"amount":100 }`,
        String.raw`{"to":"b\u006fb","amount":100}`,
        `{"to":"eve","to":"bob","amount":100}`,
        `{"amount":100,"to":"bob"}`,
        `{"to":"bob","amount":100.0}`,
        `{"to":"bob","amount":1e2}`,
        `{"to":"bob","amount":100.00}`,
        String.raw`{"to":"b\u006fb","amount":100.0}`,
        String.raw`{"t\u006f":"bob","amount":100.0}`,
      ];
      const variants = bodies.map((body) => `{"url":"${url}","body":${body},"reason":"please"}`);
      expect(await askedAgain(scene, { url, body: { to: "bob", amount: 100 } }, variants)).toBe(2);
    },
  },
  {
    name: "A rejected request is asked for with letters of its path and query percent-encoded",
    run: async (scene) => {
      const { url } = scene;
      const spelled = ["pay?to=bob", "%70ay?to=bob", "p%61y?to=bob", "pa%79?to=bob", "pay?%74o=bob", "pay?to=%62ob"];
      const variants = spelled.map((path) => ({ url: url + path, reason: "please" }));
      expect(await askedAgain(scene, { url: `${url}pay?to=bob` }, variants)).toBe(2);
    },
  },
  {
    name: "A read that a person has rejected is asked for again without `approve`, by a key whose hold lets reads go",
    run: async ({ w, url, victim }) => {
      const id = await w.held({ url, method: "GET", approve: true });
      await w.owner("cancel", id, { reason: "No." });
      await w.create({ url, method: "GET" });
      await Bun.sleep(3 * SETTLE_MS);
      expect(victim.received).toEqual([]);
    },
  },
  // ---- Targets
  // ---- Headers
  {
    name: "A second request is smuggled behind a first one over one connection to the service",
    run: async ({ w, url }) => {
      const id = await w.held({ url });
      const { port, host } = new URL(w.base);
      const inner = `POST /v1/actions/${id}/approve HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${w.keys["agent"]}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
      const head = `POST /v1/actions HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${w.keys["agent"]}\r\nContent-Type: application/json\r\n`;
      const firsts = [
        `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
        `${head}Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n`,
        `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
        `${head}Content-Length: +0\r\n\r\n`,
        `${head}X: y\r\n Authorization: Bearer owner\r\nContent-Length: 0\r\n\r\n`,
      ];
      for (const first of firsts) {
        const { text } = await exchange(Number(port), [first + inner], { until: (seen) => /40[013].*\r\n/.test(seen) });
        expect(text).not.toMatch(/HTTP\/1\.1 20/);
      }
      expect(await w.stateOf(id)).toBe("awaiting_approval");
    },
  },
  // ---- Leaks
  {
    name: "Short secrets of another key's action are read in its facts, which are masked for whoever decides",
    run: async ({ w, url }) => {
      const request = {
        url: `${url}?password=${HUNTER}`,
        reason: `password=${HUNTER}`,
        callback: `${w.listed.url}?token=${HUNTER}`,
      };
      const made = await w.ask("POST", "/v1/actions", { key: w.keys["other"] ?? "", body: request });
      for (const name of ["agent", "reader"]) {
        const key = w.keys[name] ?? "";
        const { status, text } = await w.ask("GET", `/v1/actions/${String(made.json["id"])}/facts`, { key });
        expect({ name, status, isTold: text.includes(HUNTER) }).toMatchObject({ name, isTold: false });
      }
    },
  },
  {
    name: "Metrics, health, the API's document and errors tell of hosts, ids, keys and people",
    run: async ({ w, url }) => {
      const id = await w.held({ url: `${url}canary-path`, headers: { Authorization: SECRET } });
      const paths = ["/metrics", "/health", "/ready", "/openapi.json", "/docs", "/nothing", "/v1/nothing"];
      const told = await Promise.all(paths.map(async (path) => (await w.ask("GET", path)).text));
      for (const text of told) {
        for (const canary of [
          id,
          hostOf(w.listed),
          "canary-path",
          SECRET,
          w.keyIds["agent"] ?? "",
          w.keys["agent"] ?? "",
        ]) {
          expect(text).not.toContain(canary);
        }
      }
      for (const text of told.slice(0, 3)) expect(text).not.toContain(ANN);
      for (const canary of [SECRET, "canary-path", w.keys["agent"] ?? "", w.cookie.split("=")[1] ?? ""]) {
        expect(w.service.output).not.toContain(canary);
      }
    },
  },
  // ---- The person sees what they approve
  {
    name: "The payload is hidden behind the names and formats of secrets",
    run: async (scene) => {
      const { w, url } = scene;
      await w.newAgent();
      const pem = `-----BEGIN X-----\ndelete all of production\n-----END X-----`;
      const id = await w.held({
        method: "DELETE",
        url: `${url}api/PAYLOAD-0?key=PAYLOAD-1-database&code=PAYLOAD-2&access=PAYLOAD-3#x`,
        headers: {
          "X-Amz-Target": "DynamoDB.PAYLOAD-4-DeleteTable",
          SOAPAction: "PAYLOAD-5-delete",
          Authorization: "Bearer PAYLOAD-6-delete-all",
          "X-Secret-Command": "PAYLOAD-7",
        },
        body: {
          session: { transfer: "PAYLOAD-8", to: ["PAYLOAD-9"] },
          auth: { amount: 1000010, sure: true },
          token: "transfer 5000 to PAYLOAD-11",
          password: "PAYLOAD-12",
          note: `Bearer PAYLOAD-13-all ${pem}`,
          link: "https://user:PAYLOAD-14@host.example/",
          nested: JSON.stringify({ secret: { order: "PAYLOAD-15" } }),
          form: "token=PAYLOAD-16&api_key=PAYLOAD-17-drop-table",
          jwt: "eyJhbGciOiJub25lIn0 PAYLOAD-18",
        },
        ...NOTIFY,
      });
      const { mail, link, held } = await placesOf(scene, id);
      for (const [place, text] of Object.entries({ mail, link, held })) {
        const missing = times(19, (at) => (at === 10 ? "1000010" : `PAYLOAD-${at}`)).filter(
          (part) => text?.includes(part) !== true,
        );
        // A mail stays where it was sent: it counts values of headers, and the pages show them.
        const hidden = place === "mail" ? ["PAYLOAD-6", "PAYLOAD-7"] : [];
        expect({ place, missing }).toEqual({ place, missing: hidden });
        if (place === "mail") expect(text).toContain("2 values hidden");
        expect(text).toContain("delete all of production");
      }
    },
  },
  {
    name: "The payload is dressed as a real token: JWT, Basic credentials, key block, issuer's key, webhook URL",
    run: async (scene) => {
      const { w, url } = scene;
      await w.newAgent();
      const order = Buffer.from('{"transfer":"all","to":"mallory"}').toString("base64url");
      const der = Buffer.concat([Buffer.from([0x30, 0x40]), Buffer.alloc(64, "delete everything ")]).toString("base64");
      const dressed: readonly (readonly [string, object])[] = [
        ["jwt", { body: { order: `eyJhbGciOiJub25lIn0.${order}.x` } }],
        ["basic", { body: { order: `Basic ${btoa("delete:everything-now")}` } }],
        ["pem", { body: { order: `-----BEGIN X-----\n${der}\n-----END X-----` } }],
        ["issuer", { body: { order: "ghp_deleteAll1Accounts2And3Users4Now5x6y7z8" } }],
        ["name", { body: { [`ghp_deleteAll1Accounts2And3Users4Now5x6y7z8`]: 1 } }],
        ["header", { headers: { "X-Do": "ghp_deleteAll1Accounts2And3Users4Now5x6y7z8" } }],
        ["path", { url: `${url}ghp_deleteAll1Accounts2And3Users4Now5x6y7z8` }],
        ["query", { url: `${url}?token=d3l3t3A11Acc0unts4ndUs3rs` }],
        ["encoded", { url: `${url}?x=token%3Dd3l3t3A11Acc0unts4ndUs3rs` }],
        [
          "webhook",
          { body: { post: "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXX1" } },
        ],
        ["long", { body: { pad: "x ".repeat(10_000), order: "ghp_deleteAll1Accounts2And3Users4Now5x6y7z8" } }],
        ["callback", { callback: `${w.listed.url}ghp_deleteAll1Accounts2And3Users4Now5x6y7z8` }],
      ];
      for (const [name, request] of dressed) {
        const id = await w.held({ url, ...request, ...NOTIFY });
        for (const [place, text] of Object.entries(await placesOf(scene, id))) {
          const isShown = !text.includes("••••") || place === "review";
          expect({ name, place, isToldOrShown: isShown || /values? hidden/.test(text) }).toMatchObject({
            isToldOrShown: true,
          });
        }
        await w.by("POST", `/v1/actions/${id}/cancel`);
      }
    },
  },
  {
    name: "The payload stands behind 2,000 padded members, beyond what a mail and a card show",
    run: async (scene) => {
      const { w, url } = scene;
      await w.newAgent();
      const padding = Object.fromEntries(times(2_000, (at) => [`note_${at}`, "nothing to see"]));
      const id = await w.held({ url, body: { ...padding, transfer: "PAYLOAD-last" }, ...NOTIFY });
      const { mail, link, review, held } = await placesOf(scene, id);
      expect(mail).toMatch(/more lines?|characters? more|not shown/);
      for (const text of [link, held, review]) expect(text).toMatch(/Approve[^.]*, with .* not shown/);
      for (const body of await wholeBodiesOf(scene, id)) expect(body).toContain("PAYLOAD-last");
    },
  },
  {
    name: "The payload stands at the end of a URL of 8,000 characters, in the 60th header, behind 400 KB on one line",
    run: async (scene) => {
      const { w, url } = scene;
      await w.newAgent();
      const pad = "x".repeat(7_800);
      const headers = Object.fromEntries(
        times(60, (at) => [`X-${at}`, at === 59 ? "PAYLOAD-header" : "y".repeat(200)]),
      );
      const id = await w.held({
        url: `${url}${pad}?PAYLOAD-url`,
        headers,
        body: { pad: "z ".repeat(200_000), to: "PAYLOAD-body" },
        ...NOTIFY,
      });
      const { mail, link, review, held } = await placesOf(scene, id);
      for (const text of [link, held]) {
        for (const part of ["PAYLOAD-url", "PAYLOAD-header"]) expect(text).toContain(part);
        expect(text).toMatch(/Approve[^.]*, with .* not shown/);
      }
      for (const body of await wholeBodiesOf(scene, id)) expect(body).toContain("PAYLOAD-body");
      for (const text of [mail, review]) {
        expect(text).toContain("PAYLOAD-url");
        expect(text).toMatch(/more characters?|more lines?|characters? more|not shown/);
        expect(text).toContain("Unusually large");
      }
    },
  },
  {
    name: "The type of the body names a charset in which the target reads other members than are shown",
    run: async (scene) => {
      const { url } = scene;
      // Express reads it as {"to":"bob","note":"x","to":"mallory"}.
      const body = { to: "bob", note: "x+ACIALAAiAHQAbwAiADoAIg-mallory" };
      const types = ["utf-7", "UTF-7", '"utf-7"', "utf-16le", "utf-32", "unicode-1-1-utf-7"];
      await allRefused(
        scene,
        types.map((charset) => ({ url, body, headers: { "Content-Type": `application/json; charset=${charset}` } })),
      );
    },
  },
  {
    name: "A text or bytes are shown, which their type tells the target to read as JSON or as a form",
    run: async (scene) => {
      const { url } = scene;
      const types = [
        "application/json",
        "APPLICATION/JSON",
        "text/json",
        "application/x-json; charset=utf-8",
        "application/merge-patch+json",
        "application/x-www-form-urlencoded",
        "text/plain, application/json",
        'text/plain; a="application/json"',
        "text/plain; application/json",
        "text/plain;charset=utf-8;charset=utf-16",
        "text/plain; charset=utf-16",
        "text/plain\tapplication/json",
      ];
      const bodies = [{ text: '{"to":"mallory"}' }, { form: { to: "mallory" } }];
      const creates = types.flatMap((type) =>
        bodies
          .filter((body) => !("form" in body && type === "application/x-www-form-urlencoded"))
          .map((body) => ({ url, ...body, headers: { "Content-Type": type } })),
      );
      const bytes = { url, base64: Buffer.from('{"to":"mallory"}').toString("base64") };
      await allRefused(scene, [
        ...creates,
        ...types.slice(0, 9).map((type) => ({ ...bytes, headers: { "Content-Type": type } })),
        { url, text: "x", headers: { "Content-Type": "text/plain", Content_Type: "text/html" } },
        { url, text: "x", headers: { Content_Type: "application/json" } },
        { url, body: { to: "bob" }, json: { to: "mallory" } },
        { url, body: { to: "bob" }, text: "x" },
        { url, form: { to: "bob" }, base64: "AAEC" },
      ]);
    },
  },
  {
    name: "The payload is written in escapes of JSON that a number in the body keeps from being read",
    run: async (scene) => {
      const { w, url } = scene;
      await w.newAgent();
      const escaped = String.raw`{"n":1.0,"\u0064\u006f":"\u0064\u0065\u006c\u0065\u0074\u0065 \u0061\u006c\u006c"}`;
      const { json } = await w.create(`{"url":"${url}","body":${escaped},"notify":{"email":"${ANN}"}}`);
      const places = await placesOf(scene, String(json["id"]));
      for (const [place, text] of Object.entries(places)) {
        expect({ place, isRead: text.includes("delete all") && text.includes('"do"') }).toEqual({
          place,
          isRead: true,
        });
      }
    },
  },
  {
    name: "The payload is written in percent-encoded letters of the URL, which nobody can read",
    run: async (scene) => {
      const { w, url } = scene;
      await w.newAgent();
      const id = await w.held({ url: `${url}%64%65%6c%65%74%65?%74%6f=%65%76%65`, ...NOTIFY });
      for (const [place, text] of Object.entries(await placesOf(scene, id))) {
        expect({ place, isRead: text.includes("delete?to=eve") || /percent|encoded letters/.test(text) }).toEqual({
          place,
          isRead: true,
        });
      }
    },
  },
  {
    name: "Invisible, turned-round and look-alike characters show another request than is sent",
    run: async (scene) => {
      const { w, url } = scene;
      await w.newAgent();
      const id = await w.held({
        url: `${url}pay%E2%80%AEevil`,
        body: {
          to: "b\u200bob\u202egnihton",
          note: "p\u0430ypal",
          tag: "\u{e0064}\u{e0065}",
          gap: `x${"\u2800".repeat(9)}y`,
        },
        ...NOTIFY,
      });
      for (const [place, text] of Object.entries(await placesOf(scene, id))) {
        expect({ place, raw: /[\u200b\u202e\u2800\u{e0064}]/u.test(text) }).toEqual({ place, raw: false });
        expect(text).toContain("cannot be seen");
        expect(text).toContain("can pass for others");
      }
    },
  },
  {
    name: "A reason, a body and a header imitate lines of the service's own",
    run: async (scene) => {
      const { w, url } = scene;
      await w.newAgent();
      const forged = "ok\nURL: https://good.example/\nEarlier rejections: None\n\nApprove: https://evil.example/a/x";
      const html = `</pre></section><form action="${w.evil.url}"><button>Approve</button></form><script>alert(1)</script>`;
      const id = await w.held({ url, reason: forged, body: { html, forged }, headers: { "X-A": html }, ...NOTIFY });
      const mail = await w.mailOf(id);
      const lines = (mail.fields["text"] ?? "").split("\n").map((line) => line.trim());
      expect(
        lines.filter((line) => /^(?:URL|Approve|Earlier rejections):? .*(?:good|evil)\.example/.test(line)),
      ).toEqual([]);
      const pages = [mail.fields["html"] ?? "", (await w.ask("GET", linksIn(mail)[0])).text];
      pages.push((await w.ask("GET", `/approvals/${id}`, { headers: { cookie: w.cookie } })).text);
      for (const page of pages) {
        expect(page).not.toContain("<script>alert");
        expect(page).not.toContain(`<form action="${w.evil.url}"`);
      }
    },
  },
  {
    name: "A long host is cut where its registrable domain stands",
    run: async (scene) => {
      const { w } = scene;
      await w.newAgent();
      const host = `api.paypal.com.${times(4, () => "a".repeat(40)).join(".")}.evil-registrable.example`;
      const id = await w.held({ url: `https://${host}/pay`, ...NOTIFY });
      const { subject = "" } = (await w.mailOf(id)).fields;
      const places = await placesOf(scene, id);
      for (const text of [subject, ...Object.values(places)]) expect(text).toContain("evil-registrable.example");
    },
  },
];

/** Attacks on a service of their own, whose links decide when they are opened, or that use up what the others need. */
const ALONE: readonly { readonly name: string; readonly run: (w: World) => Promise<void> }[] = [
  {
    name: "Links that decide when they are opened are opened by HEAD, prefetches and scanners that say so",
    run: async (w) => {
      await using victim = new Target();
      const id = await w.held({ url: victim.url, ...NOTIFY });
      const [approve] = linksIn(await w.mailOf(id));
      for (const headers of [
        { "sec-purpose": "prefetch;prerender" },
        { purpose: "prefetch" },
        { "x-moz": "prefetch" },
      ]) {
        for (const method of ["GET", "HEAD"]) await w.ask(method, approve, { headers });
      }
      for (const method of ["HEAD", "OPTIONS", "PUT"]) await w.ask(method, approve);
      expect(await w.stateOf(id)).toBe("awaiting_approval");
      await Bun.sleep(SETTLE_MS);
      expect(victim.received).toEqual([]);
    },
  },
  {
    name: "An event stream that a revoked key has open goes on telling",
    run: async (w) => {
      const stream = await fetch(`${w.base}/v1/events`, { headers: { authorization: `Bearer ${w.keys["agent"]}` } });
      await w.addKey("other", { role: "agent" });
      await w.ask("DELETE", `/v1/keys/${w.keyIds["agent"]}`, { key: OWNER_KEY });
      const made = await w.ask("POST", "/v1/actions", { key: w.keys["other"] ?? "", body: { url: w.evil.url } });
      expect(await stream.text()).not.toContain(String(made.json["id"]));
      expect(w.evil.received).toEqual([]);
    },
  },
  {
    name: "The approver is worn down by 110 mails",
    run: async (w) => {
      await Promise.all(times(110, (at) => w.held({ url: w.evil.url, body: { at }, ...NOTIFY })));
      await w.mailbox.took(100);
      await Bun.sleep(10 * SETTLE_MS);
      expect(w.mailbox.posted).toHaveLength(100);
      expect(w.evil.received).toEqual([]);
    },
  },
];

/** Mode A alone, unless all of it is asked for (`npm run test:long`). */
const MODES_NOW = process.env["LONG_TESTS"] === undefined ? MODES.slice(0, 1) : MODES;

describe.each(MODES_NOW.map((mode) => [mode.name, mode] as const))("%s", (_name, mode) => {
  let w: World;
  beforeAll(async () => {
    w = await new World(mode).open();
  });
  afterAll(() => w[Symbol.asyncDispose]());

  for (const { name, run, target = () => new Target(), succeeds = [] } of ATTACKS) {
    const title = `${name}: in vain`;
    const body = async () => {
      const victim = target();
      const entry = { name, target: victim, allowed: Number.POSITIVE_INFINITY };
      w.victims.push(entry);
      const got = w.evil.received.length;
      entry.allowed = (await run({ w, victim, url: victim.url })) ?? 0;
      await Bun.sleep(SETTLE_MS);
      expect(victim.received.length).toBeLessThanOrEqual(entry.allowed);
      expect(w.evil.received.slice(got)).toEqual([]);
    };
    if (succeeds.includes(mode.name)) test.failing(title, body);
    else test(title, body);
  }

  test("and after all of them nothing has come to any target that nobody approved", async () => {
    await Bun.sleep(10 * SETTLE_MS);
    const more = w.victims.filter(({ target, allowed }) => target.received.length > allowed);
    expect(more.map(({ name, target }) => ({ name, received: target.received }))).toEqual([]);
    expect(w.evil.received).toEqual([]);
    expect(w.mailbox.posted.filter(({ fields }) => fields["to"] !== ANN)).toEqual([]);
  });

  describe("on a service of their own", () => {
    let own: World;
    beforeAll(async () => {
      own = new World({ ...mode, env: { ...mode.env, APPROVAL_LINKS: "one_click" } });
      await own.start();
    });
    afterAll(() => own[Symbol.asyncDispose]());

    test.each(ALONE)("$name: in vain", async ({ run }) => {
      await own.newAgent();
      await run(own);
      expect(own.evil.received).toEqual([]);
    });
  });
});
