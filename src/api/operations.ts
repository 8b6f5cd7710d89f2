import type { ErrorCode } from "./domain-error.ts";
import type { Permission } from "../accounts/roles.ts";

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
  /** What a caller has to know beside the summary and the schemas. */
  readonly description: string;
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
    description:
      "Stores the call, then makes it; it is durable when this answers. Answered with 200 and the older action where Idempotency-Key or dedupe found one: Idempotency-Key is asked first. A key with a hold creates held actions, whatever approve says. An older action that another key created is masked for an agent's key, and so is what differs compares. With sync the answer comes when the action has ended, or as it is when wait has passed. Where a person has rejected the same request within 24 hours, an agent's key has to say why in reason (else 400), and may ask again twice (then 403).",
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
      "A page of the account's actions that match every parameter. Each parameter is given once, but for status. There is no total; next_cursor leads on, with the same parameters.",
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
      "The action as it is now, or, with wait, as soon as it has ended or when wait has passed. The receipt page is at receipt_url.",
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
    description:
      "Every change of its state, every attempt and every notification, oldest first, over all runs; beyond 2,000 lines the oldest are left out.",
    success: [200],
    errors: [...ALWAYS, "not_found"],
  },
  getDecisionFacts: {
    id: "getDecisionFacts",
    method: "GET",
    path: "/v1/actions/{id}/facts",
    permission: "read",
    tag: "Actions",
    summary: "What a person is told before they decide on an action",
    description:
      "The lines that approval mail, pages, MCP question and command line show, masked, in their order, and why somebody should look twice. For programs that put the decision to a person themselves.",
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
    description:
      "Whoever has the link sees it: no key is asked for. JSON with Accept: application/json, else a page for people; errors come in the same form.",
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
    description:
      "Stays open, and tells of every change of status of the account's actions as it happens. Last-Event-ID goes on behind an event that was seen. Of more than 100 open streams of an account the next is answered 429.",
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
      "Releases one run of an action that is awaiting_approval: it is pending then. Of several decisions one wins; the others are answered 409. So is one that names a run which the action is not in.",
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
      "Ends an action that is pending, or rejects one that is awaiting_approval. What is active or has ended is answered 409. So is one that names a run which the action is not in. An agent's key cancels only what it created, unless its scope is account: else 403.",
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
      "Begins a new run of an action that is failed or cancelled: attempts are counted from 0, and its target sees the same Idempotency-Key. What needed approval needs it again. 409 also where another action holds its dedupe key by now. An agent's key retries only what it created, unless its scope is account: else 403. Where a person has rejected the request within 24 hours, an agent's key has to say why in reason (else 400), and may ask again twice (then 409).",
    errors: [...ALWAYS, ...READING, "not_found", "not_retryable"],
  },
  getSigningSecret: {
    id: "getSigningSecret",
    method: "GET",
    path: "/v1/signing-secret",
    permission: "manage",
    tag: "Auth",
    summary: "Read the secret that signs calls, or callbacks, to an origin",
    description:
      "The secret with which calls to this origin are signed (Standard Webhooks), and for 24 hours after a rotation the one before it. Callbacks have a secret of their own: for=callbacks reads it.",
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
    description:
      "Both secrets sign for 24 hours. A second rotation within them ends the oldest at once. It takes no body: the origin is a parameter, and without one every origin gets new secrets, of calls and of callbacks. With an origin it is the secret of calls, unless for says callbacks.",
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
    description: "Callbacks of keys without a hold may go elsewhere too.",
    success: [200],
    errors: ALWAYS,
  },
  addCallbackHost: {
    id: "addCallbackHost",
    method: "POST",
    path: "/v1/callback-hosts",
    permission: "manage",
    tag: "Auth",
    summary: "Let callbacks of keys with a hold go to a host",
    description:
      "A key with a hold can name only listed hosts in callback. One that is listed already stays as it is. An account lists 100 at most.",
    success: [200],
    errors: [...ALWAYS, ...READING, "missing_body"],
  },
  removeCallbackHost: {
    id: "removeCallbackHost",
    method: "DELETE",
    path: "/v1/callback-hosts",
    permission: "manage",
    tag: "Auth",
    summary: "Let callbacks of keys with a hold go to a host no longer",
    description:
      "At once: callbacks to it that wait for their next attempt are given up then, and the timeline says so.",
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
    description: "Never the keys themselves; those that are live first, then those that were revoked.",
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
    description:
      "The answer is the only one that shows the key. An account has 500 live keys at most: one more is answered 409. A key that replaces another acts on what that created. The first key of the first account that has a hold closes sign-ups, unless SIGNUPS is open.",
    success: [201],
    errors: [...ALWAYS, ...READING, "missing_body", "too_many_keys"],
  },
  revokeKey: {
    id: "revokeKey",
    method: "DELETE",
    path: "/v1/keys/{id}",
    permission: "manage",
    tag: "Auth",
    summary: "Revoke a key, at once",
    description:
      "From then on it is worth nothing, also to what it has open. A key that is revoked already is answered 204 again.",
    success: [204],
    errors: [...ALWAYS, "not_found"],
  },
  createPause: {
    id: "createPause",
    method: "POST",
    path: "/v1/pauses",
    permission: "manage",
    tag: "Auth",
    summary: "Pause the account or a key: nothing of it is sent any more",
    description:
      "Nothing of it is begun once this has answered; what is being sent by then ends as usual. Actions are still created, and wait. Answered with 200 and the older pause where one is in force.",
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
    description: "Oldest first. What was paused before is in the audit log.",
    success: [200],
    errors: ALWAYS,
  },
  endPause: {
    id: "endPause",
    method: "DELETE",
    path: "/v1/pauses/{id}",
    permission: "manage",
    tag: "Auth",
    summary: "End a pause: what waited for that is sent",
    description: "What is due by then is sent at once. A pause that has ended already is answered 204 again.",
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
      "Who did what, when and from where. A page as JSON, with next_cursor that leads on; with Accept: application/x-ndjson all of it, one entry a line.",
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
      "Those that are stopped first. An account that was signed up before sign-ups closed is stopped until it is allowed; keys of other accounts than the first are answered 403.",
    success: [200],
    errors: ALWAYS,
  },
  allowAccount: {
    id: "allowAccount",
    method: "POST",
    path: "/v1/accounts/{id}/allow",
    permission: "manage",
    tag: "Auth",
    summary: "Let an account go on that was signed up before sign-ups closed",
    description:
      "For owners of the first account. Its keys are taken again, and what waited of it is sent at once. One that is allowed already is answered 204 again.",
    success: [204],
    errors: [...ALWAYS, ...READING, "not_found"],
  },
  getAccount: {
    id: "getAccount",
    method: "GET",
    path: "/v1/account",
    permission: "read",
    tag: "Auth",
    summary: "Who am I: account, key, role and limits",
    description: "For a client that wants to know what its key may do and what it has to keep to.",
    success: [200],
    errors: ALWAYS,
  },
  signUp: {
    ...ENTERING,
    id: "signUp",
    path: "/auth/signup",
    summary: "Sign up: a new account with an owner key",
    description:
      "Where sign-ups are closed, by SIGNUPS or by what asks for approval, the answer is 403. The answer is the only one that shows the key; it sets the session cookie of the pages too. Our own pages send the same as a form, and get pages: those are not described here.",
    success: [201],
    errors: [...ENTERED, "email_taken", "rate_limited"],
  },
  logIn: {
    ...ENTERING,
    id: "logIn",
    path: "/auth/login",
    summary: "Log in on the pages for people",
    description:
      "Sets the session cookie of the pages for people, which is worth nothing under /v1. Too many wrong passwords are answered 429. Our own pages send the same as a form, and get a redirect.",
    success: [200],
    errors: [...ENTERED, "invalid_credentials", "rate_limited"],
  },
  logOut: {
    ...ENTERING,
    id: "logOut",
    path: "/auth/logout",
    summary: "Log out; only pages of this service can",
    description:
      "Ends the session of the cookie, and clears the cookie. Needs an Origin or Sec-Fetch-Site that is ours. A form of our own pages gets a redirect.",
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
    summary: "Whether the process lives",
    description: "For supervisors. Says nothing of the database.",
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
    description: "For load balancers: 503 while the store can't be written, and when the service stops.",
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
    description:
      "Asks for METRICS_TOKEN as a bearer token where that is set. Where METRICS_PORT is set they are at that port, and here is 404.",
    success: [200],
    errors: ["unauthorized", "not_found", "internal_error", "unavailable"],
  },
  getOpenApi: {
    id: "getOpenApi",
    method: "GET",
    path: "/openapi.json",
    permission: null,
    tag: "System",
    summary: "This description, as OpenAPI 3.1",
    description: "What you read, for tools.",
    success: [200],
    errors: ["unavailable"],
  },
} as const satisfies Readonly<Record<string, ApiOperation>>;
