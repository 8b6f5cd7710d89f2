import Type, { type Static } from "typebox";
import type { ApiKey, ListedAccount, KeyCall, KeyUse } from "../core/account-store.ts";
import type { KeyAfterRevocation } from "./keys.ts";
import { HTTP_METHODS, ACTION_STATUSES } from "../core/action.ts";
import { hasScope, HOLDS, KEY_SCOPES, ROLES, type Caller, unauthorized } from "../core/roles.ts";
import {
  dateTime,
  nameSchema,
  nullable,
  ONE_LINE,
  plainText,
  emailSchema,
  bodyCheck,
  keyIdSchema,
  quantity,
  choice,
  yesNo,
  idSchema,
  requestObject,
  answerObject,
  closedObject,
  shortText,
  shortList,
  integer,
  positive,
} from "../api/schema-helpers.ts";
import {
  ACCOUNT_NAME_CHARS_MAX,
  CREDENTIALS_MAX,
  DEDUPE_WINDOW_MS,
  EVENT_STREAMS_PER_ACCOUNT_MAX,
  HEADERS_BYTES_MAX,
  HEADERS_MAX,
  HELD_PER_KEY_MAX,
  KEY_DAILY_ACTIONS_MAX,
  KEY_HOSTS_MAX,
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  LIST_LIMIT_MAX,
  MCP_SESSIONS_PER_ACCOUNT_DEFAULT,
  REQUEST_BODY_BYTES_MAX,
  RESPONSE_BODY_BYTES_MAX,
  RETRIES_DEFAULT,
  RETRIES_MAX,
  URL_CHARS_MAX,
  WAIT_SECONDS_DEFAULT,
  WAIT_SECONDS_MAX,
  PASSWORD_CHARS_MAX,
  PASSWORD_CHARS_MIN,
  UNFINISHED_COUNTED_MAX,
  ACCOUNTS_LISTED_MAX,
  KEY_ACTIONS_COUNTED_MAX,
} from "../core/limits.ts";
import { isStorableText } from "../core/json.ts";
import { UNFINISHED_ON_REVOKE } from "../core/pause.ts";
import { ActionId, credentialNameSchema } from "../api/action-schemas.ts";
import { maskUrl } from "../receipts/masking.ts";

const role = choice(
  ROLES,
  "What the key may do. owner: everything; approver: read, approve, cancel; agent: create, read, and cancel or retry what it created; reader: read.",
  "agent",
);

const hold = (more = "") =>
  choice(
    HOLDS,
    `Which creates of the key are held for approval regardless of approve: none, writes (all but GET), or all. ${more}`.trim(),
    "writes",
  );

const scope = choice(
  KEY_SCOPES,
  "For keys with the role agent. Which actions it sees unmasked, cancels and retries. own: only those that it created; account: all of the account.",
  "own",
);

const limitMembers = {
  hosts: shortList(
    shortText(URL_CHARS_MAX, "A host.", "api.stripe.com"),
    KEY_HOSTS_MAX,
    "Where its calls may go: host names or addresses, with a port or for any; *.example.com is every name below, not the name itself. Left out: anywhere.",
    ["api.stripe.com", "*.internal.example"],
  ),
  methods: shortList(
    Type.Enum([...HTTP_METHODS], { type: "string" }),
    HTTP_METHODS.length,
    "Which methods its calls may use. Left out: any.",
    ["GET", "POST"],
  ),
  daily_actions: integer(
    1,
    KEY_DAILY_ACTIONS_MAX,
    "How many actions it may create a day (UTC). Its retries count too; a create that finds an older action doesn't.",
    200,
  ),
  expires_at: dateTime("From then on it is refused (401)."),
};

/** The body of a new key. `role` is required, so that nobody gets an owner key by omission. */
export const CreateKey = requestObject("CreateKey", "A new key.", {
  name: nameSchema("Name of the key for people; decisions are recorded under it."),
  role,
  hold: Type.Optional(hold("Default: the hold of the key that it replaces, else none.")),
  scope: Type.Optional(scope),
  replaces: Type.Optional(
    idSchema(
      "key",
      "Id of the key that it replaces: it also acts on the actions of that one. The replaced key stays live until it is revoked.",
    ),
  ),
  hosts: Type.Optional(limitMembers.hosts),
  methods: Type.Optional(limitMembers.methods),
  daily_actions: Type.Optional(limitMembers.daily_actions),
  expires_at: Type.Optional(limitMembers.expires_at),
  credentials: Type.Optional(
    Type.Array(credentialNameSchema, {
      maxItems: CREDENTIALS_MAX,
      uniqueItems: true,
      description:
        "For keys with the role agent: names of the credentials that it may use. Left out: those of the key that it replaces, else none.",
      examples: [["stripe-live"]],
    }),
  ),
  weaker_hold: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Confirms that its hold is weaker than the hold of the key that it replaces.",
      examples: [true],
    }),
  ),
  inherit_limits: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        "Whether each limit that is left out is that of the key that it replaces. false: what is left out is no limit.",
      examples: [false],
    }),
  ),
});

