import tab from "@bomb.sh/tab";
import { Argument, type Command, type Option } from "commander";
import { createClient } from "../client/client.ts";
import type { Action } from "../client/api.ts";
import { shortened, visible } from "../observability/terminal.ts";
import { statusCell } from "./action-text.ts";
import { CliCommand, isNamed } from "./command.ts";
import bash from "./completion/outgate.bash" with { type: "text" };
import fish from "./completion/outgate.fish" with { type: "text" };
import zsh from "./completion/outgate.zsh" with { type: "text" };
import { UsageError, type Io } from "./io.ts";
import { readCredentials } from "./session.ts";

/**
 * Scripts for shells. Each asks `outgate complete -- <words>` and evaluates nothing that was typed, so the Tab key never runs a
 * `$(…)` in a command line. Only PowerShell's is from @bomb.sh/tab (tried with 0.0.22): its others evaluate the command line in
 * bash, where they also need the package bash-completion and fail when sourced twice, and need compinit in zsh.
 */
const SCRIPTS: ReadonlyMap<string, string> = new Map([
  ["bash", bash],
  ["zsh", zsh],
  ["fish", fish],
]);

const SHELLS = [...SCRIPTS.keys(), "powershell"];

/** `outgate completion <shell>`, and `outgate complete`, which the scripts call. */
export function addCompletion(program: CliCommand, io: Io): void {
  program
    .command("completion")
    .description("print a script by which a shell completes commands, options, values and ids")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS).argParser((text) => text))
    .examples([
      ["source <(outgate completion bash)", "in ~/.bashrc"],
      ["source <(outgate completion zsh)", "in ~/.zshrc"],
      ["outgate completion fish | source", "in ~/.config/fish/config.fish"],
    ])
    .action((shell: string) => {
      const script = SCRIPTS.get(shell);
      if (script !== undefined) io.out(script);
      else if (shell === "powershell") tab.setup("outgate", "outgate", shell);
      else throw new UsageError(`completion takes ${SHELLS.join(", ")}, not ${JSON.stringify(shell)}.`);
    });
  program
    .command("complete", { hidden: true })
    .description("what a shell may propose for the last of these words")
    .argument("[word...]")
    .helpOption(false)
    .action(async (words: readonly string[]) => {
      const { proposals, takesFiles, idFor } = completionsFor(program, words);
      const ids = idFor === null ? [] : await idsFor(idFor, words.at(-1) ?? "", io);
      // A line for each proposal, then whether files are proposed.
      for (const { value, description } of [...proposals, ...ids])
        io.out(`${value}\t${description.replaceAll(/\s+/g, " ")}\n`);
      io.out(`:${takesFiles ? 0 : 4}\n`);
    });
}

/** Short, because a person is waiting for the proposals. */
const TIMEOUT_MS = 1_500;

const IDS_MAX = 20;

/** The width of a description next to an id. */
const TEXT_COLUMNS = 60;

/** The statuses of the actions that a command applies to; absent for any. */
const STATUSES: Readonly<Record<string, readonly Action["status"][]>> = {
  approve: ["awaiting_approval"],
  reject: ["awaiting_approval"],
  cancel: ["pending", "awaiting_approval"],
  retry: ["failed", "cancelled"],
  "send-now": ["pending"],
};

/** The newest actions that a command applies to; none if the service can't be reached, since completions report no errors. */
async function idsFor(command: string, start: string, io: Io): Promise<readonly Proposal[]> {
  try {
    const { url, key } = await readCredentials(undefined, io);
    if (key === null) return [];
    const client = createClient({ url, apiKey: key, timeoutMs: TIMEOUT_MS, tries: 1 });
    const status = STATUSES[command];
    const isBeginning = /^act_[0-9a-z]{4,26}$/.test(start);
    const page = await client.listActions({
      limit: IDS_MAX,
      ...(status !== undefined && { status: [...status] }),
      ...(isBeginning && { q: start }),
    });
    const found = page.data.filter(({ id }) => id.startsWith(start));
    return found.map((action) => ({ value: action.id, description: describe(action) }));
  } catch {
    return [];
  }
}

function describe(action: Action): string {
  const text = action.title ?? `${action.method} ${action.url}`;
  return shortened(`${statusCell(action).text}: ${visible(text)}`, TEXT_COLUMNS);
}

