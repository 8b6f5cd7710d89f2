import type {
  Account,
  AccountList,
  Action,
  ActionCounts,
  ActionPage,
  AttemptList,
  AuditLog,
  AuditQuery,
  BulkJob,
  BulkJobList,
  BulkQuery,
  BulkResultList,
  BulkResultQuery,
  CallbackHost,
  CallbackHostList,
  CallbackTest,
  ChangeAccount,
  ChangeChannel,
  ChangeFirstSteps,
  ChangePerson,
  Channel,
  ChannelList,
  ChannelTest,
  CreateAction,
  CreateChannel,
  CreateInvitation,
  CreateKey,
  CreatePause,
  CreatedInvitation,
  CreatedKey,
  DecideRequests,
  Decision,
  DecisionFacts,
  ExportQuery,
  FilterQuery,
  FirstSteps,
  Health,
  HostSettings,
  HostSettingsList,
  InvitationList,
  KeyList,
  ListQuery,
  NotificationList,
  NotificationQuery,
  Overview,
  Pause,
  PauseList,
  Person,
  PersonList,
  PutDefaults,
  PutHostSettings,
  Receipt,
  RequestDecisions,
  Retry,
  RevokedKey,
  Rotation,
  Server,
  Settings,
  SignatureCheck,
  SigningOriginList,
  SigningSecret,
  StartBulk,
  TestCallback,
  TestMail,
  TestMailResult,
  Timeline,
  VerifySignature,
} from "./openapi.ts";
import { follow } from "./follow.ts";
import { type Call, createTransport, OutgateError, type Transport } from "./transport.ts";
import type {
  CallOptions,
  ClientSettings,
  CreateActionOptions,
  FollowOptions,
  OutgateClient,
  OutgateEvent,
  MadeByOptions,
  RevokeOptions,
  RotateOptions,
  OverviewOptions,
  SigningSecretOptions,
  WaitForOptions,
  WaitOptions,
} from "./types.ts";

/** The service's default for a `sync` create without `wait`. */
const SYNC_WAIT_SECONDS = 30;

type Send = <T>(route: Call["route"], options?: CallOptions, more?: Partial<Call>) => Promise<T>;

/** A client of the HTTP API: each call is one request, and its repetitions where they are safe. */
export function createClient(settings: ClientSettings): OutgateClient {
  const transport = createTransport(settings);
  const send: Send = async <T>(route: Call["route"], { signal }: CallOptions = {}, more: Partial<Call> = {}) =>
    // Safe: the API defines the type of a 2xx response, which the caller names.
    (await transport.call({ route, isRepeatable: route.startsWith("GET "), signal, ...more })) as T;
  const calls = actionCalls(send);
  return {
    ...calls,
    ...accountCalls(send),
    ...bulkCalls(send),
    exportActions: (query: ExportQuery = {}, options?: CallOptions) => chunksOf(transport, query, options),
    create: (action: CreateAction, options: CreateActionOptions = {}) =>
      calls.createAction(action, { ...options, idempotencyKey: options.idempotencyKey ?? crypto.randomUUID() }),
    waitFor: (id: string, options?: WaitForOptions) =>
      waitFor((one, waiting) => calls.getAction(one, waiting), id, options),
    actions: (query?: ListQuery, options?: CallOptions) => pagesOf(calls.listActions, query, options),
    streamEvents: (options: FollowOptions = {}): AsyncGenerator<OutgateEvent> =>
      follow(transport, settings.parse ?? JSON.parse, options),
    getReceipt: (receipt: string, options?: CallOptions) =>
      send<Receipt>(`GET /r/${encodeURIComponent(receipt.replace(/^.*\/r\//, ""))}`, options, {
        headers: { accept: "application/json" },
      }),
    getHealth: (options?: CallOptions) => send<Health>("GET /health", options),
    getReady: (options?: CallOptions) => send<Health>("GET /ready", options),
    getMetrics: (options?: CallOptions) => send<string>("GET /metrics", options),
    getOpenApi: (options?: CallOptions) => send<object>("GET /openapi.json", options),
  };
}

