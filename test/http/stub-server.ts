import { nameRequest, type RequestContext } from "../../src/http/request.ts";
import type { AnyElysia } from "elysia";
import { createHttp, type HttpSettings } from "../../src/app/http.ts";
import type { RouteServices } from "../../src/services/services.ts";
import { createAuditService } from "../../src/audit/audit.ts";
import type { StartedSession } from "../../src/core/session.ts";
import { createAuthenticate } from "../../src/accounts/authenticate.ts";
import type { CallbackHostService } from "../../src/accounts/callback-hosts.ts";
import type { KeyService } from "../../src/accounts/keys.ts";
import { personOfSession, type SessionService } from "../../src/accounts/sessions.ts";
import type { PeopleService } from "../../src/accounts/people.ts";
import type { TeamService } from "../../src/accounts/team.ts";
import type { SigningService } from "../../src/accounts/signing-secrets.ts";
import type { ActionService } from "../../src/actions/service.ts";
import { systemClock } from "../../src/core/clock.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import type { Role } from "../../src/core/roles.ts";
import type { ChannelService } from "../../src/channels/channels.ts";
import type { OAuthClientService } from "../../src/oauth/account-clients.ts";
import type { CredentialRequestService } from "../../src/credentials/requests.ts";
import { type CredentialService, NO_USES } from "../../src/credentials/service.ts";
import type { RuleService } from "../../src/rules/service.ts";
import type { HostService } from "../../src/hosts/hosts.ts";
import { NO_HOST_SETTINGS } from "../../src/api/host-settings.ts";
import { readConfig } from "../../src/config/config.ts";
import { createMcpGuard, createPagesGuard } from "../../src/http/own-origin.ts";
import { openStartServer } from "../../src/http/listen.ts";
import { systemIds } from "../../src/core/ids.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import type { LogFields } from "../../src/observability/log.ts";
import type { AccountStore } from "../../src/core/account-store.ts";
import { createSecrets } from "../../src/crypto/secrets.ts";
import type { EffectiveSettings } from "../../src/config/config.ts";
import type { BulkService } from "../../src/bulk/service.ts";
import {
  aRule,
  aChannel,
  aBulkJob,
  aCredential,
  aCredentialRequest,
  ACCOUNT,
  anAction,
  anApiKey,
  anInvitation,
  aPause,
  later,
  NOON,
} from "../support/factory.ts";
import { anOverviewAnswer } from "../support/overview.ts";

/** A key for each role, and one that was revoked. */
export const KEYS = {
  owner: "og_owner_0123456789abcdefghijklm",
  approver: "og_approver_0123456789abcdefghij",
  agent: "og_agent_0123456789abcdefghijklm",
  reader: "og_reader_0123456789abcdefghijkl",
  revoked: "og_revoked_0123456789abcdefghijk",
} as const;

/** Where our pages are, by the settings of these servers. */
export const OWN_ORIGIN = "http://127.0.0.1:3000";

/** Ids that the stub services know. */
export const KNOWN_ID = "act_01known";

/** Of its receipt. */
export const KNOWN_TOKEN = "01knowntoken";

export const KNOWN_KEY_ID = "key_01known";

export const KNOWN_PAUSE_ID = "pau_01known";
export const KNOWN_RULE_ID = "rul_01known";

export const KNOWN_OAUTH_CLIENT_ID = "ocl_01known";

export const KNOWN_CHANNEL_ID = "chn_01known";

export const KNOWN_PERSON_ID = "per_01known";

export const KNOWN_INVITATION_ID = "inv_01known";

export const KNOWN_BULK_ID = "blk_01known";

export const KNOWN_CREDENTIAL_REQUEST_ID = "crq_01known";

export interface Line {
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields;
}

/** What a server of stubs is made of. */
export type Stubs = RouteServices & HttpSettings & { readonly routes?: readonly AnyElysia[] };

/** The server of stubs. */
export function stubHttp(stubs: Stubs) {
  return createHttp(stubs, stubs, stubs.routes);
}

