import type { AccountList, AuditLog, AuditQuery, CreateKey, KeyList } from "../../client/openapi.ts";
import { HOLDS, KEY_SCOPES, ROLES } from "../../core/roles.ts";
import type { MadeByOptions, RevokeOptions } from "../../client/types.ts";
import { DAY_MS, HOUR_MS } from "../../core/limits.ts";
import { age } from "../action-text.ts";
import { type CliCommand, EXIT, given, several, UsageError, wholeNumber } from "../command.ts";
import { visible } from "../../observability/terminal.ts";
import type { Cell, Column } from "../table.ts";
import { addServiceCommand, JSON_OPTION, printList, type Session, withSession } from "../session.ts";
import { addPeopleCommands } from "./people.ts";

/** The commands about keys, callback hosts, pauses, accounts and the audit log. */
export function addAccountCommands(program: CliCommand): void {
  addKeyCommands(program);
  addCallbackHostCommands(program);
  addPauseCommands(program);
  addAccountsCommands(program);
  addPeopleCommands(program);
  addAudit(program);
}

function addKeyCommands(program: CliCommand): void {
  const keys = addServiceCommand(program, "keys", "list, create and revoke keys (owner key)").usage(
    "[list] | keys create <name> --role <role> [options] | keys revoke <id> [--unfinished <what>]",
  );
  addServiceCommand(keys, "list", "list the keys, live ones first", { isDefault: true })
    .option("--created-by <id>", "only those that this person or key created")
    .option(...JSON_OPTION)
    .runs(withSession(listKeys));
  addServiceCommand(keys, "create <name>", "create a key and print it, only this once")
    .choice("--role <role>", "what it may do", ROLES)
    .choice("--hold <hold>", "which of its actions need approval", HOLDS)
    .choice("--scope <scope>", "for an agent's key, which actions it can change; default: own", KEY_SCOPES)
    .option(
      "--replaces <id>",
      "the key that it replaces: it can change what that key created, and has its hold, scope and limits by default",
    )
    .option(
      "--host <host>",
      "a host that it may call, such as api.stripe.com or *.internal.example; several: repeat it",
      several,
    )
    .option("--method <method>", "a method that it may use; several: repeat it", several)
    .option("--daily-actions <n>", "how many actions it may create or retry a day (UTC)", wholeNumber("daily-actions"))
    .option("--expires <time>", "until when it works: a time such as 2027-03-04T12:00:00Z, or 90d or 12h from now")
    .option("--weaker-hold", "allow a weaker hold than that of the replaced key")
    .option("--own-limits", "leave out the limits of the replaced key: only those that are given apply")
    .option(...JSON_OPTION)
    .runs(withSession(createKey));
  addServiceCommand(keys, "revoke <id>", "revoke a key, at once and for good")
    .choice(
      "--unfinished <what>",
      "what happens to its unfinished actions; default: keep, they go on",
      Object.keys(UNFINISHED),
    )
    .runs(withSession(revokeKey));
}

/** The name is whole wherever it fits; a command takes the whole id of a key. */
const KEY_COLUMNS: readonly Column[] = [
  { heading: "ID" },
  { heading: "ROLE" },
  { heading: "HOLD" },
  { heading: "SCOPE", leaves: 3 },
  { heading: "LAST USED", leaves: 6 },
  { heading: "TODAY", leaves: 5 },
  { heading: "LIMITS", min: 12, leaves: 4 },
  { heading: "KEY", leaves: 2 },
  { heading: "NAME", min: 14 },
  { heading: "CREATED BY", min: 12, leaves: 1 },
];

async function listKeys(session: Session, { createdBy }: Pick<MadeByOptions, "createdBy">): Promise<void> {
  const now = new Date();
  const usedOf = (at: string | null) => (at === null ? "never" : `${age(at, now)} ago`);
  return printList(session, await session.client.listKeys({ createdBy }), {
    headings: KEY_COLUMNS,
    rowOf: (key) => [
      key.id,
      key.role,
      key.hold,
      key.scope ?? "",
      key.revoked_at === null ? usedOf(key.last_used_at) : { text: "revoked", color: "red" },
      key.daily_actions === undefined ? String(key.actions_today) : `${key.actions_today}/${key.daily_actions}`,
      limitsText(key),
      `…${key.last4}`,
      visible(key.name),
      visible(key.created_by ?? "unknown"),
    ],
  });
}

function limitsText({ hosts = [], methods = [], expires_at: end }: KeyList["data"][number]): string {
  return [...hosts, ...methods, ...(end === undefined ? [] : [`until ${end}`])].join(" ");
}

type CreateKeyOptions = Partial<Pick<CreateKey, "role" | "hold" | "scope" | "replaces">> & {
  readonly weakerHold?: boolean;
  readonly ownLimits?: boolean;
  readonly host?: string[];
  readonly method?: string[];
  readonly dailyActions?: number;
  readonly expires?: string;
};

/** A time as it is, or so many hours or days from now. */
function timeIn(text: string, now: Date): string {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(text) ?? [];
  if (count === undefined) return text;
  return new Date(now.getTime() + Number(count) * (unit === "h" ? HOUR_MS : DAY_MS)).toISOString();
}

