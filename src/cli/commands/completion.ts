import tab from "@bomb.sh/tab";
import { Argument } from "commander";
import { createClient } from "../../client/client.ts";
import type { Action } from "../../client/openapi.ts";
import { visible, shortened } from "../../observability/terminal.ts";
import { statusCell } from "../action-list.ts";
import type { CliCommand } from "../command.ts";
import { EXIT, type Io, UsageError } from "../io.ts";
import { COMPLETION_SCRIPTS } from "../completion-scripts.ts";
import { completionLines, completionsFor, type Proposal } from "../completion.ts";
import { readCredentials } from "../session.ts";

const SHELLS = [...Object.keys(COMPLETION_SCRIPTS), "powershell"];

/** `outgate completion <shell>`, and `outgate complete`, which the scripts call. */
export function addCompletion(program: CliCommand): void {
  program
    .command("completion")
    .description("print a script by which a shell completes commands, options, values and ids")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS).argParser((text) => text))
    .examples([
      ["source <(outgate completion bash)", "in ~/.bashrc"],
      ["source <(outgate completion zsh)", "in ~/.zshrc"],
      ["outgate completion fish | source", "in ~/.config/fish/config.fish"],
    ])
    .runs(printScript);
  program
    .command("complete", { hidden: true })
    .description("what a shell may propose for the last of these words")
    .argument("[word...]")
    .helpOption(false)
    .runs(async (io, _options, ...words) => {
      const found = completionsFor(program, words);
      const ids = found.idFor === null ? [] : await idsFor(found.idFor, words.at(-1) ?? "", io);
      io.out(completionLines({ ...found, proposals: [...found.proposals, ...ids] }));
    });
}

async function printScript(io: Io, _options: object, shell: string): Promise<number> {
  if (shell === "powershell") {
    tab.setup("outgate", "outgate", shell);
    return EXIT.ok;
  }
  const script = Object.entries(COMPLETION_SCRIPTS).find(([name]) => name === shell)?.[1];
  if (script === undefined)
    throw new UsageError(`completion takes ${SHELLS.join(", ")}, not ${JSON.stringify(shell)}.`);
  io.out(script);
  return EXIT.ok;
}

/** A person waits for the proposals. */
const TIMEOUT_MS = 1_500;

const IDS_MAX = 20;

/** The width of a description next to an id. */
const TEXT_COLUMNS = 60;

/** The statuses of the actions that a command is for; absent: any. */
const STATUSES: Readonly<Record<string, readonly Action["status"][]>> = {
  approve: ["awaiting_approval"],
  reject: ["awaiting_approval"],
  cancel: ["pending", "awaiting_approval"],
  retry: ["failed", "cancelled"],
  "send-now": ["pending"],
};

/** The newest actions that a command is for. None where the service can't be reached: a completion reports no errors. */
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
    return found.map((action) => ({ value: action.id, description: descriptionOf(action) }));
  } catch {
    return [];
  }
}

function descriptionOf(action: Action): string {
  const text = action.title ?? `${action.method} ${action.url}`;
  return shortened(`${statusCell(action).text}: ${visible(text)}`, TEXT_COLUMNS);
}
