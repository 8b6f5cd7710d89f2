import { createOfferPassword } from "../../accounts/welcome-link.ts";
import { withStore } from "../../beside/open.ts";
import { welcomeUrl } from "../../welcome.ts";
import { type Command, EXIT, UsageError } from "../command.ts";

/** `outgate reset-password`: for a person who can't log in any more. */
export const resetPasswordCommand: Command = {
  usage: "reset-password <e-mail>",
  async run(args, { env, out, err }) {
    const [email, ...rest] = args;
    if (email === undefined || rest.length > 0) throw new UsageError("reset-password takes the address of one person.");
    const url = await withStore(env, async (parts) => {
      const token = await createOfferPassword(parts)(email);
      return token === null ? null : welcomeUrl(parts.config, token);
    });
    if (url === null) throw new Error(`Nobody has ${email}.`);
    out(`${url}\n`);
    err("Whoever opens it chooses a new password. It works once, for a day; until then the old password works.\n");
    return EXIT.ok;
  },
};
