import { crc32 } from "node:zlib";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Whether a text has the form and checksum of an API key; it need not exist. */
export function isWellFormedApiKey(text: string): boolean {
  const [, secret, checksum] = /^og_([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/.exec(text) ?? [];
  if (secret === undefined || checksum === undefined) return false;
  const value = Array.from(checksum).reduce((sum, digit) => sum * ALPHABET.length + ALPHABET.indexOf(digit), 0);
  return value === crc32(secret);
}
