import type { Action } from "./action.ts";
import { type Actor, actorWords } from "./actor.ts";
import { EARLIER_REJECTIONS_SHOWN_MAX } from "./limits.ts";
import type { EarlierRejection, RequestHistory } from "./rejections.ts";
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
  "rejected",
  "asked_again",
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

/** What the store knows of a request beside the action itself. */
export interface DecisionHistory extends RequestHistory {
  /** No held call of its key to its host was approved and has completed. */
  readonly isNewHost: boolean;
}

/** Of what nobody has to decide on any more. */
export const NO_HISTORY: DecisionHistory = { isNewHost: false, reason: null, rejections: [] };

export interface FactsInput {
  /** As it is stored: the risks are its own. */
  readonly action: Action;
  readonly history: DecisionHistory;
  /** The same, as whoever decides may see it. */
  readonly seen: DecisionHistory & Pick<Action, "url" | "callback" | "createdBy">;
  /** How much of it stays hidden, in words; null: nothing. */
  readonly hidden: string | null;
  /** Where its page is, for whoever signs in. */
  readonly actionUrl: string;
}

/** The facts of a request and its risks. The same words everywhere: each place only sets them in its own type. */
export function decisionFacts({ action, history, seen, hidden, actionUrl }: FactsInput): DecisionFacts {
  const bytes = action.body === null ? 0 : Buffer.byteLength(action.body);
  const facts = [
    ...(hidden === null ? [] : [fact("hidden", "Hidden", hidden)]),
    fact("method", "Method", action.method),
    fact("url", "URL", seen.url),
    fact("requester", "Requested by", who(seen.createdBy)),
    fact("requested_at", "Requested at", moment(action.createdAt)),
    fact("reason", "Reason", seen.reason ?? "Not given"),
    fact("run", "Run", String(action.run)),
    ...rejectionFacts(action.run, seen.rejections),
    fact("callback", "Callback", seen.callback ?? "None"),
    fact("body", "Body", action.body === null ? "None" : `JSON, ${sizeWords(bytes)}`),
    fact("attempts", "Attempts", action.retries === 1 ? "1" : `Up to ${action.retries}, until one succeeds`),
    fact("action", "Action", actionUrl),
  ];
  return { facts, risks: risksOf({ ...action, ...history }) };
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

function fact(name: FactName, label: string, value: string): Fact {
  return { name, label, value };
}

/** How many, and then each on a line of its own, so that no reason passes for a line of ours. */
function rejectionFacts(run: number, entries: readonly EarlierRejection[]): readonly Fact[] {
  const count = entries.filter(({ kind }) => kind === "rejected").length;
  const none = run === 1 && entries.length === 0 ? "None" : "None that count";
  const some = entries.length < EARLIER_REJECTIONS_SHOWN_MAX ? String(count) : `At least ${count}`;
  return [
    fact("rejections", "Earlier rejections", count === 0 ? none : some),
    ...entries.map(({ kind, at, by, reason }) => {
      const said = `${who(by)}, ${moment(at)}${reason === null ? "" : `: ${reason}`}`;
      return kind === "rejected" ? fact("rejected", "Rejected", said) : fact("asked_again", "Asked again", said);
    }),
  ];
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
