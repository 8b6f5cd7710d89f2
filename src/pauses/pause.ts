import type { Action } from "../actions/action.ts";
import { type Actor, SYSTEM } from "../accounts/roles.ts";
import type { TimelineEvent, TimelineEntry } from "../actions/timeline.ts";
import type { AuditEntry } from "../audit/audit.ts";
import { KeyId } from "../accounts/schemas.ts";
import { DomainError } from "../api/domain-error.ts";
import { checkHost } from "../hosts/host.ts";
import { dateTime, hostSchema, nullable, plainText, reason } from "../api/schema-helpers.ts";
import Type, { type Static } from "typebox";

/**
 * What a pause stops: an account, the actions of one key, or the calls to one host; `sign_up`: an account that the
 * operator has not allowed.
 */
const PAUSE_KINDS = ["account", "key", "host", "sign_up"] as const;

type PauseKind = (typeof PAUSE_KINDS)[number];

/** What happens to the unfinished actions of a revoked key. */
export const UNFINISHED_ON_REVOKE = ["keep", "pause", "cancel"] as const;

export type UnfinishedOnRevoke = (typeof UNFINISHED_ON_REVOKE)[number];

/** While a pause is in force, no action that it covers is claimed. */
export interface Pause {
  readonly id: string;
  readonly accountId: string;
  readonly kind: PauseKind;
  /** The id of the key, the host as in an action's lane, or the id of the account for `sign_up`; empty for an account. */
  readonly subject: string;
  readonly reason: string | null;
  /** The covered actions are being cancelled; the pause ends by itself when none is left. */
  readonly cancels: boolean;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Null: it is in force. */
  readonly endedAt: Date | null;
  readonly endedBy: Actor | null;
}

/** The lane of an action. */
export type PauseScope = Pick<Action, "accountId" | "keyId" | "host">;

/** The pause that stops an action of this lane now; null: none does. */
export type PauseOf = (scope: PauseScope) => Pause | null;

/** How a pause ends. */
export interface PauseEnd {
  readonly at: Date;
  readonly by: Actor;
  readonly audit: AuditEntry;
}

/** `found`: the same pause was in force already. */
type Paused =
  | { readonly kind: "paused" | "found"; readonly pause: Pause }
  | { readonly kind: "no_such_key" | "too_many" };

/** Stores pauses. From the commit of a pause on, no action that it covers is claimed. */
export interface PauseStore {
  /** At most one pause of a subject is in force. A key must belong to the account. */
  pause(pause: Pause, audit: AuditEntry): Promise<Paused>;
  /** Ends a pause; one that has ended stays as it is. False: the account has no pause with this id. */
  end(accountId: string, id: string, end: PauseEnd): Promise<boolean>;
  find(accountId: string, id: string): Promise<Pause | null>;
  /** Those in force, of one account or of all, oldest first. */
  inForce(accountId: string | null): Promise<readonly Pause[]>;
  /** Every pause that ever covered an action, oldest first; at most the newest `TIMELINE_PAUSES_MAX`. */
  ofAction(accountId: string, actionId: string): Promise<readonly Pause[]>;
  /** At most `limit` pending and held actions of a key; `isSending`: some are active and may become pending again. */
  unfinished(
    accountId: string,
    keyId: string,
    limit: number,
  ): Promise<{ readonly ids: readonly string[]; readonly isSending: boolean }>;
  /** Deletes some pauses that ended at this time or earlier; true: there may be more. */
  prune(endedUntil: Date): Promise<boolean>;
}

/**
 * A timeline with entries where a pause began and stopped to hold up the action. `pauses` are all that ever covered it.
 * These entries are computed and not stored, since one pause affects any number of actions; each has the `seq` of the entry
 * before it.
 */
