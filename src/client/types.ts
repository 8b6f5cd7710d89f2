import type * as Api from "./openapi.ts";

// The text of this file, without `Api.`, is part of the declarations of the npm package: it declares types only.

export interface ClientSettings {
  /** Address of the service, such as `http://127.0.0.1:3000`. */
  readonly url: string;
  /** Null: only for calls that need no key. */
  readonly apiKey: string | null;
  /** For one try including the response body, without `waitSeconds`. Default 30,000. */
  readonly timeoutMs?: number;
  /** How many times a call that is safe to repeat is tried. Default 3. */
  readonly tries?: number;
  /** Pause before the second try, doubled after each; a longer `Retry-After` wins. Default 250. */
  readonly retryBaseMs?: number;
  /** Parses the JSON of responses; `JSON.parse` rounds large numbers. */
  readonly parse?: (text: string) => unknown;
}

/** Options of every call. */
export interface CallOptions {
  /** Ends the call; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface WaitOptions extends CallOptions {
  /** How long the service waits for the end of the action, in seconds, 1 to 120. */
  readonly waitSeconds?: number | undefined;
}

interface CreateActionOptions extends WaitOptions {
  /** Makes the create safe to repeat: within 24 hours the same key returns the same action. The client then retries too. */
  readonly idempotencyKey?: string | undefined;
}

export interface WaitForOptions extends CallOptions {
  /** How long to wait for the end of the action, in seconds. Default 300. */
  readonly timeoutSeconds?: number | undefined;
}

export interface RevokeOptions extends CallOptions {
  /** What happens to the key's unfinished actions; default: keep. */
  readonly unfinished?: "keep" | "pause" | "cancel" | undefined;
}

export interface MadeByOptions extends CallOptions {
  /** Only what this person or key created, by its id. */
  readonly createdBy?: string | undefined;
}

interface OverviewOptions extends CallOptions {
  /** How far back; default: 24h. */
  readonly range?: Api.OverviewQuery["range"];
}

interface SigningSecretOptions extends CallOptions {
  /** What the secret signs; default: calls. Callbacks have a separate secret. */
  readonly for?: Api.SigningSecretQuery["for"];
}

export interface RotateOptions extends SigningSecretOptions {
  /** The origin whose secret is rotated; default: every origin's, for calls and for callbacks. */
  readonly origin?: string | undefined;
}

/** One change of status. */
export interface OutgateEvent {
  /** Pass it as `after` to continue behind this event. */
  readonly id: string;
  /** `action.` and the status. */
  readonly type: string;
  readonly timestamp: string;
  /** The action at that time. */
  readonly data: Api.Action;
}

export interface FollowOptions {
  /** The id of the last event received; without it the stream starts with new events. */
  readonly after?: string | undefined;
  /** Ends the stream, without an error. */
  readonly signal?: AbortSignal | undefined;
  /** Called when the stream is open: every later event will be delivered. */
  readonly onOpen?: () => void;
  /** Called when the connection was lost and will be opened again. */
  readonly onBreak?: (error: unknown) => void;
}

/**
 * The service's error code, or why there was none: `unreachable`, `tls_failed`, `timed_out`, `not_outgate` where
 * something else answers at the address, or `invalid_signature` from `verify`.
 */
export type OutgateErrorCode =
  | Api.ErrorEnvelope["error"]["code"]
  | "unreachable"
  | "tls_failed"
  | "timed_out"
  | "not_outgate"
  | "invalid_signature";

/** What an `OutgateError` has besides its message. */
export interface OutgateErrorFacts {
  readonly code: OutgateErrorCode;
  /** HTTP status; null without a response. */
  readonly status: number | null;
  /** Identifies the request in the service's log. */
  readonly requestId: string | null;
  /** Every problem of the request, by field. */
  readonly details: NonNullable<Api.ErrorEnvelope["error"]["details"]>;
  /** From `Retry-After`; null without one. */
  readonly retryAfterMs: number | null;
}

/** What a valid signature proves. */
export interface Verified {
  /** The action's id, or the callback's: the same in every attempt, so that a repeat can be recognized. */
  readonly id: string;
  readonly timestamp: Date;
}

/** A signed request as it was received. */
export interface SignedRequest {
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** As received, before any parser. */
  readonly body: string | Uint8Array;
}

