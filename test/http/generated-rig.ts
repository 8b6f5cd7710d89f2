import { Database } from "bun:sqlite";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { URL_CHARS_MAX } from "../../src/core/limits.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import { maxGapMs } from "../db/event-loop.ts";
import { approve } from "../../src/core/changes.ts";
import {
  aCreation,
  aDecision,
  aGrant,
  anAuditEntry,
  answered,
  aPerson,
  creationOf,
  joined,
  writeOf,
} from "../support/factory.ts";
import { type Draft, KNOWN_PERSON, KNOWN_RECEIVER } from "./generated-requests.ts";
import { openRealServer, type RealServer, type RealServerOptions, SOMEBODY, wholeText } from "./real-server.ts";

export interface Answered {
  readonly draft: Draft;
  /** With ids in place of its tokens. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const ORIGIN = "http://127.0.0.1";

/** How long a batch may wait for nothing but the clock. */
const IDLE_MS = 15;

const GRANTS_END = new Date("2099-01-01");

const WAIT_MS_MAX = 121_000;

/** A real server, and what was answered so far: later requests go by it, and so do the rows at the end. */
export class Rig {
  readonly app: RealServer;
  readonly actions: string[] = [];
  readonly keys: string[] = [];
  readonly pauses: string[] = [];
  /** Those in force. */
  rules: readonly string[] = [];
  readonly grants: string[] = [];
  readonly channels: string[] = ["chn_none"];
  readonly credentials: string[] = ["none"];
  readonly oauthClients: string[] = ["ocl_none"];
  /** Those that nobody has answered. */
  credentialRequests: string[] = [];
  readonly invitations: string[] = [];
  readonly bulk: string[] = [];
  /** Joined before the first request; some are removed by one. */
  readonly people: string[] = [];
  readonly byKind = new Map<string, number>();
  /** `GET /v1/actions/{id}` of those that were answered with 2xx. */
  readonly succeeded = new Set<string>();
  signUps = 0;
  removedPeople = 0;
  readonly decided = { approve: 0, cancel: 0, retry: 0 };
  requests = 0;

  private constructor(app: RealServer) {
    this.app = app;
  }

  /** By default with enough people and grants that some are left to the last request. */
  static async open(options: RealServerOptions = {}, { people, grants } = { people: 200, grants: 100 }): Promise<Rig> {
    const app = await openRealServer({ ...options, sender: target() });
    await app.call("POST", "/auth/signup", SOMEBODY);
    const rig = new Rig(app);
    const { accountId, keyId: ownerId } = app.engine.owner;
    const { person: known } = aPerson({ accountId, email: KNOWN_PERSON });
    await joined(app.engine.store, { accountId, known }, { isNew: true });
    const receiver = { accountId, host: KNOWN_RECEIVER, createdAt: app.engine.clock.now() };
    await app.engine.store.callbackHosts.put(receiver, anAuditEntry());
    const rulesVersion = await app.engine.store.rules.findVersion(accountId);
    for (let n = 0; n < grants; n += 1) {
      const { action } = aCreation({ accountId, approve: true, keyId: "key_nobody" });
      await app.engine.store.actions.create({ ...creationOf(action), rulesVersion });
      const grant = aGrant({ accountId, keyId: "key_nobody", createdById: ownerId ?? "", expiresAt: GRANTS_END });
      await app.engine.store.actions.apply({ ...writeOf(approve(action, aDecision())), grant });
      rig.grants.push(grant.id);
    }
    for (let n = 0; n < people; n += 1) rig.people.push((await joined(app.engine.store, { accountId })).person.id);
    return rig;
  }

