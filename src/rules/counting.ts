import { bodyMemberOf } from "../core/body.ts";
import {
  BUDGET_DECIMALS_MAX,
  BUDGET_DIGITS_MAX,
  BUDGET_KEPT_MS,
  BUDGET_WINDOW_PARTS,
  DAY_MS,
  MINUTE_MS,
} from "../core/limits.ts";
import type { RuleCount } from "../core/rule-count.ts";
import {
  type CallFacts,
  type FactValue,
  foldName,
  type KeyFacts,
  type MemberNames,
  shown,
  Undecidable,
} from "./facts.ts";
import { type Period, periodOf } from "./zones.ts";

/** What a rule counts, and how far: it applies to the call that goes beyond. */
export type Counter = Sum | Calls;

interface Sum {
  readonly kind: "sum";
  /** As it is written. */
  readonly member: string;
  readonly path: readonly (string | number)[];
  /** Names in the path, by their folded form. */
  readonly names: MemberNames;
  readonly per: Period;
  readonly timezone: string;
  /** In units of `UNIT`. */
  readonly limit: bigint;
  /** The same as it is written. */
  readonly limitText: string;
  readonly same: string | null;
}

/** Calls within so many minutes. */
interface Calls {
  readonly kind: "calls";
  readonly count: number;
  readonly minutes: number;
  readonly same: string | null;
}

/** Digests what calls have in common, which may be a whole body. */
type HashOf = (text: string) => string;

/** What a request adds to a count; a sentence where it has no number that can be added up. */
export function countOf(
  counter: Counter,
  ruleId: string,
  facts: CallFacts,
  hashOf: HashOf,
): RuleCount | { readonly undecidable: string } {
  try {
    const asksOnce = counter.same === "request";
    const group = groupOf(counter.same, facts);
    const what = counter.kind === "sum" ? [counter.member, counter.per, counter.timezone] : [counter.minutes];
    // Without the limit: what was counted before it was changed counts on.
    const subject = hashOf(JSON.stringify([counter.kind, ...what, counter.same, group]));
    return { ruleId, subject, asksOnce, ...(counter.kind === "sum" ? addedTo(counter, facts) : oneOf(counter, facts)) };
  } catch (error) {
    if (error instanceof Undecidable) return { undecidable: error.message };
    throw error;
  }
}

type Part = Omit<RuleCount, "ruleId" | "subject" | "asksOnce">;

function addedTo(sum: Sum, facts: CallFacts): Part {
  const amount = String(numberAt(sum, facts));
  const start = periodOf(facts.now, sum.per, sum.timezone);
  const until = start + LONGEST_MS[sum.per] + BUDGET_KEPT_MS;
  return { start, from: start, to: start, amount, limit: String(sum.limit), until };
}

/** With the hours by which zones differ from UTC. */
const LONGEST_MS: Readonly<Record<Period, number>> = { hour: 3 * MINUTE_MS * 60, day: 2 * DAY_MS, month: 32 * DAY_MS };

/** The window is counted in parts, and all of the part counts in which it begins: never more calls pass within it. */
function oneOf({ count, minutes }: Calls, { now }: CallFacts): Part {
  const windowMs = minutes * MINUTE_MS;
  const partMs = windowMs / BUDGET_WINDOW_PARTS;
  const partOf = (ms: number) => Math.floor(ms / partMs) * partMs;
  const start = partOf(now.getTime());
  const until = start + windowMs + partMs + BUDGET_KEPT_MS;
  // What another node has counted by a clock that is ahead counts too.
  const to = Number.MAX_SAFE_INTEGER;
  return { start, from: partOf(now.getTime() - windowMs), to, amount: "1", limit: String(count), until };
}

const METADATA = "metadata.";

/** What the calls of one count have in common. */
function groupOf(same: string | null, facts: CallFacts): unknown {
  const { request, action, key } = facts;
  if (same === null) return null;
  if (same === "key") return oldestId(key);
  if (same === "host") return action.host;
  if (same === "request") {
    // Also where targets read the path in different ways: it is the same path each time.
    const path = folded(action.target?.path ?? "");
    return [oldestId(key), request.method, action.host, path, folded(request.body ?? "")];
  }
  const metadata = request.extras.metadata ?? {};
  const name = same.slice(METADATA.length);
  return Object.hasOwn(metadata, name) ? metadata[name] : null;
}

