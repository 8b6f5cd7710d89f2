import Type, { type Static } from "typebox";
import { DomainError } from "../api/domain-error.ts";
import { normalTarget } from "../outbound/normal-target.ts";
import { ORIGIN_CHARS_MAX } from "../config/limits.ts";
import { SIGNING_USES } from "../crypto/signature.ts";
import { compile, dateTime, enforced, nullable, url } from "../api/schema-helpers.ts";

const secret = (description: string) =>
  Type.String({ pattern: "^whsec_", description, examples: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] });

/** The secret of one origin. */
export const SigningSecret = Type.Object(
  {
    origin: url("Scheme, host and port.", "https://api.example.com"),
    secret: secret("Verifies the calls, or the callbacks, that this origin gets (Standard Webhooks)."),
    previous: nullable(
      Type.Object(
        { secret: secret("The secret before it."), expires_at: dateTime("Until when it still signs.") },
        {
          description:
            "After a rotation both sign for 24 hours; null: there was none lately. Of callbacks it is the secret of calls for 30 days where that signed them before they had their own.",
        },
      ),
    ),
  },
  { title: "SigningSecret", description: "The secret that signs the calls, or the callbacks, to one origin." },
);

export type SigningSecret = Static<typeof SigningSecret>;

/** A rotation that was made. */
export const Rotation = Type.Object(
  {
    origin: nullable(url("The origin that has a new secret; null: all of them.", "https://api.example.com")),
    rotated_at: dateTime("Since when the new secret signs."),
    previous_expires_at: dateTime("Until when the one before it signs too; a further rotation ends it earlier."),
  },
  { title: "Rotation", description: "A rotation of signing secrets." },
);

const origin = Type.String({
  description: "Scheme, host and port of the target, without a path.",
  examples: ["https://api.example.com"],
  ...enforced({ pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\\@\s]+$` }),
});

export type Rotation = Static<typeof Rotation>;

/** `for` in the query. */
const use = (description: string) =>
  Type.Optional(Type.Enum([...SIGNING_USES], { type: "string", description, examples: ["callbacks"] }));

export const SigningSecretQuery = Type.Object(
  { origin, for: use("What the secret signs; calls unless it says callbacks, which have a secret of their own.") },
  { additionalProperties: false },
);

export type SigningSecretQuery = Static<typeof SigningSecretQuery>;

export const RotateQuery = Type.Object(
  {
    origin: Type.Optional(origin),
    for: use("Whose secret is to be new. Left out: that of calls; without an origin those of calls and of callbacks."),
  },
  { additionalProperties: false },
);

/** Where a body says nothing. One that names an origin is refused: it would rotate all of them in its silence. */
export const NoBody = Type.Object(
  {},
  { additionalProperties: false, description: "Nothing: what is meant stands in the path and its parameters." },
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

/** The origin as the signature knows it: in its normal form, whatever its spelling. Throws `invalid_query`. */
export function checkOrigin(text: string): string {
  const target = ORIGIN.test(text) ? normalTarget(text) : null;
  if (target !== null && target.origin.length <= ORIGIN_CHARS_MAX) return target.origin;
  const message = "Must be scheme, host and port of a target, without a path, like https://api.example.com.";
  throw new DomainError("invalid_query", "The query is not valid.", [{ field: "origin", message }]);
}
