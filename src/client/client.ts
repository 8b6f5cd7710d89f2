import type { Action, Approval, BulkDryRun, BulkJob, ExportQuery, ListQuery, StartBulk } from "./openapi.ts";
import { follow } from "./follow.ts";
import { type HttpCall, createTransport, OutgateError, type Transport } from "./transport.ts";
import type { CallOptions, ClientSettings, OutgateClient, WaitForOptions } from "./types.ts";

/** The service's default for a `sync` create without `wait`. */
const SYNC_WAIT_SECONDS = 30;

const REPEATABLE = { isRepeatable: true } as const;

/** A client of the HTTP API: each call is one request, and its repetitions where they are safe. */
export function createClient(settings: ClientSettings): OutgateClient {
  const transport = createTransport(settings);
  const send = async <T>(route: HttpCall["route"], { signal }: CallOptions = {}, more: Partial<HttpCall> = {}) =>
    // Safe: the API defines the type of a 2xx response, which `OutgateClient` names.
    (await transport.call({ route, isRepeatable: route.startsWith("GET "), signal, ...more })) as T;
  const at = (path: string, id: string) => `/v1/${path}/${encodeURIComponent(id)}` as const;
  const decide =
    (verb: string) =>
    (id: string, decision: Approval = {}, options: CallOptions = {}): Promise<Action> =>
      send(`POST ${at("actions", id)}/${verb}`, options, { body: decision });
  const client: OutgateClient = {
    create: (action, options = {}) =>
      client.createAction(action, { ...options, idempotencyKey: options.idempotencyKey ?? crypto.randomUUID() }),
    waitFor: (id, options) => waitFor(client, id, options),
    actions: (query, options) => pagesOf(client, query, options),
    createAction: (action, { idempotencyKey, waitSeconds, ...options } = {}) =>
      send("POST /v1/actions", options, {
        query: { wait: waitSeconds },
        headers: idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey },
        body: action,
        isRepeatable: idempotencyKey !== undefined,
        waitSeconds: action.sync === true ? (waitSeconds ?? SYNC_WAIT_SECONDS) : 0,
      }),
    listActions: (query = {}, options) => send("GET /v1/actions", options, { query }),
    countActions: (query = {}, options) => send("GET /v1/actions/counts", options, { query }),
    getAction: (id, { waitSeconds, ...options } = {}) =>
      send(
        `GET ${at("actions", id)}`,
        options,
        waitSeconds === undefined ? {} : { query: { wait: waitSeconds }, waitSeconds },
      ),
    getTimeline: (id, options) => send(`GET ${at("actions", id)}/timeline`, options),
    getAttempts: (id, options) => send(`GET ${at("actions", id)}/attempts`, options),
    getDecisionFacts: (id, options) => send(`GET ${at("actions", id)}/facts`, options),
    approveAction: decide("approve"),
    cancelAction: decide("cancel"),
    sendActionNow: decide("send-now"),
    retryAction: decide("retry"),
    decideRequests: (decision, options) => send("POST /v1/approvals", options, { body: decision }),
    exportActions: (query = {}, options) => chunksOf(transport, query, options),
    // `dry_run` decides which of both the service answers with.
    startBulk: (bulk: StartBulk, options?: CallOptions) =>
      send<BulkDryRun & BulkJob>("POST /v1/bulk", options, { body: bulk, isRepeatable: bulk.dry_run === true }),
    listBulk: (query = {}, options) => send("GET /v1/bulk", options, { query }),
    getBulk: (id, options) => send(`GET ${at("bulk", id)}`, options),
    listBulkResults: (id, query = {}, options) => send(`GET ${at("bulk", id)}/results`, options, { query }),
    stopBulk: (id, options) => send(`DELETE ${at("bulk", id)}`, options, REPEATABLE),
    getOverview: ({ range, ...options } = {}) => send("GET /v1/overview", options, { query: { range } }),
    listNotifications: (query = {}, options) => send("GET /v1/notifications", options, { query }),
    streamEvents: (options = {}) => follow(transport, settings.parse ?? JSON.parse, options),
    getReceipt: (receipt, options) =>
      send(`GET /r/${encodeURIComponent(receipt.replace(/^.*\/r\//, ""))}`, options, {
        headers: { accept: "application/json" },
      }),
    listKeys: ({ createdBy, ...options } = {}) => send("GET /v1/keys", options, { query: { created_by: createdBy } }),
    createKey: (key, options) => send("POST /v1/keys", options, { body: key }),
    revokeKey: (id, { unfinished, ...options } = {}) =>
      send(`DELETE ${at("keys", id)}`, options, { query: { unfinished }, ...REPEATABLE }),
    createPause: (pause, options) => send("POST /v1/pauses", options, { body: pause, ...REPEATABLE }),
    listPauses: (options) => send("GET /v1/pauses", options),
    endPause: (id, options) => send(`DELETE ${at("pauses", id)}`, options, REPEATABLE),
    listChannels: (options) => send("GET /v1/channels", options),
    createChannel: (channel, options) => send("POST /v1/channels", options, { body: channel }),
    changeChannel: (id, change, options) =>
      send(`PATCH ${at("channels", id)}`, options, { body: change, ...REPEATABLE }),
    removeChannel: (id, options) => send(`DELETE ${at("channels", id)}`, options),
    testChannel: (id, options) => send(`POST ${at("channels", id)}/test`, options),
    listHosts: (options) => send("GET /v1/hosts", options),
    putHost: (host, change, options) => send(`PUT ${at("hosts", host)}`, options, { body: change, ...REPEATABLE }),
    removeHost: (host, options) => send(`DELETE ${at("hosts", host)}`, options),
    putDefaults: (change, options) => send("PUT /v1/defaults", options, { body: change, ...REPEATABLE }),
    listGrants: (options) => send("GET /v1/grants", options),
    endGrant: (id, options) => send(`DELETE ${at("grants", id)}`, options),
    listCredentials: (options) => send("GET /v1/credentials", options),
    createCredential: (credential, options) => send("POST /v1/credentials", options, { body: credential }),
    getCredential: (name, options) => send(`GET ${at("credentials", name)}`, options),
    changeCredential: (name, change, options) =>
      send(`PATCH ${at("credentials", name)}`, options, { body: change, ...REPEATABLE }),
    testCredential: (name, test, options) => send(`POST ${at("credentials", name)}/test`, options, { body: test }),
    removeCredential: (name, options) => send(`DELETE ${at("credentials", name)}`, options),
    listOAuthClients: (options) => send("GET /v1/oauth-clients", options),
    createOAuthClient: (added, options) => send("POST /v1/oauth-clients", options, { body: added }),
    replaceOAuthClientSecret: (id, options) => send(`POST ${at("oauth-clients", id)}/secret`, options),
    removeOAuthClient: (id, options) => send(`DELETE ${at("oauth-clients", id)}`, options),
    askCredential: (asked, options) => send("POST /v1/credential-requests", options, { body: asked, ...REPEATABLE }),
    listCredentialRequests: (query = {}, options) => send("GET /v1/credential-requests", options, { query }),
    getCredentialRequest: (id, options) => send(`GET ${at("credential-requests", id)}`, options),
    grantCredentialRequest: (id, credential, options) =>
      send(`POST ${at("credential-requests", id)}/grant`, options, { body: credential }),
    declineCredentialRequest: (id, why = {}, options) =>
      send(`POST ${at("credential-requests", id)}/decline`, options, { body: why }),
    listRules: (options) => send("GET /v1/rules", options),
    createRule: (rule, options) => send("POST /v1/rules", options, { body: rule }),
    replaceRules: (rules, options) => send("PUT /v1/rules", options, { body: rules, ...REPEATABLE }),
    reorderRules: (order, options) => send("POST /v1/rules/reorder", options, { body: order, ...REPEATABLE }),
    dryRunRules: (rules, options) => send("POST /v1/rules/dry-run", options, { body: rules, ...REPEATABLE }),
    changeRule: (id, change, options) => send(`PATCH ${at("rules", id)}`, options, { body: change, ...REPEATABLE }),
    removeRule: (id, options) => send(`DELETE ${at("rules", id)}`, options),
    listAudit: (query = {}, options) => send("GET /v1/audit", options, { query }),
    listCallbackHosts: (options) => send("GET /v1/callback-hosts", options),
    addCallbackHost: (host, options) => send("POST /v1/callback-hosts", options, { body: { host }, ...REPEATABLE }),
    removeCallbackHost: (host, options) => send("DELETE /v1/callback-hosts", options, { query: { host } }),
    testCallback: (test, options) => send("POST /v1/callback-hosts/test", options, { body: test }),
    listSigningOrigins: (options) => send("GET /v1/signing-origins", options),
    getSigningSecret: (origin, { for: use, ...options } = {}) =>
      send("GET /v1/signing-secret", options, { query: { origin, for: use } }),
    rotateSigningSecret: ({ origin, for: use, ...options } = {}) =>
      send("POST /v1/signing-secret/rotate", options, { query: { origin, for: use } }),
    verifySignature: (origin, message, { for: use, ...options } = {}) =>
      send("POST /v1/signing-secret/verify", options, { query: { origin, for: use }, body: message, ...REPEATABLE }),
    getFirstSteps: (options) => send("GET /v1/first-steps", options),
    changeFirstSteps: (change, options) => send("PATCH /v1/first-steps", options, { body: change, ...REPEATABLE }),
    getServer: (options) => send("GET /v1/server", options),
    sendTestMail: (mail, options) => send("POST /v1/server/test-mail", options, { body: mail }),
    listAccounts: (options) => send("GET /v1/accounts", options),
    allowAccount: (id, options) => send(`POST ${at("accounts", id)}/allow`, options, REPEATABLE),
    listPeople: (options) => send("GET /v1/people", options),
    changePerson: (id, change, options) => send(`PATCH ${at("people", id)}`, options, { body: change, ...REPEATABLE }),
    removePerson: (id, options) => send(`DELETE ${at("people", id)}`, options),
    listInvitations: ({ createdBy, ...options } = {}) =>
      send("GET /v1/invitations", options, { query: { created_by: createdBy } }),
    createInvitation: (invitation, options) => send("POST /v1/invitations", options, { body: invitation }),
    withdrawInvitation: (id, options) => send(`DELETE ${at("invitations", id)}`, options),
    getAccount: (options) => send("GET /v1/account", options),
    changeAccount: (change, options) => send("PATCH /v1/account", options, { body: change, ...REPEATABLE }),
    getHealth: (options) => send("GET /health", options),
    getReady: (options) => send("GET /ready", options),
    getMetrics: (options) => send("GET /metrics", options),
    getOpenApi: (options) => send("GET /openapi.json", options),
  };
  return client;
}