/** Answers with this, whatever it is asked. */
const always =
  <T>(value: T) =>
  () =>
    Promise.resolve(value);

const done = always(undefined);

/** A service that knows one thing: whatever it is asked it answers with it, or with a list of it. */
function knowing<Service extends object>(thing: unknown, own: Partial<Service> = {}): Service {
  return new Proxy(own, {
    get: (answers, name) => Reflect.get(answers, name) ?? always(String(name).startsWith("list") ? [thing] : thing),
  }) as Service;
}

/** Writes down the names of the methods that are called. */
export function recorded<Service extends object>(service: Service, calls: string[]): Service {
  return new Proxy(service, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...given: unknown[]): unknown => {
        calls.push(String(name));
        return Reflect.apply(value, target, given);
      };
    },
  });
}

/** Read once: of a server for each test it was a tenth. */
const UNSET = readConfig({});
const [PAGES_GUARD, MCP_GUARD] = [createPagesGuard(UNSET), createMcpGuard(UNSET)];

/** Services that know a single object each, and write down in `calls` what they are asked for. */
export function stubDeps(calls: string[] = []): Stubs {
  const told = <Service extends object>(service: Service) => recorded(service, calls);
  const pause = aPause({ id: KNOWN_PAUSE_ID });
  const keys = Object.entries(KEYS).map(([name, hash]) =>
    name === "revoked"
      ? anApiKey({ id: "key_revoked", hash, revokedAt: new Date() })
      : anApiKey({ id: `key_${name}`, name, role: name as Role, scope: "account", accountId: ACCOUNT, hash }),
  );
  const credential = aCredential();
  const asked = aCredentialRequest({ id: KNOWN_CREDENTIAL_REQUEST_ID });
  const client = { id: KNOWN_OAUTH_CLIENT_ID, name: "Workflows", redirectUris: [] };
  const rule = aRule(KNOWN_RULE_ID);
  const row = anApiKey({ id: KNOWN_KEY_ID });
  const member = { personId: KNOWN_PERSON_ID, email: "bob@example.com", role: "reader", joinedAt: NOON };
  const invitation = anInvitation({ id: KNOWN_INVITATION_ID, accountId: ACCOUNT });
  return {
    actionService: told(stubActionService()),
    feed: told(knowing<Stubs["feed"]>(undefined, { open: always(quietStream()) })),
    authenticate: createAuthenticate(
      {
        store: {
          accounts: knowing<AccountStore>(undefined, {
            keyByHash: (hash) => Promise.resolve(keys.find((key) => key.hash === hash) ?? null),
          }),
        },
        clock: systemClock,
      },
      { isStopped: () => false, secrets: { hash: (text) => text } },
    ),
    keyService: told(knowing<KeyService>({ row, key: "og_new", ...row, unfinishedActions: 0 })),
    findPause: () => null,
    pauseService: told(knowing<Stubs["pauseService"]>({ pause, isNew: true }, { list: always([pause]) })),
    hostService: told(knowing<HostService>({ hosts: [], defaults: NO_HOST_SETTINGS })),
    ruleService: told(knowing<RuleService>({ row: rule, position: 0, warnings: [] }, { list: always([rule]) })),
    credentialService: told(
      knowing<CredentialService>(credential, {
        uses: always(NO_USES),
        test: always({ status: 200, error: null, headers: {}, body: null, truncated: false }),
      }),
    ),
    credentialRequests: told(
      knowing<CredentialRequestService>({ ...asked, keyRole: "agent", keyRevokedAt: null, keyExpiresAt: null }),
    ),
    grantService: told(knowing<Stubs["grantService"]>(undefined, { list: always([]), listNamed: always([]) })),
    channelService: told(knowing<ChannelService>(aChannel({ id: KNOWN_CHANNEL_ID }))),
    bulkService: told(knowing<BulkService>(aBulkJob({ id: KNOWN_BULK_ID }))),
    signUpGate: told(knowing<Stubs["signUpGate"]>(undefined, { closedBy: always(null), isOperator: always(true) })),
    isStopped: () => false,
    auditService: createAuditService({
      store: { audit: { record: done, page: always({ rows: [], before: null }) } },
      clock: systemClock,
    }),
    sessionService: knowing<SessionService>(undefined, {
      resume: always(ENTERED.person),
      watchSession: always({ caller: ENTERED.person.caller, release: () => {} }),
      accountsOf: always([]),
    }),
    accountService: told(knowing<Stubs["accountService"]>({ id: ACCOUNT, name: null, email: null })),
    peopleService: stubPeopleService(),
    welcomeLinks: knowing<Stubs["welcomeLinks"]>(ENTERED),
    teamService: told(knowing<TeamService>(member)),
    invitationService: told(
      knowing<Stubs["invitationService"]>({ ...invitation, invitation, link: "http://h/join/og_new", isMailed: false }),
    ),
    ownMails: told(knowing<Stubs["ownMails"]>({ delivered: false, error: "No mail was sent." }, { sendsMail: false })),
    oauth: null,
    oauthClients: told(knowing<OAuthClientService>({ ...client, secret: "secret of a client" })),
    oidc: null,
    signingService: told(
      knowing<SigningService>(null, {
        read: (_caller, origin) => Promise.resolve({ origin, secret: "whsec_test", previous: null }),
        origins: always([]),
        rotate: (_caller, origin) => Promise.resolve({ origin, rotatedAt: NOON, previousExpiresAt: later(86_400_000) }),
      }),
    ),
    verifyService: told({ check: always({ secret: "current" as const, problems: [], warnings: [] }) }),
    callbackHosts: told<CallbackHostService>({
      list: always([]),
      add: ({ accountId }, host) => Promise.resolve({ accountId, host, createdAt: NOON }),
      remove: done,
      test: always({
        delivered: true,
        verifies: null,
        signed: { response_code: 200, duration_ms: 5, error: null },
        wrong_signature: null,
      }),
    }),
    readReceipt: (token) =>
      Promise.resolve(token === KNOWN_TOKEN ? { action: anAction({ id: KNOWN_ID }), timeline: [] } : null),
    listNotifications: always({ entries: [], before: null }),
    firstSteps: told({
      read: always(null),
      state: always({ times: new Map(), isHidden: false, isOver: false }),
      hide: done,
      show: done,
    }),
    overviewService: { read: (_caller, range) => Promise.resolve(anOverviewAnswer({ range })) },
    settingsFor: always(SOME_RULES),
    readSize: always(null),
    followLink: { open: always(null), decide: always(null) },
    approvalLinks: "confirm",
    checkTarget: (url) => (url.startsWith("http") ? { hostname: "h", host: "h" } : { refused: "Is no URL." }),
    clock: systemClock,
    ids: systemIds,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    metrics: new Metrics(),
    renderMetrics: always("outgate_up 1\n"),
    isMetricsToken: null,
    hasMetrics: true,
    receiptUrl: (id) => `/r/${id}`,
    receiptPath: (id) => `/r/${id}`,
    probe: done,
    commit: null,
    version: "0.0.0-test",
    baseUrl: OWN_ORIGIN,
    isTrustedProxy: () => false,
    pagesGuard: PAGES_GUARD,
    secrets: createSecrets(new Uint8Array(32), (count) => systemIds.bytes(count)),
    rateLimitPerSecond: 0,
    mcpSessionsPerAccount: 20,
    draining: new AbortController().signal,
    countNodes: () => 1,
    mcpGuard: MCP_GUARD,
  };
}

