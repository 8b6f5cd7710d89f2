import type { Action, DecisionFacts, PutDefaults, Timeline, TimelineItem } from "../client/api.ts";
import { TEXT_EXTRAS } from "../core/action.ts";
import { timeSpan } from "../core/clock.ts";
import { targetMessage } from "../actions/target-message.ts";
import {
  clockTime,
  columnCount,
  padded,
  shortened,
  visible,
  type Color,
  type Paint,
} from "../observability/terminal.ts";
import { renderTable, textTable, type Cell, type Column } from "./table.ts";
import type { ListColumn, Session } from "./session.ts";
import { jsonText } from "./exact-json.ts";

/** A beginning that is unique in practice: the time, version and counter of a UUIDv7. With one less, ids in a row look the same. */
const ID_COLUMNS_MIN = "act_".length + 14;

/** Columns for agents, enough for most names. */
const AGENT_COLUMNS = 14;

/** The columns of a list. On narrow terminals, title and result go below their row, then attempts and age are left out. */
export const LISTED_COLUMNS: readonly ListColumn<Action>[] = [
  ["ID", ({ id }) => id, { min: ID_COLUMNS_MIN, mark: "" }],
  ["AGE", ({ created_at: at }, now) => ({ text: age(at, now), color: "grey" }), { leaves: 4 }],
  ["STATUS", statusCell],
  ["TRIES", ({ attempts, retries }) => `${attempts}/${retries}`, { leaves: 3 }],
  ["AGENT", ({ created_by: by }) => by.name, { min: AGENT_COLUMNS }],
  ["CALL", callCell, { min: 20, keeps: 44 }],
  ["TITLE", ({ title }) => title ?? "", { min: 24, leaves: 1, goesBelow: true }],
  ["RESULT", resultCell, { min: 14, leaves: 2, goesBelow: true }],
];

/** Narrower terminals show only the beginnings of ids, and no agent. */
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

/** A change of an action on one line, in local time, aligned with other lines. */
export function eventLine({ at, action }: ActionEvent, paint: Paint, columns?: number): string {
  const status = statusCell(action);
  const isNarrow = columns !== undefined && columns < WIDE_COLUMNS;
  const agent = shortened(visible(action.created_by.name), AGENT_COLUMNS);
  const row: readonly Cell[] = [
    { text: clockTime(at), color: "grey" },
    { ...status, text: padded(status.text, isNarrow ? "completed 200".length : "awaiting approval".length) },
    isNarrow ? action.id.slice(0, ID_COLUMNS_MIN) : action.id,
    isNarrow ? "" : padded(agent, AGENT_COLUMNS),
    callCell(action),
    resultCell(action),
  ];
  return renderTable(EVENT_COLUMNS, [row], paint, columns);
}

/** Method and URL, without `https://` but with `http://`. Never cuts the host. */
function callCell({ method, url }: Pick<Action, "method" | "url">): Cell {
  return withHost(`${method.padEnd(4)} ${url.replace(/^https:\/\//i, "")}`);
}

interface ColoredCell {
  readonly text: string;
  readonly color: Color;
}

/** The status with the target's response code: `failed 422`. */
export function statusCell({ status, response_code: latest }: Pick<Action, "status" | "response_code">): ColoredCell {
  // While an attempt is running, the last one's code is outdated.
  const code = status === "active" ? null : latest;
  const isRetried = status === "pending" && code !== null;
  const color = isRetried ? "yellow" : STATUS_COLOR[status];
  return { text: `${status.replace("_", " ")}${code === null ? "" : ` ${code}`}`, color };
}

/** The result so far: when the next attempt is, why it failed, or how long it took. */
function resultCell(action: Action): Cell {
  const { status, next_retry_in_seconds: seconds, run_at: runAt, duration_ms: ms } = action;
  if (action.pause !== undefined) return { text: "paused", color: "yellow" };
  if (status === "completed") return { text: ms === null ? "" : `${ms} ms`, color: "grey" };
  if (status === "active") return { text: `attempt ${action.attempts} of ${action.retries}`, color: "grey" };
  if (status === "pending" && seconds !== undefined)
    return { text: `again in ${timeSpan(seconds * 1_000)}`, color: "blue" };
  if (status === "pending" && action.attempts === 0 && runAt !== undefined) return `at ${runAt.slice(0, 16)}Z`;
  return failureIn(action) ?? "";
}

/** The target's error message, or else ours if it says more than the status. */
export function failureIn({
  response_body: body = null,
  last_error: error,
}: Pick<Action, "response_body" | "last_error">): string | null {
  const said = error === null ? null : targetMessage(JSON.stringify(body));
  return said ?? (error === null || / with status \d{3}\.$/.test(error) ? null : error.replace(/\.$/, ""));
}

export const STATUS_COLOR: Readonly<Record<Action["status"], Color>> = {
  pending: "blue",
  active: "blue",
  awaiting_approval: "yellow",
  completed: "green",
  failed: "red",
  cancelled: "grey",
};

