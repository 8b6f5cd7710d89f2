import { age } from "../action-text.ts";
import { readArguments } from "../arguments.ts";
import { type Command, EXIT, UsageError } from "../command.ts";
import { type Session, withSession } from "../session.ts";
import { type Cell, seen, table } from "../style.ts";

const JSON_ONLY = { json: { type: "boolean" } } as const;

/** `outgate callback-hosts`: where callbacks of keys with a hold may go, for an owner. */
export const callbackHostsCommand: Command = {
  usage: "callback-hosts [list] | callback-hosts add <host> | callback-hosts remove <host>",
  details: `  list                 the hosts to which callbacks of keys with a hold may go
  add <host>           lists a host, such as hooks.example.com or 10.0.0.7:8080; without a port it
                       means 443 for https and 80 for http
  remove <host>        takes it off the list, at once
  --json               JSON also on a terminal`,
  run: withSession((args, session) => {
    const [verb = "list", ...rest] = args[0]?.startsWith("-") === true ? ["list", ...args] : args;
    if (verb === "list") return listHosts(rest, session);
    if (verb === "add") return add(rest, session);
    if (verb === "remove") return remove(rest, session);
    throw new UsageError(`callback-hosts knows list, add and remove, not ${JSON.stringify(verb)}.`);
  }),
};

async function listHosts(args: readonly string[], { client, io, json, say, paint }: Session): Promise<number> {
  const { values } = readArguments(args, JSON_ONLY);
  const hosts = await client.listCallbackHosts();
  if (values.json === true || !io.isTty) json(hosts);
  else {
    const head = ["HOST", "LISTED"].map((text): Cell => ({ text, color: "grey" }));
    const now = new Date();
    const rows = hosts.data.map(({ host, created_at: at }): readonly Cell[] => [seen(host), `${age(at, now)} ago`]);
    say(table([head, ...rows], paint, io.columns));
  }
  return EXIT.ok;
}

async function add(args: readonly string[], { client, io, json }: Session): Promise<number> {
  const { values, positionals } = readArguments(args, JSON_ONLY, ["<host>"]);
  const listed = await client.addCallbackHost(positionals[0] ?? "");
  if (values.json === true) json(listed);
  io.err(`Callbacks of keys with a hold may go to ${seen(listed.host)}.\n`);
  return EXIT.ok;
}

async function remove(args: readonly string[], { client, io }: Session): Promise<number> {
  const { positionals } = readArguments(args, {}, ["<host>"]);
  const host = positionals[0] ?? "";
  await client.removeCallbackHost(host);
  io.err(`Callbacks of keys with a hold go to ${seen(host)} no longer.\n`);
  return EXIT.ok;
}
