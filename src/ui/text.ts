import type { Counted } from "../core/search.ts";
import type { Person } from "../core/session.ts";
import type { AccountLabel } from "../core/account-store.ts";
import type { Action } from "../core/action.ts";
import { mayBeSentBefore } from "../core/changes.ts";
import type { Pause } from "../core/pause.ts";
import type { TimelineEvent, TimelineEntry } from "../core/timeline.ts";
import { hasScope, type Hold, type KeyScope, type Role } from "../core/roles.ts";

export interface PageUser extends Pick<Person, "email" | "role" | "hasOthers" | "formToken"> {
  /** The numbers beside the navigation; left out if unknown. */
  readonly badges?: NavBadges;
  /** The accounts to switch between; left out for people with a single account without a name. */
  readonly accounts?: readonly NavAccount[];
  /** The pause of the whole account, masked for this person; left out if there is none. */
  readonly stop?: Pause;
  /** A note that came over the login; left out if there is none. */
  readonly keptNote?: KeptNote;
}

/** The note of a decision that came after the session had ended. */
export interface KeptNote {
  /** Who wrote it. */
  readonly person: string;
  /** What its form decided on. */
  readonly requests: string;
  readonly reason: string;
}

/** An account of a person who has several. */
export interface NavAccount extends AccountLabel {
  readonly accountId: string;
  readonly isCurrent: boolean;
}

export interface NavBadges {
  /** Requests waiting for a decision. */
  readonly waiting: Counted;
  /** Failed actions of the last day. */
  readonly failing: Counted;
}

/** The network of a client: an IPv4 address, or an IPv6 network with its size. Nobody but this machine is in that of `::1`. */
export function networkText(client: string): string {
  if (client === "0:0:0:0") return "::1";
  return client.includes(":") ? `${client}::/64` : client;
}

export function mailName(event: string): string {
  if (event === "invited") return "Invitation email";
  return event === "decided" ? "Decision email" : "Approval email";
}

