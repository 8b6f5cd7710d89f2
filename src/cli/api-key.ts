import { apiKeyIn, apiKeyOf } from "../client/api-key.ts";
import { type Io, UsageError } from "./command.ts";
import { readValue } from "./input.ts";

const OPTION = "--api-key-file";

/** The arguments without the option of the key, and the key that they or the environment name; null: none does. */
export interface KeyedArguments {
  readonly key: string | null;
  readonly args: readonly string[];
}

/**
 * Takes the API key from `--api-key-file`, or else from the environment. There is no option for the key itself: whoever may
 * list the processes of a machine reads their command lines. Throws a sentence where a file can't be read or holds no key.
 */
export async function takeApiKey(given: readonly string[], io: Io): Promise<KeyedArguments> {
  const { file, args } = withoutOption(given);
  if (file === null) return { key: await apiKeyOf(io.env), args };
  const text = await readValue(file === "-" ? "-" : `@${file}`, io);
  return { key: apiKeyIn(text, file === "-" ? "Standard input" : `The file ${file}`), args };
}

function withoutOption(given: readonly string[]): { readonly file: string | null; readonly args: readonly string[] } {
  // What stands behind `--` is no option.
  const end = given.indexOf("--");
  const at = given.findIndex((arg, index) => isOption(arg) && (end === -1 || index < end));
  const option = given[at];
  if (option === undefined) return { file: null, args: given };
  const joined = option.slice(OPTION.length + 1);
  const file = option === OPTION ? (given[at + 1] ?? "") : joined;
  if (file === "") throw new UsageError(`${OPTION} takes a file, or - for standard input.`);
  return { file, args: given.toSpliced(at, option === OPTION ? 2 : 1) };
}

function isOption(arg: string): boolean {
  return arg === OPTION || arg.startsWith(`${OPTION}=`);
}
