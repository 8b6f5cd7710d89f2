import Type, { type Static } from "typebox";
import { PAUSE_KINDS, type Pause as PauseRow, UNFINISHED_ON_REVOKE } from "./pause.ts";
import { dateTime, nullable, plainText, reason } from "../api/schema-helpers.ts";
import { KeyId } from "../accounts/schemas.ts";

export const PauseId = Type.String({
  title: "PauseId",
  pattern: "^pau_[A-Za-z0-9_-]{1,64}$",
  description: "Id of a pause.",
  examples: ["pau_01kjwa5v00e7v8c9x2m4n6p8qr"],
});

const kind = Type.Enum([...PAUSE_KINDS], {
  type: "string",
  description:
    "account: the whole account; key: the actions of one key; sign_up: the whole account, until an owner of the first account of the service allows it.",
  examples: ["key"],
});

const why = nullable(plainText("The reason that was given; null: none.", "It loops."));

export const CreatePause = Type.Object(
  {
    key_id: Type.Optional(KeyId),
    reason: Type.Optional(reason("Why; shown with every paused action.")),
  },
  {
    title: "CreatePause",
    additionalProperties: false,
    description: "What to pause: the actions that this key created, or without `key_id` the whole account.",
  },
);

export type CreatePause = Static<typeof CreatePause>;

export const Pause = Type.Object(
  {
    id: PauseId,
    kind,
    key_id: nullable(plainText("Id of the key that is paused; null: the account.", "key_01kjwa5v00e7v8c9x2m4n6p8qr")),
    reason: why,
    cancels: Type.Boolean({
      description:
        "The key was revoked with `unfinished=cancel`: its unfinished actions are being cancelled, then this pause ends.",
      examples: [false],
    }),
    created_at: dateTime("When it was paused."),
    created_by: plainText("Who paused it.", "key:owner"),
  },
  { title: "Pause", description: "A pause in force: no action that it covers is sent." },
);

export type Pause = Static<typeof Pause>;

export const PauseList = Type.Object(
  { data: Type.Array(Pause, { description: "The pauses in force, oldest first." }) },
  { title: "PauseList", description: "The pauses in force." },
);

export type PauseList = Static<typeof PauseList>;

/** The pause of an action that waits for its end. */
export const ActionPause = Type.Object(
  { id: PauseId, kind, reason: why, created_at: dateTime("When it was paused.") },
  { title: "ActionPause", description: "The pause that keeps it from being sent. Present if `paused` is." },
);

export const RevokeQuery = Type.Object(
  {
    unfinished: Type.Optional(
      Type.Enum([...UNFINISHED_ON_REVOKE], {
        type: "string",
        default: "keep",
        description:
          "What happens to the unfinished actions of the key. keep: they are sent; pause: none is sent until the pause ends; cancel: they are cancelled in steps, and none is sent meanwhile.",
        examples: ["pause"],
      }),
    ),
  },
  { additionalProperties: false },
);

/** A pause as JSON text. */
export function pauseJson(row: PauseRow): string {
  return JSON.stringify(shown(row));
}

/** Pauses as JSON text. */
export function pauseListJson(rows: readonly PauseRow[]): string {
  return JSON.stringify({ data: rows.map(shown) });
}

function shown({ id, kind: of, subject, reason: said, cancels, createdAt, createdBy }: PauseRow): Pause {
  return {
    id,
    kind: of,
    key_id: of === "key" ? subject : null,
    reason: said,
    cancels,
    created_at: createdAt.toISOString(),
    created_by: createdBy,
  };
}
