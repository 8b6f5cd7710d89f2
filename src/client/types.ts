import type {
  Account,
  AccountList,
  Action,
  ActionCounts,
  ActionPage,
  AttemptList,
  Approval,
  AuditLog,
  AuditQuery,
  BulkDryRun,
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
  ChangeRule,
  Channel,
  ChannelList,
  ChannelTest,
  CreateAction,
  CreateChannel,
  CreateInvitation,
  CreateKey,
  CreatePause,
  AskCredential,
  ChangeCredential,
  CreateCredential,
  CreateOAuthClient,
  NewOAuthClient,
  OAuthClientList,
  CreateRule,
  Credential,
  CredentialList,
  CredentialRequest,
  CredentialRequestPage,
  CredentialRequestQuery,
  DeclineCredential,
  CredentialTest,
  TestCredential,
  CreatedInvitation,
  CreatedKey,
  DecideRequests,
  Decision,
  DecisionFacts,
  DryRun,
  DryRunRules,
  ErrorEnvelope,
  ExportQuery,
  FilterQuery,
  FirstSteps,
  GrantList,
  Health,
  HostSettings,
  HostSettingsList,
  InvitationList,
  KeyList,
  ListQuery,
  NotificationList,
  NotificationQuery,
  Overview,
  OverviewQuery,
  Pause,
  PauseList,
  Person,
  PersonList,
  PutDefaults,
  PutHostSettings,
  Receipt,
  ReorderRules,
  ReplaceRules,
  RequestDecisions,
  Retry,
  RevokedKey,
  Rotation,
  Rule,
  RuleList,
  Server,
  Settings,
  SignatureCheck,
  SigningOriginList,
  SigningSecret,
  SigningSecretQuery,
  StartBulk,
  TestCallback,
  TestMail,
  TestMailResult,
  Timeline,
  VerifySignature,
} from "./openapi.ts";

// The text of this file, without its imports, is part of the declarations of the npm package: it declares types only.

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

