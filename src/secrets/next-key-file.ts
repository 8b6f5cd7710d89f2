import { linkSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, makeKeyFile, readKeyFile, syncFolder } from "./key-file.ts";

/** Where the next master key lies until everything is sealed under it. */
export function nextKeyFileOf(keyFile: string): string {
  return `${keyFile}.next`;
}

/** The key to follow that an earlier run has left beside the present one; null: there is none. */
export function leftNextKey(keyFile: string): Uint8Array | null {
  return readKeyFile(nextKeyFileOf(keyFile));
}

/** Makes the key to follow, of mode 0600, on the disk before anything is sealed under it. */
export function makeNextKey(keyFile: string, random: (count: number) => Uint8Array): Uint8Array {
  const nextFile = nextKeyFileOf(keyFile);
  makeKeyFile(nextFile, random);
  const key = readKeyFile(nextFile);
  if (key === null) throw new Error(`The key file ${nextFile} was made, but can't be found again.`);
  return key;
}

/**
 * Puts the next key into the place of the present one, which stays under a name of its own: backups that were made before
 * need it. Returns that name. Stopped in between, it leaves the present key in its place and can be done again.
 */
export function adoptNextKey(keyFile: string, presentKeyId: string): string {
  const kept = `${keyFile}.${presentKeyId}`;
  try {
    linkSync(keyFile, kept);
  } catch (cause) {
    if (codeOf(cause) !== "EEXIST")
      throw new Error(`The key file ${kept} can't be made (${codeOf(cause)}).`, { cause });
  }
  syncFolder(dirname(keyFile));
  renameSync(nextKeyFileOf(keyFile), keyFile);
  syncFolder(dirname(keyFile));
  return kept;
}