/** A name of the API in words: "Unfinished actions". */
export function inWords(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
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

/** The units of durations in forms, the longest first. */
const DURATION_UNITS = [
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
  ["ms", 1],
] as const;

/** A duration for a form in the longest exact unit: "90 s". `readDuration` reads it back. */
export function exactDuration(ms: number): string {
  const found = DURATION_UNITS.find(([, unitMs]) => ms >= unitMs && ms % unitMs === 0);
  return found === undefined ? `${ms} ms` : `${ms / found[1]} ${found[0]}`;
}

/** Reads "90 s", "1.5 min" or "500" as milliseconds, which are the default unit; null for other texts. */
export function readDuration(text: string): number | null {
  const [, digits = "", unit = "ms"] = /^(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|min|h)?$/.exec(text.trim()) ?? [];
  const unitMs = DURATION_UNITS.find(([name]) => name === unit)?.[1] ?? 1;
  return digits === "" ? null : Math.round(Number(digits) * unitMs);
}

/** In search order, because most browsers also name the ones they descend from. */
const BROWSERS = [
  ["Edg/", "Edge"],
  ["OPR/", "Opera"],
  ["SamsungBrowser/", "Samsung Internet"],
  ["Firefox/", "Firefox"],
  ["FxiOS/", "Firefox"],
  ["HeadlessChrome/", "Chrome"],
  ["CriOS/", "Chrome"],
  ["Chrome/", "Chrome"],
  ["Safari/", "Safari"],
] as const;

const SYSTEMS = [
  ["Android", "Android"],
  ["iPhone", "iPhone"],
  ["iPad", "iPad"],
  ["Windows", "Windows"],
  ["Mac OS X", "macOS"],
  ["Linux", "Linux"],
] as const;

/** "Firefox on Linux", from a browser's user agent; null for an unknown one. */
export function browserName(agent: string): string | null {
  const browser = BROWSERS.find(([part]) => agent.includes(part))?.[1];
  const system = SYSTEMS.find(([part]) => agent.includes(part))?.[1];
  if (browser === undefined) return null;
  return system === undefined ? browser : `${browser} on ${system}`;
}

/** 12,345 */
export function number(value: number): string {
  return value.toLocaleString("en-GB");
}

/** "1 attempt", "2,000 attempts". */
export function counted(count: number, word: string): string {
  return `${number(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** At most one decimal place, and no trailing ".0". */
function trimmed(value: number): string {
  return value.toFixed(1).replace(/\.0$/, "");
}

/** A sentence on the target's answer after its attempt was closed as unknown; null if there was none. */
export function lateText({ status, run, lateResult }: Pick<Action, "status" | "run" | "lateResult">): string | null {
  if (lateResult === null) return null;
  const { responseCode: code, attempt } = lateResult;
  if (lateResult.run !== run) return `Run ${lateResult.run} was answered ${code}, after it had ended.`;
  const answer = `target answered ${code} to attempt ${attempt}, after it was closed as unknown.`;
  if (status === "failed") return `Failed, but the ${answer}`;
  return status === "cancelled" ? `Cancelled, but the ${answer}` : `The ${answer}`;
}

/**
 * The sentence about a held action on pages and in mails. Speaks only about this run if earlier runs may have sent the request.
 * Callbacks of a held action are sent before the decision.
 */
export function waitingText(action: Parameters<typeof mayBeSentBefore>[0] & Pick<Action, "callback">): string {
  const { run, callback } = action;
  const what = callback === null ? "Nothing has been sent" : "The request has not been sent";
  const where = mayBeSentBefore(action) ? inThisRun(run) : "";
  const notified =
    callback === null ? "" : " Its callback is notified that it is awaiting approval, and of the result.";
  return `It is awaiting approval. ${what}${where}.${notified}`;
}

/** What limits a statement to this run, as it may be false for earlier ones. */
export function inThisRun(run: number): string {
  return ` in run ${run}; the target may have received it in an earlier run`;
}

/** A timeline event that has an actor. */
export type ActorEvent = Extract<TimelineEvent, { readonly actor: string }>;

const NOT_DECISIONS: ReadonlySet<TimelineEvent["type"]> = new Set(["created", "sent_now", "paused", "resumed"]);

/** The newest decision of a timeline, apart from creation and pauses; null if there is none. */
export function lastDecision(timeline: readonly TimelineEntry[]): ActorEvent | null {
  const decisions = timeline.flatMap(({ event }) => ("actor" in event ? [event] : []));
  return decisions.findLast(({ type }) => !NOT_DECISIONS.has(type)) ?? null;
}

export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly hint: string;
}

/** The most common ones come first. */
export const ROLE_CHOICES = [
  {
    value: "agent",
    label: "Agent",
    hint: "Creates and reads actions; cancels and retries its own. It can’t approve on its own. For agents and programs.",
  },
  { value: "approver", label: "Approver", hint: "Reads, approves and rejects. Secrets are masked. For reviewers." },
  { value: "reader", label: "Reader", hint: "Reads only. Secrets are masked. For dashboards and auditors." },
  {
    value: "owner",
    label: "Owner",
    hint: "Full access, including keys, signing secrets and approvals. Never give it to an agent.",
  },
] as const satisfies readonly (Choice & { readonly value: Role })[];

/** The roles of people. */
export const MEMBER_ROLE_CHOICES = ROLE_CHOICES.slice(1).map((choice) =>
  choice.value === "owner" ? { ...choice, hint: "Full access, including keys, signing secrets and people." } : choice,
);

export const HOLD_CHOICES = [
  {
    value: "none",
    label: "No hold",
    hint: "Rules decide. Where none applies, only actions created with approve: true need approval.",
  },
  { value: "writes", label: "Writes", hint: "Every call except GET needs approval." },
  { value: "all", label: "Everything", hint: "Every call needs approval, including GET." },
] as const satisfies readonly (Choice & { readonly value: Hold })[];

export const SCOPE_CHOICES = [
  {
    value: "own",
    label: "Actions that it created",
    hint: "It sees other actions with secrets masked. Actions of keys that it replaces are included.",
  },
  {
    value: "account",
    label: "Every action of the account",
    hint: "It sees their secrets, and can cancel and retry them, including actions that a person cancelled.",
  },
] as const satisfies readonly (Choice & { readonly value: KeyScope })[];

function labelIn(choices: readonly Choice[], value: string): string {
  return choices.find((choice) => choice.value === value)?.label ?? value;
}

export function roleLabel(role: Role): string {
  return labelIn(ROLE_CHOICES, role);
}

/** The hold of a key for a list; null if it has none. */
export function holdLabel(hold: Hold): string | null {
  return hold === "none" ? null : `Holds ${labelIn(HOLD_CHOICES, hold).toLowerCase()}`;
}

/** The scope of a key for a list; null for the default. */
export function scopeLabel(role: Role, scope: KeyScope): string | null {
  return hasScope(role) && scope === "account" ? "Whole account" : null;
}

/** Cuts a text to the limits, at a line break if possible. */
export function cutText(text: string, limits: { readonly lines: number; readonly chars: number }) {
  let end = Math.min(text.length, limits.chars);
  for (let line = 0, at = -1; line < limits.lines; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at === -1 || at >= end) break;
    if (line === limits.lines - 1) end = at;
  }
  return cutAt(text, end);
}

/**
 * Cuts a text at this index, but never inside a surrogate pair. `rest`: "57 more lines (3,210 characters)", or null if nothing
 * is cut.
 */
export function cutAt(text: string, end: number): { readonly beginning: string; readonly rest: string | null } {
  if (end >= text.length) return { beginning: text, rest: null };
  const isPair = /[\ud800-\udbff]/.test(text.charAt(end - 1));
  const beginning = text.slice(0, isPair ? end - 1 : end);
  const left = text.slice(beginning.length).replace(/^\n/, "");
  const lines = left.split("\n").length;
  const chars = counted(left.length, "character");
  // The rest of a cut line is not another line.
  const isWithin = text.charAt(beginning.length) !== "\n";
  if (isWithin && lines === 1) return { beginning, rest: `${chars} more` };
  return { beginning, rest: `${counted(lines, "more line")} (${chars})` };
}