export interface CreateActionOptions extends WaitOptions {
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

export interface OverviewOptions extends CallOptions {
  /** How far back; default: 24h. */
  readonly range?: OverviewQuery["range"];
}

export interface SigningSecretOptions extends CallOptions {
  /** What the secret signs; default: calls. Callbacks have a separate secret. */
  readonly for?: SigningSecretQuery["for"];
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
  readonly data: Action;
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
  | ErrorEnvelope["error"]["code"]
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
  readonly details: NonNullable<ErrorEnvelope["error"]["details"]>;
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
  readonly create: (action: CreateAction, options?: CreateActionOptions) => Promise<Action>;
  /**
   * Waits until the action has completed, failed or been cancelled, also while it awaits approval. Rejects with `timed_out`
   * after `timeoutSeconds`: the action goes on without the program.
   */
  readonly waitFor: (id: string, options?: WaitForOptions) => Promise<Action>;
  /** All actions that match, newest first, page by page. */
  readonly actions: (query?: ListQuery, options?: CallOptions) => AsyncGenerator<Action>;
  readonly createAction: (action: CreateAction, options?: CreateActionOptions) => Promise<Action>;
  readonly listActions: (query?: ListQuery, options?: CallOptions) => Promise<ActionPage>;
  /** How many actions match, by status. */
  readonly countActions: (query?: FilterQuery, options?: CallOptions) => Promise<ActionCounts>;
  readonly getAction: (id: string, options?: WaitOptions) => Promise<Action>;
  readonly getTimeline: (id: string, options?: CallOptions) => Promise<Timeline>;
  /** What came back of the newest attempts. */
  readonly getAttempts: (id: string, options?: CallOptions) => Promise<AttemptList>;
  /** What a person is shown before deciding on the action. */
  readonly getDecisionFacts: (id: string, options?: CallOptions) => Promise<DecisionFacts>;
  readonly approveAction: (id: string, approval?: Approval, options?: CallOptions) => Promise<Action>;
  readonly cancelAction: (id: string, decision?: Decision, options?: CallOptions) => Promise<Action>;
  readonly retryAction: (id: string, retry?: Retry, options?: CallOptions) => Promise<Action>;
  /** One decision on up to 50 held requests, exactly as they were shown; a result for each. */
  readonly decideRequests: (decision: DecideRequests, options?: CallOptions) => Promise<RequestDecisions>;
  /** Everything that matches, as NDJSON or CSV, in pieces as they arrive. It is read as fast as you take them. */
  readonly exportActions: (query?: ExportQuery, options?: CallOptions) => AsyncGenerator<Uint8Array>;
  /** Begins to retry or cancel all actions that match; with `dry_run` it only says what would be covered. */
  readonly startBulk: {
    (bulk: StartBulk & { readonly dry_run: true }, options?: CallOptions): Promise<BulkDryRun>;
    (bulk: StartBulk & { readonly dry_run?: false }, options?: CallOptions): Promise<BulkJob>;
  };
  readonly listBulk: (query?: BulkQuery, options?: CallOptions) => Promise<BulkJobList>;
  readonly getBulk: (id: string, options?: CallOptions) => Promise<BulkJob>;
  readonly listBulkResults: (id: string, query?: BulkResultQuery, options?: CallOptions) => Promise<BulkResultList>;
  readonly stopBulk: (id: string, options?: CallOptions) => Promise<undefined>;
  /** The figures of the page Overview, of the last 24 hours unless it names another range. */
  readonly getOverview: (options?: OverviewOptions) => Promise<Overview>;
  readonly listNotifications: (query?: NotificationQuery, options?: CallOptions) => Promise<NotificationList>;
  /** Sends an action now that waits for its `run_at` or for its next attempt. */
  readonly sendActionNow: (id: string, retry?: Retry, options?: CallOptions) => Promise<Action>;
  /** Every change of status as it happens. Reconnects by itself, without gaps and repeats. */
  readonly streamEvents: (options?: FollowOptions) => AsyncGenerator<OutgateEvent>;
  /** By the `receipt_url` of an action, or its token. Needs no key. */
  readonly getReceipt: (receipt: string, options?: CallOptions) => Promise<Receipt>;
  readonly listKeys: (options?: MadeByOptions) => Promise<KeyList>;
  readonly createKey: (key: CreateKey, options?: CallOptions) => Promise<CreatedKey>;
  readonly revokeKey: (id: string, options?: RevokeOptions) => Promise<RevokedKey>;
  /** Without `key_id` and `host` it pauses the whole account. Where a pause is in force, returns that one. */
  readonly createPause: (pause: CreatePause, options?: CallOptions) => Promise<Pause>;
  readonly listPauses: (options?: CallOptions) => Promise<PauseList>;
  readonly endPause: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly listChannels: (options?: CallOptions) => Promise<ChannelList>;
  /** It gets a message for every action that begins to await approval from now on. */
  readonly createChannel: (channel: CreateChannel, options?: CallOptions) => Promise<Channel>;
  readonly changeChannel: (id: string, change: ChangeChannel, options?: CallOptions) => Promise<Channel>;
  readonly removeChannel: (id: string, options?: CallOptions) => Promise<undefined>;
  /** Sends a test message at once. */
  readonly testChannel: (id: string, options?: CallOptions) => Promise<ChannelTest>;
  /** What is set for hosts, and for the account. */
  readonly listHosts: (options?: CallOptions) => Promise<HostSettingsList>;
  /** Replaces all settings of the host. */
  readonly putHost: (host: string, settings: PutHostSettings, options?: CallOptions) => Promise<HostSettings>;
  readonly removeHost: (host: string, options?: CallOptions) => Promise<undefined>;
  /** Replaces what applies to all hosts of the account. */
  readonly putDefaults: (settings: PutDefaults, options?: CallOptions) => Promise<Settings>;
  /** In the order in which they are asked. */
  readonly listGrants: (options?: CallOptions) => Promise<GrantList>;
  readonly endGrant: (id: string, options?: CallOptions) => Promise<undefined>;
  /** Those that the key may know, without their secrets. */
  readonly listCredentials: (options?: CallOptions) => Promise<CredentialList>;
  readonly createCredential: (credential: CreateCredential, options?: CallOptions) => Promise<Credential>;
  readonly getCredential: (name: string, options?: CallOptions) => Promise<Credential>;
  /** Replaces its secret, changes its bounds, or disables it. */
  readonly changeCredential: (name: string, change: ChangeCredential, options?: CallOptions) => Promise<Credential>;
  /** A GET that is sent at once. */
  readonly testCredential: (name: string, test: TestCredential, options?: CallOptions) => Promise<CredentialTest>;
  /** Asks the owners for a credential. Asking again for the same host returns the open request. */
  readonly askCredential: (asked: AskCredential, options?: CallOptions) => Promise<CredentialRequest>;
  readonly listCredentialRequests: (
    query?: CredentialRequestQuery,
    options?: CallOptions,
  ) => Promise<CredentialRequestPage>;
  readonly getCredentialRequest: (id: string, options?: CallOptions) => Promise<CredentialRequest>;
  /** Adds a credential that the asking key may use. */
  readonly grantCredentialRequest: (
    id: string,
    credential: CreateCredential,
    options?: CallOptions,
  ) => Promise<CredentialRequest>;
  readonly declineCredentialRequest: (
    id: string,
    why?: DeclineCredential,
    options?: CallOptions,
  ) => Promise<CredentialRequest>;
  readonly removeCredential: (name: string, options?: CallOptions) => Promise<undefined>;
  /** Those that owners have added. */
  readonly listOAuthClients: (options?: CallOptions) => Promise<OAuthClientList>;
  /** With its secret, which is shown once. */
  readonly createOAuthClient: (client: CreateOAuthClient, options?: CallOptions) => Promise<NewOAuthClient>;
  /** With its new secret, which is shown once. Never retried: a second secret would replace the first. */
  readonly replaceOAuthClientSecret: (id: string, options?: CallOptions) => Promise<NewOAuthClient>;
  /** Ends its connections. */
  readonly removeOAuthClient: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly listRules: (options?: CallOptions) => Promise<RuleList>;
  /** Behind all other rules, or `before` one of them. */
  readonly createRule: (rule: CreateRule, options?: CallOptions) => Promise<Rule>;
  /** Puts these rules in force in place of all others. One of the same name as before keeps its id. */
  readonly replaceRules: (rules: ReplaceRules, options?: CallOptions) => Promise<RuleList>;
  readonly reorderRules: (order: ReorderRules, options?: CallOptions) => Promise<RuleList>;
  /** What rules would have done with the newest actions; without `rules`: those in force. It changes nothing. */
  readonly dryRunRules: (rules: DryRunRules, options?: CallOptions) => Promise<DryRun>;
  readonly changeRule: (id: string, change: ChangeRule, options?: CallOptions) => Promise<Rule>;
  readonly removeRule: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly listAudit: (query?: AuditQuery, options?: CallOptions) => Promise<AuditLog>;
  readonly listCallbackHosts: (options?: CallOptions) => Promise<CallbackHostList>;
  readonly addCallbackHost: (host: string, options?: CallOptions) => Promise<CallbackHost>;
  readonly removeCallbackHost: (host: string, options?: CallOptions) => Promise<undefined>;
  /** Never retried: the receiver would get it twice. */
  readonly testCallback: (test: TestCallback, options?: CallOptions) => Promise<CallbackTest>;
  /** Where calls and callbacks went, the last used first. */
  readonly listSigningOrigins: (options?: CallOptions) => Promise<SigningOriginList>;
  readonly getSigningSecret: (origin: string, options?: SigningSecretOptions) => Promise<SigningSecret>;
  /** Why a receiver can't verify what it got. */
  readonly verifySignature: (
    origin: string,
    message: VerifySignature,
    options?: SigningSecretOptions,
  ) => Promise<SignatureCheck>;
  /** Never retried: a second rotation would end the previous secret at once. */
  readonly rotateSigningSecret: (options?: RotateOptions) => Promise<Rotation>;
  /** What a new account does to begin. */
  readonly getFirstSteps: (options?: CallOptions) => Promise<FirstSteps>;
  readonly changeFirstSteps: (change: ChangeFirstSteps, options?: CallOptions) => Promise<FirstSteps>;
  /** What is in force on the server. */
  readonly getServer: (options?: CallOptions) => Promise<Server>;
  /** Never retried: it would be sent twice. */
  readonly sendTestMail: (mail: TestMail, options?: CallOptions) => Promise<TestMailResult>;
  readonly listAccounts: (options?: CallOptions) => Promise<AccountList>;
  readonly allowAccount: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly listPeople: (options?: CallOptions) => Promise<PersonList>;
  readonly changePerson: (id: string, change: ChangePerson, options?: CallOptions) => Promise<Person>;
  readonly removePerson: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly listInvitations: (options?: MadeByOptions) => Promise<InvitationList>;
  /** Never retried: a second invitation of the address would make the first link void. */
  readonly createInvitation: (invitation: CreateInvitation, options?: CallOptions) => Promise<CreatedInvitation>;
  readonly withdrawInvitation: (id: string, options?: CallOptions) => Promise<undefined>;
  readonly getAccount: (options?: CallOptions) => Promise<Account>;
  readonly changeAccount: (change: ChangeAccount, options?: CallOptions) => Promise<Account>;
  readonly getHealth: (options?: CallOptions) => Promise<Health>;
  readonly getReady: (options?: CallOptions) => Promise<Health>;
  readonly getMetrics: (options?: CallOptions) => Promise<string>;
  readonly getOpenApi: (options?: CallOptions) => Promise<object>;
}
