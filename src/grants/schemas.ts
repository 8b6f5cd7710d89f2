import Type, { type Static } from "typebox";
import {
  dateTime,
  idSchema,
  plainText,
  quantity,
  requestObject,
  answerObject,
  integer,
} from "../api/schema-helpers.ts";
import type { Grant } from "../core/grant.ts";
import { GRANT_CALLS_MAX, GRANT_MINUTES_MAX, GRANT_VARY_MAX } from "../core/limits.ts";

export const grantIdSchema = idSchema("grt", "Id of a grant.", "GrantId");

const varies = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
  maxItems: GRANT_VARY_MAX,
  uniqueItems: true,
  description: "Members of the JSON body that may differ, by their paths. All else has to be equal.",
  examples: [["body.amount"]],
});

// Not `Type.Record`: generators of clients don't read its patterns.
const most = Type.Unsafe<Readonly<Record<string, number>>>({
  type: "object",
  additionalProperties: { type: "number", minimum: 0, maximum: 999_999_999_999 },
  maxProperties: GRANT_VARY_MAX,
  description: "The most that a number among them may be.",
  examples: [{ "body.amount": 5000 }],
});

/** What an approval lets pass besides its action. */
export const GrantTermsJson = requestObject(
  "GrantTerms",
  "Allow more calls of the key like this one, for a while.",
  {
    minutes: integer(1, GRANT_MINUTES_MAX, "For how long.", 60),
    calls: integer(1, GRANT_CALLS_MAX, "For how many calls.", 20),
    vary: Type.Optional(varies),
    max: Type.Optional(most),
  },
  { examples: [{ minutes: 60, calls: 20, vary: ["body.amount"], max: { "body.amount": 5000 } }] },
);

const GrantJson = answerObject(
  "Grant",
  "What a person allows an agent for a while: calls like one that they approved.",
  {
    id: grantIdSchema,
    key_id: plainText("The key whose calls it lets pass.", "key_01kjwa5v00e7v8c9x2m4n6p8qr"),
    action_id: plainText("The action that was approved.", "act_01kjwa5v00e7v8c9x2m4n6p8qr"),
    vary: varies,
    max: most,
    calls: quantity("How many calls it lets pass.", 20),
    used: quantity("How many it has let pass.", 3),
    expires_at: dateTime("Nothing passes by it from this time on."),
    created_at: dateTime("When it was made."),
    created_by: plainText("Who made it. It ends where they may no longer approve.", "user:dana@example.com"),
  },
);

export const GrantListJson = answerObject("GrantList", "The grants in force.", {
  data: Type.Array(GrantJson, { description: "Newest first." }),
});

export function serializeGrant(grant: Grant): Static<typeof GrantJson> {
  const { id, keyId, actionId, vary, max, calls, used, expiresAt, createdAt, createdBy } = grant;
  const times = { expires_at: expiresAt.toISOString(), created_at: createdAt.toISOString() };
  return { id, key_id: keyId, action_id: actionId, vary: [...vary], max, calls, used, ...times, created_by: createdBy };
}
