import { hkdfSync } from "node:crypto";

export const KEY_BYTES = 32;

/** The purpose of a subkey. Separate keys, so that a leak of one does not affect the others. */
type Purpose = "seal" | "links" | "receipt" | "approval" | "device" | "question" | "fingerprint";

/** The forms that `readKey` accepts, for error messages. */
export const KEY_FORMS = "32 bytes as base64 (44 characters) or hex (64 characters)";

/** Parses 32 bytes of base64 (also URL-safe or without padding) or hex; null: neither. */
export function readKey(text: string): Uint8Array | null {
  if (/^[0-9a-fA-F]{64}$/.test(text)) return new Uint8Array(Buffer.from(text, "hex"));
  const bytes = Buffer.from(text, "base64");
  // The decoder skips unknown characters, so a key with a typo would silently become another key.
  const plain = text
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replace(/(?<!=)=+$/, "");
  const isExact = bytes.length === KEY_BYTES && bytes.toString("base64").replace(/(?<!=)=+$/, "") === plain;
  return isExact ? new Uint8Array(bytes) : null;
}

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
export function keyIdOf(masterKey: Uint8Array): string {
  return fingerprint(masterKey).slice(0, 8);
}
