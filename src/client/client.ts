import type { Account, AccountList, CreatedKey, CreateKey, KeyList } from "../accounts/schemas.ts";
import type { Action, CreateAction, Decision, Retry } from "../actions/schemas.ts";
import type { DecisionFacts } from "../approvals/facts-schema.ts";
import type { Health } from "../api/schemas.ts";
import type { CallbackHost, CallbackHostList } from "../accounts/callback-hosts.ts";
import type { AuditLog, AuditQuery } from "../audit/schemas.ts";
import type { CreatePause, Pause, PauseList } from "../pauses/schemas.ts";
import type { ActionPage, ListQuery, Timeline } from "../actions/list-schemas.ts";
import type { ReceiptJson } from "../receipts/schema.ts";
import type { Rotation, SigningSecret, SigningSecretQuery } from "../accounts/signing-schemas.ts";
import { follow, type FollowOptions, type OutgateEvent } from "./follow.ts";
import { type Call, type ClientSettings, createTransport } from "./transport.ts";

/** What any call may be told beside what it is about. */
export interface CallOptions {
  /** Ends the call; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

export interface WaitOptions extends CallOptions {
  /** Seconds to wait for the end of the action, 1 to 120. */
  readonly waitSeconds?: number | undefined;
}

export interface CreateOptions extends WaitOptions {
  /** Makes the create safe to repeat, by this client too: within a day it is the same action. */
  readonly idempotencyKey?: string | undefined;
}

export interface RevokeOptions extends CallOptions {
  /** What becomes of the key's actions that have not ended; not given: they go on. */
  readonly unfinished?: "keep" | "pause" | "cancel" | undefined;
}

export interface SigningSecretOptions extends CallOptions {
  /** What the secret signs; calls unless it says callbacks, which have a secret of their own. */
  readonly for?: SigningSecretQuery["for"];
}

export interface RotateOptions extends SigningSecretOptions {
  /** Whose secret is to be new; not given: every origin's, of calls and of callbacks. */
  readonly origin?: string | undefined;
}

export type OutgateClient = ReturnType<typeof createClient>;

/** The service waits so long for a `sync` create that does not say how long (decisions 3). */
const SYNC_WAIT_SECONDS = 30;

/**
 * Outgate over HTTP: one method for each operation of the API description, by its name. Every failure is an `OutgateError`.
 * What does no more the second time than the first is repeated when the service is away for a moment: every read, the
 * revocation of a key, the listing of a callback host, and a create with an `idempotencyKey`.
 */
export function createClient(settings: ClientSettings) {
  const transport = createTransport(settings);
  // Safe: an answer with 2xx and JSON is the one that the contract promises for the path; the caller names its type.
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
    /** What a person is told before they decide on it. */
    getDecisionFacts: (id: string, options?: CallOptions) =>
      get<DecisionFacts>(`/v1/actions/${encodeURIComponent(id)}/facts`, options),
    /** By the `receipt_url` of an action, or what stands behind its `/r/`; no key counts. */
    getReceipt: (receipt: string, options?: CallOptions) =>
      get<ReceiptJson>(`/r/${encodeURIComponent(receipt.replace(/^.*\/r\//, ""))}`, options, {
        headers: { accept: "application/json" },
      }),
    approveAction: decide("approve"),
    cancelAction: decide("cancel"),
    retryAction: (id: string, retry?: Retry, options?: CallOptions) => decide("retry")(id, retry, options),
    /** Every change of status as it happens; comes back by itself after a break, without gap and without repeat. */
    streamEvents: (options: FollowOptions = {}): AsyncGenerator<OutgateEvent> =>
      follow(transport, settings.parse ?? JSON.parse, options),
    ...ownersCalls(ask, get),
    getHealth: (options?: CallOptions) => get<Health>("/health", options),
    getReady: (options?: CallOptions) => get<Health>("/ready", options),
    getMetrics: (options?: CallOptions) => get<string>("/metrics", options),
    getOpenApi: (options?: CallOptions) => get<object>("/openapi.json", options),
  };
}

type Ask = <T>(call: Call) => Promise<T>;

type Get = <T>(path: string, options?: CallOptions, more?: Partial<Call>) => Promise<T>;

/** Keys, secrets and the account: all but the last need an owner key. */
function ownersCalls(ask: Ask, get: Get) {
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
    /** Without `key_id` the whole account. A second one finds the first. */
    createPause: (pause: CreatePause, { signal }: CallOptions = {}) =>
      ask<Pause>({ method: "POST", path: "/v1/pauses", body: pause, isRepeatable: true, signal }),
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
      get<SigningSecret>("/v1/signing-secret", { signal }, { query: { origin, for: use } }),
    /** Of one origin, or of all. Never repeated by itself: a second rotation would end the secret before the first. */
    rotateSigningSecret: ({ origin, for: use, signal }: RotateOptions = {}) =>
      ask<Rotation>({
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
    getAccount: (options?: CallOptions) => get<Account>("/v1/account", options),
  };
}
