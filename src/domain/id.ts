/** What an action id looks like to anyone (spec "Action"); checked before any look-up (hostile 1). */
export const ACTION_ID = /^act_[A-Za-z0-9_-]{1,64}$/;

/** Crockford's base 32 in lower case: sorts as text as the bytes sort, which base64url does not. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** 128 bits as 26 characters. */
export function encodeId(bytes: Uint8Array): string {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  let text = "";
  for (let place = 0; place < 26; place += 1) {
    text = ALPHABET.charAt(Number(value & 31n)) + text;
    value >>= 5n;
  }
  return text;
}

/** The smallest id that an action made at this time can have: bounds a list by time without an index of its own. */
export function firstActionId(at: Date): string {
  const bytes = new Uint8Array(16);
  // A UUIDv7 begins with 48 bits of milliseconds.
  new DataView(bytes.buffer).setBigUint64(0, BigInt(Math.max(0, at.getTime())) << 16n);
  return `act_${encodeId(bytes)}`;
}
