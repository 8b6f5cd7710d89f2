import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
  renameSync,
} from "node:fs";
import { dirname } from "node:path";
import { StoreUnavailable } from "../../db/store.ts";
import { KEY_BYTES, KEY_FORMS, readKey } from "./key.ts";

export interface KeyPlaces {
  /** The setting SECRET_KEY, already read; null when it is not set. */
  readonly secretKey: Uint8Array | null;
  /** The file beside the database; null when the database is not on this machine. */
  readonly keyFile: string | null;
  /** Whether there is a database already: its sealed texts open under its old key only. */
  readonly databaseExists: boolean;
  readonly random: (count: number) => Uint8Array;
}

interface MasterKey {
  readonly bytes: Uint8Array;
  readonly source: "setting" | "file" | "generated";
  /** A sentence for the operator, or null. */
  readonly warning: string | null;
}

/** Where the key of a database file lies. */
export function keyFileOf(databasePath: string): string {
  return `${databasePath}.key`;
}

/**
 * The master key: the setting, else the file, else a new file of mode 0600, made once. A file that is
 * there is never written over. Throws an error for the operator when the key of an existing database is missing or
 * broken, because a new one could open nothing that was sealed under it.
 */
export function loadMasterKey(places: KeyPlaces): MasterKey {
  const { secretKey, keyFile } = places;
  if (secretKey !== null) return { bytes: secretKey, source: "setting", warning: null };
  if (keyFile === null) {
    throw new Error(`SECRET_KEY is not set. A database on another machine needs it: ${KEY_FORMS}.`);
  }
  const found = readKeyFile(keyFile);
  if (found !== null) return { bytes: found, source: "file", warning: exposure(keyFile) };
  if (places.databaseExists) {
    throw new Error(
      `The database is there, but its key file ${keyFile} is missing. Put the file back from a backup, or set SECRET_KEY ` +
        "to the same key: what is sealed in the database can't be read with a new one.",
    );
  }
  makeKeyFile(keyFile, places.random);
  // Read back, not remembered: of two processes that start at once both get the key of the one that was first.
  const made = readKeyFile(keyFile);
  if (made === null) throw new Error(`The key file ${keyFile} was made, but can't be found again.`);
  return { bytes: made, source: "generated", warning: null };
}

/** The key that a file holds; null when there is none. Throws when it can't be read or holds something else. */
function readKeyFile(keyFile: string): Uint8Array | null {
  let text: string;
  try {
    text = readFileSync(keyFile, "latin1");
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return null;
    throw new Error(`The key file ${keyFile} can't be read (${codeOf(cause)}).`, { cause });
  }
  const key = readKey(text.trim());
  if (key !== null) return key;
  throw new Error(
    `The key file ${keyFile} is broken: it must hold ${KEY_FORMS}. It was left as it is: put it back from a backup, or ` +
      "set SECRET_KEY to the same key.",
  );
}

/** Written aside and linked into place: a crash leaves a whole key or none, and a link never replaces a file. */
function makeKeyFile(keyFile: string, random: (count: number) => Uint8Array): void {
  const aside = `${keyFile}.${Buffer.from(random(8)).toString("hex")}`;
  try {
    mkdirSync(dirname(keyFile), { recursive: true });
    writeDurably(aside, `${Buffer.from(random(KEY_BYTES)).toString("base64")}\n`);
    linkSync(aside, keyFile);
    syncFolder(dirname(keyFile));
  } catch (cause) {
    if (codeOf(cause) === "EEXIST") return;
    const message = `The key file ${keyFile} can't be made (${codeOf(cause)}). Make its folder writable, or set SECRET_KEY.`;
    if (FULL.has(codeOf(cause))) throw new StoreUnavailable(message, { cause });
    throw new Error(message, { cause });
  } finally {
    rmSync(aside, { force: true });
  }
}

/** Copies a key into a new file of mode 0600, durably. Returns the new file's path. */
export function copyKeyFile(keyFile: string, to: string): string {
  const key = readKeyFile(keyFile);
  if (key === null) throw new Error(`The key file ${keyFile} is missing.`);
  writeDurably(to, `${Buffer.from(key).toString("base64")}\n`);
  syncFolder(dirname(to));
  return to;
}

/** A full disk is emptied one day. */
const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

function writeDurably(path: string, text: string): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Without this a power cut may forget the new name, and a database would stand there without its key. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function exposure(keyFile: string): string | null {
  const isShared = (statSync(keyFile).mode & 0o077) !== 0;
  return isShared ? `Other users of this machine can read the key file ${keyFile}: run chmod 600 on it.` : null;
}

export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}

/** Where the next master key lies until everything is sealed under it. */
function nextKeyFileOf(keyFile: string): string {
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
