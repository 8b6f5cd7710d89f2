import { type ASTNode, Environment, ParseError, TypeError as CheckError } from "@marcbachmann/cel-js";
import { RE2JS } from "re2js";
import { exactNumber, isExact, PLAIN_NUMBER } from "../core/decimal.ts";
import { foldName } from "../core/json-values.ts";
import {
  RULE_EXPRESSION_BYTES_MAX,
  RULE_LIST_MEMBERS_MAX,
  RULE_NEEDS_MAX,
  RULE_PATTERN_CHARS_MAX,
  RULE_PATTERN_SIZE_MAX,
  RULE_STEPS_MAX,
} from "../core/limits.ts";
import { isZone, wallTime } from "../core/zones.ts";
import { ActionFacts, type CallFacts, KeyFacts, type MemberNames, shown, Undecidable } from "./facts.ts";
import { COMPARE, isUnmet, type Literal, type Need } from "./needs.ts";

/** What is wrong with an expression and what to do about it. `offset`: after how many characters. */
export class ExpressionError extends Error {
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** A condition in CEL (cel.dev). */
export interface Expression {
  /** Throws `Undecidable` if it can't be decided, also beyond `RULE_STEPS_MAX`, or `RULES_STEPS_MAX` for all of a request. */
  readonly holds: (facts: CallFacts) => boolean;
  /** What a request needs for the expression to be true. */
  readonly needs: readonly Need[];
}

/** Compiles a condition. Throws `ExpressionError` with the first thing that is wrong. */
export function compileExpression(text: string): Expression {
  const { valueFor, ast, type, names } = compile(text);
  if (type !== "bool" && type !== "dyn") {
    throw new ExpressionError(
      `Must be true or false, and is of type ${type}. Compare it, as in action.body.amount > 100.`,
      0,
    );
  }
  const all = needsIn(ast, names, JSON.stringify(names));
  const [needs, others] = [all.slice(0, RULE_NEEDS_MAX), all.slice(RULE_NEEDS_MAX)];
  const holds = (facts: CallFacts): boolean => {
    if (others.some((need) => isUnmet(need, facts))) return false;
    const value = valueFor(facts);
    if (typeof value === "boolean") return value;
    throw new Undecidable("Its result is neither true nor false.");
  };
  return { holds, needs };
}

/** Compiles an expression of any type, such as a path in a body, with the same bounds. */
export function compileValue(text: string): (facts: CallFacts) => unknown {
  return compile(text).valueFor;
}

function compile(text: string) {
  try {
    if (Buffer.byteLength(text) > RULE_EXPRESSION_BYTES_MAX) {
      throw new ExpressionError(`Is longer than ${RULE_EXPRESSION_BYTES_MAX} bytes. Split it into two rules.`, 0);
    }
    const run = environment.parse(text);
    const { valid, type, error: fault } = run.check();
    const noted = new Map<string, string>();
    // Before the type errors, because `prepare` gives the clearer reason. For example, `matches` has correct types.
    prepare(run.ast, { names: noted, patterns: new Map(), loop: null });
    if (!valid) throw fault ?? new ExpressionError("Can't be checked.", 0);
    const names = [...noted];
    const valueFor = (facts: CallFacts): unknown => {
      const { action } = facts;
      action.names = names;
      const steps = Math.min(RULE_STEPS_MAX, action.stepsLeft);
      stepsLeft = steps;
      try {
        return run(facts);
      } catch (error) {
        throw error instanceof Undecidable ? error : new Undecidable(errorSentence(error));
      } finally {
        action.stepsLeft -= steps - Math.max(stepsLeft, 0);
      }
    };
    return { valueFor, ast: run.ast, type, names };
  } catch (error) {
    if (error instanceof ExpressionError) throw error;
    const isOfCel = error instanceof ParseError || error instanceof CheckError;
    throw new ExpressionError(celMessage(error), (isOfCel ? error.range?.start : null) ?? 0);
  }
}

/**
 * The comparisons with a literal, such as `action.body.amount > 100`, that an expression joins by `&&`: if one is false, so is the
 * whole. If the types differ, cel-js decides.
 */
function needsIn(node: ASTNode, names: MemberNames, among: string): readonly Need[] {
  if (node.op === "&&") return node.args.flatMap((part) => needsIn(part, names, among));
  if (!isComparing(node)) return [];
  const [left, { op, args: literal }] = node.args;
  const [root, member = "", ...path] = namesIn(left);
  if (op !== "value" || !(root === "action" || root === "key")) return [];
  // CEL orders texts in another way than JavaScript, so compare them only for equality.
  if (typeof literal !== "bigint" && !(typeof literal === "string" && /[!=]=/.test(node.op))) return [];
  const read = (facts: CallFacts): readonly Literal[] => {
    facts.action.names = names;
    let value: unknown = Reflect.get(facts[root], member);
    for (const name of path) value = value instanceof Map ? value.get(name) : undefined;
    return (typeof value === "bigint" || typeof value === "string") && typeof value === typeof literal ? [value] : [];
  };
  // Whether a body can be read depends on all names in the expression.
  const name = `${JSON.stringify([typeof literal, root, member, path])} ${among}`;
  return [{ name, read, compares: node.op, literals: [literal] }];
}

function isComparing(node: ASTNode): node is ASTNode & { readonly op: keyof typeof COMPARE } {
  return Object.hasOwn(COMPARE, node.op);
}

/** The names in a path such as `action.body.to`. If the node is no such path, the first name is empty. */
function namesIn(node: ASTNode): readonly string[] {
  if (node.op === ".") return [...namesIn(node.args[0]), node.args[1]];
  return [node.op === "id" ? node.args : ""];
}

const ACTION_MEMBERS = {
  method: "string",
  host: "string",
  path: "string",
  query: "map<string, string>",
  headers: "map<string, string>",
  body: "dyn",
  title: "string",
  metadata: "map<string, string>",
  credential: "string",
} satisfies Partial<Record<keyof ActionFacts, string>>;

const KEY_MEMBERS = { id: "string", name: "string", role: "string" };

const environment = new Environment({
  homogeneousAggregateLiterals: false,
  limits: { maxDepth: 64, maxAstNodes: 2_000 },
})
  .registerType("Action", { ctor: ActionFacts, fields: ACTION_MEMBERS })
  .registerType("Key", { ctor: KeyFacts, fields: KEY_MEMBERS })
  .registerVariable("action", "Action")
  .registerVariable("key", "Key")
  .registerVariable("now", "google.protobuf.Timestamp");

for (const [signature, run] of Object.entries({
  "like(string, string): bool": notCompiled,
  "number(dyn): dyn": numberIn,
  "google.protobuf.Timestamp.hour(string): int": (at: Date, zone: string) => BigInt(wallTime(at, zone).hour),
  "google.protobuf.Timestamp.minute(string): int": (at: Date, zone: string) => BigInt(wallTime(at, zone).minute),
  "google.protobuf.Timestamp.weekday(string): string": (at: Date, zone: string) => wallTime(at, zone).weekday,
})) {
  environment.registerFunction(signature, run, { async: false });
}

/** CEL doesn't mix integers and doubles, but the type of a member is known only when it is read. */
for (const [sign, compute] of Object.entries({
  "+": (a: number, b: number) => a + b,
  "-": (a: number, b: number) => a - b,
  "*": (a: number, b: number) => a * b,
  "/": (a: number, b: number) => a / b,
})) {
  environment.registerOperator(`int ${sign} double: double`, (a: bigint, b: number) => compute(double(a), b));
  environment.registerOperator(`double ${sign} int: double`, (a: number, b: bigint) => compute(a, double(b)));
}

function double(value: bigint): number {
  if (BigInt(Number(value)) === value) return Number(value);
  throw new Undecidable("It computes with a number that has too many digits.");
}

/** The number in a text, such as a field of a form. */
function numberIn(value: unknown): number | bigint {
  const number = typeof value === "string" && PLAIN_NUMBER.test(value) ? exactNumber(value) : value;
  if (typeof number === "number" || typeof number === "bigint") return number;
  throw new Undecidable("It uses number() on a value that is not a number.");
}

/** Never runs: `prepare` replaces it by the search for the compiled pattern. */
function notCompiled(): never {
  throw new Undecidable("Its pattern was not compiled.");
}

// What may stand in an expression

/** Every function that an expression may call. Others may be slow, or read texts more loosely than targets do. */
const FUNCTIONS = new Set(["has", "size", "string", "number", "like", "timestamp", "duration"]);
const MACROS = new Set(["all", "exists", "exists_one", "filter", "map"]);
const ZONED = new Set(["hour", "minute", "weekday"]);
const OF_TEXTS = ["size", "contains", "startsWith", "endsWith", "lowerAscii", "upperAscii", "trim"];
const METHODS = new Set([...MACROS, ...OF_TEXTS, ...ZONED]);
const VARIABLES = new Set(["action", "key", "now"]);
const COMPUTES = new Set(["+", "-", "*", "/", "%"]);
const COMPARES = new Set(["==", "!=", "in"]);

/** What to write instead of functions that other users of CEL know. */
const INSTEAD: readonly (readonly [names: RegExp, instead: string])[] = [
  [/^matches$/, "Write like(text, 'pattern'), which takes the same patterns and is never slow."],
  [/^(int|uint|double)$/, "Write number(text) for a number in a text."],
  [
    /^get(Hours|Minutes|DayOfWeek|Date|Month|FullYear)$/,
    "Write now.hour('Europe/Berlin'), now.minute('Europe/Berlin') or now.weekday('Europe/Berlin').",
  ],
];

/** The form of the text that these take. A zone is required, since without one the time would be in the server's zone. */
const LITERALS: ReadonlyMap<string, readonly [form: RegExp, example: string]> = new Map([
  [
    "timestamp",
    [
      /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,3})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/,
      "2026-01-31T09:00:00Z",
    ],
  ],
  ["duration", [/^-?(\d{1,6}h)?(\d{1,6}m)?(\d{1,9}s)?(?<=[hms])$/, "1h30m"]],
]);