const WAIT_FOR_SECONDS = 300;

/** Under the minute after which proxies often end a silent request. */
const LONG_POLL_SECONDS = 50;

async function waitFor(
  client: OutgateClient,
  id: string,
  { timeoutSeconds = WAIT_FOR_SECONDS, ...options }: WaitForOptions = {},
): Promise<Action> {
  const endMs = performance.now() + timeoutSeconds * 1_000;
  for (;;) {
    const leftSeconds = Math.ceil((endMs - performance.now()) / 1_000);
    const waitSeconds = Math.min(LONG_POLL_SECONDS, leftSeconds);
    const action = await client.getAction(id, { ...options, ...(waitSeconds > 0 ? { waitSeconds } : {}) });
    if (["completed", "failed", "cancelled"].includes(action.status)) return action;
    if (performance.now() < endMs) continue;
    throw new OutgateError(
      "timed_out",
      `Action ${id} has not ended within ${timeoutSeconds} s; it is ${action.status}. It goes on without this program.`,
    );
  }
}

async function* pagesOf(client: OutgateClient, query: ListQuery = {}, options?: CallOptions): AsyncGenerator<Action> {
  for (let cursor = query.cursor; ;) {
    const page = await client.listActions({ ...query, ...(cursor === undefined ? {} : { cursor }) }, options);
    yield* page.data;
    if (page.next_cursor === null) return;
    cursor = page.next_cursor;
  }
}

/** The body of an export as it arrives. It breaks off with an error where the service does. */
async function* chunksOf(
  transport: Transport,
  query: ExportQuery,
  { signal }: CallOptions = {},
): AsyncGenerator<Uint8Array> {
  const response = await transport.open({ route: "GET /v1/actions/export", query, isRepeatable: true, signal });
  const stream: ReadableStream<Uint8Array> | null = response.body;
  const reader = stream?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
