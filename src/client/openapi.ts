// Written by `npm run client-types` from the API description.

export type Account = {
  id: string;
  name: string | null;
  email: string | null;
  key: { id: KeyId; name: string; role: "owner" | "approver" | "agent" | "reader" };
  limits: {
    requests_per_second: number | null;
    mcp_sessions_max: number;
    held_actions_max: number;
    event_streams_max: number;
    request_body_bytes_max: number;
    json_depth_max: number;
    json_members_max: number;
    url_chars_max: number;
    headers_max: number;
    headers_bytes_max: number;
    retries_default: number;
    retries_max: number;
    wait_seconds_default: number;
    wait_seconds_max: number;
    dedupe_seconds: number;
    list_limit_max: number;
    response_body_bytes_max: number;
  };
};
export type AccountList = { data: ListedAccount[] };
export type Action = {
  id: ActionId;
  status: ActionStatus;
  url: string;
  method: HttpMethod;
  body: { [key: string]: unknown } | null;
  json?: unknown;
  form?: { [key: string]: string | string[] };
  text?: string;
  base64?: string;
  headers: { [key: string]: string } | null;
  dedupe: string | null;
  run: number;
  attempts: number;
  retries: number;
  created_at: string;
  created_by: ActionCreator;
  started_at: string | null;
  finished_at: string | null;
  next_retry_at: string | null;
  last_error: string | null;
  response_code: number | null;
  response_body: unknown;
  response_truncated?: true;
  late_result?: LateResult;
  duration_ms: number | null;
  approve: boolean;
  approved_at: string | null;
  approved_by: string | null;
  policy?: ActionPolicy;
  credential?: ActionCredential;
  callback: string | null;
  idempotency_key: string | null;
  title?: string;
  reason?: string;
  metadata?: { [key: string]: string };
  run_at?: string;
  expires_at?: string;
  timeout_ms?: number;
  backoff?: { base_ms: number; cap_ms: number };
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
  extras?: { [key: string]: unknown };
  hidden_values?: number;
  on_unknown?: "stop";
  retries_remaining?: number;
  next_retry_in_seconds?: number;
  paused?: true;
  pause?: ActionPause;
  actions: ("approve" | "cancel" | "retry")[];
  error?: ActionError;
  receipt_url: string | null;
  deduplicated?: true;
  differs?: string[];
};
export type ActionCount = { status: ActionStatus; count: number; is_more: boolean };
export type ActionCounts = { data: ActionCount[]; counted_until: string | null };
export type ActionCreator = { id: string | null; name: string };
export type ActionCredential = { name: CredentialName; kind: "bearer" | "header" | "basic" | "hmac" };
export type ActionError = {
  source: "target" | "dispatch";
  message: string;
  response_code: number | null;
  response_body: unknown;
};
export type ActionId = string;
export type ActionPage = { data: Action[]; next_cursor: string | null; searched_until?: string };
export type ActionPause = {
  id: PauseId;
  kind: "account" | "key" | "host" | "sign_up";
  reason: string | null;
  created_at: string;
};
export type ActionPolicy = {
  effect: "allow" | "hold";
  by: "key" | "caller" | "rule" | "grant";
  id: string | null;
  name: string | null;
  version: number | null;
  reason: string | null;
};
export type ActionStatus = "pending" | "active" | "awaiting_approval" | "completed" | "failed" | "cancelled";
export type Approval = { reason?: string; run?: number; grant?: GrantTerms };
export type AskCredential = {
  host: string;
  reason: string;
  name?: CredentialName;
  kind?: "bearer" | "header" | "basic" | "hmac";
  paths?: string[];
  methods?: HttpMethod[];
};
export type Attempt = {
  run: number;
  attempt: number;
  at: string;
  outcome: "answered" | "not_sent" | "unknown";
  response_code: number | null;
  error: string | null;
  duration_ms: number | null;
  location: string | null;
  response_headers: ResponseHeader[];
  response_body: unknown;
  response_truncated?: true;
};
export type AttemptList = { data: Attempt[] };
export type AuditEntry = {
  seq: number;
  at: string;
  account_id: string;
  actor: string;
  kind:
    | "signed_up"
    | "signed_in"
    | "sign_in_failed"
    | "sign_in_throttled"
    | "signed_out"
    | "password_changed"
    | "password_link_sent"
    | "key_created"
    | "key_revoked"
    | "revealed"
    | "approved"
    | "rejected"
    | "cancelled"
    | "retried"
    | "bulk_started"
    | "bulk_stopped"
    | "sent_now"
    | "paused"
    | "resumed"
    | "signing_secret_rotated"
    | "callback_hosts_changed"
    | "host_settings_changed"
    | "rules_changed"
    | "refused_by_rule"
    | "beyond_rule"
    | "grant_used"
    | "grant_ended"
    | "credential_added"
    | "credential_changed"
    | "credential_removed"
    | "credential_used"
    | "credential_echoed"
    | "credential_tested"
    | "oauth_client_added"
    | "oauth_client_changed"
    | "oauth_client_removed"
    | "credential_requested"
    | "credential_request_granted"
    | "credential_request_declined"
    | "channel_added"
    | "channel_changed"
    | "channel_removed"
    | "channel_tested"
    | "callback_tested"
    | "signups_closed"
    | "account_allowed"
    | "member_invited"
    | "invitation_withdrawn"
    | "member_joined"
    | "member_role_changed"
    | "member_removed"
    | "member_left"
    | "sessions_ended"
    | "identity_linked"
    | "account_renamed";
  subject: string;
  client: string | null;
  detail: { [key: string]: string | number | boolean | null };
};
export type AuditLog = { data: AuditEntry[]; next_cursor: string | null };
export type BulkDryRun = {
  matching: number;
  is_more: boolean;
  unknown_outcomes: number;
  late_results: number;
  groups: { host: string; response_code: number | null; count: number }[];
};
export type BulkFilter = FilterQuery;
export type BulkId = string;
export type BulkJob = {
  id: BulkId;
  operation: "retry" | "cancel";
  filter: { [key: string]: unknown };
  reason: string | null;
  status: "running" | "finished" | "stopped";
  matching: number;
  done: number;
  failed: number;
  created_at: string;
  created_by: string;
  finished_at: string | null;
  stopped_by: string | null;
};
export type BulkJobList = { data: BulkJob[]; next_cursor: string | null };
export type BulkResult = {
  id: ActionId;
  run: number;
  status: "waiting" | "done" | "failed";
  action_status: string | null;
  error: { code: string; message: string } | null;
};
export type BulkResultList = { data: BulkResult[]; next_cursor: string | null };
export type CallbackHost = { host: string; created_at: string };
export type CallbackHostList = { data: CallbackHost[] };
export type CallbackTest = {
  delivered: boolean;
  verifies: boolean | null;
  signed: CallbackTry;
  wrong_signature: CallbackTry | null;
};
export type CallbackTry = { response_code: number | null; duration_ms: number; error: string | null };
export type ChangeAccount = { name: string };
export type ChangeChannel = Partial<Omit<CreateChannel, "kind" | "remind_after_minutes">> & {
  remind_after_minutes?: 0 | number;
};
export type ChangeCredential = Partial<
  Omit<CreateCredential, "name" | "kind" | "header" | "scheme" | "username" | "hmac">
