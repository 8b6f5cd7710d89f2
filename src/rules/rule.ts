import Type, { type Static } from "typebox";
import { credentialNameSchema } from "../api/action-schemas.ts";
import {
  choice,
  compile,
  keyIdSchema,
  nameSchema,
  yesNo,
  bodyCheck,
  requestObject,
  shortText,
  shortList,
  integer,
} from "../api/schema-helpers.ts";
import { HTTP_METHODS } from "../core/action.ts";
import { type BodyMember, bodyMemberOf } from "../core/body.ts";
import { invalidFields, type Issue } from "../core/domain-error.ts";
import { isStorableText } from "../core/json.ts";
import {
  BUDGET_COUNT_MAX,
  BUDGET_MEMBER_CHARS_MAX,
  BUDGET_MINUTES_MAX,
  REQUEST_BODY_BYTES_MAX,
  RULE_EXPRESSION_BYTES_MAX,
  RULE_LIST_MAX,
  RULE_MESSAGE_CHARS_MAX,
  RULE_PATH_CHARS_MAX,
} from "../core/limits.ts";
import { methodsOf, OTHER_METHOD } from "../core/method-overrides.ts";
import { isUnder, normalPrefix, type SentTarget } from "../core/sent-target.ts";
import type { RuleCount } from "../core/rule-count.ts";
import { readHost } from "../core/target.ts";
import { type Counter, countOf, namesIn, pathIn, unitsIn } from "./counting.ts";
import { compileExpression, evaluate, type Expression } from "./expression.ts";
import { type ActionFacts, AMBIGUOUS_PATH, type CallFacts } from "./facts.ts";
import { isZone, PERIODS, wallTime, WEEKDAYS, type Weekday } from "./zones.ts";

export const RULE_EFFECTS = ["allow", "hold", "refuse"] as const;

export type RuleEffect = (typeof RULE_EFFECTS)[number];

/** What a body is, as a rule names it: `json` is also one that was given as `body`. */
export const RULED_BODIES = ["none", "json", "form", "text", "base64"] as const;

type RuledBody = (typeof RULED_BODIES)[number];

/** A daily window of a zone's clocks. One that ends before it begins goes on into the next day. */
interface DailyWindow {
  /** Minutes of the day; the last is not part of it. */
  readonly from: number;
  readonly to: number;
  /** On which it begins. */
  readonly days: ReadonlySet<Weekday>;
  readonly timezone: string;
}

/** What an account says about its calls. It applies where each condition holds; one that is null always does. */
export interface CompiledRule {
  readonly id: string;
  /** Changes with each change of the rule. */
  readonly version: number;
  readonly name: string;
  readonly effect: RuleEffect;
  readonly when: Expression | null;
  /** Ids. */
  readonly keys: ReadonlySet<string> | null;
  readonly methods: ReadonlySet<string> | null;
  readonly hosts: readonly HostPattern[] | null;
  readonly path: PathPrefix | null;
  /** Names. */
  readonly credentials: ReadonlySet<string> | null;
  readonly bodyKind: RuledBody | null;
  readonly bodyOver: number | null;
  readonly between: DailyWindow | null;
  /** Where there are some, the rule applies only to the call that goes beyond one of them. */
  readonly counters: readonly Counter[];
  /** For the agent whose call is held or refused. */
  readonly message: string | null;
  /** Agents are told why, with what the rule compares. */
  readonly explain: boolean;
}

interface PathPrefix {
  /** As `normalPrefix` writes it. */
  readonly prefix: string;
  readonly lower: string;
}

export interface HostPattern {
  /** With a port: that one only. Without: each. */
  readonly host: string;
  readonly isSubdomains: boolean;
}

const TIME = "^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$";

const SAME =
  "What calls have in common that are counted together: their key, their host, or a value of metadata, by its name. Default: all calls that the other conditions hold for are counted together.";

