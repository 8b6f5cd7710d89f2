import type { Action } from "../../src/core/action.ts";
import { NO_HISTORY } from "../../src/approvals/facts.ts";
import { type InboxPane, type InboxProps, inboxPage } from "../../src/pages/inbox.tsx";
import type { InboxQuery } from "../../src/pages/inbox-query.ts";
import { NOON } from "../support/factory.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

export const ANN = { email: "ann@example.com", formToken: "t", role: "owner", hasOthers: false } as const;

const EVERYTHING: InboxQuery = { by: null, host: null, age: null, after: null };

/** The inbox with these requests, the first of which is beside the list. */
export function inboxOf(stored: readonly Action[], more: Partial<InboxProps> = {}): string {
  const actions = stored.map((action) => maskAction(action, "decider"));
  const [action] = actions;
  const pane: InboxPane =
    action === undefined
      ? { kind: "none" }
      : { kind: "request", isChosen: false, action, history: NO_HISTORY, digest: "2:00" };
  const { length: total } = actions;
  const none = { histories: new Map(), after: null, requesters: [], hosts: [], hasMoreHosts: false };
  const inbox = { actions, ...none, total, matching: total };
  return inboxPage({ user: ANN, inbox, requests: [], query: EVERYTHING, pane, decided: [], now: NOON, ...more });
}

/** One request under its own address. */
export function requestPageOf(stored: Action): string {
  const action = maskAction(stored, "decider");
  return inboxOf([], { pane: { kind: "request", isChosen: true, action, history: NO_HISTORY, digest: "2:00" } });
}
