import { backUp } from "../../beside/backup.ts";
import { readConfig } from "../../config.ts";
import { type Command, EXIT, UsageError } from "../command.ts";

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
