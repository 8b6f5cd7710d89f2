import type { Actor } from "./actor.ts";

/** A key of which something awaits approval. */
export interface Requester {
  /** Empty: no key, or none was kept. */
  readonly keyId: string;
  /** As its oldest request names it. */
  readonly createdBy: Actor;
  /** Up to `COUNTED_MAX`. */
  readonly count: number;
}
