import { randomBytes } from "node:crypto";

/** Ids from the system's random generator. A UUIDv7 begins with the milliseconds and counts within one, so lists by time end with the id. */
export const systemIds = {
  action: (at: Date) => `act_${timeOrdered(at)}`,
  bulk: (at: Date) => `blk_${timeOrdered(at)}`,
  request: () => `req_${random()}`,
  account: () => `acc_${random()}`,
  key: (at: Date) => `key_${timeOrdered(at)}`,
  pause: (at: Date) => `pau_${timeOrdered(at)}`,
  rule: (at: Date) => `rul_${timeOrdered(at)}`,
  grant: (at: Date) => `grt_${timeOrdered(at)}`,
  credential: (at: Date) => `crd_${timeOrdered(at)}`,
  oauthClient: () => `ocl_${random()}`,
  credentialRequest: (at: Date) => `crq_${timeOrdered(at)}`,
  channel: (at: Date) => `chn_${timeOrdered(at)}`,
  person: (at: Date) => `per_${timeOrdered(at)}`,
  invitation: (at: Date) => `inv_${timeOrdered(at)}`,
  /** The id of a process while it runs. */
  node: () => `nod_${random()}`,
  /** The id of an outbox row. */
  row: timeOrdered,
  /** Uniform in [0, 1): jitter only, never a secret. */
  random: Math.random,
  /** Cryptographically random, for secrets. */
  bytes: (count: number) => new Uint8Array(randomBytes(count)),
};

/** Source of ids and randomness. Ids that contain a time sort by it. */
export type Ids = typeof systemIds;

function timeOrdered(at: Date): string {
  return encodeId(Bun.randomUUIDv7("buffer", at.getTime()));
}

function random(): string {
  // From the same generator as `randomBytes`, at a tenth of its time for so few bytes.
  return encodeId(crypto.getRandomValues(new Uint8Array(16)));
}

/** Format of an action id; checked before any lookup. */
export const ACTION_ID = /^act_[A-Za-z0-9_-]{1,64}$/;

export const BULK_ID = /^blk_[A-Za-z0-9_-]{1,64}$/;

export const CREDENTIAL_REQUEST_ID = /^crq_[A-Za-z0-9_-]{1,64}$/;

export const KEY_ID = /^key_[A-Za-z0-9_-]{1,64}$/;

/** Crockford's base 32 in lower case. Unlike base64url, its text sorts like the bytes. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** Every two characters, by the ten bits that they hold. */
const PAIRS = Array.from(ALPHABET, (first) => Array.from(ALPHABET, (second) => first + second)).flat();

/** 128 bits as 26 characters: two of padding first, then five bits a character, written two at a time. */
export function encodeId(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  // 26 characters hold 130 bits.
  let held = 2;
  for (let at = 0; at < bytes.length; at += 1) {
    bits = (bits << 8) | (bytes[at] ?? 0);
    held += 8;
    if (held < 10) continue;
    held -= 10;
    text += PAIRS[bits >> held] ?? "";
    bits &= (1 << held) - 1;
  }
  return text;
}

/** The smallest possible id of an action created at this time, so that lists by time need no index of their own. */
export function firstActionId(at: Date): string {
  const bytes = new Uint8Array(16);
  // A UUIDv7 begins with 48 bits of milliseconds.
  new DataView(bytes.buffer).setBigUint64(0, BigInt(Math.max(0, at.getTime())) << 16n);
  return `act_${encodeId(bytes)}`;
}
