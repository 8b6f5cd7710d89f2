import type { Action } from "./action.ts";
import { type Actor, actorWords } from "./actor.ts";
import { REJECTIONS_SHOWN_MAX } from "./limits.ts";
import { type Risk, risksOf } from "./risks.ts";
import { sizeWords } from "./size.ts";

/** What is told to whoever decides on a request, at every place where they can, in this order. */
export const FACTS = [
  "hidden",
  "method",
  "url",
  "requester",
  "requested_at",
  "reason",
  "run",
  "rejections",
  "callback",
  "body",
  "attempts",
  "action",
] as const;
export type FactName = (typeof FACTS)[number];

/** One line: our label, and a value that may hold what others wrote. */
export interface Fact {
  readonly name: FactName;
  readonly label: string;
  readonly value: string;
}

export interface DecisionFacts {
  readonly facts: readonly Fact[];
  readonly risks: readonly Risk[];
}

/** A rejection of the same request, before this run of it. */
export interface Rejection {
  readonly at: Date;
  readonly actor: Actor;
  readonly reason: string | null;
}

/** What the store knows of a request beside the action itself. */
export interface DecisionContext {
  /** No held call of its key to its host was approved and has completed. */
  readonly isNewHost: boolean;
  /** Why its requester asks; null: they did not say. */
  readonly reason: string | null;
  /** Newest first. */
  readonly rejections: readonly Rejection[];
}

/** Of what nobody has to decide on any more. */
export const NO_CONTEXT: DecisionContext = { isNewHost: false, reason: null, rejections: [] };

export interface FactsInput {
  /** As it is stored: the risks are its own. */
  readonly action: Action;
  readonly context: DecisionContext;
  /** The same, as whoever decides may see it. */
  readonly seen: DecisionContext & Pick<Action, "url" | "callback" | "createdBy">;
  /** How much of it stays hidden, in words; null: nothing. */
  readonly hidden: string | null;
  /** Where its page is, for whoever signs in. */
  readonly actionUrl: string;
}

/** The facts of a request and its risks. The same words everywhere: each place only sets them in its own type. */
export function decisionFacts({ action, context, seen, hidden, actionUrl }: FactsInput): DecisionFacts {
  const values: Readonly<Record<FactName, readonly [label: string, value: string | null]>> = {
    hidden: ["Hidden", hidden],
    method: ["Method", action.method],
    url: ["URL", seen.url],
    requester: ["Requested by", who(seen.createdBy)],
    requested_at: ["Requested at", moment(action.createdAt)],
    reason: ["Reason", seen.reason ?? "Not given"],
    run: ["Run", String(action.run)],
    rejections: ["Earlier rejections", rejectionsOf(seen.rejections)],
    callback: ["Callback", seen.callback ?? "None"],
    body: ["Body", action.body === null ? "None" : `JSON, ${sizeWords(Buffer.byteLength(action.body))}`],
    attempts: ["Attempts", action.retries === 1 ? "1" : `Up to ${action.retries}, until one succeeds`],
    action: ["Action", actionUrl],
  };
  const facts = FACTS.flatMap((name) => {
    const [label, value] = values[name];
    return value === null ? [] : [{ name, label, value }];
  });
  return { facts, risks: risksOf({ ...action, ...context }) };
}

/** The value of a fact; empty where it is not told. */
export function factOf({ facts }: DecisionFacts, wanted: FactName): string {
  return facts.find(({ name }) => name === wanted)?.value ?? "";
}

/** Somebody who did something, and how they came in. */
export function who(actor: Actor): string {
  const { name, way } = actorWords(actor);
  return `${name}, ${way}`;
}

function rejectionsOf(rejections: readonly Rejection[]): string {
  if (rejections.length === 0) return "None";
  const told = rejections.slice(0, REJECTIONS_SHOWN_MAX).map(({ at, actor, reason }) => {
    return `${who(actor)}, ${moment(at)}${reason === null ? "" : `: ${reason}`}`;
  });
  const isMore = rejections.length > told.length;
  return `${rejections.length}${isMore ? "; the newest" : ""}: ${told.join("; ")}`;
}

const MOMENT = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});

/** To the minute, in UTC: nobody knows where it is read. */
export function moment(at: Date): string {
  return `${MOMENT.format(at)} UTC`;
}
