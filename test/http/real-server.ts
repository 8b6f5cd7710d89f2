import { Database } from "bun:sqlite";
import { join } from "node:path";
import { httpSettings } from "../../src/app/http.ts";
import type { Oidc } from "../../src/oidc/oidc.ts";
import type { SessionService } from "../../src/accounts/sessions.ts";
import type { InvitationService } from "../../src/accounts/invitations.ts";
import type { ReadServerSize } from "../../src/accounts/server-size.ts";
import type { Config, EffectiveSettings } from "../../src/config/config.ts";
import { createMakeLinks } from "../../src/approvals/links.ts";
import type { SignUps } from "../../src/config/values.ts";
import type { Role } from "../../src/core/roles.ts";
import type { AnyElysia } from "elysia";
import type { Guard } from "../../src/http/own-origin.ts";
import { type Engine, type EngineOptions, openEngine } from "../support/engine.ts";
import { anAccount, anApiKey } from "../support/factory.ts";
import { broken } from "../support/promised.ts";
import { KEYS, openStubServer, OWN_ORIGIN } from "./stub-server.ts";

/** The key of somebody in another account. */
export const STRANGER = "og_stranger_0123456789abcdefghij";

/** With what somebody signs up who may log in again. */
export const SOMEBODY = { email: "somebody@example.com", password: "correct horse battery staple" } as const;

export interface RealServerOptions extends EngineOptions {
  /** Of an account; none unless it is given. */
  readonly rateLimitPerSecond?: number;
  readonly approvalLinks?: "confirm" | "one_click";
  /** Where a browser finds it; any free port when it is left out. */
  readonly port?: number;
  /** Open unless it is given. */
  readonly signUps?: SignUps;
  readonly baseUrl?: string;
  /** None unless they are given. */
  readonly trustedProxies?: readonly string[];
  /** What the page of the server shows; the stub's unless it is given. */
  readonly settingsFor?: () => Promise<EffectiveSettings>;
  /** What the page of the server shows of the database; nothing unless it is given. */
  readonly readSize?: ReadServerSize;
  /** Checks requests to /mcp; by default those of this machine pass. */
  readonly mcpGuard?: Guard;
  readonly routes?: readonly AnyElysia[];
  /** An identity provider, over the same services; none unless it is given. */
  readonly oidcOf?: (parts: {
    readonly engine: Engine;
    readonly sessionService: SessionService;
    readonly invitationService: InvitationService;
  }) => Oidc;
  /** Routes of another module, over the same service. */
  readonly routesOf?: (engine: Engine) => readonly AnyElysia[];
}

export type RealServer = Awaited<ReturnType<typeof openRealServer>>;

/** Of a call, whose JSON has whatever the route answers. */
export type Answer = Awaited<ReturnType<RealServer["call"]>>;

