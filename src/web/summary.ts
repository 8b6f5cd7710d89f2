import type { Action, ActionStatus } from "../domain/action.ts";
import { counted, duration } from "./words.ts";

/** How things stand with an action, in a sentence. `isRejected`: somebody said no to it, which its status does not tell. */
export function summaryOf(action: Action, isRejected = false): string {
  return isRejected ? `It was rejected. ${notSent(action)}` : SENTENCES[action.status](action);
}

const SENTENCES: Readonly<Record<ActionStatus, (action: Action) => string>> = {
  pending: ({ attempts, retries, result }) =>
    attempts === 0
      ? "It is about to be sent."
      : `${result?.lastError ?? "The last attempt failed."} ${counted(retries - attempts, "attempt")} left.`,
  active: ({ attempts }) => `It is being sent: attempt ${attempts}.`,
  awaiting_approval: (action) => `It waits for a person to approve it. ${notSent(action)}`,
  completed: ({ attempts, result }) =>
    `The target answered ${result?.responseCode ?? "with success"}${tookOf(result?.durationMs ?? null)}${
      attempts === 1 ? "" : `, at attempt ${attempts}`
    }.`,
  failed: ({ attempts, result }) =>
    `${result?.lastError ?? "It could not be delivered."} Given up after ${counted(attempts, "attempt")}.`,
  cancelled: (action) =>
    action.attempts === 0
      ? `It was cancelled. ${notSent(action)}`
      : `It was cancelled after ${counted(action.attempts, "attempt")}.`,
};

function tookOf(ms: number | null): string {
  return ms === null ? "" : ` in ${duration(ms)}`;
}

/** What whoever decides on a held action is told, on pages and in mails. */
export function waitingWords(action: Sent): string {
  return `It waits for your decision. ${notSent(action)}`;
}

type Sent = Pick<Action, "run" | "callback">;

/**
 * Of a run that has not sent its request. The runs before it may have: whoever decides must not take it for unheard of. And
 * a callback is told of a held action before anybody decides.
 */
function notSent({ run, callback }: Sent): string {
  const what = callback === null ? "Nothing has been sent" : "The request has not been sent";
  const where = run === 1 ? "" : ` in run ${run}; the target may have received it in a run before`;
  return `${what}${where}.${callback === null ? "" : " Its callback is told that it waits and how it ends."}`;
}
