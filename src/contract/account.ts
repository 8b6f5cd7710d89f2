import Type, { type Static } from "typebox";
import { type Caller, unauthorized } from "../domain/caller.ts";
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
} from "../domain/limits.ts";
import { ROLES } from "../domain/roles.ts";
import { KeyId } from "./key.ts";
import { nullable, plainText } from "./kinds.ts";

const bound = (description: string, example: number) => Type.Integer({ minimum: 1, description, examples: [example] });

/** What a caller has to keep to. */
const Limits = Type.Object(
  {
    requests_per_second: nullable(
      bound("Requests of the whole account in one second, shared by the keys that ask; null: not limited.", 100),
    ),
    mcp_sessions_max: bound(
      "Sessions that MCP clients of 2025 may have open in the whole account.",
      MCP_SESSIONS_PER_ACCOUNT_DEFAULT,
    ),
    held_actions_max: bound("Actions of the calling key that may await approval at a time.", HELD_PER_KEY_MAX),
    event_streams_max: bound("Event streams open in the whole account.", EVENT_STREAMS_PER_ACCOUNT_MAX),
    request_body_bytes_max: bound("Bytes of a request body.", REQUEST_BODY_BYTES_MAX),
    json_depth_max: bound("Depth of a request's JSON; the outermost value is depth 1.", JSON_DEPTH_MAX),
    json_members_max: bound("Object members in a whole request.", JSON_MEMBERS_MAX),
    url_chars_max: bound("Characters of a url or callback.", URL_CHARS_MAX),
    headers_max: bound("Headers of an action.", HEADERS_MAX),
    headers_bytes_max: bound("Bytes of an action's header names and values.", HEADERS_BYTES_MAX),
    retries_default: bound("Delivery attempts of a run, unless the create says otherwise.", RETRIES_DEFAULT),
    retries_max: bound("Delivery attempts of a run that a create may ask for.", RETRIES_MAX),
    wait_seconds_default: bound("Seconds that a sync create waits, unless it says otherwise.", WAIT_SECONDS_DEFAULT),
    wait_seconds_max: bound("Seconds that a request may wait.", WAIT_SECONDS_MAX),
    dedupe_seconds: bound("How long dedupe and Idempotency-Key are remembered.", DEDUPE_WINDOW_MS / 1_000),
    list_limit_max: bound("Actions of a page.", LIST_LIMIT_MAX),
    response_body_bytes_max: bound("Bytes of a target's answer that are kept.", RESPONSE_BODY_BYTES_MAX),
  },
  { description: "What the caller has to keep to." },
);

export const AccountId = Type.String({
  pattern: "^acc_[A-Za-z0-9_-]+$",
  description: "Id of the account.",
  examples: ["acc_01kjwa5v00e7v8c9x2m4n6p8qr"],
});

/** Who a caller is (decisions 12). */
export const Account = Type.Object(
  {
    id: AccountId,
    email: nullable(plainText("Of the account's first person; null: it has none yet.", "ann@example.com")),
    key: Type.Object(
      {
        id: KeyId,
        name: plainText("The name of the calling key.", "ci"),
        role: Type.Enum([...ROLES], { type: "string", description: "Its role.", examples: ["agent"] }),
      },
      { description: "The key that asks." },
    ),
    limits: Limits,
  },
  { title: "Account", description: "Who the caller is." },
);
export type Account = Static<typeof Account>;

/** The limits that are settings. */
export interface AccountLimits {
  /** 0 is none. */
  readonly rateLimitPerSecond: number;
  readonly mcpSessionsPerAccount: number;
}

interface AccountRow {
  readonly id: string;
  readonly email: string | null;
}

/**
 * The account of a caller as JSON text. Throws `unauthorized` where no key asks: what stands under /v1 is for keys.
 */
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