/**
 * One method for each operation of the HTTP API, by its `operationId`. Every failure is an `OutgateError`. Operations that
 * are safe to repeat are retried while the service can't be reached: reads, and writes that are idempotent, such as a
 * create with an `idempotencyKey`.
 */
export interface OutgateClient {
  /**
   * `createAction` with an idempotency key, a random one by default: the client repeats it while the service can't be
   * reached, and one action comes of it. Give a key of your own where your program may run twice.
   */
  readonly create: (action: Api.CreateAction, options?: CreateActionOptions) => Promise<Api.Action>;
  /**
   * Waits until the action has completed, failed or been cancelled, also while it awaits approval. Rejects with `timed_out`
   * after `timeoutSeconds`: the action goes on without the program.
   */
  readonly waitFor: (id: string, options?: WaitForOptions) => Promise<Api.Action>;
  /** All actions that match, newest first, page by page. */
  readonly actions: (query?: Api.ListQuery, options?: CallOptions) => AsyncGenerator<Api.Action>;
  readonly createAction: (action: Api.CreateAction, options?: CreateActionOptions) => Promise<Api.Action>;
  readonly listActions: (query?: Api.ListQuery, options?: CallOptions) => Promise<Api.ActionPage>;
  /** How many actions match, by status. */
  readonly countActions: (query?: Api.FilterQuery, options?: CallOptions) => Promise<Api.ActionCounts>;
  readonly getAction: (id: string, options?: WaitOptions) => Promise<Api.Action>;
  readonly getTimeline: (id: string, options?: CallOptions) => Promise<Api.Timeline>;
  /** What came back of the newest attempts. */
  readonly getAttempts: (id: string, options?: CallOptions) => Promise<Api.AttemptList>;
  /** What a person is shown before deciding on the action. */
  readonly getDecisionFacts: (id: string, options?: CallOptions) => Promise<Api.DecisionFacts>;
  readonly approveAction: (id: string, approval?: Api.Approval, options?: CallOptions) => Promise<Api.Action>;
  readonly cancelAction: (id: string, decision?: Api.Decision, options?: CallOptions) => Promise<Api.Action>;
  readonly retryAction: (id: string, retry?: Api.Retry, options?: CallOptions) => Promise<Api.Action>;
  /** One decision on up to 50 held requests, exactly as they were shown; a result for each. */
  readonly decideRequests: (decision: Api.DecideRequests, options?: CallOptions) => Promise<Api.RequestDecisions>;
  /** Everything that matches, as NDJSON or CSV, in pieces as they arrive. It is read as fast as you take them. */
  readonly exportActions: (query?: Api.ExportQuery, options?: CallOptions) => AsyncGenerator<Uint8Array>;
  /** Begins to retry or cancel all actions that match; with `dry_run` it only says what would be covered. */
  readonly startBulk: {
    (bulk: Api.StartBulk & { readonly dry_run: true }, options?: CallOptions): Promise<Api.BulkDryRun>;
    (bulk: Api.StartBulk & { readonly dry_run?: false }, options?: CallOptions): Promise<Api.BulkJob>;
  };
  readonly listBulk: (query?: Api.BulkQuery, options?: CallOptions) => Promise<Api.BulkJobList>;
  readonly getBulk: (id: string, options?: CallOptions) => Promise<Api.BulkJob>;
  readonly listBulkResults: (
    id: string,
    query?: Api.BulkResultQuery,
    options?: CallOptions,
  ) => Promise<Api.BulkResultList>;
  readonly stopBulk: (id: string, options?: CallOptions) => Promise<undefined>;
  /** The figures of the page Overview, of the last 24 hours unless it names another range. */
  readonly getOverview: (options?: OverviewOptions) => Promise<Api.Overview>;
  readonly listNotifications: (query?: Api.NotificationQuery, options?: CallOptions) => Promise<Api.NotificationList>;
  /** Sends an action now that waits for its `run_at` or for its next attempt. */
  readonly sendActionNow: (id: string, retry?: Api.Retry, options?: CallOptions) => Promise<Api.Action>;
  /** Every change of status as it happens. Reconnects by itself, without gaps and repeats. */
  readonly streamEvents: (options?: FollowOptions) => AsyncGenerator<OutgateEvent>;
  /** By the `receipt_url` of an action, or its token. Needs no key. */
  readonly getReceipt: (receipt: string, options?: CallOptions) => Promise<Api.Receipt>;
  readonly listKeys: (options?: MadeByOptions) => Promise<Api.KeyList>;
  readonly createKey: (key: Api.CreateKey, options?: CallOptions) => Promise<Api.CreatedKey>;
  readonly revokeKey: (id: string, options?: RevokeOptions) => Promise<Api.RevokedKey>;
  /** Without `key_id` and `host` it pauses the whole account. Where a pause is in force, returns that one. */
  readonly createPause: (pause: Api.CreatePause, options?: CallOptions) => Promise<Api.Pause>;
  readonly listPauses: (options?: CallOptions) => Promise<Api.PauseList>;
  readonly endPause: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly listChannels: (options?: CallOptions) => Promise<Api.ChannelList>;
  /** It gets a message for every action that begins to await approval from now on. */
  readonly createChannel: (channel: Api.CreateChannel, options?: CallOptions) => Promise<Api.Channel>;
  readonly changeChannel: (id: string, change: Api.ChangeChannel, options?: CallOptions) => Promise<Api.Channel>;
  readonly removeChannel: (id: string, options?: CallOptions) => Promise<undefined>;
  /** Sends a test message at once. */
  readonly testChannel: (id: string, options?: CallOptions) => Promise<Api.ChannelTest>;
  /** What is set for hosts, and for the account. */
  readonly listHosts: (options?: CallOptions) => Promise<Api.HostSettingsList>;
  /** Replaces all settings of the host. */
  readonly putHost: (host: string, settings: Api.PutHostSettings, options?: CallOptions) => Promise<Api.HostSettings>;
  readonly removeHost: (host: string, options?: CallOptions) => Promise<undefined>;
  /** Replaces what applies to all hosts of the account. */
  readonly putDefaults: (settings: Api.PutDefaults, options?: CallOptions) => Promise<Api.Settings>;
  readonly listGrants: (options?: CallOptions) => Promise<Api.GrantList>;
  readonly endGrant: (id: string, options?: CallOptions) => Promise<undefined>;
  /** Those that the key may know, without their secrets. */
  readonly listCredentials: (options?: CallOptions) => Promise<Api.CredentialList>;
  readonly createCredential: (credential: Api.CreateCredential, options?: CallOptions) => Promise<Api.Credential>;
  readonly getCredential: (name: string, options?: CallOptions) => Promise<Api.Credential>;
  /** Replaces its secret, changes its bounds, or disables it. */
  readonly changeCredential: (
    name: string,
    change: Api.ChangeCredential,
    options?: CallOptions,
  ) => Promise<Api.Credential>;
  /** A GET that is sent at once. */
  readonly testCredential: (
    name: string,
    test: Api.TestCredential,
    options?: CallOptions,
  ) => Promise<Api.CredentialTest>;
  /** Asks the owners for a credential. Asking again for the same host returns the open request. */
  readonly askCredential: (asked: Api.AskCredential, options?: CallOptions) => Promise<Api.CredentialRequest>;
  readonly listCredentialRequests: (
    query?: Api.CredentialRequestQuery,
    options?: CallOptions,
  ) => Promise<Api.CredentialRequestPage>;
  readonly getCredentialRequest: (id: string, options?: CallOptions) => Promise<Api.CredentialRequest>;
  /** Adds a credential that the asking key may use. */
  readonly grantCredentialRequest: (
    id: string,
    credential: Api.CreateCredential,
    options?: CallOptions,
  ) => Promise<Api.CredentialRequest>;
  readonly declineCredentialRequest: (
    id: string,
    why?: Api.DeclineCredential,
    options?: CallOptions,
  ) => Promise<Api.CredentialRequest>;
  readonly removeCredential: (name: string, options?: CallOptions) => Promise<undefined>;
  /** Those that owners have added. */
  readonly listOAuthClients: (options?: CallOptions) => Promise<Api.OAuthClientList>;
  /** With its secret, which is shown once. */
  readonly createOAuthClient: (client: Api.CreateOAuthClient, options?: CallOptions) => Promise<Api.NewOAuthClient>;
  /** With its new secret, which is shown once. Never retried: a second secret would replace the first. */
  readonly replaceOAuthClientSecret: (id: string, options?: CallOptions) => Promise<Api.NewOAuthClient>;
  /** Ends its connections. */
  readonly removeOAuthClient: (id: string, options?: CallOptions) => Promise<undefined>;
  /** In the order in which they are asked. */
  readonly listRules: (options?: CallOptions) => Promise<Api.RuleList>;
  /** Behind all other rules, or `before` one of them. */
  readonly createRule: (rule: Api.CreateRule, options?: CallOptions) => Promise<Api.Rule>;
  /** Puts these rules in force in place of all others. One of the same name as before keeps its id. */
  readonly replaceRules: (rules: Api.ReplaceRules, options?: CallOptions) => Promise<Api.RuleList>;
  readonly reorderRules: (order: Api.ReorderRules, options?: CallOptions) => Promise<Api.RuleList>;
  /** What rules would have done with the newest actions; without `rules`: those in force. It changes nothing. */
  readonly dryRunRules: (rules: Api.DryRunRules, options?: CallOptions) => Promise<Api.DryRun>;
  readonly changeRule: (id: string, change: Api.ChangeRule, options?: CallOptions) => Promise<Api.Rule>;
  readonly removeRule: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly listAudit: (query?: Api.AuditQuery, options?: CallOptions) => Promise<Api.AuditLog>;
  readonly listCallbackHosts: (options?: CallOptions) => Promise<Api.CallbackHostList>;
  readonly addCallbackHost: (host: string, options?: CallOptions) => Promise<Api.CallbackHost>;
  readonly removeCallbackHost: (host: string, options?: CallOptions) => Promise<undefined>;
  /** Never retried: the receiver would get it twice. */
  readonly testCallback: (test: Api.TestCallback, options?: CallOptions) => Promise<Api.CallbackTest>;
  /** Where calls and callbacks went, the last used first. */
  readonly listSigningOrigins: (options?: CallOptions) => Promise<Api.SigningOriginList>;
  readonly getSigningSecret: (origin: string, options?: SigningSecretOptions) => Promise<Api.SigningSecret>;
  /** Why a receiver can't verify what it got. */
  readonly verifySignature: (
    origin: string,
    message: Api.VerifySignature,
    options?: SigningSecretOptions,
  ) => Promise<Api.SignatureCheck>;
  /** Never retried: a second rotation would end the previous secret at once. */
  readonly rotateSigningSecret: (options?: RotateOptions) => Promise<Api.Rotation>;
  /** What a new account does to begin. */
  readonly getFirstSteps: (options?: CallOptions) => Promise<Api.FirstSteps>;
  readonly changeFirstSteps: (change: Api.ChangeFirstSteps, options?: CallOptions) => Promise<Api.FirstSteps>;
  /** What is in force on the server. */
  readonly getServer: (options?: CallOptions) => Promise<Api.Server>;
  /** Never retried: it would be sent twice. */
  readonly sendTestMail: (mail: Api.TestMail, options?: CallOptions) => Promise<Api.TestMailResult>;
  readonly listAccounts: (options?: CallOptions) => Promise<Api.AccountList>;
  readonly allowAccount: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly listPeople: (options?: CallOptions) => Promise<Api.PersonList>;
  readonly changePerson: (id: string, change: Api.ChangePerson, options?: CallOptions) => Promise<Api.Person>;
  readonly removePerson: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly listInvitations: (options?: MadeByOptions) => Promise<Api.InvitationList>;
  /** Never retried: a second invitation of the address would make the first link void. */
  readonly createInvitation: (
    invitation: Api.CreateInvitation,
    options?: CallOptions,
  ) => Promise<Api.CreatedInvitation>;
  readonly withdrawInvitation: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly getAccount: (options?: CallOptions) => Promise<Api.Account>;
  readonly changeAccount: (change: Api.ChangeAccount, options?: CallOptions) => Promise<Api.Account>;
  readonly getHealth: (options?: CallOptions) => Promise<Api.Health>;
  readonly getReady: (options?: CallOptions) => Promise<Api.Health>;
  readonly getMetrics: (options?: CallOptions) => Promise<string>;
  readonly getOpenApi: (options?: CallOptions) => Promise<object>;
}
