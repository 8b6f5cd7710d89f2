import { existsSync, mkdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { copyDatabase, factsIn } from "../../db/backup.ts";
import { databaseExists } from "../../db/store.ts";
import type { Config } from "../config.ts";
import { ANOTHER_KEY, INTERRUPTED, KEY_FACTS } from "../master-key.ts";
import { copyKeyFile, keyFileOf, loadMasterKey } from "../secrets/key-file.ts";
import { fingerprint } from "../secrets/master.ts";

export interface Backup {
  readonly database: string;
  /** Null: the key is the setting SECRET_KEY, which has to be kept elsewhere. */
  readonly keyFile: string | null;
}

/**
 * Copies the database, as it is at one moment, and its key into a folder, also while the service runs. The copy is
 * checked: it is sound, and the key is the one that it is sealed under. Writes over nothing; when it fails, it leaves
 * nothing. Throws a sentence for the operator.
 */
export function backUp({ database, secretKey }: Config, folder: string): Backup {
  if (database.kind === "remote") {
    throw new Error("The database is on another machine: back it up there, and keep SECRET_KEY with the backup.");
  }
  const { path } = database;
  if (!databaseExists(`file:${path}`)) throw new Error(`There is no database ${path}.`);
  const copy = join(folder, basename(path));
  for (const file of [copy, keyFileOf(copy)]) {
    if (existsSync(file))
      throw new Error(`There is a file ${file} already. Name another folder: nothing is written over.`);
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    copyDatabase(path, copy);
    const [mark, next] = factsIn(copy, [KEY_FACTS.present, KEY_FACTS.next]);
    if (next !== null) throw new Error(INTERRUPTED);
    const keyFile = secretKey === null ? copyKeyFile(keyFileOf(path), keyFileOf(copy)) : null;
    const key = loadMasterKey({ secretKey, keyFile, databaseExists: true, random: () => new Uint8Array() });
    if (mark !== fingerprint(key.bytes)) throw new Error(ANOTHER_KEY);
    return { database: copy, keyFile };
  } catch (error) {
    for (const file of [copy, `${copy}-journal`, keyFileOf(copy)]) rmSync(file, { force: true });
    throw error;
  }
}