interface Scope {
  /** Names of members that the expression reads, by their folded form. */
  readonly names: Map<string, string>;
  /** Patterns of `like`, and how many instructions each compiles to. */
  readonly patterns: Map<string, number>;
  /** The variable of the enclosing macro. */
  readonly loop: string | null;
}

/**
 * The internals of a cel-js node, which its types leave out: `evaluate` computes it, `handle` is the function that the checker chose
 * for its parts, and `meta.alternate` is the loop of a macro. The package is pinned, and a test fails if an update changes this.
 */
interface CheckedNode {
  handle?: Handle;
  evaluate: (evaluator: unknown, node: unknown, context: { getValue(name: "action"): ActionFacts }) => unknown;
  readonly meta: { readonly alternate?: CheckedNode };
}

type Handle = (...parts: readonly unknown[]) => unknown;

/** Makes a handle count what it costs. */
type Meter = (handle: Handle) => Handle;

/** Throws if something is not allowed, notes the names of members, and makes each part of an expression count its cost. */
function prepare(node: ASTNode, scope: Scope): void {
  const meter = findMeter(node, scope);
  // Safe: see the type.
  const own = node as unknown as CheckedNode;
  const checked = own.meta.alternate ?? own;
  // For each missing value, cel-js would count the lines of the text for an error message that nobody sees.
  Object.defineProperty(own, "input", { value: "" });
  if (meter !== null && checked.handle !== undefined) checked.handle = meter(checked.handle);
  if (node.op === "." && node.args[0].op === "id" && node.args[0].args === "action") {
    const name = node.args[1];
    // Skip cel-js's type checks, the slowest part: our members have the types that the environment declares.
    if (isActionMember(name)) own.evaluate = (_evaluator, _node, context) => context.getValue("action")[name];
  }
}

