/** @jsxImportSource hono/jsx */
import { isTerminal } from "../core/action.ts";
import type { PastAttempt } from "../core/attempts.ts";
import { statusSentence } from "../core/outcome.ts";
import type { TimelineEntry } from "../core/timeline.ts";
import { ATTEMPTS_KEPT } from "../core/limits.ts";
import { readHeaders } from "../receipts/response-headers.ts";
import { shownTree } from "../ui/body-view.tsx";
import { JsonView } from "../ui/json-view.tsx";
import { actionPath, queryText } from "../ui/layout.tsx";
import { Dot, Table, Time, type Tone, UntrustedBlock, UntrustedText } from "../ui/parts.tsx";
import { responseText } from "./request.tsx";
import { counted, duration } from "../ui/text.ts";
import { KIND_NAMES, type RunSpans, runsOf, type Span, spansText } from "./timeline.tsx";
import type { SeenAction } from "../receipts/seen-action.ts";

/** Those in the address of a page, else the last that ended in the present run; null: none has ended. */
export function chosenAttempt(
  action: Pick<SeenAction, "run">,
  attempts: readonly PastAttempt[],
  search: string,
): PastAttempt | null {
  const asked = new URLSearchParams(search);
  const run = Number(asked.get("run") ?? action.run);
  // What came late says more than that it was unknown.
  const chosen = attempts.findLast((one) => one.run === run && one.attempt === Number(asked.get("attempt")));
  return chosen ?? attempts.findLast((one) => one.run === action.run) ?? null;
}

interface AttemptsProps {
  readonly action: SeenAction;
  readonly timeline: readonly TimelineEntry[];
  /** The newest that have ended. */
  readonly attempts: readonly PastAttempt[];
  /** The one that the page is about. */
  readonly chosen: Pick<PastAttempt, "run" | "attempt"> | null;
  /** Whether a row leads to its response; not on receipts, which have the last one alone. */
  readonly isLinked?: boolean;
  readonly now: Date;
}

/** The newest attempts on an axis of time, a row each. */
export function Attempts({ action, timeline, attempts, chosen, isLinked = true, now }: AttemptsProps) {
  const lanes = lanesOf(timeline, attempts, now).filter(({ rows }) => rows.length > 0);
  if (
    !lanes.some(({ rows }) => rows.some(({ attempt, spans }) => attempt !== null || spans.at(-1)?.kind === "running"))
  )
    return null;
  const made = timeline.filter(({ event }) => event.type === "attempt").length;
  return (
    <section class="card lanes" aria-labelledby="attempts">
      <div class="lanes-head">
        <h2 id="attempts">Attempts</h2>
        {made > attempts.length ? (
          <p class="quiet small">{`The last ${ATTEMPTS_KEPT} of ${made}; the timeline has all.`}</p>
        ) : null}
      </div>
      {lanes.map((run) => (
        <RunLanes {...run} action={action} isOne={lanes.length === 1} chosen={chosen} isLinked={isLinked} />
      ))}
    </section>
  );
}

/** The periods before and during an attempt; `attempt` is null where none has ended yet. */
interface Lane {
  readonly attempt: number | null;
  readonly code: number | null;
  /** As measured; null: it goes on, or is not known. */
  readonly durationMs: number | null;
  readonly spans: readonly Span[];
}

interface Lanes extends Pick<RunSpans, "run" | "from" | "to"> {
  readonly rows: readonly Lane[];
}

/** Splits the periods of the runs into the rows of their newest attempts, and what goes on now. Pure. */
export function lanesOf(
  timeline: readonly TimelineEntry[],
  attempts: readonly PastAttempt[],
  now: Date,
): readonly Lanes[] {
  const isOver = isTerminal(timeline.findLast(({ event }) => !("delivered" in event))?.status ?? "failed");
  const runs = runsOf(timeline, now);
  return runs.map(({ run, to, spans }, at) => {
    const rows: Lane[] = [];
    let before: Span[] = [];
    for (const span of spans) {
      before.push(span);
      if (span.attempt === null) continue;
      const past = attempts.findLast((one) => one.run === run && one.attempt === span.attempt);
      if (past !== undefined) {
        const { response_code: code, duration_ms: durationMs } = past.made;
        rows.push({ attempt: span.attempt, code, durationMs, spans: before });
      }
      before = [];
    }
    if (at === runs.length - 1 && !isOver && before.length > 0)
      rows.push({ attempt: null, code: null, durationMs: null, spans: before });
    return { run, from: rows[0]?.spans[0]?.from ?? to, to, rows };
  });
}

