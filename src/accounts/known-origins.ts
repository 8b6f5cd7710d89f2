import Type, { type Static } from "typebox";
import { type UsedOrigins, SIGNING_USES, type SigningUse } from "../core/account-store.ts";
import { dateTime, nullable, url, choice } from "../api/schema-helpers.ts";
import { KNOWN_ORIGINS_MAX, SIGNING_OVERLAP_MS } from "../core/limits.ts";

/** An origin that has a signing secret in use. */
export interface KnownOrigin {
  readonly origin: string;
  readonly use: SigningUse;
  /** When the newest call, or callback, to it was caused; null: none is left. */
  readonly lastUsedAt: Date | null;
  /** When its secret was rotated last, alone or with all others; null: never. */
  readonly rotatedAt: Date | null;
  /** Until when the secret before that rotation signs too; null: it doesn't. */
  readonly overlapEndsAt: Date | null;
}

/** The origins that calls and callbacks used and those that were rotated, the last used first. */
export function knownOriginsOf(used: UsedOrigins, now: Date): readonly KnownOrigin[] {
  return SIGNING_USES.flatMap((use) => originsOf(used, use, now)).toSorted(lastUsedFirst);
}

function originsOf(used: UsedOrigins, use: SigningUse, now: Date): readonly KnownOrigin[] {
  const uses = new Map(used[use].map(({ origin, lastUsedAt }) => [origin, lastUsedAt]));
  const own = used.rotations.filter((rotation) => rotation.use === use && rotation.origin !== null);
  const all = used.rotations.filter(({ origin, use: of }) => origin === null && (of === null || of === use));
  const origins = new Set([...uses.keys(), ...own.flatMap(({ origin }) => origin ?? [])]);
  return [...origins].slice(0, KNOWN_ORIGINS_MAX).map((origin) => {
    const times = [...all, ...own.filter((rotation) => rotation.origin === origin)].map(({ rotatedAt }) => rotatedAt);
    const rotatedAt = times.toSorted((one, other) => one.getTime() - other.getTime()).at(-1) ?? null;
    return { origin, use, lastUsedAt: uses.get(origin) ?? null, rotatedAt, overlapEndsAt: overlapOf(rotatedAt, now) };
  });
}

function overlapOf(rotatedAt: Date | null, now: Date): Date | null {
  const end = rotatedAt === null ? null : new Date(rotatedAt.getTime() + SIGNING_OVERLAP_MS);
  return end !== null && end > now ? end : null;
}

function lastUsedFirst(one: KnownOrigin, other: KnownOrigin): number {
  const byTime = (other.lastUsedAt?.getTime() ?? 0) - (one.lastUsedAt?.getTime() ?? 0);
  return byTime === 0 ? one.origin.localeCompare(other.origin) : byTime;
}

const SigningOriginJson = Type.Object(
  {
    origin: url("Scheme, host and port.", "https://api.example.com"),
    for: choice(SIGNING_USES, "What its secret signs.", "calls"),
    last_used_at: nullable(dateTime("When the newest call, or callback, to it was caused; null: none is left.")),
    rotated_at: nullable(dateTime("When its secret was rotated last, alone or with all others; null: never.")),
    previous_expires_at: nullable(dateTime("Until when the previous secret signs too; null: it doesn't.")),
  },
  { title: "SigningOrigin", description: "An origin that has a signing secret in use." },
);

export const SigningOriginList = Type.Object(
  {
    data: Type.Array(SigningOriginJson, {
      description: `The origins, the last used first: at most ${KNOWN_ORIGINS_MAX} of calls and ${KNOWN_ORIGINS_MAX} of callbacks.`,
    }),
  },
  { title: "SigningOriginList", description: "Where an account's calls and callbacks went." },
);

/** An origin as the API shows it. */
export function serializeOrigin(row: KnownOrigin): Static<typeof SigningOriginJson> {
  return {
    origin: row.origin,
    for: row.use,
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
    rotated_at: row.rotatedAt?.toISOString() ?? null,
    previous_expires_at: row.overlapEndsAt?.toISOString() ?? null,
  };
}