export function withPauses(entries: readonly TimelineEntry[], pauses: readonly Pause[]): readonly TimelineEntry[] {
  if (pauses.length === 0) return entries;
  const added = waitsOf(entries).flatMap((wait) => pauses.flatMap((pause) => entriesOf(wait, pause)));
  const ordered = added.toSorted((one, other) => one.at.getTime() - other.at.getTime());
  return entries.flatMap((entry) => [entry, ...ordered.filter(({ seq }) => seq === entry.seq)]);
}

/** The action is pending from the first of these entries on; `until` null: it still is. */
interface Wait {
  readonly entries: readonly TimelineEntry[];
  readonly until: Date | null;
}

/** The times when the action was pending. Entries of mails and callbacks may stand within one. */
function waitsOf(entries: readonly TimelineEntry[]): readonly Wait[] {
  const waits: Wait[] = [];
  let pending: TimelineEntry[] = [];
  for (const entry of entries) {
    if (entry.status === "pending") pending.push(entry);
    else if (pending.length > 0) {
      waits.push({ entries: pending, until: entry.at });
      pending = [];
    }
  }
  return pending.length === 0 ? waits : [...waits, { entries: pending, until: null }];
}

function entriesOf({ entries, until }: Wait, pause: Pause): readonly TimelineEntry[] {
  const [first] = entries;
  const { createdAt, createdBy, endedAt, endedBy } = pause;
  if (first === undefined || (endedAt !== null && endedAt <= first.at)) return [];
  if (until !== null && createdAt >= until) return [];
  const entryAt = (at: Date, event: TimelineEvent): TimelineEntry => {
    const { seq, run, status } = entries.findLast((entry) => entry.at <= at) ?? first;
    return { seq, at, run, status, event };
  };
  const beganAt = createdAt > first.at ? createdAt : first.at;
  const paused = entryAt(beganAt, { type: "paused", actor: createdBy, reason: pause.reason });
  if (endedAt === null || (until !== null && endedAt > until)) return [paused];
  return [paused, entryAt(endedAt, { type: "resumed", actor: endedBy ?? SYSTEM, reason: null })];
}

export const PauseId = Type.String({
  title: "PauseId",
  pattern: "^pau_[A-Za-z0-9_-]{1,64}$",
  description: "Id of a pause.",
  examples: ["pau_01kjwa5v00e7v8c9x2m4n6p8qr"],
});

const kind = Type.Enum([...PAUSE_KINDS], {
  type: "string",
  description:
    "account: the whole account; key: the actions of one key; host: the calls to one host; sign_up: the whole account, until an owner of the first account of the service allows it.",
  examples: ["key"],
});

const why = nullable(plainText("The reason that was given; null: none.", "It loops."));

export const CreatePause = Type.Object(
  {
    key_id: Type.Optional(KeyId),
    host: Type.Optional(
      hostSchema(
        "Host of the calls to pause, not together with `key_id`. With a port unless it is the scheme's default.",
      ),
    ),
    reason: Type.Optional(reason("Why; shown with every paused action.")),
  },
  {
    title: "CreatePause",
    additionalProperties: false,
    description:
      "What to pause: the actions that this key created, the calls to this host, or without both the whole account.",
  },
);

export type CreatePause = Static<typeof CreatePause>;

export const PauseJson = Type.Object(
  {
    id: PauseId,
    kind,
    key_id: nullable(
      plainText("Id of the key that is paused; null: something else is.", "key_01kjwa5v00e7v8c9x2m4n6p8qr"),
    ),
    host: Type.Optional(plainText("The host that is paused. Present if `kind` is `host`.", "api.example.com")),
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

export type PauseJson = Static<typeof PauseJson>;

export const PauseList = Type.Object(
  { data: Type.Array(PauseJson, { description: "The pauses in force, oldest first." }) },
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

/** The host to pause. Throws `validation_error` if it is none, or if a key is named too. */
export function checkPausedHost(text: string, keyId: string | null): string {
  const host = checkHost(text, "validation_error");
  if (keyId === null) return host;
  const message = "Name a key or a host, not both.";
  throw new DomainError("validation_error", message, [{ field: "host", message }]);
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