> & { unset?: ("paths" | "methods" | "expires_at")[] };
export type ChangeFirstSteps = { hidden: boolean };
export type ChangePerson = { role: "owner" | "approver" | "reader" };
export type ChangeRule = Partial<RuleDefinition> & {
  unset?: (
    | "when"
    | "keys"
    | "methods"
    | "hosts"
    | "path"
    | "credentials"
    | "body_kind"
    | "body_bytes"
    | "between"
    | "more_than"
    | "sum"
    | "message"
    | "explain"
  )[];
};
export type Channel = {
  id: string;
  name: string;
  kind: "mail" | "slack" | "webhook";
  to?: string[];
  url?: string | null;
  remind_after_minutes: number | null;
  enabled: boolean;
  created_at: string;
  created_by: string;
};
export type ChannelList = { data: Channel[] };
export type ChannelTest = { delivered: boolean; error: string | null };
export type CreateAction = {
  url: string;
  method?: HttpMethod;
  body?: { [key: string]: unknown };
  json?: unknown;
  form?: { [key: string]: string | string[] };
  text?: string;
  base64?: string;
  headers?: { [key: string]: string };
  dedupe?: string;
  retries?: number;
  on_unknown?: "retry" | "stop";
  approve?: boolean;
  sync?: boolean;
  notify?: { email: string };
  callback?: string;
  run_at?: string;
  delay_seconds?: number;
  expires_at?: string;
  timeout_ms?: number;
  backoff?: { base_ms: number; cap_ms: number };
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
  credential?: CredentialToUse;
  title?: string;
  metadata?: { [key: string]: string };
  reason?: string;
};
export type CreateChannel = {
  name: string;
  kind: "mail" | "slack" | "webhook";
  to?: string[];
  url?: string;
  remind_after_minutes?: number;
  enabled?: boolean;
};
export type CreateCredential = {
  name: CredentialName;
  kind: "bearer" | "header" | "basic" | "hmac";
  secret: string;
  hosts: string[];
  paths?: string[];
  methods?: HttpMethod[];
  header?: string;
  scheme?: string;
  username?: string;
  hmac?: HmacSettings;
  keys?: KeyId[];
  enabled?: boolean;
  expires_at?: string;
};
export type CreateInvitation = { email: string; role: "owner" | "approver" | "reader" };
export type CreateKey = {
  name: string;
  role: "owner" | "approver" | "agent" | "reader";
  hold?: "none" | "writes" | "all";
  scope?: "own" | "account";
  replaces?: string;
  hosts?: string[];
  methods?: HttpMethod[];
  daily_actions?: number;
  expires_at?: string;
  credentials?: CredentialName[];
  weaker_hold?: boolean;
  inherit_limits?: boolean;
};
export type CreateOAuthClient = { name: string; redirect_uris: string[]; type: "public" | "confidential" };
export type CreatePause = { key_id?: KeyId; host?: string; reason?: string };
export type CreateRule = RuleDefinition & { before?: string };
export type CreatedInvitation = Omit<Invitation, "void"> & { link: string; mailed: boolean };
export type CreatedKey = {
  id: KeyId;
  name: string;
  role: "owner" | "approver" | "agent" | "reader";
  hold: "none" | "writes" | "all";
  scope?: "own" | "account";
  replaces: string | null;
  last4: string;
  created_at: string;
  last_used_at: string | null;
  created_by: string | null;
  revoked_at: string | null;
  revoked_by: string | null;
  hosts?: string[];
  methods?: HttpMethod[];
  daily_actions?: number;
  expires_at?: string;
  key: string;
};
export type Credential = Omit<CreateCredential, "secret" | "enabled" | "expires_at"> & {
  enabled: boolean;
  expires_at: string | null;
  id?: string;
  last4?: string | null;
  created_at?: string;
  created_by?: string;
  replaced_at?: string;
  last_used_at?: string | null;
  uses_last_week?: number;
  echoed_by?: string[];
  warnings?: string[];
};
export type CredentialList = { data: Credential[] };
export type CredentialName = string;
export type CredentialRequest = Omit<AskCredential, "host" | "reason"> & {
  id: CredentialRequestId;
  status: "pending" | "granted" | "declined" | "expired" | "cancelled";
  host: string;
  reason: string;
  credential: string | null;
  key_id: string;
  created_by: string;
  created_at: string;
  expires_at: string;
  decided_by: string | null;
  decided_at: string | null;
  decision_reason: string | null;
};
export type CredentialRequestId = string;
export type CredentialRequestPage = { data: CredentialRequest[]; next_cursor: string | null };
export type CredentialTest = {
  status: number | null;
  error: string | null;
  headers: { [key: string]: string };
  body: string | null;
  truncated: boolean;
};
export type CredentialToUse = string;
export type DecideRequests = { decision: "approve" | "reject"; reason?: string; requests: ShownRequest[] };
export type Decision = { reason?: string; run?: number };
export type DecisionFact = {
  name:
    | "hidden"
    | "method"
    | "url"
    | "body"
    | "title"
    | "reason"
    | "metadata"
    | "credential"
    | "requester"
    | "requested_at"
    | "policy"
    | "run"
    | "rejections"
    | "rejected"
    | "asked_again"
    | "callback"
    | "attempts"
    | "on_unknown"
    | "run_at"
    | "expires_at"
    | "extras"
    | "action";
  label: string;
  value: string;
};
export type DecisionFacts = { facts: DecisionFact[]; risks: DecisionRisk[]; run?: number; digest?: string };
export type DecisionRisk = {
  name:
    | "already_done"
    | "key_revoked"
    | "key_expired"
    | "rejected"
    | "credential"
    | "hidden_characters"
    | "mixed_scripts"
    | "coded_letters"
    | "hidden_values"
    | "callback_host"
    | "deletes"
    | "other_method"
    | "size"
    | "similar_rejected"
    | "new_host";
  level: "danger" | "warning" | "note";
  text: string;
};
export type DeclineCredential = { reason?: string };
export type DefaultCredential = string;
export type DryRun = {
  looked_at: number;
  from: string | null;
  allowed: number;
  held: number;
  refused: number;
  held_approved: number;
  held_rejected: number;
  held_undecided: number;
  undecidable: number;
  unknown: number;
  uncertain: number;
  differing: number;
  differences: DryRunDifference[];
};
export type DryRunDifference = {
  id: string;
  method: string;
  url: string;
  title?: string;
  status: string;
  created_at: string;
  created_by: string;
  in_force: "allow" | "hold" | "refuse";
  tried: "allow" | "hold" | "refuse";
  rule: string | null;
  reason: string | null;
};
export type DryRunRules = { rules?: RuleDefinition[]; last?: number; since?: string };
export type ErrorCode =
  | "missing_body"
  | "validation_error"
  | "missing_field"
  | "invalid_request"
  | "invalid_query"
  | "invalid_content_type"
  | "invalid_url"
  | "invalid_sync"
  | "unauthorized"
  | "forbidden"
  | "rate_limited"
  | "payload_too_large"
  | "method_not_allowed"
  | "not_found"
  | "not_cancellable"
  | "not_approvable"
  | "not_retryable"
  | "too_many_held"
  | "too_many_jobs"
  | "email_taken"
  | "too_many_keys"
  | "last_owner"
  | "invalid_credentials"
  | "internal_error"
  | "unavailable";
