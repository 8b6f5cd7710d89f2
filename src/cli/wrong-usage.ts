import { Command } from "commander";
import { HTTP_METHODS } from "../core/target.ts";

/** The sentence for a problem that commander finds in a command's arguments. */
export function usageProblem(command: Command, message: string, code: string | undefined): string {
  const [extra] = command.args.slice(command.registeredArguments.length);
  // Leaves out the value after a `=`, which may be a secret.
  const quoted = /'([^'=]*)/.exec(message)?.[1] ?? "";
  if (command.parent === null && code === "commander.unknownOption")
    return `Unknown option '${quoted}'. Options go after the command, as in \`outgate list --json\`.`;
  if (command.parent === null) return unknownCommand(command, extra ?? "");
  if (code === "commander.missingArgument") return `<${quoted}> is missing.`;
  if (code === "commander.excessArguments" && command.name() === "send" && isMethod(command.args[0]))
    return `The method is an option: --method ${command.args[0]}.`;
  if (code === "commander.excessArguments")
    return unknownVerb(command, extra) ?? `${JSON.stringify(extra)} is one argument too many.`;
  if (code === "commander.unknownOption") {
    const isKnown = command.options.some(({ long }) => long === quoted);
    if (isKnown) return `Option '${quoted}' does not take an argument.`;
    const options = command.options.flatMap(({ long, hidden }) => (long === undefined || hidden ? [] : [long]));
    return `Unknown option '${quoted}'.${suggestionFor(quoted, options)}`;
  }
  if (code === "commander.optionMissingArgument" && message.includes("--api-key-file"))
    return "--api-key-file takes a file, or - for standard input.";
  const sentence = message.replace(/^error: /, "");
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1).replace(/\.$/, "")}.`;
}

/** Names the mistake in `keys frobnicate`, which commander takes for an argument of the default command `keys list`. */
function unknownVerb({ parent }: Command, extra: string | undefined): string | null {
  if (extra === undefined || parent?.args[0] !== extra) return null;
  const verbs = parent.commands.map((command) => command.name());
  const listed = `${verbs.slice(0, -1).join(", ")} or ${verbs.at(-1) ?? ""}`;
  return `${parent.name()} takes ${listed}, not ${JSON.stringify(extra)}.${suggestionFor(extra, verbs)}`;
}

function isMethod(word = ""): boolean {
  return HTTP_METHODS.some((method) => method === word.toUpperCase());
}

/** What people type who want `serve`. */
const SERVICE_STARTS: ReadonlySet<string> = new Set(["start", "run", "up"]);

/** The commands of `server-commands.ts` that the npm package for plain Node does not have. */
export const SERVICE_COMMANDS: ReadonlySet<string> = new Set([
  "serve",
  "demo",
  "doctor",
  "health",
  "welcome-link",
  "reset-password",
  "new-owner-key",
  "backup",
  "rotate-secret-key",
  "migrate",
]);

/** Says that there is no such command, and which was probably meant. */
export function unknownCommand(program: Command, word: string): string {
  const names = program.commands.map((command) => command.name()).filter((name) => name !== "complete");
  if (program.parent === null && (SERVICE_STARTS.has(word) || SERVICE_COMMANDS.has(word))) {
    if (names.includes("serve")) return `Unknown command ${JSON.stringify(word)}. Did you mean serve?`;
    const start = SERVICE_COMMANDS.has(word) && word !== "serve" ? `npm run outgate -- ${word}` : "npm start";
    return `The service, and so "${word}", is not in this package. Run \`${start}\` in a copy of Outgate's repository.`;
  }
  const meant = suggestionFor(word, names);
  return `Unknown command ${JSON.stringify(word)}.${meant || " `outgate help` lists the commands."}`;
}

/** Words for the same thing: the first that a program or group has is what people mean by the others. */
const SYNONYMS: readonly (readonly string[])[] = [
  ["add", "create", "set", "invite", "new", "put"],
  ["remove", "revoke", "end", "delete", "rm", "unset"],
  ["list", "ls", "actions"],
  ["get", "show"],
  ["send", "create", "new", "call", "request", "post", "curl"],
  ["watch", "events", "logs", "tail"],
];

/** A suggestion for a mistyped command or option, as ` Did you mean retry?`; empty if nothing is close. */
function suggestionFor(typed: string, words: readonly string[]): string {
  const same = SYNONYMS.filter((group) => group.includes(typed)).flatMap((group) => group);
  const synonym = same.find((word) => words.includes(word));
  if (synonym !== undefined) return ` Did you mean ${synonym}?`;
  // Mistyped words nearly always begin as what was meant: `events` is no attempt at `grants`.
  const initial = (word: string) => word.replace(/^-{1,2}/, "").charAt(0);
  // Commander doesn't export its comparison, so this lets it find the same mistake.
  const asked = new Command()
    .helpOption(false)
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeErr() {} });
  for (const word of words.filter((one) => initial(one) === initial(typed))) {
    if (word.startsWith("--")) asked.option(word);
    else asked.command(word);
  }
  try {
    asked.parse([typed], { from: "user" });
    return "";
  } catch (error) {
    const [, meant] = /\n\((Did you mean [^\n]*)\)$/.exec(String(error)) ?? [];
    return meant === undefined ? "" : ` ${meant}`;
  }
}
