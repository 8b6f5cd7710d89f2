import { visible } from "../observability/terminal.ts";
import { ACTION_COLUMNS, actionCells } from "./action-list.ts";
import type { Session } from "./session.ts";
import { tableOf } from "./table.ts";

const WHOLE_ID = /^act_[0-9a-z]{26}$/;

/** The service looks for the beginnings of ids from four characters on. */
const BEGINNING = /^act_[0-9a-z]{4,25}$/;

/** Ids begin with the time, and so with a digit for the next centuries. */
const WITHOUT_PREFIX = /^[0-9][0-9a-z]{7,25}$/;

/** Of the actions that a beginning may stand for. */
const SHOWN_MAX = 10;

/**
 * The id that a text stands for: an id, the beginning of exactly one, or the URL of its page or API. Throws a list where
 * several actions begin so. What looks like none of these is left to the service to refuse.
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
  const { paint, io } = session;
  const now = new Date();
  const rows = found.map((action) => actionCells(action, now));
  const many = found.length < SHOWN_MAX ? `${found.length} actions have` : "Several actions have";
  throw new Error(
    `${many} an id that begins with ${visible(given)}. Add more of it:\n${tableOf(ACTION_COLUMNS, rows, paint, io.columns)}`.trimEnd(),
  );
}