/**
 * The real HTTP server on a real socket over stub services: for what is checked before a service is called. Every call
 * of a service is written down in `calls`. Listens on any free port; a browser has to know which beforehand.
 */
export function openStubServer(overrides: Partial<Stubs> = {}, listenPort = 0) {
  const calls: string[] = [];
  const lines: Line[] = [];
  const at =
    (level: string) =>
    (event: string, fields: LogFields = {}) =>
      void lines.push({ level, event, fields });
  const drain = new AbortController();
  const deps = {
    ...stubDeps(calls),
    log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") },
    draining: drain.signal,
    ...overrides,
  };
  const http = stubHttp(deps);
  const start = openStartServer(listenPort, "127.0.0.1", deps);
  http.serveOn(start, "127.0.0.1");
  const { port = 0 } = start.listening;
  const url = `http://127.0.0.1:${port}`;
  return {
    http,
    port,
    url,
    /** What a browser says of our own pages. */
    origin: new URL(overrides.baseUrl ?? OWN_ORIGIN).origin,
    calls,
    lines,
    drain,
    /** With the owner's key unless `headers` says otherwise. */
    ask(path: string, init: RequestInit = {}) {
      const headers = new Headers(init.headers);
      if (!headers.has("authorization")) headers.set("authorization", `Bearer ${KEYS.owner}`);
      return fetch(`${url}${path}`, { ...init, headers });
    },
    async [Symbol.asyncDispose]() {
      drain.abort();
      await http.stop(0);
    },
  };
}