interface Completions {
  readonly proposals: readonly Proposal[];
  readonly takesFiles: boolean;
  /** The command whose action id the word is. */
  readonly idFor: string | null;
}

interface Proposal {
  readonly value: string;
  readonly description: string;
}

/** A word's place in a command line. */
interface Place {
  readonly command: Command;
  /** The option whose value the word is. */
  readonly option: Option | null;
  /** How many of the command's arguments come before it. */
  readonly given: number;
}

/** Names of arguments and values that are files. */
const FILES = /^(?:file|folder)$/;

/**
 * Proposes what can follow, from the definitions of the commands. `words` come after the program's name; the last is
 * incomplete. Replaces @bomb.sh/tab (tried with 0.0.22), which proposes no files, waits for no ids from the service, and
 * knows neither `help <command>` nor the options of an omitted verb.
 */
export function completionsFor(program: Command, words: readonly string[]): Completions {
  const last = words.at(-1) ?? "";
  const found = completionsAt(program, words.slice(0, -1), last);
  return { ...found, proposals: found.proposals.filter(({ value }) => value.startsWith(last)) };
}

/** What can be at a place, however its word begins. */
function completionsAt(program: Command, before: readonly string[], last: string): Completions {
  // After `help` come the words of a command.
  if (before[0] === "help" && !last.startsWith("-"))
    return only(commandProposals(findPlace(program, before.slice(1)).command));
  const place = findPlace(program, before);
  const [, name] = /^(--[a-z-]+)=/.exec(last) ?? [];
  const joined = name === undefined ? null : optionNamed(place.command, name);
  if (joined !== null) return optionValues(joined, `${joined.long}=`);
  if (place.option !== null) return optionValues(place.option);
  if (last.startsWith("-")) return only(offeredOptions(place.command).map(optionProposal));
  return wordsAt(place);
}

function findPlace(program: Command, words: readonly string[]): Place {
  let command = program;
  let option: Option | null = null;
  let given = 0;
  for (const word of words) {
    if (option !== null) option = null;
    else if (word.startsWith("-") && word !== "-") {
      const named = optionNamed(command, word);
      option = named !== null && (named.required || named.optional) ? named : null;
    } else {
      const next = given === 0 ? command.commands.find((one) => isNamed(one, word)) : undefined;
      command = next ?? command;
      given = next === undefined ? given + 1 : 0;
    }
  }
  return { command, option, given };
}

/** The options of a command and of its default command. */
function offeredOptions(command: Command): readonly Option[] {
  const help = command.createHelp();
  const byDefault = command.commands.filter((one) => one instanceof CliCommand && one.isDefault);
  const options = [command, ...byDefault].flatMap((one) => help.visibleOptions(one));
  return [...new Map(options.map((option) => [option.long ?? option.short, option])).values()];
}

function optionNamed(command: Command, word: string): Option | null {
  return offeredOptions(command).find(({ long, short }) => word === long || word === short) ?? null;
}

function optionProposal({ long, short, description }: Option): Proposal {
  return { value: long ?? short ?? "", description };
}

function optionValues(option: Option, prefix = ""): Completions {
  const name = option.flags.slice(option.flags.indexOf("<") + 1, -1);
  return {
    proposals: (option.argChoices ?? []).map((value) => ({ value: prefix + value, description: "" })),
    takesFiles: FILES.test(name),
    idFor: name === "id" && option.long === "--id" ? "list" : null,
  };
}

function commandProposals(command: Command): readonly Proposal[] {
  const shown = command.createHelp().visibleCommands(command);
  return shown.map((one) => ({ value: one.name(), description: one.description() }));
}

function wordsAt({ command, given }: Place): Completions {
  const { registeredArguments: args } = command;
  const argument = args.at(given) ?? args.findLast(({ variadic }) => variadic);
  const choices = (argument?.argChoices ?? []).map((value) => ({ value, description: "" }));
  return {
    proposals: given === 0 && command.commands.length > 0 ? commandProposals(command) : choices,
    takesFiles: argument !== undefined && FILES.test(argument.name()),
    idFor: isActionId(command, argument) ? command.name() : null,
  };
}

/** Whether `<id>` is an action's id, which it is only in top-level commands. */
function isActionId(command: Command, argument: Argument | undefined): boolean {
  return argument?.name() === "id" && command.parent?.parent === null;
}

function only(proposals: readonly Proposal[]): Completions {
  return { proposals, takesFiles: false, idFor: null };
}