export type CreateKey = Static<typeof CreateKey>;

/** The members of every key in an answer. */
const keyMembers = {
  id: keyIdSchema,
  name: plainText("Name of the key for people.", "ci"),
  role,
  hold: hold(),
  scope: Type.Optional(scope),
  replaces: nullable(plainText("Id of the key that it replaces.", "key_01kjwa5v00e7v8c9x2m4n6p8qr")),
  last4: plainText("The last four characters of the key.", "kL0x"),
  created_at: dateTime("When it was created."),
  last_used_at: nullable(dateTime("When it was last used, to the minute.")),
  created_by: nullable(plainText("Who created it; null: that is not known.", "user:ann@example.com")),
  revoked_at: nullable(dateTime("When it was revoked; null: it is live.")),
  revoked_by: nullable(plainText("Who revoked it; null: nobody, or that is not known.", "user:ann@example.com")),
  hosts: Type.Optional(limitMembers.hosts),
  methods: Type.Optional(limitMembers.methods),
  daily_actions: Type.Optional(limitMembers.daily_actions),
  expires_at: Type.Optional(limitMembers.expires_at),
};

const Key = answerObject("Key", "A key, without the key itself.", keyMembers);

export const CreatedKeyJson = answerObject("CreatedKey", "A new key. Only this answer contains the key itself.", {
  ...keyMembers,
  key: plainText("The key. It is not stored and never shown again.", "og_7Qm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi3kL0x"),
});

export const RevokedKeyJson = answerObject("RevokedKey", "A revoked key with what it has left to do.", {
  ...keyMembers,
  unfinished_actions: quantity(
    `Its pending and held actions, counted up to ${UNFINISHED_COUNTED_MAX}. With unfinished=cancel they are being cancelled.`,
    3,
  ),
  held_actions: quantity("Those of them that await approval. Their approvers see that the key was revoked.", 1),
  created_keys: quantity("Live keys that it created. `created_by` of the list finds them.", 0),
});

export type RevokedKeyJson = Static<typeof RevokedKeyJson>;

export const RevokeQuery = closedObject({
  unfinished: Type.Optional(
    Type.Enum([...UNFINISHED_ON_REVOKE], {
      type: "string",
      default: "keep",
      description:
        "What happens to the unfinished actions of the key. keep: they are sent; pause: none is sent until the pause ends; cancel: they are cancelled in steps, and none is sent meanwhile.",
      examples: ["pause"],
    }),
  ),
});

/** Filters a list by who made what is in it. */
export const MadeByQuery = closedObject({
  created_by: Type.Optional(
    Type.String({
      pattern: "^(?:key|per)_[A-Za-z0-9_-]{1,64}$",
      description: "Only what this person or key created.",
      examples: ["per_01kjwa5v00e7v8c9x2m4n6p8qr"],
    }),
  ),
});

/** A key as pages show it: its row without what identifies its owner. */
export type KeyView = Omit<ApiKey, "accountId" | "hash">;

/** A key as the API shows it. */
export function serializeKey(row: KeyView): Static<typeof Key> {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    hold: row.hold,
    ...(hasScope(row.role) ? { scope: row.scope } : {}),
    replaces: row.replaces,
    last4: row.last4,
    created_at: row.createdAt.toISOString(),
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
    created_by: row.createdBy,
    revoked_at: row.revokedAt?.toISOString() ?? null,
    revoked_by: row.revokedBy,
    ...(row.hosts === null ? {} : { hosts: [...row.hosts] }),
    ...(row.methods === null ? {} : { methods: [...row.methods] }),
    ...(row.dailyActions === null ? {} : { daily_actions: row.dailyActions }),
    ...(row.expiresAt === null ? {} : { expires_at: row.expiresAt.toISOString() }),
  };
}

export function serializeRevokedKey(row: KeyAfterRevocation): RevokedKeyJson {
  const { unfinishedCount, heldCount, madeCount } = row;
  const left = { unfinished_actions: unfinishedCount, held_actions: heldCount, created_keys: madeCount };
  return { ...serializeKey(row), ...left };
}

