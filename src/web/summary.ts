import type { Action, ActionStatus } from "../domain/action.ts";
import { counted, duration } from "./words.ts";

/** How things stand with an action, in a sentence. `isRejected`: a person said no to it, which its status does not tell. */
export function summaryOf(action: Action, isRejected = false): string {
  return isRejected ? "A person rejected it. Nothing was sent." : SENTENCES[action.status](action);
}

const SENTENCES: Readonly<Record<ActionStatus, (action: Action) => string>> = {
  pending: ({ attempts, retries, result }) =>
    attempts === 0
      ? "It is about to be sent."
      : `${result?.lastError ?? "The last attempt failed."} ${counted(retries - attempts, "attempt")} left.`,
  active: ({ attempts }) => `It is being sent: attempt ${attempts}.`,
  awaiting_approval: () => "It waits for a person to approve it. Nothing has been sent.",
  completed: ({ attempts, result }) =>
    `The target answered ${result?.responseCode ?? "with success"}${tookOf(result?.durationMs ?? null)}${
      attempts === 1 ? "" : `, at attempt ${attempts}`
    }.`,
  failed: ({ attempts, result }) =>
    `${result?.lastError ?? "It could not be delivered."} Given up after ${counted(attempts, "attempt")}.`,
  cancelled: ({ attempts }) =>
    attempts === 0 ? "It was cancelled. Nothing was sent." : `It was cancelled after ${counted(attempts, "attempt")}.`,
};

function tookOf(ms: number | null): string {
  return ms === null ? "" : ` in ${duration(ms)}`;
}
