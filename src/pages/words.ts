import type { Action, ActionStatus } from "../actions/action.ts";
import type { TimelineEvent, TimelineEntry } from "../actions/timeline.ts";
import { hasScope, type Hold, HOLDS, KEY_SCOPES, type KeyScope, type Role, ROLES } from "../accounts/roles.ts";

export function mailName(event: string): string {
  return event === "decided" ? "Decision email" : "Approval email";
}

/** A duration for display, like "2.4 s". */
export function duration(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${trimmed(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${trimmed(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${trimmed(ms / 3_600_000)} h`;
  const days = trimmed(ms / 86_400_000);
  return days === "1" ? "1 day" : `${days} days`;
}

export function agoWords(ms: number): string {
  const unit = UNITS.find(({ unitMs }) => ms >= unitMs);
  return unit === undefined ? "just now" : `${counted(Math.floor(ms / unit.unitMs), unit.word)} ago`;
}

const UNITS = [
  { unitMs: 86_400_000, word: "day" },
  { unitMs: 3_600_000, word: "hour" },
  { unitMs: 60_000, word: "minute" },
] as const;

/** 12,345 */
export function number(value: number): string {
  return value.toLocaleString("en-GB");
}

/** "1 attempt", "2 attempts". */
export function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** At most one decimal place, and no trailing ".0". */
function trimmed(value: number): string {
  return value.toFixed(1).replace(/\.0$/, "");
}

/** The state of an action in a sentence. `isRejected`: a person rejected it; its status is only `cancelled`. */
export function summaryOf(action: Action, isRejected = false): string {
  return isRejected ? `It was rejected. ${notSent(action)}` : SENTENCES[action.status](action);
}

const SENTENCES: Readonly<Record<ActionStatus, (action: Action) => string>> = {
  pending: ({ attempts, retries, result }) =>
    attempts === 0
      ? "It is about to be sent."
      : `${result?.lastError ?? "The last attempt failed."} ${counted(retries - attempts, "attempt")} left.`,
  active: ({ attempts }) => `It is being sent: attempt ${attempts}.`,
  awaiting_approval: (action) => `It is waiting for approval. ${notSent(action)}`,
  completed: ({ attempts, result }) =>
    `The target answered ${result?.responseCode ?? "with success"}${tookOf(result?.durationMs ?? null)}${
      attempts === 1 ? "" : `, at attempt ${attempts}`
    }.`,
  failed: ({ attempts, result }) =>
    `${result?.lastError ?? "It could not be delivered."} Given up after ${counted(attempts, "attempt")}.`,
  cancelled: (action) =>
    action.attempts === 0
      ? `It was cancelled. ${notSent(action)}`
      : `It was cancelled after ${counted(action.attempts, "attempt")}.`,
};

function tookOf(ms: number | null): string {
  return ms === null ? "" : ` in ${duration(ms)}`;
}

/** The sentence about a held action on pages and in mails. */
export function waitingWords(action: Sent): string {
  return `It is waiting for your decision. ${notSent(action)}`;
}

type Sent = Pick<Action, "run" | "callback">;

/**
 * Only about this run: earlier runs may have sent the request, and the text must not hide that. Callbacks of a held action
 * are sent before the decision.
 */
function notSent({ run, callback }: Sent): string {
  const what = callback === null ? "Nothing has been sent" : "The request has not been sent";
  const where = run === 1 ? "" : ` in run ${run}; the target may have received it in an earlier run`;
  return `${what}${where}.${callback === null ? "" : " Its callback is notified that it is waiting, and of the result."}`;
}

/** A timeline event with an actor. */
export type Decided = Extract<TimelineEvent, { readonly actor: string }>;

const NO_DECISIONS: ReadonlySet<TimelineEvent["type"]> = new Set(["created", "paused", "resumed"]);

/** The newest decision of a timeline. Creation and pauses don't count. Null if there is none. */
export function lastDecision(timeline: readonly TimelineEntry[]): Decided | null {
  const decisions = timeline.flatMap(({ event }) => ("actor" in event ? [event] : []));
  return decisions.findLast(({ type }) => !NO_DECISIONS.has(type)) ?? null;
}

/** One option of a form. */
export interface Choice {
  readonly value: string;
  readonly label: string;
  /** Explains the option. */
  readonly hint: string;
}

const ROLE_WORDS: Readonly<Record<Role, Omit<Choice, "value">>> = {
  agent: {
    label: "Agent",
    hint: "Creates and reads actions; cancels and retries its own. It can’t approve on its own. For agents and programs.",
  },
  approver: { label: "Approver", hint: "Reads, approves and rejects. Secrets are masked. For reviewers." },
  reader: { label: "Reader", hint: "Reads only. Secrets are masked. For dashboards and auditors." },
  owner: {
    label: "Owner",
    hint: "Full access, including keys, signing secrets and approvals. Never give it to an agent.",
  },
};

const HOLD_WORDS: Readonly<Record<Hold, Omit<Choice, "value">>> = {
  none: { label: "Nothing", hint: "Only actions created with approve: true need approval." },
  writes: { label: "Writes", hint: "Every call except GET needs approval." },
  all: { label: "Everything", hint: "Every call needs approval, including GET." },
};

/** The most common roles come first. */
export const ROLE_CHOICES: readonly Choice[] = [...ROLES]
  .toSorted((a, b) => Object.keys(ROLE_WORDS).indexOf(a) - Object.keys(ROLE_WORDS).indexOf(b))
  .map((value) => ({ value, ...ROLE_WORDS[value] }));

export const HOLD_CHOICES: readonly Choice[] = HOLDS.map((value) => ({ value, ...HOLD_WORDS[value] }));

const SCOPE_WORDS: Readonly<Record<KeyScope, Omit<Choice, "value">>> = {
  own: {
    label: "Actions that it created",
    hint: "It sees other actions with secrets masked. Actions of keys that it replaces are included.",
  },
  account: {
    label: "Every action of the account",
    hint: "It sees their secrets, and can cancel and retry them, including actions that a person cancelled.",
  },
};

export const SCOPE_CHOICES: readonly Choice[] = KEY_SCOPES.map((value) => ({ value, ...SCOPE_WORDS[value] }));

/** The scope of a key for a list; null for the default. */
export function scopeWord(role: Role, scope: KeyScope): string | null {
  return hasScope(role) && scope === "account" ? "Whole account" : null;
}

export function roleWord(role: Role): string {
  return ROLE_WORDS[role].label;
}

/**
 * The curl option that sends the key in this shell variable (bash, zsh), as a file: everyone who can list the processes
 * of a machine can read their command lines.
 */
export function keyHeader(variable: string): string {
  return `-H @<(echo "Authorization: Bearer $${variable}")`;
}

/** The hold of a key for a list; null if it has none. */
export function holdWord(hold: Hold): string | null {
  return hold === "none" ? null : `Holds ${HOLD_WORDS[hold].label.toLowerCase()}`;
}

/** The person who is logged in. */
export interface PageUser {
  readonly email: string;
  /** The CSRF token of this session's forms. */
  readonly formToken: string;
}

/** A text cut for display. */
export interface CutText {
  readonly shown: string;
  /** Null: all of it is shown. "57 more lines (3,210 characters)" */
  readonly rest: string | null;
}

export interface CutLimits {
  readonly lines: number;
  readonly chars: number;
}

/** Cuts a text to the limits, at a line break if possible. */
export function cutText(text: string, limits: CutLimits): CutText {
  let end = Math.min(text.length, limits.chars);
  for (let line = 0, at = -1; line < limits.lines; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at === -1 || at >= end) break;
    if (line === limits.lines - 1) end = at;
  }
  return cutAt(text, end);
}

/** Cuts a text at this index, but never inside a surrogate pair. */
export function cutAt(text: string, end: number): CutText {
  if (end >= text.length) return { shown: text, rest: null };
  const isPair = /[\ud800-\udbff]/.test(text.charAt(end - 1));
  const shown = text.slice(0, isPair ? end - 1 : end);
  const left = text.slice(shown.length).replace(/^\n/, "");
  const lines = left.split("\n").length;
  const chars = `${number(left.length)} ${left.length === 1 ? "character" : "characters"}`;
  // The rest of a line that was cut is not another line.
  const isWithin = text.charAt(shown.length) !== "\n";
  if (isWithin && lines === 1) return { shown, rest: `${chars} more` };
  return { shown, rest: `${counted(lines, "more line")} (${chars})` };
}

/**
 * Shortens a text that contains a URL, or begins with a host, to at most this many characters. The host is never cut,
 * because the beginning of `api.example.com.evil.test` would look like another host.
 */
export function shortenUrl(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const end = Math.max(charsMax - 1, hostEnd(text));
  if (end >= text.length) return text;
  const isPair = isHighSurrogate(text.charCodeAt(end - 1));
  return `${text.slice(0, isPair ? end - 1 : end)}…`;
}

/** Behind the host and port of the first URL in the text, or of the host that it begins with. */
export function hostEnd(text: string): number {
  const scheme = text.indexOf("://");
  const start = scheme === -1 ? 0 : scheme + "://".length;
  const length = text.slice(start).search(/[/?#\\]/);
  return length === -1 ? text.length : start + length;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
