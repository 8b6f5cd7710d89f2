import type { Action } from "../domain/action.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { ActionStore } from "../ports/store.ts";

/** Everything that a receipt is made of, not yet masked. */
export interface Receipt {
  readonly action: Action;
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
}

/** The receipt that a token opens; null for every other text, and for an action that was deleted. */
export type ReadReceipt = (token: string) => Promise<Receipt | null>;

export interface ReceiptDeps {
  readonly actions: Pick<ActionStore, "findById" | "timeline">;
  readonly secrets: Pick<Secrets, "readReceiptToken">;
}

/** Nobody is asked who they are: the token is the whole right to look (spec "Receipt page"). */
export function createReadReceipt({ actions, secrets }: ReceiptDeps): ReadReceipt {
  return async (token) => {
    const id = secrets.readReceiptToken(token);
    const action = id === null ? null : await actions.findById(id);
    if (action === null) return null;
    return { action, timeline: await actions.timeline(action.accountId, action.id) };
  };
}
