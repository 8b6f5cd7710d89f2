import { bodyCheck } from "../api/check.ts";
import { type RuleRow, countName, type RuleCount } from "../core/account-rules.ts";
import { type Ruling, strictest } from "../core/action-policy.ts";
import { usedBodyMember } from "../core/body.ts";
import { DomainError, invalidFields, type Issue } from "../core/domain-error.ts";
import type { Judgement } from "../core/judge.ts";
import { RULE_NEEDS_MAX, RULE_WARNING_STEPS_MAX } from "../core/limits.ts";
import { namedMethods } from "../core/method-overrides.ts";
import { isUnder, normalPrefix, readHost } from "../core/target.ts";
import { isZone, NO_ZONE, windowCheck } from "../core/zones.ts";
import { type Counter, compileCounters, toRuleCount } from "./counting.ts";
import { compileExpression, type Expression, ExpressionError } from "./expression.ts";
import { AMBIGUOUS_PATH, type CallFacts, foldPath, Undecidable } from "./facts.ts";
import { type Need, Needs } from "./needs.ts";
import { type ConditionName, ruleDefinition, RuleDefinition, UNREADABLE_RULE } from "./schemas.ts";

/** A rule that is ready to judge requests. */
export interface CompiledRule {
  readonly id: string;
  /** Grows with each change of the rule. */
  readonly version: number;
  /** With hosts and path in their normal form. */
  readonly definition: RuleDefinition;
  readonly applies: Condition;
  /** A request without one of these surely doesn't match. Those of the expression are separate, since they read the body. */
  readonly needs: Readonly<Record<"fields" | "expression", readonly Need[]>>;
  /** What happens to a request that matches. */
  readonly ruling: Ruling;
  /** If there are any, the rule applies only to calls that go beyond one of them. */
  readonly counters: readonly (Counter & { readonly ruling: Ruling })[];
}

/** Throws `Undecidable` if it is impossible to tell whether it holds. */
type Condition = (facts: CallFacts) => boolean;

const checkDefinition = bodyCheck(RuleDefinition);

/** Compiles a definition. Throws `validation_error` with everything that is wrong with it. */
export function ruleFrom(given: unknown, id: string, version: number): CompiledRule {
  const written = checkDefinition(given);
  const { hosts, path, effect, more_than: calls, sum } = written;
  const issues: Issue[] = [];
  const definition = {
    ...written,
    ...(hosts !== undefined && { hosts: hosts.map((host, at) => normalHost(host, at, issues)) }),
    ...(path !== undefined && { path: normalPath(path, issues) }),
  };
  const counters = compileCounters(definition, issues);
  if (effect === "allow" && (calls ?? sum) !== undefined) {
    const message = "Must be hold or refuse: a rule with `sum` or `more_than` is about the call that goes beyond.";
    issues.push({ field: "effect", message });
  }
  const expression = definition.when === undefined ? undefined : expressionIn(definition.when, issues);
  const applies = all(compileConditions(definition, expression?.holds, issues));
  if (issues.length > 0) throw invalidFields(issues);
  const rule = { id, version, definition };
  const counting = counters.map((one) => ({ ...one, ruling: toRuling(rule, one.goesBeyond, one.compares) }));
  const needs = { fields: fieldNeeds(definition), expression: expression?.needs ?? [] };
  return { ...rule, applies, needs, ruling: toRuling(rule), counters: counting };
}

/** Compiles a stored rule. If its row was altered in the database, the rule holds every call, and says so. */
export function storedRule(row: Pick<RuleRow, "definition" | "id" | "version">): CompiledRule {
  try {
    return ruleFrom(ruleDefinition(row), row.id, row.version);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return ruleFrom(UNREADABLE_RULE, row.id, row.version);
  }
}

function normalHost(text: string, at: number, issues: Issue[]): string {
  const wildcard = text.startsWith("*.") ? "*." : "";
  const read = readHost(text.slice(wildcard.length));
  if ("host" in read) return wildcard + read.host;
  issues.push({ field: `hosts.${at}`, message: read.problem });
  return text;
}

