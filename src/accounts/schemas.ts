import Type, { type Static } from "typebox";
import { DomainError } from "../api/domain-error.ts";
import {
  hasScope,
  type Hold,
  HOLDS,
  KEY_SCOPES,
  type KeyScope,
  type Role,
  ROLES,
  type Caller,
  unauthorized,
} from "./roles.ts";
import {
  compile,
  withoutNulls,
  dateTime,
  nameSchema,
  nullable,
  plainText,
  emailSchema,
  bodyCheck,
} from "../api/schema-helpers.ts";
import {
  DEDUPE_WINDOW_MS,
  EVENT_STREAMS_PER_ACCOUNT_MAX,
  HEADERS_BYTES_MAX,
  HEADERS_MAX,
  HELD_PER_KEY_MAX,
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
  ACCOUNTS_LISTED_MAX,
} from "../config/limits.ts";
import { isStorableText } from "../json/json.ts";

const ID = { pattern: "^key_[A-Za-z0-9_-]{1,64}$", examples: ["key_01kjwa5v00e7v8c9x2m4n6p8qr"] };

export const KeyId = Type.String({ title: "KeyId", ...ID, description: "Id of a key." });

/** A key id with a description of its own. */
export const keyId = (description: string) => Type.String({ ...ID, description });

const role = Type.Enum([...ROLES], {
  type: "string",
  description:
    "What the key may do. owner: everything; approver: read, approve, cancel; agent: create, read, and cancel or retry what it created; reader: read.",
  examples: ["agent"],
});

const hold = (more = "") =>
  Type.Enum([...HOLDS], {
    type: "string",
    description:
      `Which creates of the key are held for approval regardless of approve: none, writes (all but GET), or all. ${more}`.trim(),
    examples: ["writes"],
  });

const scope = Type.Enum([...KEY_SCOPES], {
  type: "string",
  description:
    "For keys with the role agent. Which actions it sees unmasked, cancels and retries. own: only those that it created; account: all of the account.",
  examples: ["own"],
});

/** The body of a new key. `role` is required, so that nobody gets an owner key by omission. */
export const CreateKey = Type.Object(
  {
    name: nameSchema("Name of the key for people; decisions are recorded under it."),
    role,
    hold: Type.Optional(hold("Default: the hold of the key that it replaces, else none.")),
    scope: Type.Optional(scope),
    replaces: Type.Optional(
      keyId(
        "Id of the key that it replaces: it also acts on the actions of that one. The replaced key stays live until it is revoked.",
      ),
    ),
    weaker_hold: Type.Optional(
      Type.Boolean({
        default: false,
        description: "Confirms that its hold is weaker than the hold of the key that it replaces.",
        examples: [true],
      }),
    ),
  },
  { title: "CreateKey", additionalProperties: false, description: "A new key." },
);

export type CreateKey = Static<typeof CreateKey>;

const members = {
  id: KeyId,
  name: plainText("Name of the key for people.", "ci"),
  role,
  hold: hold(),
  scope: Type.Optional(scope),
  replaces: nullable(plainText("Id of the key that it replaces.", "key_01kjwa5v00e7v8c9x2m4n6p8qr")),
  last4: plainText("The last four characters of the key.", "kL0x"),
  created_at: dateTime("When it was created."),
  last_used_at: nullable(dateTime("When it was last used, to the minute.")),
  revoked_at: nullable(dateTime("When it was revoked; null: it is live.")),
};

const Key = Type.Object(members, { title: "Key", description: "A key, without the key itself." });

export const CreatedKey = Type.Object(
  {
    ...members,
    key: plainText("The key. It is not stored and never shown again.", "og_7Qm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi3kL0x"),
  },
  { title: "CreatedKey", description: "A new key. Only this answer contains the key itself." },
);

export type CreatedKey = Static<typeof CreatedKey>;

export const KeyList = Type.Object(
  { data: Type.Array(Key, { description: "The keys, live ones first." }) },
  { title: "KeyList", description: "The keys of the account." },
);

export type KeyList = Static<typeof KeyList>;

/** A key as answers and pages show it. */
export interface ShownKey {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold;
  readonly scope: KeyScope;
  readonly replaces: string | null;
  readonly last4: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
}

/** Checks the body of a new key. Throws `validation_error` with all issues. */
export const checkCreateKey = bodyCheck(CreateKey);

/** A validated new key; null: not given. */
interface CheckedKey {
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold | null;
  readonly scope: KeyScope | null;
  readonly replaces: string | null;
  /** Confirms a weaker hold than that of the replaced key. */
  readonly isWeakerMeant: boolean;
}

/** The request in the body of a new key. */
export function createKeyRequest(given: CreateKey): CheckedKey {
  const { name: called, role: may, hold: holds = null, scope: actsOn = null, replaces = null } = given;
  return { name: called, role: may, hold: holds, scope: actsOn, replaces, isWeakerMeant: given.weaker_hold === true };
}