/** An action for a person: call, status, attempts, the target's response. */
export function actionText(action: Action, { paint, url, io }: Session, ending?: TimelineItem): string {
  const { status, credential, approved_at: approved, receipt_url: receipt } = action;
  const rows: readonly (readonly [name: string, value: Cell | null | undefined])[] = [
    ["hidden", hiddenNote(action)],
    ["call", withHost(`${action.method} ${action.url}`)],
    ["credential", credential && `${credential.name} (${credential.kind})`],
    ["title", action.title],
    ["run", action.run === 1 ? null : String(action.run)],
    ["attempts", `${action.attempts} of ${action.retries}`],
    ["paused", pauseNote(action)],
    ["not before", action.run_at],
    ["expires", action.expires_at],
    ["next retry", action.next_retry_at],
    ["delivery", Object.values(settingsParts(action)).filter(Boolean).join("; ") || null],
    ["answer", answerText(action)],
    ["error", action.last_error],
    ...TEXT_EXTRAS.map((name) => [name, requesterText(action[name])] as const),
    ["other version", action.extras && JSON.stringify(action.extras)],
    ["callback", action.callback && withHost(action.callback)],
    ["approved", approved && `${approved} by ${action.approved_by}`],
    [ending?.type ?? "", ending && whole(endingText(ending))],
    ["policy", rulingText(action)],
    ["late answer", lateNote(action)],
    ["created", `${action.created_at} by ${action.created_by.name}`],
    ["finished", action.finished_at],
    ["receipt", receipt && whole(new URL(receipt, url).href)],
    ["you may", action.actions.join(", ") || null],
    ["note", repeatNote(action)],
  ];
  const filled = rows.flatMap(([name, value]) => (value === null || value === undefined ? [] : [[`  ${name}`, value]]));
  const head = [action.id, { text: status, color: STATUS_COLOR[status] }];
  return textTable([head], paint) + textTable(filled, paint, io.columns);
}

/** "held by the rule Payments: a person checks them"; null if nothing held it and no rule applied. */
function rulingText({ policy }: Action): string | null {
  if (policy === undefined) return null;
  const own = policy.by === "caller" ? "the requester" : `its ${policy.by}`;
  const by = policy.name === null ? own : `the ${policy.by} ${policy.name}`;
  return `${policy.effect === "hold" ? "held" : "allowed"} by ${by}${policy.reason === null ? "" : `: ${policy.reason}`}`;
}

/** "2026-03-04T12:00:00.000Z by user:ann@example.com: the wrong customer" */
function endingText({ at, actor, reason }: TimelineItem): string {
  return `${at} by ${actor ?? "unknown"}${reason ? `: ${reason}` : ""}`;
}

/** A table cell that is never cut, because a cut URL leads nowhere. */
function whole(text: string): Cell {
  return { text, uncut: text.length };
}

/** A URL in a table. Never cuts its host. */
function withHost(text: string): Cell {
  return { text, uncut: hostEnd(text) };
}

