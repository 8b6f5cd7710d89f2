import type { RevokeOptions } from "../../client/client.ts";
import type { CreateKey, KeyList, AccountList } from "../../accounts/schemas.ts";
import { age } from "../action-text.ts";
import { readArguments, type Command, EXIT, UsageError, wholeNumber } from "../command.ts";
import { type Session, withSession } from "../session.ts";
import { type Cell, visible, table } from "../output.ts";
import type { AuditLog, AuditQuery } from "../../audit/audit.ts";
import type { PauseList } from "../../pauses/pause.ts";

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
  details: `  list                 list the keys, live ones first
  create <name>        create a key and print it, only this once
    --role <role>      owner, approver, agent or reader
    --hold <hold>      which of its actions need approval: none, writes or all
    --scope <scope>    for an agent's key, which actions it can change: own (default) or account
    --replaces <id>    the key that it replaces: it can change what that key created, and has its hold and scope by
                       default
    --weaker-hold      allow a weaker hold than that of the replaced key
  revoke <id>          revoke a key, at once and for good
    --unfinished <what>  what happens to its unfinished actions: keep (default: they go on), pause or cancel
  --json               print JSON also on a terminal`,
  run: withSession((args, session) => {
    const [verb = "list", ...rest] = args[0]?.startsWith("-") === true ? ["list", ...args] : args;
    if (verb === "list") return list(rest, session);
    if (verb === "create") return create(rest, session);
    if (verb === "revoke") return revoke(rest, session);
    throw new UsageError(`keys takes list, create or revoke, not ${JSON.stringify(verb)}.`);
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
    visible(key.name),
  ]);
  return [head, ...rows];
}

async function create(args: readonly string[], { client, io, json, say }: Session): Promise<number> {
  const { values, positionals } = readArguments(args, CREATE, ["<name>"]);
  if (values.role === undefined) throw new UsageError("--role is missing: it has no default.");
  const request = {
    name: positionals[0],
    role: values.role,
    ...(values.hold === undefined ? {} : { hold: values.hold }),
    ...(values.scope === undefined ? {} : { scope: values.scope }),
    ...(values.replaces === undefined ? {} : { replaces: values.replaces }),
    ...(values["weaker-hold"] === true ? { weaker_hold: true } : {}),
  };
  // Safe: the service validates role, hold and scope.
  const created = await client.createKey(request as CreateKey);
  if (values.json === true) json(created);
  else say(created.key);
  if (values.json !== true || io.isTty) io.err(`Created key ${created.id}. It is shown only this once.\n`);
  return EXIT.ok;
}

async function revoke(args: readonly string[], { client, io }: Session): Promise<number> {
  const { values, positionals } = readArguments(args, REVOKE, ["<id>"]);
  const id = positionals[0] ?? "";
  // Safe: the service validates it.
  const unfinished = values.unfinished as RevokeOptions["unfinished"];
  await client.revokeKey(id, { unfinished });
  io.err(`${visible(id)} is revoked.${UNFINISHED[unfinished ?? "keep"]}\n`);
  return EXIT.ok;
}

const OPTIONS = {
  kind: { type: "string", multiple: true },
  actor: { type: "string" },
  since: { type: "string" },
  until: { type: "string" },
  limit: { type: "string" },
  cursor: { type: "string" },
  all: { type: "boolean" },
  json: { type: "boolean" },
} as const;

/** Entries per request of `--all`. */
const PAGE = 100;

