import type { SealedPlace } from "../core/account-store.ts";
import { hkdfSync } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { StoreUnavailable } from "../core/store.ts";
import { realPath, KEY_BYTES, KEY_FORMS, readKey } from "../config/values.ts";

/** The purpose of a subkey. Each has its own key, so that a leak of one does not affect the others. */
type Purpose =
  | "seal"
  | "links"
  | "receipt"
  | "approval"
  | "invitation"
  | "device"
  | "request"
  | "question"
  | "mcp-session"
  | "oauth-cookie"
  | "oauth-signing"
  | "form"
  | "fingerprint";

/** 32 bytes for one purpose (HKDF-SHA-256, RFC 5869). Throws unless the master key is 32 bytes. */
export function subkey(masterKey: Uint8Array, purpose: Purpose): Buffer {
  if (masterKey.length !== KEY_BYTES) throw new Error(`The master key must be ${KEY_BYTES} bytes.`);
  return Buffer.from(hkdfSync("sha256", masterKey, "", `outgate/${purpose}/1`, KEY_BYTES));
}

/**
 * A check value of the key, 32 hex characters, that reveals nothing about it. The store keeps it, so that a start with another
 * key is refused before anything is encrypted or decrypted.
 */
export function fingerprint(masterKey: Uint8Array): string {
  return subkey(masterKey, "fingerprint").toString("hex", 0, 16);
}

/** The short id of a key: the prefix of texts encrypted under it, and part of the name of old key files. */
export function masterKeyId(masterKey: Uint8Array): string {
  return fingerprint(masterKey).slice(0, 8);
}

export interface KeyPlaces {
  /** The setting SECRET_KEY, already read; null when it is not set. */
  readonly secretKey: Uint8Array | null;
  /** The file beside the database; null: the database is not on this machine. */
  readonly keyFile: string | null;
  /** Whether the database exists already, so that a new key could not decrypt it. */
  readonly databaseExists: boolean;
  readonly random: (count: number) => Uint8Array;
}

interface MasterKey {
  readonly bytes: Uint8Array;
  /** A sentence for the operator, or null. */
  readonly warning: string | null;
}

/**
 * The master key: from the setting, else from the file, else from a new file of mode 0600. Never overwrites a file. Throws an
 * error for the operator if the key of an existing database is missing or broken, since a new one could not decrypt it.
 */
export function loadMasterKey({ secretKey, keyFile, databaseExists, random }: KeyPlaces): MasterKey {
  if (secretKey !== null) return { bytes: secretKey, warning: null };
  if (keyFile === null) {
    throw new Error(`SECRET_KEY is not set. A database on another machine needs it: ${KEY_FORMS}.`);
  }
  const found = readKeyFile(keyFile);
  if (found !== null) return { bytes: found, warning: exposure(keyFile) };
  if (databaseExists) {
    throw new Error(
      `The database is there, but its key file ${keyFile} is missing. Put the file back from a backup, or set SECRET_KEY ` +
        "to the same key: what is sealed in the database can't be read with a new one.",
    );
  }
  return { bytes: makeKeyFile(keyFile, random), warning: null };
}

/**
 * The path of the key file: beside the database file itself, not beside a link to it, so that every path finds it. If an
 * earlier version made it beside the link, it stays there.
 */
export function keyFileFor(databasePath: string): string {
  const besideLink = `${databasePath}.key`;
  if (existsSync(besideLink)) return besideLink;
  const real = realPath(databasePath);
  return real === resolve(databasePath) ? besideLink : `${real}.key`;
}

function exposure(keyFile: string): string | null {
  const isShared = (statSync(keyFile).mode & 0o077) !== 0;
  return isShared ? `Other users of this machine can read the key file ${keyFile}: run chmod 600 on it.` : null;
}

/** Copies a key into a new file of mode 0600, durably. Returns the new file's path. */
export function copyKeyFile(keyFile: string, to: string): string {
  const key = readKeyFile(keyFile);
  if (key === null) throw new Error(`The key file ${keyFile} is missing.`);
  writeDurably(to, `${Buffer.from(key).toString("base64")}\n`);
  syncFolder(dirname(to));
  return to;
}

/** The next key that an interrupted rotation has left; null: none. */
export function readNextKey(keyFile: string): Uint8Array | null {
  return readKeyFile(nextKeyFile(keyFile));
}

