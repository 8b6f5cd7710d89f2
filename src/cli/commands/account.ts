import type { AuditLog, AuditQuery, CreateKey, CreatePause, KeyList, TestCallback } from "../../client/api.ts";
import { HOLDS, KEY_SCOPES, MEMBER_ROLES, ROLES, type MemberRole } from "../../core/roles.ts";
import type { RevokeOptions } from "../../client/types.ts";
import { DAY_MS, HOUR_MS } from "../../core/limits.ts";
import { agoText } from "../action-text.ts";
import { type CliCommand, CliOption, JSON_OPTION } from "../command.ts";
import { given, several, severalMethods, wholeNumber } from "../option-values.ts";
import { EXIT, UsageError } from "../io.ts";
import { visible } from "../../observability/terminal.ts";
import { type ListColumn } from "../session.ts";

export function addAccountCommands(program: CliCommand): void {
  const keys = program.serviceCommand("keys", "list, create and revoke keys (owner key)");
  keys
    .serviceCommand("list", "list the keys, live ones first", { isDefault: true })
    .option("--created-by <id>", "only those that this person or key created")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }, { created_by: createdBy }: { readonly created_by?: string }) =>
      printList(await client.listKeys({ createdBy }), "No keys found.", KEY_COLUMNS),
    );
  keys
    .serviceCommand("create <name>", "create a key and print it, only this once")
    .choice("--role <role>", "what it may do", ROLES)
    .choice("--hold <hold>", "which of its actions need approval", HOLDS)
    .choice("--scope <scope>", "for an agent's key, which actions it can change; default: own", KEY_SCOPES)
    .option(
      "--replaces <id>",
      "the key that it replaces: it can change what that key created, and has its hold, scope and limits by default",
    )
    .member(
      "hosts",
      "--host <host>",
      "a host that it may call, such as api.stripe.com or *.internal.example; several: repeat it",
      several,
    )
    .member("methods", "--method <method>", "a method that it may use; several: repeat it", severalMethods)
    .option("--daily-actions <n>", "how many actions it may create or retry a day (UTC)", wholeNumber("daily-actions"))
    .member(
      "expires_at",
      "--expires <time>",
      "until when it works: a time such as 2027-03-04T12:00:00Z, or 90d or 12h from now",
      timeIn,
    )
    .option("--weaker-hold", "allow a weaker hold than that of the replaced key")
    .addOption(
      new CliOption(
        "--own-limits",
        "leave out the limits of the replaced key: only those that are given apply",
        "inherit_limits",
      ).preset(false),
    )
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, once }, name: string, { role, ...more }: Partial<CreateKey>) => {
      if (role === undefined) throw new UsageError("--role is missing: it has no default.");
      const created = await client.createKey({ ...more, name, role });
      once(created, created.key, `Created key ${created.id}. It is shown only this once.`);
    });
  keys
    .serviceCommand("revoke <id>", "revoke a key, at once and for good")
    .choice(
      "--unfinished <what>",
      "what happens to its unfinished actions; default: keep, they go on",
      Object.keys(UNFINISHED),
    )
    .sessionAction(async ({ client, io }, id: string, { unfinished }: RevokeOptions) => {
      const revoked = await client.revokeKey(id, { unfinished });
      io.err(`${visible(id)} is revoked.${UNFINISHED[unfinished ?? "keep"]}\n`);
      const { unfinished_actions: left, held_actions: held, created_keys: made } = revoked;
      if (left > 0)
        io.err(`Not ended: ${left}. Awaiting approval: ${held}; their approvers see that the key was revoked.\n`);
      if (made > 0)
        io.err(`Live keys that it made: ${made}. \`outgate keys --created-by ${visible(id)}\` lists them.\n`);
    });
  const hosts = program.serviceCommand(
    "callback-hosts",
    "list and change the hosts that callbacks may go to (owner key)",
  );
  hosts
    .serviceCommand(
      "list",
      "list the hosts that callbacks of keys with a hold or a limit, and of agents under rules, may go to",
      { isDefault: true },
    )
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }) =>
      printList(await client.listCallbackHosts(), "No host is listed.", [
        ["HOST", ({ host }) => host],
        ["LISTED", ({ created_at: at }, now) => agoText(at, now)],
      ]),
    );
  hosts
    .serviceCommand(
      "add <host>",
      "add a host, such as hooks.example.com or 10.0.0.7:8080; without a port: 443 for https, 80 for http",
    )
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, io, json, asksForJson }, host: string) => {
      const listed = await client.addCallbackHost(host);
      if (asksForJson) json(listed);
      io.err(`Callbacks of all keys can go to ${visible(listed.host)} now.\n`);
    });
  hosts
    .serviceCommand("remove <host>", "remove a host, at once")
    .sessionAction(({ client, done }, host: string) =>
      done(client.removeCallbackHost(host), `${host} is no longer listed for callbacks.`),
    );
  hosts
    .serviceCommand("test <url>", "send a signed test callback to a URL on a listed host")
    .option("--wrong-signature", "then send one with a wrong signature: a receiver that verifies refuses it")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, url: string, options: Omit<TestCallback, "url">) => {
      const found = await client.testCallback({ ...options, url });
      const { signed, wrong_signature: wrong, verifies, delivered } = found;
      print(found, () => {
        const first = delivered
          ? `Delivered: ${signed.response_code} in ${signed.duration_ms} ms.`
          : (signed.error ?? "");
        if (wrong === null) return visible(first);
        const answer = wrong.error ?? `It was taken with ${wrong.response_code}.`;
        const verdict = verifies === true ? "It verifies signatures." : "It is not known to verify signatures.";
        return visible(`${first}\nWith a wrong signature: ${answer} ${verdict}`, true);
      });
      return delivered && verifies !== false ? EXIT.ok : EXIT.failed;
    });
  program
    .serviceCommand("pause", "pause the account, what one key created, or calls to one host, at once (owner key)")
    .usage("account | pause <key id> | pause --host <host> [--reason <text>] [--json]")
    .argument("[account or key id]", "`account` for the whole account, or a key for what it created")
    .option("--host <host>", "pause calls to this host, with its port unless that is the default")
    .option("--reason <text>", "why; shown with every paused action")
    .option(...JSON_OPTION)
    .sessionAction(
      async ({ client, print }, what: string | undefined, { host, reason }: Pick<CreatePause, "host" | "reason">) => {
        if ((what === undefined) === (host === undefined)) {
          throw new UsageError("Say what to pause: `account`, the id of a key, or --host <host>.");
        }
        const keyId = what === "account" ? undefined : what;
        const pause = await client.createPause(given({ key_id: keyId, host, reason }));
        print(pause, () => `Paused. To resume: outgate resume ${visible(pause.id)}`);
      },
    );
  program
    .serviceCommand("resume", "end a pause (owner key)")
    .argument("<pause id>")
    .sessionAction(({ client, done }, id: string) => done(client.endPause(id), `Pause ${id} has ended.`));
  program
    .serviceCommand("pauses", "list the pauses in force (owner key)")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }) =>
      printList(await client.listPauses(), "No pauses.", [
        ["ID", ({ id }) => id],
        ["WHAT", ({ key_id: keyId, host }) => keyId ?? host ?? "the whole account", { min: 14 }],
        ["SINCE", ({ created_at: at }) => at, { leaves: 1 }],
        ["BY", ({ created_by: by }) => by, { min: 12, leaves: 2 }],
        ["REASON", ({ reason }) => reason ?? "", { min: 14 }],
      ]),
    );
  const accounts = program.serviceCommand(
    "accounts",
    "list the accounts of the service, or allow a stopped one (owner key of the first account)",
  );
  accounts
    .serviceCommand("list", "list the accounts of the service, stopped ones first", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }) =>
      printList(await client.listAccounts(), "No accounts.", [
        ["ID", ({ id }) => id],
        [
          "STATE",
          ({ first, stopped }) => {
            if (stopped) return { text: "stopped", color: "red" };
            return first ? "first" : "";
          },
        ],
        ["CREATED", ({ created_at: at }) => at, { leaves: 1 }],
        ["EMAIL", ({ email }) => email ?? "", { min: 24 }],
      ]),
    );
  accounts
    .serviceCommand("allow", "allow a stopped account: its keys work again, and its waiting actions are sent")
    .argument("<account id>")
    .sessionAction(({ client, done }, id: string) =>
      done(client.allowAccount(id), `Account ${id} is allowed: its keys work again, and its waiting actions are sent.`),
    );
  addPeopleCommands(program);
  program
    .serviceCommand("audit", "show the audit log: who did what to the account, newest first (owner key)")
    .option("--kind <kind>", "such as key_revoked; may be given several times", several)
    .option("--actor <actor>", "such as user:ann@example.com")
    .option("--since <time>", "at this time or later, such as 2026-03-04T12:00:00Z")
    .option("--until <time>", "earlier than this")
    .pages()
    .option("--all", "print all entries as lines of JSON")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, line, printList }, { all = false, ...query }: AuditQuery & { all?: boolean }) => {
      if (!all) {
        return printList(await client.listAudit(query), "No entries found.", AUDIT_COLUMNS);
      }
      for (let next: string | null | undefined = query.cursor; next !== null;) {
        const page: AuditLog = await client.listAudit({ ...query, limit: PAGE, ...(next ? { cursor: next } : {}) });
        for (const entry of page.data) line(entry);
        next = page.next_cursor;
      }
    });
}