/** A key counts with those that it replaced. */
function oldestId({ ids }: KeyFacts): string {
  return [...ids].at(-1) ?? "";
}

/** A loop often has a new id in each call. */
export function folded(text: string): string {
  return text.replaceAll(VARYING, "#");
}

const VARYING = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{6,}/gi;

function numberAt({ path, names }: Sum, { action, request }: CallFacts): bigint {
  action.names = names;
  let value: FactValue = action.body;
  for (const name of path) {
    const next: FactValue | undefined = memberOf(value, name);
    if (next === undefined || next === null) throw new Undecidable(`The request has no "${shown(String(name))}".`);
    value = next;
  }
  const number = decimalOf(value, bodyMemberOf(request) === "form");
  if (number < 0n) throw new Undecidable("The number that its budget adds up is negative.");
  return number;
}

function memberOf(value: FactValue, name: string | number): FactValue | undefined {
  if (value instanceof Map) return typeof name === "string" ? value.get(name) : undefined;
  return Array.isArray(value) && typeof name === "number" ? value[name] : undefined;
}

function decimalOf(value: FactValue, isForm: boolean): bigint {
  if (typeof value === "number" || typeof value === "bigint") return unitsIn(String(value)) ?? tooLong();
  if (isForm && typeof value === "string" && FORM_NUMBER.test(value)) return unitsIn(value) ?? tooLong();
  const isPlain = typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Map;
  // A number with more digits than can be read says so itself.
  throw new Undecidable(isPlain ? "What its budget adds up is no number." : String(value.constructor));
}

function tooLong(): never {
  throw new Undecidable("The number that its budget adds up has too many digits.");
}

/** As JSON has them: targets differ in how they read others. */
const FORM_NUMBER = /^-?(0|[1-9]\d{0,30})(\.\d{1,30})?$/;

/** Exactly what a decimal says, in units of the smallest part that counts; null: it has more digits than can be added up. */
export function unitsIn(text: string): bigint | null {
  const [, sign = "", whole = "", part = "", exponent = "0"] = DECIMAL.exec(text) ?? [];
  const digits = (whole + part).replace(/^0+/, "");
  if (digits === "") return 0n;
  const shift = Number(exponent) - part.length + BUDGET_DECIMALS_MAX;
  if (digits.length + shift > BUDGET_DIGITS_MAX + BUDGET_DECIMALS_MAX || shift < -digits.length) return null;
  const cut = shift < 0 ? digits.slice(shift) : "";
  if (/[^0]/.test(cut)) return null;
  const units = BigInt(digits.slice(0, digits.length - cut.length) + "0".repeat(Math.max(0, shift)));
  return sign === "" ? units : -units;
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/** The steps of a path such as `body.items[0].price`; null: it is none. */
export function pathIn(member: string): readonly (string | number)[] | null {
  if (!MEMBER.test(member)) return null;
  return Array.from(member.matchAll(STEP), ([, name, quoted, place]) =>
    quoted === undefined ? (name ?? Number(place)) : quoted,
  );
}

const MEMBER = /^body(\.[^.[\]"\s]+|\["[^"\\]+"\]|\[\d{1,4}\])+$/;
const STEP = /\.([^.[\]"]+)|\["([^"\\]+)"\]|\[(\d{1,4})\]/g;

export function namesIn(path: readonly (string | number)[]): MemberNames {
  return path.flatMap((name) => (typeof name === "string" ? [[foldName(name), name] as const] : []));
}

/** Whether calls before that time are part of what a count is for. */
export function countsBefore(counter: Counter, { start, from }: RuleCount, time: Date): boolean {
  return counter.kind === "sum" ? start <= periodOf(time, counter.per, counter.timezone) : from < time.getTime();
}

/** What is said of the call that goes beyond. */
export function beyond(counter: Counter): string {
  if (counter.kind === "sum") return `It goes beyond the budget for this ${counter.per}.`;
  return counter.same === "request" ? "The same call was made too often." : "Such calls were made too often.";
}

/** With the numbers. */
export function comparedBy(counter: Counter): string {
  const each = counter.same === null ? "" : ` for the same ${counter.same}`;
  return counter.kind === "sum"
    ? `It allows a sum of ${counter.limitText} of ${counter.member} in one ${counter.per}${each}.`
    : `It allows ${counter.count} calls within ${counter.minutes} minutes${each}.`;
}
