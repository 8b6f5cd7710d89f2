import { createOfferWelcome } from "../../accounts/welcome-link.ts";
import { withStore } from "../../beside/open.ts";
import { welcomeUrl } from "../../welcome.ts";
import { type Command, EXIT, UsageError } from "../command.ts";

/** `outgate welcome-link`: the link that the first start prints, anew. */
export const welcomeLinkCommand: Command = {
  usage: "welcome-link",
  async run(args, { env, out, err }) {
    if (args.length > 0) throw new UsageError("welcome-link takes no arguments.");
    const url = await withStore(env, async (parts) => {
      const token = await createOfferWelcome(parts)();
      return token === null ? null : welcomeUrl(parts.config, token);
    });
    if (url === null) {
      throw new Error(
        "The first account has its person already. `outgate reset-password <e-mail>` lets them in again.",
      );
    }
    out(`${url}\n`);
    err("Whoever opens it becomes the first account's owner. It works once, for 7 days; the one before it is void.\n");
    return EXIT.ok;
  },
};
