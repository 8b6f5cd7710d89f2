import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { copyDatabase, factsIn, movePositions } from "../../db/backup.ts";
import { databaseExists } from "../../db/open.ts";
import type { Config } from "../config/config.ts";
import { copyKeyFile, errorCode, KEY_FACTS, keyFileFor, loadPresentKey, syncFolder } from "../crypto/master-key.ts";

interface Backup {
  readonly database: string;
  /** Null: the key is the setting SECRET_KEY, which the operator must back up. */
  readonly keyFile: string | null;
}

/**
 * Copies a consistent snapshot of the database and its key into a folder, even while the service runs. Checks that the copy is
 * intact and belongs to the key. Overwrites nothing, and leaves nothing if it fails. If it is killed, it leaves a folder by which
 * nobody takes what is there for a backup: the database gets its name last of all. Throws an error for the operator.
 */
export function backUp({ database, secretKey }: Config, folder: string): Backup {
  if (database.kind === "remote") {
    throw new Error("The database is on another machine: back it up there, and keep SECRET_KEY with the backup.");
  }
  const { path } = database;
  if (!databaseExists(`file:${path}`)) throw new Error(`There is no database ${path}.`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new Error(`The folder ${folder} can't be made (${errorCode(cause)}). Choose another one.`, { cause });
  }
  const copy = join(folder, basename(path));
  const copiedKey = keyFileFor(copy);
  const unfinished = `${copy}.unfinished`;
  try {
    mkdirSync(unfinished, { mode: 0o700 });
  } catch (cause) {
    const problem =
      errorCode(cause) === "EEXIST"
        ? `Another backup to ${folder} is running or was interrupted: it left ${unfinished}.`
        : `The folder ${unfinished} can't be made (${errorCode(cause)}).`;
    throw new Error(`${problem} Choose another folder.`, { cause });
  }
  try {
    const taken = [copy, copiedKey].find((file) => existsSync(file));
    if (taken !== undefined) {
      throw new Error(`There is a file ${taken} already. Choose another folder: a backup never overwrites files.`);
    }
    const written = join(unfinished, basename(path));
    copyDatabase(path, written);
    movePositions(written);
    const key = secretKey === null ? copyKeyFile(keyFileFor(path), join(unfinished, basename(copiedKey))) : null;
    const [present = null, next = null] = factsIn(written, [KEY_FACTS.present, KEY_FACTS.next]);
    loadPresentKey({ secretKey, keyFile: key }, { present, next });
    if (key !== null) renameSync(key, copiedKey);
    renameSync(written, copy);
    syncFolder(folder);
    return { database: copy, keyFile: key === null ? null : copiedKey };
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}
