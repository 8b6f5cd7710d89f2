import type { Action } from "../domain/action.ts";
import { type EarlierRejection, rejectionDigest } from "../domain/rejections.ts";
import type { HashOf } from "../domain/request-digest.ts";
import type { Clock } from "../ports/clock.ts";
import type { RejectionStore } from "../ports/rejections.ts";

export interface EarlierDeps {
  readonly rejections: Pick<RejectionStore, "earlier">;
  readonly clock: Clock;
  readonly hashOf: HashOf;
}

/** What was said about the requests of held actions before, by their ids. */
export type EarlierById = ReadonlyMap<string, readonly EarlierRejection[]>;

/**
 * Earlier rejections of the same requests, and why they are asked for since. Not masked. Who may see the actions is for the
 * caller to have asked.
 */
export function createEarlierRejections({ rejections, clock, hashOf }: EarlierDeps) {
  return async (some: readonly Action[]): Promise<EarlierById> => {
    const held = some.filter(({ status }) => status === "awaiting_approval");
    const now = clock.now();
    const entries = await Promise.all(
      held.map(
        async (action) => [action.id, await rejections.earlier(action, rejectionDigest(action, hashOf), now)] as const,
      ),
    );
    return new Map(entries);
  };
}
