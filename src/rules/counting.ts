import { bodyMemberOf } from "../core/body.ts";
import { PLAIN_NUMBER, unitsIn } from "../core/decimal.ts";
import type { Issue } from "../core/domain-error.ts";
import { BUDGET_KEPT_MS, BUDGET_WINDOW_PARTS, DAY_MS, HOUR_MS, MINUTE_MS } from "../core/limits.ts";
import type { RuleCount } from "../core/rule-count.ts";
import { isZone, NO_ZONE, type Period, periodOf } from "../core/zones.ts";
import { compileValue, ExpressionError } from "./expression.ts";
import { type CallFacts, INEXACT, type KeyFacts, type RuledRequest, Undecidable } from "./facts.ts";
import type { RuleDefinition } from "./schemas.ts";

/** What a rule counts, and how far: it applies to the call that goes beyond. */
export interface Counter {
  /** What calls have in common that are counted together; undefined: nothing. */
  readonly same: string | undefined;
  /** What the digest of the count is made of. Not of the limit: after a change of that, what was counted counts on. */
  readonly name: readonly (string | number)[];
  /** What a request adds when it is due: what leaves within a time is what was counted for it. */
  readonly add: (facts: CallFacts) => Omit<RuleCount, "ruleId" | "subject" | "asksOnce">;
  /** Why the call that goes beyond is held, and the same with the numbers. */
  readonly goesBeyond: string;
  readonly compares: string;
}

/** What a request adds to a count. `hashOf` digests what may be a whole body. Throws `Undecidable`. */
export function countOf(
  { same, name, add }: Counter,
  ruleId: string,
  facts: CallFacts,
  hashOf: (text: string) => string,
): RuleCount {
  const subject = hashOf(JSON.stringify([...name, same ?? null, groupOf(same, facts)]));
  return { ruleId, subject, asksOnce: same === "request", ...add(facts) };
}

/** What a rule counts. Notes what is wrong with it. */
export function countersOf({ more_than: calls, sum }: RuleDefinition, issues: Issue[]): readonly Counter[] {
  const counters = [calls && callCounter(calls), sum && sumCounter(sum, issues)];
  return counters.filter((counter) => counter !== undefined);
}

/**
 * Calls within so many minutes. The window is counted in parts, and all of each part counts in which it begins or ends: never more calls
 * pass within it. Those count that are due within it before the call, and those within it after: calls may be delayed to any time, in any
 * order.
 */
function callCounter({ count, minutes, same }: NonNullable<RuleDefinition["more_than"]>): Counter {
  const windowMs = minutes * MINUTE_MS;
  const partMs = windowMs / BUDGET_WINDOW_PARTS;
  const partOf = (ms: number) => Math.floor(ms / partMs) * partMs;
  return {
    same,
    name: ["calls", minutes],
    add({ due }) {
      const dueMs = due.getTime();
      const start = partOf(dueMs);
      const [from, to] = [partOf(dueMs - windowMs), partOf(dueMs + windowMs)];
      return { start, from, to, amount: "1", limit: String(count), until: to + partMs + BUDGET_KEPT_MS };
    },
    goesBeyond: same === "request" ? "The same call was made too often." : "Such calls were made too often.",
    compares: `It allows ${count} calls within ${minutes} minutes${forSame(same)}.`,
  };
}

/** A number that is added up in a period of the calendar. */
function sumCounter(
  { member, per, timezone, same, ...sum }: NonNullable<RuleDefinition["sum"]>,
  issues: Issue[],
): Counter | undefined {
  const numberAt = readerOf(member);
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
      const amount = String(unitsOf(numberAt(facts), facts.request));
      const start = periodOf(facts.due, per, timezone);
      const until = start + LONGEST_MS[per] + BUDGET_KEPT_MS;
      return { start, from: start, to: start, amount, limit: String(limit), until };
    },
    goesBeyond: `It goes beyond the budget for this ${per}.`,
    compares: `It allows a sum of ${sum.limit} of ${member} in one ${per}${forSame(same)}.`,
  };
}

/** With the hours by which zones differ from UTC. */
const LONGEST_MS: Readonly<Record<Period, number>> = { hour: 3 * HOUR_MS, day: 2 * DAY_MS, month: 32 * DAY_MS };

function forSame(same: string | undefined): string {
  return same === undefined ? "" : ` for the same ${same}`;
}

/** What the calls of one count have in common. */
function groupOf(same: string | undefined, { request, action, key }: CallFacts): unknown {
  if (same === undefined) return null;
  if (same === "key") return oldestId(key);
  if (same === "host") return action.host;
  if (same === "request") return [oldestId(key), request.method, action.host, ...action.repeated()];
  return action.metadata.get(same.slice("metadata.".length)) ?? null;
}

/** A key counts with those that it replaced. */
function oldestId({ ids }: KeyFacts): string {
  return [...ids].at(-1) ?? "";
}

/** The number that a budget adds up, in units. */
function unitsOf(value: unknown, request: RuledRequest): bigint {
  if (value === INEXACT) return INEXACT.constructor;
  const isText = typeof value === "string" && bodyMemberOf(request) === "form" && PLAIN_NUMBER.test(value);
  if (!isText && typeof value !== "number" && typeof value !== "bigint")
    throw new Undecidable("The member that its budget adds up is not a number.");
  const units = unitsIn(String(value));
  if (units === null) throw new Undecidable("The number that its budget adds up has too many digits.");
  if (units < 0n) throw new Undecidable("The number that its budget adds up is negative.");
  return units;
}

/** A path such as `body.items[0].price`. */
const MEMBER = /^body(\.[^.[\]"\s]+|\["[^"\\]+"\]|\[\d{1,4}\])+$/;

/** A name behind a dot: in an expression, only one of letters may stand so. */
const NAME = /\.([^.[\]"]+)/g;

/** What reads the number at a path; null: it is none, or too long. */
function readerOf(member: string): ReturnType<typeof compileValue> | null {
  if (!MEMBER.test(member)) return null;
  try {
    return compileValue(`action.body${member.slice(4).replaceAll(NAME, (_, name) => `[${JSON.stringify(name)}]`)}`);
  } catch (error) {
    if (error instanceof ExpressionError) return null;
    throw error;
  }
}