/** The list as JSON text. */
export function keyListJson(keys: readonly ShownKey[]): string {
  return JSON.stringify({ data: keys.map(keyJson) });
}

/** A new key as JSON text, with the key itself. */
export function createdKeyJson(row: ShownKey, key: string): string {
  return JSON.stringify({ ...keyJson(row), key });
}

function keyJson(row: ShownKey): Static<typeof Key> {
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
    revoked_at: row.revokedAt?.toISOString() ?? null,
  };
}

const bound = (description: string, example: number) => Type.Integer({ minimum: 1, description, examples: [example] });

const Limits = Type.Object(
  {
    requests_per_second: nullable(
      bound("Requests of the whole account in one second, shared by its active keys; null: no limit.", 100),
    ),
    mcp_sessions_max: bound(
      "Sessions that MCP clients of the 2025 protocol versions may have open in the whole account.",
      MCP_SESSIONS_PER_ACCOUNT_DEFAULT,
    ),
    held_actions_max: bound("Actions of the calling key that may await approval at the same time.", HELD_PER_KEY_MAX),
    event_streams_max: bound("Event streams open in the whole account.", EVENT_STREAMS_PER_ACCOUNT_MAX),
    request_body_bytes_max: bound("Bytes of a request body.", REQUEST_BODY_BYTES_MAX),
    json_depth_max: bound("Depth of a request's JSON; the outermost value is depth 1.", JSON_DEPTH_MAX),
    json_members_max: bound("Object members in a whole request.", JSON_MEMBERS_MAX),
    url_chars_max: bound("Characters of a url or callback.", URL_CHARS_MAX),
    headers_max: bound("Headers of an action.", HEADERS_MAX),
    headers_bytes_max: bound("Bytes of an action's header names and values.", HEADERS_BYTES_MAX),
    retries_default: bound("Default of `retries`: delivery attempts of a run.", RETRIES_DEFAULT),
    retries_max: bound("Maximum of `retries`.", RETRIES_MAX),
    wait_seconds_default: bound("Default of `wait` for a sync create, in seconds.", WAIT_SECONDS_DEFAULT),
    wait_seconds_max: bound("Maximum of `wait`, in seconds.", WAIT_SECONDS_MAX),
    dedupe_seconds: bound("Seconds for which dedupe and Idempotency-Key are remembered.", DEDUPE_WINDOW_MS / 1_000),
    list_limit_max: bound("Actions of a page.", LIST_LIMIT_MAX),
    response_body_bytes_max: bound("Bytes of a target's answer that are stored.", RESPONSE_BODY_BYTES_MAX),
  },
  { description: "Limits that apply to the caller." },
);

export const AccountId = Type.String({
  pattern: "^acc_[A-Za-z0-9_-]{1,64}$",
  description: "Id of the account.",
  examples: ["acc_01kjwa5v00e7v8c9x2m4n6p8qr"],
});

export const Account = Type.Object(
  {
    id: AccountId,
    email: nullable(plainText("Address of the account's first person; null: none yet.", "ann@example.com")),
    key: Type.Object(
      {
        id: KeyId,
        name: plainText("The name of the calling key.", "ci"),
        role: Type.Enum([...ROLES], { type: "string", description: "Its role.", examples: ["agent"] }),
      },
      { description: "The calling key." },
    ),
    limits: Limits,
  },
  { title: "Account", description: "The account and key of the caller." },
);

export type Account = Static<typeof Account>;

/** The limits that are settings. */
export interface AccountLimits {
  /** 0: no limit. */
  readonly rateLimitPerSecond: number;
  readonly mcpSessionsPerAccount: number;
}

interface AccountRow {
  readonly id: string;
  readonly email: string | null;
}