async function createKey(session: Session, options: CreateKeyOptions, name: string): Promise<void> {
  const { client, io, asksForJson, json, say } = session;
  const { role, hold, scope, replaces, host, method, expires } = options;
  if (role === undefined) throw new UsageError("--role is missing: it has no default.");
  // Safe: the service refuses any other word.
  const methods = method?.map((one) => one.toUpperCase()) as CreateKey["methods"];
  const created = await client.createKey({
    name,
    role,
    ...given({
      hold,
      scope,
      replaces,
      hosts: host,
      methods,
      daily_actions: options.dailyActions,
      expires_at: expires === undefined ? undefined : timeIn(expires, new Date()),
      weaker_hold: options.weakerHold,
      inherit_limits: options.ownLimits === true ? false : undefined,
    }),
  });
  // In a pipe too: a script wants the key alone.
  if (asksForJson) json(created);
  else say(created.key);
  if (!asksForJson || io.isTty) io.err(`Created key ${created.id}. It is shown only this once.\n`);
}

const UNFINISHED = {
  keep: " Its actions that have not ended go on.",
  pause: " Its actions that have not ended are paused; `outgate pauses` shows the pause.",
  cancel: " Its actions that have not ended are being cancelled.",
} as const;

type RevokeKeyOptions = Pick<RevokeOptions, "unfinished">;

async function revokeKey({ client, io }: Session, { unfinished }: RevokeKeyOptions, id: string): Promise<void> {
  const revoked = await client.revokeKey(id, { unfinished });
  io.err(`${visible(id)} is revoked.${UNFINISHED[unfinished ?? "keep"]}\n`);
  const { unfinished_actions: left, held_actions: held, created_keys: made } = revoked;
  if (left > 0)
    io.err(`Not ended: ${left}. Awaiting approval: ${held}; their approvers see that the key was revoked.\n`);
  if (made > 0) io.err(`Live keys that it made: ${made}. \`outgate keys --created-by ${visible(id)}\` lists them.\n`);
}

function addCallbackHostCommands(program: CliCommand): void {
  const summary = "list and change the hosts for callbacks of keys with a hold or a limit (owner key)";
  const hosts = addServiceCommand(program, "callback-hosts", summary).usage(
    "[list] | callback-hosts add <host> | callback-hosts remove <host> | callback-hosts test <url>",
  );
  addServiceCommand(hosts, "list", "list the hosts to which callbacks of keys with a hold or a limit may go", {
    isDefault: true,
  })
    .option(...JSON_OPTION)
    .runs(withSession(listCallbackHosts));
  addServiceCommand(
    hosts,
    "add <host>",
    "add a host, such as hooks.example.com or 10.0.0.7:8080; without a port: 443 for https, 80 for http",
  )
    .option(...JSON_OPTION)
    .runs(
      withSession(async ({ client, io, json, asksForJson }, _options, host) => {
        const listed = await client.addCallbackHost(host);
        if (asksForJson) json(listed);
        io.err(`Callbacks of keys with a hold or a limit can go to ${visible(listed.host)} now.\n`);
      }),
    );
  addServiceCommand(hosts, "remove <host>", "remove a host, at once").runs(
    withSession(async ({ client, io }, _options, host) => {
      await client.removeCallbackHost(host);
      io.err(`Callbacks of keys with a hold or a limit can no longer go to ${visible(host)}.\n`);
    }),
  );
  addServiceCommand(hosts, "test <url>", "send a signed test callback to a URL on a listed host")
    .option("--wrong-signature", "then send one with a wrong signature: a receiver that verifies refuses it")
    .option(...JSON_OPTION)
    .runs(withSession(testCallback));
}

interface CallbackTestOptions {
  readonly wrongSignature?: boolean;
}

async function testCallback({ client, print }: Session, options: CallbackTestOptions, url: string): Promise<number> {
  const found = await client.testCallback({ url, wrong_signature: options.wrongSignature === true });
  const { signed, wrong_signature: wrong, verifies, delivered } = found;
  print(found, () => {
    const first = delivered ? `Delivered: ${signed.response_code} in ${signed.duration_ms} ms.` : (signed.error ?? "");
    if (wrong === null) return visible(first);
    const answer = wrong.error ?? `It was taken with ${wrong.response_code}.`;
    const verdict = verifies === true ? "It verifies signatures." : "It is not known to verify signatures.";
    return visible(`${first}\nWith a wrong signature: ${answer} ${verdict}`, true);
  });
  return delivered && verifies !== false ? EXIT.ok : EXIT.failed;
}

async function listCallbackHosts(session: Session): Promise<void> {
  const now = new Date();
  return printList(session, await session.client.listCallbackHosts(), {
    headings: ["HOST", "LISTED"],
    rowOf: ({ host, created_at: at }) => [visible(host), `${age(at, now)} ago`],
  });
}

interface PauseOptions {
  readonly host?: string;
  readonly reason?: string;
}

