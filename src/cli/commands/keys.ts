import type { RevokeOptions } from "../../client/client.ts";
import type { CreateKey, KeyList } from "../../contract/key.ts";
import { age } from "../action-text.ts";
import { readArguments } from "../arguments.ts";
import { type Command, EXIT, UsageError } from "../command.ts";
import { type Session, withSession } from "../session.ts";
import { type Cell, seen, table } from "../style.ts";

const JSON_ONLY = { json: { type: "boolean" } } as const;
const CREATE = {
  ...JSON_ONLY,
  role: { type: "string" },
  hold: { type: "string" },
  scope: { type: "string" },
  replaces: { type: "string" },
  "weaker-hold": { type: "boolean" },
} as const;

const REVOKE = { unfinished: { type: "string" } } as const;
const UNFINISHED = {
  keep: " Its actions that have not ended go on.",
  pause: " Its actions that have not ended are paused; `outgate pauses` shows the pause.",
  cancel: " Its actions that have not ended are being cancelled.",
} as const;

/** `outgate keys`: the account's keys, for an owner. */
export const keysCommand: Command = {
  usage: "keys [list] | keys create <name> --role <role> [options] | keys revoke <id> [--unfinished <what>]",
  details: `  list                 the keys, those that are live first
  create <name>        a new key, shown this once
    --role <role>      owner, approver, agent or reader
    --hold <hold>      which of its creates wait for a person: none, writes or all
    --scope <scope>    of an agent's key, what it acts on: own (what it created, unless it is said) or account
    --replaces <id>    the key whose place it takes: it acts on what that created, and has its hold and scope unless
                       they are said
    --weaker-hold      its hold is meant to be weaker than that of the key that it replaces
  revoke <id>          ends a key, at once and for good
    --unfinished <what>  its actions that have not ended: keep (they go on, unless it is said), pause or cancel
  --json               JSON also on a terminal`,
  run: withSession((args, session) => {
    const [verb = "list", ...rest] = args[0]?.startsWith("-") === true ? ["list", ...args] : args;
    if (verb === "list") return list(rest, session);
    if (verb === "create") return create(rest, session);
    if (verb === "revoke") return revoke(rest, session);
    throw new UsageError(`keys knows list, create and revoke, not ${JSON.stringify(verb)}.`);
  }),
};

async function list(args: readonly string[], { client, io, json, say, paint }: Session): Promise<number> {
  const { values } = readArguments(args, JSON_ONLY);
  const keys = await client.listKeys();
  if (values.json === true || !io.isTty) json(keys);
  else say(table(rowsOf(keys), paint, io.columns));
  return EXIT.ok;
}

function rowsOf({ data }: KeyList): readonly (readonly Cell[])[] {
  const head = ["ID", "ROLE", "HOLD", "SCOPE", "LAST USED", "KEY", "NAME"].map((text): Cell => ({
    text,
    color: "grey",
  }));
  const now = new Date();
  const usedOf = (at: string | null) => (at === null ? "never" : `${age(at, now)} ago`);
  const rows = data.map((key): readonly Cell[] => [
    key.id,
    key.role,
    key.hold,
    key.scope ?? "",
    key.revoked_at === null ? usedOf(key.last_used_at) : { text: "revoked", color: "red" },
    `…${key.last4}`,
    seen(key.name),
  ]);
  return [head, ...rows];
}

async function create(args: readonly string[], { client, io, json, say }: Session): Promise<number> {
  const { values, positionals } = readArguments(args, CREATE, ["<name>"]);
  if (values.role === undefined) throw new UsageError("--role is missing: nobody gets an owner key by leaving it out.");
  const asked = {
    name: positionals[0],
    role: values.role,
    ...(values.hold === undefined ? {} : { hold: values.hold }),
    ...(values.scope === undefined ? {} : { scope: values.scope }),
    ...(values.replaces === undefined ? {} : { replaces: values.replaces }),
    ...(values["weaker-hold"] === true ? { weaker_hold: true } : {}),
  };
  // Safe: whatever else a person may have written as a role, the service says what is wrong with it.
  const created = await client.createKey(asked as CreateKey);
  if (values.json === true) json(created);
  else say(created.key);
  if (values.json !== true || io.isTty) io.err(`Key ${created.id}: it is shown this once.\n`);
  return EXIT.ok;
}

async function revoke(args: readonly string[], { client, io }: Session): Promise<number> {
  const { values, positionals } = readArguments(args, REVOKE, ["<id>"]);
  const id = positionals[0] ?? "";
  // Safe: whatever else a person may have written, the service says what is wrong with it.
  const unfinished = values.unfinished as RevokeOptions["unfinished"];
  await client.revokeKey(id, { unfinished });
  io.err(`${seen(id)} is revoked.${UNFINISHED[unfinished ?? "keep"]}\n`);
  return EXIT.ok;
}
