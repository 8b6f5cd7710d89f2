import { createHttp, type HttpDeps } from "../../src/app/http.ts";
import { createAuditService } from "../../src/audit/audit.ts";
import type { StartedSession } from "../../src/core/session.ts";
import { type AuditStore } from "../../src/core/audit.ts";
import { createAuthenticate } from "../../src/accounts/authenticate.ts";
import type { CallbackHostService } from "../../src/accounts/callback-hosts.ts";
import type { KeyService } from "../../src/accounts/keys.ts";
import { personOfSession } from "../../src/accounts/sessions.ts";
import type { PeopleService } from "../../src/accounts/people.ts";
import type { TeamService } from "../../src/accounts/team.ts";
import type { OwnMailService } from "../../src/accounts/own-mails.ts";
import type { SigningService } from "../../src/accounts/signing-secrets.ts";
import type { ActionService } from "../../src/actions/service.ts";
import { systemClock } from "../../src/core/clock.ts";
import { NO_HISTORY } from "../../src/approvals/facts.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import type { Caller, Role } from "../../src/core/roles.ts";
import type { RetrySettings } from "../../src/core/retry-settings.ts";
import type { ChannelService } from "../../src/channels/channels.ts";
import type { RulesDryRun, DryRunStep } from "../../src/rules/dry-run.ts";
import type { AccountClient, OAuthClientService } from "../../src/oauth/account-clients.ts";
import type { CredentialRequestService } from "../../src/credentials/requests.ts";
import { type CredentialService, NO_USES } from "../../src/credentials/service.ts";
import type { RuleService } from "../../src/rules/service.ts";
import type { HostService } from "../../src/hosts/hosts.ts";
import { NO_HOST_SETTINGS } from "../../src/core/host-settings.ts";
import type { Feed } from "../../src/events/feed.ts";
import { GUIDE_GROUPS } from "../../src/pages/docs/guides.ts";
import { isLoopbackUrl } from "../../src/config/values.ts";
import { createOwnHostOnly, createOwnHostPages } from "../../src/http/own-origin.ts";
import { systemIds } from "../../src/core/ids.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import type { LogFields } from "../../src/observability/log.ts";
import type { AccountStore, ApiKey } from "../../src/core/account-store.ts";
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

export interface Line {
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields;
}

/** What a server of stubs is made of. */
export type Stubs = HttpDeps;

/** The server of stubs. */
export function stubHttp(stubs: Stubs) {
  return createHttp(stubs);
}

