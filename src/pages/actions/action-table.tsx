/** @jsxImportSource hono/jsx */
import { sources } from "../../core/action.ts";
import { describeActor } from "../../core/roles.ts";
import type { PauseOf } from "../../core/pause.ts";
import { actionPath } from "../../ui/layout.tsx";
import { pathOf } from "../../core/search.ts";
import type { MaskedAction } from "../../receipts/seen-action.ts";
import { ListedStatus, Note } from "../frame/action-row.tsx";
import { BULK_OPERATIONS } from "../../core/bulk-job.ts";
import { callText } from "../../ui/request.tsx";
import { isSameDay, Dot, listedTime, untrusted } from "../../ui/parts.tsx";
import { duration } from "../../ui/text.ts";
import { maskText } from "../../receipts/masking.ts";

/** A row for each action. Its link opens the action's page; with script, on top of the list. */
export function actionTable(actions: readonly MaskedAction[], pauseOf: PauseOf, now: Date) {
  return (
    <table class="actions">
      <caption class="visually-hidden">Actions, newest first</caption>
      <thead>
        <tr>
          <th scope="col" class="select">
            <label>
              <input type="checkbox" aria-label="Select all on this page" data-selects="" />
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
      {/* `hx-boost` and not a click handler, so that a click with Ctrl or ⌘ still opens a tab. */}
      <tbody data-days="" hx-boost="true" hx-target="#drawer" hx-select="#action" hx-swap="innerHTML" hx-inherit="*">
        {actions.map((action, at) => (
          <>
            {isSameDay(action.createdAt, actions[at - 1]?.createdAt ?? now) ? null : (
              <tr class="day">
                <th scope="rowgroup" colspan={7}>
                  {listedTime(action.createdAt, "weekday")}
                </th>
              </tr>
            )}
            {actionRow(action, action.status === "pending" && pauseOf(action) !== null, now)}
          </>
        ))}
      </tbody>
    </table>
  );
}

function actionRow(action: MaskedAction, isPaused: boolean, now: Date) {
  const { id, method, host, createdAt, createdBy, status, viewer } = action;
  return (
    <tr id={id} data-can={BULK_OPERATIONS.find((one) => sources(one).includes(status))}>
      <td class="select">
        <label>
          <input
            type="checkbox"
            name="id"
            value={id}
            aria-label={`Select ${callText({ method, host: maskText(host, viewer) })}`}
          />
        </label>
      </td>
      <td class="when">{listedTime(createdAt, "clock")}</td>
      <td class="who">{untrusted(describeActor(createdBy).name)}</td>
      <td class="what">
        <a class="row-link" href={actionPath(id)}>
          {requestSummary(action)}
        </a>
      </td>
      <td class="status">{isPaused ? <Dot tone="wait">Paused</Dot> : <ListedStatus action={action} isQuiet />}</td>
      <td class="tries">{attemptsText(action)}</td>
      <td class="note">
        <Note action={action} now={now} />
      </td>
    </tr>
  );
}

/** The title and the call below it. A title is the requester's text, so it never appears without method, host and path. */
function requestSummary({ method, url, host, title, viewer }: MaskedAction) {
  const path = pathOf(url);
  // More than a wide screen shows. CSS cuts the rest.
  const shownPath = untrusted(path.slice(0, 240));
  const shownHost = untrusted(maskText(host, viewer));
  // The host says more than a lone slash.
  const isBare = title === null && path === "/";
  const called = isBare ? shownHost : shownPath;
  return (
    <>
      <span class="headline">{title === null ? called : untrusted(title)}</span>
      <small>
        <span class="method">{method}</span> {isBare ? null : shownHost}
        {title === null ? null : shownPath}
      </small>
    </>
  );
}

/** The number of attempts and the duration of the newest. A single attempt is usual, so it is shown faintly. */
function attemptsText({ status, attempts, retries, result }: MaskedAction) {
  if (attempts === 0) return <span class="faint">–</span>;
  const ms = result?.durationMs ?? null;
  return (
    <>
      <span class={attempts === 1 && status === "completed" ? "usual" : undefined}>{`${attempts} of ${retries}`}</span>{" "}
      <span class="took">{ms === null ? "–" : duration(ms)}</span>
    </>
  );
}