/** Shows ids whole, because commands need whole key ids. Cuts names only if they don't fit. */
const KEY_COLUMNS: readonly ListColumn<KeyList["data"][number]>[] = [
  ["ID", ({ id }) => id],
  ["ROLE", ({ role }) => role],
  ["HOLD", ({ hold }) => hold],
  ["SCOPE", ({ scope }) => scope ?? "", { leaves: 3 }],
  [
    "LAST USED",
    ({ revoked_at: revoked, last_used_at: used }, now) =>
      revoked === null ? agoText(used, now) : { text: "revoked", color: "red" },
    { leaves: 6 },
  ],
  [
    "TODAY",
    ({ actions_today: n, daily_actions: most }) => (most === undefined ? `${n}` : `${n}/${most}`),
    { leaves: 5 },
  ],
  ["LIMITS", limitsText, { min: 12, leaves: 4 }],
  ["KEY", ({ last4 }) => `…${last4}`, { leaves: 2 }],
  ["NAME", ({ name }) => name, { min: 14 }],
  ["CREATED BY", ({ created_by: by }) => by ?? "unknown", { min: 12, leaves: 1 }],
];

function limitsText({ hosts = [], methods = [], expires_at: end }: KeyList["data"][number]): string {
  return [...hosts, ...methods, ...(end === undefined ? [] : [`until ${end}`])].join(" ");
}

