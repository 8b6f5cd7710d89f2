/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { mayDo, type Role } from "../../core/roles.ts";
import { awaitsRunAt, isExpired, nextRetryAt, isLateSuccess } from "../../core/action.ts";
import { mayBeSentBefore } from "../../core/changes.ts";
import { errorKind } from "../../core/outcome.ts";
import { firstAction } from "../../api/code-samples.ts";
import { latestDecision, type TimelineEntry } from "../../core/timeline.ts";
import { sentence, time, until, untrustedLines, untrusted, actorName } from "../../ui/parts.tsx";
import { counted, duration, inThisRun, lateText } from "../../ui/text.ts";
import type { SeenAction } from "../../receipts/seen-action.ts";
import { reasonSaid } from "../frame/action-row.tsx";
import { adviceOn, adviceOnCode, adviceOnOwn } from "./advice.ts";

interface StoryProps {
  readonly action: SeenAction;
  /** Masked, oldest first. */
  readonly timeline: readonly TimelineEntry[];
  readonly role: Role;
  readonly now: Date;
  /** Left out on receipts, which give no advice. */
  readonly baseUrl?: string;
}

/** Says in a sentence or two what happened to an action and what to do next. */
export function Story(props: StoryProps) {
  const { action } = props;
  const text = STORIES[action.status](props);
  const message = reasonSaid(action);
  return (
    <>
      <p class="story">{text}</p>
      {message === null ? null : <p class="story-message">{untrusted(message)}</p>}
    </>
  );
}

const STORIES: Readonly<Record<SeenAction["status"], (props: StoryProps) => Child>> = {
  awaiting_approval: heldText,
  pending: pendingText,
  active: ({ action: { attempts, retries } }) => `Attempt ${attempts} of ${retries} is being sent.`,
  completed: completedText,
  failed: failedText,
  cancelled: cancelledText,
};

function heldText({ action, role, now }: StoryProps): Child {
  if (isExpired(action, now)) return "It expired before anyone decided. It will be cancelled in a moment.";
  const what = `${earlierRuns(action, "It has not been sent")} ${
    mayDo(role, "approve") ? "Review the request, then approve or reject it." : "An approver has to decide."
  }`;
  if (action.expiresAt === null) return what;
  return sentence`${what} It expires ${until(action.expiresAt, now)}.`;
}

function pendingText({ action, role, now }: StoryProps): Child {
  const { attempts, retries, dueAt, result } = action;
  const next = nextRetryAt(action);
  const bringForward = mayDo(role, "retry") ? " Send it now, or cancel it." : "";
  if (attempts === 0) {
    if (!awaitsRunAt(action) || dueAt === null) return earlierRuns(action, "It is about to be sent");
    return (
      <>
        It has not been sent. It starts {until(dueAt, now)}, at {time(dueAt)}.{bringForward}
      </>
    );
  }
  const failed = `Attempt ${attempts} of ${retries} failed. ${result?.lastError ?? ""}`;
  if (next === null || next <= now) return `${failed} The next attempt is about to start.`;
  return sentence`${failed} The next attempt follows ${until(next, now)}.${bringForward}`;
}

function completedText({ action: { attempts, result } }: StoryProps): Child {
  const code = result?.responseCode ?? null;
  const took = result?.durationMs ?? null;
  const after = attempts > 1 ? `, on attempt ${attempts}` : "";
  const answer = code === null ? "The target answered with success" : `The target answered ${code}`;
  const within = took === null ? "" : ` in ${duration(took)}`;
  return `${answer}${within}${after}.`;
}

function failedText({ action, timeline, role, baseUrl }: StoryProps): Child {
  const { result, attempts } = action;
  const codes = responseCodes(action, timeline);
  const [first = null] = codes;
  const isSame = first !== null && codes.length === attempts && codes.every((code) => code === first);
  const what = isSame
    ? `The target answered ${first}${times(attempts)}.`
    : `${result?.lastError ?? "It could not be delivered."}${attempts > 1 ? ` It failed after ${counted(attempts, "attempt")}.` : ""}`;
  const kind = (result === null ? null : errorKind(result)) ?? "other";
  const isOwn = baseUrl !== undefined && result?.responseCode === null && action.url === firstAction(baseUrl).url;
  const advice = isOwn ? adviceOnOwn(kind) : adviceOn(kind, result?.responseCode ?? null);
  const next = result === null || !mayDo(role, "retry") ? "" : ` ${advice}`;
  return lateStory(action) ?? `${what} It will not be retried.${next}`;
}

/** The story if the target answered late; null if it did not. */
function lateStory(action: SeenAction): string | null {
  const { run, lateResult } = action;
  if (lateResult === null || (lateResult.run !== run && !isLateSuccess(lateResult))) return null;
  const advice = isLateSuccess(lateResult)
    ? "It has done what was asked: a retry would send it again."
    : adviceOnCode(lateResult.responseCode);
  return `${lateText(action) ?? ""} ${advice}`;
}

/** The response code of each attempt in the run; null for no response. */
function responseCodes({ run }: SeenAction, timeline: readonly TimelineEntry[]): readonly (number | null)[] {
  return timeline.flatMap((entry) =>
    entry.run === run && entry.event.type === "attempt" ? [entry.event.response_code] : [],
  );
}

function times(count: number): string {
  if (count === 1) return "";
  return [" twice", " three times", " four times", " five times"][count - 2] ?? ` ${count} times`;
}

function cancelledText({ action, timeline, role }: StoryProps): Child {
  const decision = latestDecision(action, timeline);
  const sent =
    action.attempts > 0
      ? `It was stopped after ${counted(action.attempts, "attempt")}.`
      : earlierRuns(action, "It was not sent");
  const late = lateStory(action);
  if (late !== null) return late;
  const again = mayDo(role, "retry") ? " Retry it, or edit and resend it." : "";
  if (decision === null) return `It expired. ${sent}`;
  if (decision.decision === "refused") {
    return (
      <>
        {untrusted(decision.reason ?? "A rule refuses this call.")} {sent}
      </>
    );
  }
  if (decision.decision === "unanswered" || decision.by === null) {
    return `No one decided in time, so it was cancelled. ${sent}${again}`;
  }
  return (
    <>
      {decision.decision === "rejected" ? "Rejected" : "Cancelled"} by {actorName(decision.by)}
      {decision.reason === null ? "." : ": "}
      {decision.reason === null ? null : <q>{untrustedLines(decision.reason)}</q>} {sent}
      {again}
    </>
  );
}

/** Limits a statement to this run if it may be false for earlier ones. */
function earlierRuns(action: SeenAction, what: string): string {
  return `${what}${mayBeSentBefore(action) ? inThisRun(action.run) : ""}.`;
}
