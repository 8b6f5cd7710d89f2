import type { Action } from "./action.ts";
import { type Actor, SYSTEM } from "./actor.ts";
import type { TimelineEvent, TimelineEntry } from "./timeline.ts";

/** What a pause stops: a whole account, or what one key created; `sign_up`: an account that nobody has allowed. */
export const PAUSE_KINDS = ["account", "key", "sign_up"] as const;
export type PauseKind = (typeof PAUSE_KINDS)[number];

/** What becomes of the unfinished actions of a key that is revoked. */
export const UNFINISHED_ON_REVOKE = ["keep", "pause", "cancel"] as const;
export type UnfinishedOnRevoke = (typeof UNFINISHED_ON_REVOKE)[number];

/** An owner's stop: nothing that it covers is claimed while it is in force. */
export interface Pause {
  readonly id: string;
  readonly accountId: string;
  readonly kind: PauseKind;
  /** The id of the key, of the account for `sign_up`; empty for an account. */
  readonly subject: string;
  readonly reason: string | null;
  /** What it stops is cancelled; it ends by itself when nothing of it is left. */
  readonly cancels: boolean;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Null: it is in force. */
  readonly endedAt: Date | null;
  readonly endedBy: Actor | null;
}

/** Whose action it is, as far as pauses go. */
export type PauseScope = Pick<Action, "accountId" | "keyId">;

/** The pause that stops an action of this account and key now; null: none does. */
export type PauseOf = (scope: PauseScope) => Pause | null;

/** Whether a pause stops what this key of an account created, while it is in force. */
export function covers({ accountId, kind, subject }: Pause, scope: PauseScope): boolean {
  if (accountId !== scope.accountId) return false;
  return kind !== "key" || (subject !== "" && subject === scope.keyId);
}

/**
 * A timeline with a line where a pause began to stop the action, and one where it ended. `pauses` are all that ever covered
 * the action. Such a line is kept nowhere, since a pause counts at once for however many actions; it has the number of the
 * line before it.
 */
export function withPauses(entries: readonly TimelineEntry[], pauses: readonly Pause[]): readonly TimelineEntry[] {
  if (pauses.length === 0) return entries;
  const lines = waits(entries).flatMap((wait) => pauses.flatMap((pause) => linesOf(wait, pause)));
  const ordered = lines.toSorted((one, other) => one.at.getTime() - other.at.getTime());
  return entries.flatMap((entry) => [entry, ...ordered.filter(({ seq }) => seq === entry.seq)]);
}

/** The action waits to be sent from the first of these lines on; until null it still does. */
interface Wait {
  readonly lines: readonly TimelineEntry[];
  readonly until: Date | null;
}

/** Mails and callbacks are told of in the middle of a wait. */
function waits(entries: readonly TimelineEntry[]): readonly Wait[] {
  const found: Wait[] = [];
  let lines: TimelineEntry[] = [];
  for (const entry of entries) {
    if (entry.status === "pending") lines.push(entry);
    else if (lines.length > 0) {
      found.push({ lines, until: entry.at });
      lines = [];
    }
  }
  return lines.length === 0 ? found : [...found, { lines, until: null }];
}

function linesOf({ lines, until }: Wait, pause: Pause): readonly TimelineEntry[] {
  const [first] = lines;
  const { createdAt, createdBy, endedAt, endedBy, reason } = pause;
  if (first === undefined || (endedAt !== null && endedAt <= first.at)) return [];
  if (until !== null && createdAt >= until) return [];
  const lineAt = (at: Date, event: TimelineEvent): TimelineEntry => {
    const before = lines.findLast((line) => line.at <= at) ?? first;
    return { seq: before.seq, at, run: before.run, status: before.status, event };
  };
  const began = createdAt > first.at ? createdAt : first.at;
  const paused = lineAt(began, { type: "paused", actor: createdBy, reason });
  if (endedAt === null || (until !== null && endedAt > until)) return [paused];
  return [paused, lineAt(endedAt, { type: "resumed", actor: endedBy ?? SYSTEM, reason: null })];
}