function normalPath(text: string, issues: Issue[]): string {
  const prefix = normalPrefix(text);
  if (prefix !== null) return prefix;
  const message =
    "Must begin with one slash, like /v1/payments, and have no query. Leave out white space, backslashes, semicolons, // and codes such as %2f or %25, which targets read in different ways.";
  issues.push({ field: "path", message });
  return text;
}

type Given = Required<Pick<RuleDefinition, ConditionName>>;

interface ConditionKind<Value> {
  /** Null: it is compiled, counted, or judged together with another one. */
  readonly holds: ((value: Value, facts: CallFacts) => boolean) | null;
  /** Whether the first value holds for every request for which the other one does. */
  readonly covers: (one: Value, other: Value) => boolean;
}

/** What each condition means, cheap ones first: most rules don't match most requests. */
const CONDITIONS: { readonly [Name in ConditionName]: ConditionKind<Given[Name]> } = {
  keys: { holds: (keys, { key }) => keys.some((id) => key.ids.has(id)), covers: coversList },
  methods: { holds: (methods, { action }) => methods.some((method) => method === action.method), covers: coversList },
  credentials: { holds: (names, { action }) => names.includes(action.credential), covers: coversList },
  body_kind: { holds: isOfKind, covers: (one, other) => one === other },
  body_bytes: {
    holds: ({ over }, { action }) => action.bodyBytes() > over,
    covers: (one, other) => one.over <= other.over,
  },
  between: { holds: null, covers: (one, other) => Bun.deepEquals(one, other) },
  hosts: { holds: null, covers: (one, other) => coversList(one, other, coversHost) },
  path: { holds: null, covers: (one, other) => isUnder({ path: other, isAmbiguous: false }, one) },
  when: { holds: null, covers: (one, other) => one === other },
  // A rule that counts lets later rules decide until its limit is reached.
  sum: { holds: null, covers: () => false },
  more_than: { holds: null, covers: () => false },
};

// Safe: these are its members.
const CONDITION_NAMES = Object.keys(CONDITIONS) as ConditionName[];

function compileConditions(
  definition: RuleDefinition,
  when: Condition | undefined,
  issues: Issue[],
): readonly Condition[] {
  const { between, hosts, path, effect } = definition;
  const conditions = [
    ...CONDITION_NAMES.map((name) => compileCondition(name, definition)),
    between && isWithin(between, issues),
    (hosts ?? path) !== undefined || effect === "allow" ? isAbout(definition) : undefined,
    when,
  ];
  return conditions.filter((condition) => condition !== undefined);
}

/* oxlint-disable typescript/no-unnecessary-type-parameters -- `Name` ties the value to its kind. */
function compileCondition<Name extends ConditionName>(
  name: Name,
  { [name]: value }: Partial<Given>,
): Condition | undefined {
  const { holds } = CONDITIONS[name];
  return value === undefined || holds === null ? undefined : (facts) => holds(value, facts);
}

function coversMember<Name extends ConditionName>(
  name: Name,
  { [name]: one }: Partial<Given>,
  { [name]: other }: Partial<Given>,
): boolean {
  return one === undefined || (other !== undefined && CONDITIONS[name].covers(one, other));
}
/* oxlint-enable typescript/no-unnecessary-type-parameters */

/** The needs of those conditions that compare with a list of values. */
function fieldNeeds({ keys, methods, credentials, hosts, path }: RuleDefinition): readonly Need[] {
  const needs: readonly (Need | undefined)[] = [
    keys && need("keys", keys, ({ key }) => [...key.ids]),
    methods && need("methods", methods, ({ action }) => [action.method]),
    credentials && need("credentials", credentials, ({ action }) => [action.credential]),
    hosts?.every((host) => !host.startsWith("*")) ? need("hosts", hosts, namesOfHost) : undefined,
    path === undefined || foldPath(path).includes("*") ? undefined : need("path", startsOfPrefix(path), startsOfPath),
  ];
  return needs.filter((one) => one !== undefined);
}

