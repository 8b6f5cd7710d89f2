/** @jsxImportSource hono/jsx */
import { awaitsRunAt, isTerminal, sources } from "../core/action.ts";
import { BULK_OPERATIONS } from "../core/bulk-job.ts";
import type { PauseOf } from "../core/pause.ts";
import { describeActor } from "../core/roles.ts";
import { pathOf } from "../core/search.ts";
import { maskText } from "../receipts/masking.ts";
import type { MaskedAction, SeenAction } from "../receipts/seen-action.ts";
import { actionPath } from "../ui/layout.tsx";
import { Dot, ListedTime, StatusDot, statusLabel, UntilTime, UntrustedText } from "../ui/parts.tsx";
import { duration } from "../ui/text.ts";
import { noteOf } from "./action-row.ts";

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
                <th scope="rowgroup" colspan={7}>
                  <ListedTime at={action.createdAt} as="weekday" />
                </th>
              </tr>
            )}
            <Row action={action} isPaused={action.status === "pending" && pauseOf(action) !== null} now={now} />
          </>
        ))}
      </tbody>
    </table>
  );
}

/** In UTC. The script divides the rows by the reader's days. */
function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

interface RowProps {
  readonly action: MaskedAction;
}

function Row({ action, isPaused, now }: RowProps & { readonly isPaused: boolean; readonly now: Date }) {
  const { id, createdAt, createdBy, status } = action;
  return (
    <tr id={id} data-can={BULK_OPERATIONS.find((one) => sources(one).includes(status))}>
      <td class="select">
        <label>
          <input type="checkbox" name="id" value={id} aria-label="Select" />
        </label>
      </td>
      <td class="when">
        <ListedTime at={createdAt} as="clock" />
      </td>
      <td class="who">
        <UntrustedText text={describeActor(createdBy).name} />
      </td>
      <td class="what">
        <a class="row-link" href={actionPath(id)}>
          <What action={action} />
        </a>
      </td>
      <td class="status">{isPaused ? <Dot tone="wait">Paused</Dot> : <ActionStatus action={action} isQuiet />}</td>
      <td class="tries">
        <Tries action={action} />
      </td>
      <td class="note">
        <Note action={action} now={now} />
      </td>
    </tr>
  );
}

/** What is asked for, and below it the call. A title is the requester's: it never stands without method, host and path. */
function What({ action: { method, url, host, title, viewer } }: RowProps) {
  const path = pathOf(url);
  // More than a wide screen shows; CSS cuts the rest.
  const shownPath = <UntrustedText text={path.slice(0, 240)} />;
  const shownHost = <UntrustedText text={maskText(host, viewer)} />;
  // A host says more than a lone slash.
  const isBare = title === null && path === "/";
  const called = isBare ? shownHost : shownPath;
  return (
    <>
      <span class="headline">{title === null ? called : <UntrustedText text={title} />}</span>
      <small>
        <span class="method">{method}</span> {isBare ? null : shownHost}
        {title === null ? null : shownPath}
      </small>
    </>
  );
}

/** Attempts and the duration of the newest. That the first one was enough is usual, and stays in the background. */
function Tries({ action: { status, attempts, retries, result } }: RowProps) {
  if (attempts === 0) return <span class="faint">–</span>;
  const ms = result?.durationMs ?? null;
  return (
    <>
      <span class={attempts === 1 && status === "completed" ? "usual" : undefined}>{`${attempts} of ${retries}`}</span>{" "}
      <span class="took">{ms === null ? "–" : duration(ms)}</span>
    </>
  );
}

interface ActionStatusProps {
  readonly action: SeenAction;
  /** What needs nobody has no colour, so that in a list stands out what does. */
  readonly isQuiet?: boolean;
}

/** The status of an action that is not paused. The code of one that is sent again is that of an earlier attempt. */
export function ActionStatus({ action, isQuiet = false }: ActionStatusProps) {
  const { status, attempts, result } = action;
  const code = result?.responseCode ?? null;
  if (awaitsRunAt(action)) return <Dot tone="still">Scheduled</Dot>;
  if (status === "pending" && attempts > 0)
    return <Dot tone="busy">{`Retrying${code === null ? "" : ` ${code}`}`}</Dot>;
  const shown = isTerminal(status) ? code : null;
  if (!isQuiet || status === "failed" || status === "awaiting_approval")
    return <StatusDot status={status} code={shown} />;
  return <Dot tone="still">{`${statusLabel(status)}${shown === null ? "" : ` ${shown}`}`}</Dot>;
}

const NOTE_WORDS = { retries: "again", starts: "starts", expires: "expires" } as const;

function Note({ action, now }: RowProps & { readonly now: Date }) {
  const note = noteOf(action);
  if (note.kind === "none") return null;
  if (note.kind === "error") return <UntrustedText text={note.text} />;
  return (
    <>
      {NOTE_WORDS[note.kind]} <UntilTime at={note.at} now={now} />
    </>
  );
}
