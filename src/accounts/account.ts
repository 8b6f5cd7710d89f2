import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import type { Config } from "../config/config.ts";
import type { AccountLabel } from "../core/account-store.ts";
import { auditEntry } from "../core/audit.ts";
import { isStorableText } from "../core/json.ts";
import {
  ACCOUNT_NAME_CHARS_MAX,
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
} from "../core/limits.ts";
import { authorize, type Caller, ROLES, unauthorized } from "../core/roles.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonResponse } from "../http/response.ts";
import type { AppPart } from "../runtime/app-context.ts";

type AccountService = ReturnType<typeof createAccountService>;

export function createAccountService({ store: { people }, clock }: AppPart<"clock", "people">) {
  return {
    /** The caller's own account, for every role. */
    async read(caller: Caller): Promise<AccountLabel & { readonly id: string }> {
      authorize(caller, "read");
      return { id: caller.accountId, ...(await people.findLabel(caller.accountId)) };
    },

    /** Gives the account a name, or removes it (empty); for owners. */
    async rename(caller: Caller, given: string): Promise<void> {
      authorize(caller, "manage");
      const name = given === "" ? null : given;
      const audit = auditEntry(caller, { kind: "account_renamed", subject: "", detail: { name } }, clock.now());
      await people.renameAccount(caller.accountId, name, audit);
    },
  };
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

const Limits = Type.Object(
  {
    requests_per_second: t.nullable(
      t.positive("Requests of the whole account in one second, shared by its active keys; null: no limit.", 100),
    ),
    mcp_sessions_max: t.positive(
      "Sessions that MCP clients of the 2025 protocol versions may have open in the whole account.",
      MCP_SESSIONS_PER_ACCOUNT_DEFAULT,
    ),
    ...mapLimits((example, description) => t.positive(description, example)),
  },
  { description: "Limits that apply to the caller." },
);

function mapLimits<T>(map: (value: number, description: string) => T): Readonly<Record<FixedLimit, T>> {
  const mapped = Object.entries(FIXED_LIMITS).map(([name, [value, description]]) => [name, map(value, description)]);
  // Safe: the names are those of the table.
  return Object.fromEntries(mapped) as Record<FixedLimit, T>;
}

export const accountIdSchema = t.idSchema("acc", "Id of the account.");

export const ChangeAccountBody = t.requestObject("ChangeAccount", "The changes.", {
  name: Type.Refine(
    Type.String({
      maxLength: ACCOUNT_NAME_CHARS_MAX,
      pattern: t.ONE_LINE,
      description: "What people call the account, in one line; empty: nothing.",
      examples: ["Acme Payments"],
    }),
    (name) => isStorableText(name) && (name === "" || name.trim() !== ""),
    () => "Must be well-formed text, not only spaces.",
  ),
});

export const AccountJson = t.answerObject("Account", "The account and key of the caller.", {
  id: accountIdSchema,
  name: t.nullable(t.plainText("As its owners call it; null: they don't.", "Acme Payments")),
  email: t.nullable(t.plainText("Address of the account's first person; null: none yet.", "ann@example.com")),
  key: Type.Object(
    {
      id: t.keyIdSchema,
      name: t.plainText("The name of the calling key.", "ci"),
      role: t.choice(ROLES, "Its role.", "agent"),
    },
    { description: "The calling key." },
  ),
  limits: Limits,
});

export function accountRoutes({
  accountService,
  rateLimitPerSecond,
  mcpSessionsPerAccount,
}: { readonly accountService: AccountService } & Pick<Config, "rateLimitPerSecond" | "mcpSessionsPerAccount">) {
  const showAccount = async (caller: Caller) => {
    const { keyId, keyName, role } = caller;
    // People are callers too, and /v1 is for keys.
    if (keyId === null) throw unauthorized();
    const { id, name, email } = await accountService.read(caller);
    return jsonResponse({
      id,
      name,
      email,
      key: { id: keyId, name: keyName, role },
      limits: {
        requests_per_second: rateLimitPerSecond === 0 ? null : rateLimitPerSecond,
        mcp_sessions_max: mcpSessionsPerAccount,
        ...mapLimits((value) => value),
      },
    } satisfies Static<typeof AccountJson>);
  };
  return createApiRoutes()
    .get(
      "/v1/account",
      ({ caller }) => showAccount(caller),
      operation({
        operationId: "getAccount",
        permission: "read",
        summary: "Get the account, key, role and limits of the caller",
        description: "Shows what the key of the request may do, and its limits.",
        answers: { 200: { description: "The account, and the key of the request.", schema: AccountJson } },
      }),
    )
    .patch(
      "/v1/account",
      async ({ caller, body: { name } }) => {
        await accountService.rename(caller, name);
        return showAccount(caller);
      },
      operation({
        operationId: "changeAccount",
        permission: "manage",
        summary: "Name the account",
        description: "Everyone in the account sees its name, and everyone who is invited.",
        notes: ["An account without a name is shown by the address of its first person."],
        body: jsonBody(ChangeAccountBody),
        answers: { 200: { description: "The account with its name.", schema: AccountJson } },
      }),
    );
}