/** The limits that are the same for everybody: value and description. */
const FIXED_LIMITS = {
  held_actions_max: [HELD_PER_KEY_MAX, "Actions of the calling key that may await approval at the same time."],
  event_streams_max: [EVENT_STREAMS_PER_ACCOUNT_MAX, "Event streams open in the whole account."],
  request_body_bytes_max: [REQUEST_BODY_BYTES_MAX, "Bytes of a request body."],
  json_depth_max: [JSON_DEPTH_MAX, "Depth of a request's JSON; the outermost value is depth 1."],
  json_members_max: [JSON_MEMBERS_MAX, "Object members in a whole request."],
  url_chars_max: [URL_CHARS_MAX, "Characters of a url or callback."],
  headers_max: [HEADERS_MAX, "Headers of an action."],
  headers_bytes_max: [HEADERS_BYTES_MAX, "Bytes of an action's header names and values."],
  retries_default: [RETRIES_DEFAULT, "Default of `retries`: delivery attempts of a run."],
  retries_max: [RETRIES_MAX, "Maximum of `retries`."],
  wait_seconds_default: [WAIT_SECONDS_DEFAULT, "Default of `wait` for a sync create, in seconds."],
  wait_seconds_max: [WAIT_SECONDS_MAX, "Maximum of `wait`, in seconds."],
  dedupe_seconds: [DEDUPE_WINDOW_MS / 1_000, "Seconds for which dedupe and Idempotency-Key are remembered."],
  list_limit_max: [LIST_LIMIT_MAX, "Actions of a page."],
  response_body_bytes_max: [RESPONSE_BODY_BYTES_MAX, "Bytes of a target's answer that are stored."],
} as const;

type FixedLimit = keyof typeof FIXED_LIMITS;

const bound = (example: number, description: string) => positive(description, example);

const Limits = Type.Object(
  {
    requests_per_second: nullable(
      bound(100, "Requests of the whole account in one second, shared by its active keys; null: no limit."),
    ),
    mcp_sessions_max: bound(
      MCP_SESSIONS_PER_ACCOUNT_DEFAULT,
      "Sessions that MCP clients of the 2025 protocol versions may have open in the whole account.",
    ),
    ...mapLimits(bound),
  },
  { description: "Limits that apply to the caller." },
);

function mapLimits<T>(map: (value: number, description: string) => T): Readonly<Record<FixedLimit, T>> {
  const mapped = Object.entries(FIXED_LIMITS).map(([name, [value, description]]) => [name, map(value, description)]);
  // Safe: the names are those of the table.
  return Object.fromEntries(mapped) as Record<FixedLimit, T>;
}

export const AccountId = idSchema("acc", "Id of the account.");

const accountName = Type.Refine(
  Type.String({
    maxLength: ACCOUNT_NAME_CHARS_MAX,
    pattern: ONE_LINE,
    description: "What people call the account, in one line; empty: nothing.",
    examples: ["Acme Payments"],
  }),
  (name) => isStorableText(name) && (name === "" || name.trim() !== ""),
  () => "Must be well-formed text, not only spaces.",
);

/** What an owner changes of their account. */
export const ChangeAccount = requestObject("ChangeAccount", "The changes.", { name: accountName });

export const AccountJson = answerObject("Account", "The account and key of the caller.", {
  id: AccountId,
  name: nullable(plainText("As its owners call it; null: they don't.", "Acme Payments")),
  email: nullable(plainText("Address of the account's first person; null: none yet.", "ann@example.com")),
  key: Type.Object(
    {
      id: keyIdSchema,
      name: plainText("The name of the calling key.", "ci"),
      role: choice(ROLES, "Its role.", "agent"),
    },
    { description: "The calling key." },
  ),
  limits: Limits,
});

export type AccountJson = Static<typeof AccountJson>;

/** The limits that are settings. */
export interface AccountLimits {
  /** 0: no limit. */
  readonly rateLimitPerSecond: number;
  readonly mcpSessionsPerAccount: number;
}

/** The account of a caller as the API shows it. Throws `unauthorized` for a person: /v1 is for keys. */
export function serializeAccount(
  { id, name, email }: Pick<AccountJson, "id" | "name" | "email">,
  caller: Caller,
  { rateLimitPerSecond, mcpSessionsPerAccount }: AccountLimits,
): AccountJson {
  if (caller.keyId === null) throw unauthorized();
  return {
    id,
    name,
    email,
    key: { id: caller.keyId, name: caller.keyName, role: caller.role },
    limits: {
      requests_per_second: rateLimitPerSecond === 0 ? null : rateLimitPerSecond,
      mcp_sessions_max: mcpSessionsPerAccount,
      ...mapLimits((value) => value),
    },
  };
}

const password = Type.Refine(
  Type.String({
    minLength: PASSWORD_CHARS_MIN,
    maxLength: PASSWORD_CHARS_MAX,
    description: "Any characters except NUL and lone surrogates. Only its argon2id hash is stored.",
    examples: ["correct horse battery staple"],
  }),
  isStorableText,
  () => "Must be well-formed Unicode without NUL.",
);