function need(name: string, literals: readonly string[], read: Need["read"]): Need {
  return { name, compares: "==", literals, read };
}

/** Every path that `isAbout` takes to be under the prefix begins with one of these. */
function startsOfPrefix(path: string): readonly string[] {
  const prefix = path.endsWith("/") ? path.slice(0, -1) : path;
  return [prefix, foldPath(prefix)].flatMap((one) => pathStarts(one).slice(-1));
}

function startsOfPath({ action }: CallFacts): readonly string[] {
  const target = action.target();
  if (target.isAmbiguous) return [];
  return [...new Set([target.path, action.foldedPath(), action.barePath()])].flatMap(pathStarts);
}

/** The path's beginnings, each one segment longer. */
function pathStarts(path: string): readonly string[] {
  const starts = [""];
  for (let end = 0; end !== -1 && starts.length <= RULE_NEEDS_MAX;) {
    end = path.indexOf("/", end + 1);
    starts.push(end === -1 ? path : path.slice(0, end));
  }
  return starts;
}

function namesOfHost({ action }: CallFacts): readonly string[] {
  const { host, hostname } = action.target();
  return [host, hostname];
}

const RULED_KINDS = { none: "none", body: "json", json: "json", form: "form", text: "text", base64: "base64" } as const;

/** Whether the body is of this kind. A body given as text may be JSON or a form to its target. */
function isOfKind(kind: Given["body_kind"], { request, action }: CallFacts): boolean {
  if (kind === RULED_KINDS[usedBodyMember(request) ?? "none"]) return true;
  if (kind === "json" || kind === "form") action.checkBodyKind();
  return false;
}

function expressionIn(when: string, issues: Issue[]): Expression | undefined {
  try {
    return compileExpression(when);
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    const before = when.slice(0, error.offset).split("\n");
    const column = (before.at(-1) ?? "").length + 1;
    issues.push({ field: "when", message: `${error.message} (Line ${before.length}, column ${column}.)` });
    return undefined;
  }
}

/** Joins conditions by "and". One that is false decides, even if another is undecidable. */
function all(conditions: readonly Condition[]): Condition {
  const [first, ...others] = conditions;
  // A shortcut, since most rules have only one condition.
  if (first !== undefined && others.length === 0) return first;
  return (facts) => {
    let undecidable: Undecidable | null = null;
    for (const condition of conditions) {
      try {
        if (!condition(facts)) return false;
      } catch (error) {
        if (!(error instanceof Undecidable)) throw error;
        undecidable ??= error;
      }
    }
    if (undecidable !== null) throw undecidable;
    return true;
  };
}

function isWithin(window: NonNullable<RuleDefinition["between"]>, issues: Issue[]): Condition {
  const wrong = (member: string, message: string) => issues.push({ field: `between.${member}`, message });
  if (window.from === window.to) wrong("to", "Must differ from `from`: 00:00 to 24:00 is a whole day.");
  if (window.from === "24:00") wrong("from", "Must be before 24:00.");
  if (!isZone(window.timezone)) wrong("timezone", NO_ZONE);
  const isIn = windowCheck(window);
  return ({ now }) => isIn(now);
}

/** Checks host and path. Where a target takes an ambiguous path is unknown, so none is allowed, and rules about paths hold it. */
function isAbout({ hosts, path, effect }: RuleDefinition): Condition {
  const foldedPrefix = foldPath(path ?? "");
  return ({ action }) => {
    const target = action.target();
    if (hosts?.some((one) => isHost(one, target.host) || isHost(one, target.hostname)) === false) return false;
    if (target.isAmbiguous) {
      if (effect === "allow" || path === undefined) return effect !== "allow";
      throw new Undecidable(AMBIGUOUS_PATH);
    }
    if (path === undefined || isUnder(target, path)) return true;
    if (effect === "allow") return false;
    // Many targets read `/Pay` as `/pay`, and Rails and others read `/pay.json` as `/pay`.
    if (isUnder({ path: action.foldedPath(), isAmbiguous: false }, foldedPrefix))
      throw new Undecidable("The path differs from that of the rule only by case, which some targets ignore.");
    if (!isUnder({ path: action.barePath(), isAmbiguous: false }, foldedPrefix)) return false;
    throw new Undecidable(
      "The path differs from that of the rule only by its ending, or a script in front, which some targets leave out.",
    );
  };
}

