import type { Action } from "../client/api.ts";
import { waitForEnd } from "../client/wait.ts";
import { visible } from "../observability/terminal.ts";
import { actionText, LISTED_COLUMNS } from "./action-text.ts";
import { EXIT } from "./io.ts";
import { explain } from "./failures.ts";
import { listTable, type Session } from "./session.ts";

// What commands on one action share: which one it is, its end, and the exit code.

const WHOLE_ID = /^act_[0-9a-z]{26}$/;

/** The beginning of an id. The service searches from four characters on. */
const BEGINNING = /^act_[0-9a-z]{4,25}$/;

/** An id without its prefix. It begins with the time, so with a digit for centuries to come. */
const WITHOUT_PREFIX = /^[0-9][0-9a-z]{7,25}$/;

/** How many actions an error lists for an ambiguous beginning. */
const SHOWN_MAX = 10;

/**
 * Finds the id in a text: an id, the beginning of exactly one, or the URL of its page or API. Throws a list if several ids
 * begin so. Returns any other text, which the service refuses.
 */
export async function findActionId(session: Session, text: string): Promise<string> {
  const named = /\/actions\/(act_[0-9a-z]+)/.exec(text)?.[1] ?? text.trim();
  const given = WITHOUT_PREFIX.test(named) ? `act_${named}` : named;
  if (WHOLE_ID.test(given) || !BEGINNING.test(given)) return given;
  const page = await session.client.listActions({ q: given, limit: SHOWN_MAX });
  const found = page.data.filter(({ id }) => id.startsWith(given));
  const [first] = found;
  if (first === undefined) throw new Error(`There is no action with an id that begins with ${given}.`);
  if (found.length === 1) return first.id;
  const many = found.length < SHOWN_MAX ? `${found.length} actions have` : "Several actions have";
  throw new Error(
    `${many} an id that begins with ${visible(given)}. Add more of it:\n${listTable(session, found, LISTED_COLUMNS)}`.trimEnd(),
  );
}

export const EXIT_CODES_HELP =
  "\nExit code: 0 completed or not ended yet, 1 failed or cancelled, 3 not ended within --wait, 4 awaits approval.";

/** The exit code for a status. `waited`: whether the command waited for the end. */
export function exitCode(status: Action["status"], waited: boolean): number {
  if (status === "completed") return EXIT.ok;
  if (status === "failed" || status === "cancelled") return EXIT.failed;
  if (status === "awaiting_approval") return EXIT.awaitingApproval;
  return waited ? EXIT.timeout : EXIT.ok;
}

/** Waits for the end of an action that a command has changed. Where that fails the change is done, so returns what is known. */
export async function awaitEnd({ client, io, url }: Session, action: Action, seconds: number): Promise<Action> {
  return waitForEnd(client.getAction, action, seconds).catch((error: unknown) => {
    io.err(`${explain(error, url).message}\nAction ${action.id} was ${action.status} before that, and goes on.\n`);
    return action;
  });
}

/** Prints an action. Tells people also who rejected or cancelled it, and why. */
export async function printAction(session: Session, action: Action): Promise<void> {
  const isOver = action.status === "cancelled" && !session.isJson;
  // The action is known, so a command must not seem to have failed because who ended it is not.
  const timeline = isOver ? await session.client.getTimeline(action.id).catch(() => null) : null;
  const ending = timeline?.data.findLast(({ type }) => type === "rejected" || type === "cancelled");
  session.print(action, () => actionText(action, session, ending));
}
