import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { FirstKeys } from "./accounts/bootstrap.ts";
import type { Config } from "./config.ts";
import type { Database } from "./config/database.ts";
import { codeOf, syncFolder } from "./secrets/key-file.ts";
import { welcome } from "./welcome.ts";

const OWNER_ONLY = 0o600;

export interface TextOutput {
  /** Whether all of it was written. */
  readonly say: (text: string) => boolean;
  /** What is said is kept and sent on by whatever runs the service, so no key may be in it. */
  readonly isLogged: boolean;
}

/**
 * Shows the first keys: prints them, or writes them to a file where what is printed is logged. False: nobody can have seen
 * them, and the next start has to show them again.
 */
export function showFirstKeys(config: Config, keys: FirstKeys, { say, isLogged }: TextOutput): boolean {
  if (!isLogged) return say(welcome(config, keys));
  const file = firstKeysFileOf(config.database);
  try {
    writeFirstKeys(file, welcome(config, keys));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    say(`\n${why} Make its folder writable and start again, or start once in a terminal: that prints them.\n\n`);
    return false;
  }
  say(`
Outgate listens on ${config.baseUrl}. The first owner key, the first agent key and the link for you are in

  ${file}

which only this user can read. Read it, then delete it: nothing else shows them.

`);
  return true;
}

/** A sentence for the operator while the file of the first keys is still there; null: it is gone. */
export function leftFirstKeys(database: Database): string | null {
  const file = firstKeysFileOf(database);
  return existsSync(file) ? `The first keys are still in ${file}. Delete the file once you have read it.` : null;
}

/** Where the first keys go when no person reads what a start prints: beside the database, or in the working directory. */
function firstKeysFileOf(database: Database): string {
  return resolve(database.kind === "file" ? `${database.path}.first-keys` : "outgate.first-keys");
}

/** Writes a file of mode 0600, whole or not at all, over one of an earlier start. Throws a sentence for the operator. */
function writeFirstKeys(file: string, text: string): void {
  const partial = `${file}.partial`;
  try {
    // A name that is there already may be readable by others, or be a link to elsewhere.
    rmSync(partial, { force: true });
    const handle = openSync(partial, "wx", OWNER_ONLY);
    try {
      writeSync(handle, text);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    chmodSync(partial, OWNER_ONLY);
    renameSync(partial, file);
    syncFolder(dirname(file));
  } catch (cause) {
    rmSync(partial, { force: true });
    throw new Error(`The first keys can't be written to ${file} (${codeOf(cause)}).`, { cause });
  }
}
