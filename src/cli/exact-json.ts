import { UsageError } from "./command.ts";

interface SourceText {
  readonly source?: string;
}
type ExactReviver = (name: string, value: unknown, context?: SourceText) => unknown;

// Safe: JSON.rawJSON (ES2026) is there or it is not, as in Node 20; nothing else is taken from it.
const { rawJSON } = JSON as { readonly rawJSON?: (text: string) => unknown };

/**
 * Parses JSON so that it is printed as it was written: 12345678901234567890 and 1.0 stay what they are. Where the runtime
 * can't do it (Node before 22) such a number comes out as JavaScript has it.
 */
export function parseExact(text: string): unknown {
  const revive: ExactReviver = (_name, value, context) => {
    const source = context?.source;
    const isRounded = typeof value === "number" && source !== undefined && String(value) !== source;
    return isRounded && rawJSON !== undefined ? rawJSON(source) : value;
  };
  return JSON.parse(text, revive);
}

/** A JSON object that a person has written. */
export function parseObject(text: string, what: string): Readonly<Record<string, unknown>> {
  const value = parseOr(text, what);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`${what} has to be a JSON object.`);
  }
  // Safe: an object of JSON has members by name.
  return value as Readonly<Record<string, unknown>>;
}

function parseOr(text: string, what: string): unknown {
  try {
    return parseExact(text);
  } catch {
    throw new UsageError(`${what} is not valid JSON.`);
  }
}
