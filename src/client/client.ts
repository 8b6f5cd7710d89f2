import type { AccountJson, AccountList, CreatedKey, CreateKey, KeyList } from "../accounts/schemas.ts";
import type { Action, CreateAction, Decision, Retry } from "../actions/schemas.ts";
import type { DecisionFacts } from "../approvals/facts.ts";
import type { Health } from "../http/system-routes.ts";
import type { CallbackHost, CallbackHostList } from "../accounts/callback-hosts.ts";
import type { AuditLog, AuditQuery } from "../audit/audit.ts";
import type { CreatePause, PauseJson, PauseList } from "../pauses/pause.ts";
import type { ActionPage, ListQuery, Timeline } from "../actions/list-schemas.ts";
import type { ReceiptJson } from "../receipts/schema.ts";
import type { RotationJson, SigningSecretJson, SigningSecretQuery } from "../accounts/signing-secrets.ts";
import { follow, type FollowOptions, type OutgateEvent } from "./follow.ts";
import { type Call, type ClientSettings, createTransport } from "./transport.ts";

/** Options of every call. */
export interface CallOptions {
  /** Ends the call; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface WaitOptions extends CallOptions {
  /** How long the service waits for the end of the action, in seconds, 1 to 120. */
  readonly waitSeconds?: number | undefined;
}

export interface CreateOptions extends WaitOptions {
  /** Makes the create safe to repeat: within 24 hours the same key returns the same action. The client then retries too. */
  readonly idempotencyKey?: string | undefined;
}

export interface RevokeOptions extends CallOptions {
  /** What happens to the key's unfinished actions; default: keep. */
  readonly unfinished?: "keep" | "pause" | "cancel" | undefined;
}

export interface SigningSecretOptions extends CallOptions {
  /** What the secret signs; default: calls. Callbacks have a separate secret. */
  readonly for?: SigningSecretQuery["for"];
}

export interface RotateOptions extends SigningSecretOptions {
  /** The origin whose secret is rotated; default: every origin's, for calls and for callbacks. */
  readonly origin?: string | undefined;
}

export type OutgateClient = ReturnType<typeof createClient>;

/** The service's default for a `sync` create without `wait`. */
const SYNC_WAIT_SECONDS = 30;

/**
 * A client of the HTTP API with one method for each operation, by its `operationId`. Every failure is an `OutgateError`.
 * Operations that are safe to repeat are retried while the service can't be reached: reads, and writes that are idempotent,
 * such as a create with an `idempotencyKey`.
 */
export function createClient(settings: ClientSettings) {
  const transport = createTransport(settings);
  // Safe: the API defines the type of a 2xx response, which the caller names.
  const ask: Ask = async <T>(call: Call): Promise<T> => (await transport.call(call)) as T;
  const get: Get = <T>(path: string, options: CallOptions = {}, more: Partial<Call> = {}) =>
    ask<T>({ method: "GET", path, isRepeatable: true, signal: options.signal, ...more });
  const decide =
    (verb: string) =>
    (id: string, decision: Decision = {}, options: CallOptions = {}) => {
      const path = `/v1/actions/${encodeURIComponent(id)}/${verb}`;
      return ask<Action>({ method: "POST", path, body: decision, isRepeatable: false, signal: options.signal });
    };

  return {
    createAction(action: CreateAction, { idempotencyKey, waitSeconds, signal }: CreateOptions = {}) {
      return ask<Action>({
        method: "POST",
        path: "/v1/actions",
        query: { wait: waitSeconds },
        headers: idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey },
        body: action,
        isRepeatable: idempotencyKey !== undefined,
        waitSeconds: action.sync === true ? (waitSeconds ?? SYNC_WAIT_SECONDS) : 0,
        signal,
      });
    },
    listActions: (query: ListQuery = {}, options?: CallOptions) => get<ActionPage>("/v1/actions", options, { query }),
    getAction(id: string, { waitSeconds, signal }: WaitOptions = {}) {
      const waiting = waitSeconds === undefined ? {} : { query: { wait: waitSeconds }, waitSeconds };
      return get<Action>(`/v1/actions/${encodeURIComponent(id)}`, { signal }, waiting);
    },
    getTimeline: (id: string, options?: CallOptions) =>
      get<Timeline>(`/v1/actions/${encodeURIComponent(id)}/timeline`, options),
    /** What a person is shown before deciding on the action. */
    getDecisionFacts: (id: string, options?: CallOptions) =>
      get<DecisionFacts>(`/v1/actions/${encodeURIComponent(id)}/facts`, options),
    /** By the `receipt_url` of an action, or its token. Needs no key. */
    getReceipt: (receipt: string, options?: CallOptions) =>
      get<ReceiptJson>(`/r/${encodeURIComponent(receipt.replace(/^.*\/r\//, ""))}`, options, {
        headers: { accept: "application/json" },
      }),
    approveAction: decide("approve"),
    cancelAction: decide("cancel"),
    retryAction: (id: string, retry?: Retry, options?: CallOptions) => decide("retry")(id, retry, options),
    /** Every change of status as it happens. Reconnects by itself, without gaps and repeats. */
    streamEvents: (options: FollowOptions = {}): AsyncGenerator<OutgateEvent> =>
      follow(transport, settings.parse ?? JSON.parse, options),
    ...accountCalls(ask, get),
    getHealth: (options?: CallOptions) => get<Health>("/health", options),
    getReady: (options?: CallOptions) => get<Health>("/ready", options),
    getMetrics: (options?: CallOptions) => get<string>("/metrics", options),
    getOpenApi: (options?: CallOptions) => get<object>("/openapi.json", options),
  };
}

