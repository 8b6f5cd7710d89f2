import { createNewOwnerKey } from "../../accounts/new-owner-key.ts";
import { withStore } from "../../beside/open.ts";
import { type Command, EXIT, UsageError } from "../command.ts";

/** `outgate new-owner-key`: for whoever holds the server's machine and has lost the key. */
export const newOwnerKeyCommand: Command = {
  usage: "new-owner-key [e-mail]",
  async run(args, { env, out, err }) {
    const [email = null, ...rest] = args;
    if (rest.length > 0) throw new UsageError("new-owner-key takes one address at most.");
    const key = await withStore(env, (parts) => createNewOwnerKey(parts)(email));
    if (key === null) {
      throw new Error(email === null ? "There is no account yet: start the service once." : `Nobody has ${email}.`);
    }
    out(`${key}\n`);
    err("It is shown this once. The other keys work on: revoke a lost one with DELETE /v1/keys/{id}.\n");
    return EXIT.ok;
  },
};
