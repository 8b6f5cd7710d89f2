import tab from "@bomb.sh/tab/commander";
import { type Command, CommanderError } from "commander";
import { VERSION } from "../config/config.ts";
import { CliCommand, EXIT, type Io, UsageError } from "./command.ts";
import { addAccountCommands } from "./commands/account.ts";
import { addActionCommands } from "./commands/actions.ts";
import { addBulkCommands } from "./commands/bulk.ts";
import { addDemo } from "./commands/demo.ts";
import { addChannelCommands } from "./commands/channels.ts";
import { addHostCommands } from "./commands/hosts.ts";
import { addSend } from "./commands/send.ts";

/** Adds the commands that don't run on plain Node. */
type AddCommands = (program: CliCommand) => void;

/** Runs `outgate <command> …` and resolves with its exit code. Never rejects: errors are written to standard error. */
export async function runCommandLine(args: readonly string[], io: Io, addMore?: AddCommands): Promise<number> {
  const program = createProgram(io, addMore);
  try {
    await program.parseAsync(args.length === 0 ? ["--help"] : args, { from: "user" });
    return program.result.exitCode;
  } catch (error) {
    // How commander ends after help and version.
    if (error instanceof CommanderError) return error.exitCode;
    io.err(`${error instanceof Error ? error.message : String(error)}\n`);
    if (!(error instanceof UsageError)) return EXIT.failed;
    const command = commandNamed(program, args);
    if (command !== program) io.err(`Usage: ${command.createHelp().commandUsage(command)}\n`);
    return EXIT.usage;
  }
}

/** `outgate` with all its commands, in the order of the help, and the completions for shells. */
export function createProgram(io: Io, addMore: AddCommands = () => {}): CliCommand {
  const program = new CliCommand("outgate", io)
    .description("outgate: the action delivery service")
    .version(VERSION, "--version", "print the version")
    .helpOption("-h, --help", "show the options")
    .enablePositionalOptions()
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({ writeOut: io.out, writeErr: io.err, getOutHelpWidth: () => io.columns ?? Infinity })
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addHelpText("after", `\noutgate <command> --help shows its options. ${KEYS}`);
  program.commandsGroup("Commands for a running service:");
  addSend(program);
  addActionCommands(program);
  addBulkCommands(program);
  addAccountCommands(program);
  addHostCommands(program);
  addChannelCommands(program);
  addDemo(program);
  addMore(program);
  program.commandsGroup("Other commands:");
  program
    .command("version", { hidden: true })
    .description("print the version")
    .runs(async () => {
      io.out(`${VERSION}\n`);
      return EXIT.ok;
    });
  program.helpCommand("help [command]", "list the commands, or show the options of one");
  tab(program, { completionCommandName: "completion" });
  commandNamed(program, ["completion"]).description("print a script by which a shell completes commands and options");
  return program;
}

const KEYS = `Commands that talk to a service take the API key from OUTGATE_API_KEY,
from the file named by OUTGATE_API_KEY_FILE, or from --api-key-file <file>; - is standard input.`;

/** The command that arguments begin with. */
function commandNamed(command: Command, [name, ...rest]: readonly string[]): Command {
  const found = command.commands.find((one) => one.name() === name);
  return found === undefined ? command : commandNamed(found, rest);
}
