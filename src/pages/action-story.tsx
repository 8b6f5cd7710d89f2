/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { mayDo, type Role } from "../core/roles.ts";
import { awaitsRunAt, isExpired, nextRetryAt, isLateSuccess } from "../core/action.ts";
import { mayBeSentBefore } from "../core/changes.ts";
import { type ErrorKind, errorKindOf } from "../core/outcome.ts";
import { firstAction } from "../api/first-action.ts";
import { latestDecision, type TimelineEntry } from "../core/timeline.ts";
import { sentence, time, until, untrustedLines, untrusted } from "../ui/parts.tsx";
import { counted, duration, inThisRun, lateText } from "../ui/text.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { reasonSaid } from "./action-row.tsx";
import { actorName } from "./timeline.tsx";

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
  const codes = codesOf(action, timeline);
  const [first = null] = codes;
  const isSame = first !== null && codes.length === attempts && codes.every((code) => code === first);
  const what = isSame
    ? `The target answered ${first}${times(attempts)}.`
    : `${result?.lastError ?? "It could not be delivered."}${attempts > 1 ? ` It failed after ${counted(attempts, "attempt")}.` : ""}`;
  const kind = (result === null ? null : errorKindOf(result)) ?? "other";
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
function codesOf({ run }: SeenAction, timeline: readonly TimelineEntry[]): readonly (number | null)[] {
  return timeline.flatMap((entry) =>
    entry.run === run && entry.event.type === "attempt" ? [entry.event.response_code] : [],
  );
}

function times(count: number): string {
  if (count === 1) return "";
  return [" twice", " three times", " four times", " five times"][count - 2] ?? ` ${count} times`;
}

/** Codes after which the same request may succeed. */
const SAME_REQUEST_CODES: ReadonlySet<number> = new Set([408, 409, 429]);

/** Whether the same request would probably fail again, so that it needs an edit before it is sent again. */
export function needsEdit({ status, result }: SeenAction): boolean {
  if (status !== "failed" || result === null) return false;
  const kind = errorKindOf(result);
  if (kind !== "target") return kind === "dns" || kind === "not_allowed";
  return refusesSame(result.responseCode ?? 0);
}

/** Whether a target that answered with this code would refuse the same request again. */
export function refusesSame(code: number): boolean {
  return code >= 300 && code < 500 && !SAME_REQUEST_CODES.has(code);
}

/** Advice on a kind of failure. Contains only our own words. */
export function adviceOn(kind: ErrorKind, code: number | null): string {
  return kind === "target" ? adviceOnCode(code ?? 0) : ADVICE[kind];
}

const ADVICE: Readonly<Record<Exclude<ErrorKind, "target">, string>> = {
  timed_out: "The target may have received it: check there first, then retry.",
  closed: "The target may have received it: check there first, then retry.",
  interrupted: "The target may have received it: check there first, then retry.",
  refused: "Check that the target runs, then retry.",
  unreachable: "Check that the target can be reached, then retry.",
  dns: "Check the host name in the URL, then edit and resend.",
  certificate: "Correct the target’s certificate, or let this server trust who signed it, then retry.",
  not_allowed: "Choose a target with a public address, or allow this one in the settings of the server.",
  other: "See the timeline for what happened, then edit and resend.",
};

/** Advice on the test of the first steps, which calls this service: many networks don't allow that from inside. */
function adviceOnOwn(kind: ErrorKind): string {
  const remedy =
    kind === "certificate"
      ? "give it a certificate that the server trusts (NODE_EXTRA_CA_CERTS names your own authority)"
      : "let the server reach it (DNS, firewall, proxy)";
  return `This test calls Outgate at its own address, BASE_URL: ${remedy}, or test with a URL of your own. Calls to other targets need neither.`;
}

const ADVICE_ON_CODE: Readonly<Record<number, string>> = {
  400: "Fix the request, then resend it.",
  401: "Check the credentials in its headers, then edit and resend.",
  403: "Check that the credentials in its headers may do this, then edit and resend.",
  404: "Check the path and the ids in the URL, then edit and resend.",
  405: "Check the method, then edit and resend.",
  408: "The target took too long: check there whether it was received, then retry.",
  409: "It conflicts with the state of the target: check there first.",
  410: "The target no longer has this resource: check the URL, then edit and resend.",
  413: "Send a smaller body.",
  415: "Check its Content-Type, then edit and resend.",
  422: "Fix the fields that the target names, then edit and resend.",
  429: "The target limits its callers: retry it later.",
};

function adviceOnCode(code: number): string {
  const known = ADVICE_ON_CODE[code];
  if (known !== undefined) return known;
  if (code >= 500) return "The fault is the target’s: retry when it works again.";
  return code >= 300 && code < 400
    ? "Edit the URL to where it redirects, then resend."
    : "Fix the request, then resend it.";
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
    return `Nobody decided in time, so it was cancelled. ${sent}${again}`;
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
