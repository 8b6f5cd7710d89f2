import { serve } from "../../app.ts";
import { type Command, EXIT, UsageError, type Io } from "../command.ts";
import { relayStreams, sendTo, type Send } from "../../../mcp/bridge/relay.ts";
import { apiKeyOf } from "../../client/transport.ts";
import { firstStartNotice, welcomeUrl } from "../../accounts/first-start.ts";
import { createNewOwnerKey } from "../../accounts/keys.ts";
import { withStore } from "../../admin/open.ts";
import { createOfferPassword, createOfferWelcome } from "../../accounts/welcome-links.ts";
import { backUp } from "../../admin/backup.ts";
import { readConfig, type Config } from "../../config/config.ts";
import { systemClock } from "../../runtime/clock.ts";
import { systemIds } from "../../runtime/ids.ts";
import { rotateKey, type RotatedKey } from "../../admin/keys.ts";
import { KEY_FORMS, readKey } from "../../crypto/key.ts";

/** `outgate serve`: the service, with the settings of the environment. */
export const serveCommand: Command = {
  usage: "serve",
  async run(args, { env }) {
    if (args.length > 0) throw new UsageError("serve takes no arguments; its settings come from the environment.");
    await serve(env);
    return EXIT.ok;
  },
};

const ADVICE = " To use an Outgate that runs already, set OUTGATE_URL and OUTGATE_API_KEY.";

/** `outgate mcp`: agents that speak over standard streams (decisions 9). */
export const mcpCommand: Command = {
  usage: "mcp",
  async run(args, io) {
    if (args.length > 0) throw new UsageError("mcp takes no arguments; OUTGATE_URL and OUTGATE_API_KEY say where to.");
    const { OUTGATE_URL: url = "" } = io.env;
    const key = (await apiKeyOf(io.env)) ?? "";
    if (url === "") return beTheService(io, key);
    if (key === "")
      throw new Error(
        "OUTGATE_API_KEY is not set, nor OUTGATE_API_KEY_FILE: the service at OUTGATE_URL asks for an agent's key.",
      );
    await relayStreams(streamsOf(io), sendTo(url, key));
    return EXIT.ok;
  },
};

/** Runs the whole service, pages included, until the agent closes its end. */
async function beTheService(io: Io, key: string): Promise<number> {
  const served = await serve(io.env, { speaksTo: 2, insteadOfKeys: firstStartNotice, advice: ADVICE });
  const own: Readonly<Record<string, string>> = key === "" ? {} : { host: "localhost", authorization: `Bearer ${key}` };
  const send: Send = ({ headers, body = "", ...init }) => {
    const framed = { ...headers, ...own, "content-length": String(Buffer.byteLength(body)) };
    return served.app.answerAgent(
      new Request("http://localhost/mcp", { ...init, ...(body === "" ? {} : { body }), headers: framed }),
    );
  };
  await relayStreams(streamsOf(io), send);
  await served.stop();
  return EXIT.ok;
}

function streamsOf({ out, err }: Io) {
  return { input: process.stdin, write: out, warn: err };
}

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

/** `outgate backup`: database and key, as they are at one moment, also while the service runs. */
export const backupCommand: Command = {
  usage: `backup <folder>

  Copies the database and its key into the folder, which is made. It works while the service runs.`,
  run(args, { env, out }) {
    const [folder, ...more] = args;
    if (folder === undefined || folder.startsWith("-") || more.length > 0)
      throw new UsageError("backup takes a folder.");
    // What is made is for this user alone: the key lies in it.
    process.umask(0o077);
    const { database, keyFile } = backUp(readConfig(env), folder);
    const key =
      keyFile ?? "The key is the setting SECRET_KEY: keep it elsewhere, for without it the backup is worth little.";
    out(`${database}\n${key}\n`);
    return Promise.resolve(EXIT.ok);
  },
};

const FLAGS: ReadonlySet<string> = new Set(["--new-links", "--server-is-stopped"]);

/** `outgate rotate-secret-key`: a new master key, on the machine of the database, with the service's own settings. */
export const rotateSecretKeyCommand: Command = {
  usage: `rotate-secret-key [--new-links] [--server-is-stopped]

  --new-links          receipt and approval links that were sent so far lead nowhere, as after a leak of the key;
                       without it they stay what they are
  --server-is-stopped  needed for a database on another machine, which can't tell

  Without SECRET_KEY a new key file is made. With it, give the new key as NEW_SECRET_KEY.
  Interrupted, it is run again with the same options and goes on where it stopped.`,
  async run(args, { env, out, err }) {
    const unknown = args.find((arg) => !FLAGS.has(arg));
    if (unknown !== undefined) throw new UsageError(`rotate-secret-key does not know ${JSON.stringify(unknown)}.`);
    // Whatever is made beside the database is for this user alone.
    process.umask(0o077);
    const config = readConfig(env);
    if (config.database.kind === "remote" && !args.includes("--server-is-stopped")) {
      throw new UsageError("Stop every service on this database, then say so with --server-is-stopped.");
    }
    const options = { newKey: newKeyOf(env["NEW_SECRET_KEY"]), newLinks: args.includes("--new-links") };
    const rotated = await rotateKey(config, options, { clock: systemClock, ids: systemIds, onFatal: endAtOnce });
    out(told(rotated, config));
    if (rotated.unopened > 0) err(unopened(rotated));
    return EXIT.ok;
  },
};

function newKeyOf(text: string | undefined): Uint8Array | null {
  if (text === undefined || text.trim() === "") return null;
  const key = readKey(text.trim());
  if (key === null) throw new UsageError(`NEW_SECRET_KEY has the wrong form. Allowed: ${KEY_FORMS}.`);
  return key;
}

function told({ count, newKeyId, keptFile }: RotatedKey, { secretKey }: Config): string {
  const done = `Everything is sealed under the new master key ${newKeyId} (texts sealed in this run: ${count}).\n`;
  if (keptFile !== null) return `${done}The old key is kept in ${keptFile}: backups that were made before need it.\n`;
  const kept = secretKey === null ? "The old key file was left as it is" : "Keep the old key";
  return `${done}Set SECRET_KEY to the new key before you start. ${kept}: backups that were made before need it.\n`;
}

function unopened({ unopened: count, named }: RotatedKey): string {
  const names = named.map(({ table, row, column }) => `  ${column} of ${table} ${row}\n`).join("");
  return `${count} texts did not open under the old key, since somebody has altered them. They were left as they are:\n${names}`;
}

/** What a failed fsync has left on the disk nobody knows; another run finds out. */
function endAtOnce(): never {
  process.exit(EXIT.failed);
}
