import Type, { type Static } from "typebox";
import { DomainError } from "../api/domain-error.ts";
import { normalTarget } from "../outbound/normal-target.ts";
import { ORIGIN_CHARS_MAX } from "../config/limits.ts";
import { SIGNING_USES } from "../crypto/signature.ts";
import { dateTime, enforced, nullable, url } from "../api/schema-helpers.ts";

const secret = (description: string) =>
  Type.String({ pattern: "^whsec_", description, examples: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] });

export const SigningSecret = Type.Object(
  {
    origin: url("Scheme, host and port.", "https://api.example.com"),
    secret: secret("Verifies the calls, or the callbacks, to this origin (Standard Webhooks)."),
    previous: nullable(
      Type.Object(
        { secret: secret("The secret before it."), expires_at: dateTime("When it stops signing.") },
        {
          description:
            "After a rotation both secrets sign for 24 hours; null: no recent rotation. For callbacks it may be the secret of calls, for 30 days after callbacks got secrets of their own.",
        },
      ),
    ),
  },
  { title: "SigningSecret", description: "The secret that signs the calls, or the callbacks, to one origin." },
);

export type SigningSecret = Static<typeof SigningSecret>;

export const Rotation = Type.Object(
  {
    origin: nullable(url("The origin that has a new secret; null: all origins.", "https://api.example.com")),
    rotated_at: dateTime("When the new secret began to sign."),
    previous_expires_at: dateTime("When the previous secret stops signing; another rotation ends it earlier."),
  },
  { title: "Rotation", description: "A rotation of signing secrets." },
);

const origin = Type.String({
  description: "Scheme, host and port of the target, without a path.",
  examples: ["https://api.example.com"],
  ...enforced({ pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\\@\s]+$` }),
});

export type Rotation = Static<typeof Rotation>;

const use = (description: string) =>
  Type.Optional(Type.Enum([...SIGNING_USES], { type: "string", description, examples: ["callbacks"] }));

export const SigningSecretQuery = Type.Object(
  { origin, for: use("What the secret signs. Default: calls. Callbacks have secrets of their own.") },
  { additionalProperties: false },
);

export type SigningSecretQuery = Static<typeof SigningSecretQuery>;

export const RotateQuery = Type.Object(
  {
    origin: Type.Optional(origin),
    for: use("Which secret to rotate. Default: that of calls, or without an origin those of calls and callbacks."),
  },
  { additionalProperties: false },
);

/** The empty body. A body that names an origin is refused, since ignoring it would rotate all secrets. */
export const NoBody = Type.Object(
  {},
  { additionalProperties: false, description: "Empty: path and query say everything." },
);

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

/** Nothing may follow the authority, not even a slash, so that no origin has two spellings. */
const ORIGIN = /^https?:\/\/[^/?#\\@\s]+$/i;

/** The normalized origin. Throws `invalid_query`. */
export function checkOrigin(text: string): string {
  const target = ORIGIN.test(text) ? normalTarget(text) : null;
  if (target !== null && target.origin.length <= ORIGIN_CHARS_MAX) return target.origin;
  const message = "Must be scheme, host and port of a target, without a path, like https://api.example.com.";
  throw new DomainError("invalid_query", "The query is not valid.", [{ field: "origin", message }]);
}
