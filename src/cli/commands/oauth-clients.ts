import type { CreateOAuthClient, NewOAuthClient } from "../../client/openapi.ts";
import { visible } from "../../observability/terminal.ts";
import { type CliCommand, several } from "../command.ts";
import { UsageError } from "../io.ts";
import type { Session } from "../session.ts";

export function addOAuthClientCommands(program: CliCommand): void {
  const clients = program.service(
    "oauth-clients",
    "list, add and remove clients that people connect by logging in (owner key)",
  );
  clients.service("list", "list the clients that owners have added", { isDefault: true }).lists(
    (client) => client.listOAuthClients(),
    [
      ["ID", ({ id }) => id],
      ["TYPE", ({ type }) => type],
      ["CONNECTIONS", ({ connections }) => String(connections), { leaves: 1 }],
      ["NAME", ({ name }) => visible(name)],
      ["REDIRECTS", ({ redirect_uris: redirects }) => visible(redirects.join(" ")), { min: 24 }],
    ],
    { empty: "No clients. Clients with a metadata document, such as claude.ai, need none." },
  );
  clients
    .service("add <name>", "add a client and print its id and secret, only this once")
    .member("redirect_uris", "--redirect <uri>", "where its answers may go, exactly; several: repeat it", several)
    .option("--public", "it can't keep a secret, as a program on somebody's machine: it gets none")
    .prints(async (session, { redirect_uris, public: isPublic }: AddOptions, name) => {
      if (redirect_uris === undefined) throw new UsageError("oauth-clients add takes --redirect.");
      const type = isPublic ? "public" : "confidential";
      printNew(session, await session.client.createOAuthClient({ name, redirect_uris, type }));
    });
  clients
    .service("new-secret <id>", "replace the secret of a client and print it, only this once")
    .prints(async (session, _options, id) => printNew(session, await session.client.replaceOAuthClientSecret(id)));
  clients
    .service("remove <id>", "delete a client and end its connections")
    .calls(({ client, done }, _options, id) =>
      done(client.removeOAuthClient(id), `${id} is deleted, and the keys of its connections are revoked.`),
    );
}

interface AddOptions extends Partial<Pick<CreateOAuthClient, "redirect_uris">> {
  readonly public?: true;
}

function printNew({ print, io }: Session, added: NewOAuthClient): void {
  const { id, secret } = added;
  print(added, () => (secret === null ? `client id      ${id}` : `client id      ${id}\nclient secret  ${secret}`));
  if (secret !== null && io.isTty) io.err("The secret is shown only this once.\n");
}
