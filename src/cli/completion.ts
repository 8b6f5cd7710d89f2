import type { Argument, Command, Option } from "commander";
import { isNamed } from "./command.ts";

interface Completions {
  readonly proposals: readonly Proposal[];
  readonly takesFiles: boolean;
  /** The command for which the word is the id of an action. */
  readonly idFor: string | null;
}

export interface Proposal {
  readonly value: string;
  readonly description: string;
}

/** Where in a command line a word stands. */
interface Place {
  readonly command: Command;
  /** The option whose value the word is. */
  readonly option: Option | null;
  /** Arguments before it, of this command. */
  readonly given: number;
}

/** Names of arguments and values that are files. */
const FILES = /^(?:file|folder)$/;

/**
 * What can follow, by the definitions of the commands alone. `words` are those behind the program's name; the last is
 * incomplete. Not by @bomb.sh/tab (tried with 0.0.22): it proposes no files, waits for no ids from the service, and knows
 * neither `help <command>` nor the options of a verb that is left out.
 */
export function completionsFor(program: Command, words: readonly string[]): Completions {
  const last = words.at(-1) ?? "";
  const [first, ...others] = words;
  // Behind `help` stand the words of a command.
  if (first === "help" && others.length > 0 && !last.startsWith("-"))
    return commandsAt(placeOf(program, others.slice(0, -1)).command, last);
  const place = placeOf(program, words.slice(0, -1));
  const [, name, start = ""] = /^(--[a-z-]+)=(.*)$/.exec(last) ?? [];
  const joined = name === undefined ? null : optionNamed(place.command, name);
  if (joined !== null) return valuesOf(joined, start, `${joined.long ?? ""}=`);
  if (place.option !== null) return valuesOf(place.option, last);
  if (last.startsWith("-")) return only(optionsOf(place.command).map(proposalOf), last);
  return wordsAt(place, last);
}

/** The lines that the scripts read: each proposal with its description, then whether files are proposed. */
export function completionLines({ proposals, takesFiles }: Completions): string {
  const lines = proposals.map(({ value, description }) => `${value}\t${description.replaceAll(/\s+/g, " ")}\n`);
  return `${lines.join("")}:${takesFiles ? 0 : 4}\n`;
}

function placeOf(program: Command, words: readonly string[]): Place {
  let place: Place = { command: program, option: null, given: 0 };
  for (const word of words) place = after(place, word);
  return place;
}

function after({ command, option, given }: Place, word: string): Place {
  if (option !== null) return { command, option: null, given };
  if (word.startsWith("-") && word !== "-") {
    const named = optionNamed(command, word);
    return { command, option: named !== null && (named.required || named.optional) ? named : null, given };
  }
  const next = command.commands.find((one) => isNamed(one, word));
  if (next !== undefined && given === 0) return { command: next, option: null, given: 0 };
  return { command, option: null, given: given + 1 };
}

/** The options of a command, and those of its default command. */
function optionsOf(command: Command): readonly Option[] {
  const help = command.createHelp();
  const plain = command.commands.find((one) => one.name() === "list");
  const seen = new Map<string, Option>();
  for (const option of [command, ...(plain === undefined ? [] : [plain])].flatMap((one) => help.visibleOptions(one))) {
    seen.set(option.long ?? option.short ?? "", option);
  }
  return [...seen.values()];
}

function optionNamed(command: Command, word: string): Option | null {
  return optionsOf(command).find(({ long, short }) => word === long || word === short) ?? null;
}

function proposalOf({ long, short, description }: Option): Proposal {
  return { value: long ?? short ?? "", description };
}

function valuesOf(option: Option, start: string, prefix = ""): Completions {
  const values = (option.argChoices ?? []).map((value) => ({ value: prefix + value, description: "" }));
  const name = option.flags.slice(option.flags.indexOf("<") + 1, -1);
  return {
    ...only(values, prefix + start),
    takesFiles: FILES.test(name),
    idFor: name === "id" && option.long === "--id" ? "list" : null,
  };
}

function commandsAt(command: Command, start: string): Completions {
  const shown = command.createHelp().visibleCommands(command);
  return only(
    shown.map((one) => ({ value: one.name(), description: one.description() })),
    start,
  );
}

function wordsAt({ command, given }: Place, start: string): Completions {
  const { registeredArguments: args } = command;
  const argument = args.at(given) ?? args.findLast(({ variadic }) => variadic);
  const choices = (argument?.argChoices ?? []).map((value) => ({ value, description: "" }));
  return {
    ...(given === 0 && command.commands.length > 0 ? commandsAt(command, start) : only(choices, start)),
    takesFiles: argument !== undefined && FILES.test(argument.name()),
    idFor: isActionId(command, argument) ? command.name() : null,
  };
}

/** `<id>` is an action's in commands at the top, and something else's below. */
function isActionId(command: Command, argument: Argument | undefined): boolean {
  return argument?.name() === "id" && command.parent?.parent === null;
}

function only(proposals: readonly Proposal[], start: string): Completions {
  return { proposals: proposals.filter(({ value }) => value.startsWith(start)), takesFiles: false, idFor: null };
}