/** Services that know a single object each, and write down in `calls` what they are called for. */
export function stubDeps(calls: string[] = []): Stubs {
  return {
    actionService: stubActionService(calls),
    feed: stubFeed(calls),
    authenticate: createAuthenticate({
      accounts: accountsOf(),
      isStopped: () => false,
      secrets: { hash: (text) => text },
      clock: systemClock,
    }),
    keyService: stubKeyService(calls),
    pauseOf: () => null,
    pauseService: {
      list: () => Promise.resolve([aPause({ id: KNOWN_PAUSE_ID })]),
      pause: () => Promise.resolve({ pause: aPause({ id: KNOWN_PAUSE_ID }), isNew: true }),
      resume(_caller, id) {
        calls.push(`resume ${id}`);
        return Promise.resolve();
      },
    },
    hostService: stubHostService(calls),
    ruleService: stubRuleService(calls),
    credentialService: stubCredentialService(calls),
    credentialTests: {
      test(_caller, name) {
        calls.push(`test credential ${name}`);
        return Promise.resolve({ status: 200, error: null, headers: {}, body: null, truncated: false });
      },
    },
    credentialRequests: stubCredentialRequests(calls),
    grantService: {
      list: () => Promise.resolve([]),
      listNamed: () => Promise.resolve([]),
      end(_caller, id) {
        calls.push(`end grant ${id}`);
        return Promise.resolve();
      },
    },
    channelService: stubChannels(calls),
    bulkService: stubBulkService(calls),
    signUpGate: stubSignUpGate(calls),
    isStopped: () => false,
    auditService: createAuditService(emptyAudit(), systemClock),
    peopleService: stubPeopleService(calls),
    teamService: stubTeamService(calls),
    ownMails: stubOwnMails(calls),
    oauth: null,
    oauthClients: stubOAuthClients(calls),
    oidc: null,
    signingService: stubSigningService(calls),
    verifyService: { check: () => Promise.resolve({ secret: "current", problems: [], warnings: [] }) },
    callbackHosts: stubCallbackHosts(calls),
    callbackTests: {
      test(_caller, url) {
        calls.push(`test callback ${url}`);
        return Promise.resolve({ signed: { code: 200, durationMs: 5, error: null }, wrong: null, verifies: null });
      },
    },
    readReceipt: (token) =>
      Promise.resolve(token === KNOWN_TOKEN ? { action: anAction({ id: KNOWN_ID }), timeline: [] } : null),
    listNotifications: () => Promise.resolve({ entries: [], before: null }),
    firstSteps: {
      read: () => Promise.resolve(null),
      state: () => Promise.resolve({ times: new Map(), isHidden: false, isOver: false }),
      hide: () => Promise.resolve(void calls.push("hide first steps")),
      show: () => Promise.resolve(void calls.push("show first steps")),
    },
    overviewService: { read: (_caller, range) => Promise.resolve(anOverviewAnswer({ range })) },
    guides: GUIDE_GROUPS,
    settingsFor: () => Promise.resolve(SOME_RULES),
    readSize: () => Promise.resolve(null),
    followLink: { open: () => Promise.resolve(null), decide: () => Promise.resolve(null) },
    approvalLinks: "confirm",
    checkTarget: (url) => (url.startsWith("http") ? { hostname: "h", host: "h" } : { refused: "Is no URL." }),
    clock: systemClock,
    ids: systemIds,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    metrics: new Metrics(),
    renderMetrics: () => Promise.resolve("outgate_up 1\n"),
    isMetricsToken: null,
    hasMetrics: true,
    receiptUrl: (id) => `/r/${id}`,
    receiptPath: (id) => `/r/${id}`,
    probe: () => Promise.resolve(),
    commit: null,
    version: "0.0.0-test",
    baseUrl: OWN_ORIGIN,
    isTrustedProxy: () => false,
    pagesGuard: createOwnHostPages({ baseUrl: OWN_ORIGIN, isOnLoopback: true, isLoopback: isLoopbackUrl }),
    secrets: createSecrets(new Uint8Array(32), (count) => systemIds.bytes(count)),
    limits: { rateLimitPerSecond: 0, mcpSessionsPerAccount: 20 },
    draining: new AbortController().signal,
    mcpGuard: createOwnHostOnly({ ownHostname: null, takesAnyHost: false, isLoopback: isLoopbackUrl }),
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
  const http = stubHttp({
    ...stubDeps(calls),
    log: { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") },
    draining: drain.signal,
    ...overrides,
  });
  const { port } = http.listen(listenPort, "127.0.0.1");
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

/** Nothing is listed, whatever is added. */
function stubCallbackHosts(calls: string[]): CallbackHostService {
  return {
    list: () => Promise.resolve([]),
    add({ accountId }, host) {
      calls.push(`add callback host ${host}`);
      return Promise.resolve({ accountId, host, createdAt: NOON });
    },
    remove: () => Promise.resolve(),
  };
}

function stubChannels(calls: string[]): ChannelService {
  const asked = (verb: string, id: string) => {
    calls.push(`${verb} channel ${id}`);
    if (id !== KNOWN_CHANNEL_ID) throw new DomainError("not_found", "There is no such channel.");
    return aChannel({ id });
  };
  return {
    list: () => Promise.resolve([]),
    add(_caller, { name }) {
      calls.push(`add channel ${name}`);
      return Promise.resolve(aChannel({ name }));
    },
    change: (_caller, id) => Promise.resolve(asked("change", id)),
    remove: (_caller, id) => Promise.resolve(void asked("remove", id)),
    test(_caller, id) {
      asked("test", id);
      return Promise.resolve({ delivered: true, error: null });
    },
  };
}

function stubHostService(calls: string[]): HostService {
  const put = (caller: Caller, host: string, settings: RetrySettings) => {
    calls.push(`put host ${host}`);
    const { accountId, actor: updatedBy } = caller;
    return Promise.resolve({
      accountId,
      host,
      settings: { ...NO_HOST_SETTINGS, ...settings },
      updatedAt: NOON,
      updatedBy,
    });
  };
  return {
    list: () => Promise.resolve({ hosts: [], defaults: NO_HOST_SETTINGS }),
    put,
    putDefaults: (caller, settings) => put(caller, "", settings),
    remove(_caller, host) {
      calls.push(`remove host ${host}`);
      return Promise.resolve();
    },
  };
}

const DRY_RUN: RulesDryRun = {
  looked_at: 0,
  from: null,
  undecidable: 0,
  unknown: 0,
  uncertain: 0,
  differing: 0,
  shown: [],
  allowed: 0,
  held: 0,
  refused: 0,
  held_approved: 0,
  held_rejected: 0,
  held_undecided: 0,
};

async function* oneDryRun(): AsyncGenerator<DryRunStep> {
  yield DRY_RUN;
}

function stubCredentialService(calls: string[]): CredentialService {
  const known = aCredential();
  const called = (verb: string, name: string) => {
    calls.push(`${verb} credential ${name}`);
    if (name !== known.name) throw new DomainError("not_found", "There is no such credential.");
    return Promise.resolve(known);
  };
  return {
    list: () => Promise.resolve([known]),
    uses: ({ role }) => Promise.resolve(role === "owner" ? NO_USES : null),
    find: (_caller, name) => called("find", name),
    add: (_caller, { name }) => called("add", name),
    change: (_caller, name) => called("change", name),
    remove: async (_caller, name) => void (await called("remove", name)),
  };
}

function stubOAuthClients(calls: string[]): OAuthClientService {
  const known: AccountClient = {
    id: KNOWN_OAUTH_CLIENT_ID,
    name: "Workflows",
    redirectUris: ["https://client.example/callback"],
    type: "confidential" as const,
    connections: 0,
    createdAt: NOON,
    createdBy: "user:ann@example.com",
  };
  return {
    list: () => Promise.resolve([known]),
    add: (_caller, { name }) => {
      calls.push(`add client ${name}`);
      return Promise.resolve({ client: known, secret: "secret of a client" });
    },
    replaceSecret: async (_caller, id) => {
      calls.push(`replace secret of client ${id}`);
      if (id !== known.id) throw new DomainError("not_found", "There is no such client.");
      return { client: known, secret: "secret of a client" };
    },
    remove: async (_caller, id) => {
      calls.push(`remove client ${id}`);
      if (id !== known.id) throw new DomainError("not_found", "There is no such client.");
    },
  };
}

function stubCredentialRequests(calls: string[]): CredentialRequestService {
  const known = {
    ...aCredentialRequest({ id: KNOWN_CREDENTIAL_REQUEST_ID }),
    keyRole: "agent",
    keyRevokedAt: null,
    keyExpiresAt: null,
  } as const;
  const called = (verb: string, id: string) => {
    calls.push(`${verb} request ${id}`);
    if (id !== known.id) throw new DomainError("not_found", "There is no such request for a credential.");
    return Promise.resolve(known);
  };
  return {
    find: (_caller, id) => called("find", id),
    list: () => Promise.resolve([known]),
    own: () => Promise.resolve([known]),
    pending: () => Promise.resolve([known]),
    ask: () => Promise.resolve({ request: known, isNew: true }),
    grant: async (_caller, id) => {
      await called("grant", id);
      return aCredential();
    },
    decline: (_caller, id) => called("decline", id),
  };
}

function stubRuleService(calls: string[]): RuleService {
  const written = (verb: string) => {
    calls.push(`${verb} rules`);
    return Promise.resolve([]);
  };
  const placed = (verb: string) => {
    calls.push(`${verb} rule`);
    return Promise.resolve({ row: aRule(KNOWN_RULE_ID), position: 0, warnings: [] });
  };
  return {
    list: () => Promise.resolve([aRule(KNOWN_RULE_ID)]),
    warnings: () => new Map(),
    dryRun: () => Promise.resolve(oneDryRun()),
    tryRule: () => Promise.resolve(DRY_RUN),
    hits: () => Promise.resolve({ counts: new Map(), isWhole: true }),
    lastChange: () => Promise.resolve(null),
    undo() {
      calls.push("undo rules");
      return Promise.resolve();
    },
    add: () => placed("add"),
    change: (_caller, id) => placed(`change ${id}`),
    replace: async (_caller, id) => void (await placed(`change ${id}`)),
    remove(_caller, id) {
      calls.push(`remove rule ${id}`);
      return Promise.resolve();
    },
    brakeLoops: () => Promise.resolve(),
    reorder: () => written("reorder"),
    replaceAll: () => written("replace"),
  };
}

/** The service of one known action. */
export function stubActionService(calls: string[]): ActionService {
  const find = (verb: string) => (_caller: unknown, id: string) => {
    calls.push(`${verb} ${id}`);
    if (id !== KNOWN_ID) throw new DomainError("not_found", `There is no action ${id}.`);
    return Promise.resolve(anAction({ id }));
  };
  return {
    create(_caller, request) {
      calls.push(`create ${JSON.stringify(request)}`);
      return Promise.resolve({ action: anAction({ ...request, id: KNOWN_ID }) });
    },
    get: find("get"),
    wait: find("wait"),
    sendNow: find("send now"),
    held() {
      calls.push("held");
      return Promise.resolve({
        actions: [anAction({ id: KNOWN_ID, approve: true })],
        after: null,
        requesters: [],
        hosts: [],
        hasMoreHosts: false,
        total: 1,
        matching: 1,
        histories: new Map(),
      });
    },
    heldAmong(_caller, ids) {
      calls.push(`held among ${ids.join(" ")}`);
      return Promise.resolve({ actions: ids.map((id) => anAction({ id, approve: true })), histories: new Map() });
    },
    historyOf: () => Promise.resolve(NO_HISTORY),
    list() {
      calls.push("list");
      return Promise.resolve({ actions: [anAction({ id: KNOWN_ID })], before: KNOWN_ID, searchedUntil: null });
    },
    filterValues: () => Promise.resolve({ hosts: [], creators: [] }),
    counts: () => Promise.resolve({ counts: [], countedUntil: null }),
    timeline(_caller, id) {
      calls.push(`timeline ${id}`);
      return Promise.resolve([]);
    },
    async history(caller, id) {
      return { action: await find("history")(caller, id), timeline: [], attempts: [] };
    },
    approve: find("approve"),
    cancel: find("cancel"),
    retry: find("retry"),
    decideMany(_caller, { decision }, requests) {
      calls.push(`${decision} ${requests.length}`);
      return Promise.resolve(requests.map(({ id }) => ({ id, status: "pending" })));
    },
    digestOf: () => "2:digest",
  };
}

export const KNOWN_BULK_ID = "blk_01known";

export const KNOWN_CREDENTIAL_REQUEST_ID = "crq_01known";

function stubBulkService(calls: string[]): BulkService {
  const find: BulkService["find"] = (_caller, id) => {
    calls.push(`find ${id}`);
    if (id !== KNOWN_BULK_ID) return Promise.reject(new DomainError("not_found", "There is no such bulk job."));
    return Promise.resolve(aBulkJob({ id }));
  };
  return {
    dryRun: () => Promise.resolve({ matching: 0, isMore: false, unknownOutcomes: 0, lateSuccesses: 0, groups: [] }),
    start(_caller, { operation }) {
      calls.push(`bulk ${operation}`);
      return Promise.resolve(aBulkJob({ id: KNOWN_BULK_ID, operation }));
    },
    find,
    list: async (caller) => [await find(caller, KNOWN_BULK_ID)],
    async results(caller, id) {
      await find(caller, id);
      return [];
    },
    async stop(caller, id) {
      await find(caller, id);
      calls.push(`stop ${id}`);
    },
  };
}

/** A feed in which nothing happens. */
function stubFeed(calls: string[]): Pick<Feed, "open"> {
  return {
    open(_caller, lastEventId) {
      calls.push(`events ${lastEventId}`);
      const over = Promise.withResolvers<null>();
      return Promise.resolve({
        position: "MA",
        next: () => over.promise,
        ask: () => {},
        end: () => over.resolve(null),
      });
    },
  };
}

/** A log in which nothing stands. */
function emptyAudit(): AuditStore {
  return {
    record: () => Promise.resolve(),
    page: () => Promise.resolve({ rows: [], before: null }),
    count: () => Promise.resolve({ counts: [], isWhole: true }),
    prune: () => Promise.resolve(false),
  };
}

/** Anybody may sign up, and nobody is stopped. */
function stubSignUpGate(calls: string[]): HttpDeps["signUpGate"] {
  return {
    closedBy: () => Promise.resolve(null),
    isOperator: () => Promise.resolve(true),
    requireOperator: () => Promise.resolve(),
    list: () => Promise.resolve([]),
    allow(_caller, id) {
      calls.push(`allow ${id}`);
      return Promise.resolve();
    },
  };
}

/** The service of one known key. */
function stubKeyService(calls: string[]): KeyService {
  return {
    list() {
      calls.push("list keys");
      return Promise.resolve([anApiKey({ id: KNOWN_KEY_ID })]);
    },
    listWithUse() {
      calls.push("list keys");
      return Promise.resolve([
        { ...anApiKey({ id: KNOWN_KEY_ID }), lastCall: null, actionsToday: 0, actionsLastDay: 0, credentials: [] },
      ]);
    },
    create(_caller, request) {
      calls.push(`create key ${JSON.stringify(request)}`);
      const { name, role, replaces = null } = request;
      const row = anApiKey({
        name,
        role,
        replaces,
        id: KNOWN_KEY_ID,
        hold: request.hold ?? "none",
        scope: request.scope ?? "own",
      });
      return Promise.resolve({ row, key: "og_new", closesSignUps: false });
    },
    revoke(_caller, id) {
      calls.push(`revoke ${id}`);
      return Promise.resolve({ ...anApiKey({ id }), unfinishedCount: 0, heldCount: 0, madeCount: 0 });
    },
    unfinished: () => Promise.resolve({ unfinishedCount: 0, heldCount: 0 }),
    ofFormer: () => Promise.resolve([]),
  };
}

/** The service of one person, whom every password and every link lets in, and whom every session is. */
export function stubPeopleService(calls: string[]): PeopleService {
  const who = {
    person: { id: "per_one", email: "ann@example.com" },
    accountId: ACCOUNT,
    role: "owner",
    secretHash: null,
  } as const;
  const entered: StartedSession = {
    person: personOfSession("token", who, { hash: (text) => text }),
    sessionToken: "0".repeat(64),
    deviceToken: "device",
  };
  const came = <T>(verb: string, result: T): Promise<T> => {
    calls.push(verb);
    return Promise.resolve(result);
  };
  return {
    readAccount: () => Promise.resolve({ id: ACCOUNT, name: null, email: null }),
    renameAccount: (_caller, name) => came(`rename ${name}`, undefined),
    isSignUpOpen: () => Promise.resolve(true),
    requireSignUpOpen: () => Promise.resolve(),
    signUp: () => came("sign up", { ...entered, apiKey: "og_new" }),
    logIn: () => came("log in", entered),
    logOut: () => came("log out", undefined),
    resume: () => Promise.resolve(entered.person),
    changePassword: () => came("change password", entered),
    recheckSessions: () => Promise.resolve(),
    recheckPerson: () => Promise.resolve(),
    authenticate: () => Promise.reject(new Error("No password was sent.")),
    hashPassword: () => Promise.reject(new Error("No password was sent.")),
    watchSession: () => Promise.resolve({ caller: entered.person.caller, release: () => {} }),
    sessionSecret: { isRight: () => true, confirm: () => Promise.resolve() },
    findLink: () => came("see welcome", { email: null }),
    redeemLink: () => came("take welcome", entered),
  };
}

/** A team of one known person, with one open invitation. */
function stubTeamService(calls: string[]): TeamService {
  const member = {
    personId: KNOWN_PERSON_ID,
    email: "bob@example.com",
    role: "reader",
    joinedAt: NOON,
    lastSeenAt: null,
  } as const;
  const invitation = anInvitation({ id: KNOWN_INVITATION_ID, accountId: ACCOUNT });
  const came = <T>(verb: string, result: T): Promise<T> => {
    calls.push(verb);
    return Promise.resolve(result);
  };
  return {
    list: () => Promise.resolve([member]),
    changeRole: (_caller, id, role) => came(`role ${id} ${role}`, { ...member, role }),
    remove: (_caller, id) => came(`remove ${id}`, undefined),
    leave: () => came("leave", undefined),
    invite: (_caller, email) => came(`invite ${email}`, { invitation, link: "http://h/join/og_new", isMailed: false }),
    invitations: () => Promise.resolve([{ ...invitation, isVoid: false }]),
    withdraw: (_caller, id) => came(`withdraw ${id}`, undefined),
    findInvitation: () =>
      Promise.resolve({
        email: "ann@example.com",
        role: "reader",
        account: { name: null, email: null },
        isKnown: true,
      }),
    joinByPassword: () => Promise.reject(new Error("No password was sent.")),
    joinAs: () => came("join", undefined),
    joinByIdentity: () => Promise.resolve(null),
    accountsOf: () => Promise.resolve([{ accountId: ACCOUNT, role: "owner", name: null, email: "ann@example.com" }]),
    switchTo: (_person, id) => came(`switch ${id}`, undefined),
    sessions: () => Promise.resolve([]),
    endSessions: (_person, id) => came(`end ${id ?? "others"}`, undefined),
  };
}

/** Nobody can send mail to themselves, and everybody has a password. */
function stubOwnMails(calls: string[]): OwnMailService {
  const came = (what: string) => {
    calls.push(what);
    return Promise.resolve({ delivered: false, error: "No mail was sent." });
  };
  return {
    sendsMail: false,
    hasPassword: () => Promise.resolve(true),
    test: () => came("mail test"),
    testTo: () => came("mail test"),
    sendPasswordLink: () => came("password link"),
  };
}

/** Every origin has one secret, and a rotation is of noon. */
function stubSigningService(calls: string[]): SigningService {
  return {
    read: (_caller, origin) => Promise.resolve({ origin, secret: "whsec_test", previous: null }),
    origins: () => Promise.resolve([]),
    overlapEnd: () => Promise.resolve(null),
    rotate(_caller, origin) {
      calls.push(`rotate ${origin}`);
      return Promise.resolve({ origin, rotatedAt: NOON, previousExpiresAt: later(86_400_000) });
    },
  };
}

function accountsOf(): AccountStore {
  const roles: readonly Role[] = ["owner", "approver", "agent", "reader"];
  const keys = new Map<string, ApiKey>(
    roles.map((role) => [
      KEYS[role],
      anApiKey({ id: `key_${role}`, name: role, role, scope: "account", accountId: ACCOUNT }),
    ]),
  );
  keys.set(KEYS.revoked, anApiKey({ id: "key_revoked", revokedAt: new Date() }));
  const notAsked = () => Promise.reject(new Error("A server asks for keys only."));
  return {
    revokedAmong: () => Promise.resolve([]),
    keyByHash: (hash) => Promise.resolve(keys.get(hash) ?? null),
    keyUsed: () => Promise.resolve(),
    keyUse: notAsked,
    first: notAsked,
    find: notAsked,
    create: notAsked,
    addKey: notAsked,
    keys: notAsked,
    revokeKey: notAsked,
    replacedBy: notAsked,
    findKey: notAsked,
    hasHold: notAsked,
    stopOthers: notAsked,
    list: notAsked,
    allow: notAsked,
  };
}
