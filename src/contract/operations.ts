import type { ErrorCode } from "../domain/errors.ts";
import type { Permission } from "../domain/roles.ts";

/** One thing that the service does over HTTP: what routes, tools and the API description are held against. */
export interface ApiOperation {
  readonly id: string;
  readonly method: "GET" | "POST" | "DELETE";
  /** As in OpenAPI: `{id}` is a parameter. */
  readonly path: string;
  /** What the caller's role must hold; null: nobody asks who calls. */
  readonly permission: Permission | null;
  readonly tag: "Actions" | "Auth" | "System";
  readonly summary: string;
  readonly success: readonly number[];
  readonly errors: readonly ErrorCode[];
}

/** What any /v1 request can end in, whatever it asks for. */
const ALWAYS = ["unauthorized", "rate_limited", "forbidden", "invalid_query", "internal_error", "unavailable"] as const;
const READING = ["invalid_content_type", "payload_too_large", "invalid_request", "validation_error"] as const;
const DECIDING = { tag: "Actions", success: [200] } as const;

/** People come in with a password and not with a key; browsers say from where, and a foreign page is refused. */
const ENTERING = { method: "POST", permission: null, tag: "Auth" } as const;
const ENTERED = ["forbidden", "invalid_query", ...READING, "missing_body", "internal_error", "unavailable"] as const;

/** Every operation under /v1, those of people, and the system's own, by `operationId`. */
export const API = {
  createAction: {
    id: "createAction",
    method: "POST",
    path: "/v1/actions",
    permission: "create",
    tag: "Actions",
    summary: "Create an action",
    success: [201, 200],
    errors: [...ALWAYS, ...READING, "missing_body", "missing_field", "invalid_url", "invalid_sync"],
  },
  listActions: {
    id: "listActions",
    method: "GET",
    path: "/v1/actions",
    permission: "read",
    tag: "Actions",
    summary: "List actions, newest first",
    success: [200],
    errors: ALWAYS,
  },
  getAction: {
    id: "getAction",
    method: "GET",
    path: "/v1/actions/{id}",
    permission: "read",
    tag: "Actions",
    summary: "Get an action, or wait for its end",
    success: [200],
    errors: [...ALWAYS, "not_found"],
  },
  getTimeline: {
    id: "getTimeline",
    method: "GET",
    path: "/v1/actions/{id}/timeline",
    permission: "read",
    tag: "Actions",
    summary: "Everything that happened to an action",
    success: [200],
    errors: [...ALWAYS, "not_found"],
  },
  getReceipt: {
    id: "getReceipt",
    method: "GET",
    path: "/r/{token}",
    permission: null,
    tag: "Actions",
    summary: "The receipt of an action, for whoever has its link: JSON where that is asked for, else a page",
    success: [200],
    errors: ["not_found", "internal_error", "unavailable"],
  },
  streamEvents: {
    id: "streamEvents",
    method: "GET",
    path: "/v1/events",
    permission: "read",
    tag: "Actions",
    summary: "Every change of status as it happens, as server-sent events",
    success: [200],
    errors: ALWAYS,
  },
  approveAction: {
    ...DECIDING,
    id: "approveAction",
    method: "POST",
    path: "/v1/actions/{id}/approve",
    permission: "approve",
    summary: "Approve a held action",
    errors: [...ALWAYS, ...READING, "not_found", "not_approvable"],
  },
  cancelAction: {
    ...DECIDING,
    id: "cancelAction",
    method: "POST",
    path: "/v1/actions/{id}/cancel",
    permission: "cancel",
    summary: "Cancel an action, or reject it",
    errors: [...ALWAYS, ...READING, "not_found", "not_cancellable"],
  },
  retryAction: {
    ...DECIDING,
    id: "retryAction",
    method: "POST",
    path: "/v1/actions/{id}/retry",
    permission: "retry",
    summary: "Send a failed or cancelled action again",
    errors: [...ALWAYS, ...READING, "not_found", "not_retryable"],
  },
  getSigningSecret: {
    id: "getSigningSecret",
    method: "GET",
    path: "/v1/signing-secret",
    permission: "manage",
    tag: "Auth",
    summary: "Read the secret that signs calls to an origin",
    success: [200],
    errors: ALWAYS,
  },
  rotateSigningSecret: {
    id: "rotateSigningSecret",
    method: "POST",
    path: "/v1/signing-secret/rotate",
    permission: "manage",
    tag: "Auth",
    summary: "Give an origin, or all of them, a new signing secret",
    success: [200],
    errors: [...ALWAYS, ...READING],
  },
  listKeys: {
    id: "listKeys",
    method: "GET",
    path: "/v1/keys",
    permission: "manage",
    tag: "Auth",
    summary: "List the account's keys",
    success: [200],
    errors: ALWAYS,
  },
  createKey: {
    id: "createKey",
    method: "POST",
    path: "/v1/keys",
    permission: "manage",
    tag: "Auth",
    summary: "Make a key; it is shown once",
    success: [201],
    errors: [...ALWAYS, ...READING, "missing_body"],
  },
  revokeKey: {
    id: "revokeKey",
    method: "DELETE",
    path: "/v1/keys/{id}",
    permission: "manage",
    tag: "Auth",
    summary: "Revoke a key, at once",
    success: [204],
    errors: [...ALWAYS, "not_found"],
  },
  getAccount: {
    id: "getAccount",
    method: "GET",
    path: "/v1/account",
    permission: "read",
    tag: "Auth",
    summary: "Who am I: account, key, role and limits",
    success: [200],
    errors: ALWAYS,
  },
  signUp: {
    ...ENTERING,
    id: "signUp",
    path: "/auth/signup",
    summary: "Sign up: a new account with an owner key",
    success: [201],
    errors: [...ENTERED, "email_taken"],
  },
  logIn: {
    ...ENTERING,
    id: "logIn",
    path: "/auth/login",
    summary: "Log in on the pages for people",
    success: [200],
    errors: [...ENTERED, "invalid_credentials", "rate_limited"],
  },
  logOut: {
    ...ENTERING,
    id: "logOut",
    path: "/auth/logout",
    summary: "Log out; only pages of this service can",
    success: [204],
    errors: ["forbidden", "invalid_query", "internal_error", "unavailable"],
  },
  getHealth: {
    id: "getHealth",
    method: "GET",
    path: "/health",
    permission: null,
    tag: "System",
    summary: "Whether the process lives",
    success: [200],
    errors: [],
  },
  getReady: {
    id: "getReady",
    method: "GET",
    path: "/ready",
    permission: null,
    tag: "System",
    summary: "Whether the service can work",
    success: [200, 503],
    errors: [],
  },
  getMetrics: {
    id: "getMetrics",
    method: "GET",
    path: "/metrics",
    permission: null,
    tag: "System",
    summary: "Numbers in the Prometheus text format",
    success: [200],
    errors: ["internal_error"],
  },
  getOpenApi: {
    id: "getOpenApi",
    method: "GET",
    path: "/openapi.json",
    permission: null,
    tag: "System",
    summary: "This description, as OpenAPI 3.1",
    success: [200],
    errors: [],
  },
} as const satisfies Readonly<Record<string, ApiOperation>>;