interface RunLanesProps extends Lanes, Pick<AttemptsProps, "action" | "chosen"> {
  readonly isOne: boolean;
  readonly isLinked: boolean;
}

function RunLanes({ run, from, to, rows, action, isOne, chosen, isLinked }: RunLanesProps) {
  const wholeMs = to.getTime() - from.getTime();
  return (
    <div class="lanes-run">
      <p class="lanes-axis small quiet">
        <span>
          {isOne ? null : <b>{`Run ${run} · `}</b>}
          <Time at={from} />
        </span>
        <span>{duration(wholeMs)}</span>
      </p>
      <p class="visually-hidden">{spansText(rows.flatMap(({ spans }) => spans))}</p>
      <ol>
        {rows.map((row) => {
          const isChosen = chosen !== null && chosen.run === run && chosen.attempt === row.attempt;
          const lane = (
            <>
              <span class="lane-name">
                <Dot tone={toneOf(row)}>{row.attempt === null ? nameOfLast(row) : `Attempt ${row.attempt}`}</Dot>
              </span>
              <span class="lane-code">{row.attempt === null ? "" : (row.code ?? "–")}</span>
              <Bars row={row} from={from} wholeMs={wholeMs} />
              <span class="lane-took">{tookOf(row)}</span>
            </>
          );
          return (
            <li>
              {row.attempt === null || !isLinked ? (
                // What goes on now has no response yet.
                <span class="lane">{lane}</span>
              ) : (
                <a
                  class="lane"
                  href={`${actionPath(action.id)}${queryText({ run: run === action.run ? "" : run, attempt: row.attempt })}`}
                  aria-current={isChosen ? "true" : undefined}
                  {...LOADS_IN_PLACE}
                >
                  {lane}
                </a>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** A drawer, too, shows the response of another attempt in place. */
const LOADS_IN_PLACE = {
  "hx-boost": "true",
  "hx-target": "#action",
  "hx-select": "#action",
  "hx-swap": "morph:outerHTML",
  "hx-replace-url": "true",
} as const;

function toneOf({ spans }: Lane): Tone {
  const kind = spans.at(-1)?.kind;
  if (kind === "good" || kind === "bad") return kind;
  return kind === "approval" ? "wait" : "busy";
}

/** What goes on now. */
function nameOfLast({ spans }: Lane): string {
  const kind = spans.at(-1)?.kind;
  if (kind === "approval") return KIND_NAMES.approval;
  return kind === "running" ? "Sending" : "Waiting";
}

/** Of the attempt alone, or how long something waits already. */
function tookOf({ durationMs, spans }: Lane): string {
  const last = spans.at(-1);
  if (durationMs !== null) return duration(durationMs);
  return last === undefined ? "" : duration(last.to.getTime() - last.from.getTime());
}

const WIDTH = 1_000;

const HEIGHT = 16;

/** The smallest visible width: an attempt may take milliseconds and a wait an hour. */
const WIDTH_MIN = 8;

function Bars({
  row: { spans },
  from,
  wholeMs,
}: {
  readonly row: Lane;
  readonly from: Date;
  readonly wholeMs: number;
}) {
  const xOf = (at: Date) =>
    wholeMs === 0 ? 0 : Math.round(((at.getTime() - from.getTime()) / wholeMs) * (WIDTH - WIDTH_MIN));
  return (
    <svg class="lane-bars" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {spans.map((span) => {
        const x = xOf(span.from);
        const isThin = span.attempt === null && span.kind !== "running";
        return (
          <rect
            class={`span-${span.kind}`}
            x={x}
            y={isThin ? HEIGHT / 2 - 1 : 2}
            width={Math.max(xOf(span.to) - x, isThin ? 0 : WIDTH_MIN)}
            height={isThin ? 2 : HEIGHT - 4}
          >
            <title>{`${KIND_NAMES[span.kind]}: ${duration(span.to.getTime() - span.from.getTime())}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

interface AttemptResponseProps {
  readonly action: SeenAction;
  /** Masked for the reader; null: no attempt of this run has ended, but some of earlier ones. */
  readonly attempt: PastAttempt | null;
  /** Another attempt came after it. */
  readonly isOld: boolean;
}

/** What came back of one attempt. */
export function AttemptResponse({ action, attempt, isOld }: AttemptResponseProps) {
  if (attempt === null) {
    return (
      <section class="card" aria-labelledby="response">
        <h2 id="response">Response</h2>
        <p class="quiet">{`Run ${action.run} has no response yet. Choose an attempt of an earlier run to see its own.`}</p>
      </section>
    );
  }
  const { made, at, run, responseHeaders, responseBody, responseTruncated } = attempt;
  const { response_code: code, duration_ms: ms } = made;
  const isOther = run !== action.run;
  const headers = readHeaders(responseHeaders);
  const body = responseBody === null ? null : responseText(responseBody);
  return (
    <section class="card" aria-labelledby="response">
      <div class="card-head">
        <h2 id="response">
          Response
          <span class="aside">{`${isOther ? `Run ${run}, attempt` : "Attempt"} ${made.attempt}${made.late === undefined ? "" : ", late"}`}</span>
        </h2>
        <p class="response-facts">
          <Dot tone={made.error === null ? "good" : "bad"}>{code === null ? "No response" : String(code)}</Dot>
          {ms === null ? null : <span class="quiet">{duration(ms)}</span>}
          <span class="quiet">
            <Time at={at} />
          </span>
        </p>
      </div>
      {isOld ? <p class="quiet small">A later attempt followed this one.</p> : null}
      {made.error === null || (code !== null && made.error === statusSentence(code)) ? null : <p>{made.error}</p>}
      {made.location === null ? null : (
        <p>
          Redirects to <UntrustedText text={made.location} />
        </p>
      )}
      {headers.length === 0 ? null : (
        <details class="fold">
          <summary>{counted(headers.length, "header")}</summary>
          <Table
            caption="Headers of the response"
            heads={["Name", "Value"]}
            rows={headers.map((pair) => pair.map((text) => <UntrustedText text={text} />))}
          />
        </details>
      )}
      {body === null ? (
        <p class="quiet">{noBodyText(attempt, isOld)}</p>
      ) : (
        <ResponseBody kind={body.kind} text={body.text} json={responseBody} isCut={responseTruncated} />
      )}
    </section>
  );
}

/** Versions before kept only the last response. */
function noBodyText({ made, responseHeaders }: PastAttempt, isOld: boolean): string {
  if (made.response_code === null) return "No whole response arrived.";
  return isOld && responseHeaders === null ? "Its body was not kept." : "The response had no body.";
}

interface ResponseBodyProps {
  readonly kind: string;
  /** Null: bytes. */
  readonly text: string | null;
  readonly json: string | null;
  readonly isCut: boolean;
}

function ResponseBody({ kind, text, json, isCut }: ResponseBodyProps) {
  const tree = kind === "JSON" && json !== null ? shownTree(json) : null;
  const block = text === null ? null : <UntrustedBlock label="Body of the response" text={text} />;
  return (
    <div class="with-copy">
      <p class="quiet small">{`${kind}${isCut ? " · cut: the rest was not kept" : ""}`}</p>
      {text === null ? (
        <p class="quiet">Binary content is not shown.</p>
      ) : (
        <div data-copy="">
          {tree === null ? block : <div hidden>{block}</div>}
          {tree === null ? null : <JsonView label="Body of the response" tree={tree} />}
        </div>
      )}
    </div>
  );
}