function isActionMember(name: string): name is keyof typeof ACTION_MEMBERS {
  return Object.hasOwn(ACTION_MEMBERS, name);
}

/** What counts the cost of a node. Null: it is cheap for every request. */
function findMeter(node: ASTNode, scope: Scope): Meter | null {
  if (node.op === "call") return call(node.args[0], null, node.args[1], node, scope);
  if (node.op === "rcall") return call(node.args[0], node.args[1], node.args[2], node, scope);
  if (node.op === "value") checkLiteral(node);
  // Inside a macro, a text may be compared with the names of members: `action.body.exists(name, name == 'force')`.
  if (node.op === "value" && scope.loop !== null) noteName(scope, node.args);
  if (node.op === "id") checkName(node.args, node.start, scope);
  // A name right after a variable is our own, such as `action.host`.
  if (node.op === "." && !(node.args[0].op === "id" && VARIABLES.has(node.args[0].args))) noteName(scope, node.args[1]);
  if (node.op === "[]" && node.args[1].op === "value") noteName(scope, node.args[1].args);
  if (node.op === "in" && node.args[0].op === "value") noteName(scope, node.args[0].args);
  for (const child of childNodes(node)) prepare(child, scope);
  if (COMPUTES.has(node.op)) return computed;
  return COMPARES.has(node.op) ? compared(node.op) : null;
}

