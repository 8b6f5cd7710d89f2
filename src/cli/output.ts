import { compactJson, parseExactly } from "../core/json.ts";
import { elementsIn, membersIn } from "../core/json-values.ts";
import { UNSAFE_IN_LINES, visible } from "../observability/terminal.ts";
import { UsageError, EXIT } from "./io.ts";
import { OutgateError } from "../client/transport.ts";

/** JSON on one line or indented. Writes unsafe characters as JSON escapes, which keeps its meaning. */
export function jsonText(value: unknown, isIndented: boolean): string {
  return `${visibleJson(exactJson(value, isIndented ? 2 : undefined))}\n`;
}

/** JSON with numbers as they were written. Without `JSON.rawJSON`, they are marked; no text can contain the random mark. */
export function exactJson(value: unknown, indent?: number): string {
  if (HAS_RAW_JSON) return JSON.stringify(value, null, indent);
  const mark = crypto.randomUUID();
  const json = JSON.stringify(
    value,
    function (this: Readonly<Record<string, unknown>>, name, one: unknown) {
      const own = this[name];
      return own instanceof WrittenNumber ? mark + own.rawJSON : one;
    },
    indent,
  );
  const [start = "", ...numbers] = json.split(`"${mark}`);
  // Drops the quotation mark behind each number.
  return start + numbers.map((number) => number.replace('"', "")).join("");
}

/** Node has it from version 22 on. */
const HAS_RAW_JSON = "rawJSON" in JSON;

/** A number that a double would change, in place of what `JSON.rawJSON` makes. */
class WrittenNumber {
  readonly rawJSON: string;

  constructor(text: string) {
    this.rawJSON = text;
  }

  toJSON(): number {
    return Number(this.rawJSON);
  }
}

/** JSON text, or lines of it, for a terminal. Escapes unsafe characters, which occur only inside of strings. */
export function visibleJson(json: string): string {
  return json.replaceAll(UNSAFE_IN_LINES, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}

/**
 * Parses JSON so that `jsonText` prints every number as it was written. Members keep the order in which they are written, even
 * if their names are numbers.
 */
export function parseInOrder(text: string): unknown {
  const value = parseExactly(text);
  return needsOrder(text) ? ordered(value, compactJson(text)) : value;
}

/** Parses a JSON object from the command line. Throws `UsageError`. */
export function parseObject(text: string, what: string): Readonly<Record<string, unknown>> {
  const value = parseJson(text, what);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`${what} must be a JSON object.`);
  }
  // Safe: checked to be an object.
  return value as Readonly<Record<string, unknown>>;
}

/** Parses any JSON value from the command line. Throws `UsageError`. */
export function parseJson(text: string, what: string, advice = ""): unknown {
  try {
    return parseInOrder(text);
  } catch {
    throw new UsageError(`${what} is not valid JSON.${advice}`);
  }
}

/** A change that may have been made although its call failed. */
class Unsure extends Error {
  readonly failure: OutgateError;

  constructor(failure: OutgateError, advice: string) {
    super(advice);
    this.failure = failure;
  }
}

/** Adds advice to the failure of a change, unless it was refused for sure. One refused for its rate may repeat one whose answer was lost. */
export function unsure(advice: string) {
  return (error: unknown): never => {
    if (!(error instanceof OutgateError)) throw error;
    const { code, status } = error;
    const isRefusal = status !== null && status >= 400 && status < 500;
    throw isRefusal && code !== "rate_limited" && code !== "not_outgate" ? error : new Unsure(error, advice);
  };
}

/** The message and exit code for a failed call. Throws any other error. `nameOf` names a field for people. */
export function explain(
  error: unknown,
  url: string,
  nameOf = (field: string): string => field,
): { readonly message: string; readonly code: number } {
  if (error instanceof Unsure) {
    const { message, code } = explain(error.failure, url, nameOf);
    return { message: `${message}\n${visible(error.message, true)}`, code };
  }
  if (!(error instanceof OutgateError)) throw error;
  const problems = error.details.map(({ field, message }) => `${nameOf(field) || "body"}: ${message}`);
  if (error.detailsLeftOut > 0) problems.push(`and ${error.detailsLeftOut} more`);
  // A single problem may be the message itself.
  const isSaid = error.details.length === 1 && error.details[0]?.message === error.message;
  const lines = isSaid ? problems : [sentenceOf(error, url), ...problems.map((problem) => `  ${problem}`)];
  if (error.code === "internal_error" && error.requestId !== null) lines.push(`  Request id: ${error.requestId}`);
  return { message: visible(lines.join("\n"), true), code: error.code === "timed_out" ? EXIT.timeout : EXIT.failed };
}

function sentenceOf({ code, message }: OutgateError, url: string): string {
  if (code === "unreachable") {
    return `${message} Start it with \`npm start\` or \`outgate serve\`, or set OUTGATE_URL to its address.`;
  }
  if (code === "unauthorized") {
    return `${url} does not accept the API key: it is mistyped, revoked, expired, or of another service.`;
  }
  if (code === "not_found" && message === UNKNOWN_PATH) {
    return `Outgate answers at ${url}, but does not have the path. Set OUTGATE_URL to the address of its first page.`;
  }
  if (code === "not_outgate") return `${message} Set OUTGATE_URL to the address of Outgate; it is ${url} now.`;
  return message;
}

/** What the service says of a path that it does not have, as below an OUTGATE_URL with a path of a page. */
const UNKNOWN_PATH = "This path does not exist.";

/** A name that JavaScript takes for an index and moves before all others. */
const INDEX = /^\d{1,10}$/;

const INDEX_IN_JSON = /"\d{1,10}"\s*:/;

/** What a double may change: many digits, a fraction, an exponent, or a minus before a zero. */
const LONG_NUMBER = /\d{16}|\d[.eE]|-0/;

function needsOrder(json: string): boolean {
  return INDEX_IN_JSON.test(json) || (!HAS_RAW_JSON && LONG_NUMBER.test(json));
}

/**
 * An object that keeps the order of its entries when it is enumerated or written as JSON, even for names that are whole
 * numbers, because fields of a form are sent in this order. The last value of a name counts.
 */
export function inOrder<Value>(entries: readonly (readonly [name: string, value: Value])[]) {
  const object: Readonly<Record<string, Value>> = Object.fromEntries(entries);
  if (!entries.some(([name]) => INDEX.test(name))) return object;
  const names = [...new Set(entries.map(([name]) => name))];
  return new Proxy(object, { ownKeys: () => names });
}

/** A value of this JSON with its members in the order of the text, and its numbers as the text has them. */
function ordered(value: unknown, json: string): unknown {
  if (typeof value === "number" && !HAS_RAW_JSON && String(value) !== json) return new WrittenNumber(json);
  if (!needsOrder(json) || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const texts = [...elementsIn(json)];
    return value.map((element: unknown, at) => ordered(element, texts[at] ?? ""));
  }
  const members: Readonly<Record<string, unknown>> = { ...value };
  return inOrder([...membersIn(json)].map(([name, text]) => [name, ordered(members[name], text)] as const));
}