export type ErrorEnvelope = {
  error: {
    code: ErrorCode;
    message: string;
    request_id: string;
    details?: ValidationIssue[];
    details_left_out?: number;
  };
};
export type FailingHost = {
  host: string;
  completed: number;
  failed: number;
  attempts: number;
  failed_attempts: number;
  last_error: string;
  last_failed_at: string;
};
export type FirstStep = { step: "action" | "approval" | "agent" | "signature"; done: boolean; done_at: string | null };
export type FirstSteps = { data: FirstStep[]; hidden: boolean };
export type Grant = {
  id: GrantId;
  key_id: string;
  action_id: string;
  vary: string[];
  max: { [key: string]: number };
  calls: number;
  used: number;
  expires_at: string;
  created_at: string;
  created_by: string;
};
export type GrantId = string;
export type GrantList = { data: Grant[] };
export type GrantTerms = { minutes: number; calls: number; vary?: string[]; max?: { [key: string]: number } };
export type Health = { status: "ok" | "unavailable"; version: string; commit: string | null };
export type HmacSettings = {
  algorithm?: "sha256" | "sha512" | "sha1";
  encoding?: "hex" | "base64" | "base64url";
  signs?: string;
  value?: string;
  time?: "seconds" | "milliseconds" | "iso";
  time_header?: string;
};
export type HostSettings = PutHostSettings & { host: string; updated_at: string; updated_by: string };
export type HostSettingsList = { data: HostSettings[]; defaults: Settings };
export type HttpMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
export type Invitation = {
  id: InvitationId;
  email: string;
  role: "owner" | "approver" | "reader";
  created_at: string;
  created_by: string;
  expires_at: string;
  void: boolean;
};
export type InvitationId = string;
export type InvitationList = { data: Invitation[] };
export type KeyId = string;
export type KeyList = { data: ListedKey[] };
export type LateResult = { run: number; attempt: number; response_code: number; response_body: unknown; at: string };
export type ListedAccount = {
  id: string;
  email: string | null;
  created_at: string;
  first: boolean;
  stopped: boolean;
  allowed_at: string | null;
};
export type ListedKey = Omit<CreatedKey, "key"> & {
  last_action_at: string | null;
  last_action: {
    id: ActionId;
    created_at: string;
    method: HttpMethod;
    url: string;
    status: ActionStatus;
    response_code: number | null;
  } | null;
  actions_last_day: number;
  actions_today: number;
  credentials?: CredentialName[];
};
export type NewOAuthClient = OAuthClient & { secret: string | null };
export type Notification = {
  id: string;
  action_id: string;
  run: number;
  kind: string;
  event: string;
  target: string;
  status: "pending" | "active" | "delivered" | "given_up" | "dropped";
  attempts: number;
  created_at: string;
  next_attempt_at: string | null;
  last_error: string | null;
};
export type NotificationList = { data: Notification[]; next_cursor: string | null };
export type OAuthClient = {
  id: string;
  name: string;
  redirect_uris: string[];
  type: "public" | "confidential";
  connections: number;
  created_at: string;
  created_by: string;
};
export type OAuthClientList = { data: OAuthClient[] };
export type Overview = {
  range: "1h" | "24h" | "7d" | "30d";
  since: string;
  counted_until: string | null;
  slot_seconds: number;
  slots: OverviewSlot[];
  latency: { p50_ms: number; p95_ms: number; p99_ms: number } | null;
  hosts: OverviewHost[];
  other_hosts: OverviewOthers | null;
  agents: OverviewAgent[];
  other_agents: OverviewOthers | null;
  approvals: OverviewApprovals;
  failing_hosts: FailingHost[];
  retries: { scheduled: number; due: number; due_since: string | null; is_more: boolean; hosts: RetryingHost[] };
};
export type OverviewAgent = OverviewOthers & { key_id: string; name: string | null };
export type OverviewApprovals = {
  waiting: number;
  is_more: boolean;
  oldest_at: string | null;
  over_an_hour: number;
  over_a_day: number;
  approved: number;
  rejected: number;
  p50_ms: number | null;
  p95_ms: number | null;
};
export type OverviewHost = OverviewOthers & { host: string };
export type OverviewOthers = {
  created: number;
  completed: number;
  failed: number;
  attempts: number;
  p50_ms: number | null;
  p95_ms: number | null;
  failed_attempts: number;
};
export type OverviewSlot = Omit<OverviewOthers, "failed_attempts"> & { at: string };
export type Pause = ActionPause & { key_id: string | null; host?: string; cancels: boolean; created_by: string };
export type PauseId = string;
export type PauseList = { data: Pause[] };
export type Person = {
  id: PersonId;
  email: string;
  role: "owner" | "approver" | "reader";
  joined_at: string;
  last_seen_at: string | null;
};
export type PersonId = string;
export type PersonList = { data: Person[] };
export type PutDefaults = {
  timeout_ms?: number;
  backoff?: { base_ms: number; cap_ms: number };
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
};
export type PutHostSettings = PutDefaults & {
  max_per_second?: number;
  max_concurrent?: number;
  default_credential?: DefaultCredential;
};
export type Receipt = Omit<Action, "body" | "reason" | "metadata" | "extras" | "deduplicated" | "differs"> & {
  body: { [key: string]: unknown } | null | string;
  body_truncated?: true;
  timeline: ReceiptItem[];
  earlier_attempts: number;
};
export type ReceiptItem = {
  at: string;
  run: number;
  type:
    | "created"
    | "held"
    | "started"
    | "not_started"
    | "approved"
    | "rejected"
    | "cancelled"
    | "retried"
    | "sent_now"
    | "attempt"
    | "completed"
    | "failed"
    | "mail"
    | "callback"
    | "message"
    | "paused"
    | "resumed";
  status: ActionStatus;
  actor?: string;
  reason?: string | null;
  via?: "elicitation";
  attempt?: number;
  outcome?: "answered" | "not_sent" | "unknown";
  response_code?: number | null;
  error?: string | null;
  duration_ms?: number | null;
  next_retry_at?: string | null;
  location?: string | null;
  late?: true;
  event?: string;
  channel?: string;
  delivered?: boolean;
  attempts?: number;
};
export type ReorderRules = { ids: RuleId[] };
export type ReplaceRules = { rules: RuleDefinition[] };
export type RequestDecision = { id: ActionId; status?: ActionStatus; error?: { code: string; message: string } };
export type RequestDecisions = { data: RequestDecision[] };
export type ResponseHeader = { name: string; value: string };
export type Retry = { run?: number; reason?: string };
export type RetryingHost = { host: string; scheduled: number; next_at: string };
export type RevokedKey = Omit<CreatedKey, "key"> & {
  unfinished_actions: number;
  held_actions: number;
  created_keys: number;
};
export type Rotation = { origin: string | null; rotated_at: string; previous_expires_at: string };
export type Rule = RuleDefinition & {
  id: RuleId;
  position: number;
  version: number;
  created_at?: string;
  created_by?: string;
  changed_at?: string;
  changed_by?: string;
  warnings?: string[];
};
export type RuleCredential = string;
export type RuleDefinition = {
  name: string;
  effect: "allow" | "hold" | "refuse";
  when?: string;
  keys?: KeyId[];
  methods?: HttpMethod[];
  hosts?: string[];
  path?: string;
  credentials?: RuleCredential[];
  body_kind?: "none" | "json" | "form" | "text" | "base64";
  body_bytes?: { over: number };
  between?: {
    from: string;
    to: string;
    days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
    timezone: string;
  };
  more_than?: { count: number; minutes: number; same?: string };
  sum?: { member: string; per: "hour" | "day" | "month"; timezone: string; limit: number; same?: string };
  message?: string;
  explain?: boolean;
};
export type RuleId = string;
export type RuleList = { data: Rule[] };
export type Server = {
  version: string;
  targets: string;
  rate_limit_per_second: number | null;
  attempt_timeout_ms: number;
  retry_base_ms: number;
  retry_cap_ms: number;
  approval_ttl_hours: number | null;
  approval_links: "confirm" | "one_click";
  approvers: string[];
  agent_approval: "off" | "elicit";
  sends_mail: boolean;
  retention_days: number | null;
  database: {
    bytes: number;
    free_bytes: number;
    can_shrink: boolean;
    deletable_bytes: number;
    deletable_days: number;
  } | null;
  settings: ServerSetting[] | null;
};
export type ServerSetting = { name: string; value: string | null; set: boolean; secret: boolean; description: string };
export type Settings = PutDefaults;
export type ShownRequest = { id: ActionId; run: number; digest: string };
export type SignatureCheck = {
  origin: string;
  for: "calls" | "callbacks";
  valid: boolean;
  secret: ("current" | "previous") | null;
  problems: SignatureProblem[];
  warnings: SignatureWarning[];
};
export type SignatureProblem = {
  code:
    | "missing_header"
    | "bad_timestamp"
    | "bad_signature"
    | "unknown_version"
    | "wrong_length"
    | "other_use"
    | "other_origin"
    | "unknown_id"
    | "body_changed"
    | "no_match";
  message: string;
};
export type SignatureWarning = {
  code: "old_timestamp" | "future_timestamp" | "previous_secret" | "ended_secret";
  message: string;
};
export type SigningOrigin = {
  origin: string;
  for: "calls" | "callbacks";
  last_used_at: string | null;
  rotated_at: string | null;
  previous_expires_at: string | null;
};
export type SigningOriginList = { data: SigningOrigin[] };
export type SigningSecret = { origin: string; secret: string; previous: { secret: string; expires_at: string } | null };
export type StartBulk = {
  operation: "retry" | "cancel";
  filter: BulkFilter;
  reason?: string;
  dry_run?: boolean;
  at_most?: number;
};
export type TestCallback = { url: string; wrong_signature?: boolean };
export type TestCredential = { url: string };
export type TestMail = { to: string };
export type TestMailResult = { delivered: boolean; error: string | null };
export type Timeline = { data: TimelineItem[] };
export type TimelineItem = ReceiptItem & { seq: number };
export type ValidationIssue = { field: string; message: string; code: "invalid" };
export type VerifySignature = { headers: { [key: string]: string }; text?: string; base64?: string };
export type AuditQuery = {
  kind?: AuditEntry["kind"][];
  actor?: string;
  since?: string;
  until?: string;
  limit?: number;
  cursor?: string;
};
export type BulkQuery = { limit?: number; cursor?: string };
export type BulkResultQuery = { status?: "waiting" | "done" | "failed"; limit?: number; cursor?: string };
export type CredentialRequestQuery = {
  status?: "pending" | "granted" | "declined" | "expired" | "cancelled";
  limit?: number;
  cursor?: string;
};
export type ExportQuery = FilterQuery & { format?: "ndjson" | "csv" };
export type FilterQuery = {
  q?: string;
  id?: ActionId[];
  status?: ActionStatus[];
  method?: HttpMethod;
  host?: string;
  path?: string;
  dedupe?: string;
  created_by?: string;
  created_after?: string;
  created_before?: string;
  response_code?: string[];
  outcome?: "answered" | "not_sent" | "unknown";
  error?:
    | "target"
    | "timed_out"
    | "closed"
    | "refused"
    | "unreachable"
    | "dns"
    | "certificate"
    | "not_allowed"
    | "interrupted"
    | "other";
  title?: string;
  reason?: string;
  metadata?: string[];
};
export type ListQuery = FilterQuery & { limit?: number; cursor?: string };
export type NotificationQuery = { limit?: number; cursor?: string };
export type OverviewQuery = { range?: "1h" | "24h" | "7d" | "30d" };
export type SigningSecretQuery = { origin: string; for?: "calls" | "callbacks" };
export type ListQueryBase = Record<string, never>;
