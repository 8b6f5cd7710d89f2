import { visible } from "../../observability/terminal.ts";
import { type CliCommand, several, UsageError } from "../command.ts";
import { addServiceCommand, JSON_OPTION, printList, type Session, withSession } from "../session.ts";

/** The commands about the OAuth clients that owners add. */
export function addOAuthClientCommands(program: CliCommand): void {
  const clients = addServiceCommand(
    program,
    "oauth-clients",
    "list, add and remove clients that people connect by logging in (owner key)",
  ).usage("[list] | oauth-clients add <name> --redirect <uri> [--public] | oauth-clients remove <id>");
  addServiceCommand(clients, "list", "list the clients that owners have added", { isDefault: true })
    .option(...JSON_OPTION)
    .runs(withSession(listClients));
  addServiceCommand(clients, "add <name>", "add a client and print its id and secret, only this once")
    .option("--redirect <uri>", "where its answers may go, exactly; several: repeat it", several)
    .option("--public", "it can't keep a secret, as a program on somebody's machine: it gets none")
    .option(...JSON_OPTION)
    .runs(withSession(addClient));
  addServiceCommand(clients, "remove <id>", "delete a client and end its connections").runs(
    withSession(async ({ client, io }, _options, id) => {
      await client.removeOAuthClient(id);
      io.err(`${visible(id)} is deleted, and the keys of its connections are revoked.\n`);
    }),
  );
}

async function listClients(session: Session): Promise<void> {
  return printList(session, await session.client.listOAuthClients(), {
    headings: ["ID", "TYPE", { heading: "CONNECTIONS", leaves: 1 }, "NAME", { heading: "REDIRECTS", min: 24 }],
    rowOf: ({ id, type, connections, name, redirect_uris: redirects }) => [
      id,
      type,
      String(connections),
      visible(name),
      visible(redirects.join(" ")),
    ],
    empty: "No clients. Clients with a metadata document, such as claude.ai, need none.",
  });
}

interface AddOptions {
  readonly redirect?: string[];
  readonly public?: true;
}

async function addClient({ client, print, io }: Session, options: AddOptions, name: string): Promise<void> {
  const { redirect: redirect_uris, public: isPublic } = options;
  if (redirect_uris === undefined) throw new UsageError("oauth-clients add takes --redirect.");
  const added = await client.createOAuthClient({ name, redirect_uris, type: isPublic ? "public" : "confidential" });
  const { id, secret } = added;
  print(added, () => (secret === null ? `client id      ${id}` : `client id      ${id}\nclient secret  ${secret}`));
  if (secret !== null && io.isTty) io.err("The secret is shown only this once.\n");
}