const ruleMembers = {
  name: nameSchema("What people and agents know the rule by."),
  effect: choice(
    RULE_EFFECTS,
    "allow: no later rule is asked; hold: a person decides; refuse: nothing is created.",
    "hold",
  ),
  when: Type.Optional(
    shortText(
      RULE_EXPRESSION_BYTES_MAX,
      "A condition in CEL over action (method, host, path, query, headers, body, title, metadata, credential), key (id, name, role) and now.",
      "action.body.amount > 5000",
    ),
  ),
  keys: Type.Optional(
    Type.Array(keyIdSchema, { minItems: 1, maxItems: RULE_LIST_MAX, description: "Keys whose calls it is about." }),
  ),
  methods: Type.Optional(
    shortList(
      Type.Enum([...HTTP_METHODS]),
      HTTP_METHODS.length,
      "Methods. A request that names another method, as by X-HTTP-Method-Override, counts as each of them.",
      ["POST", "DELETE"],
    ),
  ),
  hosts: Type.Optional(
    shortList(
      Type.String({ minLength: 1, maxLength: 260 }),
      RULE_LIST_MAX,
      "Hosts, or *.example.com for all that end so. Without a port: at each.",
      ["api.example.com", "*.example.org"],
    ),
  ),
  path: Type.Optional(
    shortText(
      RULE_PATH_CHARS_MAX,
      "Beginning of the path as it is sent, in whole segments: /pay is about /pay/1 and not about /payments. * stands for one segment.",
      "/v1/users/*/keys",
    ),
  ),
  credentials: Type.Optional(
    shortList(
      Type.String({ ...credentialNameSchema, title: "RuleCredential" }),
      RULE_LIST_MAX,
      "Names of credentials that the call is made with.",
      ["stripe-live"],
    ),
  ),
  body_kind: Type.Optional(choice(RULED_BODIES, "What the body is.", "json")),
  body_bytes: Type.Optional(
    Type.Object(
      {
        over: integer(0, REQUEST_BODY_BYTES_MAX, "The body has more bytes.", 10_000),
      },
      { additionalProperties: false, description: "Size of the body.", examples: [{ over: 10_000 }] },
    ),
  ),
  between: Type.Optional(
    Type.Object(
      {
        from: Type.String({ pattern: TIME, description: "Begins, by the clocks of the zone.", examples: ["18:00"] }),
        to: Type.String({
          pattern: TIME,
          description: "Ends. Where it is before `from`, on the next day.",
          examples: ["08:00"],
        }),
        days: Type.Optional(
          shortList(Type.Enum([...WEEKDAYS]), WEEKDAYS.length, "Days on which it begins; without it each.", [
            "mon",
            "tue",
          ]),
        ),
        timezone: shortText(64, "Name in the time zone database.", "Europe/Berlin"),
      },
      {
        additionalProperties: false,
        description: "Time of day.",
        examples: [{ from: "18:00", to: "08:00", timezone: "Europe/Berlin" }],
      },
    ),
  ),
  more_than: Type.Optional(
    Type.Object(
      {
        count: integer(1, BUDGET_COUNT_MAX, "So many calls pass.", 20),
        minutes: integer(1, BUDGET_MINUTES_MAX, "Within so many minutes.", 5),
        same: Type.Optional(
          Type.String({
            pattern: `^(key|host|request|metadata\\..{1,${BUDGET_MEMBER_CHARS_MAX}})$`,
            description: `${SAME} request: key, method, host, path and body, where UUIDs and runs of six or more digits may differ.`,
            examples: ["request", "metadata.customer"],
          }),
        ),
      },
      {
        additionalProperties: false,
        description:
          "The rule applies only to the call that is one more than these. Each create and retry counts unless a rule holds it for being one more.",
        examples: [{ count: 20, minutes: 5, same: "request" }],
      },
    ),
  ),
  sum: Type.Optional(
    Type.Object(
      {
        member: Type.String({
          minLength: 1,
          maxLength: BUDGET_MEMBER_CHARS_MAX,
          description:
            "The number in the body that is added up, by its path. A call where it is missing, negative or no number is held.",
          examples: ["body.amount", "body.items[0].price"],
        }),
        per: choice(PERIODS, "From when to when, by the calendar and the clocks of the zone.", "day"),
        timezone: shortText(64, "Name in the time zone database.", "Europe/Berlin"),
        limit: Type.Number({
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description: "The most that passes, with at most 9 decimals.",
          examples: [10_000],
        }),
        same: Type.Optional(
          Type.String({
            pattern: `^(key|host|metadata\\..{1,${BUDGET_MEMBER_CHARS_MAX}})$`,
            description: SAME,
            examples: ["key", "metadata.customer"],
          }),
        ),
      },
      {
        additionalProperties: false,
        description:
          "A budget: the rule applies only to the call with which the sum would be more than the limit, and that call is not added.",
        examples: [{ member: "body.amount", per: "day", timezone: "Europe/Berlin", limit: 10_000 }],
      },
    ),
  ),
  message: Type.Optional(
    Type.Refine(
      shortText(
        RULE_MESSAGE_CHARS_MAX,
        "What the agent is told whose call is held or refused.",
        "Ask the finance team first.",
      ),
      isStorableText,
      () => "Must be well-formed Unicode without NUL.",
    ),
  ),
  explain: Type.Optional(yesNo("Agents are told why, with what the rule compares.", false)),
};

