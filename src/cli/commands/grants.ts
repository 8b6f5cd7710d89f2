import { visible } from "../../observability/terminal.ts";
import type { CliCommand } from "../command.ts";

/** Adds the commands about grants, with which people allow agents something for a while. */
export function addGrantCommands(program: CliCommand): void {
  const grants = program
    .service("grants", "show or end what people allow agents for a while (approver or owner key)")
    .usage("[list] | grants end <id>");
  grants.service("list", "show the grants, those in force first", { isDefault: true }).lists(
    (client) => client.listGrants(),
    [
      ["ID", ({ id }) => id],
      ["KEY", ({ key_id: key }) => key, { leaves: 1 }],
      ["USED", ({ used, calls }) => `${used} of ${calls}${used < calls ? "" : ", used up"}`],
      ["EXPIRES", ({ expires_at: at }) => at],
      ["MADE BY", ({ created_by: by }) => visible(by), { min: 12 }],
    ],
    "No grant is in force.",
  );
  grants
    .service("end <id>", "hold calls like that again, also those that it let pass and that were not sent yet")
    .calls(({ client, done }, _options, id) => done(client.endGrant(id), `${id} has ended.`));
}
