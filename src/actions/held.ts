import type { Action } from "../domain/action.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { HELD_LISTED_MAX } from "../domain/limits.ts";
import type { Requester } from "../domain/requester.ts";
import { type Unusual, unusualOf } from "../domain/unusual.ts";
import type { ActionStore, HeldPage } from "../ports/store.ts";

/** What is unusual about each of some actions, by their ids. */
export type UnusualById = ReadonlyMap<string, readonly Unusual[]>;

/** A page of what waits, with what a person should look at twice. */
export interface Waiting extends HeldPage {
  readonly unusual: UnusualById;
  /** Who has something waiting. */
  readonly requesters: readonly Requester[];
}

/**
 * What waits for a person, oldest first: whoever has waited longest is on top, and what comes meanwhile moves nothing
 * under the reader's hand. Of several keys that ask each has its turn on a page; with `keyId` it is what that key asks for.
 */
export function createHeld(actions: Pick<ActionStore, "held" | "requesters" | "calledHosts">) {
  const unusual = createUnusual(actions);
  return async (caller: Caller, after: string | null, keyId?: string): Promise<Waiting> => {
    authorize(caller, "read");
    const [page, requesters] = await Promise.all([
      actions.held(caller.accountId, after, HELD_LISTED_MAX, keyId),
      actions.requesters(caller.accountId),
    ]);
    return { ...page, requesters, unusual: await unusual(caller, page.actions) };
  };
}

/** Looks at requests with the eyes of their account. */
export function createUnusual(actions: Pick<ActionStore, "calledHosts">) {
  return async (caller: Caller, some: readonly Action[]): Promise<UnusualById> => {
    authorize(caller, "read");
    const hostnames = some.map(({ hostname }) => hostname);
    const called = await actions.calledHosts(caller.accountId, hostnames);
    return new Map(some.map((action) => [action.id, unusualOf(action, called)]));
  };
}
