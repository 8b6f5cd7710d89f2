import { compactJson, parseExactly } from "../core/json.ts";
import { elementsIn, membersIn } from "../core/json-values.ts";
import { UNSAFE_IN_LINES } from "../observability/terminal.ts";
import { UsageError } from "./io.ts";

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