/** The account of a caller as JSON text. Throws `unauthorized` for a person: /v1 is for keys. */
export function accountJson({ id, email }: AccountRow, caller: Caller, limits: AccountLimits): string {
  const { rateLimitPerSecond, mcpSessionsPerAccount } = limits;
  if (caller.keyId === null) throw unauthorized();
  const shown: Static<typeof Account> = {
    id,
    email,
    key: { id: caller.keyId, name: caller.keyName, role: caller.role },
    limits: {
      requests_per_second: rateLimitPerSecond === 0 ? null : rateLimitPerSecond,
      mcp_sessions_max: mcpSessionsPerAccount,
      held_actions_max: HELD_PER_KEY_MAX,
      event_streams_max: EVENT_STREAMS_PER_ACCOUNT_MAX,
      request_body_bytes_max: REQUEST_BODY_BYTES_MAX,
      json_depth_max: JSON_DEPTH_MAX,
      json_members_max: JSON_MEMBERS_MAX,
      url_chars_max: URL_CHARS_MAX,
      headers_max: HEADERS_MAX,
      headers_bytes_max: HEADERS_BYTES_MAX,
      retries_default: RETRIES_DEFAULT,
      retries_max: RETRIES_MAX,
      wait_seconds_default: WAIT_SECONDS_DEFAULT,
      wait_seconds_max: WAIT_SECONDS_MAX,
      dedupe_seconds: DEDUPE_WINDOW_MS / 1_000,
      list_limit_max: LIST_LIMIT_MAX,
      response_body_bytes_max: RESPONSE_BODY_BYTES_MAX,
    },
  };
  return JSON.stringify(shown);
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

export const Credentials = Type.Object(
  { email: emailSchema("The person's address; case does not matter."), password },
  { title: "Credentials", additionalProperties: false, description: "An address and its password." },
);

const PersonAccount = Type.Object(
  { id: AccountId, email: plainText("The person's address.", "ann@example.com") },
  { description: "The account and its person." },
);

/** The answer to a log-in. */
export const LoggedIn = Type.Object(
  { account: PersonAccount },
  { title: "LoggedIn", description: "The person who logged in. The session is in the cookie." },
);

export const SignedUp = Type.Object(
  {
    account: PersonAccount,
    api_key: plainText(
      "An owner key. It is not stored and never shown again.",
      "og_7Qm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi3kL0x",
    ),
  },
  { title: "SignedUp", description: "The new account and its first key. The session is in the cookie." },
);

const PasswordChange = Type.Object({ current_password: password, password }, { additionalProperties: false });

const CREDENTIALS = compile(Credentials);

const PASSWORD_CHANGE = compile(PasswordChange);

/** Checks address and password of a body or form. Throws `validation_error` with all issues. */
export function checkCredentials(value: unknown): { readonly email: string; readonly password: string } {
  const given = withoutNulls(value, Credentials.properties);
  if (CREDENTIALS.accepts(given)) return { email: given.email, password: given.password };
  throw new DomainError("validation_error", "The request has fields that are not valid.", CREDENTIALS.issues(given));
}

/** Checks the current and the new password of a form. Throws `validation_error` with all issues. */
export function checkPasswordChange(value: unknown): { readonly current: string; readonly next: string } {
  if (PASSWORD_CHANGE.accepts(value)) return { current: value.current_password, next: value.password };
  const issues = PASSWORD_CHANGE.issues(value);
  throw new DomainError("validation_error", "The form has fields that are not valid.", issues);
}

interface SignedUpAccount {
  readonly id: string;
  readonly email: string;
}

/** A log-in as JSON text. */
export function loggedInJson({ id, email: address }: SignedUpAccount): string {
  return JSON.stringify({ account: { id, email: address } });
}

/** A sign-up as JSON text, with the key itself. */
export function signedUpJson({ id, email: address }: SignedUpAccount, apiKey: string): string {
  return JSON.stringify({ account: { id, email: address }, api_key: apiKey });
}

/** An account of the service, as owners of the first one see it. */
export const ListedAccount = Type.Object(
  {
    id: AccountId,
    email: nullable(plainText("Address of its first person; null: none.", "ann@example.com")),
    created_at: dateTime("When it was created."),
    first: Type.Boolean({ description: "Whether it is the account of the first start.", examples: [false] }),
    stopped: Type.Boolean({
      description: "Its keys are refused and none of its actions is sent until it is allowed.",
      examples: [true],
    }),
    allowed_at: nullable(dateTime("When it was allowed; null: not necessary, or not yet.")),
  },
  { title: "ListedAccount", description: "An account of the service." },
);

export type ListedAccount = Static<typeof ListedAccount>;

export const AccountList = Type.Object(
  {
    data: Type.Array(ListedAccount, {
      description: `The accounts, stopped ones first, then the newest; at most ${ACCOUNTS_LISTED_MAX}.`,
    }),
  },
  { title: "AccountList", description: "The accounts of the service." },
);

export type AccountList = Static<typeof AccountList>;

/** An account as answers and pages show it. */
export interface ShownAccount {
  readonly id: string;
  readonly email: string | null;
  readonly createdAt: Date;
  readonly isFirst: boolean;
  readonly isStopped: boolean;
  readonly allowedAt: Date | null;
}

/** The accounts as JSON text. */
export function accountListJson(accounts: readonly ShownAccount[]): string {
  const list: AccountList = { data: accounts.map(accountItem) };
  return JSON.stringify(list);
}

function accountItem({ id, email, createdAt, isFirst, isStopped, allowedAt }: ShownAccount): ListedAccount {
  return {
    id,
    email,
    created_at: createdAt.toISOString(),
    first: isFirst,
    stopped: isStopped,
    allowed_at: allowedAt?.toISOString() ?? null,
  };
}
