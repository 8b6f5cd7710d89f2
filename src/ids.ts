import { randomBytes } from "node:crypto";
import { encodeId } from "./domain/id.ts";
import type { Ids } from "./ports/ids.ts";

/** Ids from the system's generator. A UUIDv7 puts the milliseconds first and counts within one of them. */
export const systemIds: Ids = {
  action: (at) => `act_${timeOrdered(at)}`,
  request: () => `req_${random()}`,
  account: () => `acc_${random()}`,
  key: () => `key_${random()}`,
  pause: () => `pau_${random()}`,
  person: () => `per_${random()}`,
  row: timeOrdered,
  chance: Math.random,
  bytes: (count) => new Uint8Array(randomBytes(count)),
};

function timeOrdered(at: Date): string {
  return encodeId(Bun.randomUUIDv7("buffer", at.getTime()));
}

function random(): string {
  return encodeId(randomBytes(16));
}
