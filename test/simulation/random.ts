import { encodeId, type Ids } from "../../src/core/ids.ts";

/** Numbers that depend on nothing but the seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One of them; undefined where there are none. */
  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.next() * items.length)];
  }

  /** One of the names, each as often as its weight says. */
  choose<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    // Safe: the keys of a literal.
    const names = Object.keys(weights) as Name[];
    let left = this.next() * names.reduce((sum, name) => sum + weights[name], 0);
    const chosen = names.find((name) => (left -= weights[name]) < 0);
    if (chosen === undefined) throw new Error("Nothing to choose from.");
    return chosen;
  }

  /** Numbers of their own for a part of the world, so that what one part draws changes nothing for the others. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 4_294_967_296));
  }
}

/** As `systemIds` makes them: ids of actions and rows begin with the time, and count within a millisecond. */
export function seededIds(random: Random): Ids {
  let count = 0;
  const bytes = (size: number) => Uint8Array.from({ length: size }, () => random.between(0, 255));
  const anyId = () => encodeId(bytes(16));
  const timeOrdered = (at: Date) => {
    const id = bytes(16);
    new DataView(id.buffer).setBigUint64(0, (BigInt(at.getTime()) << 16n) | BigInt(count++ & 0xffff));
    return encodeId(id);
  };
  return {
    action: (at) => `act_${timeOrdered(at)}`,
    bulk: (at) => `blk_${timeOrdered(at)}`,
    request: () => `req_${anyId()}`,
    account: () => `acc_${anyId()}`,
    key: (at) => `key_${timeOrdered(at)}`,
    pause: (at) => `pau_${timeOrdered(at)}`,
    rule: (at) => `rul_${timeOrdered(at)}`,
    grant: (at) => `grt_${timeOrdered(at)}`,
    oauthClient: () => `ocl_${anyId()}`,
    credential: (at) => `crd_${timeOrdered(at)}`,
    credentialRequest: (at) => `crq_${timeOrdered(at)}`,
    channel: (at) => `chn_${timeOrdered(at)}`,
    person: (at) => `per_${timeOrdered(at)}`,
    invitation: (at) => `inv_${timeOrdered(at)}`,
    node: () => `nod_${anyId()}`,
    row: timeOrdered,
    random: () => random.next(),
    bytes,
  };
}