/** Whether a host name, with or without a port, matches one that a rule names, such as `*.example.com`. */
function isHost(named: string, name: string): boolean {
  return named.startsWith("*") ? name.endsWith(named.slice(1)) : name === named;
}

/** What rules say about a request as one method: the ruling of the first that applies, and the counts of those before it. */
export interface Walk {
  /** `ruling` applies if the request goes beyond `count`. */
  readonly counted: readonly { readonly count: RuleCount; readonly ruling: Ruling }[];
  /** Null: no rule applies. */
  readonly ruling: Ruling | null;
}

/** The rules of an account in their order. */
export class CompiledRules {
  readonly rules: readonly CompiledRule[];
  readonly #fields: Needs;
  readonly #expressions: Needs;

  constructor(rules: readonly CompiledRule[]) {
    this.rules = rules;
    this.#fields = new Needs(rules.map(({ needs }) => needs.fields));
    this.#expressions = new Needs(rules.map(({ needs }) => needs.expression));
  }

  /**
   * Judges a request once for each method that it may count as. A rule that is undecidable holds it. A step is one rule, which takes
   * up to `RULE_STEPS_MAX`.
   */
  *walks(facts: CallFacts, hashText: (text: string) => string): Generator<undefined, readonly Walk[]> {
    if (this.rules.length === 0) return [];
    const walks: Walk[] = [];
    for (const method of new Set(namedMethods(facts.request))) {
      facts.action.countsAs = method;
      walks.push(yield* this.#walk(facts, hashText));
    }
    return walks;
  }

  *#walk(facts: CallFacts, hashText: (text: string) => string): Generator<undefined, Walk> {
    const [hasFields, hasRest] = [this.#fields.metBy(facts), this.#expressions.metBy(facts)];
    const counted: Walk["counted"][number][] = [];
    for (let at = 0; at < this.rules.length; at += 1) {
      const rule = hasFields(at) && hasRest(at) ? this.rules[at] : undefined;
      if (rule === undefined) continue;
      yield;
      try {
        if (!rule.applies(facts)) continue;
        if (rule.counters.length === 0) return { counted, ruling: rule.ruling };
        for (const counter of rule.counters)
          counted.push({ count: toRuleCount(counter, rule.id, facts, hashText), ruling: counter.ruling });
      } catch (error) {
        if (!(error instanceof Undecidable)) throw error;
        const ruling = toRuling(rule, `${UNDECIDABLE} ${error.message}`);
        return { counted, ruling: { ...ruling, effect: "hold", isUndecidable: true } };
      }
    }
    return { counted, ruling: null };
  }
}

const UNDECIDABLE = "It can't be decided, so a person decides.";

/** Whether a ruling's reason says that its rule can't be decided. */
export function saysUndecidable({ reason }: Pick<Ruling, "reason">): boolean {
  return reason?.startsWith(UNDECIDABLE) === true;
}

/** Agents read its reason: `why`, then the owner's message, then what the rule compares, but that only with `explain`. */
function toRuling(
  { id, version, definition }: Pick<CompiledRule, "id" | "version" | "definition">,
  why?: string,
  compares?: string,
): Ruling {
  const { name, effect, message, explain, when } = definition;
  const compared = explain === true ? [when === undefined ? undefined : `It compares ${when}`, compares] : [];
  const said = [why, message, ...compared].filter((text) => text !== undefined);
  // Some owners write messages without a full stop.
  const sentences = said.map((text, at) => (at + 1 === said.length || /[.!?…]$/.test(text) ? text : `${text}.`));
  const reason = said.length === 0 ? null : sentences.join(" ");
  return { effect, rule: { id, name, version }, reason, isUndecidable: false };
}

/**
 * Decides on a request by the first rule that applies; if it may count as several methods, by the strictest of their rulings. Also
 * returns what it adds to which counts, and the count beyond which it goes. What a rule without a count refuses is refused whatever
 * was counted, and adds nothing.
 */
export function decideByWalks(
  walks: readonly Walk[],
  isBeyond: (count: RuleCount) => boolean,
): Pick<Judgement, "ruling" | "counts" | "reached"> {
  const isRefused = walks.some(isRefusal);
  const fates = walks.map(({ counted, ruling }) => {
    if (isRefused) return { counted: [], ruling, reached: null };
    const at = counted.findIndex(({ count }) => isBeyond(count));
    const beyond = counted[at];
    if (beyond === undefined) return { counted, ruling, reached: null };
    return { counted: counted.slice(0, at), ruling: beyond.ruling, reached: beyond.count };
  });
  const counts = new Map(fates.flatMap(({ counted }) => counted.map(({ count }) => [countName(count), count])));
  const { ruling, reached } = strictest(fates) ?? { ruling: null, reached: null };
  return { ruling, reached, counts: [...counts.values()] };
}

/** Whether a rule refuses the request whatever was counted. */
export function isRefusal({ ruling }: Walk): boolean {
  return ruling?.effect === "refuse";
}

// Rules that never apply

/**
 * Rules that an earlier one keeps from applying, by their ids, and what to say of them. Of very many with long lists or paths, the
 * first. `id`: asks only about this rule.
 */
export function deadRules(rules: readonly CompiledRule[], id: string | null = null): ReadonlyMap<string, string> {
  const dead = new Map<string, string>();
  const earlier: CompiledRule[] = [];
  let stepsLeft = RULE_WARNING_STEPS_MAX;
  const covers = ({ definition: one }: CompiledRule, { definition: other }: CompiledRule) => {
    stepsLeft -= 1;
    if (stepsLeft < 0 || !SHORT_CONDITIONS.every((name) => coversMember(name, one, other))) return false;
    stepsLeft -= longComparisons(one, other);
    return stepsLeft >= 0 && LONG_CONDITIONS.every((name) => coversMember(name, one, other));
  };
  for (const rule of rules) {
    const before = id === null || id === rule.id ? earlier.find((other) => covers(other, rule)) : undefined;
    if (before !== undefined) dead.set(rule.id, deadBehind(before, rule));
    // A rule with counters lets later rules decide until its limit is reached.
    else if (rule.counters.length === 0) earlier.push(rule);
  }
  return dead;
}

const LONG_LISTS = ["keys", "credentials", "hosts"] as const;

/** Conditions that are compared last, since each may be long. */
const LONG_CONDITIONS: readonly ConditionName[] = [...LONG_LISTS, "path"];

const SHORT_CONDITIONS = CONDITION_NAMES.filter((name) => !LONG_CONDITIONS.includes(name));

/** The most comparisons of list members, and characters of a path that is compared by its segments. */
function longComparisons(one: RuleDefinition, other: RuleDefinition): number {
  const ofLists = LONG_LISTS.map((name) => (one[name]?.length ?? 0) * (other[name]?.length ?? 0));
  const ofPath = one.path?.includes("*") === true ? (other.path?.length ?? 0) : 0;
  return ofLists.reduce((sum, count) => sum + count, ofPath);
}

function deadBehind(before: CompiledRule, rule: CompiledRule): string {
  const name = JSON.stringify(before.definition.name);
  // An `allow` doesn't apply to ambiguous paths.
  return before.definition.effect === "allow" && rule.definition.effect !== "allow"
    ? `Applies only where a path can be read in different ways: ${name} before it allows all other calls that it is about.`
    : `Never applies: ${name} before it decides on all calls that it is about.`;
}

function coversList<Item>(
  one: readonly Item[],
  other: readonly Item[],
  isSame = (item: Item, of: Item) => item === of,
): boolean {
  return other.every((item) => one.some((of) => isSame(of, item)));
}

/** A rule's host without a port covers the same host with one. */
function coversHost(one: string, other: string): boolean {
  return isHost(one, other) || isHost(one, other.replace(/:\d+$/, ""));
}
