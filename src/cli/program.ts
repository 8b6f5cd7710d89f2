import { type Command, CommanderError, Help } from "commander";
import { RELEASE, releaseText } from "../config/config.ts";
import { CliCommand, isNamed } from "./command.ts";
import { EXIT, type Io, UsageError } from "./io.ts";
import { addAccountCommands } from "./commands/account.ts";
import { addAttempts, addBulkCommands, addDecisions, addExport, addOpen, addReadCommands } from "./commands/actions.ts";
import { addCompletion } from "./completion.ts";
import { addLoginCommands } from "./commands/login.ts";
import { addRuleCommands } from "./commands/rules.ts";
import {
  addChannelCommands,
  addCredentialCommands,
  addGrantCommands,
  addHostCommands,
  addOAuthClientCommands,
  addSigningCommands,
} from "./commands/settings.ts";
import { addOverview, addNotificationsAndServer } from "./commands/overview.ts";
import { addSend } from "./commands/send.ts";
import { unknownCommand } from "./wrong-usage.ts";

/** Adds the commands that don't run on plain Node. */
type AddCommands = (program: CliCommand, io: Io) => void;

/** Runs `outgate <command> …` and returns its exit code. Never rejects; writes errors to standard error. */
export async function runCommandLine(args: readonly string[], io: Io, addMore?: AddCommands): Promise<number> {
  const program = createProgram(io, addMore);
  try {
    await program.parseAsync(args.length === 0 ? ["--help"] : args, { from: "user" });
    return program.result.exitCode;
  } catch (error) {
    // Commander throws after help and version. `commander.help` means that a group was named without a command.
    if (error instanceof CommanderError) return error.code === "commander.help" ? EXIT.usage : error.exitCode;
    io.err(`${error instanceof Error ? error.message : String(error)}\n`);
    if (!(error instanceof UsageError)) return EXIT.failed;
    const command = commandNamed(program, args);
    if (command !== program) io.err(`Usage: ${command.createHelp().commandUsage(command)}\n`);
    return EXIT.usage;
  }
}

/** Creates `outgate` with all commands, in the order of the help, and the shell completions. */
export function createProgram(io: Io, addMore: AddCommands = () => {}): CliCommand {
  const program = new CliCommand("outgate", io)
    .description("outgate: the action delivery service")
    .version(releaseText(RELEASE), "-v, --version", "print the version")
    .helpOption("-h, --help", "show the options")
    .enablePositionalOptions()
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({ writeOut: io.out, writeErr: io.err, getOutHelpWidth: () => io.columns ?? Infinity })
    .configureHelp({ subcommandTerm: (command) => command.name(), commandUsage: usageLine })
    .helpCommand(false)
    .addHelpText("after", `\n${AFTER_HELP}`)
    .hook("preAction", (_program, { registeredArguments, args }) => {
      // An unset variable in `"$ID"` gives an empty argument.
      const empty = registeredArguments.find(({ variadic }, at) => !variadic && args[at] === "");
      if (empty !== undefined) throw new UsageError(`<${empty.name()}> is empty.`);
    });
  program.commandsGroup("Send and look up:");
  addSend(program);
  addReadCommands(program);
  addAttempts(program);
  addOpen(program);
  addExport(program);
  addOverview(program);
  program.commandsGroup("Decide:");
  addDecisions(program);
  addBulkCommands(program);
  program.commandsGroup("Account (most need an owner key):");
  addAccountCommands(program);
  addHostCommands(program);
  addRuleCommands(program);
  addGrantCommands(program);
  addCredentialCommands(program);
  addOAuthClientCommands(program);
  addChannelCommands(program);
  addSigningCommands(program);
  addNotificationsAndServer(program);
  program.commandsGroup("This command line:");
  addLoginCommands(program, io);
  addHelp(program);
  addCompletion(program, io);
  addMore(program, io);
  program
    .command("version", { hidden: true })
    .description("print the version")
    .action(() => io.out(`${releaseText(RELEASE)}\n`));
  return program;
}

const AFTER_HELP = `\`outgate help <command>\` shows the options of a command, and examples.

API key: --api-key-file <file> (- is standard input), OUTGATE_API_KEY, OUTGATE_API_KEY_FILE, or \`outgate login\`.
Ids: the beginning of an action's id will do, if no other begins so.
Output: text on a terminal, JSON in a pipe or with --json. NO_COLOR=1 switches colours off.
Exit codes: 0 success, 1 failed or refused, 2 wrong usage, 3 not ended in time, 4 awaits approval.`;

function addHelp(program: CliCommand): void {
  program
    .command("help")
    .description("list the commands, or show the options of one and examples")
    .argument("[command...]")
    .action((words: readonly string[]) => {
      let shown: Command = program;
      for (const word of words) {
        const next = shown.commands.find((command) => isNamed(command, word));
        if (next === undefined) throw new UsageError(unknownCommand(shown, word));
        shown = next;
      }
      shown.outputHelp();
    });
}

/** How a command is called; for a group, how each of its commands is. */
function usageLine(command: Command): string {
  if (command.parent === null || command.commands.length === 0) return new Help().commandUsage(command);
  return `${command.parent.name()} ${command.commands.map(callSyntax).join(" | ")}`;
}

/** `keys create <name> [options]`, with a group's default command in brackets. */
function callSyntax(command: Command): string {
  const name = command instanceof CliCommand && command.isDefault ? `[${command.name()}]` : command.name();
  const rest = command.usage().replace("[options]", "").trim();
  const hasOptions = command.options.some(({ long }) => long !== "--api-key-file" && long !== "--json");
  return [command.parent?.name(), name, rest, hasOptions ? "[options]" : ""].filter(Boolean).join(" ");
}

/** The command that arguments begin with. */
function commandNamed(command: Command, [name, ...rest]: readonly string[]): Command {
  const found = command.commands.find((one) => isNamed(one, name));
  return found === undefined ? command : commandNamed(found, rest);
}