/** The real server over the real service and store, with the keys of the stub and a stranger's. */
export async function openRealServer(options: RealServerOptions = {}) {
  const { port } = options;
  const baseUrl = options.baseUrl ?? (port === undefined ? OWN_ORIGIN : `http://127.0.0.1:${port}`);
  const settings: Partial<Config> = {
    baseUrl: options.env?.["BASE_URL"] ?? baseUrl,
    signUps: options.signUps ?? "open",
    approvalLinks: options.approvalLinks ?? "confirm",
    rateLimitPerSecond: options.rateLimitPerSecond ?? 0,
    trustedProxies: [...(options.trustedProxies ?? [])],
  };
  const engine = await openEngine({ ...options, settings });
  const { accounts } = engine.store;
  const addKey = (accountId: string, token: string, role: Role) =>
    // What tests are about an agent did not always create itself; `test/http/key-scope.test.ts` has keys that act on their own.
    accounts.addKey(anApiKey({ accountId, name: role, role, scope: "account", hash: engine.secrets.hash(token) }));
  const roles = ["owner", "approver", "agent", "reader"] as const;
  const adding = Promise.all(roles.map((role) => addKey(engine.owner.accountId, KEYS[role], role)));
  const stranger = anAccount();
  const place = { table: "accounts", row: stranger.id, column: "sealed_root_secret" };
  const { secrets, clock } = engine;
  await accounts.create({ ...stranger, sealedRootSecret: secrets.seal(secrets.newRootSecret(), place) }, []);
  // In one commit with those above.
  await Promise.all([adding, addKey(stranger.id, STRANGER, "owner")]);

  const { sessionService, teamService, invitationService, bulkRunner, followLink, authenticate, signUpGate } =
    engine.services;
  const oidc = options.oidcOf?.({ engine, sessionService, invitationService }) ?? null;
  // What the stub says of the server unless a test asks.
  const { settingsFor: _rules, readSize: _size, ...services } = engine.services;
  const { approvalLinks, isTrustedProxy, rateLimitPerSecond, mcpSessionsPerAccount } = httpSettings(
    engine.app,
    secrets,
    new AbortController().signal,
  );
  const ways = {
    ...services,
    oidc,
    clock,
    baseUrl,
    approvalLinks,
    isTrustedProxy,
    rateLimitPerSecond,
    mcpSessionsPerAccount,
    ...(options.settingsFor !== undefined && { settingsFor: options.settingsFor }),
    ...(options.readSize !== undefined && { readSize: options.readSize }),
    ...(options.mcpGuard !== undefined && { mcpGuard: options.mcpGuard }),
    routes: [...(options.routes ?? []), ...(options.routesOf?.(engine) ?? [])],
  };
  const app = port === undefined ? openStubServer(ways) : openStubServer(ways, port);
  return {
    ...app,
    engine,
    bulkRunner,
    followLink,
    /** The links of an approval mail, as paths. */
    async linksOf(id: string) {
      const action = await engine.get(id);
      const links = await createMakeLinks(engine.store.links, secrets, "")(action, clock.now());
      return { approve: links.approve, reject: links.reject };
    },
    resume: sessionService.resume,
    teamService,
    /** As other nodes' sessions are read again. */
    recheckSessions: sessionService.recheckSessions,
    authenticate,
    signUpGate,
    /** The account of the stranger. */
    strangerId: stranger.id,
    /** Sends JSON, which a text is already, and reads JSON; with the owner's key, another one or these headers. */
    async call(
      method: string,
      path: string,
      body?: object | string,
      by: Readonly<Record<string, string>> | string = {},
    ) {
      const headers = new Headers(typeof by === "string" ? { authorization: `Bearer ${by}` } : by);
      if (body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
      const sent = typeof body === "object" ? JSON.stringify(body) : body;
      const response = await app.ask(path, { method, headers, ...(sent === undefined ? {} : { body: sent }) });
      const text = await wholeText(response);
      // Whatever a test is about, its answers are those of the API description.
      const problems = broken({ method, path, status: response.status, headers: response.headers, text });
      if (problems.length > 0) throw new Error(`${method} ${path}: ${problems.join("; ")}`);
      const isJson = response.headers.get("content-type") === "application/json";
      const json = JSON.parse(isJson ? text : "null") as Shown & Readonly<Record<string, unknown>>;
      return { status: response.status, headers: response.headers, text, json };
    },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await bulkRunner.stop();
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** The members of answers that tests look at. */
export interface Shown {
  readonly id: string;
  readonly status: string;
  readonly deduplicated?: boolean;
  readonly data: readonly ({ readonly id: string } & Readonly<Record<string, unknown>>)[];
  readonly next_cursor: string | null;
  readonly secret: string;
  readonly key: string;
  /** Of an invitation. */
  readonly link: string;
  readonly receipt_url: string;
  readonly account: { readonly id: string };
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly details?: readonly { readonly field: string; readonly message: string }[];
  };
}

/** The text of an answer; of one that has no end its beginning, and then nobody listens any more. */
export async function wholeText(response: Response): Promise<string> {
  if (response.headers.get("content-type") !== "text/event-stream") return response.text();
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return new TextDecoder().decode(first?.value);
}

/**
 * Every row of every table, read from the file itself. Without the time at which a key was used last: that is written of
 * a request by whoever comes with a valid key, whatever the request is.
 */
export function tablesIn(folder: string): Readonly<Record<string, readonly unknown[]>> {
  const db = new Database(join(folder, "outgate.db"), { readonly: true });
  try {
    const names = db.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").values().flat();
    return Object.fromEntries(names.map((name) => [String(name), rowsOf(db, String(name))]));
  } finally {
    db.close();
  }
}

function rowsOf(db: Database, table: string): readonly unknown[] {
  const rows = db.query<Record<string, unknown>, []>(`SELECT * FROM ${table}`).all();
  return rows.map((row) => Object.fromEntries(Object.entries(row).filter(([column]) => column !== "last_used_at")));
}
