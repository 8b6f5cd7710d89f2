import type { Action } from "../client/openapi.ts";
import { clockTime, type Color, padded, type Paint, shortened, visible } from "../observability/terminal.ts";
import { age, STATUS_COLOR, withHost } from "./action-text.ts";
import { type Cell, type Column, tableOf } from "./table.ts";
import { type ListColumn, listTable, type Session } from "./session.ts";
import { targetMessage } from "../actions/target-message.ts";

/** A beginning that is unique in practice: the time, version and counter of a UUIDv7. One less, and two ids in a row look the same. */
const ID_COLUMNS_MIN = "act_".length + 14;

/** Enough for most names of agents. */
const AGENT_COLUMNS = 14;

/** On a narrow terminal title and result go below their row, then attempts and age are left out. */
export const LISTED_COLUMNS: readonly ListColumn<Action>[] = [
  ["ID", ({ id }) => id, { min: ID_COLUMNS_MIN, mark: "" }],
  ["AGE", ({ created_at: at }, now) => ({ text: age(at, now), color: "grey" }), { leaves: 4 }],
  ["STATUS", statusCell],
  ["TRIES", ({ attempts, retries }) => `${attempts}/${retries}`, { leaves: 3 }],
  ["AGENT", ({ created_by: by }) => visible(by.name), { min: AGENT_COLUMNS }],
  ["CALL", callOf, { min: 20, keeps: 44 }],
  ["TITLE", ({ title }) => visible(title ?? ""), { min: 24, leaves: 1, goesBelow: true }],
  ["RESULT", resultOf, { min: 14, leaves: 2, goesBelow: true }],
];

/** Narrower terminals show the beginnings of ids, and no agent. */
const WIDE_COLUMNS = 120;

const EVENT_COLUMNS: readonly Column[] = [
  { heading: "" },
  { heading: "" },
  { heading: "" },
  { heading: "" },
  { heading: "", min: 20 },
  { heading: "", min: 10 },
];

interface ActionEvent {
  readonly at: Date;
  readonly action: Action;
}

/** A change of an action in one line, in local time, aligned with the lines of others. */
export function eventLine({ at, action }: ActionEvent, paint: Paint, columns?: number): string {
  const status = statusCell(action);
  const isNarrow = columns !== undefined && columns < WIDE_COLUMNS;
  const agent = shortened(visible(action.created_by.name), AGENT_COLUMNS);
  const row: readonly Cell[] = [
    { text: clockTime(at), color: "grey" },
    { ...status, text: padded(status.text, isNarrow ? "completed 200".length : "awaiting approval".length) },
    isNarrow ? action.id.slice(0, ID_COLUMNS_MIN) : action.id,
    isNarrow ? "" : padded(agent, AGENT_COLUMNS),
    callOf(action),
    resultOf(action),
  ];
  return tableOf(EVENT_COLUMNS, [row], paint, columns);
}

/** Method and URL; `https://` is left out, `http://` never is. The host is never cut. */
function callOf({ method, url }: Pick<Action, "method" | "url">): Cell {
  return withHost(visible(`${method.padEnd(4)} ${url.replace(/^https:\/\//i, "")}`));
}

interface ColoredCell {
  readonly text: string;
  readonly color: Color;
}

/** The status with what the target answered: `failed 422`. */
export function statusCell({ status, response_code: latest }: Pick<Action, "status" | "response_code">): ColoredCell {
  // While an attempt is under way, the last one's answer is old.
  const code = status === "active" ? null : latest;
  const isRetried = status === "pending" && code !== null;
  const color = isRetried ? "yellow" : STATUS_COLOR[status];
  return { text: `${status.replace("_", " ")}${code === null ? "" : ` ${code}`}`, color };
}

/** The result so far: when it is sent again, why it failed, or how long it took. */
function resultOf(action: Action): Cell {
  const { status, next_retry_in_seconds: seconds, run_at: runAt, duration_ms: ms } = action;
  if (action.pause !== undefined) return { text: "paused", color: "yellow" };
  if (status === "completed") return { text: ms === null ? "" : `${ms} ms`, color: "grey" };
  if (status === "active") return { text: `attempt ${action.attempts} of ${action.retries}`, color: "grey" };
  if (status === "pending" && seconds !== undefined) return { text: `again in ${span(seconds)}`, color: "blue" };
  if (status === "pending" && action.attempts === 0 && runAt !== undefined) return `at ${runAt.slice(0, 16)}Z`;
  return visible(failureIn(action) ?? "");
}

/** The target's error message, or else ours, unless that only repeats the status. */
export function failureIn({
  response_body: body = null,
  last_error: error,
}: Pick<Action, "response_body" | "last_error">): string | null {
  const said = error === null ? null : targetMessage(JSON.stringify(body));
  return said ?? (error === null || / with status \d{3}\.$/.test(error) ? null : error.replace(/\.$/, ""));
}

/** Seconds in the largest unit that they fill. */
export function span(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

const WHOLE_ID = /^act_[0-9a-z]{26}$/;

/** The service looks for the beginnings of ids from four characters on. */
const BEGINNING = /^act_[0-9a-z]{4,25}$/;

/** Ids begin with the time, and so with a digit for the next centuries. */
const WITHOUT_PREFIX = /^[0-9][0-9a-z]{7,25}$/;

/** Of the actions that a beginning may stand for. */
const SHOWN_MAX = 10;

/**
 * The id that a text stands for: an id, the beginning of exactly one, or the URL of its page or API. Throws a list if several
 * ids begin so. Anything else is left to the service to refuse.
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