export const Credentials = requestObject("Credentials", "An address and its password.", {
  email: emailSchema("The person's address; case does not matter."),
  password,
});

const PersonAccount = Type.Object(
  { id: AccountId, email: plainText("The person's address.", "ann@example.com") },
  { description: "The account and its person." },
);

/** The answer to a log-in. */
export const LoggedIn = answerObject("LoggedIn", "The person who logged in. The session is in the cookie.", {
  account: PersonAccount,
});

export const SignedUp = answerObject("SignedUp", "The new account and its first key. The session is in the cookie.", {
  account: PersonAccount,
  api_key: plainText(
    "An owner key. It is not stored and never shown again.",
    "og_7Qm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi3kL0x",
  ),
});

export type Credentials = Static<typeof Credentials>;

const PasswordChange = closedObject({ current_password: password, password });

export type PasswordChange = Static<typeof PasswordChange>;

/** Checks address and password of a body or form. Throws `validation_error` with all issues. */
export const checkCredentials = bodyCheck(Credentials);

/** Checks the current and the new password of a form. Throws `validation_error` with all issues. */
export const checkPasswordChange = bodyCheck(PasswordChange);

/** An account of the service, as owners of the first one see it. */
const AccountItem = answerObject("ListedAccount", "An account of the service.", {
  id: AccountId,
  email: nullable(plainText("Address of its first person; null: none.", "ann@example.com")),
  created_at: dateTime("When it was created."),
  first: yesNo("Whether it is the account of the first start.", false),
  stopped: yesNo("Its keys are refused and none of its actions is sent until it is allowed.", true),
  allowed_at: nullable(dateTime("When it was allowed; null: not necessary, or not yet.")),
});

export const AccountListJson = answerObject("AccountList", "The accounts of the service.", {
  data: Type.Array(AccountItem, {
    description: `The accounts, stopped ones first, then the newest; at most ${ACCOUNTS_LISTED_MAX}.`,
  }),
});

/** An account of the service as the API shows it. */
export function serializeListedAccount(row: ListedAccount): Static<typeof AccountItem> {
  return {
    id: row.id,
    email: row.email,
    created_at: row.createdAt.toISOString(),
    first: row.isFirst,
    stopped: row.isStopped,
    allowed_at: row.allowedAt?.toISOString() ?? null,
  };
}

/** Keys with what they have done, as lists show them. */

const LastAction = Type.Object(
  {
    id: ActionId,
    created_at: dateTime("When it was created."),
    method: choice(HTTP_METHODS, "Its method.", "POST"),
    url: plainText("Its URL, masked.", "https://api.example.com/orders"),
    status: choice(ACTION_STATUSES, "Its status.", "completed"),
    response_code: nullable(Type.Integer({ description: "The target's last status code.", examples: [200] })),
  },
  { description: "The newest action that the key created." },
);

const ListedKey = answerObject("ListedKey", "A key with what it has done.", {
  ...keyMembers,
  last_action_at: nullable(dateTime("When it created its newest action; null: none is left.")),
  last_action: nullable(LastAction),
  actions_last_day: quantity(
    `Actions that it has created in the last 24 hours, of what is left, counted up to ${KEY_ACTIONS_COUNTED_MAX}.`,
    42,
  ),
  actions_today: quantity(
    `Actions that it has created today (UTC): exact with daily_actions, else counted up to ${KEY_ACTIONS_COUNTED_MAX}.`,
    17,
  ),
  credentials: Type.Optional(
    Type.Array(credentialNameSchema, {
      description: "Names of the credentials that list it. Owners' keys may use every one. Left out: none.",
      examples: [["stripe-live"]],
    }),
  ),
});

export const KeyListJson = answerObject("KeyList", "The keys of the account.", {
  data: Type.Array(ListedKey, { description: "The keys, live ones first." }),
});

/** A key as pages list it. */
export type ListedKeyView = KeyView & KeyUse & { readonly credentials: readonly string[] };

function serializeCall({ id, createdAt, method, url, status, responseCode }: KeyCall): Static<typeof LastAction> {
  const created_at = createdAt.toISOString();
  return { id, created_at, method, url: maskUrl(url, "decider"), status, response_code: responseCode };
}

/** A key of a list. */
export function serializeListedKey(row: ListedKeyView): Static<typeof ListedKey> {
  return {
    ...serializeKey(row),
    last_action_at: row.lastCall?.createdAt.toISOString() ?? null,
    last_action: row.lastCall === null ? null : serializeCall(row.lastCall),
    actions_last_day: row.actionsLastDay,
    actions_today: row.actionsToday,
    ...(row.credentials.length > 0 && { credentials: [...row.credentials] }),
  };
}
