import Type, { type Static } from "typebox";
import { actionIdSchema, credentialNameSchema } from "../api/action-schemas.ts";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import type { ApiKey, KeyUse } from "../core/account-store.ts";
import { ACTION_STATUSES } from "../core/action.ts";
import {
  CREDENTIALS_MAX,
  KEY_ACTIONS_COUNTED_MAX,
  KEY_DAILY_ACTIONS_MAX,
  KEY_HOSTS_MAX,
  UNFINISHED_COUNTED_MAX,
  URL_CHARS_MAX,
} from "../core/limits.ts";
import { UNFINISHED_ON_REVOKE } from "../core/pause.ts";
import { hasScope, HOLDS, KEY_SCOPES, ROLES } from "../core/roles.ts";
import { HTTP_METHODS } from "../core/target.ts";
import { pathParams } from "../http/operation.ts";
import { maskUrl } from "../receipts/masking.ts";

const role = t.choice(
  ROLES,
  "What the key may do. owner: everything; approver: read, approve, cancel; agent: create, read, and cancel or retry what it created; reader: read.",
  "agent",
);

const hold = (more = "") =>
  t.choice(
    HOLDS,
    `Which creates of the key are held for approval regardless of approve: none, writes (all but GET), or all. ${more}`.trim(),
    "writes",
  );

const scope = t.choice(
  KEY_SCOPES,
  "For keys with the role agent. Which actions it sees unmasked, cancels and retries. own: only those that it created; account: all of the account.",
  "own",
);

const limitMembers = {
  hosts: Type.Optional(
    t.shortList(
      t.shortText(URL_CHARS_MAX, "A host.", "api.stripe.com"),
      KEY_HOSTS_MAX,
      "Where its calls may go: host names or addresses, with a port or for any; *.example.com is every name below, not the name itself. Left out: anywhere.",
      ["api.stripe.com", "*.internal.example"],
    ),
  ),
  methods: Type.Optional(
    t.shortList(
      Type.Enum([...HTTP_METHODS], { type: "string" }),
      HTTP_METHODS.length,
      "Which methods its calls may use. Left out: any.",
      ["GET", "POST"],
    ),
  ),
  daily_actions: Type.Optional(
    t.integer(
      1,
      KEY_DAILY_ACTIONS_MAX,
      "How many actions it may create a day (UTC). Its retries count too; a create that finds an older action doesn't.",
      200,
    ),
  ),
  expires_at: Type.Optional(t.dateTime("From then on it is refused (401).")),
};

export const LimitsJson = Type.Object(limitMembers);

/** The body of a new key. `role` is required, so that nobody gets an owner key by omission. */
export const CreateKeyBody = t.requestObject("CreateKey", "A new key.", {
  name: t.nameSchema("Name of the key for people; decisions are recorded under it."),
  role,
  hold: Type.Optional(hold("Default: the hold of the key that it replaces, else none.")),
  scope: Type.Optional(scope),
  replaces: Type.Optional(
    t.idSchema(
      "key",
      "Id of the key that it replaces: it also acts on the actions of that one. The replaced key stays live until it is revoked.",
    ),
  ),
  ...limitMembers,
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
        "Whether a limit that is left out is taken from the key that it replaces. false: a limit that is left out does not apply.",
      examples: [false],
    }),
  ),
});

export type CreateKeyBody = Static<typeof CreateKeyBody>;

const keyMembers = {
  id: t.keyIdSchema,
  name: t.plainText("Name of the key for people.", "ci"),
  role,
  hold: hold(),
  scope: Type.Optional(scope),
  replaces: t.nullable(t.plainText("Id of the key that it replaces.", "key_01kjwa5v00e7v8c9x2m4n6p8qr")),
  last4: t.plainText("The last four characters of the key.", "kL0x"),
  created_at: t.dateTime("When it was created."),
  last_used_at: t.nullable(t.dateTime("When it was last used, to the minute.")),
  created_by: t.nullable(t.plainText("Who created it; null: that is not known.", "user:ann@example.com")),
  revoked_at: t.nullable(t.dateTime("When it was revoked; null: it is live.")),
  revoked_by: t.nullable(t.plainText("Who revoked it; null: no one, or that is not known.", "user:ann@example.com")),
  ...limitMembers,
};

