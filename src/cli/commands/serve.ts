import { serve } from "../../serve.ts";
import { type Command, EXIT, UsageError } from "../command.ts";

/** `outgate serve`: the service, with the settings of the environment. */
export const serveCommand: Command = {
  usage: "serve",
  async run(args, { env }) {
    if (args.length > 0) throw new UsageError("serve takes no arguments; its settings come from the environment.");
    await serve(env);
    return EXIT.ok;
  },
};