const WAIT_FOR_SECONDS = 300;

/** Under the minute after which proxies often end a silent request. */
const LONG_POLL_SECONDS = 50;

async function waitFor(
  getAction: OutgateClient["getAction"],
  id: string,
  { timeoutSeconds = WAIT_FOR_SECONDS, ...options }: WaitForOptions = {},
): Promise<Action> {
  const endMs = performance.now() + timeoutSeconds * 1_000;
  for (;;) {
    const leftSeconds = Math.ceil((endMs - performance.now()) / 1_000);
    const waitSeconds = Math.min(LONG_POLL_SECONDS, leftSeconds);
    const action = await getAction(id, { ...options, ...(waitSeconds > 0 ? { waitSeconds } : {}) });
    if (["completed", "failed", "cancelled"].includes(action.status)) return action;
    if (performance.now() < endMs) continue;
    throw new OutgateError(
      "timed_out",
      `Action ${id} has not ended within ${timeoutSeconds} s; it is ${action.status}. It goes on without this program.`,
    );
  }
}

async function* pagesOf(
  listActions: OutgateClient["listActions"],
  query: ListQuery = {},
  options?: CallOptions,
): AsyncGenerator<Action> {
  for (let cursor = query.cursor; ;) {
    const page = await listActions({ ...query, ...(cursor === undefined ? {} : { cursor }) }, options);
    yield* page.data;
    if (page.next_cursor === null) return;
    cursor = page.next_cursor;
  }
}

function actionCalls(send: Send) {
  const at = (id: string) => `/v1/actions/${encodeURIComponent(id)}` as const;
  const decide =
    (verb: string) =>
    (id: string, decision: Decision = {}, options?: CallOptions) =>
      send<Action>(`POST ${at(id)}/${verb}`, options, { body: decision });
  return {
    createAction(action: CreateAction, { idempotencyKey, waitSeconds, ...options }: CreateActionOptions = {}) {
      return send<Action>("POST /v1/actions", options, {
        query: { wait: waitSeconds },
        headers: idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey },
        body: action,
        isRepeatable: idempotencyKey !== undefined,
        waitSeconds: action.sync === true ? (waitSeconds ?? SYNC_WAIT_SECONDS) : 0,
      });
    },
    listActions: (query: ListQuery = {}, options?: CallOptions) =>
      send<ActionPage>("GET /v1/actions", options, { query }),
    countActions: (query: FilterQuery = {}, options?: CallOptions) =>
      send<ActionCounts>("GET /v1/actions/counts", options, { query }),
    getAction(id: string, { waitSeconds, ...options }: WaitOptions = {}) {
      const waiting = waitSeconds === undefined ? {} : { query: { wait: waitSeconds }, waitSeconds };
      return send<Action>(`GET ${at(id)}`, options, waiting);
    },
    getTimeline: (id: string, options?: CallOptions) => send<Timeline>(`GET ${at(id)}/timeline`, options),
    getAttempts: (id: string, options?: CallOptions) => send<AttemptList>(`GET ${at(id)}/attempts`, options),
    getDecisionFacts: (id: string, options?: CallOptions) => send<DecisionFacts>(`GET ${at(id)}/facts`, options),
    approveAction: decide("approve"),
    cancelAction: decide("cancel"),
    sendActionNow: (id: string, retry?: Retry, options?: CallOptions) => decide("send-now")(id, retry, options),
    retryAction: (id: string, retry?: Retry, options?: CallOptions) => decide("retry")(id, retry, options),
    decideRequests: (decision: DecideRequests, options?: CallOptions) =>
      send<RequestDecisions>("POST /v1/approvals", options, { body: decision }),
    getOverview: ({ range, ...options }: OverviewOptions = {}) =>
      send<Overview>("GET /v1/overview", options, { query: { range } }),
  };
}

