/** @jsxImportSource hono/jsx */
import type { Grant } from "../../core/grant.ts";
import type { TimelineEntry } from "../../core/timeline.ts";
import { asSent, maskedTimeline } from "../../receipts/masked-action.ts";
import type { MaskedAction, SeenAction } from "../../receipts/seen-action.ts";
import { Icon } from "../../ui/icons.tsx";
import { actionPath } from "../../ui/layout.tsx";
import { LinkButton, Problem, time, actorName } from "../../ui/parts.tsx";
import { counted, duration, lastDecision } from "../../ui/text.ts";
import { ListedStatus, Note, requestTitle } from "../frame/action-row.tsx";
import type { RefusedDecision } from "./decision-form.tsx";
import { callLine } from "../../ui/request.tsx";
import { SETTINGS_PATHS } from "../frame/settings-frame.tsx";

/** A request that was decided, as the inbox shows it afterwards. */
export interface DecidedRequest {
  readonly action: MaskedAction;
  readonly timeline: readonly TimelineEntry[];
  /** The grant that came with the approval and is in force; null if there is none. */
  readonly grant: Grant | null;
  readonly receiptUrl: string;
}

/** What has become of it. */
export function decidedOutcome(action: SeenAction, now: Date) {
  const isPlain = action.status === "completed" && action.lateResult === null;
  const ms = isPlain ? (action.result?.durationMs ?? null) : null;
  return (
    <span class="chips outcome">
      <ListedStatus action={action} />
      <span class="quiet">{ms === null ? <Note action={action} now={now} /> : `in ${duration(ms)}`}</span>
    </span>
  );
}

/** The row of a decided request, above those that wait. */
export function decidedRow(decided: DecidedRequest, now: Date) {
  const action = asSent(decided.action);
  return (
    <li id={`decided-${action.id}`} class="inbox-decided">
      <a href={actionPath(action.id)}>{requestTitle(action)}</a>
      <p class="small">{decidedBy(decided)}</p>
      <p class="between">
        {decidedOutcome(action, now)}
        <a class="small" href={decided.receiptUrl}>
          View receipt
        </a>
      </p>
    </li>
  );
}

/** "Approved by ann@example.com in the console". */
function decidedBy(decided: DecidedRequest) {
  const { grant } = decided;
  const decision = decisionEvent(decided);
  if (decision === null) return null;
  return (
    <>
      {`${decidedWord(decided)} by `}
      {actorName(decision.actor)}
      {grant === null ? null : (
        <>
          {`, with ${counted(grant.calls, "more call")} like it until `}
          {time(grant.expiresAt)} · <a href={SETTINGS_PATHS.grants}>All grants</a>
        </>
      )}
    </>
  );
}

function decisionEvent({ action, timeline }: DecidedRequest) {
  return lastDecision(maskedTimeline(timeline, action));
}

/** "Approved": the last decision in a word. */
export function decidedWord(decided: DecidedRequest): string {
  return DECIDED[decisionEvent(decided)?.type ?? ""] ?? "Changed";
}

const DECIDED: Readonly<Record<string, string>> = {
  approved: "Approved",
  rejected: "Rejected",
  cancelled: "Cancelled",
  retried: "Retried",
};

/** A decided request beside the list. `nextPath`: the next one that waits; null if none does. */
export function decidedPane(
  decided: DecidedRequest,
  nextPath: string | null,
  refused: RefusedDecision | undefined,
  now: Date,
) {
  const action = asSent(decided.action);
  return (
    <div id={`of-${action.id}`} class="request">
      <div class="request-body decided">
        <Problem text={refused?.problem} />
        <h2>{requestTitle(action)}</h2>
        <p class="line">{callLine(action)}</p>
        <p>{decidedBy(decided)}</p>
        {decidedOutcome(action, now)}
        <div class="buttons">
          {nextPath === null ? null : (
            <LinkButton href={nextPath} look="main">
              Next request
              <Icon name="right" />
            </LinkButton>
          )}
          <LinkButton href={actionPath(action.id)}>View action</LinkButton>
          <LinkButton href={decided.receiptUrl}>View receipt</LinkButton>
        </div>
      </div>
    </div>
  );
}
