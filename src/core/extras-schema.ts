import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { CREDENTIAL_KINDS } from "./credential.ts";
import {
  DATE_MS_MAX,
  METADATA_NAME_PATTERN,
  METADATA_NAMES_MAX,
  METADATA_VALUE_CHARS_MAX,
  GIVE_UP_ON_MAX,
  REASON_CHARS_MAX,
} from "./limits.ts";
import { BODY_KINDS } from "./body.ts";
import type { StoredCount } from "./account-rules.ts";
import { STATUS_CLASSES } from "./retry.ts";
import { jsonIn } from "./json.ts";

const texts = Type.Array(Type.String());

/** See `RequestedCredential`. */
const CREDENTIAL = Type.Object(
  {
    id: Type.String({ minLength: 1 }),
    name: Type.String({ minLength: 1 }),
    kind: Type.Enum([...CREDENTIAL_KINDS]),
    hint: Type.Optional(Type.String()),
    hosts: texts,
    paths: Type.Optional(texts),
    methods: Type.Optional(texts),
  },
  { additionalProperties: false },
);

/** Not in `action.ts`, because the command line loads that file and starts without TypeBox. */
export const ExtrasSchema = Type.Object(
  {
    bodyKind: Type.Optional(Type.Enum([...BODY_KINDS])),
    /** Why the call is requested. */
    reason: Type.Optional(Type.String({ maxLength: REASON_CHARS_MAX })),
    metadata: Type.Optional(
      Type.Record(
        Type.String({ pattern: METADATA_NAME_PATTERN }),
        Type.String({ maxLength: METADATA_VALUE_CHARS_MAX }),
        {
          additionalProperties: false,
          minProperties: 1,
          maxProperties: METADATA_NAMES_MAX,
        },
      ),
    ),
    timeoutMs: Type.Optional(Type.Integer({ minimum: 1 })),
    backoff: Type.Optional(
      Type.Object(
        { baseMs: Type.Integer({ minimum: 1 }), capMs: Type.Integer({ minimum: 1 }) },
        { additionalProperties: false },
      ),
    ),
    giveUpOn: Type.Optional(
      Type.Array(Type.Union([Type.Integer(), Type.Enum([...STATUS_CLASSES])]), { maxItems: GIVE_UP_ON_MAX }),
    ),
    /** Not sent before this time, in milliseconds. */
    runAt: Type.Optional(Type.Integer({ minimum: -DATE_MS_MAX, maximum: DATE_MS_MAX })),
    /** The delay from the create, if `runAt` was given as one. */
    delaySeconds: Type.Optional(Type.Integer({ minimum: 1 })),
    /** The credential that is added at the send, with its bounds as they were at the request. */
    credential: Type.Optional(CREDENTIAL),
  },
  { additionalProperties: true },
);

/**
 * Optional members of a create; those that it doesn't set are absent. Stored as JSON in one column, or null if there are none.
 * It may have members that only another version knows, so copy it by `...` to keep them.
 */
export type Extras = Readonly<Static<typeof ExtrasSchema>>;

const EXTRAS = Compile(ExtrasSchema);

/** Reads stored extras. Null: the text was altered in the database. */
export function parseExtras(text: string): Extras | null {
  const value = jsonIn(text);
  return EXTRAS.Check(value) && text !== "{}" && JSON.stringify(value) === text ? value : null;
}

const COUNTED = Compile(
  Type.Array(Type.Tuple([Type.String(), Type.String(), Type.Integer(), Type.String({ pattern: "^[0-9]{1,60}$" })])),
);

/**
 * Reads what an action has added to counts of rules; undefined: the column was altered. It is not beside its type, since the
 * writer thread starts without schemas.
 */
export function parseCounted(text: string): readonly StoredCount[] | undefined {
  const stored = jsonIn(text);
  return COUNTED.Check(stored) ? stored : undefined;
}
