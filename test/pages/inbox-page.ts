import type { Action } from "../../src/core/action.ts";
import { NO_HISTORY } from "../../src/approvals/facts.ts";
import { type InboxPane, type InboxProps, inboxPage } from "../../src/pages/decisions/inbox.tsx";
import type { InboxQuery } from "../../src/pages/decisions/inbox-query.ts";
import type { TimelineEntry } from "../../src/core/timeline.ts";
import { confirmPage } from "../../src/pages/decisions/approval-link.tsx";
import { receiptPage } from "../../src/pages/action/receipt.tsx";
import { later, NOON } from "../support/factory.ts";
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
      : { kind: "request", isChosen: false, held: { action, history: NO_HISTORY, digest: "2:00" } };
  const { length: total } = actions;
  const none = { histories: new Map(), after: null, requesters: [], hosts: [], hasMoreHosts: false };
  const inbox = { actions, ...none, total, matching: total };
  return inboxPage({ user: ANN, inbox, requests: [], query: EVERYTHING, pane, decided: [], now: NOON, ...more });
}

/** One request under its own address. */
export function requestPageOf(stored: Action): string {
  const action = maskAction(stored, "decider");
  return inboxOf([], {
    pane: { kind: "request", isChosen: true, held: { action, history: NO_HISTORY, digest: "2:00" } },
  });
}

/** The receipt of an action, as anybody opens it. */
export function receiptOf(action: Action, timeline: readonly TimelineEntry[] = []): string {
  return receiptPage({ action: maskAction(action, "public"), timeline, now: NOON, reload: null });
}

/** The page that the link of a mail opens. */
export function confirmOf(stored: Action): string {
  const action = maskAction(stored, "decider");
  const asked = { history: NO_HISTORY, digest: "2:00", decision: "approve", bodyPath: "/a/x/body" } as const;
  return confirmPage({ action, expiresAt: later(1), ...asked });
}