  /**
   * Sends the drafts without a socket, a turn of the event loop each as a socket would take, and tells how long the event
   * loop stood still meanwhile. Requests that wait for `idleMs` are waited for by the clock of the test.
   */
  async send(
    drafts: readonly Draft[],
    idleMs = IDLE_MS,
  ): Promise<{ readonly answers: readonly Answered[]; readonly gapMs: number }> {
    let answers: readonly Answered[] = [];
    const requests = drafts.flatMap((draft) => {
      const request = requestOf(draft, this.#filled(draft.path));
      // The parser of URLs takes `..` away.
      return request === null ? [] : [{ draft, path: request.url.replace(ORIGIN, ""), request }];
    });
    const gapMs = await maxGapMs(async () => {
      const pending: Promise<Answered>[] = [];
      for (const { draft, path, request } of requests) {
        const answer = async (): Promise<Answered> => {
          const response = await this.app.http.handle(request);
          const { status, headers } = response;
          return { draft, path, status, headers, text: await wholeText(response) };
        };
        pending.push(answer());
        await nextTurn();
      }
      answers = await this.#allOf(pending, idleMs);
    });
    for (const answer of answers) this.#count(answer);
    return { answers, gapMs };
  }

  /** One draft over a socket, as a client sends it; null where the client won't, or the engine refuses the head by itself. */
  async fetch(draft: Draft): Promise<Answered | null> {
    const { method, headers, body } = draft;
    const path = this.#filled(draft.path);
    if (requestOf(draft, path) === null || path.length > URL_CHARS_MAX) return null;
    // Bun's client sends `//a` as `/a`, which is another path than the one that is held against.
    if (path.startsWith("//")) return null;
    const asked = fetch(this.app.url + path, { method, headers, body, redirect: "manual" });
    const { clock } = this.app.engine;
    const ticking = setInterval(() => clock.advance(WAIT_MS_MAX), IDLE_MS);
    try {
      const response = await asked;
      const sent = new URL(this.app.url + path);
      const { status, headers: given } = response;
      return { draft, path: sent.pathname + sent.search, status, headers: given, text: await wholeText(response) };
    } finally {
      clearInterval(ticking);
    }
  }

  /** Rows of the tables, counted from the file: what the service itself can't leave out. */
  rows(): Readonly<Record<string, number>> {
    const db = new Database(join(this.app.engine.folder, "outgate.db"), { readonly: true });
    const count = (sql: string) => Number(db.query(`select count(*) as n ${sql}`).values()[0]?.[0]);
    const happened = (type: string) => count(`from timeline where type = '${type}'`);
    const counted = {
      actions: count("from actions"),
      created: happened("created"),
      approved: happened("approved"),
      cancelled: happened("cancelled") + happened("rejected"),
      retried: happened("retried"),
      keys: count("from api_keys"),
      people: count("from people"),
      ofNobody: count(
        "from outbox where action_id not in (select id from actions union all select id from credential_requests)",
      ),
    };
    db.close();
    return counted;
  }

  /** Errors that were logged: bugs, whatever the answer was. */
  errors(): readonly unknown[] {
    return this.app.lines.filter(({ event }) => event === "http.failed");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app[Symbol.asyncDispose]();
  }

  async #allOf(pending: readonly Promise<Answered>[], idleMs: number): Promise<readonly Answered[]> {
    const all = Promise.all(pending);
    for (;;) {
      const answers = await Promise.race([all, Bun.sleep(idleMs)]);
      if (answers !== undefined) return answers;
      this.app.engine.clock.advance(WAIT_MS_MAX);
    }
  }

  #filled(path: string): string {
    return path.replace(
      /\{(action|account|key|pause|rule|grant|credential|oauth client|request|channel|person|invitation|bulk|receipt) (\d+)\}/,
      (_token, what: string, index: string) => {
        const account = [this.app.engine.owner.accountId];
        const named: Readonly<Record<string, readonly string[]>> = {
          key: this.keys,
          pause: this.pauses,
          grant: this.grants,
          credential: this.credentials,
          "oauth client": this.oauthClients,
          request: this.credentialRequests.length === 0 ? ["crq_none"] : this.credentialRequests,
          rule: this.rules.length === 0 ? ["rul_none"] : this.rules,
          channel: this.channels,
          person: this.people,
          invitation: this.invitations,
          bulk: this.bulk,
          account,
        };
        const ids = named[what] ?? this.actions;
        const id = ids[Number(index) % Math.max(1, ids.length)] ?? "act_none";
        return what === "receipt" ? this.app.engine.receiptUrl(id).slice("/r/".length) : id;
      },
    );
  }

