import type { Action } from "../core/action.ts";
import { type Actor, kindOfActor, SYSTEM } from "../core/roles.ts";
import type { ActionStore } from "../core/store.ts";
import type { TimelineEntry, TimelineEvent } from "../core/timeline.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { namesRule } from "../core/action-policy.ts";

/** The content of a receipt, not yet masked, without the names of those who decided. */
interface Receipt {
  readonly action: Action;
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
}

/** Reads the receipt of a token, the only credential. Null: the token is invalid, or the action was deleted. */
export function createReadReceipt(
  actions: Pick<ActionStore, "findById" | "timeline">,
  secrets: Pick<Secrets, "readReceiptToken">,
) {
  return async (token: string): Promise<Receipt | null> => {
    const id = secrets.readReceiptToken(token);
    const action = id === null ? null : await actions.findById(id);
    if (action === null) return null;
    return withoutNames(action, await actions.timeline(action.accountId, action.id));
  };
}

/** Anyone may have the link, so it shows no texts of rules and no addresses: deciders only by kind, requesters by key name. */
function withoutNames(action: Action, timeline: readonly TimelineEntry[]): Receipt {
  const { createdBy, approvedBy } = action;
  return {
    action: {
      ...action,
      createdBy: requesterOf(createdBy),
      // Safe: whatever approves an action is an actor.
      approvedBy: approvedBy === null ? null : kindOfActor(approvedBy as Actor),
    },
    timeline: timeline.map((entry) => {
      const event = withoutRule(entry.event);
      if (!("actor" in event)) return { ...entry, event };
      const actor = event.type === "created" ? requesterOf(event.actor) : kindOfActor(event.actor);
      return { ...entry, event: { ...event, actor } };
    }),
  };
}

function requesterOf(actor: Actor): Actor {
  const kind = kindOfActor(actor);
  return kind === "key" || kind === "mcp" ? actor : kind;
}

/** Only the account may see what owners wrote in a rule and what the rule compares. */
function withoutRule(event: TimelineEvent): TimelineEvent {
  if (event.type === "held") return { type: "held" };
  if (event.type !== "cancelled" || event.actor !== SYSTEM || !namesRule(event.reason ?? "")) return event;
  return { ...event, reason: "A rule of the account refuses this call." };
}
