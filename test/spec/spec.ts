import { type Requirement, section } from "./requirement.ts";

/** Every testable row and sentence of the interface specification. Nested names follow its headings and tables. */
export const SPEC: readonly Requirement[] = [
  ...section("What the service does", {
    "spec.service.store-intent": "The request intent is stored.",
    "spec.service.deliver": "The HTTP request is made to the target URL.",
    "spec.service.retry": "It is retried when it fails, up to a per-action maximum.",
    "spec.service.sign": "Outbound requests are signed with HMAC signatures.",
    "spec.service.result": "The final result is stored and exposed on the action.",
    "spec.service.hold": "An action can be held until a human approves it.",
    "spec.service.deduplicate": "Repeated creations are deduplicated by `dedupe` or `Idempotency-Key`.",
    "spec.service.sync": "The create call can block until the action finishes.",
    "spec.service.receipt": "Each action has a public receipt page.",
  }),

  ...section("Conventions", {
    "spec.convention.snake-case": "All request and response fields are snake_case.",
    "spec.convention.prefixed-ids": "Identifiers are prefixed strings, not UUIDs.",
    "spec.convention.timestamps": "Timestamps are ISO 8601 date-time strings.",
    "spec.convention.json": "Request and response bodies are JSON.",
  }),

  ...section("Action", {
    "spec.action.id": "`id`: required, not null, matches `^act_[A-Za-z0-9_-]+$`.",
    "spec.action.status": "`status`: required; pending, active, awaiting_approval, completed, failed or cancelled.",
    "spec.action.url": "`url`: required URI, the target URL.",
    "spec.action.method": "`method`: required; GET, POST, PUT, PATCH or DELETE.",
    "spec.action.body": "`body`: JSON object or null, the JSON body sent to the target.",
    "spec.action.headers": "`headers`: object of string to string, or null: per-action outbound headers.",
    "spec.action.dedupe": "`dedupe`: string or null, the semantic deduplication key.",
    "spec.action.attempts": "`attempts`: required integer >= 0, delivery attempts used so far.",
    "spec.action.retries": "`retries`: required integer 1..100, maximum delivery attempts before `failed`.",
    "spec.action.created-at": "`created_at`: required date-time.",
    "spec.action.started-at": "`started_at`: date-time or null.",
    "spec.action.finished-at": "`finished_at`: date-time or null.",
    "spec.action.next-retry-at": "`next_retry_at`: date-time or null.",
    "spec.action.last-error": "`last_error`: string or null, the human-readable last error.",
    "spec.action.response-code": "`response_code`: integer or null, the HTTP status returned by the target.",
    "spec.action.response-body": "`response_body`: any JSON value or null, the body returned by the target.",
    "spec.action.duration-ms": "`duration_ms`: integer or null.",
    "spec.action.approve": "`approve`: required boolean, whether the action was held for approval.",
    "spec.action.approved-at": "`approved_at`: date-time or null.",
    "spec.action.approved-by": "`approved_by`: string or null.",
    "spec.action.callback": "`callback`: URI or null, the URL notified on completion or failure.",
    "spec.action.idempotency-key":
      "`idempotency_key`: string or null, the value of the `Idempotency-Key` header used at creation.",
    "spec.action.retries-remaining":
      "`retries_remaining`: `retries - attempts`, for retried pending or active actions.",
    "spec.action.next-retry-in-seconds":
      "`next_retry_in_seconds`: integer >= 0, seconds until `next_retry_at`, when a retry is scheduled.",
    "spec.action.actions": "`actions`: the operations allowed for the current status, of approve, cancel and retry.",
    "spec.action.error": "`error`: present only when `status` is `failed`.",
    "spec.action.receipt-url":
      "`receipt_url`: a path of the form `/r/<receipt_token>`, present on creation and retrieval.",
    "spec.action.deduplicated": "`deduplicated`: present and true when deduplication returns an existing action.",
    "spec.action.required": "The required fields are on every answer and never null.",
  }),

  ...section("error object", {
    "spec.action-error.source-target": "`source` is `target` when the target returned a non-2xx response.",
    "spec.action-error.source-dispatch": "`source` is `dispatch` for network error, DNS failure or timeout.",
    "spec.action-error.message": "`message` is the same text as `last_error`.",
    "spec.action-error.response-code": "`response_code` is the target's status; null for dispatch errors.",
    "spec.action-error.response-body": "`response_body` is the target's body; null for dispatch errors.",
  }),

  ...section("Receipt page", {
    "spec.receipt.url": "Each action has a receipt page at its `receipt_url`.",
    "spec.receipt.content": "It shows status, URL, timing, attempts, request body and response.",
    "spec.receipt.masked": "Sensitive headers are masked on it.",
    "spec.receipt.no-auth": "No authentication is needed to view it.",
    "spec.receipt.unguessable": "Its only protection is the unguessable receipt token in the path.",
  }),

  ...section("Account", {
    "spec.account.owns": "Actions belong to an account.",
    "spec.account.dedupe-scope": "Deduplication is scoped per account.",
    "spec.account.rate-limit": "Rate limiting applies per account.",
  }),

  ...section("States and transitions", {
    "spec.status.pending": "pending: queued, waiting for dispatch.",
    "spec.status.active": "active: HTTP request in flight.",
    "spec.status.awaiting-approval": "awaiting_approval: held for human approval.",
    "spec.status.completed": "completed: the target responded successfully.",
    "spec.status.failed": "failed: maximum attempts exhausted.",
    "spec.status.cancelled": "cancelled: cancelled by a user.",
    "spec.state.create-pending": "A create whose `approve` is false or omitted makes a pending action.",
    "spec.state.create-held": "A create whose `approve` is true makes an action that awaits approval.",
    "spec.state.pending-dispatch": "pending, dispatch: active; an attempt begins.",
    "spec.state.pending-cancel": "pending, cancel: cancelled.",
    "spec.state.active-success": "active, the target responded successfully: completed.",
    "spec.state.active-retry":
      "active, the attempt failed and attempts remain: pending, a retry scheduled (`next_retry_at`, `next_retry_in_seconds`, `retries_remaining`).",
    "spec.state.active-max-retries": "active, attempts exhausted: failed, `error` populated.",
    "spec.state.approval-approved": "awaiting_approval, approval by any path: pending.",
    "spec.state.approval-rejected": "awaiting_approval, rejected (cancel): cancelled.",
    "spec.state.no-others": "No transition exists but those of the table and those of the retry operation.",
  }),

  ...section("Allowed operations", {
    "spec.actions.pending": "pending: [cancel].",
    "spec.actions.awaiting-approval": "awaiting_approval: [approve, cancel].",
    "spec.actions.failed": "failed: [retry].",
    "spec.actions.cancelled": "cancelled: [retry].",
  }),

  ...section("Approval paths", {
    "spec.approval.mail": "With `notify.email` the approver gets a mail with approve and reject buttons.",
    "spec.approval.link": "Following either link resolves the action and redirects to the receipt page.",
    "spec.approval.mail-not-configured":
      "Without an email-provider key the action is still created, but no email is sent.",
    "spec.approval.tool": "An agent tool named `approve`, called after explicit human confirmation.",
    "spec.approval.callback":
      "The client gets action events at `callback`, asks a reviewer, then calls approve or cancel.",
    "spec.approval.endpoint": "Direct call to the approve endpoint.",
    "spec.approval.reject": "Rejection is done by cancelling while in awaiting_approval.",
  }),

  ...section("Endpoints", {
    "spec.endpoint.bearer": "All `/v1/*` routes need bearer authentication.",
    "spec.endpoint.request-id": "Every response carries `X-Request-Id`; the request header is optional.",
  }),

  ...section("POST /v1/actions: headers", {
    "spec.create.authorization": "`Authorization: Bearer <API_KEY>` is required.",
    "spec.create.content-type": "`Content-Type` is required and matches `^application/json(;.*)?$`.",
    "spec.create.idempotency-key": "`Idempotency-Key` is optional and deduplicates creates within 24 hours.",
    "spec.create.x-request-id": "`X-Request-Id` is optional and echoed back.",
  }),

  ...section("POST /v1/actions: body", {
    "spec.create.full-action": "It creates an action and returns the full action object.",
    "spec.create.unknown-properties": "Unknown properties are not allowed.",
    "spec.create.url": "`url`: string, required, URI format.",
    "spec.create.method": "`method`: GET, POST, PUT, PATCH or DELETE; default POST.",
    "spec.create.body": "`body`: JSON object with arbitrary properties.",
    "spec.create.headers": "`headers`: object of string to string, the outbound headers.",
    "spec.create.dedupe": "`dedupe`: string, the semantic dedupe key.",
    "spec.create.retries": "`retries`: integer, 1 to 100; default 3.",
    "spec.create.approve": "`approve`: boolean, default false; true holds the action in awaiting_approval.",
    "spec.create.sync": "`sync`: boolean, default false; true blocks until a terminal status.",
    "spec.create.sync-not-with-approve": "`sync` cannot be true together with `approve: true`.",
    "spec.create.notify": "`notify`: object with a required `email` of email format.",
    "spec.create.callback": "`callback`: string, URI format.",
  }),

  ...section("POST /v1/actions: responses", {
    "spec.create.201": "201 with the Action when it was created.",
    "spec.create.200": "200 with the existing Action and `deduplicated: true` on a match.",
    "spec.create.400": "400 with the envelope on validation failure or malformed body.",
    "spec.create.401": "401 with the envelope on a missing or invalid bearer token.",
    "spec.create.405": "405 with the envelope and `Allow` when the method is not allowed.",
    "spec.create.413": "413 with the envelope for a request body over 1 MB.",
    "spec.create.429": "429 with the envelope and `Retry-After` when rate limited.",
  }),

  ...section("Sync behavior", {
    "spec.sync.blocks": "With `sync: true` the call blocks until completed, failed or cancelled.",
    "spec.sync.final": "It returns the final action with `response_code`, `response_body` and `duration_ms`.",
    "spec.sync.limit": "When the wait limit passes first, the answer is the current action, pending or active.",
    "spec.sync.invalid": "`sync: true` with `approve: true` yields 400 with code `invalid_sync`.",
  }),

  ...section("Deduplication rules", {
    "spec.dedupe.window": "`dedupe` matches within a 24-hour window.",
    "spec.dedupe.scope": "`dedupe` is scoped to account plus key value.",
    "spec.dedupe.ignores-failed": "`dedupe` ignores actions that have already failed.",
    "spec.idempotency.window": "`Idempotency-Key` matches within a 24-hour window.",
    "spec.idempotency.scope": "`Idempotency-Key` is scoped to account plus header value.",
    "spec.dedupe.match": "On a match the existing action is returned with 200 and `deduplicated: true`.",
    "spec.dedupe.no-new-action": "On a match no new action is created.",
  }),

  ...section("POST /v1/actions/{id}/approve", {
    "spec.approve.moves": "It moves an action from awaiting_approval to pending.",
    "spec.approve.no-payload": "It needs no request payload.",
    "spec.approve.not-approvable": "An action that cannot be approved gives `not_approvable`.",
  }),

  ...section("POST /v1/actions/{id}/cancel", {
    "spec.cancel.moves": "It cancels an action in pending or awaiting_approval.",
    "spec.cancel.no-payload": "It needs no request payload.",
    "spec.cancel.not-cancellable": "An action that cannot be cancelled gives `not_cancellable`.",
  }),

  ...section("Other operations", {
    "spec.get.retrieve": "An action can be retrieved.",
    "spec.get.receipt-url": "The receipt URL is returned on retrieval.",
    "spec.retry.moves": "A failed or cancelled action can be retried.",
    "spec.retry.not-retryable": "An action that cannot be retried gives `not_retryable`.",
    "spec.auth-endpoints": "Authentication endpoints exist, with `email_taken` and `invalid_credentials`.",
    "spec.system-endpoints": "System endpoints exist.",
  }),

  ...section("Authentication", {
    "spec.auth.bearer": "Every `/v1/*` route requires `Authorization: Bearer <API_KEY>`.",
    "spec.auth.unauthorized": "A missing or invalid token gives 401 with code `unauthorized`.",
    "spec.auth.receipt-none": "The receipt page needs no authentication but the token in its path.",
    "spec.auth.account-scope": "Actions and deduplication are scoped to the account that the key belongs to.",
  }),

  ...section("Events", {
    "spec.events.callback": "The service notifies `callback` when the action completes or fails.",
    "spec.events.callback-held": "`callback` is also notified of an action that awaits approval.",
    "spec.events.mail": "With `notify.email` and `approve: true` an approval email is sent.",
    "spec.events.signed": "Outbound requests to targets are signed with HMAC signatures.",
  }),

  ...section("Errors", {
    "spec.error.envelope": "An error body is `{ error: { code, message, request_id } }`.",
    "spec.error.code": "`error.code` is one of the codes of the contract.",
    "spec.error.message": "`error.message` is a string.",
    "spec.error.request-id": "`error.request_id` matches `^req_[A-Za-z0-9_-]+$`.",
    "spec.error.details": "`error.details` is optional: validation issues, an object or a string.",
    "spec.error.issue": "A validation issue has `field`, `message` and `code`, which is always `invalid`.",
    "spec.error.envelope-for-sync": "invalid_sync has the envelope, not the flat object of one example.",
    "spec.error.missing-body": "Code missing_body.",
    "spec.error.validation-error": "Code validation_error.",
    "spec.error.missing-field": "Code missing_field.",
    "spec.error.invalid-request": "Code invalid_request.",
    "spec.error.invalid-query": "Code invalid_query.",
    "spec.error.invalid-content-type": "Code invalid_content_type.",
    "spec.error.invalid-url": "Code invalid_url.",
    "spec.error.invalid-sync": "400 invalid_sync: sync combined with approve true.",
    "spec.error.unauthorized": "401 unauthorized: missing or invalid bearer token.",
    "spec.error.rate-limited": "429 rate_limited: too many requests for the account.",
    "spec.error.payload-too-large": "413 payload_too_large: body over 1 MB.",
    "spec.error.method-not-allowed": "405 method_not_allowed: method not allowed on the route.",
    "spec.error.not-found": "Code not_found.",
    "spec.error.not-cancellable": "Code not_cancellable.",
    "spec.error.not-approvable": "Code not_approvable.",
    "spec.error.not-retryable": "Code not_retryable.",
    "spec.error.email-taken": "Code email_taken.",
    "spec.error.invalid-credentials": "Code invalid_credentials.",
    "spec.error.400": "400 for every other validation failure or malformed body, with a validation-type code.",
  }),

  ...section("Limits", {
    "spec.limit.body-size": "Request body: 1 MB; larger gives 413.",
    "spec.limit.retries": "retries: 1 to 100, default 3 (maximum delivery attempts).",
    "spec.limit.dedupe-window": "Deduplication and idempotency window: 24 hours.",
    "spec.limit.sync-wait": "sync wait: 30 seconds by default, maximum 120 seconds.",
    "spec.limit.rate-retry-after": "Rate limit response: 429 with `Retry-After: 1`.",
  }),

  ...section("Versioning", {
    "spec.version.prefix": "Routes are prefixed with `/v1`.",
    "spec.version.description": "The interface description's version is 0.1.0.",
  }),
];
