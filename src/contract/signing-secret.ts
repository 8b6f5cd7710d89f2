import Type, { type Static } from "typebox";
import { DomainError } from "../domain/errors.ts";
import { dateTime, nullable, plainText, url } from "./kinds.ts";

const secret = (description: string) =>
  Type.String({ pattern: "^whsec_", description, examples: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] });

/** The secret of one origin (decisions 12). */
export const SigningSecret = Type.Object(
  {
    origin: url("Scheme, host and port.", "https://api.example.com"),
    secret: secret("Verifies what this origin gets (Standard Webhooks)."),
    previous: nullable(
      Type.Object(
        { secret: secret("The secret before it."), expires_at: dateTime("Until when it still signs.") },
        { description: "After a rotation both sign for a while; null: there was none lately." },
      ),
    ),
  },
  { title: "SigningSecret", description: "The secret that signs the calls to one origin." },
);
export type SigningSecret = Static<typeof SigningSecret>;

export const SigningSecretQuery = Type.Object(
  { origin: plainText("Scheme, host and port of the target.", "https://api.example.com") },
  { additionalProperties: false },
);

/** Nothing behind the authority, not even a slash: two spellings of one origin would look like two secrets. */
const ORIGIN = /^https?:\/\/[^/?#\\@\s]+$/i;

/** The origin as the signature knows it: lower case, without the scheme's own port. Throws `invalid_query`. */
export function checkOrigin(text: string): string {
  const parsed = ORIGIN.test(text) ? URL.parse(text) : null;
  if (parsed !== null) return parsed.origin;
  const message = "Must be scheme, host and port of a target, without a path, like https://api.example.com.";
  throw new DomainError("invalid_query", "The query is not valid.", [{ field: "origin", message }]);
}
