import Type from "typebox";
import { DomainError } from "../domain/errors.ts";
import { dateTime, nullable } from "./kinds.ts";

/** The secret of one origin (decisions 12). */
export const SigningSecret = Type.Object({
  origin: Type.String({ format: "uri", description: "Scheme, host and port." }),
  secret: Type.String({ pattern: "^whsec_" }),
  previous: nullable(Type.Object({ secret: Type.String(), expires_at: dateTime("Until when it still signs.") })),
});

export const SigningSecretQuery = Type.Object(
  { origin: Type.String({ description: "Scheme, host and port of the target, like https://api.example.com." }) },
  { additionalProperties: false },
);

/** Nothing behind the authority, not even a slash: two spellings of one origin would look like two secrets. */
const ORIGIN = /^https?:\/\/[^/?#\\@\s]+$/i;

/** The origin as the signature knows it: lower case, without the scheme's own port. Throws `invalid_query`. */
export function checkOrigin(text: string): string {
  const url = ORIGIN.test(text) ? URL.parse(text) : null;
  if (url !== null) return url.origin;
  const message = "Must be scheme, host and port of a target, without a path, like https://api.example.com.";
  throw new DomainError("invalid_query", "The query is not valid.", [{ field: "origin", message }]);
}
