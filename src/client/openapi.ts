// Written by `npm run client-types` from the API description.

/** The account and key of the caller. */
export type Account = {
  /** Id of the account. */
  id: string;
  /** As its owners call it; null: they don't. */
  name: string | null;
  /** Address of the account's first person; null: none yet. */
  email: string | null;
  /** The calling key. */
  key: {
    id: KeyId;
    /** The name of the calling key. */
    name: string;
    /** Its role. */
    role: "owner" | "approver" | "agent" | "reader";
  };
  /** Limits that apply to the caller. */
  limits: {
    /** Requests of the whole account in one second, shared by its active keys; null: no limit. */
    requests_per_second: number | null;
    /** Sessions that MCP clients of the 2025 protocol versions may have open in the whole account. */
    mcp_sessions_max: number;
    /** Actions of the calling key that may await approval at the same time. */
    held_actions_max: number;
    /** Event streams open in the whole account. */
    event_streams_max: number;
    /** Bytes of a request body. */
    request_body_bytes_max: number;
    /** Depth of a request's JSON; the outermost value is depth 1. */
    json_depth_max: number;
    /** Object members in a whole request. */
    json_members_max: number;
    /** Characters of a url or callback. */
    url_chars_max: number;
    /** Headers of an action. */
    headers_max: number;
    /** Bytes of an action's header names and values. */
    headers_bytes_max: number;
    /** Default of `retries`: delivery attempts of a run. */
    retries_default: number;
    /** Maximum of `retries`. */
    retries_max: number;
    /** Default of `wait` for a sync create, in seconds. */
    wait_seconds_default: number;
    /** Maximum of `wait`, in seconds. */
    wait_seconds_max: number;
    /** Seconds for which dedupe and Idempotency-Key are remembered. */
    dedupe_seconds: number;
    /** Actions of a page. */
    list_limit_max: number;
    /** Bytes of a target's answer that are stored. */
    response_body_bytes_max: number;
  };
};
/** The accounts of the service. */
export type AccountList = {
  /** The accounts, stopped ones first, then the newest; at most 500. */
  data: ListedAccount[];
};
/** One HTTP call: its request, state and result. */
export type Action = {
  id: ActionId;
  status: ActionStatus;
  /** The target. */
  url: string;
  method: HttpMethod;
  /** JSON body sent to the target. Null also where another member has the body. */
  body: {
    [key: string]: unknown;
  } | null;
  /** JSON value sent to the target. */
  json?: unknown;
  /** Form sent to the target. A list of one value is shown as the value. */
  form?: {
    [key: string]: string | string[];
  };
  /** Text sent to the target. */
  text?: string;
  /** Bytes sent to the target, in base64. */
  base64?: string;
  /** Headers of the call. */
  headers: {
    [key: string]: string;
  } | null;
  /** Semantic key of deduplication. */
  dedupe: string | null;
  /** The present run: 1, and one more with each retry. Attempts are counted per run. */
  run: number;
  /** Delivery attempts used in this run. */
  attempts: number;
  /** Most delivery attempts in one run. */
  retries: number;
  /** When it was created. */
  created_at: string;
  created_by: ActionCreator;
  /** The first attempt of this run. */
  started_at: string | null;
  /** When it ended. */
  finished_at: string | null;
  /** The next attempt, between two attempts. */
  next_retry_at: string | null;
  /** How the last attempt failed. */
  last_error: string | null;
  /** HTTP status of the target; null: it gave none. */
  response_code: number | null;
  /** Body of the target's answer: a JSON value, text, or `{ encoding: base64, data }`; null: none. */
  response_body: unknown;
  /** The target's answer was longer than the part that is stored. */
  response_truncated?: true;
  late_result?: LateResult;
  /** How long the last attempt took. */
  duration_ms: number | null;
  /** Whether the action was held for approval. */
  approve: boolean;
  /** When it was approved. */
  approved_at: string | null;
  /** Who approved it. */
  approved_by: string | null;
  policy?: ActionPolicy;
  credential?: ActionCredential;
  /** Receives the events of this action. */
  callback: string | null;
  /** Idempotency-Key of its creation. */
  idempotency_key: string | null;
  /** What the call does, in the requester's words. */
  title?: string;
  /** Why it was requested, in the requester's words. */
  reason?: string;
  /** What the requester noted. */
  metadata?: {
    [key: string]: string;
  };
  /** It is not sent before this time. Present if the create said so. */
  run_at?: string;
  /** No attempt begins from this time on. Present if the create said so. */
  expires_at?: string;
  /** Deadline of a whole attempt in milliseconds. */
  timeout_ms?: number;
  /** Delay between two attempts; a Retry-After replaces it. */
  backoff?: {
    /** Milliseconds after the first failure, doubled after each further one. */
    base_ms: number;
    /** Most milliseconds, at least base_ms. */
    cap_ms: number;
  };
  /** Statuses after which no attempt follows: numbers, or classes like 4xx. */
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
  /** What another version of Outgate stored with the action and this one doesn't use. It is kept. Absent if there is nothing. */
  extras?: {
    [key: string]: unknown;
  };
  /** Number of values of the request that are masked for this key. Absent if none is. */
  hidden_values?: number;
  /** It ends as failed after an attempt that the target may have received. */
  on_unknown?: "stop";
  /** Attempts left in this run, once one was made. */
  retries_remaining?: number;
  /** Seconds until next_retry_at. */
  next_retry_in_seconds?: number;
  /** It is not sent until its pause ends. Absent otherwise, and in events and callbacks. */
  paused?: true;
  pause?: ActionPause;
  /** Operations that its status allows now. */
  actions: ("approve" | "cancel" | "retry")[];
  error?: ActionError;
  /** Its receipt page, visible to everyone who has the link. Absolute if the service has a BASE_URL, else a path. Null on the receipt itself. */
  receipt_url: string | null;
  /** A create found this older action. Absent otherwise. */
  deduplicated?: true;
  /** Fields of the request that differ from this older action: empty if none does. Absent unless a create found it. */
  differs?: string[];
};
/** How many actions have a status. */
export type ActionCount = {
  status: ActionStatus;
  /** How many were counted. */
  count: number;
  /** Whether there may be more. */
  is_more: boolean;
};
/** How many actions match, by status. */
export type ActionCounts = {
  /** One for each status, or for each that the query names. */
  data: ActionCount[];
  /** Counting stopped early, at an action that was created then; null: everything was counted. */
  counted_until: string | null;
};
/** Who created it. */
export type ActionCreator = {
  /** Id of the key; null: a person on the pages, the agent of `outgate mcp`, or not recorded. */
  id: string | null;
  /** Name of the key at that time, or the person's address. */
  name: string;
};
/** The credential that it is sent with. Absent: none. */
export type ActionCredential = {
  name: CredentialName;
  /** bearer: `Authorization: Bearer <secret>`; header: a header of your choice; basic: a user name and a password; hmac: a signature of each request. */
  kind: "bearer" | "header" | "basic" | "hmac";
};
/** Why the action failed. Present only if it failed. */
export type ActionError = {
  /** target: it answered with a status other than 2xx; dispatch: no whole answer arrived. */
  source: "target" | "dispatch";
  /** The same text as last_error. */
  message: string;
  /** HTTP status of the target; null: it gave none. */
  response_code: number | null;
  /** Body of the target's answer: a JSON value, text, or `{ encoding: base64, data }`; null: none. */
  response_body: unknown;
};
/** Id of an action. */
export type ActionId = string;
/** One page of a list. */
export type ActionPage = {
  /** The actions, newest first. */
  data: Action[];
  /** Asks for the next page; null: there is none. */
  next_cursor: string | null;
  /** The page stopped early, at an action that was created then: it looks at a bounded number. next_cursor goes on from there. */
  searched_until?: string;
};
/** The pause that keeps it from being sent. Present if `paused` is. */
export type ActionPause = {
  id: PauseId;
  /** account: the whole account; key: the actions of one key; host: the calls to one host; sign_up: the whole account, until an owner of the first account of the service allows it. */
  kind: "account" | "key" | "host" | "sign_up";
  /** The reason that was given; null: none. */
  reason: string | null;
  /** When it was paused. */
  created_at: string;
};
/** Why it was held, or which rule or grant let it pass. Absent if nothing held it and no rule applies. */
export type ActionPolicy = {
  /** What became of the request. */
  effect: "allow" | "hold";
  /** key: the hold of its key; caller: its own `approve`; rule: a rule of the account; grant: what a person allowed before. */
  by: "key" | "caller" | "rule" | "grant";
  /** Id of the rule or grant. */
  id: string | null;
  /** Its name at that time. */
  name: string | null;
  /** The version of the rule. */
  version: number | null;
  /** What an owner has written about the rule, or why it could not be decided. */
  reason: string | null;
};
/** Where the action is. pending: waits to be sent; active: being sent; awaiting_approval: held for a person; completed, failed and cancelled: it has ended. */
export type ActionStatus = "pending" | "active" | "awaiting_approval" | "completed" | "failed" | "cancelled";
/** Optional details of an approval. */
export type Approval = {
  /** Why; shown in the timeline. Well-formed Unicode without NUL. */
  reason?: string;
  /** The run that the decision is for; it is refused if the action is in another one. Default: the present run. */
  run?: number;
  grant?: GrantTerms;
};
/** A credential that somebody else fills in. */
export type AskCredential = {
  /** The host to call, with its port unless it is the default one. */
  host: string;
  /** What the credential is for; whoever fills in the secret reads it. Well-formed Unicode without NUL. */
  reason: string;
  name?: CredentialName;
  /** bearer: `Authorization: Bearer <secret>`; header: a header of your choice; basic: a user name and a password; hmac: a signature of each request. */
  kind?: "bearer" | "header" | "basic" | "hmac";
  /** Where the paths of your calls begin, by whole segments. A suggestion, as name, kind and methods are. */
  paths?: string[];
  /** Which methods may use it. Left out: any. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
};
/** An attempt that has ended, and what came back of it. */
export type Attempt = {
  /** A manual retry begins the next run. */
  run: number;
  /** Its number in the run. */
  attempt: number;
  /** When it ended. */
  at: string;
  /** What is known of it, as in the timeline. */
  outcome: "answered" | "not_sent" | "unknown";
  /** HTTP status of the target; null: it gave none. */
  response_code: number | null;
  /** Why it failed; null: it succeeded. */
  error: string | null;
  /** How long it took. */
  duration_ms: number | null;
  /** Target of a redirect. Redirects are never followed. */
  location: string | null;
  /** The headers of the answer, without values that may be secret. */
  response_headers: ResponseHeader[];
  /** Body of the target's answer: a JSON value, text, or `{ encoding: base64, data }`; null: none. */
  response_body: unknown;
  /** The answer's body was longer than what is kept, 16384 bytes of it at most. */
  response_truncated?: true;
};
/** The newest attempts of an action. */
export type AttemptList = {
  /** The newest 5 attempts, oldest first. */
  data: Attempt[];
};
/** One entry of the audit log. */
export type AuditEntry = {
  /** Increasing number, with gaps. */
  seq: number;
  /** When it happened. */
  at: string;
  /** The account. */
  account_id: string;
  /** Who did it; anonymous: somebody whose sign-in failed. */
  actor: string;
  /** What was done. */
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
  /** What it was done to: the id of an action, key or pause, an origin, or an address; empty: the account, or every origin. */
  subject: string;
  /** Network address of the client: IPv4, or the /64 of IPv6; null: the service itself. */
  client: string | null;
  /** Details, depending on `kind`; `via` is how the request arrived. Never secrets. */
  detail: {
    [key: string]: string | number | boolean | null;
  };
};
/** One page of the audit log. */
export type AuditLog = {
  /** The entries, newest first. */
  data: AuditEntry[];
  /** Asks for the next page; null: there is none. */
  next_cursor: string | null;
};
/** What a bulk job would do. */
export type BulkDryRun = {
  /** How many actions match. */
  matching: number;
  /** Whether there are more than one job covers. */
  is_more: boolean;
  /** How many of them the target may have carried out already, without having answered. */
  unknown_outcomes: number;
  /** How many of them the target has carried out: it answered 2xx, but too late for their status. */
  late_results: number;
  /** Those that match by host and status, the largest group first, at most 10. */
  groups: {
    /** Where they go. */
    host: string;
    /** What the newest attempt was answered; null: nothing. */
    response_code: number | null;
    /** How many of those that match. */
    count: number;
  }[];
};
/** Which actions, by the parameters of GET /v1/actions. Without status and id: retry takes failed ones, cancel those that are pending or awaiting approval. */
export type BulkFilter = {
  /** Free text: in host, path or title, a status of the target such as 422 or 5xx, or the start of an id. Case doesn't count. */
  q?: string;
  /** Only these actions; may repeat. */
  id?: ActionId[];
  /** Any of these; may repeat. */
  status?: ("pending" | "active" | "awaiting_approval" | "completed" | "failed" | "cancelled")[];
  /** HTTP method of the call. */
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Host name, with a port or for any port. */
  host?: string;
  /** The start of the target's path. */
  path?: string;
  /** The dedupe key of the create. */
  dedupe?: string;
  /** Id of the key that created it. */
  created_by?: string;
  /** Created later than this. */
  created_after?: string;
  /** Created earlier than this. */
  created_before?: string;
  /** Any of these statuses of the target, or classes of them; may repeat. */
  response_code?: string[];
  /** How the newest attempt ended, as in the timeline. */
  outcome?: "answered" | "not_sent" | "unknown";
  /** Kind of the newest attempt's failure. */
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
  /** Text in the title. Case doesn't count. */
  title?: string;
  /** Text in the requester's reason. Case doesn't count. */
  reason?: string;
  /** `name:value`, exactly, or a name for any value. May repeat: all of them. */
  metadata?: string[];
};
/** Id of a bulk job. */
export type BulkId = string;
/** An operation on many actions, and how far it is. */
export type BulkJob = {
  id: BulkId;
  /** What is done with each action. */
  operation: "retry" | "cancel";
  /** Which actions it covers: those that matched when it began. */
  filter: {
    [key: string]: unknown;
  };
  /** Why; null: none was given. */
  reason: string | null;
  /** running; finished: every action had its turn; stopped: by somebody, or by Outgate. */
  status: "running" | "finished" | "stopped";
  /** How many actions it covers. */
  matching: number;
  /** How many it was done with. */
  done: number;
  /** How many refused it. */
  failed: number;
  /** When it began. */
  created_at: string;
  /** Who began it. */
  created_by: string;
  /** When it ended; null: it runs. */
  finished_at: string | null;
  /** Who stopped it; system: whoever began it may not act any more. Null: nobody. */
  stopped_by: string | null;
};
/** One page of the bulk jobs. */
export type BulkJobList = {
  /** The jobs, newest first. */
  data: BulkJob[];
  /** Asks for the next page; null: there is none. */
  next_cursor: string | null;
};
/** What became of one action of a bulk job. */
export type BulkResult = {
  id: ActionId;
  /** The run that the action was in when the job began. */
  run: number;
  /** Whether it was done with this action; failed: the action refused it. */
  status: "waiting" | "done" | "failed";
  /** The status of the action after it was done; null: it was not. */
  action_status: string | null;
  /** Null unless it failed. */
  error: {
    /** Error code of the single operation. */
    code: string;
    /** Why it was refused. */
    message: string;
  } | null;
};
/** One page of the results of a bulk job. */
export type BulkResultList = {
  /** The results, the newest actions first. */
  data: BulkResult[];
  /** Asks for the next page; null: there is none. */
  next_cursor: string | null;
};
/** A host to which callbacks of keys with a hold or a limit may go. */
export type CallbackHost = {
  /** Host name. With a port: that port only; without: the default port of the callback's scheme. */
  host: string;
  /** When it was listed. */
  created_at: string;
};
/** The hosts that this account lists for callbacks. */
export type CallbackHostList = {
  /** The hosts in alphabetical order, at most 100. */
  data: CallbackHost[];
};
/** How a receiver of callbacks fared. */
export type CallbackTest = {
  /** Whether the receiver took the callback. */
  delivered: boolean;
  /** Whether it then refused the one with a wrong signature, by a status 400 to 499; null: not asked, or it can't be told. */
  verifies: boolean | null;
  signed: CallbackTry;
  /** The one whose signature is wrong; null: it was not sent. */
  wrong_signature: CallbackTry | null;
};
/** A callback that was sent. */
export type CallbackTry = {
  /** The status; null: no answer came. */
  response_code: number | null;
  /** How long it took. */
  duration_ms: number;
  /** Why it failed; null: it was answered with 2xx. */
  error: string | null;
};
/** The changes. */
export type ChangeAccount = {
  /** What people call the account, in one line; empty: nothing. */
  name: string;
};
/** What to change; what is left out stays. */
export type ChangeChannel = {
  /** A name for people; the timeline tells it. */
  name?: string;
  /** For mail: the addresses, at least one. */
  to?: string[];
  /** For slack and webhook: where messages are posted. */
  url?: string;
  /** Minutes after which the question is repeated once; 0: never. */
  remind_after_minutes?: 0 | number;
  /** False: nothing is sent. */
  enabled?: boolean;
};
/** What to change; what is left out stays. To change its kind, delete it and add another one. */
export type ChangeCredential = {
  /** The token, key or password. It is stored sealed, and nobody reads it back. */
  secret?: string;
  /** Where it may go: host names or addresses, with their port unless it is the default one; *.example.com is every name below, not the name itself. */
  hosts?: string[];
  /** Prefixes of the path as it is sent, by whole segments; * stands for one segment. Paths that targets may read in two ways, such as /a/%2e%2e/b, are under none. Left out: any path. */
  paths?: string[];
  /** Which methods may use it. Left out: any. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** The agents' keys that may use it. Owners may use every credential. */
  keys?: KeyId[];
  /** False: calls with it fail, and nothing is sent. */
  enabled?: boolean;
  /** From then on calls with it fail. */
  expires_at?: string;
  /** Bounds that it has no longer. */
  unset?: ("paths" | "methods" | "expires_at")[];
};
/** Whether the pages show the first steps. */
export type ChangeFirstSteps = {
  /** true hides them for everybody; false shows them again. */
  hidden: boolean;
};
/** The new role of a person. */
export type ChangePerson = {
  /** What the person may do. owner: everything; approver: read, approve, cancel; reader: read. */
  role: "owner" | "approver" | "reader";
};
/** What to change. What is not given stays; `unset` takes conditions away. */
export type ChangeRule = {
  /** What people and agents know the rule by. */
  name?: string;
  /** allow: no later rule is asked; hold: a person decides; refuse: nothing is created. */
  effect?: "allow" | "hold" | "refuse";
  /** A condition in CEL over action (method, host, path, query, headers, body, title, metadata, credential), key (id, name, role) and now. */
  when?: string;
  /** Keys whose calls it is about. */
  keys?: KeyId[];
  /** Methods. A request that names another method, as by X-HTTP-Method-Override, counts as each of them. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** Hosts, or *.example.com for all that end so. Without a port: at each. */
  hosts?: string[];
  /** Beginning of the path as it is sent, in whole segments: /pay is about /pay/1 and not about /payments. * stands for one segment. */
  path?: string;
  /** Names of credentials that the call is made with. */
  credentials?: RuleCredential[];
  /** What the body is. */
  body_kind?: "none" | "json" | "form" | "text" | "base64";
  /** Size of the body. */
  body_bytes?: {
    /** The body has more bytes. */
    over: number;
  };
  /** Time of day. */
  between?: {
    /** Begins, by the clocks of the zone. */
    from: string;
    /** Ends. Where it is before `from`, on the next day. */
    to: string;
    /** Days on which it begins; without it each. */
    days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
    /** Name in the time zone database. */
    timezone: string;
  };
  /** The rule applies only to the call that is one more than these. Each create and retry counts unless a rule holds it for being one more. */
  more_than?: {
    /** So many calls pass. */
    count: number;
    /** Within so many minutes. */
    minutes: number;
    /** What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together. request: key, method, host, path and body, where UUIDs and runs of six or more digits may differ. */
    same?: string;
  };
  /** A budget: the rule applies only to the call with which the sum would be more than the limit, and that call is not added. */
  sum?: {
    /** The number in the body that is added up, by its path. A call where it is missing, negative or no number is held. */
    member: string;
    /** From when to when, by the calendar and the clocks of the zone. */
    per: "hour" | "day" | "month";
    /** Name in the time zone database. */
    timezone: string;
    /** The most that passes, with at most 9 decimals. */
    limit: number;
    /** What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together. */
    same?: string;
  };
  /** What the agent is told whose call is held or refused. */
  message?: string;
  /** Agents are told why, with what the rule compares. */
  explain?: boolean;
  /** Conditions that the rule has no longer. */
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
/** Where the account asks for approval. */
export type Channel = {
  /** Id of a channel. */
  id: string;
  /** Its name. */
  name: string;
  /** mail: to addresses; slack: to an incoming webhook of Slack; webhook: a signed POST to a URL. */
  kind: "mail" | "slack" | "webhook";
  /** Of a mail channel: the addresses. */
  to?: string[];
  /** Of the others: the origin of the URL and its end; null: it can't be read and has to be set again. */
  url?: string | null;
  /** Minutes after which the question is repeated once, if nobody has decided. */
  remind_after_minutes: number | null;
  /** False: nothing is sent. */
  enabled: boolean;
  /** When it was added. */
  created_at: string;
  /** Who added it. */
  created_by: string;
};
/** The channels of the account. */
export type ChannelList = {
  /** The channels, the oldest first; at most 20. */
  data: Channel[];
};
/** How a test message fared. */
export type ChannelTest = {
  /** Whether the test message was taken. */
  delivered: boolean;
  /** Why not; null: it was. */
  error: string | null;
};
/** The call to make. A member that is null counts as absent, but for json. The whole request has at most 1048576 bytes, a depth of 64 and 10000 object members. */
export type CreateAction = {
  /** Where the call goes: http or https, without user name and password, to a host and port that are allowed; a path does not begin with //. */
  url: string;
  /** HTTP method of the call. */
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** JSON body of the call, sent as written. Not with GET. */
  body?: {
    [key: string]: unknown;
  };
  /** Instead of body: any JSON value, null too. Give one of body, json, form, text, base64. */
  json?: unknown;
  /** Instead of body: fields of a form; a list sends its name several times. */
  form?: {
    [key: string]: string | string[];
  };
  /** Instead of body: a text, with your content-type header, default text/plain; charset=utf-8. */
  text?: string;
  /** Instead of body: bytes in base64, with your content-type header, default application/octet-stream. */
  base64?: string;
  /**
   * Headers of the call.
   *
   *     - Names are unique regardless of case; names and values have at most 16384 bytes in all.
   *     - `content-type`: with body or json, `application/json` or `application/*+json`; with form its own type; with text and base64 neither.
   *     - Refused are headers of message framing, of the connection and of Outgate itself: host, date, content-length, content-encoding, transfer-encoding, connection, keep-alive, te, trailer, upgrade, expect, via, forwarded, accept-encoding, cdn-loop, http2-settings, x-real-ip, x-http-method, x-http-method-override, x-method-override, x-original-url, x-rewrite-url, and names that begin with proxy-, sec-, webhook-, x-forwarded- or x-outgate-.
   *     - Refused for a key with the role agent are headers by which a proxy tells a target who somebody is, such as x-remote-user, x-authentik-* or cf-access-* (but cf-access-client-id and cf-access-client-secret, which log a client in).
   */
  headers?: {
    [key: string]: string;
  };
  /** Actions of one account with the same value within 24 hours are the same action. */
  dedupe?: string;
  /** Most delivery attempts in one run. */
  retries?: number;
  /** After an attempt that the target may or may not have received: try again, or end as failed. */
  on_unknown?: "retry" | "stop";
  /** Hold the action until a person approves it. */
  approve?: boolean;
  /** Wait for the end of the action before answering. Not with approve, and not for calls that the key's hold holds. */
  sync?: boolean;
  /** Approval mail. */
  notify?: {
    /** Who is asked for approval: one address, of a person of the account or one that APPROVERS allows. An owner key without a hold may name anyone while APPROVERS is empty. */
    email: string;
  };
  /** Receives the events of this action. Must be a target that url may name; for a key with a hold or a limit, on a listed host. */
  callback?: string;
  /** Not sent before this time, a year ahead at most. */
  run_at?: string;
  /** In place of run_at: seconds from now. */
  delay_seconds?: number;
  /** Cancelled if it was not sent before this time. */
  expires_at?: string;
  /** Deadline of a whole attempt in milliseconds. */
  timeout_ms?: number;
  /** Delay between two attempts; a Retry-After replaces it. */
  backoff?: {
    /** Milliseconds after the first failure, doubled after each further one. */
    base_ms: number;
    /** Most milliseconds, at least base_ms. */
    cap_ms: number;
  };
  /** Statuses after which no attempt follows: numbers, or classes like 4xx. */
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
  credential?: CredentialToUse;
  /** What the call does, in one line, for the person who decides. */
  title?: string;
  /** Names with a string each, to find it by. */
  metadata?: {
    [key: string]: string;
  };
  /** Why you request the call; shown to approvers and in the timeline. Required from an agent's key if a person rejected the same request within the last 24 hours. Well-formed Unicode without NUL. */
  reason?: string;
};
/** Where to ask for approval: mail takes `to`, slack and webhook take `url`. */
export type CreateChannel = {
  /** A name for people; the timeline tells it. */
  name: string;
  /** mail: to addresses; slack: to an incoming webhook of Slack; webhook: a signed POST to a URL. */
  kind: "mail" | "slack" | "webhook";
  /** For mail: the addresses, at least one. */
  to?: string[];
  /** For slack and webhook: where messages are posted. */
  url?: string;
  /** Minutes after which the question is repeated once, if nobody has decided. */
  remind_after_minutes?: number;
  /** False: nothing is sent. */
  enabled?: boolean;
};
/** A secret that calls can be made with, and where it may go. */
export type CreateCredential = {
  name: CredentialName;
  /** bearer: `Authorization: Bearer <secret>`; header: a header of your choice; basic: a user name and a password; hmac: a signature of each request. */
  kind: "bearer" | "header" | "basic" | "hmac";
  /** The token, key or password. It is stored sealed, and nobody reads it back. */
  secret: string;
  /** Where it may go: host names or addresses, with their port unless it is the default one; *.example.com is every name below, not the name itself. */
  hosts: string[];
  /** Prefixes of the path as it is sent, by whole segments; * stands for one segment. Paths that targets may read in two ways, such as /a/%2e%2e/b, are under none. Left out: any path. */
  paths?: string[];
  /** Which methods may use it. Left out: any. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** For header and hmac: the header that it sets. */
  header?: string;
  /** For header: a word in front of the secret. */
  scheme?: string;
  /** For basic: the user name. */
  username?: string;
  hmac?: HmacSettings;
  /** The agents' keys that may use it. Owners may use every credential. */
  keys?: KeyId[];
  /** False: calls with it fail, and nothing is sent. */
  enabled?: boolean;
  /** From then on calls with it fail. */
  expires_at?: string;
};
/** A new invitation. */
export type CreateInvitation = {
  /** The address that is invited. The person joins with this address only. */
  email: string;
  /** What the person may do. owner: everything; approver: read, approve, cancel; reader: read. */
  role: "owner" | "approver" | "reader";
};
/** A new key. */
export type CreateKey = {
  /** Name of the key for people; decisions are recorded under it. */
  name: string;
  /** What the key may do. owner: everything; approver: read, approve, cancel; agent: create, read, and cancel or retry what it created; reader: read. */
  role: "owner" | "approver" | "agent" | "reader";
  /** Which creates of the key are held for approval regardless of approve: none, writes (all but GET), or all. Default: the hold of the key that it replaces, else none. */
  hold?: "none" | "writes" | "all";
  /** For keys with the role agent. Which actions it sees unmasked, cancels and retries. own: only those that it created; account: all of the account. */
  scope?: "own" | "account";
  /** Id of the key that it replaces: it also acts on the actions of that one. The replaced key stays live until it is revoked. */
  replaces?: string;
  /** Where its calls may go: host names or addresses, with a port or for any; *.example.com is every name below, not the name itself. Left out: anywhere. */
  hosts?: string[];
  /** Which methods its calls may use. Left out: any. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** How many actions it may create a day (UTC). Its retries count too; a create that finds an older action doesn't. */
  daily_actions?: number;
  /** From then on it is refused (401). */
  expires_at?: string;
  /** For keys with the role agent: names of the credentials that it may use. Left out: those of the key that it replaces, else none. */
  credentials?: CredentialName[];
  /** Confirms that its hold is weaker than the hold of the key that it replaces. */
  weaker_hold?: boolean;
  /** Whether each limit that is left out is that of the key that it replaces. false: what is left out is no limit. */
  inherit_limits?: boolean;
};
/** A client that people of the account can connect by OAuth. */
export type CreateOAuthClient = {
  /** Name of the client, which people see when they connect it. */
  name: string;
  /** Where answers to it may go, each compared as a text: https, http on loopback, where any port fits, or a scheme of an app; without a fragment or a user. */
  redirect_uris: string[];
  /** Whether it can keep a secret: a server can, a program on somebody’s machine or in a browser can’t. Both use PKCE. */
  type: "public" | "confidential";
};
/** What to pause: the actions that this key created, the calls to this host, or without both the whole account. */
export type CreatePause = {
  key_id?: KeyId;
  /** Host of the calls to pause, not together with `key_id`. With a port unless it is the scheme's default. */
  host?: string;
  /** Why; shown with every paused action. Well-formed Unicode without NUL. */
  reason?: string;
};
/** A rule of the account. */
export type CreateRule = {
  /** What people and agents know the rule by. */
  name: string;
  /** allow: no later rule is asked; hold: a person decides; refuse: nothing is created. */
  effect: "allow" | "hold" | "refuse";
  /** A condition in CEL over action (method, host, path, query, headers, body, title, metadata, credential), key (id, name, role) and now. */
  when?: string;
  /** Keys whose calls it is about. */
  keys?: KeyId[];
  /** Methods. A request that names another method, as by X-HTTP-Method-Override, counts as each of them. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** Hosts, or *.example.com for all that end so. Without a port: at each. */
  hosts?: string[];
  /** Beginning of the path as it is sent, in whole segments: /pay is about /pay/1 and not about /payments. * stands for one segment. */
  path?: string;
  /** Names of credentials that the call is made with. */
  credentials?: RuleCredential[];
  /** What the body is. */
  body_kind?: "none" | "json" | "form" | "text" | "base64";
  /** Size of the body. */
  body_bytes?: {
    /** The body has more bytes. */
    over: number;
  };
  /** Time of day. */
  between?: {
    /** Begins, by the clocks of the zone. */
    from: string;
    /** Ends. Where it is before `from`, on the next day. */
    to: string;
    /** Days on which it begins; without it each. */
    days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
    /** Name in the time zone database. */
    timezone: string;
  };
  /** The rule applies only to the call that is one more than these. Each create and retry counts unless a rule holds it for being one more. */
  more_than?: {
    /** So many calls pass. */
    count: number;
    /** Within so many minutes. */
    minutes: number;
    /** What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together. request: key, method, host, path and body, where UUIDs and runs of six or more digits may differ. */
    same?: string;
  };
  /** A budget: the rule applies only to the call with which the sum would be more than the limit, and that call is not added. */
  sum?: {
    /** The number in the body that is added up, by its path. A call where it is missing, negative or no number is held. */
    member: string;
    /** From when to when, by the calendar and the clocks of the zone. */
    per: "hour" | "day" | "month";
    /** Name in the time zone database. */
    timezone: string;
    /** The most that passes, with at most 9 decimals. */
    limit: number;
    /** What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together. */
    same?: string;
  };
  /** What the agent is told whose call is held or refused. */
  message?: string;
  /** Agents are told why, with what the rule compares. */
  explain?: boolean;
  /** The rule that it is put before. Default: behind all others. */
  before?: string;
};
/** A new invitation. Only this answer contains its link. */
export type CreatedInvitation = {
  id: InvitationId;
  /** The person's address. */
  email: string;
  /** What the person may do. owner: everything; approver: read, approve, cancel; reader: read. */
  role: "owner" | "approver" | "reader";
  /** When it was created. */
  created_at: string;
  /** Who invited. */
  created_by: string;
  /** Until when its link works: seven days. */
  expires_at: string;
  /** The link to join. It is not stored and never shown again. */
  link: string;
  /** Whether a mail with the link is sent. */
  mailed: boolean;
};
/** A new key. Only this answer contains the key itself. */
export type CreatedKey = {
  id: KeyId;
  /** Name of the key for people. */
  name: string;
  /** What the key may do. owner: everything; approver: read, approve, cancel; agent: create, read, and cancel or retry what it created; reader: read. */
  role: "owner" | "approver" | "agent" | "reader";
  /** Which creates of the key are held for approval regardless of approve: none, writes (all but GET), or all. */
  hold: "none" | "writes" | "all";
  /** For keys with the role agent. Which actions it sees unmasked, cancels and retries. own: only those that it created; account: all of the account. */
  scope?: "own" | "account";
  /** Id of the key that it replaces. */
  replaces: string | null;
  /** The last four characters of the key. */
  last4: string;
  /** When it was created. */
  created_at: string;
  /** When it was last used, to the minute. */
  last_used_at: string | null;
  /** Who created it; null: that is not known. */
  created_by: string | null;
  /** When it was revoked; null: it is live. */
  revoked_at: string | null;
  /** Who revoked it; null: nobody, or that is not known. */
  revoked_by: string | null;
  /** Where its calls may go: host names or addresses, with a port or for any; *.example.com is every name below, not the name itself. Left out: anywhere. */
  hosts?: string[];
  /** Which methods its calls may use. Left out: any. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** How many actions it may create a day (UTC). Its retries count too; a create that finds an older action doesn't. */
  daily_actions?: number;
  /** From then on it is refused (401). */
  expires_at?: string;
  /** The key. It is not stored and never shown again. */
  key: string;
};
/** A credential, without its secret. */
export type Credential = {
  name: CredentialName;
  /** bearer: `Authorization: Bearer <secret>`; header: a header of your choice; basic: a user name and a password; hmac: a signature of each request. */
  kind: "bearer" | "header" | "basic" | "hmac";
  /** The header that it sets. */
  header?: string;
  /** Where it may go: host names or addresses, with their port unless it is the default one; *.example.com is every name below, not the name itself. */
  hosts: string[];
  /** Prefixes of the path as it is sent, by whole segments; * stands for one segment. Paths that targets may read in two ways, such as /a/%2e%2e/b, are under none. Left out: any path. */
  paths?: string[];
  /** Which methods may use it. Left out: any. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** False: calls with it fail, and nothing is sent. */
  enabled: boolean;
  /** From then on calls with it fail. */
  expires_at: string | null;
  /** Id of the credential. For owners, as all below. */
  id?: string;
  /** For header: a word in front of the secret. */
  scheme?: string;
  /** For basic: the user name. */
  username?: string;
  hmac?: HmacSettings;
  /** The last four characters of the secret, if it is long. */
  last4?: string | null;
  /** The agents' keys that may use it. Owners may use every credential. */
  keys?: KeyId[];
  /** When it was added. */
  created_at?: string;
  /** Who added it. */
  created_by?: string;
  /** When its secret was set last. */
  replaced_at?: string;
  /** When it was last sent. */
  last_used_at?: string | null;
  /** How often it was sent in the last 7 days, with retries and tries. Counted are the newest 10,000 entries of the audit log. */
  uses_last_week?: number;
  /** Hosts that have sent the secret back in an answer, in which it was masked. */
  echoed_by?: string[];
  /** What is risky about its bounds. */
  warnings?: string[];
};
/** The credentials that the caller may know. */
export type CredentialList = {
  /** By name; at most 200. */
  data: Credential[];
};
/** Name of a credential: 1 to 63 lower-case letters, digits and _ . or -. */
export type CredentialName = string;
/** A request of a key for a credential, without any secret. */
export type CredentialRequest = {
  id: CredentialRequestId;
  /** pending: an owner of the account has to answer; cancelled: the key has ended. */
  status: "pending" | "granted" | "declined" | "expired" | "cancelled";
  /** The host. */
  host: string;
  /** In the words of whoever asked. */
  reason: string;
  name?: CredentialName;
  /** bearer: `Authorization: Bearer <secret>`; header: a header of your choice; basic: a user name and a password; hmac: a signature of each request. */
  kind?: "bearer" | "header" | "basic" | "hmac";
  /** Where the paths of your calls begin, by whole segments. A suggestion, as name, kind and methods are. */
  paths?: string[];
  /** Which methods may use it. Left out: any. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** The name of the credential that the key may use now. */
  credential: string | null;
  /** The key that asked. */
  key_id: string;
  /** Who asked. */
  created_by: string;
  /** When it was asked for. */
  created_at: string;
  /** From then on nobody can answer. */
  expires_at: string;
  /** Who answered. */
  decided_by: string | null;
  /** When it was answered. */
  decided_at: string | null;
  /** Why it was declined. */
  decision_reason: string | null;
};
/** Id of a request for a credential. */
export type CredentialRequestId = string;
/** A page of requests for credentials. */
export type CredentialRequestPage = {
  /** Newest first; the pending ones alone: oldest first. */
  data: CredentialRequest[];
  /** Pass it as cursor for the next page; null: no more. */
  next_cursor: string | null;
};
/** The answer to a GET with a credential, masked. */
export type CredentialTest = {
  /** The status of the answer; null: there was none. */
  status: number | null;
  /** What went wrong; null: the answer was a 2xx. */
  error: string | null;
  /** Headers of the answer, without secrets. Values of unknown names are masked. */
  headers: {
    [key: string]: string;
  };
  /** The beginning of the body, without secrets: at most 4096 characters; null: it was empty. */
  body: string | null;
  /** Whether the body was longer. */
  truncated: boolean;
};
/** Name of a credential that Outgate adds when it sends the call. */
export type CredentialToUse = string;
/** A decision on several held requests. */
export type DecideRequests = {
  /** For all of them. */
  decision: "approve" | "reject";
  /** Why; shown in the timeline of each. Well-formed Unicode without NUL. */
  reason?: string;
  /** The requests, as they were shown. */
  requests: ShownRequest[];
};
/** Optional details of a decision. */
export type Decision = {
  /** Why; shown in the timeline. Well-formed Unicode without NUL. */
  reason?: string;
  /** The run that the decision is for; it is refused if the action is in another one. Default: the present run. */
  run?: number;
};
/** One fact that an approver sees. */
export type DecisionFact = {
  /** Which fact it is. */
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
  /** Its label for people. */
  label: string;
  /** Its value, masked. Treat it as untrusted plain text. */
  value: string;
};
/** What an approver sees of an action in mail, pages, the MCP question and the command line. */
export type DecisionFacts = {
  /** In the order in which they are shown. */
  facts: DecisionFact[];
  /** Empty: nothing about it is unusual. */
  risks: DecisionRisk[];
  /** The run that awaits the decision. */
  run?: number;
  /** Identifies the request for POST /v1/approvals. Only for keys that may approve. */
  digest?: string;
};
/** A reason to check the request carefully. */
export type DecisionRisk = {
  /** Which risk it is. */
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
  /** danger: something is wrong, and comes first; warning: something is unusual; note: worth knowing. */
  level: "danger" | "warning" | "note";
  /** The risk in a sentence. */
  text: string;
};
/** Optional details of a no. */
export type DeclineCredential = {
  /** Why; whoever asked reads it. Well-formed Unicode without NUL. */
  reason?: string;
};
/** Name of the credential of calls that name none. It is added for the keys that may use it, where its bounds allow the call and the call does not set its header. */
export type DefaultCredential = string;
/** What rules would have done with what was requested. */
export type DryRun = {
  /** Actions that the rules were tried on. */
  looked_at: number;
  /** When the oldest of them was created. */
  from: string | null;
  /** They would be sent without a person. */
  allowed: number;
  /** They would be held, by a rule or as they were by their key or caller. */
  held: number;
  /** They would be refused. */
  refused: number;
  /** Of those that would be held: a person approved them. */
  held_approved: number;
  /** A person rejected them. */
  held_rejected: number;
  /** No person has decided on them. */
  held_undecided: number;
  /** They would be held because a rule can't be decided. */
  undecidable: number;
  /** Refused by a rule in that time: nothing is stored that rules could be tried on. */
  unknown: number;
  /** They fit into budgets and counts as far as is known: older calls than those looked at may count too. */
  uncertain: number;
  /** The rules in force say something else of them. */
  differing: number;
  /** The newest 100 of these. */
  differences: DryRunDifference[];
};
/** A request whose fate would be another one. */
export type DryRunDifference = {
  /** Id of the action. */
  id: string;
  /** Its method. */
  method: string;
  /** Its target, masked. */
  url: string;
  /** What the call does, in the requester's words. */
  title?: string;
  /** Its status. */
  status: string;
  /** When it was created. */
  created_at: string;
  /** Who created it. */
  created_by: string;
  /** What the rules in force say of it. */
  in_force: "allow" | "hold" | "refuse";
  /** What these rules say. */
  tried: "allow" | "hold" | "refuse";
  /** The name of the rule that applies; null: none. */
  rule: string | null;
  /** Why, where the rule says so or can't be decided. */
  reason: string | null;
};
/** Rules to try, and what on. */
export type DryRunRules = {
  /** The rules to try. Default: those in force. */
  rules?: RuleDefinition[];
  /** How many actions to try them on, the newest first. */
  last?: number;
  /** Only actions created at this time or later. */
  since?: string;
};
/** Error code, for programs. */
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
/** The body of every error. */
export type ErrorEnvelope = {
  /** The error. */
  error: {
    code: ErrorCode;
    /** What went wrong and what to do, for people. */
    message: string;
    /** Identifies this request in the service's log. */
    request_id: string;
    /** Every problem of the request. */
    details?: ValidationIssue[];
  };
};
/** A host where actions failed, or where attempts failed and nothing has completed. */
export type FailingHost = {
  /** Host name, and the port unless it is the scheme's default. */
  host: string;
  /** Actions that completed. */
  completed: number;
  /** Actions that failed. Attempts that were retried with success are not among them. */
  failed: number;
  /** Attempts that ended. */
  attempts: number;
  /** Attempts that failed. */
  failed_attempts: number;
  /** How the last attempt failed. */
  last_error: string;
  /** When the last attempt failed. */
  last_failed_at: string;
};
/** A first step of an account. */
export type FirstStep = {
  /** action: created an action; approval: had one approved; agent: created one by an MCP client; signature: checked a signature that matched. */
  step: "action" | "approval" | "agent" | "signature";
  /** Whether the account has done it. */
  done: boolean;
  /** When it was done first; null: not yet, or some seconds ago. */
  done_at: string | null;
};
/** What an account does to begin. Each step ticks itself. */
export type FirstSteps = {
  /** The steps, in the order in which the pages show them. */
  data: FirstStep[];
  /** Whether they are hidden for everybody of the account. A person can hide them on the pages. */
  hidden: boolean;
};
/** What a person allows an agent for a while: calls like one that they approved. */
export type Grant = {
  id: GrantId;
  /** The key whose calls it lets pass. */
  key_id: string;
  /** The action that was approved. */
  action_id: string;
  /** Members of the JSON body that may differ, by their paths. All else has to be equal. */
  vary: string[];
  /** The most that a number among them may be. */
  max: {
    [key: string]: number;
  };
  /** How many calls it lets pass. */
  calls: number;
  /** How many it has let pass. */
  used: number;
  /** Nothing passes by it from this time on. */
  expires_at: string;
  /** When it was made. */
  created_at: string;
  /** Who made it. It ends where they may no longer approve. */
  created_by: string;
};
/** Id of a grant. */
export type GrantId = string;
/** The grants in force. */
export type GrantList = {
  /** Newest first. */
  data: Grant[];
};
/** Allow more calls of the key like this one, for a while. */
export type GrantTerms = {
  /** For how long. */
  minutes: number;
  /** For how many calls. */
  calls: number;
  /** Members of the JSON body that may differ, by their paths. All else has to be equal. */
  vary?: string[];
  /** The most that a number among them may be. */
  max?: {
    [key: string]: number;
  };
};
/** Status and version of the service. */
export type Health = {
  /** Status of the service. */
  status: "ok" | "unavailable";
  /** Version of the service. */
  version: string;
  /** The commit that the service was built of; null: not known. */
  commit: string | null;
};
/** For hmac: what is signed, and how. */
export type HmacSettings = {
  /** Default: sha256. */
  algorithm?: "sha256" | "sha512" | "sha1";
  /** How the signature is written. Default: hex. */
  encoding?: "hex" | "base64" | "base64url";
  /** What is signed. Its places are {timestamp} {method} {url} {host} {path} {query} {body}. Default: {timestamp}.{body} */
  signs?: string;
  /** The value of the header, with {signature} and {timestamp}. Default: {signature} */
  value?: string;
  /** How {timestamp} is written. Default: seconds. */
  time?: "seconds" | "milliseconds" | "iso";
  /** A header that has the time too. */
  time_header?: string;
};
/** What applies to calls of the account to one host. */
export type HostSettings = {
  /** The host, with its port unless that is the scheme's default. */
  host: string;
  /** Deadline of a whole attempt in milliseconds. */
  timeout_ms?: number;
  /** Delay between two attempts; a Retry-After replaces it. */
  backoff?: {
    /** Milliseconds after the first failure, doubled after each further one. */
    base_ms: number;
    /** Most milliseconds, at least base_ms. */
    cap_ms: number;
  };
  /** Statuses after which no attempt follows: numbers, or classes like 4xx. */
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
  /** Most calls per second that begin; 0.5 means one in two seconds. */
  max_per_second?: number;
  /** Most calls at a time, at most the server's own limit per host. */
  max_concurrent?: number;
  default_credential?: DefaultCredential;
  /** When it was set. */
  updated_at: string;
  /** Who set it. */
  updated_by: string;
};
/** The settings of hosts, and those of the account for all hosts. */
export type HostSettingsList = {
  /** The hosts with settings, in alphabetical order; at most 500. */
  data: HostSettings[];
  defaults: Settings;
};
/** HTTP method of the call. */
export type HttpMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
/** An invitation that was not accepted yet, without its link. */
export type Invitation = {
  id: InvitationId;
  /** The person's address. */
  email: string;
  /** What the person may do. owner: everything; approver: read, approve, cancel; reader: read. */
  role: "owner" | "approver" | "reader";
  /** When it was created. */
  created_at: string;
  /** Who invited. */
  created_by: string;
  /** Until when its link works: seven days. */
  expires_at: string;
  /** Whether its link lets nobody in, since whoever made it may no longer manage the account. */
  void: boolean;
};
/** Id of an invitation. */
export type InvitationId = string;
/** The open invitations of the account. */
export type InvitationList = {
  /** The open invitations, newest first, at most 100. */
  data: Invitation[];
};
/** Id of a key. */
export type KeyId = string;
/** The keys of the account. */
export type KeyList = {
  /** The keys, live ones first. */
  data: ListedKey[];
};
/** What the target answered to an attempt after Outgate had closed it as unknown. The status of the action stays as it is; with a 2xx response_code the target has done what it asks for. Absent otherwise. */
export type LateResult = {
  /** The run of the attempt. */
  run: number;
  /** The attempt in its run. */
  attempt: number;
  /** HTTP status of the target. */
  response_code: number;
  /** Body of the target's answer: a JSON value, text, or `{ encoding: base64, data }`; null: none. */
  response_body: unknown;
  /** When it became known. */
  at: string;
};
/** An account of the service. */
export type ListedAccount = {
  /** Id of the account. */
  id: string;
  /** Address of its first person; null: none. */
  email: string | null;
  /** When it was created. */
  created_at: string;
  /** Whether it is the account of the first start. */
  first: boolean;
  /** Its keys are refused and none of its actions is sent until it is allowed. */
  stopped: boolean;
  /** When it was allowed; null: not necessary, or not yet. */
  allowed_at: string | null;
};
/** A key with what it has done. */
export type ListedKey = {
  id: KeyId;
  /** Name of the key for people. */
  name: string;
  /** What the key may do. owner: everything; approver: read, approve, cancel; agent: create, read, and cancel or retry what it created; reader: read. */
  role: "owner" | "approver" | "agent" | "reader";
  /** Which creates of the key are held for approval regardless of approve: none, writes (all but GET), or all. */
  hold: "none" | "writes" | "all";
  /** For keys with the role agent. Which actions it sees unmasked, cancels and retries. own: only those that it created; account: all of the account. */
  scope?: "own" | "account";
  /** Id of the key that it replaces. */
  replaces: string | null;
  /** The last four characters of the key. */
  last4: string;
  /** When it was created. */
  created_at: string;
  /** When it was last used, to the minute. */
  last_used_at: string | null;
  /** Who created it; null: that is not known. */
  created_by: string | null;
  /** When it was revoked; null: it is live. */
  revoked_at: string | null;
  /** Who revoked it; null: nobody, or that is not known. */
  revoked_by: string | null;
  /** Where its calls may go: host names or addresses, with a port or for any; *.example.com is every name below, not the name itself. Left out: anywhere. */
  hosts?: string[];
  /** Which methods its calls may use. Left out: any. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** How many actions it may create a day (UTC). Its retries count too; a create that finds an older action doesn't. */
  daily_actions?: number;
  /** From then on it is refused (401). */
  expires_at?: string;
  /** When it created its newest action; null: none is left. */
  last_action_at: string | null;
  /** The newest action that the key created. */
  last_action: {
    id: ActionId;
    /** When it was created. */
    created_at: string;
    /** Its method. */
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
    /** Its URL, masked. */
    url: string;
    /** Its status. */
    status: "pending" | "active" | "awaiting_approval" | "completed" | "failed" | "cancelled";
    /** The target's last status code. */
    response_code: number | null;
  } | null;
  /** Actions that it has created in the last 24 hours, of what is left, counted up to 1000. */
  actions_last_day: number;
  /** Actions that it has created today (UTC): exact with daily_actions, else counted up to 1000. */
  actions_today: number;
  /** Names of the credentials that list it. Owners' keys may use every one. Left out: none. */
  credentials?: CredentialName[];
};
/** A client that was just added, with its secret. */
export type NewOAuthClient = {
  /** The client id. */
  id: string;
  /** Name of the client, which people see when they connect it. */
  name: string;
  /** Where answers to it may go, each compared as a text: https, http on loopback, where any port fits, or a scheme of an app; without a fragment or a user. */
  redirect_uris: string[];
  /** Whether it can keep a secret: a server can, a program on somebody’s machine or in a browser can’t. Both use PKCE. */
  type: "public" | "confidential";
  /** How many connections it has. */
  connections: number;
  /** When it was added. */
  created_at: string;
  /** Who added it. */
  created_by: string;
  /** The client secret, shown only once; null for a public client. */
  secret: string | null;
};
/** A callback, mail or message, and its state. */
export type Notification = {
  /** Identifies it: the webhook-id of a callback. */
  id: string;
  /** The action that it is about; for the email of an invitation, or what is told of a credential or a request for one, the id of that. */
  action_id: string;
  /** The run of the action that caused it. */
  run: number;
  /** What it is: callback, mail, or a message of a channel. */
  kind: string;
  /** What it is about. */
  event: string;
  /** Where it goes, masked; the id of a channel for a message. */
  target: string;
  /** dropped: it was no longer needed. */
  status: "pending" | "active" | "delivered" | "given_up" | "dropped";
  /** Attempts so far. */
  attempts: number;
  /** When it was caused. */
  created_at: string;
  /** When the next attempt is due; null: none is. */
  next_attempt_at: string | null;
  /** How the last attempt failed, masked. */
  last_error: string | null;
};
/** One page of the notifications. */
export type NotificationList = {
  /** The notifications, newest first. */
  data: Notification[];
  /** Asks for the next page; null: there is none. */
  next_cursor: string | null;
};
/** A client that an owner has added. */
export type OAuthClient = {
  /** The client id. */
  id: string;
  /** Name of the client, which people see when they connect it. */
  name: string;
  /** Where answers to it may go, each compared as a text: https, http on loopback, where any port fits, or a scheme of an app; without a fragment or a user. */
  redirect_uris: string[];
  /** Whether it can keep a secret: a server can, a program on somebody’s machine or in a browser can’t. Both use PKCE. */
  type: "public" | "confidential";
  /** How many connections it has. */
  connections: number;
  /** When it was added. */
  created_at: string;
  /** Who added it. */
  created_by: string;
};
/** The clients that the account's owners have added. */
export type OAuthClientList = {
  /** The clients, oldest first. */
  data: OAuthClient[];
};
/** What the account did in a range, and what waits. */
export type Overview = {
  /** How far back it goes. */
  range: "1h" | "24h" | "7d" | "30d";
  /** Nothing before this is counted. */
  since: string;
  /** Nothing after this is counted yet; null: everything is. */
  counted_until: string | null;
  /** Length of a slot. */
  slot_seconds: number;
  /** The slots of the range, oldest first; the last one is not over. */
  slots: OverviewSlot[];
  /** Duration of all attempts, within 3 %; null: there was none. */
  latency: {
    /** Median. */
    p50_ms: number;
    /** 95 %. */
    p95_ms: number;
    /** 99 %. */
    p99_ms: number;
  } | null;
  /** The busiest hosts. */
  hosts: OverviewHost[];
  /** All others together; null: there are none. */
  other_hosts: OverviewOthers | null;
  /** The busiest keys. */
  agents: OverviewAgent[];
  /** All others together; null: there are none. */
  other_agents: OverviewOthers | null;
  approvals: OverviewApprovals;
  /** Those with most failed actions first. */
  failing_hosts: FailingHost[];
  /** What waits to be sent again. */
  retries: {
    /** Actions that wait for the time of their next attempt. */
    scheduled: number;
    /** Actions that are due and wait for a free slot. */
    due: number;
    /** Since when the first of these is due; null: none is. */
    due_since: string | null;
    /** Whether there may be more of both. */
    is_more: boolean;
    /** Those whose next retry comes first. */
    hosts: RetryingHost[];
  };
};
/** The actions of a key. */
export type OverviewAgent = {
  /** Id of the key; empty: no key created them. */
  key_id: string;
  /** Its name; null: it has none any more. */
  name: string | null;
  /** Actions created. */
  created: number;
  /** Actions that completed. */
  completed: number;
  /** Actions that failed. */
  failed: number;
  /** Attempts that ended. */
  attempts: number;
  /** Median duration of the attempts. Null: there was none. */
  p50_ms: number | null;
  /** 95 % of the attempts took at most so long. Null: there was none. */
  p95_ms: number | null;
  /** Attempts that failed. */
  failed_attempts: number;
};
/** What awaits approval, and how fast people decided. */
export type OverviewApprovals = {
  /** Actions that await approval now. */
  waiting: number;
  /** Whether more may wait than were counted. */
  is_more: boolean;
  /** When the oldest of them was created; null: none waits. */
  oldest_at: string | null;
  /** How many of them were created more than an hour ago. */
  over_an_hour: number;
  /** How many of them were created more than a day ago. */
  over_a_day: number;
  /** Approvals in the range. */
  approved: number;
  /** Rejections in the range. */
  rejected: number;
  /** Median time from the request to the decision. Null: there was none. */
  p50_ms: number | null;
  /** 95 % of the decisions took at most so long. Null: there was none. */
  p95_ms: number | null;
};
/** The calls to a host. */
export type OverviewHost = {
  /** Host name, and the port unless it is the scheme's default. */
  host: string;
  /** Actions created. */
  created: number;
  /** Actions that completed. */
  completed: number;
  /** Actions that failed. */
  failed: number;
  /** Attempts that ended. */
  attempts: number;
  /** Median duration of the attempts. Null: there was none. */
  p50_ms: number | null;
  /** 95 % of the attempts took at most so long. Null: there was none. */
  p95_ms: number | null;
  /** Attempts that failed. */
  failed_attempts: number;
};
/** All others together. */
export type OverviewOthers = {
  /** Actions created. */
  created: number;
  /** Actions that completed. */
  completed: number;
  /** Actions that failed. */
  failed: number;
  /** Attempts that ended. */
  attempts: number;
  /** Median duration of the attempts. Null: there was none. */
  p50_ms: number | null;
  /** 95 % of the attempts took at most so long. Null: there was none. */
  p95_ms: number | null;
  /** Attempts that failed. */
  failed_attempts: number;
};
/** A slot of the range: half an hour of a day. */
export type OverviewSlot = {
  /** When the slot begins. */
  at: string;
  /** Actions created. */
  created: number;
  /** Actions that completed. */
  completed: number;
  /** Actions that failed. */
  failed: number;
  /** Attempts that ended. */
  attempts: number;
  /** Median duration of the attempts. Null: there was none. */
  p50_ms: number | null;
  /** 95 % of the attempts took at most so long. Null: there was none. */
  p95_ms: number | null;
};
/** A pause in force: no action that it covers is sent. */
export type Pause = {
  id: PauseId;
  /** account: the whole account; key: the actions of one key; host: the calls to one host; sign_up: the whole account, until an owner of the first account of the service allows it. */
  kind: "account" | "key" | "host" | "sign_up";
  /** Id of the key that is paused; null: something else is. */
  key_id: string | null;
  /** The host that is paused. Present if `kind` is `host`. */
  host?: string;
  /** The reason that was given; null: none. */
  reason: string | null;
  /** The key was revoked with `unfinished=cancel`: its unfinished actions are being cancelled, then this pause ends. */
  cancels: boolean;
  /** When it was paused. */
  created_at: string;
  /** Who paused it. */
  created_by: string;
};
/** Id of a pause. */
export type PauseId = string;
/** The pauses in force. */
export type PauseList = {
  /** The pauses in force, oldest first. */
  data: Pause[];
};
/** A person of the account. */
export type Person = {
  id: PersonId;
  /** The person's address. */
  email: string;
  /** What the person may do. owner: everything; approver: read, approve, cancel; reader: read. */
  role: "owner" | "approver" | "reader";
  /** When they joined the account. */
  joined_at: string;
  /** When they last used the account, to some minutes; null: not yet. */
  last_seen_at: string | null;
};
/** Id of a person. */
export type PersonId = string;
/** The people of the account. */
export type PersonList = {
  /** The people in the order in which they joined, at most 500. */
  data: Person[];
};
/** How attempts are made and repeated. What is left out is decided by the server. */
export type PutDefaults = {
  /** Deadline of a whole attempt in milliseconds. */
  timeout_ms?: number;
  /** Delay between two attempts; a Retry-After replaces it. */
  backoff?: {
    /** Milliseconds after the first failure, doubled after each further one. */
    base_ms: number;
    /** Most milliseconds, at least base_ms. */
    cap_ms: number;
  };
  /** Statuses after which no attempt follows: numbers, or classes like 4xx. */
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
};
/** What applies to calls of the account to one host. What is left out is decided by the account's defaults. */
export type PutHostSettings = {
  /** Deadline of a whole attempt in milliseconds. */
  timeout_ms?: number;
  /** Delay between two attempts; a Retry-After replaces it. */
  backoff?: {
    /** Milliseconds after the first failure, doubled after each further one. */
    base_ms: number;
    /** Most milliseconds, at least base_ms. */
    cap_ms: number;
  };
  /** Statuses after which no attempt follows: numbers, or classes like 4xx. */
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
  /** Most calls per second that begin; 0.5 means one in two seconds. */
  max_per_second?: number;
  /** Most calls at a time, at most the server's own limit per host. */
  max_concurrent?: number;
  default_credential?: DefaultCredential;
};
/** An action and its timeline, masked, without values of headers and metadata; `callback`, `receipt_url` and the id in `created_by` are null here, and `policy` is absent. `approved_by` and `actor` are a kind (email, user, key, mcp or system) without a name. */
export type Receipt = {
  id: ActionId;
  status: ActionStatus;
  /** The target. */
  url: string;
  method: HttpMethod;
  /** JSON value sent to the target. */
  json?: unknown;
  /** Form sent to the target. A list of one value is shown as the value. */
  form?: {
    [key: string]: string | string[];
  };
  /** Text sent to the target. */
  text?: string;
  /** Bytes sent to the target, in base64. */
  base64?: string;
  /** Headers of the call. */
  headers: {
    [key: string]: string;
  } | null;
  /** Semantic key of deduplication. */
  dedupe: string | null;
  /** The present run: 1, and one more with each retry. Attempts are counted per run. */
  run: number;
  /** Delivery attempts used in this run. */
  attempts: number;
  /** Most delivery attempts in one run. */
  retries: number;
  /** When it was created. */
  created_at: string;
  created_by: ActionCreator;
  /** The first attempt of this run. */
  started_at: string | null;
  /** When it ended. */
  finished_at: string | null;
  /** The next attempt, between two attempts. */
  next_retry_at: string | null;
  /** How the last attempt failed. */
  last_error: string | null;
  /** HTTP status of the target; null: it gave none. */
  response_code: number | null;
  /** Body of the target's answer: a JSON value, text, or `{ encoding: base64, data }`; null: none. */
  response_body: unknown;
  late_result?: LateResult;
  /** How long the last attempt took. */
  duration_ms: number | null;
  /** Whether the action was held for approval. */
  approve: boolean;
  /** When it was approved. */
  approved_at: string | null;
  /** Who approved it. */
  approved_by: string | null;
  policy?: ActionPolicy;
  credential?: ActionCredential;
  /** Receives the events of this action. */
  callback: string | null;
  /** Idempotency-Key of its creation. */
  idempotency_key: string | null;
  /** What the call does, in the requester's words. */
  title?: string;
  /** It is not sent before this time. Present if the create said so. */
  run_at?: string;
  /** No attempt begins from this time on. Present if the create said so. */
  expires_at?: string;
  /** Deadline of a whole attempt in milliseconds. */
  timeout_ms?: number;
  /** Delay between two attempts; a Retry-After replaces it. */
  backoff?: {
    /** Milliseconds after the first failure, doubled after each further one. */
    base_ms: number;
    /** Most milliseconds, at least base_ms. */
    cap_ms: number;
  };
  /** Statuses after which no attempt follows: numbers, or classes like 4xx. */
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
  /** Number of values of the request that are masked for this key. Absent if none is. */
  hidden_values?: number;
  /** It ends as failed after an attempt that the target may have received. */
  on_unknown?: "stop";
  /** Attempts left in this run, once one was made. */
  retries_remaining?: number;
  /** Seconds until next_retry_at. */
  next_retry_in_seconds?: number;
  /** It is not sent until its pause ends. Absent otherwise, and in events and callbacks. */
  paused?: true;
  pause?: ActionPause;
  /** Operations that its status allows now. */
  actions: ("approve" | "cancel" | "retry")[];
  error?: ActionError;
  /** Its receipt page, visible to everyone who has the link. Absolute if the service has a BASE_URL, else a path. Null on the receipt itself. */
  receipt_url: string | null;
  /** The body sent to the target. Of a long one, its beginning as a text. */
  body:
    | {
        [key: string]: unknown;
      }
    | null
    | string;
  /** Only the first 65536 bytes of the body are shown. */
  body_truncated?: true;
  /** The target's answer was longer than the part that is shown. */
  response_truncated?: true;
  /** What happened, oldest first: the newest 50 attempts and what came with them. */
  timeline: ReceiptItem[];
  /** How many attempts of all runs came before those in the timeline. */
  earlier_attempts: number;
};
/** One thing that happened to the action. */
export type ReceiptItem = {
  /** When it happened. */
  at: string;
  /** A manual retry begins the next run. */
  run: number;
  /** What happened. */
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
  /** Who decided. */
  actor?: string;
  /** The reason that was given; null: none. */
  reason?: string | null;
  /** The actor's MCP client says that it asked its person for the decision. */
  via?: "elicitation";
  /** Number of the attempt in its run. */
  attempt?: number;
  /** answered: the target answered with a status; not_sent: the target received nothing; unknown: it may have received the call. */
  outcome?: "answered" | "not_sent" | "unknown";
  /** HTTP status of the target. */
  response_code?: number | null;
  /** Why it failed. */
  error?: string | null;
  /** How long the attempt took. */
  duration_ms?: number | null;
  /** When the next attempt is due. */
  next_retry_at?: string | null;
  /** Target of a redirect. Redirects are never followed. */
  location?: string | null;
  /** The result came after Outgate had closed the attempt as unknown, which another entry says. It is no further attempt. */
  late?: true;
  /** What the mail, callback or message was about. */
  event?: string;
  /** The name of the channel that it was for. */
  channel?: string;
  /** Whether the mail, callback or message was delivered. */
  delivered?: boolean;
  /** How often delivery was attempted. */
  attempts?: number;
};
/** Another order of the same rules. */
export type ReorderRules = {
  /** The ids of all rules in their new order. */
  ids: RuleId[];
};
/** The rules that are in force from then on. */
export type ReplaceRules = {
  /** All rules of the account, in the order in which they are asked. */
  rules: RuleDefinition[];
};
/** What became of one request: its status, or an error. */
export type RequestDecision = {
  id: ActionId;
  status?: ActionStatus;
  /** Why it was refused; absent if it was decided. */
  error?: {
    /** Error code of the single decision. */
    code: string;
    /** Why it was refused. */
    message: string;
  };
};
/** What became of each request. */
export type RequestDecisions = {
  /** One for each request, in their order. */
  data: RequestDecision[];
};
/** A header of a target's answer. */
export type ResponseHeader = {
  /** Name of the header, in lower case. */
  name: string;
  /** Its value; •••• where it may be a secret, which is not stored. */
  value: string;
};
/** Optional details of a retry. */
export type Retry = {
  /** Why you retry; shown in the timeline. Required from an agent's key if a person rejected the request within the last 24 hours. Well-formed Unicode without NUL. */
  reason?: string;
};
/** A host with scheduled retries. */
export type RetryingHost = {
  /** Host name, and the port unless it is the scheme's default. */
  host: string;
  /** Actions that wait. */
  scheduled: number;
  /** When the first one is due. */
  next_at: string;
};
/** A revoked key with what it has left to do. */
export type RevokedKey = {
  id: KeyId;
  /** Name of the key for people. */
  name: string;
  /** What the key may do. owner: everything; approver: read, approve, cancel; agent: create, read, and cancel or retry what it created; reader: read. */
  role: "owner" | "approver" | "agent" | "reader";
  /** Which creates of the key are held for approval regardless of approve: none, writes (all but GET), or all. */
  hold: "none" | "writes" | "all";
  /** For keys with the role agent. Which actions it sees unmasked, cancels and retries. own: only those that it created; account: all of the account. */
  scope?: "own" | "account";
  /** Id of the key that it replaces. */
  replaces: string | null;
  /** The last four characters of the key. */
  last4: string;
  /** When it was created. */
  created_at: string;
  /** When it was last used, to the minute. */
  last_used_at: string | null;
  /** Who created it; null: that is not known. */
  created_by: string | null;
  /** When it was revoked; null: it is live. */
  revoked_at: string | null;
  /** Who revoked it; null: nobody, or that is not known. */
  revoked_by: string | null;
  /** Where its calls may go: host names or addresses, with a port or for any; *.example.com is every name below, not the name itself. Left out: anywhere. */
  hosts?: string[];
  /** Which methods its calls may use. Left out: any. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** How many actions it may create a day (UTC). Its retries count too; a create that finds an older action doesn't. */
  daily_actions?: number;
  /** From then on it is refused (401). */
  expires_at?: string;
  /** Its pending and held actions, counted up to 1000. With unfinished=cancel they are being cancelled. */
  unfinished_actions: number;
  /** Those of them that await approval. Their approvers see that the key was revoked. */
  held_actions: number;
  /** Live keys that it created. `created_by` of the list finds them. */
  created_keys: number;
};
/** A rotation of signing secrets. */
export type Rotation = {
  /** The origin that has a new secret; null: all origins. */
  origin: string | null;
  /** When the new secret began to sign. */
  rotated_at: string;
  /** When the previous secret stops signing; another rotation ends it earlier. */
  previous_expires_at: string;
};
/** A rule of the account. Agents and readers see its name, effect and message. */
export type Rule = {
  id: RuleId;
  /** Its place among the rules, from 0. */
  position: number;
  /** One more with each change. */
  version: number;
  /** What people and agents know the rule by. */
  name: string;
  /** allow: no later rule is asked; hold: a person decides; refuse: nothing is created. */
  effect: "allow" | "hold" | "refuse";
  /** A condition in CEL over action (method, host, path, query, headers, body, title, metadata, credential), key (id, name, role) and now. */
  when?: string;
  /** Keys whose calls it is about. */
  keys?: KeyId[];
  /** Methods. A request that names another method, as by X-HTTP-Method-Override, counts as each of them. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** Hosts, or *.example.com for all that end so. Without a port: at each. */
  hosts?: string[];
  /** Beginning of the path as it is sent, in whole segments: /pay is about /pay/1 and not about /payments. * stands for one segment. */
  path?: string;
  /** Names of credentials that the call is made with. */
  credentials?: RuleCredential[];
  /** What the body is. */
  body_kind?: "none" | "json" | "form" | "text" | "base64";
  /** Size of the body. */
  body_bytes?: {
    /** The body has more bytes. */
    over: number;
  };
  /** Time of day. */
  between?: {
    /** Begins, by the clocks of the zone. */
    from: string;
    /** Ends. Where it is before `from`, on the next day. */
    to: string;
    /** Days on which it begins; without it each. */
    days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
    /** Name in the time zone database. */
    timezone: string;
  };
  /** The rule applies only to the call that is one more than these. Each create and retry counts unless a rule holds it for being one more. */
  more_than?: {
    /** So many calls pass. */
    count: number;
    /** Within so many minutes. */
    minutes: number;
    /** What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together. request: key, method, host, path and body, where UUIDs and runs of six or more digits may differ. */
    same?: string;
  };
  /** A budget: the rule applies only to the call with which the sum would be more than the limit, and that call is not added. */
  sum?: {
    /** The number in the body that is added up, by its path. A call where it is missing, negative or no number is held. */
    member: string;
    /** From when to when, by the calendar and the clocks of the zone. */
    per: "hour" | "day" | "month";
    /** Name in the time zone database. */
    timezone: string;
    /** The most that passes, with at most 9 decimals. */
    limit: number;
    /** What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together. */
    same?: string;
  };
  /** What the agent is told whose call is held or refused. */
  message?: string;
  /** Agents are told why, with what the rule compares. */
  explain?: boolean;
  /** When it was created. */
  created_at?: string;
  /** Who created it. */
  created_by?: string;
  /** When it was last changed. */
  changed_at?: string;
  /** Who changed it last. */
  changed_by?: string;
  /** What is probably wrong with it: an earlier rule keeps it from applying, or it can't be decided on requests of the past, on which it is tried when it is saved. */
  warnings?: string[];
};
/** Name of a credential: 1 to 63 lower-case letters, digits and _ . or -. */
export type RuleCredential = string;
/** A rule. It applies where all of its conditions hold; without a condition always. */
export type RuleDefinition = {
  /** What people and agents know the rule by. */
  name: string;
  /** allow: no later rule is asked; hold: a person decides; refuse: nothing is created. */
  effect: "allow" | "hold" | "refuse";
  /** A condition in CEL over action (method, host, path, query, headers, body, title, metadata, credential), key (id, name, role) and now. */
  when?: string;
  /** Keys whose calls it is about. */
  keys?: KeyId[];
  /** Methods. A request that names another method, as by X-HTTP-Method-Override, counts as each of them. */
  methods?: ("GET" | "POST" | "PUT" | "PATCH" | "DELETE")[];
  /** Hosts, or *.example.com for all that end so. Without a port: at each. */
  hosts?: string[];
  /** Beginning of the path as it is sent, in whole segments: /pay is about /pay/1 and not about /payments. * stands for one segment. */
  path?: string;
  /** Names of credentials that the call is made with. */
  credentials?: RuleCredential[];
  /** What the body is. */
  body_kind?: "none" | "json" | "form" | "text" | "base64";
  /** Size of the body. */
  body_bytes?: {
    /** The body has more bytes. */
    over: number;
  };
  /** Time of day. */
  between?: {
    /** Begins, by the clocks of the zone. */
    from: string;
    /** Ends. Where it is before `from`, on the next day. */
    to: string;
    /** Days on which it begins; without it each. */
    days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
    /** Name in the time zone database. */
    timezone: string;
  };
  /** The rule applies only to the call that is one more than these. Each create and retry counts unless a rule holds it for being one more. */
  more_than?: {
    /** So many calls pass. */
    count: number;
    /** Within so many minutes. */
    minutes: number;
    /** What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together. request: key, method, host, path and body, where UUIDs and runs of six or more digits may differ. */
    same?: string;
  };
  /** A budget: the rule applies only to the call with which the sum would be more than the limit, and that call is not added. */
  sum?: {
    /** The number in the body that is added up, by its path. A call where it is missing, negative or no number is held. */
    member: string;
    /** From when to when, by the calendar and the clocks of the zone. */
    per: "hour" | "day" | "month";
    /** Name in the time zone database. */
    timezone: string;
    /** The most that passes, with at most 9 decimals. */
    limit: number;
    /** What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together. */
    same?: string;
  };
  /** What the agent is told whose call is held or refused. */
  message?: string;
  /** Agents are told why, with what the rule compares. */
  explain?: boolean;
};
/** Id of a rule. */
export type RuleId = string;
/** The rules of the account. */
export type RuleList = {
  /** In the order in which they are asked. */
  data: Rule[];
};
/** What is in force on the server. It is changed in its environment. */
export type Server = {
  /** Version of the service. */
  version: string;
  /** Where calls may go, as a sentence. */
  targets: string;
  /** Requests of an account in a second; null: no limit. */
  rate_limit_per_second: number | null;
  /** Deadline of one attempt, in milliseconds. */
  attempt_timeout_ms: number;
  /** Delay after the first failure, in milliseconds. */
  retry_base_ms: number;
  /** Longest delay between two attempts, in milliseconds. */
  retry_cap_ms: number;
  /** Hours that an action awaits approval; null: forever. */
  approval_ttl_hours: number | null;
  /** Whether the links of approval mails ask for confirmation. */
  approval_links: "confirm" | "one_click";
  /** Who can be asked beside the people of an account; empty: no list is set. */
  approvers: string[];
  /** Whether an MCP client can ask its user to approve. */
  agent_approval: "off" | "elicit";
  /** Whether a mail provider is set. */
  sends_mail: boolean;
  /** Days that finished actions are kept; null: forever. */
  retention_days: number | null;
  /** The database file. Null for keys of other accounts than the first, and where the database is no file. */
  database: {
    /** Size of the file without its log, in bytes. */
    bytes: number;
    /** What of it is free for the next rows, in bytes. */
    free_bytes: number;
    /** Whether the file gets smaller after retention. A file of version 0.1 doesn't. */
    can_shrink: boolean;
    /** About what retention would free, estimated from a sample of actions, in bytes. */
    deletable_bytes: number;
    /** The retention of that estimate: `retention_days`, or 30. */
    deletable_days: number;
  } | null;
  /** Every setting; null for keys of other accounts than the first. */
  settings: ServerSetting[] | null;
};
/** A setting of the server. */
export type ServerSetting = {
  /** Its name in the environment. */
  name: string;
  /** What is in force; null: nothing is, or it is a secret. */
  value: string | null;
  /** Whether the environment has it; otherwise it is the default. */
  set: boolean;
  /** Whether its value is shown nowhere. */
  secret: boolean;
  /** What it is, and what it means to leave it unset. */
  description: string;
};
/** What the account sets for calls to every host; only what is set. */
export type Settings = {
  /** Deadline of a whole attempt in milliseconds. */
  timeout_ms?: number;
  /** Delay between two attempts; a Retry-After replaces it. */
  backoff?: {
    /** Milliseconds after the first failure, doubled after each further one. */
    base_ms: number;
    /** Most milliseconds, at least base_ms. */
    cap_ms: number;
  };
  /** Statuses after which no attempt follows: numbers, or classes like 4xx. */
  give_up_on?: (number | ("3xx" | "4xx" | "5xx"))[];
};
/** A held request, as it was shown. */
export type ShownRequest = {
  id: ActionId;
  /** The run that was shown. */
  run: number;
  /** The digest of GET /v1/actions/{id}/facts. */
  digest: string;
};
/** Whether a signature matches, and if not, why. It holds no secret. */
export type SignatureCheck = {
  /** The origin whose secrets were compared. */
  origin: string;
  /** What they sign. */
  for: "calls" | "callbacks";
  /** Whether one of the signatures matches. */
  valid: boolean;
  /** The secret that made it; null: none. */
  secret: ("current" | "previous") | null;
  /** Why it doesn't match, the most likely reason first; empty if it does. */
  problems: SignatureProblem[];
  /** Why a receiver may refuse it all the same. */
  warnings: SignatureWarning[];
};
/** A reason why it doesn't match. */
export type SignatureProblem = {
  /** What it is. */
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
  /** What it means and what to do. */
  message: string;
};
/** A reason why a receiver may refuse a signature that matches. */
export type SignatureWarning = {
  /** What it is. */
  code: "old_timestamp" | "future_timestamp" | "previous_secret" | "ended_secret";
  /** What it means and what to do. */
  message: string;
};
/** An origin that has a signing secret in use. */
export type SigningOrigin = {
  /** Scheme, host and port. */
  origin: string;
  /** What its secret signs. */
  for: "calls" | "callbacks";
  /** When the newest call, or callback, to it was caused; null: none is left. */
  last_used_at: string | null;
  /** When its secret was rotated last, alone or with all others; null: never. */
  rotated_at: string | null;
  /** Until when the previous secret signs too; null: it doesn't. */
  previous_expires_at: string | null;
};
/** Where an account's calls and callbacks went. */
export type SigningOriginList = {
  /** The origins, the last used first: at most 100 of calls and 100 of callbacks. */
  data: SigningOrigin[];
};
/** The secret that signs the calls, or the callbacks, to one origin. */
export type SigningSecret = {
  /** Scheme, host and port. */
  origin: string;
  /** Verifies the calls, or the callbacks, to this origin (Standard Webhooks). */
  secret: string;
  /** After a rotation both secrets sign for 24 hours; null: no recent rotation. For callbacks it may be the secret of calls, for 30 days after callbacks got secrets of their own. */
  previous: {
    /** The secret before it. */
    secret: string;
    /** When it stops signing. */
    expires_at: string;
  } | null;
};
/** An operation on all actions that match a filter. */
export type StartBulk = {
  /** What is done with each action. */
  operation: "retry" | "cancel";
  filter: BulkFilter;
  /** Why; shown in the timeline of each action. Well-formed Unicode without NUL. */
  reason?: string;
  /** Only tell how many actions match. */
  dry_run?: boolean;
};
/** Which receiver of callbacks to test. */
export type TestCallback = {
  /** Where to send it: a URL on a listed host. */
  url: string;
  /** Whether to send another one whose signature is wrong: a receiver that verifies refuses it. */
  wrong_signature?: boolean;
};
/** A GET to try a credential with. */
export type TestCredential = {
  /** Where the GET goes; it must lie within the bounds. */
  url: string;
};
/** Who gets the test mail. */
export type TestMail = {
  /** Where to send it: the address of a person of this account. */
  to: string;
};
/** How a test mail fared. */
export type TestMailResult = {
  /** Whether the mail provider took it. */
  delivered: boolean;
  /** Why not; null: it did. */
  error: string | null;
};
/** Everything that happened to an action. */
export type Timeline = {
  /** What happened, oldest first. */
  data: TimelineItem[];
};
/** One thing that happened to an action. */
export type TimelineItem = {
  /** Position in the event stream: increasing, with gaps. An entry of a pause has the number of the entry before it. */
  seq: number;
  /** When it happened. */
  at: string;
  /** A manual retry begins the next run. */
  run: number;
  /** What happened. */
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
  /** Who decided. */
  actor?: string;
  /** The reason that was given; null: none. */
  reason?: string | null;
  /** The actor's MCP client says that it asked its person for the decision. */
  via?: "elicitation";
  /** Number of the attempt in its run. */
  attempt?: number;
  /** answered: the target answered with a status; not_sent: the target received nothing; unknown: it may have received the call. */
  outcome?: "answered" | "not_sent" | "unknown";
  /** HTTP status of the target. */
  response_code?: number | null;
  /** Why it failed. */
  error?: string | null;
  /** How long the attempt took. */
  duration_ms?: number | null;
  /** When the next attempt is due. */
  next_retry_at?: string | null;
  /** Target of a redirect. Redirects are never followed. */
  location?: string | null;
  /** The result came after Outgate had closed the attempt as unknown, which another entry says. It is no further attempt. */
  late?: true;
  /** What the mail, callback or message was about. */
  event?: string;
  /** The name of the channel that it was for. */
  channel?: string;
  /** Whether the mail, callback or message was delivered. */
  delivered?: boolean;
  /** How often delivery was attempted. */
  attempts?: number;
};
/** One thing that is wrong with a request. */
export type ValidationIssue = {
  /** The field, header or query parameter; empty for the whole body. */
  field: string;
  /** What is wrong with it. */
  message: string;
  /** Always invalid. */
  code: "invalid";
};
/** A call or callback as it was received. */
export type VerifySignature = {
  /** The headers as they arrived, with names in any case. webhook-id, webhook-timestamp and webhook-signature are read, others ignored. */
  headers: {
    [key: string]: string;
  };
  /** The raw body, where it is UTF-8. Leave out both where there is none. */
  text?: string;
  /** Instead of text: the raw body in standard base64. */
  base64?: string;
};
export type AuditQuery = {
  /** Any of these; may repeat. */
  kind?: (
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
    | "account_renamed"
  )[];
  /** The `actor` of an entry. */
  actor?: string;
  /** At this time or later. */
  since?: string;
  /** Earlier than this. */
  until?: string;
  /** Most entries. Default: 20 for a page, all for an export. */
  limit?: number;
  /** The next_cursor of the page before. */
  cursor?: string;
};
export type BulkQuery = {
  /** Most entries of a page. */
  limit?: number;
  /** The next_cursor of the page before. */
  cursor?: string;
};
export type BulkResultQuery = {
  /** Whether it was done with this action; failed: the action refused it. */
  status?: "waiting" | "done" | "failed";
  /** Most entries of a page. */
  limit?: number;
  /** The next_cursor of the page before. */
  cursor?: string;
};
export type CredentialRequestQuery = {
  /** Only those with this status. The pending ones are all on one page. */
  status?: "pending" | "granted" | "declined" | "expired" | "cancelled";
  /** Most entries of a page. */
  limit?: number;
  /** The next_cursor of the page before. */
  cursor?: string;
};
export type ExportQuery = {
  /** Free text: in host, path or title, a status of the target such as 422 or 5xx, or the start of an id. Case doesn't count. */
  q?: string;
  /** Only these actions; may repeat. */
  id?: string[];
  /** Any of these; may repeat. */
  status?: ("pending" | "active" | "awaiting_approval" | "completed" | "failed" | "cancelled")[];
  /** HTTP method of the call. */
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Host name, with a port or for any port. */
  host?: string;
  /** The start of the target's path. */
  path?: string;
  /** The dedupe key of the create. */
  dedupe?: string;
  /** Id of the key that created it. */
  created_by?: string;
  /** Created later than this. */
  created_after?: string;
  /** Created earlier than this. */
  created_before?: string;
  /** Any of these statuses of the target, or classes of them; may repeat. */
  response_code?: string[];
  /** How the newest attempt ended, as in the timeline. */
  outcome?: "answered" | "not_sent" | "unknown";
  /** Kind of the newest attempt's failure. */
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
  /** Text in the title. Case doesn't count. */
  title?: string;
  /** Text in the requester's reason. Case doesn't count. */
  reason?: string;
  /** `name:value`, exactly, or a name for any value. May repeat: all of them. */
  metadata?: string[];
  /** ndjson: actions as JSON, one a line; csv: the columns of the list, with a header. */
  format?: "ndjson" | "csv";
};
export type FilterQuery = {
  /** Free text: in host, path or title, a status of the target such as 422 or 5xx, or the start of an id. Case doesn't count. */
  q?: string;
  /** Only these actions; may repeat. */
  id?: string[];
  /** Any of these; may repeat. */
  status?: ("pending" | "active" | "awaiting_approval" | "completed" | "failed" | "cancelled")[];
  /** HTTP method of the call. */
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Host name, with a port or for any port. */
  host?: string;
  /** The start of the target's path. */
  path?: string;
  /** The dedupe key of the create. */
  dedupe?: string;
  /** Id of the key that created it. */
  created_by?: string;
  /** Created later than this. */
  created_after?: string;
  /** Created earlier than this. */
  created_before?: string;
  /** Any of these statuses of the target, or classes of them; may repeat. */
  response_code?: string[];
  /** How the newest attempt ended, as in the timeline. */
  outcome?: "answered" | "not_sent" | "unknown";
  /** Kind of the newest attempt's failure. */
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
  /** Text in the title. Case doesn't count. */
  title?: string;
  /** Text in the requester's reason. Case doesn't count. */
  reason?: string;
  /** `name:value`, exactly, or a name for any value. May repeat: all of them. */
  metadata?: string[];
};
export type ListQuery = {
  /** Free text: in host, path or title, a status of the target such as 422 or 5xx, or the start of an id. Case doesn't count. */
  q?: string;
  /** Only these actions; may repeat. */
  id?: string[];
  /** Any of these; may repeat. */
  status?: ("pending" | "active" | "awaiting_approval" | "completed" | "failed" | "cancelled")[];
  /** HTTP method of the call. */
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Host name, with a port or for any port. */
  host?: string;
  /** The start of the target's path. */
  path?: string;
  /** The dedupe key of the create. */
  dedupe?: string;
  /** Id of the key that created it. */
  created_by?: string;
  /** Created later than this. */
  created_after?: string;
  /** Created earlier than this. */
  created_before?: string;
  /** Any of these statuses of the target, or classes of them; may repeat. */
  response_code?: string[];
  /** How the newest attempt ended, as in the timeline. */
  outcome?: "answered" | "not_sent" | "unknown";
  /** Kind of the newest attempt's failure. */
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
  /** Text in the title. Case doesn't count. */
  title?: string;
  /** Text in the requester's reason. Case doesn't count. */
  reason?: string;
  /** `name:value`, exactly, or a name for any value. May repeat: all of them. */
  metadata?: string[];
  /** Most actions of a page; large ones make it shorter. */
  limit?: number;
  /** The next_cursor of the page before, as it was given. */
  cursor?: string;
};
export type NotificationQuery = {
  /** Most notifications of a page. */
  limit?: number;
  /** The next_cursor of the page before. */
  cursor?: string;
};
export type OverviewQuery = {
  /** How far back: an hour by minutes, a day by half hours, a week by 3 hours, 30 days by 12 hours. */
  range?: "1h" | "24h" | "7d" | "30d";
};
export type SigningSecretQuery = {
  /** Scheme, host and port of the target, without a path. */
  origin: string;
  /** What the secret signs. Default: calls. Callbacks have secrets of their own. */
  for?: "calls" | "callbacks";
};