  #count({ draft: { kind, method }, status, text, path }: Answered): void {
    this.requests += 1;
    this.byKind.set(`${kind} ${status}`, (this.byKind.get(`${kind} ${status}`) ?? 0) + 1);
    if (status >= 300) return;
    const route =
      path
        .split(/[?#]/)[0]
        ?.replace(/(act|key|pau|grt|rul|ocl|chn|acc|usr|per|inv|blk)_[\w-]+/, "{id}")
        ?.replace(/(act|key|pau|grt|crq|rul|chn|acc|usr|per|inv|blk)_[\w-]+/, "{id}")
        .replace(/^\/r\/\w+/, "/r/{token}")
        .replace(/^\/v1\/credentials\/[^/?]+/, "/v1/credentials/{name}")
        .replace(/^\/v1\/hosts\/.+/, "/v1/hosts/{host}")
        .replace(/(.)\/$/, "$1") ?? "";
    this.succeeded.add(`${method} ${route}`);
    if (method === "DELETE" && route === "/v1/people/{id}") this.removedPeople += 1;
    const decision = /\{id\}\/(approve|cancel|retry)$/.exec(route)?.[1];
    if (decision !== undefined && method === "POST") this.decided[decision as keyof typeof this.decided] += 1;
    if (method === "PUT" && route === "/v1/rules") {
      const { data }: { data: { id: string }[] } = JSON.parse(text);
      this.rules = data.map((rule) => rule.id);
    }
    if (/^\/v1\/credential-requests\/\{id\}\/(grant|decline)$/.test(route)) {
      this.credentialRequests = this.credentialRequests.filter((one) => !path.includes(one));
    }
    if (status === 202) this.bulk.push((JSON.parse(text) as { id: string }).id);
    if (status !== 201) return;
    if (route === "/auth/signup") {
      this.signUps += 1;
      return;
    }
    const { id }: { id: string } = JSON.parse(text);
    if (route === "/v1/credentials") {
      this.credentials.push((JSON.parse(text) as { name: string }).name);
      return;
    }
    if (route === "/v1/rules") {
      this.rules = [...this.rules, id];
      return;
    }
    const made: Readonly<Record<string, string[]>> = {
      "/v1/keys": this.keys,
      "/v1/pauses": this.pauses,
      "/v1/channels": this.channels,
      "/v1/oauth-clients": this.oauthClients,
      "/v1/invitations": this.invitations,
      "/v1/credential-requests": this.credentialRequests,
    };
    (made[route] ?? this.actions).push(id);
  }
}

/** Nothing leaves the process: most calls are answered, some are refused, of some nobody knows what became. */
function target(): Sender {
  const outcomes = [
    answered(200, `{"ok":1.0}`),
    answered(204),
    answered(200, `"text"`),
    answered(503, `{"e":[]}`),
    answered(200),
    { kind: "not_sent", fault: "refused" },
    { kind: "unknown", fault: "closed" },
    answered(201),
  ] as const;
  // By what is sent and how often it was, and not in the order of sending, which may be another one on another database.
  const attempts = new Map<string | undefined, number>();
  return {
    send: async ({ method, url, headers, body }) => {
      const text = (typeof body === "string" ? body : Buffer.from(body ?? []).toString()).replaceAll(ID, "");
      const [, id] = headers.find(([name]) => name.toLowerCase() === "webhook-id") ?? [];
      const attempt = (attempts.get(id) ?? 0) + 1;
      attempts.set(id, attempt);
      const call = Number(Bun.hash.wyhash(`${method} ${url} ${text}`) % 8n);
      return outcomes[(call + attempt) % outcomes.length] ?? answered(200);
    },
  };
}

/** Ids and tokens. */
const ID = /[0-9a-z]{20,}/g;

/** Null where the engine would not let such a request be made. */
function requestOf({ method, headers, body }: Draft, path: string): Request | null {
  try {
    const request = new Request(`${ORIGIN}${path}`, { method, headers, body });
    // What a socket would bring along.
    if (body !== null) request.headers.set("content-length", String(Buffer.byteLength(body)));
    return request;
  } catch {
    return null;
  }
}