type Ask = <T>(call: Call) => Promise<T>;

type Get = <T>(path: string, options?: CallOptions, more?: Partial<Call>) => Promise<T>;

/** Keys, pauses, secrets and accounts. All but `getAccount` need an owner key. */
function accountCalls(ask: Ask, get: Get) {
  return {
    listKeys: (options?: CallOptions) => get<KeyList>("/v1/keys", options),
    createKey: (key: CreateKey, { signal }: CallOptions = {}) =>
      ask<CreatedKey>({ method: "POST", path: "/v1/keys", body: key, isRepeatable: false, signal }),
    revokeKey: (id: string, { unfinished, signal }: RevokeOptions = {}) =>
      ask<undefined>({
        method: "DELETE",
        path: `/v1/keys/${encodeURIComponent(id)}`,
        query: { unfinished },
        isRepeatable: true,
        signal,
      }),
    /** Without `key_id` it pauses the whole account. Where a pause is in force, returns that one. */
    createPause: (pause: CreatePause, { signal }: CallOptions = {}) =>
      ask<PauseJson>({ method: "POST", path: "/v1/pauses", body: pause, isRepeatable: true, signal }),
    listPauses: (options?: CallOptions) => get<PauseList>("/v1/pauses", options),
    endPause: (id: string, { signal }: CallOptions = {}) =>
      ask<undefined>({ method: "DELETE", path: `/v1/pauses/${encodeURIComponent(id)}`, isRepeatable: true, signal }),
    listAudit: (query: AuditQuery = {}, options?: CallOptions) => get<AuditLog>("/v1/audit", options, { query }),
    listCallbackHosts: (options?: CallOptions) => get<CallbackHostList>("/v1/callback-hosts", options),
    addCallbackHost: (host: string, { signal }: CallOptions = {}) =>
      ask<CallbackHost>({ method: "POST", path: "/v1/callback-hosts", body: { host }, isRepeatable: true, signal }),
    removeCallbackHost: (host: string, { signal }: CallOptions = {}) =>
      ask<undefined>({ method: "DELETE", path: "/v1/callback-hosts", query: { host }, isRepeatable: false, signal }),
    getSigningSecret: (origin: string, { for: use, signal }: SigningSecretOptions = {}) =>
      get<SigningSecretJson>("/v1/signing-secret", { signal }, { query: { origin, for: use } }),
    /** Never retried: a second rotation would end the previous secret at once. */
    rotateSigningSecret: ({ origin, for: use, signal }: RotateOptions = {}) =>
      ask<RotationJson>({
        method: "POST",
        path: "/v1/signing-secret/rotate",
        query: { origin, for: use },
        isRepeatable: false,
        signal,
      }),
    listAccounts: (options?: CallOptions) => get<AccountList>("/v1/accounts", options),
    allowAccount: (id: string, { signal }: CallOptions = {}) =>
      ask<undefined>({
        method: "POST",
        path: `/v1/accounts/${encodeURIComponent(id)}/allow`,
        isRepeatable: true,
        signal,
      }),
    getAccount: (options?: CallOptions) => get<AccountJson>("/v1/account", options),
  };
}