function bulkCalls(send: Send) {
  const at = (id: string) => `/v1/bulk/${encodeURIComponent(id)}` as const;
  return {
    // Safe: `dry_run` decides which of both the service answers with.
    startBulk: ((bulk: StartBulk, options?: CallOptions) =>
      send("POST /v1/bulk", options, {
        body: bulk,
        isRepeatable: bulk.dry_run === true,
      })) as OutgateClient["startBulk"],
    listBulk: (query: BulkQuery = {}, options?: CallOptions) => send<BulkJobList>("GET /v1/bulk", options, { query }),
    getBulk: (id: string, options?: CallOptions) => send<BulkJob>(`GET ${at(id)}`, options),
    listBulkResults: (id: string, query: BulkResultQuery = {}, options?: CallOptions) =>
      send<BulkResultList>(`GET ${at(id)}/results`, options, { query }),
    stopBulk: (id: string, options?: CallOptions) => send<undefined>(`DELETE ${at(id)}`, options, REPEATABLE),
  };
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

const REPEATABLE = { isRepeatable: true } as const;

/** Keys, pauses, secrets and accounts. All but `getAccount` need an owner key. */
function accountCalls(send: Send) {
  return {
    listKeys: ({ createdBy, ...options }: MadeByOptions = {}) =>
      send<KeyList>("GET /v1/keys", options, { query: { created_by: createdBy } }),
    createKey: (key: CreateKey, options?: CallOptions) => send<CreatedKey>("POST /v1/keys", options, { body: key }),
    revokeKey: (id: string, { unfinished, ...options }: RevokeOptions = {}) =>
      send<RevokedKey>(`DELETE /v1/keys/${encodeURIComponent(id)}`, options, {
        query: { unfinished },
        ...REPEATABLE,
      }),
    createPause: (pause: CreatePause, options?: CallOptions) =>
      send<Pause>("POST /v1/pauses", options, { body: pause, ...REPEATABLE }),
    listPauses: (options?: CallOptions) => send<PauseList>("GET /v1/pauses", options),
    endPause: (id: string, options?: CallOptions) =>
      send<undefined>(`DELETE /v1/pauses/${encodeURIComponent(id)}`, options, REPEATABLE),
    listChannels: (options?: CallOptions) => send<ChannelList>("GET /v1/channels", options),
    createChannel: (channel: CreateChannel, options?: CallOptions) =>
      send<Channel>("POST /v1/channels", options, { body: channel }),
    changeChannel: (id: string, change: ChangeChannel, options?: CallOptions) =>
      send<Channel>(`PATCH /v1/channels/${encodeURIComponent(id)}`, options, { body: change, ...REPEATABLE }),
    removeChannel: (id: string, options?: CallOptions) =>
      send<undefined>(`DELETE /v1/channels/${encodeURIComponent(id)}`, options),
    testChannel: (id: string, options?: CallOptions) =>
      send<ChannelTest>(`POST /v1/channels/${encodeURIComponent(id)}/test`, options),
    listHosts: (options?: CallOptions) => send<HostSettingsList>("GET /v1/hosts", options),
    putHost: (host: string, settings: PutHostSettings, options?: CallOptions) =>
      send<HostSettings>(`PUT /v1/hosts/${encodeURIComponent(host)}`, options, { body: settings, ...REPEATABLE }),
    removeHost: (host: string, options?: CallOptions) =>
      send<undefined>(`DELETE /v1/hosts/${encodeURIComponent(host)}`, options),
    putDefaults: (settings: PutDefaults, options?: CallOptions) =>
      send<Settings>("PUT /v1/defaults", options, { body: settings, ...REPEATABLE }),
    listAudit: (query: AuditQuery = {}, options?: CallOptions) => send<AuditLog>("GET /v1/audit", options, { query }),
    listNotifications: (query: NotificationQuery = {}, options?: CallOptions) =>
      send<NotificationList>("GET /v1/notifications", options, { query }),
    ...signatureCalls(send),
    listAccounts: (options?: CallOptions) => send<AccountList>("GET /v1/accounts", options),
    allowAccount: (id: string, options?: CallOptions) =>
      send<undefined>(`POST /v1/accounts/${encodeURIComponent(id)}/allow`, options, REPEATABLE),
    getFirstSteps: (options?: CallOptions) => send<FirstSteps>("GET /v1/first-steps", options),
    changeFirstSteps: (change: ChangeFirstSteps, options?: CallOptions) =>
      send<FirstSteps>("PATCH /v1/first-steps", options, { body: change, ...REPEATABLE }),
    getServer: (options?: CallOptions) => send<Server>("GET /v1/server", options),
    sendTestMail: (mail: TestMail, options?: CallOptions) =>
      send<TestMailResult>("POST /v1/server/test-mail", options, { body: mail }),
    getAccount: (options?: CallOptions) => send<Account>("GET /v1/account", options),
    changeAccount: (change: ChangeAccount, options?: CallOptions) =>
      send<Account>("PATCH /v1/account", options, { body: change, ...REPEATABLE }),
    ...peopleCalls(send),
  };
}

function signatureCalls(send: Send) {
  return {
    listCallbackHosts: (options?: CallOptions) => send<CallbackHostList>("GET /v1/callback-hosts", options),
    addCallbackHost: (host: string, options?: CallOptions) =>
      send<CallbackHost>("POST /v1/callback-hosts", options, { body: { host }, ...REPEATABLE }),
    removeCallbackHost: (host: string, options?: CallOptions) =>
      send<undefined>("DELETE /v1/callback-hosts", options, { query: { host } }),
    testCallback: (test: TestCallback, options?: CallOptions) =>
      send<CallbackTest>("POST /v1/callback-hosts/test", options, { body: test }),
    listSigningOrigins: (options?: CallOptions) => send<SigningOriginList>("GET /v1/signing-origins", options),
    getSigningSecret: (origin: string, { for: use, ...options }: SigningSecretOptions = {}) =>
      send<SigningSecret>("GET /v1/signing-secret", options, { query: { origin, for: use } }),
    rotateSigningSecret: ({ origin, for: use, ...options }: RotateOptions = {}) =>
      send<Rotation>("POST /v1/signing-secret/rotate", options, { query: { origin, for: use } }),
    verifySignature: (origin: string, message: VerifySignature, { for: use, ...options }: SigningSecretOptions = {}) =>
      send<SignatureCheck>("POST /v1/signing-secret/verify", options, {
        query: { origin, for: use },
        body: message,
        ...REPEATABLE,
      }),
  };
}

function peopleCalls(send: Send) {
  const at = (id: string) => `/v1/people/${encodeURIComponent(id)}` as const;
  return {
    listPeople: (options?: CallOptions) => send<PersonList>("GET /v1/people", options),
    changePerson: (id: string, change: ChangePerson, options?: CallOptions) =>
      send<Person>(`PATCH ${at(id)}`, options, { body: change, ...REPEATABLE }),
    removePerson: (id: string, options?: CallOptions) => send<undefined>(`DELETE ${at(id)}`, options),
    listInvitations: ({ createdBy, ...options }: MadeByOptions = {}) =>
      send<InvitationList>("GET /v1/invitations", options, { query: { created_by: createdBy } }),
    createInvitation: (invitation: CreateInvitation, options?: CallOptions) =>
      send<CreatedInvitation>("POST /v1/invitations", options, { body: invitation }),
    withdrawInvitation: (id: string, options?: CallOptions) =>
      send<undefined>(`DELETE /v1/invitations/${encodeURIComponent(id)}`, options),
  };
}
