import { usedBodyMember } from "../core/body.ts";
import { PLAIN_NUMBER, unitsIn } from "../core/decimal.ts";
import type { Issue } from "../core/domain-error.ts";
import { BUDGET_KEPT_MS, DAY_MS, HOUR_MS, MINUTE_MS } from "../core/limits.ts";
import type { RuleCount } from "../core/account-rules.ts";
import { isZone, NO_ZONE, type Period, periodAt } from "../core/zones.ts";
import { compileValue, ExpressionError } from "./expression.ts";
import { type CallFacts, INEXACT, type KeyFacts, type RuledRequest, Undecidable } from "./facts.ts";
import type { RuleDefinition } from "./schemas.ts";

/** Counts of a sliding window, one for each part of it. */
const BUDGET_WINDOW_PARTS = 60;

/** What a rule counts, and up to which limit. The rule applies to calls that go beyond it. */
export interface Counter {
  /** What calls must share to be counted together; undefined: all calls are. */
  readonly same: string | undefined;
  /** Identifies the count in its digest. Leaves out the limit, so that counting goes on when the limit changes. */
  readonly name: readonly (string | number)[];
  /** What a request adds, at the time when it is due: so the calls sent within a time are those counted for it. */
  readonly add: (facts: CallFacts) => Omit<RuleCount, "ruleId" | "subject" | "asksOnce">;
  /** Why a call beyond the limit is held. */
  readonly goesBeyond: string;
  /** The same with its numbers, for rules with `explain`. */
  readonly compares: string;
}

/** What a request adds to a count. `hashText` digests the subject, which may hold a whole body. Throws `Undecidable`. */
export function toRuleCount(
  { same, name, add }: Counter,
  ruleId: string,
  facts: CallFacts,
  hashText: (text: string) => string,
): RuleCount {
  const subject = hashText(JSON.stringify([...name, same ?? null, countedGroup(same, facts)]));
  return { ruleId, subject, asksOnce: same === "request", ...add(facts) };
}

/** The counters of a rule. Adds what is wrong with them to `issues`. */
export function compileCounters({ more_than: calls, sum }: RuleDefinition, issues: Issue[]): readonly Counter[] {
  const counters = [calls && callCounter(calls), sum && sumCounter(sum, issues)];
  return counters.filter((counter) => counter !== undefined);
}

/**
 * Counts calls within so many minutes. The window is divided into parts, and a part that is only partly in the window counts whole,
 * so that never more calls pass. Calls due within the window after this one count as well as those before it: calls can be delayed
 * to any time, in any order.
 */
function callCounter({ count, minutes, same }: NonNullable<RuleDefinition["more_than"]>): Counter {
  const windowMs = minutes * MINUTE_MS;
  const partMs = windowMs / BUDGET_WINDOW_PARTS;
  const partStart = (ms: number) => Math.floor(ms / partMs) * partMs;
  return {
    same,
    name: ["calls", minutes],
    add({ due }) {
      const dueMs = due.getTime();
      const start = partStart(dueMs);
      const [from, to] = [partStart(dueMs - windowMs), partStart(dueMs + windowMs)];
      return { start, from, to, amount: "1", limit: String(count), until: to + partMs + BUDGET_KEPT_MS };
    },
    goesBeyond: same === "request" ? "The same call was made too often." : "Such calls were made too often.",
    compares: `It allows ${count} calls within ${minutes} minutes${forSame(same)}.`,
  };
}

/** Adds up a number of the body in a period of the calendar. */
function sumCounter(
  { member, per, timezone, same, ...sum }: NonNullable<RuleDefinition["sum"]>,
  issues: Issue[],
): Counter | undefined {
  const numberAt = memberReader(member);
  const limit = unitsIn(String(sum.limit));
  const wrong = (field: string, message: string) => issues.push({ field: `sum.${field}`, message });
  if (numberAt === null) wrong("member", "Must be a path in the body, like body.amount or body.items[0].price.");
  if (limit === null) wrong("limit", "Has more than 9 decimals.");
  if (!isZone(timezone)) wrong("timezone", NO_ZONE);
  if (numberAt === null || limit === null) return undefined;
  return {
    same,
    name: ["sum", member, per, timezone],
    add(facts) {
      const amount = String(toUnits(numberAt(facts), facts.request));
      const start = periodAt(facts.due, per, timezone);
      const until = start + LONGEST_MS[per] + BUDGET_KEPT_MS;
      return { start, from: start, to: start, amount, limit: String(limit), until };
    },
    goesBeyond: `It goes beyond the budget for this ${per}.`,
    compares: `It allows a sum of ${sum.limit} of ${member} in one ${per}${forSame(same)}.`,
  };
}

/** The longest periods, with the hours by which zones differ from UTC. */
const LONGEST_MS: Readonly<Record<Period, number>> = { hour: 3 * HOUR_MS, day: 2 * DAY_MS, month: 32 * DAY_MS };

function forSame(same: string | undefined): string {
  return same === undefined ? "" : ` for the same ${same}`;
}

/** The value that the calls of one count share. */
function countedGroup(same: string | undefined, { request, action, key }: CallFacts): unknown {
  if (same === undefined) return null;
  if (same === "key") return oldestId(key);
  if (same === "host") return action.host;
  if (same === "request") return [oldestId(key), request.method, action.host, ...action.repeated()];
  return action.metadata.get(same.slice("metadata.".length)) ?? null;
}

/** A key shares its counts with those that it replaced. */
function oldestId({ ids }: KeyFacts): string {
  return [...ids].at(-1) ?? "";
}

/** The number that a budget adds up, in units. */
function toUnits(value: unknown, request: RuledRequest): bigint {
  if (value === INEXACT) return INEXACT.constructor;
  const isText = typeof value === "string" && usedBodyMember(request) === "form" && PLAIN_NUMBER.test(value);
  if (!isText && typeof value !== "number" && typeof value !== "bigint")
    throw new Undecidable("The member that its budget adds up is not a number.");
  const units = unitsIn(String(value));
  if (units === null) throw new Undecidable("The number that its budget adds up has too many digits.");
  if (units < 0n) throw new Undecidable("The number that its budget adds up is negative.");
  return units;
}

/** A path such as `body.items[0].price`. */
const MEMBER = /^body(\.[^.[\]"\s]+|\["[^"\\]+"\]|\[\d{1,4}\])+$/;

/** A name after a dot. It is rewritten with brackets, since in CEL only an identifier may follow a dot. */
const NAME = /\.([^.[\]"]+)/g;

/** Compiles what reads the number at a path. Null: it is no path, or too long. */
function memberReader(member: string): ReturnType<typeof compileValue> | null {
  if (!MEMBER.test(member)) return null;
  try {
    return compileValue(`action.body${member.slice(4).replaceAll(NAME, (_, name) => `[${JSON.stringify(name)}]`)}`);
  } catch (error) {
    if (error instanceof ExpressionError) return null;
    throw error;
  }
}
