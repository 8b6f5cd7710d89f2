import type { ErrorCode } from "./domain-error.ts";
import type { Permission } from "../accounts/roles.ts";

/** One operation of the HTTP API. Routes, MCP tools and the API description are built from this table. */
export interface ApiOperation {
  readonly id: string;
  readonly method: "GET" | "POST" | "DELETE";
  /** As in OpenAPI: `{id}` is a parameter. */
  readonly path: string;
  /** The permission that the caller's role needs; null: no API key is needed. */
  readonly permission: Permission | null;
  readonly tag: "Actions" | "Auth" | "System";
  readonly summary: string;
  /** What a caller needs to know beyond the summary and the schemas. */
  readonly description: string;
  readonly success: readonly number[];
  readonly errors: readonly ErrorCode[];
}

/** Errors of every /v1 request. */
const ALWAYS = ["unauthorized", "rate_limited", "forbidden", "invalid_query", "internal_error", "unavailable"] as const;

/** Errors of a request with a body. */
const READING = ["invalid_content_type", "payload_too_large", "invalid_request", "validation_error"] as const;

const DECIDING = { tag: "Actions", success: [200] } as const;

/** For people, who have a password and no key. Requests of other sites' pages are refused. */
const ENTERING = { method: "POST", permission: null, tag: "Auth" } as const;

const ENTERED = ["forbidden", "invalid_query", ...READING, "missing_body", "internal_error", "unavailable"] as const;

