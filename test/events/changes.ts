import type { Caller } from "../../src/core/roles.ts";
import type { ActionChange, Store } from "../../src/core/store.ts";
import type { EventStream } from "../../src/events/feed.ts";

export const lineOf = ({ seq, action }: ActionChange) => `${seq} ${action.id} ${action.status} ${action.attempts}`;

/** Everything of the account behind a position, asked of the store itself. */
export async function changesAfter(
  { store, owner }: { readonly store: Pick<Store, "actions">; readonly owner: Caller },
  after: number,
): Promise<readonly ActionChange[]> {
  const told: ActionChange[] = [];
  for (let position = after; ;) {
    const page = await store.actions.changes(owner.accountId, position);
    told.push(...page.changes);
    if (page.isLast) return told;
    position = page.position;
  }
}

/** Takes what the stream tells until it has told of this position. */
export async function readUntil(stream: EventStream, position: number): Promise<readonly ActionChange[]> {
  const told: ActionChange[] = [];
  while ((told.at(-1)?.seq ?? 0) < position) {
    const page = await stream.next();
    if (page === null) break;
    told.push(...page.changes);
  }
  return told;
}
