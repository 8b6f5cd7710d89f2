import { callbackJson } from "../contract/callback.ts";
import type { Action } from "../domain/action.ts";
import { hostOf, owedOn } from "../domain/owed.ts";
import type { Happening } from "../domain/timeline.ts";
import type { Ids } from "../ports/ids.ts";
import type { OutboxRow } from "../ports/store.ts";

/** The outbox rows that an action owes because it has come into its present state, in this way. */
export type Owe = (action: Action, at: Date, happenings: readonly Happening[]) => readonly OutboxRow[];

export interface OweDeps {
  readonly ids: Pick<Ids, "row">;
  readonly receiptUrl: (actionId: string) => string;
}

/** Fixes the body of a callback at the moment of the change; a mail is written when it is sent. */
export function createOwe({ ids, receiptUrl }: OweDeps): Owe {
  return (action, at, happenings) =>
    owedOn(action, happenings).map((owed) => ({
      id: ids.row(at),
      owed,
      host: hostOf(owed),
      payload: owed.kind === "callback" ? callbackJson(owed.event, action, at, receiptUrl(action.id)) : null,
    }));
}