/** `outgate audit`: who did what to the account, newest first. */
export const auditCommand: Command = {
  usage: "audit [options]",
  details: `  --kind <kind>      such as key_revoked; may be given several times
  --actor <actor>    such as user:ann@example.com
  --since <time>     at this time or later, such as 2026-03-04T12:00:00Z
  --until <time>     earlier than this
  --limit <n>        1 to 100; default 20
  --cursor <cursor>  the next page, by the cursor that the last page printed
  --all              print all entries as lines of JSON
  --json             print JSON also on a terminal`,
  run: withSession(async (args, { client, io, json, line, say, paint }) => {
    const { values } = readArguments(args, OPTIONS);
    const filters = {
      kind: values.kind,
      actor: values.actor,
      since: values.since,
      until: values.until,
      limit: wholeNumber(values.limit, "limit"),
      cursor: values.cursor,
    };
    // Safe: the service validates the kind.
    const query = filters as AuditQuery;
    if (values.all === true) {
      let cursor: string | null | undefined = values.cursor;
      do {
        const page: AuditLog = await client.listAudit({ ...query, limit: PAGE, ...(cursor ? { cursor } : {}) });
        for (const entry of page.data) line(entry);
        cursor = page.next_cursor;
      } while (cursor !== null);
      return EXIT.ok;
    }
    const page = await client.listAudit(query);
    if (values.json === true || !io.isTty) {
      json(page);
      return EXIT.ok;
    }
    say(page.data.length === 0 ? "No entries found." : table(auditRowsOf(page), paint, io.columns));
    if (page.next_cursor !== null) say(paint(`more: outgate audit --cursor ${page.next_cursor} …`, "grey"));
    return EXIT.ok;
  }),
};

function auditRowsOf({ data }: AuditLog): readonly (readonly Cell[])[] {
  const head = ["AT", "WHAT", "WHO", "FROM", "ON WHAT"].map((text): Cell => ({ text, color: "grey" }));
  const rows = data.map((entry): readonly Cell[] => [
    entry.at,
    entry.kind,
    visible(entry.actor),
    visible(entry.client ?? "the service"),
    visible(entry.subject),
  ]);
  return [head, ...rows];
}

/** `outgate callback-hosts`: the hosts for callbacks of keys with a hold, for an owner. */
export const callbackHostsCommand: Command = {
  usage: "callback-hosts [list] | callback-hosts add <host> | callback-hosts remove <host>",
  details: `  list                 list the hosts to which callbacks of keys with a hold may go
  add <host>           add a host, such as hooks.example.com or 10.0.0.7:8080; without a port it
                       means 443 for https and 80 for http
  remove <host>        remove a host, at once
  --json               print JSON also on a terminal`,
  run: withSession((args, session) => {
    const [verb = "list", ...rest] = args[0]?.startsWith("-") === true ? ["list", ...args] : args;
    if (verb === "list") return listHosts(rest, session);
    if (verb === "add") return add(rest, session);
    if (verb === "remove") return remove(rest, session);
    throw new UsageError(`callback-hosts takes list, add or remove, not ${JSON.stringify(verb)}.`);
  }),
};

async function listHosts(args: readonly string[], { client, io, json, say, paint }: Session): Promise<number> {
  const { values } = readArguments(args, JSON_ONLY);
  const hosts = await client.listCallbackHosts();
  if (values.json === true || !io.isTty) json(hosts);
  else {
    const head = ["HOST", "LISTED"].map((text): Cell => ({ text, color: "grey" }));
    const now = new Date();
    const rows = hosts.data.map(({ host, created_at: at }): readonly Cell[] => [visible(host), `${age(at, now)} ago`]);
    say(table([head, ...rows], paint, io.columns));
  }
  return EXIT.ok;
}

async function add(args: readonly string[], { client, io, json }: Session): Promise<number> {
  const { values, positionals } = readArguments(args, JSON_ONLY, ["<host>"]);
  const listed = await client.addCallbackHost(positionals[0] ?? "");
  if (values.json === true) json(listed);
  io.err(`Callbacks of keys with a hold can go to ${visible(listed.host)} now.\n`);
  return EXIT.ok;
}

async function remove(args: readonly string[], { client, io }: Session): Promise<number> {
  const { positionals } = readArguments(args, {}, ["<host>"]);
  const host = positionals[0] ?? "";
  await client.removeCallbackHost(host);
  io.err(`Callbacks of keys with a hold can no longer go to ${visible(host)}.\n`);
  return EXIT.ok;
}

