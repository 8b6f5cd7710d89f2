import { systemClock } from "../../clock.ts";
import { type Config, readConfig } from "../../config.ts";
import { systemIds } from "../../ids.ts";
import { rotateKey, type RotatedKey } from "../../beside/rotate-key.ts";
import { KEY_FORMS, readKey } from "../../secrets/master.ts";
import { type Command, EXIT, UsageError } from "../command.ts";

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
