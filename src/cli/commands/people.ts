import { MEMBER_ROLES, type MemberRole } from "../../core/roles.ts";
import { ago } from "../action-text.ts";
import type { CliCommand } from "../command.ts";
import { UsageError } from "../io.ts";
import { visible } from "../../observability/terminal.ts";

export function addPeopleCommands(program: CliCommand): void {
  const people = program.service("people", "list, invite and remove the people of the account (owner key)");
  people.service("list", "list the people, with their roles", { isDefault: true }).lists(
    (client) => client.listPeople(),
    [
      ["ID", ({ id }) => id],
      ["ROLE", ({ role }) => role],
      ["LAST SEEN", ({ last_seen_at: seen }, now) => ago(seen, now), { leaves: 1 }],
      ["EMAIL", ({ email }) => visible(email), { min: 24 }],
    ],
    { empty: "Nobody. `outgate welcome-link` invites the first person." },
  );
  people
    .service("invite <email>", "invite somebody and print the link for them, only this once")
    .choice("--role <role>", "what they may do", MEMBER_ROLES)
    .prints(async ({ client, once }, { role }: { readonly role?: MemberRole }, email) => {
      if (role === undefined) throw new UsageError("--role is missing: it has no default.");
      const created = await client.createInvitation({ email, role });
      const mailed = created.mailed ? " It is mailed too." : "";
      once(created, created.link, `Invitation ${created.id}. The link is shown only this once.${mailed}`);
    });
  people.service("invitations", "list the open invitations").lists(
    (client) => client.listInvitations(),
    [
      ["ID", ({ id }) => id],
      ["ROLE", ({ role }) => role],
      ["ENDS", ({ expires_at: end }) => end, { leaves: 2 }],
      ["BY", ({ created_by: by }) => visible(by), { leaves: 1 }],
      ["EMAIL", ({ email }) => visible(email), { min: 24 }],
    ],
    { empty: "No invitation is open." },
  );
  people
    .service("withdraw <invitation-id>", "withdraw an invitation: its link works no more")
    .calls(({ client, done }, _options, id) => done(client.withdrawInvitation(id), `${id} is withdrawn.`));
  people
    .service("role <id> <role>", "change what a person may do, at once")
    .prints(async ({ client, print }, _options, id, wanted) => {
      const role = MEMBER_ROLES.find((one) => one === wanted);
      if (role === undefined) {
        throw new UsageError(`<role> is ${MEMBER_ROLES.join(", ")}, not ${JSON.stringify(wanted)}.`);
      }
      print(await client.changePerson(id, { role }), (person) => `${visible(person.email)} is ${person.role} now.`);
    });
  people
    .service("remove <id>", "remove a person from the account; their sessions in it end at once")
    .calls(async ({ client, io }, _options, id) => {
      await client.removePerson(id);
      io.err(`${visible(id)} is removed. Keys that they know still work: revoke those.\n`);
      io.err(`\`outgate keys --created-by ${visible(id)}\` lists those that they made.\n`);
    });
}