/** What a rule says, on the wire and in its row. */
export const RuleDefinition = requestObject(
  "RuleDefinition",
  "A rule. It applies where all of its conditions hold; without a condition always.",
  ruleMembers,
  { examples: [{ name: "Big payments", effect: "hold", path: "/payments", when: "action.body.amount > 5000" }] },
);

export type RuleDefinition = Static<typeof RuleDefinition>;

const checkDefinition = bodyCheck(RuleDefinition);
const STORED = compile(RuleDefinition);

/** The rule that a definition makes. Throws `validation_error` with everything that is wrong with it. */
export function ruleFrom(given: unknown, id: string, version: number): CompiledRule {
  const definition = checkDefinition(given);
  const issues: Issue[] = [];
  const rule = compiledRule(definition, id, version, issues);
  if (issues.length > 0) throw invalidFields(issues);
  return rule;
}

/** The rule in a row. One that was altered in the database holds every call, and says so. */
export function storedRule(text: string, id: string, version: number): CompiledRule {
  try {
    const definition: unknown = JSON.parse(text);
    const issues: Issue[] = [];
    const rule = STORED.accepts(definition) ? compiledRule(definition, id, version, issues) : null;
    if (rule !== null && issues.length === 0) return rule;
  } catch {
    // No JSON: the same.
  }
  return compiledRule({ name: "A rule that can't be read", effect: "hold" }, id, version, []);
}

function compiledRule(definition: RuleDefinition, id: string, version: number, issues: Issue[]): CompiledRule {
  const { name, effect, when, keys, methods, hosts, path, message = null, explain = false } = definition;
  const { credentials, body_kind: bodyKind = null, body_bytes: bodyBytes, between } = definition;
  return {
    id,
    version,
    name,
    effect,
    when: when === undefined ? null : expressionIn(when, issues),
    keys: keys === undefined ? null : new Set(keys),
    methods: methods === undefined ? null : new Set(methods),
    hosts: hosts?.flatMap((host, at) => hostPattern(host, at, issues)) ?? null,
    path: path === undefined ? null : prefixIn(path, issues),
    credentials: credentials === undefined ? null : new Set(credentials),
    bodyKind,
    bodyOver: bodyBytes?.over ?? null,
    between: between === undefined ? null : windowIn(between, issues),
    counters: countersIn(definition, issues),
    message,
    explain,
  };
}

function expressionIn(text: string, issues: Issue[]): Expression | null {
  const compiled = compileExpression(text);
  if ("expression" in compiled) return compiled.expression;
  const { message, line, column } = compiled.error;
  issues.push({ field: "when", message: `${message} (Line ${line}, column ${column}.)` });
  return null;
}

function hostPattern(text: string, at: number, issues: Issue[]): HostPattern[] {
  const isSubdomains = text.startsWith("*.");
  const read = readHost(isSubdomains ? text.slice(2) : text);
  if ("host" in read) return [{ host: read.host, isSubdomains }];
  issues.push({ field: `hosts.${at}`, message: read.problem });
  return [];
}

function prefixIn(text: string, issues: Issue[]): PathPrefix | null {
  const prefix = normalPrefix(text);
  if (prefix === null) {
    const message =
      "Must begin with one slash, and have no query, white space, backslash, semicolon, //, %2f, %5c, %2e, %25 or other odd code.";
    issues.push({ field: "path", message });
    return null;
  }
  return { prefix, lower: prefix.toLowerCase() };
}

type WindowJson = NonNullable<RuleDefinition["between"]>;

