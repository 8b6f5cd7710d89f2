import Type, { type Static } from "typebox";
import { DomainError } from "../domain/errors.ts";
import { hasScope, type Hold, HOLDS, KEY_SCOPES, type KeyScope, type Role, ROLES } from "../domain/roles.ts";
import { compile, withoutNulls } from "./check.ts";
import { dateTime, nameSchema, nullable, plainText } from "./kinds.ts";

const ID = { pattern: "^key_[A-Za-z0-9_-]{1,64}$", examples: ["key_01kjwa5v00e7v8c9x2m4n6p8qr"] };
export const KeyId = Type.String({ title: "KeyId", ...ID, description: "Id of a key." });
/** The same where it has a meaning of its own. */
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
      `Which creates of the key wait for a person whatever their approve says: none, writes (all but GET), or all. ${more}`.trim(),
    examples: ["writes"],
  });

const scope = Type.Enum([...KEY_SCOPES], {
  type: "string",
  description:
    "Of a key with the role agent. own: it sees the secrets of, cancels and retries only what it created; account: of every action of the account.",
  examples: ["own"],
});

/** What a new key is made of. The role has to be said: nobody gets an owner key by leaving something out. */
export const CreateKey = Type.Object(
  {
    name: nameSchema("How people tell it from others; decisions are written down under it."),
    role,
    hold: Type.Optional(hold("Left out: that of the key that it replaces, else none.")),
    scope: Type.Optional(scope),
    replaces: Type.Optional(
      keyId(
        "Id of the key whose place it takes: it acts on what that one created, too. That key stays live until it is revoked.",
      ),
    ),
    weaker_hold: Type.Optional(
      Type.Boolean({
        default: false,
        description: "Says that its hold is meant to be weaker than that of the key that it replaces.",
        examples: [true],
      }),
    ),
  },
  { title: "CreateKey", additionalProperties: false, description: "What a new key is made of." },
);
export type CreateKey = Static<typeof CreateKey>;

const members = {
  id: KeyId,
  name: plainText("How people tell it from others.", "ci"),
  role,
  hold: hold(),
  scope: Type.Optional(scope),
  replaces: nullable(plainText("Id of the key that it replaces.", "key_01kjwa5v00e7v8c9x2m4n6p8qr")),
  last4: plainText("The last four characters of the key.", "kL0x"),
  created_at: dateTime("When it was made."),
  last_used_at: nullable(dateTime("When it was used last, to the minute.")),
  revoked_at: nullable(dateTime("When it was revoked; null: it is live.")),
};

/** A key as the list shows it (decisions 12): never the key itself. */
export const Key = Type.Object(members, { title: "Key", description: "A key, without the key itself." });

/** The answer to its creation: the only time that the key is shown. */
export const CreatedKey = Type.Object(
  {
    ...members,
    key: plainText("The key. It is not stored and never shown again.", "og_7Qm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi3kL0x"),
  },
  { title: "CreatedKey", description: "A new key: the only answer that shows it." },
);
export type CreatedKey = Static<typeof CreatedKey>;

export const KeyList = Type.Object(
  { data: Type.Array(Key, { description: "The keys, those that are live first." }) },
  { title: "KeyList", description: "The keys of the account." },
);
export type KeyList = Static<typeof KeyList>;

/** A key as far as it is shown, in JSON and on pages; `ports/store.ts` keeps more of it. */
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

const CREATE_KEY = compile(CreateKey);

/** What was said of a new key; null: nothing. */
export interface CheckedKey {
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold | null;
  readonly scope: KeyScope | null;
  readonly replaces: string | null;
  /** It is meant to have a weaker hold than the key that it replaces. */
  readonly isWeakerMeant: boolean;
}

/** What a new key is made of, from a body. Throws `validation_error` with every issue. */
export function checkCreateKey(value: unknown): CheckedKey {
  const given = withoutNulls(value, CreateKey.properties);
  if (!CREATE_KEY.accepts(given)) {
    throw new DomainError("validation_error", "The request has fields that are not valid.", CREATE_KEY.issues(given));
  }
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