function noteName({ names }: Scope, name: unknown): void {
  if (typeof name === "string") names.set(foldName(name), name);
}

function checkLiteral({ args, input, start, end }: ASTNode & { readonly op: "value" }): void {
  if (typeof args === "number" && !isExact(input.slice(start, end).trim(), args)) {
    throw new ExpressionError("The number has more digits than can be compared. Write at most 15 digits.", start);
  }
  if (typeof args === "object" && args !== null)
    throw new ExpressionError("Bytes and unsigned numbers are not known.", start);
}

function checkName(name: string, offset: number, { loop }: Scope): void {
  if (name === loop || VARIABLES.has(name)) return;
  // Counts are exact only in the commit that adds to them, where no expression runs.
  const instead = name === "recent" ? "To count earlier calls, give the rule more_than or sum." : null;
  throw new ExpressionError(`There is no "${name}". ${instead ?? `There are ${[...VARIABLES].join(", ")}.`}`, offset);
}

/** The meter for a call of a function, or of a method if there is a receiver. */
function call(
  name: string,
  receiver: ASTNode | null,
  args: readonly ASTNode[],
  { start }: ASTNode,
  scope: Scope,
): Meter {
  const known = receiver === null ? FUNCTIONS : METHODS;
  const offset = receiver === null ? start : receiver.end;
  if (!known.has(name)) {
    const [, instead] = INSTEAD.find(([names]) => names.test(name)) ?? [];
    throw new ExpressionError(`"${name}" can't be used. ${instead ?? `There are ${[...known].join(", ")}.`}`, offset);
  }
  const [first, second] = args;
  const [form, example] = LITERALS.get(name) ?? [];
  if (form !== undefined) {
    const refusal = `${name}() takes a text in quotes, such as '${example}'.`;
    if (!form.test(textIn(first, refusal, start))) throw new ExpressionError(refusal, start);
  }
  const like = name === "like" ? search(second, scope.patterns) : null;
  if (ZONED.has(name)) checkZone(first, offset);
  if (receiver !== null) prepare(receiver, scope);
  const isMacro = receiver !== null && MACROS.has(name) && args.length > 1;
  if (!isMacro) {
    for (const arg of args) prepare(arg, scope);
    return like ?? costly;
  }
  if (scope.loop !== null) {
    throw new ExpressionError(
      `"${name}" can't stand inside of another macro, which could take long. Use one of the two.`,
      offset,
    );
  }
  // cel-js has refused anything else as the first argument.
  const loop = first?.op === "id" ? first.args : "";
  if (VARIABLES.has(loop)) throw new ExpressionError(`"${loop}" is taken. Use another name.`, first?.start ?? offset);
  for (const arg of args.slice(1)) prepare(arg, { ...scope, loop });
  return iterating(args.reduce((sum, arg) => sum + nodesIn(arg), 0));
}

function checkZone(node: ASTNode | undefined, offset: number): void {
  const zone = textIn(node, "Name a time zone, such as 'Europe/Berlin'.", offset);
  if (!isZone(zone))
    throw new ExpressionError(`There is no time zone "${zone}". Use a name such as Europe/Berlin.`, offset);
}

