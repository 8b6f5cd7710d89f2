import { invalidField } from "../core/domain-error.ts";
import { checkHost } from "../core/target.ts";
import {
  nullable,
  plainText,
  keyIdSchema,
  hostSchema,
  reason,
  dateTime,
  choice,
  yesNo,
  idSchema,
  requestObject,
  answerObject,
  closedObject,
} from "./schema-helpers.ts";
import { PAUSE_KINDS, UNFINISHED_ON_REVOKE, type Pause } from "../core/pause.ts";
import Type, { type Static } from "typebox";

export const pauseIdSchema = idSchema("pau", "Id of a pause.", "PauseId");

export const kind = choice(
  PAUSE_KINDS,
  "account: the whole account; key: the actions of one key; host: the calls to one host; sign_up: the whole account, until an owner of the first account of the service allows it.",
  "key",
);

export const why = nullable(plainText("The reason that was given; null: none.", "It loops."));

export const CreatePause = requestObject(
  "CreatePause",
  "What to pause: the actions that this key created, the calls to this host, or without both the whole account.",
  {
    key_id: Type.Optional(keyIdSchema),
    host: Type.Optional(
      hostSchema(
        "Host of the calls to pause, not together with `key_id`. With a port unless it is the scheme's default.",
      ),
    ),
    reason: Type.Optional(reason("Why; shown with every paused action.")),
  },
);

export const PauseJson = answerObject("Pause", "A pause in force: no action that it covers is sent.", {
  id: pauseIdSchema,
  kind,
  key_id: nullable(
    plainText("Id of the key that is paused; null: something else is.", "key_01kjwa5v00e7v8c9x2m4n6p8qr"),
  ),
  host: Type.Optional(plainText("The host that is paused. Present if `kind` is `host`.", "api.example.com")),
  reason: why,
  cancels: yesNo(
    "The key was revoked with `unfinished=cancel`: its unfinished actions are being cancelled, then this pause ends.",
    false,
  ),
  created_at: dateTime("When it was paused."),
  created_by: plainText("Who paused it.", "key:owner"),
});

export type PauseJson = Static<typeof PauseJson>;

export const PauseListJson = answerObject("PauseList", "The pauses in force.", {
  data: Type.Array(PauseJson, { description: "The pauses in force, oldest first." }),
});

/** The pause of an action that waits for its end. */
export const ActionPauseJson = answerObject(
  "ActionPause",
  "The pause that keeps it from being sent. Present if `paused` is.",
  { id: pauseIdSchema, kind, reason: why, created_at: dateTime("When it was paused.") },
);

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

/** The host to pause. Throws `validation_error` if it is none, or if a key is named too. */
export function checkPausedHost(text: string, keyId: string | null): string {
  const host = checkHost(text, "validation_error");
  if (keyId === null) return host;
  throw invalidField("host", "Name a key or a host, not both.");
}

/** A pause as the API shows it. */
export function serializePause({ id, kind: of, subject, reason: given, cancels, ...row }: Pause): PauseJson {
  return {
    id,
    kind: of,
    key_id: of === "key" ? subject : null,
    ...(of === "host" && { host: subject }),
    reason: given,
    cancels,
    created_at: row.createdAt.toISOString(),
    created_by: row.createdBy,
  };
}