/** What is in force where nothing is set. */
export const SOME_RULES: EffectiveSettings = {
  targets: "Calls may go to public addresses only.",
  rateLimitPerSecond: 100,
  attemptTimeoutMs: 30_000,
  retryBaseMs: 2_000,
  retryCapMs: 3_600_000,
  approvalTtlHours: null,
  approvalLinks: "confirm",
  approvers: [],
  agentApproval: "off",
  sendsMail: false,
  retentionDays: null,
  all: null,
};

/** The service of one known action. */
export function stubActionService(own: Partial<ActionService> = {}): ActionService {
  const known = anAction({ id: KNOWN_ID });
  const find = (_caller: unknown, id: string) =>
    id === KNOWN_ID
      ? Promise.resolve(known)
      : Promise.reject(new DomainError("not_found", `There is no action ${id}.`));
  return knowing<ActionService>(known, {
    create: (_caller, request) => Promise.resolve({ action: anAction({ ...request, id: KNOWN_ID }) }),
    get: find,
    wait: find,
    list: always({ actions: [known], before: KNOWN_ID, searchedUntil: null }),
    timeline: always([]),
    decideMany: (_caller, _decision, requests) =>
      Promise.resolve(requests.map(({ id }) => ({ id, status: "pending" as const }))),
    actionDigest: () => "2:digest",
    ...own,
  });
}

/** A stream in which nothing happens. */
function quietStream() {
  const over = Promise.withResolvers<null>();
  return { position: "MA", next: () => over.promise, ask: () => {}, end: () => over.resolve(null) };
}

/** The service of one person, whom every password and every link lets in, and whom every session is. */
export function stubPeopleService(own: Partial<PeopleService> = {}): PeopleService {
  return knowing<PeopleService>(ENTERED, { sessionSecret: { isRight: () => true, confirm: done }, ...own });
}

const ANN = {
  person: { id: "per_one", email: "ann@example.com" },
  accountId: ACCOUNT,
  role: "owner",
  secretHash: null,
} as const;

const ENTERED: StartedSession = {
  person: personOfSession("token", ANN, { hash: (text) => text }),
  sessionToken: "0".repeat(64),
  deviceToken: "device",
};

/** A request to `/` that nobody has looked at yet. */
export function aRequestContext(overrides: Partial<RequestContext> = {}): RequestContext {
  return {
    request: new Request("http://localhost/"),
    server: null,
    path: "/",
    search: "",
    client: "",
    name: nameRequest(null, systemIds),
    startedMs: 0,
    caller: null,
    count: () => {},
    route: null,
    actionId: null,
    errorCode: null,
    page: null,
    kind: "work",
    isBodyUnread: false,
    freeBody: () => {},
    chunked: null,
    ...overrides,
  };
}

/** A server of which a request only sets the time limit. */
export function limitsServer(limits: number[]): RequestContext["server"] {
  // Safe: nothing else of it is used.
  return { timeout: (_: Request, seconds: number) => void limits.push(seconds) } as unknown as RequestContext["server"];
}