function textIn(node: ASTNode | undefined, refusal: string, offset: number): string {
  if (node?.op === "value" && typeof node.args === "string") return node.args;
  throw new ExpressionError(refusal, offset);
}

function childNodes(node: ASTNode): readonly ASTNode[] {
  if (node.op === "value" || node.op === "id") return [];
  if (node.op === "." || node.op === ".?") return [node.args[0]];
  if (node.op === "call") return node.args[1];
  if (node.op === "rcall") return [node.args[1], ...node.args[2]];
  if (node.op === "map") return node.args.flat();
  return node.op === "!_" || node.op === "-_" ? [node.args] : node.args;
}

function nodesIn(node: ASTNode): number {
  return childNodes(node).reduce((sum, child) => sum + nodesIn(child), 1);
}

// What an expression may cost

/** How many steps the running expression may still take. One expression ends before another begins. */
let stepsLeft = 0;

function spend(steps: number): void {
  stepsLeft -= steps;
  if (stepsLeft < 0) throw new Undecidable("It would take too long for this request.");
}

/** Meters arithmetic. Refuses NaN and infinity, since a comparison with NaN would always be false. */
const computed: Meter =
  (handle) =>
  (left, right, ...rest) => {
    spend(1 + valueSize(left) + valueSize(right));
    const result = handle(left, right, ...rest);
    if (typeof result !== "number" || Number.isFinite(result)) return result;
    throw new Undecidable(right === 0 ? "It divides by zero." : "A number in it grows too large.");
  };

function compared(op: string): Meter {
  return (handle) =>
    (left, right, ...rest) => {
      spend(1 + valueSize(left) + valueSize(right));
      if (isCollection(left) && isCollection(right)) spendAll(op === "in" ? right : left);
      const [one, other] = [KINDS[typeof left], KINDS[typeof right]];
      if (op !== "in" && one !== other && one !== undefined && other !== undefined) throw new Undecidable(OTHER_TYPES);
      return handle(left, right, ...rest);
    };
}

/** Kinds of values. To CEL, values of two kinds always differ, but many targets read "true" as true and "5" as 5. */
const KINDS: Partial<Record<string, string>> = {
  string: "text",
  number: "number",
  bigint: "number",
  boolean: "yes or no",
};

/** Spends a step for each value in nested lists and maps. Macros can nest one list many times, so each occurrence counts. */
function spendAll(value: unknown): void {
  spend(1);
  if (Array.isArray(value)) value.forEach(spendAll);
  else if (value instanceof Map) value.forEach(spendAll);
  else if (typeof value === "object" && value !== null && isLiteralMap(value)) Object.values(value).forEach(spendAll);
}

/** Whether cel-js made the value from a map in the expression; not a time, nor `INEXACT`. */
function isLiteralMap(value: object): boolean {
  return Object.getPrototypeOf(value) === Object.prototype && !Object.hasOwn(value, "constructor");
}

/** Meters a function that reads texts: a search may compare one text with every position of the other. */
const costly: Meter =
  (handle) =>
  (args, ...rest) => {
    // `size` of a text counts its characters one by one.
    if (Array.isArray(args)) spend(1 + textSize(args[0]) * (args.length === 1 ? 10 : 1 + textSize(args[1])));
    return handle(args, ...rest);
  };

/** Meters a macro, which does `weight` steps for each member. */
function iterating(weight: number): Meter {
  return (handle) =>
    (items, ...rest) => {
      const size = countMembers(items);
      if (size > RULE_LIST_MEMBERS_MAX) {
        throw new Undecidable(`A list in it has more than ${RULE_LIST_MEMBERS_MAX} members.`);
      }
      spend(size * weight);
      return handle(items, ...rest);
    };
}

/** A pattern of so many instructions is searched for by re2js's automaton. */
const PATTERN_SIZE_FAST = 30;