/** Reads a time, or a number of hours or days from now. */
function timeIn(text: string): string {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(text) ?? [];
  if (count === undefined) return text;
  return new Date(Date.now() + Number(count) * (unit === "h" ? HOUR_MS : DAY_MS)).toISOString();
}

const UNFINISHED = {
  keep: " Its actions that have not ended go on.",
  pause: " Its actions that have not ended are paused; `outgate pauses` shows the pause.",
  cancel: " Its actions that have not ended are being cancelled.",
} as const;

const PAGE = 100;

const AUDIT_COLUMNS: readonly ListColumn<AuditLog["data"][number]>[] = [
  ["AT", ({ at }) => at],
  ["WHAT", ({ kind }) => kind],
  ["WHO", ({ actor }) => actor, { min: 14 }],
  ["FROM", ({ client }) => client ?? "the service", { leaves: 1 }],
  ["ON WHAT", ({ subject }) => subject, { min: 17 }],
];

function addPeopleCommands(program: CliCommand): void {
  const people = program.serviceCommand("people", "list, invite and remove the people of the account (owner key)");
  people
    .serviceCommand("list", "list the people, with their roles", { isDefault: true })
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }) =>
      printList(await client.listPeople(), "No one. `outgate welcome-link` invites the first person.", [
        ["ID", ({ id }) => id],
        ["ROLE", ({ role }) => role],
        ["LAST SEEN", ({ last_seen_at: seen }, now) => agoText(seen, now), { leaves: 1 }],
        ["EMAIL", ({ email }) => email, { min: 24 }],
      ]),
    );
  people
    .serviceCommand("invite <email>", "invite someone and print the link for them, only this once")
    .choice("--role <role>", "what they may do", MEMBER_ROLES)
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, once }, email: string, { role }: { readonly role?: MemberRole }) => {
      if (role === undefined) throw new UsageError("--role is missing: it has no default.");
      const created = await client.createInvitation({ email, role });
      const mailed = created.mailed ? " It is mailed too." : "";
      once(created, created.link, `Invitation ${created.id}. The link is shown only this once.${mailed}`);
    });
  people
    .serviceCommand("invitations", "list the open invitations")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, printList }) =>
      printList(await client.listInvitations(), "No invitation is open.", [
        ["ID", ({ id }) => id],
        ["ROLE", ({ role }) => role],
        ["ENDS", ({ expires_at: end }) => end, { leaves: 2 }],
        ["BY", ({ created_by: by }) => by, { leaves: 1 }],
        ["EMAIL", ({ email }) => email, { min: 24 }],
      ]),
    );
  people
    .serviceCommand("withdraw <invitation-id>", "withdraw an invitation: its link works no more")
    .sessionAction(({ client, done }, id: string) => done(client.withdrawInvitation(id), `${id} is withdrawn.`));
  people
    .serviceCommand("role <id> <role>", "change what a person may do, at once")
    .option(...JSON_OPTION)
    .sessionAction(async ({ client, print }, id: string, wanted: string) => {
      const role = MEMBER_ROLES.find((one) => one === wanted);
      if (role === undefined) {
        throw new UsageError(`<role> is ${MEMBER_ROLES.join(", ")}, not ${JSON.stringify(wanted)}.`);
      }
      print(await client.changePerson(id, { role }), (person) => `${visible(person.email)} is ${person.role} now.`);
    });
  people
    .serviceCommand("remove <id>", "remove a person from the account; their sessions in it end at once")
    .sessionAction(async ({ client, io }, id: string) => {
      await client.removePerson(id);
      io.err(`${visible(id)} is removed. Keys that they know still work: revoke those.\n`);
      io.err(`\`outgate keys --created-by ${visible(id)}\` lists those that they made.\n`);
    });
}
