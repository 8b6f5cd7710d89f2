/** Every command by name, as the writer thread of a file (`libsql/worker.ts`) is told what to run. */
import { type AnyCommand, execute, isCommand } from "./command.ts";
import * as accountSettings from "./account-settings.ts";
import * as accounts from "./accounts.ts";
import * as actions from "./actions.ts";
import * as activity from "./activity.ts";
import * as audit from "./audit.ts";
import * as bulk from "./bulk.ts";
import * as claims from "./claims.ts";
import * as channels from "./channels.ts";
import * as credentials from "./credentials.ts";
import * as grants from "./grants.ts";
import * as facts from "./facts.ts";
import * as keyLimits from "./key-limits.ts";
import * as links from "./links.ts";
import * as oauth from "./oauth.ts";
import * as outbox from "./outbox.ts";
import * as pauses from "./pauses.ts";
import * as people from "./people.ts";
import * as rules from "./rules.ts";
import * as secrets from "./secrets.ts";
import * as signing from "./signing.ts";
import * as upkeep from "./upkeep.ts";

/** Every command by its name for the writer thread, such as `actions.createActions`. */
const COMMANDS: ReadonlyMap<string, AnyCommand> = new Map(
  Object.entries({
    accountSettings,
    accounts,
    actions,
    activity,
    audit,
    bulk,
    channels,
    claims,
    credentials,
    grants,
    facts,
    keyLimits,
    links,
    oauth,
    outbox,
    pauses,
    people,
    rules,
    secrets,
    signing,
    statements: { execute },
    upkeep,
  }).flatMap(([subject, offered]) =>
    Object.entries<unknown>(offered).flatMap(([name, one]) =>
      isCommand(one) ? [[`${subject}.${name}`, one] as const] : [],
    ),
  ),
);

const NAMES: ReadonlyMap<AnyCommand, string> = new Map([...COMMANDS].map(([name, one]) => [one, name]));

export function findCommand(name: string): AnyCommand {
  const found = COMMANDS.get(name);
  if (found === undefined) throw new Error(`There is no command ${name}.`);
  return found;
}

export function nameOfCommand(command: AnyCommand): string {
  const name = NAMES.get(command);
  if (name === undefined) throw new Error("The command is not in db/commands/all.ts.");
  return name;
}
