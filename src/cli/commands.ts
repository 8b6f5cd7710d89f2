import { CLIENT_COMMANDS } from "./client-commands.ts";
import type { Commands } from "./command.ts";

/** Every command, in the order of the help. Each is loaded only when it runs. */
export const COMMANDS: Commands = {
  serve: {
    summary: "run the service",
    load: async () => (await import("./commands/server.ts")).serveCommand,
  },
  ...CLIENT_COMMANDS,
  doctor: {
    summary: "check settings and connection, and say how to fix problems",
    async load() {
      const { doctorCommand } = await import("./commands/doctor.ts");
      return doctorCommand((await import("../admin/backup.ts")).reportSettings);
    },
  },
  mcp: {
    summary: "speak MCP on standard input: to the service at OUTGATE_URL, or as the service itself",
    load: async () => (await import("./commands/server.ts")).mcpCommand,
  },
  "welcome-link": {
    summary: "on the server's machine: a new link by which the first person signs in",
    load: async () => (await import("./commands/server.ts")).welcomeLinkCommand,
  },
  "reset-password": {
    summary: "on the server's machine: a link by which a person chooses a new password",
    load: async () => (await import("./commands/server.ts")).resetPasswordCommand,
  },
  "new-owner-key": {
    summary: "on the server's machine: another owner key, in place of a lost one",
    load: async () => (await import("./commands/server.ts")).newOwnerKeyCommand,
  },
  backup: {
    summary: "copy database and key into a folder, also while the service runs",
    load: async () => (await import("./commands/server.ts")).backupCommand,
  },
  "rotate-secret-key": {
    summary: "encrypt everything with a new master key; the service must be stopped",
    load: async () => (await import("./commands/server.ts")).rotateSecretKeyCommand,
  },
};
