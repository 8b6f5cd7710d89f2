import { MEMBER_ROLES, type MemberRole } from "../../core/roles.ts";
import { age } from "../action-text.ts";
import { type CliCommand, UsageError } from "../command.ts";
import { visible } from "../../observability/terminal.ts";
import { addServiceCommand, JSON_OPTION, printList, type Session, withSession } from "../session.ts";

/** The commands about the people of an account and its invitations. */
export function addPeopleCommands(program: CliCommand): void {
  const people = addServiceCommand(
    program,
    "people",
    "list, invite and remove the people of the account (owner key)",
  ).usage(
    "[list] | people invite <email> --role <role> | people invitations | people withdraw <invitation id> | people role <id> <role> | people remove <id>",
  );
  addServiceCommand(people, "list", "list the people, with their roles", { isDefault: true })
    .option(...JSON_OPTION)
    .runs(withSession(listPeople));
  addServiceCommand(people, "invite <email>", "invite somebody and print the link for them, only this once")
    .choice("--role <role>", "what they may do", MEMBER_ROLES)
    .option(...JSON_OPTION)
    .runs(withSession(invite));
  addServiceCommand(people, "invitations", "list the open invitations")
    .option(...JSON_OPTION)
    .runs(withSession(listInvitations));
  addServiceCommand(people, "withdraw <invitation-id>", "withdraw an invitation: its link works no more").runs(
    withSession(async ({ client, io }, _options, id) => {
      await client.withdrawInvitation(id);
      io.err(`${visible(id)} is withdrawn.\n`);
    }),
  );
  addServiceCommand(people, "role <id> <role>", "change what a person may do, at once")
    .option(...JSON_OPTION)
    .runs(withSession(changeRole));
  addServiceCommand(people, "remove <id>", "remove a person from the account; their sessions in it end at once").runs(
    withSession(async ({ client, io }, _options, id) => {
      await client.removePerson(id);
      io.err(`${visible(id)} is removed. Keys that they know still work: revoke those.\n`);
      io.err(`\`outgate keys --created-by ${visible(id)}\` lists those that they made.\n`);
    }),
  );
}

async function listPeople(session: Session): Promise<void> {
  const now = new Date();
  return printList(session, await session.client.listPeople(), {
    headings: ["ID", "ROLE", { heading: "LAST SEEN", leaves: 1 }, { heading: "EMAIL", min: 24 }],
    rowOf: ({ id, role, last_seen_at: seen, email }) => [
      id,
      role,
      seen === null ? "never" : `${age(seen, now)} ago`,
      visible(email),
    ],
    empty: "Nobody. `outgate welcome-link` invites the first person.",
  });
}

async function listInvitations(session: Session): Promise<void> {
  return printList(session, await session.client.listInvitations(), {
    headings: [
      "ID",
      "ROLE",
      { heading: "ENDS", leaves: 2 },
      { heading: "BY", leaves: 1 },
      { heading: "EMAIL", min: 24 },
    ],
    rowOf: ({ id, role, expires_at: ends, created_by: by, email }) => [id, role, ends, visible(by), visible(email)],
    empty: "No invitation is open.",
  });
}

async function invite(session: Session, { role }: { readonly role?: MemberRole }, email: string): Promise<void> {
  const { client, io, asksForJson, json, say } = session;
  if (role === undefined) throw new UsageError("--role is missing: it has no default.");
  const created = await client.createInvitation({ email, role });
  // In a pipe too: a script wants the link alone.
  if (asksForJson) json(created);
  else say(created.link);
  const mailed = created.mailed ? " It is mailed too." : "";
  if (!asksForJson || io.isTty) io.err(`Invitation ${created.id}. The link is shown only this once.${mailed}\n`);
}

async function changeRole({ client, print }: Session, _options: object, id: string, wanted: string): Promise<void> {
  const role = MEMBER_ROLES.find((one) => one === wanted);
  if (role === undefined) throw new UsageError(`<role> is ${MEMBER_ROLES.join(", ")}, not ${JSON.stringify(wanted)}.`);
  const person = await client.changePerson(id, { role });
  print(person, () => `${visible(person.email)} is ${person.role} now.`);
}
