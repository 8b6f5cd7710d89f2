import type { AccountList } from "../../contract/accounts.ts";
import { readArguments } from "../arguments.ts";
import { type Command, EXIT, UsageError } from "../command.ts";
import { type Session, withSession } from "../session.ts";
import { type Cell, seen, table } from "../style.ts";

const JSON_ONLY = { json: { type: "boolean" } } as const;

/** `outgate accounts`: who was signed up, and who of them is stopped, for an owner of the first account. */
export const accountsCommand: Command = {
  usage: "accounts [list] [--json] | accounts allow <id>",
  details: `  list        the accounts of the service, those that are stopped first
  allow <id>  takes the keys of one that is stopped again; what waited of it is sent
  --json      JSON also on a terminal`,
  run: withSession((args, session) => {
    const [verb = "list", ...rest] = args[0]?.startsWith("-") === true ? ["list", ...args] : args;
    if (verb === "list") return listAccounts(rest, session);
    if (verb === "allow") return allow(rest, session);
    throw new UsageError(`accounts knows list and allow, not ${JSON.stringify(verb)}.`);
  }),
};

async function listAccounts(args: readonly string[], { client, io, json, say, paint }: Session): Promise<number> {
  const { values } = readArguments(args, JSON_ONLY);
  const accounts = await client.listAccounts();
  if (values.json === true || !io.isTty) json(accounts);
  else say(table(accountRowsOf(accounts), paint, io.columns));
  return EXIT.ok;
}

function accountRowsOf({ data }: AccountList): readonly (readonly Cell[])[] {
  const head = ["ID", "STATE", "MADE", "EMAIL"].map((text): Cell => ({ text, color: "grey" }));
  const stateOf = ({ first, stopped }: AccountList["data"][number]): Cell => {
    if (stopped) return { text: "stopped", color: "red" };
    return first ? "first" : "";
  };
  return [head, ...data.map((one): readonly Cell[] => [one.id, stateOf(one), one.created_at, seen(one.email ?? "")])];
}

async function allow(args: readonly string[], { client, io }: Session): Promise<number> {
  const { positionals } = readArguments(args, {}, ["<account id>"]);
  const id = positionals[0] ?? "";
  await client.allowAccount(id);
  io.err(`${seen(id)} is allowed: its keys are taken again, and what waited of it is sent.\n`);
  return EXIT.ok;
}