function windowIn({ from, to, days = [...WEEKDAYS], timezone }: WindowJson, issues: Issue[]): DailyWindow {
  if (from === to)
    issues.push({ field: "between.to", message: "Must differ from `from`: 00:00 to 24:00 is a whole day." });
  if (from === "24:00") issues.push({ field: "between.from", message: "Must be before 24:00." });
  if (!isZone(timezone)) {
    issues.push({ field: "between.timezone", message: NO_ZONE });
  }
  return { from: minuteOf(from), to: minuteOf(to), days: new Set(days), timezone };
}

function countersIn({ sum, more_than: calls, effect }: RuleDefinition, issues: Issue[]): Counter[] {
  const counters: Counter[] = [];
  if (calls !== undefined) {
    const { count, minutes, same = null } = calls;
    counters.push({ kind: "calls", count, minutes, same });
  }
  if (sum !== undefined) {
    const { member, per, timezone, same = null } = sum;
    const path = pathIn(member);
    const limitText = String(sum.limit);
    const limit = unitsIn(limitText);
    if (path === null) {
      issues.push({
        field: "sum.member",
        message: "Must be a path in the body, like body.amount or body.items[0].price.",
      });
    }
    if (limit === null) issues.push({ field: "sum.limit", message: "Has more than 9 decimals." });
    if (!isZone(timezone)) issues.push({ field: "sum.timezone", message: NO_ZONE });
    if (path !== null && limit !== null) {
      counters.push({ kind: "sum", member, path, names: namesIn(path), per, timezone, limit, limitText, same });
    }
  }
  if (counters.length > 0 && effect === "allow") {
    const message = "Must be hold or refuse: a rule with `sum` or `more_than` is about the call that goes beyond.";
    issues.push({ field: "effect", message });
  }
  return counters;
}

const NO_ZONE = "Must be a name in the time zone database, like Europe/Berlin.";

function minuteOf(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}

/** What the rules of an account say of a request. */
export interface RuleDecision {
  readonly rule: CompiledRule;
  readonly effect: RuleEffect;
  /** Why nobody can tell whether the rule applies, so that a person decides: sentences. Null: it does. */
  readonly undecidable: string | null;
  /** Beyond which of its counts the request goes; null: the rule counts nothing. */
  readonly beyond: RuleCounter | null;
}

/** A count of a rule that a request adds to. */
export interface RuleCounter {
  readonly rule: CompiledRule;
  readonly counter: Counter;
  readonly count: RuleCount;
}

/** What rules say of a request that counts as one method: the first that applies, and the counts that it has to fit in before. */
export interface Walk {
  readonly counters: readonly RuleCounter[];
  /** Null: none applies. */
  readonly decision: RuleDecision | null;
}

/** Asks rules in their order, for each method that the request counts as. A rule that can't be decided holds it. */
export function askRules(
  rules: readonly CompiledRule[],
  facts: CallFacts,
  hashOf: (text: string) => string,
): readonly Walk[] {
  if (rules.length === 0) return [];
  return [...new Set(methodsOf(facts.request))].map((method) => askAs(method, rules, facts, hashOf));
}

/**
 * What becomes of the request: by the first rule that applies, or the strictest of these if it counts as several methods. And what it
 * adds to which counts.
 */
export function decideByWalks(
  walks: readonly Walk[],
  isBeyond: (count: RuleCount) => boolean,
): { readonly decision: RuleDecision | null; readonly counts: readonly RuleCount[] } {
  let decision: RuleDecision | null | undefined;
  const counts = new Map<string, RuleCount>();
  for (const walk of walks) {
    const at = walk.counters.findIndex(({ count }) => isBeyond(count));
    const first = walk.counters[at];
    const one =
      first === undefined
        ? walk.decision
        : { rule: first.rule, effect: first.rule.effect, undecidable: null, beyond: first };
    if (decision === undefined || strictness(one) > strictness(decision)) decision = one;
    const before = first === undefined ? walk.counters : walk.counters.slice(0, at);
    for (const { count } of before) counts.set(`${count.ruleId} ${count.subject}`, count);
  }
  return { decision: decision ?? null, counts: [...counts.values()] };
}

/** Where a request is allowed as one method and no rule applies to the other, no rule applies to it. */
function strictness(decision: RuleDecision | null): number {
  return decision === null ? 1 : { allow: 0, hold: 2, refuse: 3 }[decision.effect];
}

