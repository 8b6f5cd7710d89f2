import type { Commands } from "./command.ts";

/** The commands that only talk to a running service, in the order of the help. They run on Node too. */
export const CLIENT_COMMANDS: Commands = {
  send: {
    summary: "send a call through Outgate",
    load: async () => (await import("./commands/send.ts")).sendCommand,
  },
  get: {
    summary: "show an action, its timeline, or wait for its end",
    load: async () => (await import("./commands/actions.ts")).getCommand,
  },
  list: {
    summary: "list actions, newest first",
    load: async () => (await import("./commands/actions.ts")).listCommand,
  },
  watch: {
    summary: "show every change as it happens, or follow one action to its end",
    load: async () => (await import("./commands/actions.ts")).watchCommand,
  },
  approve: {
    summary: "approve an action that is awaiting approval",
    load: async () => (await import("./commands/actions.ts")).decideCommand("approve"),
  },
  reject: {
    summary: "reject an action that is awaiting approval",
    load: async () => (await import("./commands/actions.ts")).decideCommand("reject"),
  },
  cancel: {
    summary: "cancel an action that has not been sent",
    load: async () => (await import("./commands/actions.ts")).decideCommand("cancel"),
  },
  retry: {
    summary: "send a failed or cancelled action again",
    load: async () => (await import("./commands/actions.ts")).decideCommand("retry"),
  },
  keys: {
    summary: "list, create and revoke keys (owner key)",
    load: async () => (await import("./commands/account.ts")).keysCommand,
  },
  "callback-hosts": {
    summary: "list and change the hosts for callbacks of keys with a hold (owner key)",
    load: async () => (await import("./commands/account.ts")).callbackHostsCommand,
  },
  pause: {
    summary: "pause the account, or what one key created, at once (owner key)",
    load: async () => (await import("./commands/account.ts")).pauseCommand,
  },
  resume: {
    summary: "end a pause (owner key)",
    load: async () => (await import("./commands/account.ts")).resumeCommand,
  },
  pauses: {
    summary: "list the pauses in force (owner key)",
    load: async () => (await import("./commands/account.ts")).pausesCommand,
  },
  accounts: {
    summary: "list the accounts of the service, or allow a stopped one (owner key of the first account)",
    load: async () => (await import("./commands/account.ts")).accountsCommand,
  },
  audit: {
    summary: "show the audit log: who did what to the account (owner key)",
    load: async () => (await import("./commands/account.ts")).auditCommand,
  },
  demo: {
    summary: "see it work: a delivery that fails twice, and one that needs approval",
    load: async () => (await import("./commands/demo.ts")).demoCommand,
  },
};