/** The end of host and port in the first URL of a text, or of a host at its beginning. */
function hostEnd(text: string): number {
  const scheme = text.indexOf("://");
  const start = scheme === -1 ? 0 : scheme + "://".length;
  const length = text.slice(start).search(/[/?#\\]/);
  return length === -1 ? text.length : start + length;
}

/** Says like the pages how many values are hidden. Doesn't share their code, which would double the bundle for Node. */
function hiddenNote({ hidden_values: count = 0 }: Action): string | null {
  if (count === 0) return null;
  return count === 1 ? "1 value hidden" : `${count} values hidden`;
}

function requesterText(text: string | Readonly<Record<string, string>> | undefined): string | undefined {
  if (text === undefined || typeof text === "string") return text;
  return Object.entries(text)
    .map(([name, value]) => `${name}: ${value}`)
    .join("; ");
}

function pauseNote({ pause }: Action): string | null {
  if (pause === undefined) return null;
  return `${pause.kind} since ${pause.created_at}${pause.reason === null ? "" : `: ${pause.reason}`}`;
}

function answerText({ response_code: code, response_body: body, duration_ms: ms }: Action): string | null {
  if (code === null) return null;
  const text = body === null || body === undefined ? "" : `: ${typeof body === "string" ? body : JSON.stringify(body)}`;
  return `${code}${ms === null ? "" : ` in ${ms} ms`}${text}`;
}

function lateNote({ late_result: late }: Action): string | null {
  if (late === undefined) return null;
  const { run, attempt, response_code: code, at } = late;
  return `${code} to attempt ${attempt} of run ${run}, at ${at}: after it was closed as unknown`;
}

function repeatNote({ deduplicated, differs = [] }: Action): string | null {
  if (deduplicated !== true) return null;
  return `an earlier action${differs.length === 0 ? "" : `; it differs in ${differs.join(", ")}`}`;
}

const RISK_LOOKS = { danger: ["! ", "red"], warning: ["! ", "yellow"], note: ["", "grey"] } as const;

/**
 * Describes what a person decides on, without cuts: the call, its risks, body and headers, then the other facts. Each line of the
 * body is marked, so that none can look like a fact.
 */
export function describeDecision(
  action: Action,
  { facts, risks }: DecisionFacts,
  { paint, io }: Pick<Session, "paint"> & { readonly io: Pick<Session["io"], "columns"> },
): string {
  const headers = Object.entries(action.headers ?? {}).map(([name, value]) => `  ${visible(`${name}: ${value}`)}\n`);
  const shown = bodyText(action);
  const bodyAt = facts.findIndex(({ name }) => name === "body");
  const factRows = (some: typeof facts) => some.map(({ label, value }): readonly Cell[] => [`  ${label}`, value]);
  const warnings = risks.map(({ level, text }) => {
    const [sign, color] = RISK_LOOKS[level];
    return inColumns(`${sign}${visible(text)}\n`, io.columns).replace(/.+/g, (line) => paint(line, color));
  });
  const { label = "Body", value = "" } = facts[bodyAt] ?? {};
  const call = textTable(factRows(facts.slice(0, Math.max(bodyAt, 0))), paint);
  const rest = [
    `${label}: ${visible(value)}\n`,
    shown === null ? "" : `  | ${shown.replaceAll("\n", "\n  | ")}\n`,
    ...(headers.length === 0 ? [] : ["Headers\n", ...headers]),
    "Details\n",
    textTable(factRows(facts.slice(bodyAt + 1)), paint),
  ];
  return [inColumns(call, io.columns), ...warnings, inColumns(rest.join(""), io.columns)].join("");
}

/**
 * Breaks lines where the terminal would. It would continue them at its edge, so that a text with enough spaces could look like
 * lines of ours below it.
 */
function inColumns(text: string, columns = Number.POSITIVE_INFINITY): string {
  return text
    .split("\n")
    .map((line) => (columnCount(line) <= columns ? line : broken(line, columns)))
    .join("\n");
}

function broken(line: string, columns: number): string {
  let [text, width] = ["", 0];
  for (const character of line) {
    const added = columnCount(character);
    if (width + added > columns && width > CONTINUED.length) {
      text += `\n${CONTINUED}`;
      width = CONTINUED.length;
    }
    text += character;
    width += added;
  }
  return text;
}

/** Before the rest of a broken line. */
const CONTINUED = "    … ";

/** The body for people; null if there is none. Shows a line break in a field as its code. */
function bodyText({ body, json, form, text, base64 }: Action): string | null {
  if (body !== null) return jsonText(body, true).trimEnd();
  if (json !== undefined) return jsonText(json, true).trimEnd();
  if (text !== undefined) return visible(text, true);
  if (base64 !== undefined) return visible(base64);
  if (form === undefined) return null;
  const fields = Object.entries(form).flatMap(([name, values]) =>
    (typeof values === "string" ? [values] : values).map((value) => visible(`${name}: ${value}`)),
  );
  return fields.join("\n");
}

/** The timeline of an action, one entry per line. */
export function describeTimeline({ data }: Timeline, { paint, io }: Session): string {
  const rows = data.map((item): readonly Cell[] => [
    item.at,
    item.type,
    { text: item.status, color: STATUS_COLOR[item.status] },
    eventDetail(item),
  ]);
  return textTable(rows, paint, io.columns);
}

function eventDetail(item: Timeline["data"][number]): string {
  const { actor, reason, attempt, outcome, response_code: code, error, next_retry_at: next } = item;
  // If the target answered, its status says enough.
  const failure = outcome === "answered" ? undefined : error?.replace(/\.$/, "");
  const parts = [
    actor,
    reason ?? undefined,
    attempt === undefined ? undefined : `attempt ${attempt}: ${outcome}${code ? ` ${code}` : ""}`,
    failure,
    next ? `again at ${next}` : undefined,
    item.event,
    item.delivered === undefined ? undefined : `${item.delivered ? "" : "not "}delivered`,
  ];
  return parts.filter((part) => part !== undefined).join("; ");
}

/** How long ago, such as `5m ago`, or `none` for null. */
export function agoText(at: string | null, now: Date, none = "never"): string {
  return at === null ? none : `${age(at, now)} ago`;
}

/** How long ago, with the first letter of the unit: `5m`. */
function age(at: string, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - Date.parse(at)) / 1_000));
  return timeSpan(seconds * 1_000).replace(/ (.).*/, "$1");
}

/** The settings that are set, in words. */
export function settingsParts({ timeout_ms: ms, backoff, give_up_on: statuses }: PutDefaults) {
  return {
    timeout_ms: ms && `timeout ${ms} ms`,
    backoff: backoff && `backoff ${backoff.base_ms} to ${backoff.cap_ms} ms`,
    give_up_on: statuses && `gives up on ${statuses.length === 0 ? "nothing" : statuses.join(", ")}`,
  } satisfies Record<keyof PutDefaults, unknown>;
}