function addPauseCommands(program: CliCommand): void {
  addServiceCommand(
    program,
    "pause",
    "pause the account, what one key created, or calls to one host, at once (owner key)",
  )
    .usage("account | pause <key id> | pause --host <host> [--reason <text>] [--json]")
    .argument("[account or key id]", "`account` for the whole account, or a key for what it created")
    .option("--host <host>", "pause calls to this host, with its port unless that is the default")
    .option("--reason <text>", "why; shown with every paused action")
    .option(...JSON_OPTION)
    .runs(
      withSession(async ({ client, print }, { host, reason }: PauseOptions, what?: string) => {
        if ((what === undefined) === (host === undefined)) {
          throw new UsageError("Say what to pause: `account`, the id of a key, or --host <host>.");
        }
        const keyId = what === "account" ? undefined : what;
        const pause = await client.createPause(given({ key_id: keyId, host, reason }));
        print(pause, () => `Paused. To resume: outgate resume ${visible(pause.id)}`);
      }),
    );
  addServiceCommand(program, "resume", "end a pause (owner key)")
    .argument("<pause id>")
    .runs(
      withSession(async ({ client, io }, _options, id) => {
        await client.endPause(id);
        io.err(`Pause ${visible(id)} has ended.\n`);
      }),
    );
  addServiceCommand(program, "pauses", "list the pauses in force (owner key)")
    .option(...JSON_OPTION)
    .runs(
      withSession(async (session) =>
        printList(session, await session.client.listPauses(), {
          headings: [
            { heading: "ID" },
            { heading: "WHAT", min: 14 },
            { heading: "SINCE", leaves: 1 },
            { heading: "BY", min: 12, leaves: 2 },
            { heading: "REASON", min: 14 },
          ],
          rowOf: (pause) => [
            pause.id,
            visible(pause.key_id ?? pause.host ?? "the whole account"),
            pause.created_at,
            visible(pause.created_by),
            visible(pause.reason ?? ""),
          ],
          empty: "No pauses.",
        }),
      ),
    );
}

function addAccountsCommands(program: CliCommand): void {
  const summary = "list the accounts of the service, or allow a stopped one (owner key of the first account)";
  const accounts = addServiceCommand(program, "accounts", summary).usage("[list] [--json] | accounts allow <id>");
  addServiceCommand(accounts, "list", "list the accounts of the service, stopped ones first", { isDefault: true })
    .option(...JSON_OPTION)
    .runs(
      withSession(async (session) =>
        printList(session, await session.client.listAccounts(), {
          headings: ["ID", "STATE", { heading: "CREATED", leaves: 1 }, { heading: "EMAIL", min: 24 }],
          rowOf: (account) => [account.id, stateOf(account), account.created_at, visible(account.email ?? "")],
        }),
      ),
    );
  addServiceCommand(accounts, "allow", "allow a stopped account: its keys work again, and its waiting actions are sent")
    .argument("<account id>")
    .runs(
      withSession(async ({ client, io }, _options, id) => {
        await client.allowAccount(id);
        io.err(`Account ${visible(id)} is allowed: its keys work again, and its waiting actions are sent.\n`);
      }),
    );
}

function stateOf({ first, stopped }: AccountList["data"][number]): Cell {
  if (stopped) return { text: "stopped", color: "red" };
  return first ? "first" : "";
}

function addAudit(program: CliCommand): void {
  addServiceCommand(program, "audit", "show the audit log: who did what to the account, newest first (owner key)")
    .option("--kind <kind>", "such as key_revoked; may be given several times", several)
    .option("--actor <actor>", "such as user:ann@example.com")
    .option("--since <time>", "at this time or later, such as 2026-03-04T12:00:00Z")
    .option("--until <time>", "earlier than this")
    .option("--limit <n>", "1 to 100; default 20", wholeNumber("limit"))
    .option("--cursor <cursor>", "the next page, by the cursor that the last page printed")
    .option("--all", "print all entries as lines of JSON")
    .option(...JSON_OPTION)
    .runs(withSession(showAudit));
}

/** Entries per request of `--all`. */
const PAGE = 100;

async function showAudit(session: Session, options: AuditQuery & { all?: boolean }): Promise<void> {
  const { client, line } = session;
  const { all, ...query } = options;
  if (all === true) {
    for (let next: string | null | undefined = query.cursor; next !== null;) {
      const page: AuditLog = await client.listAudit({ ...query, limit: PAGE, ...(next ? { cursor: next } : {}) });
      for (const entry of page.data) line(entry);
      next = page.next_cursor;
    }
    return;
  }
  return printList(session, await client.listAudit(query), {
    headings: [
      { heading: "AT" },
      "WHAT",
      { heading: "WHO", min: 14 },
      { heading: "FROM", leaves: 1 },
      { heading: "ON WHAT", min: 17 },
    ],
    rowOf: (entry) => [
      entry.at,
      entry.kind,
      visible(entry.actor),
      visible(entry.client ?? "the service"),
      visible(entry.subject),
    ],
    empty: "No entries found.",
    command: "outgate audit",
  });
}