/** Every operation, by `operationId`. */
export const API = {
  createAction: {
    id: "createAction",
    method: "POST",
    path: "/v1/actions",
    permission: "create",
    tag: "Actions",
    summary: "Create an action",
    description:
      "Stores the call durably, then sends it. Returns 200 and the earlier action where Idempotency-Key, or else dedupe, matches one. A key with a hold creates held actions, whatever approve says. For an agent's key an earlier action of another key is masked, and differs compares the masked values. With sync the response comes when the action has ended, or shows its current state after wait seconds. Where a person has rejected the same request within 24 hours, an agent's key must give a reason (else 400), and may repeat it twice (then 403).",
    success: [201, 200],
    errors: [...ALWAYS, ...READING, "missing_body", "missing_field", "invalid_url", "invalid_sync", "too_many_held"],
  },
  listActions: {
    id: "listActions",
    method: "GET",
    path: "/v1/actions",
    permission: "read",
    tag: "Actions",
    summary: "List actions, newest first",
    description:
      "A page of the account's actions that match every parameter. Only status may be repeated. There is no total; pass next_cursor as cursor, with the same parameters, for the next page.",
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
    description:
      "The current state of the action; with wait, as soon as it has ended, or after wait seconds. The receipt page is at receipt_url.",
    success: [200],
    errors: [...ALWAYS, "not_found"],
  },
  getTimeline: {
    id: "getTimeline",
    method: "GET",
    path: "/v1/actions/{id}/timeline",
    permission: "read",
    tag: "Actions",
    summary: "Get the timeline of an action",
    description:
      "Every change of status, every attempt and every notification of all runs, oldest first; beyond 2,000 entries the oldest are left out.",
    success: [200],
    errors: [...ALWAYS, "not_found"],
  },
  getDecisionFacts: {
    id: "getDecisionFacts",
    method: "GET",
    path: "/v1/actions/{id}/facts",
    permission: "read",
    tag: "Actions",
    summary: "Get what a person is shown before deciding on an action",
    description:
      "The facts, masked and in order, and the risks that the approval mail, the pages, MCP clients and the command line show. For programs that ask a person themselves.",
    success: [200],
    errors: [...ALWAYS, "not_found"],
  },
  getReceipt: {
    id: "getReceipt",
    method: "GET",
    path: "/r/{token}",
    permission: null,
    tag: "Actions",
    summary: "Get the receipt of an action by its link, as JSON or as a page",
    description:
      "Needs no key: anyone with the link can read it. JSON with Accept: application/json, else a page for people; errors have the same form.",
    success: [200],
    errors: ["not_found", "internal_error", "unavailable"],
  },
  streamEvents: {
    id: "streamEvents",
    method: "GET",
    path: "/v1/events",
    permission: "read",
    tag: "Actions",
    summary: "Stream every change of status as server-sent events",
    description:
      "Stays open and sends every change of status of the account's actions as it happens. Last-Event-ID continues after an event that was received. An account may have 100 open streams; further ones get 429.",
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
    description:
      "Approves one run of an action that is awaiting_approval, which becomes pending. Of several decisions the first wins; the others get 409, and so does one for another run than the current one.",
    errors: [...ALWAYS, ...READING, "not_found", "not_approvable"],
  },
  cancelAction: {
    ...DECIDING,
    id: "cancelAction",
    method: "POST",
    path: "/v1/actions/{id}/cancel",
    permission: "cancel",
    summary: "Cancel an action, or reject it",
    description:
      "Cancels an action that is pending, or rejects one that is awaiting_approval. An action that is active or has ended gets 409, and so does a request for another run than the current one. An agent's key cancels only actions that it created (else 403), unless its scope is account.",
    errors: [...ALWAYS, ...READING, "not_found", "not_cancellable"],
  },
  retryAction: {
    ...DECIDING,
    id: "retryAction",
    method: "POST",
    path: "/v1/actions/{id}/retry",
    permission: "retry",
    summary: "Send a failed or cancelled action again",
    description:
      "Begins a new run of an action that is failed or cancelled: attempts are counted from 0, and the target sees the same Idempotency-Key. If it needed approval, it needs it again. Returns 409 also where another action has its dedupe key by now. An agent's key retries only actions that it created (else 403), unless its scope is account. Where a person has rejected the request within 24 hours, an agent's key must give a reason (else 400), and may repeat it twice (then 409).",
    errors: [...ALWAYS, ...READING, "not_found", "not_retryable"],
  },
  getSigningSecret: {
    id: "getSigningSecret",
    method: "GET",
    path: "/v1/signing-secret",
    permission: "manage",
    tag: "Auth",
    summary: "Get the secret that signs calls, or callbacks, to an origin",
    description:
      "The secret that signs calls to this origin (Standard Webhooks), and for 24 hours after a rotation also the previous one. Callbacks have a separate secret: read it with for=callbacks.",
    success: [200],
    errors: ALWAYS,
  },
  rotateSigningSecret: {
    id: "rotateSigningSecret",
    method: "POST",
    path: "/v1/signing-secret/rotate",
    permission: "manage",
    tag: "Auth",
    summary: "Rotate the signing secret of an origin, or of all origins",
    description:
      "Both secrets sign for 24 hours; a second rotation within that time ends the oldest at once. Takes no body: without the parameter origin every origin gets new secrets, for calls and for callbacks. With an origin it rotates the secret for calls, or with for=callbacks the one for callbacks.",
    success: [200],
    errors: [...ALWAYS, ...READING],
  },
  listCallbackHosts: {
    id: "listCallbackHosts",
    method: "GET",
    path: "/v1/callback-hosts",
    permission: "manage",
    tag: "Auth",
    summary: "List the hosts for callbacks of keys with a hold",
    description: "Callbacks of keys without a hold may go to other hosts too.",
    success: [200],
    errors: ALWAYS,
  },
  addCallbackHost: {
    id: "addCallbackHost",
    method: "POST",
    path: "/v1/callback-hosts",
    permission: "manage",
    tag: "Auth",
    summary: "Allow callbacks of keys with a hold to a host",
    description:
      "A key with a hold can use only listed hosts in callback. Adding a listed host changes nothing. An account can list up to 100 hosts.",
    success: [200],
    errors: [...ALWAYS, ...READING, "missing_body"],
  },
  removeCallbackHost: {
    id: "removeCallbackHost",
    method: "DELETE",
    path: "/v1/callback-hosts",
    permission: "manage",
    tag: "Auth",
    summary: "Remove a host from the list for callbacks of keys with a hold",
    description:
      "Takes effect at once: waiting callbacks to it are given up at their next attempt, and the timeline says so.",
    success: [204],
    errors: [...ALWAYS, "not_found"],
  },
  listKeys: {
    id: "listKeys",
    method: "GET",
    path: "/v1/keys",
    permission: "manage",
    tag: "Auth",
    summary: "List the account's keys",
    description: "Live keys first, then revoked ones. The secret keys themselves are never shown.",
    success: [200],
    errors: ALWAYS,
  },
  createKey: {
    id: "createKey",
    method: "POST",
    path: "/v1/keys",
    permission: "manage",
    tag: "Auth",
    summary: "Create a key; it is shown once",
    description:
      "Only this response shows the key. An account can have 500 live keys; a further one gets 409. A key that replaces another acts on what that key created. The first key with a hold in the first account closes sign-ups, unless SIGNUPS is open.",
    success: [201],
    errors: [...ALWAYS, ...READING, "missing_body", "too_many_keys"],
  },
  revokeKey: {
    id: "revokeKey",
    method: "DELETE",
    path: "/v1/keys/{id}",
    permission: "manage",
    tag: "Auth",
    summary: "Revoke a key",
    description: "Takes effect at once, also for open streams and sessions. Revoking a revoked key returns 204 again.",
    success: [204],
    errors: [...ALWAYS, "not_found"],
  },
  createPause: {
    id: "createPause",
    method: "POST",
    path: "/v1/pauses",
    permission: "manage",
    tag: "Auth",
    summary: "Pause sending for the account or for one key",
    description:
      "No new attempt starts after the response; attempts under way end as usual. Actions can still be created, and wait. Returns 200 and the existing pause where one is in force.",
    success: [201, 200],
    errors: [...ALWAYS, ...READING, "missing_body", "not_found"],
  },
  listPauses: {
    id: "listPauses",
    method: "GET",
    path: "/v1/pauses",
    permission: "manage",
    tag: "Auth",
    summary: "List the pauses in force",
    description: "Oldest first. The audit log has earlier pauses.",
    success: [200],
    errors: ALWAYS,
  },
  endPause: {
    id: "endPause",
    method: "DELETE",
    path: "/v1/pauses/{id}",
    permission: "manage",
    tag: "Auth",
    summary: "End a pause",
    description: "Waiting actions that are due are sent at once. Ending an ended pause returns 204 again.",
    success: [204],
    errors: [...ALWAYS, "not_found"],
  },
  listAudit: {
    id: "listAudit",
    method: "GET",
    path: "/v1/audit",
    permission: "manage",
    tag: "Auth",
    summary: "Read the audit log, newest first, or export it",
    description:
      "Who did what, when and from where. A page as JSON, with next_cursor for the next page; with Accept: application/x-ndjson the whole log, one entry per line.",
    success: [200],
    errors: ALWAYS,
  },
  listAccounts: {
    id: "listAccounts",
    method: "GET",
    path: "/v1/accounts",
    permission: "manage",
    tag: "Auth",
    summary: "List the accounts of the service, for owners of the first one",
    description:
      "Stopped accounts first. An account that signed up before sign-ups closed is stopped until it is allowed. Keys of other accounts than the first get 403.",
    success: [200],
    errors: ALWAYS,
  },
  allowAccount: {
    id: "allowAccount",
    method: "POST",
    path: "/v1/accounts/{id}/allow",
    permission: "manage",
    tag: "Auth",
    summary: "Allow an account that signed up before sign-ups closed",
    description:
      "For owners of the first account. Its keys work again, and its waiting actions are sent at once. Allowing an allowed account returns 204 again.",
    success: [204],
    errors: [...ALWAYS, ...READING, "not_found"],
  },
  getAccount: {
    id: "getAccount",
    method: "GET",
    path: "/v1/account",
    permission: "read",
    tag: "Auth",
    summary: "Get the account, key, role and limits of the caller",
    description: "Shows what the key of the request may do, and its limits.",
    success: [200],
    errors: ALWAYS,
  },
  signUp: {
    ...ENTERING,
    id: "signUp",
    path: "/auth/signup",
    summary: "Sign up: a new account with an owner key",
    description:
      "Returns 403 where sign-ups are closed, by SIGNUPS or because approvals are in use. Only this response shows the key; it also sets the session cookie of the pages. The service's own pages send a form here and get HTML, which is not described.",
    success: [201],
    errors: [...ENTERED, "email_taken", "rate_limited"],
  },
  logIn: {
    ...ENTERING,
    id: "logIn",
    path: "/auth/login",
    summary: "Log in on the pages for people",
    description:
      "Sets the session cookie of the pages for people, which does not authenticate under /v1. Too many wrong passwords get 429. The service's own pages send a form here and get a redirect.",
    success: [200],
    errors: [...ENTERED, "invalid_credentials", "rate_limited"],
  },
  logOut: {
    ...ENTERING,
    id: "logOut",
    path: "/auth/logout",
    summary: "Log out, from a page of this service",
    description:
      "Ends the session and clears its cookie. Needs an Origin or Sec-Fetch-Site of this service. A form of the service's own pages gets a redirect.",
    success: [204],
    errors: [
      "forbidden",
      "invalid_query",
      "invalid_content_type",
      "payload_too_large",
      "invalid_request",
      "internal_error",
      "unavailable",
    ],
  },
  getHealth: {
    id: "getHealth",
    method: "GET",
    path: "/health",
    permission: null,
    tag: "System",
    summary: "Check whether the process runs",
    description: "For supervisors. Doesn't check the database.",
    success: [200],
    errors: [],
  },
  getReady: {
    id: "getReady",
    method: "GET",
    path: "/ready",
    permission: null,
    tag: "System",
    summary: "Check whether the service can store actions",
    description: "For load balancers: 503 while the database can't be written, and while the service stops.",
    success: [200, 503],
    errors: [],
  },
  getMetrics: {
    id: "getMetrics",
    method: "GET",
    path: "/metrics",
    permission: null,
    tag: "System",
    summary: "Get metrics in the Prometheus text format",
    description:
      "Needs METRICS_TOKEN as a bearer token where that is set. Where METRICS_PORT is set, only that port serves them, and this path returns 404.",
    success: [200],
    errors: ["unauthorized", "not_found", "internal_error", "unavailable"],
  },
  getOpenApi: {
    id: "getOpenApi",
    method: "GET",
    path: "/openapi.json",
    permission: null,
    tag: "System",
    summary: "Get this API description as OpenAPI 3.1",
    description: "For generators of clients and documentation.",
    success: [200],
    errors: ["unavailable"],
  },
} as const satisfies Readonly<Record<string, ApiOperation>>;
