import type { Commands } from "./command.ts";

/** What `outgate` can do. */
export const COMMANDS: Commands = {
  serve: {
    summary: "run the service",
    load: async () => (await import("./commands/serve.ts")).serveCommand,
  },
};
