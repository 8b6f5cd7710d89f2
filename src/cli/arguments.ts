import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { UsageError } from "./command.ts";

/** What was written behind the name of a command: values by option, and the rest in order. */
export function readArguments<Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
  /** The names of what has to be there, as the usage has them; one in brackets may be left out. */
  names: readonly string[] = [],
) {
  const { values, positionals } = parse(args, options);
  const missing = names.find((name, at) => !name.startsWith("[") && positionals[at] === undefined);
  if (missing !== undefined) throw new UsageError(`${missing} is missing.`);
  const [odd] = positionals.slice(names.length);
  if (odd !== undefined) throw new UsageError(`${JSON.stringify(odd)} is one argument too many.`);
  return { values, positionals };
}

function parse<Options extends ParseArgsOptionsConfig>(args: readonly string[], options: Options) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    // The first sentence says which option it is; what follows speaks of positionals.
    const message = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${message.split(". ")[0]?.replace(/\.$/, "") ?? message}.`);
  }
}

/** A whole number of an option, from `min` on. */
export function wholeNumber(text: string | undefined, name: string, min = 1): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text) && Number(text) >= min) return Number(text);
  throw new UsageError(`--${name} takes a whole number from ${min} on, not ${JSON.stringify(text)}.`);
}

/** One of the words that an option knows. */
export function oneOf<Word extends string>(
  text: string | undefined,
  name: string,
  words: readonly Word[],
): Word | undefined {
  if (text === undefined) return undefined;
  const word = words.find((one) => one === text);
  if (word !== undefined) return word;
  throw new UsageError(`--${name} takes ${words.join(", ")}, not ${JSON.stringify(text)}.`);
}
