import type { ActionJson } from "../actions/schemas.ts";
import { targetMessage } from "../actions/target-message.ts";
import { visible } from "../observability/terminal.ts";
import { age, STATUS_COLOR, STATUS_WORD, withHost } from "./action-text.ts";
import type { Cell, Column } from "./table.ts";

/** The beginning of an id that is its own in practice: 48 bits of time, and some of what counts within a millisecond. */
export const ID_COLUMNS_MIN = "act_".length + 13;

/** The columns of a list of actions. On a narrow terminal the title, the attempts and the age are left out. */
export const ACTION_COLUMNS: readonly Column[] = [
  { heading: "ID", min: ID_COLUMNS_MIN, mark: "" },
  { heading: "AGE", leaves: 3 },
  { heading: "STATUS" },
  { heading: "TRIES", leaves: 2 },
  { heading: "AGENT", min: 6 },
  { heading: "TITLE", min: 16, leaves: 1 },
  { heading: "CALL", min: 20 },
  { heading: "RESULT", min: 14 },
];

/** An action in these columns. */
export function actionRow(action: ActionJson, now: Date): readonly Cell[] {
  return [
    action.id,
    { text: age(action.created_at, now), color: "grey" },
    statusCell(action),
    `${action.attempts}/${action.retries}`,
    visible(action.created_by.name),
    visible(action.title ?? ""),
    callOf(action),
    resultOf(action),
  ];
}

/** Method and URL; `https://` is left out, `http://` never is. The host is never cut. */
export function callOf({ method, url }: Pick<ActionJson, "method" | "url">): Cell {
  return withHost(visible(`${method.padEnd(4)} ${url.replace(/^https:\/\//i, "")}`));
}

/** The status with what the target answered: `failed 422`. */
export function statusCell({ status, response_code: code }: Pick<ActionJson, "status" | "response_code">): Cell {
  const isRetried = status === "pending" && code !== null;
  const color = isRetried ? "yellow" : STATUS_COLOR[status];
  return { text: `${STATUS_WORD[status]}${code === null ? "" : ` ${code}`}`, color };
}

/** What came of it so far: when it is sent again, why it failed, or how long it took. */
function resultOf(action: ActionJson): Cell {
  const { status, next_retry_in_seconds: seconds, run_at: runAt, duration_ms: ms } = action;
  if (action.pause !== undefined) return { text: "paused", color: "yellow" };
  if (status === "completed") return { text: ms === null ? "" : `${ms} ms`, color: "grey" };
  if (status === "pending" && seconds !== undefined) return { text: `again in ${span(seconds)}`, color: "blue" };
  if (status === "pending" && action.attempts === 0 && runAt !== undefined) return `at ${runAt.slice(0, 16)}Z`;
  return visible(failureIn(action) ?? "");
}

/** What the target says of its error, or else our sentence; a status alone is in its column. */
export function failureIn({ response_body: body = null, last_error: error }: ActionJson): string | null {
  const said = error === null ? null : targetMessage(JSON.stringify(body));
  return said ?? (error === null || / with status \d{3}\.$/.test(error) ? null : error.replace(/\.$/, ""));
}

/** Seconds in the largest unit that they fill. */
export function span(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
