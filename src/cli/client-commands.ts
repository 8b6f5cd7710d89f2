import type { Commands } from "./command.ts";

/** What `outgate` does with a service that runs somewhere: nothing in it needs Bun. */
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
    summary: "follow every change as it happens, or one action to its end",
    load: async () => (await import("./commands/actions.ts")).watchCommand,
  },
  approve: {
    summary: "say yes to an action that waits for it",
    load: async () => (await import("./commands/actions.ts")).decideCommand("approve"),
  },
  reject: {
    summary: "say no to it",
    load: async () => (await import("./commands/actions.ts")).decideCommand("reject"),
  },
  cancel: {
    summary: "take back an action that has not been sent",
    load: async () => (await import("./commands/actions.ts")).decideCommand("cancel"),
  },
  retry: {
    summary: "send a failed or cancelled action again",
    load: async () => (await import("./commands/actions.ts")).decideCommand("retry"),
  },
  keys: {
    summary: "list, make and revoke keys (owner key)",
    load: async () => (await import("./commands/account.ts")).keysCommand,
  },
  "callback-hosts": {
    summary: "list where callbacks of keys with a hold may go (owner key)",
    load: async () => (await import("./commands/account.ts")).callbackHostsCommand,
  },
  pause: {
    summary: "stop the account, or what one key created, at once (owner key)",
    load: async () => (await import("./commands/account.ts")).pauseCommand,
  },
  resume: {
    summary: "end a pause",
    load: async () => (await import("./commands/account.ts")).resumeCommand,
  },
  pauses: {
    summary: "list what is paused",
    load: async () => (await import("./commands/account.ts")).pausesCommand,
  },
  accounts: {
    summary: "list the accounts of the service, or let one go on (owner key of the first account)",
    load: async () => (await import("./commands/account.ts")).accountsCommand,
  },
  audit: {
    summary: "who did what to the account (owner key)",
    load: async () => (await import("./commands/account.ts")).auditCommand,
  },
  demo: {
    summary: "see it work: a target that fails twice, and an action that waits for a yes",
    load: async () => (await import("./commands/demo.ts")).demoCommand,
  },
};