const PAUSE = { reason: { type: "string" }, json: { type: "boolean" } } as const;

/** `outgate pause`: stops sending what a key created, or everything of the account. */
export const pauseCommand: Command = {
  usage: "pause account | pause <key id> [--reason <text>] [--json]",
  details: `  account          pause the whole account
  <key id>         pause what this key created
  --reason <text>  why; shown with every paused action
  --json           print JSON also on a terminal`,
  run: withSession(async (args, { client, io, json, say }) => {
    const { values, positionals } = readArguments(args, PAUSE, ["<account or key id>"]);
    const [what = ""] = positionals;
    const pause = await client.createPause({
      ...(what === "account" ? {} : { key_id: what }),
      ...(values.reason === undefined ? {} : { reason: values.reason }),
    });
    if (values.json === true || !io.isTty) json(pause);
    else say(`Paused. To resume: outgate resume ${visible(pause.id)}`);
    return EXIT.ok;
  }),
};

/** `outgate resume`: ends a pause. */
export const resumeCommand: Command = {
  usage: "resume <pause id>",
  run: withSession(async (args, { client, io }) => {
    const { positionals } = readArguments(args, {}, ["<pause id>"]);
    const [id = ""] = positionals;
    await client.endPause(id);
    io.err(`Pause ${visible(id)} has ended.\n`);
    return EXIT.ok;
  }),
};

/** `outgate pauses`: the pauses in force. */
export const pausesCommand: Command = {
  usage: "pauses [--json]",
  run: withSession(async (args, { client, io, json, say, paint }) => {
    const { values } = readArguments(args, JSON_ONLY);
    const pauses = await client.listPauses();
    if (values.json === true || !io.isTty) json(pauses);
    else say(pauses.data.length === 0 ? "Nothing is paused." : table(pauseRowsOf(pauses), paint, io.columns));
    return EXIT.ok;
  }),
};

function pauseRowsOf({ data }: PauseList): readonly (readonly Cell[])[] {
  const head = ["ID", "WHAT", "SINCE", "BY", "REASON"].map((text): Cell => ({ text, color: "grey" }));
  const rows = data.map((pause): readonly Cell[] => [
    pause.id,
    pause.key_id ?? "the whole account",
    pause.created_at,
    visible(pause.created_by),
    visible(pause.reason ?? ""),
  ]);
  return [head, ...rows];
}

/** `outgate accounts`: the accounts of the service, for an owner of the first one. */
export const accountsCommand: Command = {
  usage: "accounts [list] [--json] | accounts allow <id>",
  details: `  list        list the accounts of the service, stopped ones first
  allow <id>  allow a stopped account: its keys work again, and its waiting actions are sent
  --json      print JSON also on a terminal`,
  run: withSession((args, session) => {
    const [verb = "list", ...rest] = args[0]?.startsWith("-") === true ? ["list", ...args] : args;
    if (verb === "list") return listAccounts(rest, session);
    if (verb === "allow") return allow(rest, session);
    throw new UsageError(`accounts takes list or allow, not ${JSON.stringify(verb)}.`);
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
  const head = ["ID", "STATE", "CREATED", "EMAIL"].map((text): Cell => ({ text, color: "grey" }));
  const stateOf = ({ first, stopped }: AccountList["data"][number]): Cell => {
    if (stopped) return { text: "stopped", color: "red" };
    return first ? "first" : "";
  };
  return [
    head,
    ...data.map((one): readonly Cell[] => [one.id, stateOf(one), one.created_at, visible(one.email ?? "")]),
  ];
}

async function allow(args: readonly string[], { client, io }: Session): Promise<number> {
  const { positionals } = readArguments(args, {}, ["<account id>"]);
  const id = positionals[0] ?? "";
  await client.allowAccount(id);
  io.err(`Account ${visible(id)} is allowed: its keys work again, and its waiting actions are sent.\n`);
  return EXIT.ok;
}