/** Creates the next key file, mode 0600, durably, before anything is encrypted under it. */
export function makeNextKey(keyFile: string, random: (count: number) => Uint8Array): Uint8Array {
  return makeKeyFile(nextKeyFile(keyFile), random);
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
    if (errorCode(cause) !== "EEXIST")
      throw new Error(`The key file ${kept} can't be made (${errorCode(cause)}).`, { cause });
  }
  syncFolder(dirname(keyFile));
  renameSync(nextKeyFile(keyFile), keyFile);
  syncFolder(dirname(keyFile));
  return kept;
}

/** The path of the next master key until everything is encrypted under it. */
function nextKeyFile(keyFile: string): string {
  return `${keyFile}.next`;
}

/** The key in a file; null: no file. Throws if it can't be read or is no key. */
function readKeyFile(keyFile: string): Uint8Array | null {
  let text: string;
  try {
    text = readFileSync(keyFile, "latin1");
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return null;
    throw new Error(`The key file ${keyFile} can't be read (${errorCode(cause)}).`, { cause });
  }
  const key = readKey(text.trim());
  if (key !== null) return key;
  throw new Error(
    `The key file ${keyFile} is broken: it must hold ${KEY_FORMS}. It was left as it is: put it back from a backup, or ` +
      "set SECRET_KEY to the same key.",
  );
}

/**
 * Writes a temporary file and links it into place: a crash leaves a whole key or none, and a link never replaces a file.
 * Returns the key in the file: if two processes start at once, both must use the key of the first.
 */
function makeKeyFile(keyFile: string, random: (count: number) => Uint8Array): Uint8Array {
  const aside = `${keyFile}.${Buffer.from(random(8)).toString("hex")}`;
  try {
    mkdirSync(dirname(keyFile), { recursive: true });
    writeDurably(aside, `${Buffer.from(random(KEY_BYTES)).toString("base64")}\n`);
    linkSync(aside, keyFile);
    syncFolder(dirname(keyFile));
  } catch (cause) {
    if (errorCode(cause) !== "EEXIST") throw notMade(keyFile, cause);
  } finally {
    rmSync(aside, { force: true });
  }
  const key = readKeyFile(keyFile);
  if (key === null) throw new Error(`The key file ${keyFile} was made, but can't be found again.`);
  return key;
}

/** The error for a key file that can't be made. A full disk or quota is temporary. */
function notMade(keyFile: string, cause: unknown): Error {
  const code = errorCode(cause);
  const message = `The key file ${keyFile} can't be made (${code}). Make its folder writable, or set SECRET_KEY.`;
  return code === "ENOSPC" || code === "EDQUOT"
    ? new StoreUnavailable(message, { cause, reason: "the disk is full" })
    : new Error(message, { cause });
}

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

/** Makes new names in a folder durable. Otherwise, a power failure could lose the key file of an existing database. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}

/** Names of the facts about the master key: its check value, that of the next key during a rotation, and the stored link key. */
export const KEY_FACTS = { present: "master-key", next: "next-master-key", links: "link-key" } as const;

export const LINK_KEY_PLACE: SealedPlace = { table: "facts", row: KEY_FACTS.links, column: "value" };

export const INTERRUPTED =
  "A change of the master key was interrupted. Run `outgate rotate-secret-key` again: it goes on where it stopped.";

export const ANOTHER_KEY =
  "The master key is not the one that this database is sealed under. Set SECRET_KEY to that key, or put its key file back. " +
  "If a change of the key was interrupted, run `outgate rotate-secret-key` again.";

/** The master key of the database was changed while this process was taken for dead. */
export class KeyChanged extends Error {
  override readonly name = "KeyChanged";
}

/** The facts of a database about its master key; null: the database has none. */
/** Loads the master key of an existing database. Throws an error for the operator unless a service could start with it. */
export function loadPresentKey(
  places: Pick<KeyPlaces, "secretKey" | "keyFile">,
  { present, next }: Readonly<Record<"present" | "next", string | null>>,
): MasterKey {
  if (next !== null) throw new Error(INTERRUPTED);
  const key = loadMasterKey({ ...places, databaseExists: true, random: () => new Uint8Array() });
  if (present !== fingerprint(key.bytes)) throw new Error(ANOTHER_KEY);
  return key;
}