function askAs(
  method: string,
  rules: readonly CompiledRule[],
  facts: CallFacts,
  hashOf: (text: string) => string,
): Walk {
  facts.action.countsAs = method;
  const counters: RuleCounter[] = [];
  for (const rule of rules) {
    const applies = appliesTo(rule, facts);
    if (applies === false) continue;
    if (applies !== true) return { counters, decision: undecided(rule, applies.undecidable) };
    if (rule.counters.length === 0) {
      return { counters, decision: { rule, effect: rule.effect, undecidable: null, beyond: null } };
    }
    for (const counter of rule.counters) {
      const count = countOf(counter, rule.id, facts, hashOf);
      if ("undecidable" in count) return { counters, decision: undecided(rule, count.undecidable) };
      counters.push({ rule, counter, count });
    }
  }
  return { counters, decision: null };
}

function undecided(rule: CompiledRule, why: string): RuleDecision {
  return { rule, effect: "hold", undecidable: `It can't be decided, so a person decides. ${why}`, beyond: null };
}

type Applies = boolean | { readonly undecidable: string };

/** What is cheap comes first: most rules are not about most requests. One condition that fails decides, whatever others say. */
function appliesTo(rule: CompiledRule, facts: CallFacts): Applies {
  const { request, action, key, now } = facts;
  if (rule.keys?.isDisjointFrom(key.ids) === true) return false;
  const byMethod = rule.methods === null || hasMethod(rule.methods, action.countsAs);
  if (byMethod === false) return false;
  if (rule.credentials !== null && !rule.credentials.has(action.credential)) return false;
  if (rule.bodyKind !== null && rule.bodyKind !== bodyKindOf(bodyMemberOf(request))) return false;
  if (rule.bodyOver !== null && action.bodyBytes <= rule.bodyOver) return false;
  if (rule.between !== null && !isWithin(rule.between, now)) return false;
  const byTarget = isAbout(rule, action);
  if (byTarget === false) return false;
  const byExpression = rule.when === null || evaluate(rule.when, facts);
  if (byExpression === false) return false;
  return [byMethod, byTarget, byExpression].find((one) => one !== true) ?? true;
}

function hasMethod(methods: ReadonlySet<string>, method: string): Applies {
  return method === OTHER_METHOD
    ? { undecidable: "The request names a method that is not known." }
    : methods.has(method);
}

function bodyKindOf(member: BodyMember | null): RuledBody {
  if (member === null) return "none";
  return member === "body" ? "json" : member;
}

/** Nobody can tell where a target takes an ambiguous path: no such path is allowed, and a rule about paths holds it. */
function isAbout({ hosts, path, effect }: CompiledRule, action: ActionFacts): Applies {
  const { target } = action;
  // The row was altered in the database: such a URL is not sent.
  if (target === null) return { undecidable: "Its URL can't be read." };
  if (hosts !== null && !hosts.some((one) => isHost(one, target))) return false;
  if (!target.isAmbiguous) {
    if (path === null) return true;
    // Many targets ignore the case of a path: `/Pay` is `/pay` there.
    if (!isUnder({ path: action.lowerPath, isAmbiguous: false }, path.lower)) return false;
    if (isUnder(target, path.prefix)) return true;
    return effect === "allow" ? false : { undecidable: OTHER_CASE };
  }
  if (effect === "allow") return false;
  return path === null ? true : { undecidable: AMBIGUOUS_PATH };
}

const OTHER_CASE = "The path differs from that of the rule only by case, which some targets ignore.";

function isHost({ host, isSubdomains }: HostPattern, target: SentTarget): boolean {
  const of = (name: string) => (isSubdomains ? name.endsWith(`.${host}`) : name === host);
  return of(target.host) || of(target.hostname);
}

/** By the clocks of the zone, so that it is right on days that change them. */
function isWithin({ from, to, days, timezone }: DailyWindow, now: Date): boolean {
  const { weekday, hour, minute } = wallTime(now, timezone);
  const at = hour * 60 + minute;
  if (from < to) return days.has(weekday) && from <= at && at < to;
  return (days.has(weekday) && from <= at) || (days.has(dayBefore(weekday)) && at < to);
}

function dayBefore(day: Weekday): Weekday {
  return WEEKDAYS.at(WEEKDAYS.indexOf(day) - 1) ?? day;
}
