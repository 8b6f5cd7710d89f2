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
  /** Whether the database exists already: then a new key could not decrypt it. */
  readonly databaseExists: boolean;
  readonly random: (count: number) => Uint8Array;
}

interface MasterKey {
  readonly bytes: Uint8Array;
  readonly source: "setting" | "file" | "generated";
  /** A sentence for the operator, or null. */
  readonly warning: string | null;
}

/** The path of the key file of a database file. */
export function keyFileOf(databasePath: string): string {
  return `${databasePath}.key`;
}

/**
 * The master key: from the setting, else from the file, else from a new file of mode 0600. Never overwrites a file. Throws an
 * error for the operator if the key of an existing database is missing or broken, since a new one could not decrypt it.
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
  // Read the file back: if two processes start at once, both must use the key of the first.
  const made = readKeyFile(keyFile);
  if (made === null) throw new Error(`The key file ${keyFile} was made, but can't be found again.`);
  return { bytes: made, source: "generated", warning: null };
}

/** The key in a file; null: no file. Throws if it can't be read or is no key. */
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

/** Writes a temporary file and links it into place: a crash leaves a whole key or none, and a link never replaces a file. */
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

/** Errors that may pass: a full disk or quota. */
const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/** Writes a new file of mode 0600, durably. Throws if there is one. */
export function writeDurably(path: string, text: string): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Makes new names in a folder durable. Without it a power failure could lose the key file of an existing database. */
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

/** The path of the next master key until everything is encrypted under it. */
function nextKeyFileOf(keyFile: string): string {
  return `${keyFile}.next`;
}

/** The next key that an interrupted rotation has left; null: none. */
export function leftNextKey(keyFile: string): Uint8Array | null {
  return readKeyFile(nextKeyFileOf(keyFile));
}

/** Creates the next key file, mode 0600, durably, before anything is encrypted under it. */
export function makeNextKey(keyFile: string, random: (count: number) => Uint8Array): Uint8Array {
  const nextFile = nextKeyFileOf(keyFile);
  makeKeyFile(nextFile, random);
  const key = readKeyFile(nextFile);
  if (key === null) throw new Error(`The key file ${nextFile} was made, but can't be found again.`);
  return key;
}

/**
 * Replaces the key file by the next one. Keeps the old key under a name with its id, since older backups need it; returns
 * that name. If interrupted, the old key is still in place and the call can be repeated.
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
