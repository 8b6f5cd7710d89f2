import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { IS_LONG } from "../support/long.ts";
import { type KeptMail, Mailbox } from "../support/mailbox.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

/*
 * An agent that has a key with a hold, runs on the machine of the owner's browser, has a mailbox of its own, and
 * is malicious. Each attack is tried against the real program: nothing that nobody approved may reach a target. What one route
 * refuses alone is tested beside that route; here is what takes several of them, or the whole program.
 */

export const ANN = "ann@example.com";
export const PASSWORD = "correct horse battery staple";
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const SESSION_SECRET = "5e".repeat(32);
const JSON_TYPE = { "content-type": "application/json" };
/** How long a call that should not be sent has to leave after an attack; all targets are looked at again in the end. */
const SETTLE_MS = 30;

type Fields = Readonly<Record<string, unknown>>;
type Names = Readonly<Record<string, string>>;

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
  readonly headers?: Names;
}

const MODES = {
  A: { hold: "all", env: { AGENT_APPROVAL: "off", APPROVERS: ANN } },
  B: { hold: "writes", env: {} },
} as const;

type Mode = keyof typeof MODES;

/** One service, and everybody who has to do with it. */
export class World implements AsyncDisposable {
  readonly mode: Mode;
  readonly mailbox = new Mailbox();
  readonly service: Service;
  /** A host that the owner has listed for callbacks. */
  readonly listed = new Target();
  readonly keys: Record<string, string> = {};
  readonly keyIds: Record<string, string> = {};
  readonly victims: { readonly name: string; readonly target: Target }[] = [];
  base = "";
  /** The session cookie of the account's person. */
  cookie = "";

  constructor(mode: Mode) {
    this.mode = mode;
    // Without a limit, since one attack makes hundreds of requests; and with short delays, so that a retry would be seen.
    const quick = { RATE_LIMIT_PER_SECOND: "0", RETRY_BASE_MS: "10", RETRY_CAP_MS: "20" };
    this.service = new Service({ env: { ...this.mailbox.env, ...quick, ...MODES[mode].env } });
  }

  /** Starts it, with its first person and the keys of everybody. */
  async open(): Promise<this> {
    this.base = await this.service.ready();
    const entered = await this.ask("POST", await welcomeLinkOf(this.service), {
      body: new URLSearchParams({ email: ANN, password: PASSWORD, session_secret: SESSION_SECRET }).toString(),
      headers: { ...FORM, origin: this.base },
    });
    this.cookie = (entered.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";
    for (const name of ["agent", "other"]) await this.addKey(name, { role: "agent" });
    await this.addKey("reader", { role: "reader", hold: "none" });
    await this.ask("POST", "/v1/callback-hosts", { key: OWNER_KEY, body: { host: hostOf(this.listed) } });
    return this;
  }

  async addKey(name: string, members: object): Promise<void> {
    const body = { name, hold: MODES[this.mode].hold, ...members };
    const { json } = await this.ask("POST", "/v1/keys", { key: OWNER_KEY, body });
    this.keys[name] = String(json["key"]);
    this.keyIds[name] = String(json["id"]);
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
    const said = await answer.text();
    const isJson = said.startsWith("{") && !said.includes("\n");
    return {
      status: answer.status,
      json: isJson ? (JSON.parse(said) as Fields) : {},
      text: said,
      headers: answer.headers,
    };
  }

  /** The same with the key of the agent that attacks. */
  by(method: string, path: string, asked: Asked = {}): Promise<Answer> {
    return this.ask(method, path, { key: this.keys["agent"] ?? "", ...asked });
  }

  create(request: unknown, headers: Names = {}): Promise<Answer> {
    return this.by("POST", "/v1/actions", { body: request, headers });
  }

  async held(request: object): Promise<string> {
    const { status, json } = await this.create(request);
    expect({ status, state: json["status"] ?? json }).toEqual({ status: 201, state: "awaiting_approval" });
    return String(json["id"]);
  }

  /** Held by its own wish: in mode B an agent's client may be asked about it, in mode A about nothing. */
  askable(url: string): Promise<string> {
    return this.held({ url, method: "GET", approve: true });
  }

  reject(id: string): Promise<Answer> {
    return this.ask("POST", `/v1/actions/${id}/cancel`, { key: OWNER_KEY, body: { reason: "said the owner" } });
  }

  async stateOf(id: string): Promise<unknown> {
    return (await this.ask("GET", `/v1/actions/${id}`, { key: OWNER_KEY })).json["status"];
  }

  /** The mail that asks about an action, when it has come. */
  mailOf(id: string): Promise<KeptMail> {
    const asks = ({ fields }: KeptMail) => fields["v:action_id"] === id && !(fields["subject"] ?? "").startsWith("Re:");
    return eventually(() => this.mailbox.mails.find(asks) ?? null, "the mail");
  }

  /** A page as the account's person sees it. */
  async page(path: string): Promise<string> {
    return (await this.ask("GET", path, { headers: { cookie: this.cookie } })).text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    const targets = [this.listed, this.mailbox, ...this.victims.map(({ target }) => target)];
    await Promise.all(targets.map((one) => one[Symbol.asyncDispose]()));
  }
}

export function welcomeLinkOf(service: Service): Promise<string> {
  return eventually(() => /\/welcome\/[0-9a-f]{64}/.exec(service.output)?.[0] ?? null, "the welcome link");
}

export function hostOf(target: Target): string {
  return new URL(target.url).host;
}

/** The links of a mail: approve, reject. */
export function linksIn({ fields }: KeptMail): readonly [approve: string, reject: string] {
  const [approve = "", reject = ""] = [...(fields["text"] ?? "").matchAll(/\/a\/[\w-]+/g)].map(([path]) => path);
  return [approve, reject];
}

/** The text of a page, as people read it. */
export function textOf(html: string): string {
  return html
    .replaceAll(/<style>.*?<\/style>|<head>.*?<\/head>|<[^>]+>/gs, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll(/&#x27;|&#39;/g, "'")
    .replaceAll("&amp;", "&");
}

/** What an attack has to do with: the service, and a target that nothing may come to. */
export interface Scene {
  readonly w: World;
  readonly url: string;
}

export interface Attack {
  /** What it tries. */
  readonly name: string;
  readonly run: (scene: Scene) => Promise<void>;
  /** False: this machine has not what it takes. */
  readonly isPossible?: boolean;
}

/** Tries each attack: in mode A alone, unless all of it is asked for (`npm run test:long`). */
export function testAttacks(attacks: readonly Attack[]): void {
  describe.each(IS_LONG ? (["A", "B"] as const) : (["A"] as const))("in mode %s", (mode) => {
    let w: World;
    beforeAll(async () => {
      w = await new World(mode).open();
    });
    afterAll(() => w[Symbol.asyncDispose]());

    for (const { name, run, isPossible = true } of attacks) {
      test.skipIf(!isPossible)(`${name}: in vain`, async () => {
        const target = new Target();
        w.victims.push({ name, target });
        await run({ w, url: target.url });
        await Bun.sleep(SETTLE_MS);
        expect(target.received).toEqual([]);
      });
    }

    test("and after all of them nothing has come to any target that nobody approved", async () => {
      await Bun.sleep(10 * SETTLE_MS);
      expect(w.victims.filter(({ target }) => target.received.length > 0).map(({ name }) => name)).toEqual([]);
      expect(w.mailbox.posted.filter(({ fields }) => fields["to"] !== ANN)).toEqual([]);
    });
  });
}