const KeyJson = t.answerObject("Key", "A key, without the key itself.", keyMembers);

export const CreatedKeyJson = t.answerObject("CreatedKey", "A new key. Only this answer contains the key itself.", {
  ...keyMembers,
  key: t.plainText("The key. It is not stored and never shown again.", "og_7Qm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi3kL0x"),
});

export const RevokedKeyJson = t.answerObject("RevokedKey", "A revoked key with what it has left to do.", {
  ...keyMembers,
  unfinished_actions: t.quantity(
    `Its pending and held actions, counted up to ${UNFINISHED_COUNTED_MAX}. With unfinished=cancel they are being cancelled.`,
    3,
  ),
  held_actions: t.quantity("Those of them that await approval. Their approvers see that the key was revoked.", 1),
  created_keys: t.quantity("Live keys that it created. `created_by` of the list finds them.", 0),
});

export const RevokeParameters = t.closedObject({
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

/** Filters a list by who made its entries. */
export const MadeByParameters = t.closedObject({
  created_by: Type.Optional(
    Type.String({
      pattern: t.MAKER_ID,
      description: "Only what this person or key created.",
      examples: ["per_01kjwa5v00e7v8c9x2m4n6p8qr"],
    }),
  ),
});

/** A key as pages show it: its row without account and hash. */
export type KeyView = Omit<ApiKey, "accountId" | "hash">;

const LastAction = Type.Object(
  {
    id: actionIdSchema,
    created_at: t.dateTime("When it was created."),
    method: t.choice(HTTP_METHODS, "Its method.", "POST"),
    url: t.plainText("Its URL, masked.", "https://api.example.com/orders"),
    status: t.choice(ACTION_STATUSES, "Its status.", "completed"),
    response_code: t.nullable(Type.Integer({ description: "The target's last status code.", examples: [200] })),
  },
  { description: "The newest action that the key created." },
);

const ListedKey = t.answerObject("ListedKey", "A key with what it has done.", {
  ...keyMembers,
  last_action_at: t.nullable(t.dateTime("When it created its newest action; null: none is left.")),
  last_action: t.nullable(LastAction),
  actions_last_day: t.quantity(
    `Actions that it has created in the last 24 hours, of what is left, counted up to ${KEY_ACTIONS_COUNTED_MAX}.`,
    42,
  ),
  actions_today: t.quantity(
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

export const KeyListJson = t.answerObject("KeyList", "The keys of the account.", {
  data: Type.Array(ListedKey, { description: "The keys, live ones first." }),
});

/** A key as pages list it. */
export type ListedKeyView = KeyView & KeyUse & { readonly credentials: readonly string[] };

const shown = <Row extends KeyView>(row: Row) => ({ ...row, scope: hasScope(row.role) ? row.scope : null });

export const serializeKey = (row: KeyView) => toJson(KeyJson, shown(row));

export const serializeCreatedKey = (row: KeyView, key: string) => toJson(CreatedKeyJson, { ...shown(row), key });

type Left = Readonly<Record<"unfinishedActions" | "heldActions" | "createdKeys", number>>;

export const serializeRevokedKey = (row: KeyView & Left) => toJson(RevokedKeyJson, shown(row));

export function serializeListedKey({ lastCall, credentials, ...row }: ListedKeyView) {
  return toJson(ListedKey, {
    ...shown(row),
    lastActionAt: lastCall?.createdAt ?? null,
    lastAction: lastCall && { ...lastCall, url: maskUrl(lastCall.url, "decider") },
    credentials: credentials.length > 0 ? credentials : null,
  });
}

export const KeyParams = pathParams(Type.Object({ id: t.keyIdSchema }), "There is no such key.");
