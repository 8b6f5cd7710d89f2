import type { PutDefaults } from "../client/api.ts";
import type { StatusPattern } from "../core/retry.ts";
import { type Io, readValue, UsageError } from "./io.ts";

/** Turns an option's text into its value. `earlier`: the value so far, if it is given again. Throws `UsageError`. */
export type OptionParser<Value> = (text: string, earlier: Value | undefined) => Value;

/** Parses the whole number in an option, at least `min`. Throws `UsageError`. */
export function wholeNumber(name: string, min = 1): (text: string) => number {
  return (text) => {
    if (/^\d{1,9}$/.test(text) && Number(text) >= min) return Number(text);
    throw new UsageError(`--${name} takes a whole number of at least ${min}, not ${JSON.stringify(text)}.`);
  };
}

export function backoffIn(text: string): PutDefaults["backoff"] {
  const [, base, cap] = /^(\d{1,9}):(\d{1,9})$/.exec(text) ?? [];
  if (base !== undefined && cap !== undefined) return { base_ms: Number(base), cap_ms: Number(cap) };
  throw new UsageError(`--backoff takes two numbers of milliseconds, like 1000:60000, not ${JSON.stringify(text)}.`);
}

/** Reads a list. Keeps words that are no numbers, for which the service names the valid ones. */
export function listIn(text: string): StatusPattern[] {
  const words = text.split(",").map((word) => word.trim());
  // Safe: the service checks each.
  return words
    .filter((word) => word !== "")
    .map((word) => (/^\d{1,9}$/.test(word) ? Number(word) : word) as StatusPattern);
}

type Given<Members> = { -readonly [Name in keyof Members]?: Exclude<Members[Name], undefined> };

/** The members without those that are undefined. */
export function given<Members extends object>(members: Members): Given<Members> {
  // Safe: leaves out only undefined members.
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Given<Members>;
}

export function several(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

/** Collects methods, which people may write in lower case. The service checks each. */
export function severalMethods(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text.toUpperCase()];
}

/** Accepts one of the words in any case. */
export function oneOf(name: string, words: readonly string[]): (text: string) => string {
  return (text) => {
    const word = words.find((one) => one.toLowerCase() === text.toLowerCase());
    if (word !== undefined) return word;
    throw new UsageError(`--${name} takes ${words.join(", ")}, not ${JSON.stringify(text)}.`);
  };
}

/** Reads the headers of `--header`: lines, or as in curl files or standard input. Throws `UsageError`. */
export async function headersIn(values: readonly string[], io: Io): Promise<Readonly<Record<string, string>>> {
  const lines = values.map(async (value) => {
    if (value !== "-" && !value.startsWith("@")) return [value];
    return (await readValue(value, io)).split(/\r?\n/).filter((line) => line.trim() !== "");
  });
  const pairs = (await Promise.all(lines)).flat().map((line, index) => {
    const at = line.indexOf(":");
    // The message doesn't quote the header, which may be a secret.
    if (at < 1) throw new UsageError(`--header takes 'Name: value'; header ${index + 1} has another form.`);
    return [line.slice(0, at), line.slice(at + 1).trim()] as const;
  });
  const names = new Set(pairs.map(([name]) => name.toLowerCase()));
  if (names.size < pairs.length) throw new UsageError("A header is given twice. Each can be sent only once.");
  return Object.fromEntries(pairs);
}
