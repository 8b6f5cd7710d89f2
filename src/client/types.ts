import type * as Api from "./api.ts";

// The text of this file, without `Api.`, is part of the declarations of the npm package: it declares types only.

export interface ClientSettings {
  /** Address of the service, such as `http://127.0.0.1:3000`. */
  readonly url: string;
  /** Without one only calls that need no key succeed. */
  readonly apiKey: string | null | undefined;
  /** For one try including the response body, without `waitSeconds`. Default 30,000. */
  readonly timeoutMs?: number;
  /** How many times a call that is safe to repeat is tried. Default 3. */
  readonly tries?: number;
  /** Pause before the second try, doubled after each; a longer `Retry-After` wins. Default 250. */
  readonly retryBaseMs?: number;
  /** Parses the JSON of responses; `JSON.parse` rounds large numbers. */
  readonly parse?: (text: string) => unknown;
  /** Writes the JSON of requests. */
  readonly stringify?: (value: unknown) => string;
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
  readonly range?: Api.OverviewQuery["range"];
}

export interface SigningSecretOptions extends CallOptions {
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
  /** The problems of the request, by field, as far as they fit in an answer. */
  readonly details: NonNullable<Api.ErrorEnvelope["error"]["details"]>;
  /** How many further problems there are. */
  readonly detailsLeftOut: number;
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

export interface StartBulkMethod {
  (bulk: Api.StartBulk & { readonly dry_run: true }, options?: CallOptions): Promise<Api.BulkDryRun>;
  (bulk: Api.StartBulk & { readonly dry_run?: false }, options?: CallOptions): Promise<Api.BulkJob>;
}