/** The meter of `like`, which compiles its pattern and notes the size. */
function search(node: ASTNode | undefined, patterns: Map<string, number>): Meter {
  const offset = node?.start ?? 0;
  const pattern = textIn(node, "The pattern of like() is a text in quotes.", offset);
  if (pattern.length > RULE_PATTERN_CHARS_MAX) {
    throw new ExpressionError(`The pattern is longer than ${RULE_PATTERN_CHARS_MAX} characters.`, offset);
  }
  const compiled = compiledPattern(pattern, offset);
  patterns.set(pattern, compiled.programSize());
  const size = patterns.values().reduce((sum, one) => sum + one, 0);
  if (size > RULE_PATTERN_SIZE_MAX)
    throw new ExpressionError("The patterns are too large. Repeat less in them.", offset);
  const instructions = compiled.programSize();
  // A large pattern has many alternatives at each character, more than re2js's automaton has states for.
  const weight = 1 + instructions / 25 + Math.max(0, instructions - PATTERN_SIZE_FAST) / 2.5;
  return () => (args) => {
    const text: unknown = Array.isArray(args) ? args[0] : null;
    if (typeof text !== "string") throw new Undecidable("It uses like() on a value that is not text.");
    spend(1 + text.length * weight);
    return compiled.matcher(text).find();
  };
}

function compiledPattern(pattern: string, offset: number): RE2JS {
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    throw new ExpressionError(
      `The pattern can't be read: ${error instanceof Error ? error.message : "unknown"}.`,
      offset,
    );
  }
}

/** The cost of reading a value, in steps. */
function valueSize(value: unknown): number {
  return textSize(value) + countMembers(value);
}

function textSize(value: unknown): number {
  return typeof value === "string" ? value.length / 100 : 0;
}

function countMembers(value: unknown): number {
  if (value instanceof Map) return value.size;
  return Array.isArray(value) ? value.length : 0;
}

function isCollection(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

// What is said of errors

/** Tokens as cel-js names them. */
const TOKENS: Readonly<Record<string, string>> = {
  EOF: "the end",
  RPAREN: '")"',
  LPAREN: '"("',
  RBRACKET: '"]"',
  RBRACE: '"}"',
  COLON: '":"',
  COMMA: '","',
  IDENTIFIER: "a name",
};

function celMessage(error: unknown): string {
  if (error instanceof RangeError) return "Is nested too deep. Use fewer brackets.";
  if (!(error instanceof ParseError || error instanceof CheckError)) return "Can't be read.";
  if (error.code === "invalid_macro_argument") {
    return "Takes another argument: has(action.body.amount), or a name and a condition as in list.exists(x, x > 5). For a name with other characters write 'x-name' in action.headers.";
  }
  const [, member] = NO_MEMBER.exec(error.summary) ?? [];
  if (member !== undefined) return `There is no "${shown(member)}" here. ${MEMBERS}`;
  if (error.summary === "Unexpected character: =") return "Two values are compared with ==, !=, <, <=, > or >=.";
  const text = error.summary.replaceAll(/\b[A-Z]{3,}\b/g, (token) => TOKENS[token] ?? token);
  const sentence = `${text.slice(0, 1).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
  const isOfTypes = error.code === "no_such_overload" || error.code === "no_matching_overload";
  return isOfTypes ? `${sentence} Compare values of one type, such as a number with a number.` : sentence;
}

/** How cel-js reports a missing member. While it checks, that is one of `action` or `key`. */
const NO_MEMBER = /^No such key: (.*)$/s;

const MEMBERS = `action has ${Object.keys(ACTION_MEMBERS).join(", ")}, as in action.body.amount; key has ${Object.keys(KEY_MEMBERS).join(", ")}.`;

const OTHER_TYPES = "It compares or computes values of types that do not go together, such as a text and a number.";

/** What to say about an error while an expression runs. */
function errorSentence(error: unknown): string {
  const { code, summary } = error as { readonly code?: string; readonly summary?: string };
  const [, name] = NO_MEMBER.exec(summary ?? "") ?? [];
  if (name !== undefined) return `The request has no "${shown(name)}".`;
  if (code === "no_such_overload" || code === "no_matching_overload") {
    return OTHER_TYPES;
  }
  if (code === "division_by_zero" || code === "modulo_by_zero") return "It divides by zero.";
  return "It can't be computed for this request.";
}
