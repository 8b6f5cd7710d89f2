/** @jsxImportSource hono/jsx */
import { awaitsRunAt, sources } from "../core/action.ts";
import { BULK_OPERATIONS } from "../core/bulk-job.ts";
import type { PauseOf } from "../core/pause.ts";
import { type ActionRow, actionRow, type RowNote } from "./action-row.ts";
import { actionPath } from "../ui/layout.tsx";
import { Dot, StatusDot, statusLabel, TimeOfDay, UntilTime, UntrustedText, WeekDay } from "../ui/parts.tsx";
import { duration } from "../ui/text.ts";
import type { MaskedAction } from "../receipts/seen-action.ts";

interface ActionTableProps {
  /** Newest first, each made by `forRow`. */
  readonly actions: readonly MaskedAction[];
  readonly pauseOf: PauseOf;
  readonly now: Date;
}

/** A row for each action; its link opens the action's page, over the list where there is script. */
export function ActionTable({ actions, pauseOf, now }: ActionTableProps) {
  return (
    <table class="actions">
      <caption class="visually-hidden">Actions, newest first</caption>
      <thead>
        <tr>
          <th scope="col" class="select">
            <label>
              <input type="checkbox" aria-label="Select all on this page" data-selects="" hidden />
            </label>
          </th>
          <th scope="col">Time</th>
          <th scope="col">Agent</th>
          <th scope="col">Action</th>
          <th scope="col">Status</th>
          <th scope="col" class="tries">
            <span>Attempts</span> <span>Duration</span>
          </th>
          <th scope="col">Next / error</th>
        </tr>
      </thead>
      {/* Boosted, and not loaded by click: a click with Ctrl or ⌘ still opens a tab. */}
      <tbody data-days="" hx-boost="true" hx-target="#drawer" hx-select="#action" hx-swap="innerHTML" hx-inherit="*">
        {actions.map((action, at) => (
          <>
            {dayOf(action.createdAt) === dayOf(actions[at - 1]?.createdAt ?? now) ? null : (
              <tr class="day">
                <th scope="rowgroup" colspan={COLUMNS}>
                  <WeekDay at={action.createdAt} />
                </th>
              </tr>
            )}
            <Row
              row={actionRow(action)}
              isPaused={action.status === "pending" && pauseOf(action) !== null}
              isScheduled={awaitsRunAt(action)}
              now={now}
            />
          </>
        ))}
      </tbody>
    </table>
  );
}

const COLUMNS = 7;

/** In UTC. The script divides the rows by the reader's days. */
function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

interface RowProps {
  readonly row: ActionRow;
  readonly isPaused: boolean;
  readonly isScheduled: boolean;
  readonly now: Date;
}

function Row({ row, isPaused, isScheduled, now }: RowProps) {
  const { id, createdAt, agent, status, note } = row;
  const operation = BULK_OPERATIONS.find((one) => sources(one).includes(status));
  return (
    <tr id={id} data-can={operation}>
      <td class="select">
        <label>
          <input type="checkbox" name="id" value={id} aria-label="Select" />
        </label>
      </td>
      <td class="when">
        <TimeOfDay at={createdAt} />
      </td>
      <td class="who">
        <UntrustedText text={agent} />
      </td>
      <td class="what">
        <a class="row-link" href={actionPath(id)}>
          <What {...row} />
        </a>
      </td>
      <td class="status">
        <RowStatus row={row} isPaused={isPaused} isScheduled={isScheduled} />
      </td>
      <td class="tries">
        <Tries row={row} />
      </td>
      <td class="note">
        <Note note={note} now={now} />
      </td>
    </tr>
  );
}

/** What is asked for, and below it the call. A title is the requester's: it never stands without method, host and path. */
function What(row: ActionRow) {
  const { method, host, title, path } = row;
  return (
    <>
      <span class="headline">
        <Headline {...row} />
      </span>
      <small>
        <span class="method">{method}</span> {isBare(row) ? null : <UntrustedText text={host} />}
        {title === null ? null : <Path text={path} />}
      </small>
    </>
  );
}

function Headline(row: ActionRow) {
  if (row.title === null) return isBare(row) ? <UntrustedText text={row.host} /> : <Path text={row.path} />;
  return <UntrustedText text={row.title} />;
}

/** A host says more than a lone slash. */
function isBare({ title, path }: ActionRow): boolean {
  return title === null && path === "/";
}

function Path({ text }: { readonly text: string }) {
  return <UntrustedText text={text.slice(0, PATH_CHARS)} />;
}

/** Attempts and the duration of the newest. That the first one was enough is usual, and stays in the background. */
function Tries({ row: { status, attempts, retries, durationMs } }: Pick<RowProps, "row">) {
  if (attempts === 0) return <span class="faint">–</span>;
  return (
    <>
      <span class={attempts === 1 && status === "completed" ? "usual" : undefined}>{`${attempts} of ${retries}`}</span>{" "}
      <span class="took">{durationMs === null ? "–" : duration(durationMs)}</span>
    </>
  );
}

/** More than a wide screen shows; CSS cuts the rest. */
const PATH_CHARS = 240;

/** What needs nobody has no colour, so that what does stands out. */
function RowStatus({ row: { status, code, attempts }, isPaused, isScheduled }: Omit<RowProps, "now">) {
  if (isPaused) return <Dot tone="wait">Paused</Dot>;
  if (isScheduled) return <Dot tone="still">Scheduled</Dot>;
  if (status === "pending" && attempts > 0)
    return <Dot tone="busy">{`Retrying${code === null ? "" : ` ${code}`}`}</Dot>;
  if (status === "failed" || status === "awaiting_approval") return <StatusDot status={status} code={code} />;
  return <Dot tone="still">{`${statusLabel(status)}${code === null || status === "active" ? "" : ` ${code}`}`}</Dot>;
}

const NOTE_WORDS = { retries: "again", starts: "starts", expires: "expires" } as const;

function Note({ note, now }: { readonly note: RowNote; readonly now: Date }) {
  if (note.kind === "none") return null;
  if (note.kind === "error") return <UntrustedText text={note.text} />;
  return (
    <>
      {NOTE_WORDS[note.kind]} <UntilTime at={note.at} now={now} />
    </>
  );
}
