import type * as Api from "./api.ts";
import { follow } from "./follow.ts";
import { type HttpCall, createTransport, OutgateError } from "./transport.ts";
import type {
  CallOptions,
  ClientSettings,
  CreateActionOptions,
  FollowOptions,
  MadeByOptions,
  OutgateEvent,
  OverviewOptions,
  RevokeOptions,
  RotateOptions,
  SigningSecretOptions,
  StartBulkMethod,
  WaitForOptions,
  WaitOptions,
} from "./types.ts";
import { isEnded, waitForEnd } from "./wait.ts";

/** The service's default for a `sync` create without `wait`. */
const SYNC_WAIT_SECONDS = 30;

const REPEATABLE = { isRepeatable: true } as const;

/**
 * One method for each operation of the HTTP API, by its `operationId`. Failures are an `OutgateError`, or a `TypeError` for an
 * argument that can't be sent. While the service can't be reached, calls that are safe to repeat are retried: reads, and
 * idempotent writes such as a create with an `idempotencyKey`.
 */
export type OutgateClient = ReturnType<typeof createClient>;

/** See `HttpCall`; undefined for an answer without a member of its own. One that earlier versions have too. */
type Member<Answer> = Answer extends object ? (keyof Answer & string) | undefined : null | undefined;

/** Creates a client of the HTTP API. Each call is one request, repeated only if that is safe. */
export function createClient(settings: ClientSettings) {
  const transport = createTransport(settings);
  const send = async <Answer>(
    route: HttpCall["route"],
    member: Member<Answer>,
    { signal }: CallOptions = {},
    more: Partial<HttpCall> = {},
  ) =>
    // Safe: the API defines the type of a 2xx response, which the methods name.
    (await transport.call({ route, member, isRepeatable: route.startsWith("GET "), signal, ...more })) as Answer;
  const at = (route: HttpCall["route"], id: string) =>
    // Safe: a route with its parameter filled in. A path has no empty segment and none of dots: a space is nobody's id either.
    route.replace("{id}", () => encodeURIComponent(/^\.{0,2}$/.test(id) ? " " : id)) as HttpCall["route"];

  // Methods by what they take. Those that change something are repeated only where `more` says so.
  /* oxlint-disable typescript/no-unnecessary-type-parameters -- the API defines the types: no argument tells them */
  const plain =
    <Answer>(route: HttpCall["route"], member: Member<Answer>) =>
    (options?: CallOptions): Promise<Answer> =>
      send(route, member, options);
  const withQuery =
    <Query extends object, Answer>(route: HttpCall["route"], member: Member<Answer>) =>
    (query?: Query, options?: CallOptions): Promise<Answer> =>
      send(route, member, options, { query: { ...query } });
  const withBody =
    <Body extends object, Answer>(route: HttpCall["route"], member: Member<Answer>, more: Partial<HttpCall> = {}) =>
    (body: Body, options?: CallOptions): Promise<Answer> =>
      send(route, member, options, { body, ...more });
  const byId =
    <Answer>(route: HttpCall["route"], member: Member<Answer>, more: Partial<HttpCall> = {}) =>
    (id: string, options?: CallOptions): Promise<Answer> =>
      send(at(route, id), member, options, more);
  const byIdWithBody =
    <Body extends object, Answer>(route: HttpCall["route"], member: Member<Answer>, more: Partial<HttpCall> = {}) =>
    (id: string, body: Body, options?: CallOptions): Promise<Answer> =>
      send(at(route, id), member, options, { body, ...more });
  const byIdWithReason =
    <Body extends object, Answer>(route: HttpCall["route"], member: Member<Answer>) =>
    (id: string, body?: Body, options?: CallOptions): Promise<Answer> =>
      send(at(route, id), member, options, { body: body ?? {} });
  /* oxlint-enable typescript/no-unnecessary-type-parameters */

  const createAction = (
    action: Api.CreateAction,
    { idempotencyKey, waitSeconds, ...options }: CreateActionOptions = {},
  ): Promise<Api.Action> =>
    send("POST /v1/actions", "id", options, {
      query: { wait: waitSeconds },
      headers: idempotencyKey === undefined ? {} : { "idempotency-key": keyHeader(idempotencyKey) },
      body: action,
      isRepeatable: idempotencyKey !== undefined,
      waitSeconds: action.sync === true ? (waitSeconds ?? SYNC_WAIT_SECONDS) : 0,
    });
  const getAction = (id: string, { waitSeconds, ...options }: WaitOptions = {}): Promise<Api.Action> =>
    send(
      at("GET /v1/actions/{id}", id),
      "id",
      options,
      waitSeconds === undefined ? {} : { query: { wait: waitSeconds }, waitSeconds },
    );
  const listActions = withQuery<Api.ListQuery, Api.ActionPage>("GET /v1/actions", "data");
  // `dry_run` decides which of the two the service returns.
  const startBulk: StartBulkMethod = (bulk: Api.StartBulk, options?: CallOptions) =>
    send<Api.BulkDryRun & Api.BulkJob>("POST /v1/bulk", "matching", options, {
      body: bulk,
      isRepeatable: bulk.dry_run === true,
    });

  return {
    /**
     * `createAction` with an idempotency key, by default a random one. The client repeats it while the service can't be
     * reached, and creates a single action. Pass your own key if your program may run twice.
     */
    create: (action: Api.CreateAction, options: CreateActionOptions = {}): Promise<Api.Action> =>
      createAction(action, { ...options, idempotencyKey: options.idempotencyKey ?? crypto.randomUUID() }),
    /**
     * Waits until the action has completed, failed or been cancelled, even while it awaits approval. Rejects with `timed_out`
     * after `timeoutSeconds`, but the action goes on.
     */
    async waitFor(
      id: string,
      { timeoutSeconds = WAIT_FOR_SECONDS, ...options }: WaitForOptions = {},
    ): Promise<Api.Action> {
      const action = await waitForEnd(getAction, await getAction(id, options), timeoutSeconds, options);
      if (isEnded(action)) return action;
      throw new OutgateError(
        "timed_out",
        `Action ${id} has not ended within ${timeoutSeconds} s; it is ${action.status}. It goes on without this program.`,
      );
    },
    /** All actions that match, newest first, page by page. */
    async *actions(query: Api.ListQuery = {}, options?: CallOptions): AsyncGenerator<Api.Action> {
      for (let cursor = query.cursor; ;) {
        const page = await listActions({ ...query, ...(cursor === undefined ? {} : { cursor }) }, options);
        yield* page.data;
        if (page.next_cursor === null) return;
        cursor = page.next_cursor;
      }
    },
    /** One request, repeated only with an `idempotencyKey`, which `create` adds. With `sync`, waits for the end. */
    createAction,
    /** One page, newest first. `actions` returns all pages. */
    listActions,
    /** How many actions match, by status. */
    countActions: withQuery<Api.FilterQuery, Api.ActionCounts>("GET /v1/actions/counts", "data"),
    /** With `waitSeconds`, the service answers once the action has ended or the time is over. `waitFor` repeats it. */
    getAction,
    /** Every attempt, decision and notification, oldest first. */
    getTimeline: byId<Api.Timeline>("GET /v1/actions/{id}/timeline", "data"),
    /** The responses to the newest attempts. */
    getAttempts: byId<Api.AttemptList>("GET /v1/actions/{id}/attempts", "data"),
    /** What people see before they decide on the action. */
    getDecisionFacts: byId<Api.DecisionFacts>("GET /v1/actions/{id}/facts", "facts"),
    /** Sends an action that awaits approval, exactly as stored. Needs an owner or approver key. */
    approveAction: byIdWithReason<Api.Approval, Api.Action>("POST /v1/actions/{id}/approve", "id"),
    /** Ends an action that was not sent yet. With an owner or approver key, rejects one that awaits approval. */
    cancelAction: byIdWithReason<Api.Decision, Api.Action>("POST /v1/actions/{id}/cancel", "id"),
    /** Sends a failed or cancelled action again, in its next run. It needs approval again if it needed it before. */
    retryAction: byIdWithReason<Api.Retry, Api.Action>("POST /v1/actions/{id}/retry", "id"),
    /** Sends an action now that is waiting for its `run_at` or its next attempt. */
    sendActionNow: byIdWithReason<Api.Retry, Api.Action>("POST /v1/actions/{id}/send-now", "id"),
    /** Decides on up to 50 held requests, exactly as they were shown. Returns a result for each. */
    decideRequests: withBody<Api.DecideRequests, Api.RequestDecisions>("POST /v1/approvals", "data"),
    /** All matches as NDJSON or CSV, in pieces as they arrive. Reads only as fast as you take them. */
    exportActions: (query: Api.ExportQuery = {}, options?: CallOptions): AsyncGenerator<Uint8Array> =>
      transport.stream({ route: "GET /v1/actions/export", type: EXPORTED, query, isRepeatable: true, ...options }),
    /** Begins to retry or cancel all actions that match. With `dry_run`, only says which. */
    startBulk,
    listBulk: withQuery<Api.BulkQuery, Api.BulkJobList>("GET /v1/bulk", "data"),
    getBulk: byId<Api.BulkJob>("GET /v1/bulk/{id}", "id"),
    listBulkResults: (
      id: string,
      query: Api.BulkResultQuery = {},
      options?: CallOptions,
    ): Promise<Api.BulkResultList> => send(at("GET /v1/bulk/{id}/results", id), "data", options, { query }),
    stopBulk: byId<undefined>("DELETE /v1/bulk/{id}", null, REPEATABLE),
    /** The figures of the Overview page, for the last 24 hours by default. */
    getOverview: ({ range, ...options }: OverviewOptions = {}): Promise<Api.Overview> =>
      send("GET /v1/overview", "slots", options, { query: { range } }),
    listNotifications: withQuery<Api.NotificationQuery, Api.NotificationList>("GET /v1/notifications", "data"),
    /** Every change of status as it happens. Reconnects automatically, without gaps or repeats. */
    streamEvents: (options: FollowOptions = {}): AsyncGenerator<OutgateEvent> =>
      follow(transport, settings.parse ?? JSON.parse, options),
    /** Takes an action's `receipt_url` or the token in it. Needs no key. */
    getReceipt: (receipt: string, options?: CallOptions): Promise<Api.Receipt> =>
      send(at("GET /r/{id}", receipt.replace(/^.*\/r\//, "")), "id", options, {
        headers: { accept: "application/json" },
      }),
    listKeys: ({ createdBy, ...options }: MadeByOptions = {}): Promise<Api.KeyList> =>
      send("GET /v1/keys", "data", options, { query: { created_by: createdBy } }),
    /** Returns the key itself, which is shown only once. */
    createKey: withBody<Api.CreateKey, Api.CreatedKey>("POST /v1/keys", "key"),
    /** Revokes a key at once and for good. Its actions stay as they are unless `unfinished` says otherwise. */
    revokeKey: (id: string, { unfinished, ...options }: RevokeOptions = {}): Promise<Api.RevokedKey> =>
      send(at("DELETE /v1/keys/{id}", id), "id", options, { query: { unfinished }, ...REPEATABLE }),
    /** Pauses the whole account without `key_id` and `host`. Returns the existing pause if there is one. */
    createPause: withBody<Api.CreatePause, Api.Pause>("POST /v1/pauses", "id", REPEATABLE),
    listPauses: plain<Api.PauseList>("GET /v1/pauses", "data"),
    endPause: byId<undefined>("DELETE /v1/pauses/{id}", null, REPEATABLE),
    listChannels: plain<Api.ChannelList>("GET /v1/channels", "data"),
    /** The channel gets a message for every action that begins to await approval from now on. */
    createChannel: withBody<Api.CreateChannel, Api.Channel>("POST /v1/channels", "id"),
    changeChannel: byIdWithBody<Api.ChangeChannel, Api.Channel>("PATCH /v1/channels/{id}", "id", REPEATABLE),
    removeChannel: byId<undefined>("DELETE /v1/channels/{id}", null),
    /** Sends a test message at once. */
    testChannel: byId<Api.ChannelTest>("POST /v1/channels/{id}/test", "delivered"),
    /** The settings of hosts and of the account. */
    listHosts: plain<Api.HostSettingsList>("GET /v1/hosts", "defaults"),
    /** Replaces all settings of the host. */
    putHost: byIdWithBody<Api.PutHostSettings, Api.HostSettings>("PUT /v1/hosts/{id}", "host", REPEATABLE),
    removeHost: byId<undefined>("DELETE /v1/hosts/{id}", null),
    /** Replaces the settings that apply to all hosts of the account. */
    putDefaults: withBody<Api.PutDefaults, Api.Settings>("PUT /v1/defaults", undefined, REPEATABLE),
    listGrants: plain<Api.GrantList>("GET /v1/grants", "data"),
    endGrant: byId<undefined>("DELETE /v1/grants/{id}", null),
    /** The credentials that the key may see, without their secrets. */
    listCredentials: plain<Api.CredentialList>("GET /v1/credentials", "data"),
    createCredential: withBody<Api.CreateCredential, Api.Credential>("POST /v1/credentials", "name"),
    getCredential: byId<Api.Credential>("GET /v1/credentials/{id}", "name"),
    /** Replaces the secret, changes the bounds, or disables the credential. */
    changeCredential: byIdWithBody<Api.ChangeCredential, Api.Credential>(
      "PATCH /v1/credentials/{id}",
      "name",
      REPEATABLE,
    ),
    /** Sends a GET at once. */
    testCredential: byIdWithBody<Api.TestCredential, Api.CredentialTest>("POST /v1/credentials/{id}/test", "truncated"),
    removeCredential: byId<undefined>("DELETE /v1/credentials/{id}", null),
    /** Asks the owners for a credential. Asking again for the same host returns the open request. */
    askCredential: withBody<Api.AskCredential, Api.CredentialRequest>("POST /v1/credential-requests", "id", REPEATABLE),
    listCredentialRequests: withQuery<Api.CredentialRequestQuery, Api.CredentialRequestPage>(
      "GET /v1/credential-requests",
      "data",
    ),
    getCredentialRequest: byId<Api.CredentialRequest>("GET /v1/credential-requests/{id}", "id"),
    /** Adds a credential that the asking key may use. */
    grantCredentialRequest: byIdWithBody<Api.CreateCredential, Api.CredentialRequest>(
      "POST /v1/credential-requests/{id}/grant",
      "id",
    ),
    declineCredentialRequest: byIdWithReason<Api.DeclineCredential, Api.CredentialRequest>(
      "POST /v1/credential-requests/{id}/decline",
      "id",
    ),
    /** The clients that owners have added. */
    listOAuthClients: plain<Api.OAuthClientList>("GET /v1/oauth-clients", "data"),
    /** Returns the secret, which is shown only once. */
    createOAuthClient: withBody<Api.CreateOAuthClient, Api.NewOAuthClient>("POST /v1/oauth-clients", "id"),
    /** Returns the new secret, which is shown only once. Never retried: a second secret would replace the first. */
    replaceOAuthClientSecret: byId<Api.NewOAuthClient>("POST /v1/oauth-clients/{id}/secret", "id"),
    /** Also ends the client's connections. */
    removeOAuthClient: byId<undefined>("DELETE /v1/oauth-clients/{id}", null),
    /** The rules in the order in which they apply. */
    listRules: plain<Api.RuleList>("GET /v1/rules", "data"),
    /** Adds a rule at the end, or `before` another one. */
    createRule: withBody<Api.CreateRule, Api.Rule>("POST /v1/rules", "id"),
    /** Replaces all rules by these. A rule with the same name as before keeps its id. */
    replaceRules: withBody<Api.ReplaceRules, Api.RuleList>("PUT /v1/rules", "data", REPEATABLE),
    reorderRules: withBody<Api.ReorderRules, Api.RuleList>("POST /v1/rules/reorder", "data", REPEATABLE),
    /** Says what rules would have done with the newest actions; by default the rules in force. Changes nothing. */
    dryRunRules: withBody<Api.DryRunRules, Api.DryRun>("POST /v1/rules/dry-run", "looked_at", REPEATABLE),
    changeRule: byIdWithBody<Api.ChangeRule, Api.Rule>("PATCH /v1/rules/{id}", "id", REPEATABLE),
    removeRule: byId<undefined>("DELETE /v1/rules/{id}", null),
    listAudit: withQuery<Api.AuditQuery, Api.AuditLog>("GET /v1/audit", "data"),
    listCallbackHosts: plain<Api.CallbackHostList>("GET /v1/callback-hosts", "data"),
    addCallbackHost: (host: string, options?: CallOptions): Promise<Api.CallbackHost> =>
      send("POST /v1/callback-hosts", "host", options, { body: { host }, ...REPEATABLE }),
    removeCallbackHost: (host: string, options?: CallOptions): Promise<undefined> =>
      send("DELETE /v1/callback-hosts", null, options, { query: { host } }),
    /** Never retried: the receiver would get it twice. */
    testCallback: withBody<Api.TestCallback, Api.CallbackTest>("POST /v1/callback-hosts/test", "delivered"),
    /** The origins that calls and callbacks went to, last used first. */
    listSigningOrigins: plain<Api.SigningOriginList>("GET /v1/signing-origins", "data"),
    getSigningSecret: (
      origin: string,
      { for: use, ...options }: SigningSecretOptions = {},
    ): Promise<Api.SigningSecret> => send("GET /v1/signing-secret", "secret", options, { query: { origin, for: use } }),
    /** Says why a receiver can't verify a message. */
    verifySignature: (
      origin: string,
      message: Api.VerifySignature,
      { for: use, ...options }: SigningSecretOptions = {},
    ): Promise<Api.SignatureCheck> =>
      send("POST /v1/signing-secret/verify", "valid", options, {
        query: { origin, for: use },
        body: message,
        ...REPEATABLE,
      }),
    /** Never retried: a second rotation would end the previous secret at once. */
    rotateSigningSecret: ({ origin, for: use, ...options }: RotateOptions = {}): Promise<Api.Rotation> =>
      send("POST /v1/signing-secret/rotate", "previous_expires_at", options, { query: { origin, for: use } }),
    /** The first steps of a new account. */
    getFirstSteps: plain<Api.FirstSteps>("GET /v1/first-steps", "data"),
    changeFirstSteps: withBody<Api.ChangeFirstSteps, Api.FirstSteps>("PATCH /v1/first-steps", "data", REPEATABLE),
    /** The server's settings in force. */
    getServer: plain<Api.Server>("GET /v1/server", "version"),
    /** Never retried: the mail would be sent twice. */
    sendTestMail: withBody<Api.TestMail, Api.TestMailResult>("POST /v1/server/test-mail", "delivered"),
    listAccounts: plain<Api.AccountList>("GET /v1/accounts", "data"),
    allowAccount: byId<undefined>("POST /v1/accounts/{id}/allow", null, REPEATABLE),
    listPeople: plain<Api.PersonList>("GET /v1/people", "data"),
    changePerson: byIdWithBody<Api.ChangePerson, Api.Person>("PATCH /v1/people/{id}", "email", REPEATABLE),
    removePerson: byId<undefined>("DELETE /v1/people/{id}", null),
    listInvitations: ({ createdBy, ...options }: MadeByOptions = {}): Promise<Api.InvitationList> =>
      send("GET /v1/invitations", "data", options, { query: { created_by: createdBy } }),
    /** Never retried: a second invitation of the address would end the first link. */
    createInvitation: withBody<Api.CreateInvitation, Api.CreatedInvitation>("POST /v1/invitations", "link"),
    withdrawInvitation: byId<undefined>("DELETE /v1/invitations/{id}", null),
    getAccount: plain<Api.Account>("GET /v1/account", "limits"),
    changeAccount: withBody<Api.ChangeAccount, Api.Account>("PATCH /v1/account", "limits", REPEATABLE),
    getHealth: plain<Api.Health>("GET /health", "version"),
    getReady: plain<Api.Health>("GET /ready", "version"),
    getMetrics: plain<string>("GET /metrics", undefined),
    getOpenApi: plain<object>("GET /openapi.json", undefined),
  };
}

const WAIT_FOR_SECONDS = 300;

/** Quotes a key, as in the draft RFC, if the service would take it for two headers joined by a comma. */
function keyHeader(key: string): string {
  return key.includes(", ") && !key.startsWith('"') ? `"${key.replaceAll(/["\\]/g, String.raw`\$&`)}"` : key;
}

const EXPORTED = /^(?:application\/x-ndjson|text\/csv)/;
