import Type, { type Static } from "typebox";
import { DomainError } from "../domain/errors.ts";
import { compile } from "./check.ts";
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
        { description: "After a rotation both sign for 24 hours; null: there was none lately." },
      ),
    ),
  },
  { title: "SigningSecret", description: "The secret that signs the calls to one origin." },
);
export type SigningSecret = Static<typeof SigningSecret>;

/** A rotation that was made (decisions 12). */
export const Rotation = Type.Object(
  {
    origin: nullable(url("The origin that has a new secret; null: all of them.", "https://api.example.com")),
    rotated_at: dateTime("Since when the new secret signs."),
    previous_expires_at: dateTime("Until when the one before it signs too; a further rotation ends it earlier."),
  },
  { title: "Rotation", description: "A rotation of signing secrets." },
);

const origin = plainText("Scheme, host and port of the target.", "https://api.example.com");
export type Rotation = Static<typeof Rotation>;

export const SigningSecretQuery = Type.Object({ origin }, { additionalProperties: false });
export const RotateQuery = Type.Object({ origin: Type.Optional(origin) }, { additionalProperties: false });

/** Where a body says nothing. One that names an origin is refused: it would rotate all of them in its silence. */
export const NoBody = Type.Object(
  {},
  { additionalProperties: false, description: "Nothing; the origin is a parameter." },
);
const NO_BODY = compile(NoBody);

/** Throws `validation_error` for a body that says something; null: nothing was sent. */
export function checkNoBody(body: { readonly value: unknown } | null): void {
  if (body === null || NO_BODY.accepts(body.value)) return;
  throw new DomainError("validation_error", "The request has fields that are not valid.", NO_BODY.issues(body.value));
}

/** The secret of an origin as JSON text. */
export function signingSecretJson({ origin: of, secret: current, previous }: SigningSecretRow): string {
  const before = previous === null ? null : { secret: previous.secret, expires_at: previous.expiresAt.toISOString() };
  return JSON.stringify({ origin: of, secret: current, previous: before });
}

/** A rotation as JSON text. */
export function rotationJson({ origin: of, rotatedAt, previousExpiresAt }: RotationRow): string {
  return JSON.stringify({
    origin: of,
    rotated_at: rotatedAt.toISOString(),
    previous_expires_at: previousExpiresAt.toISOString(),
  });
}

interface SigningSecretRow {
  readonly origin: string;
  readonly secret: string;
  readonly previous: { readonly secret: string; readonly expiresAt: Date } | null;
}

interface RotationRow {
  readonly origin: string | null;
  readonly rotatedAt: Date;
  readonly previousExpiresAt: Date;
}

/** Nothing behind the authority, not even a slash: two spellings of one origin would look like two secrets. */
const ORIGIN = /^https?:\/\/[^/?#\\@\s]+$/i;

/** The origin as the signature knows it: lower case, without the scheme's own port. Throws `invalid_query`. */
export function checkOrigin(text: string): string {
  const parsed = ORIGIN.test(text) ? URL.parse(text) : null;
  if (parsed !== null) return parsed.origin;
  const message = "Must be scheme, host and port of a target, without a path, like https://api.example.com.";
  throw new DomainError("invalid_query", "The query is not valid.", [{ field: "origin", message }]);
}
