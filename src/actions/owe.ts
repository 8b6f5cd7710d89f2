import { callbackJson } from "../contract/callback.ts";
import type { Action } from "../domain/action.ts";
import { hostOf, notificationsFor } from "../domain/owed.ts";
import type { TimelineEvent } from "../domain/timeline.ts";
import type { Ids } from "../ports/ids.ts";
import type { OutboxRow } from "../ports/store.ts";

/** The outbox rows that an action owes because it has come into its present state, in this way. */
export type Enqueue = (action: Action, at: Date, events: readonly TimelineEvent[]) => readonly OutboxRow[];

export interface EnqueueDeps {
  readonly ids: Pick<Ids, "row">;
  readonly receiptUrl: (actionId: string) => string;
}

/** Fixes the body of a callback at the moment of the change; a mail is written when it is sent. */
export function createEnqueue({ ids, receiptUrl }: EnqueueDeps): Enqueue {
  return (action, at, events) =>
    notificationsFor(action, events).map((message) => ({
      id: ids.row(at),
      message,
      host: hostOf(message),
      payload: message.kind === "callback" ? callbackJson(message.event, action, at, receiptUrl(action.id)) : null,
    }));
}
