/** @jsxImportSource hono/jsx */
import { mayDo, type Role, viewerOf } from "../accounts/roles.ts";
import { type Action, isTerminal, nextRetryAt, runAtOf } from "../actions/action.ts";
import { operationsOf } from "../actions/changes.ts";
import type { Operation } from "../actions/status.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import { sentUrl } from "../outbound/target.ts";
import type { Pause } from "../pauses/pause.ts";
import { maskedEntry } from "../receipts/masked-action.ts";
import { callText, DecisionForm, DecisionSummary, HiddenValues, RevealForm, SecretsMasked } from "./decide.tsx";
import { Button, PostForm, ReasonField } from "./form.tsx";
import { actionPath, ACTIONS_PATH, Layout, listPath, render } from "./layout.tsx";
import { Card, type FactRows, Facts, Notice, PageHead, Problem, StatusDot, Time, UntrustedText } from "./parts.tsx";
import { PausedNotice } from "./pauses.tsx";
import { maskForDisplay, RequestView, ResponseView } from "./request.tsx";
import { Code } from "./snippets.tsx";
import { backoffText, patternsText } from "./hosts.tsx";
import { duration, lastDecision, type PageUser, summaryOf } from "./text.ts";
import { ActorName, History, RunChart } from "./timeline.tsx";

export interface ActionProps {
  readonly action: Action;
  readonly timeline: readonly TimelineEntry[];
  readonly user: PageUser;
  readonly role: Role;
  /** The history of a held action; null if it is not held. */
  readonly history: DecisionHistory | null;
  /** The pause that keeps it from being sent. */
  readonly pause: Pause | null;
  /** Path of the receipt page. */
  readonly receiptUrl: string;
  readonly now: Date;
  readonly baseUrl: string;
  /** What was wrong with the form before. The input is kept. */
  readonly problem?: string;
  readonly reason?: string;
}

/** The page of one action. `live.js` reloads the parts that can change. */
export function actionPage(props: ActionProps): string {
  const { timeline, user, role, now, receiptUrl } = props;
  const viewer = viewerOf(role);
  const action = maskForDisplay(props.action, viewer);
  // A held request is shown above the decision; otherwise the response comes first.
  const isHeld = action.status === "awaiting_approval";
  const isRejected = lastDecision(timeline)?.type === "rejected";
  const isPaused = action.status === "pending" && props.pause !== null;
  const request = (
    <RequestView action={action} isAsked={isHeld}>
      {mayDo(role, "approve") && !isHeld ? <RevealForm id={action.id} user={user} /> : null}
    </RequestView>
  );
  const answer = (
    <div id="answer" data-live="">
      <ResponseView action={action} />
    </div>
  );
  return render(
    <Layout title={callText(action)} nav="Actions" user={user} follows={action.id}>
      <PageHead title={callText(action)} back={{ href: ACTIONS_PATH, name: "All actions" }}>
        <RequesterSays action={action} />
        <div id="state" class="head" data-live="">
          <StatusDot status={action.status} />
          {isPaused ? null : <p>{summaryOf(action, isRejected)}</p>}
          {isPaused && props.pause !== null ? <PausedNotice pause={props.pause} /> : null}
        </div>
      </PageHead>
      {isHeld && mayDo(role, "approve") ? <HiddenValues action={action} user={user} /> : null}
      {props.history === null ? null : <DecisionSummary action={props.action} history={props.history} />}
      {isHeld ? request : answer}
      <div id="act" data-live="">
        <Operations {...props} action={action} isUnknown={hasUnknown(timeline)} isRejected={isRejected} />
      </div>
      <div id="drawn" data-live="">
        <RunChart timeline={timeline} now={now} />
      </div>
      <div id="told" data-live="">
        <History timeline={timeline.map((entry) => maskedEntry(entry, viewer))} />
      </div>
      {isHeld ? answer : request}
      <div id="facts" data-live="">
        <ActionFacts action={action} rows={rowsOf(action, receiptUrl, isHeld)} />
      </div>
      <Code action={props.action} baseUrl={props.baseUrl} />
    </Layout>,
  );
}

/** The title of an action, as what it is: somebody's words. */
export function RequesterSays({ action: { title } }: Pick<ActionProps, "action">) {
  if (title === null) return null;
  return (
    <p>
      <span class="quiet">Requester says:</span> <UntrustedText text={title} />
    </p>
  );
}

/** Whether an attempt has the outcome `unknown`. */
export function hasUnknown(timeline: readonly TimelineEntry[]): boolean {
  return timeline.some(({ event }) => event.type === "attempt" && event.outcome === "unknown");
}

/** A held action shows some of these facts above. */
function rowsOf(action: Action, receiptUrl: string, isHeld: boolean): FactRows {
  const { createdBy, keyId, dedupe, idempotencyKey, callback, notifyEmail, onUnknown, extras } = action;
  const [next, runAt, { expiresAt }] = [nextRetryAt(action), runAtOf(action), action];
  const untrusted = (text: string | null) => (text === null ? null : <UntrustedText text={text} />);
  return [
    ["Requested by", isHeld ? null : <ActorName actor={createdBy} />],
    [
      "Key",
      keyId === "" ? null : (
        <>
          <code>{keyId}</code> · <a href={listPath({ created_by: keyId })}>All actions of this key</a>
        </>
      ),
    ],
    // A held action has these above too.
    ["Reason", isHeld ? null : untrusted(extras.reason ?? null)],
    ...Object.entries(isHeld ? {} : (extras.metadata ?? {})).map(
      ([name, value]) => ["Requester notes", <UntrustedText text={`${name}: ${value}`} />] as const,
    ),
    ["Not before", runAt === null ? null : <Time at={runAt} />],
    ["Expires", expiresAt === null ? null : <Time at={expiresAt} />],
    ["Next attempt", next === null ? null : <Time at={next} />],
    ["Timeout", extras.timeoutMs === undefined ? null : `${duration(extras.timeoutMs)} for an attempt`],
    ["Delay between attempts", backoffText(extras.backoff)],
    ["Gives up on", extras.giveUpOn === undefined ? null : patternsText(extras.giveUpOn)],
    ["After an unknown outcome", onUnknown === "stop" ? "Stop" : null],
    ["Dedupe key", untrusted(dedupe)],
    ["Idempotency-Key of the create", untrusted(idempotencyKey)],
    ["Callback", isHeld ? null : untrusted(callback)],
    ["Approval email", untrusted(notifyEmail)],
    ["Receipt", <a href={receiptUrl}>Open the receipt</a>],
  ];
}

/** Facts of an action, and further `rows`. */
export function ActionFacts({ action, rows = [] }: { readonly action: Action; readonly rows?: FactRows }) {
  const { approve, approvedBy, approvedAt, startedAt, finishedAt, result, attempts, retries } = action;
  const ms = result?.durationMs ?? null;
  const at = (time: Date | null) => (time === null ? null : <Time at={time} />);
  return (
    <section class="card" aria-label="Facts">
      <Facts
        rows={[
          ["Action", <span class="untrusted">{action.id}</span>],
          ["Requested", <Time at={action.createdAt} />],
          ["Approval", approve ? null : "Not required"],
          ["Approved by", approvedBy === null ? null : <ActorName actor={approvedBy} />],
          ["Approved at", at(approvedAt)],
          ["First attempt", at(startedAt)],
          ["Ended", at(finishedAt)],
          ["Run", action.run === 1 ? null : String(action.run)],
          ["Attempts", `${attempts} of ${retries}`],
          ["Last attempt took", ms === null ? null : duration(ms)],
          ...rows,
        ]}
      />
    </section>
  );
}

interface OperationsProps extends Pick<ActionProps, "action" | "user" | "role" | "now" | "problem" | "reason"> {
  /** An attempt has the outcome `unknown`. */
  readonly isUnknown: boolean;
  /** A person rejected it, so the primary button must not send it. */
  readonly isRejected: boolean;
}

/** The forms for what a person can do with an action now. */
function Operations(props: OperationsProps) {
  const { action, role, problem, now } = props;
  const may = operationsOf(action, now).filter((operation) => mayDo(role, operation));
  const canResend = isTerminal(action.status) && mayDo(role, "create");
  if (may.length === 0 && !canResend && problem === undefined) return null;
  return (
    <Card id="decision" title={may.includes("approve") ? "Your decision" : "What you can do"}>
      <Problem text={problem} />
      <Forms {...props} may={may} />
      {canResend ? (
        <p>
          <a href={`${actionPath(action.id)}/again`}>Send again as a new action</a>{" "}
          <span class="quiet">with its own Idempotency-Key</span>
        </p>
      ) : null}
    </Card>
  );
}

function Forms({ may, ...props }: OperationsProps & { readonly may: readonly Operation[] }) {
  const { action, user, reason } = props;
  if (may.includes("approve")) {
    return <DecisionForm reason={reason} user={user} run={action.run} path={actionPath(action.id)} about={action} />;
  }
  if (may.includes("cancel")) return <CancelForm {...props} />;
  return may.includes("retry") ? <RetryForm {...props} /> : null;
}

function CancelForm({ action, user, role, now, reason }: OperationsProps) {
  const waits = action.status === "pending" && action.dueAt !== null && action.dueAt > now && mayDo(role, "retry");
  return (
    <PostForm user={user} action={actionPath(action.id)} fields={[["run", action.run]]}>
      <ReasonField value={reason} hint={REASON_HINT} />
      <div class="buttons">
        <Button
          name="decision"
          value="cancel"
          look="bad"
          hotkey={{ key: "x", question: `Cancel ${callText(action)}?` }}
        >
          Cancel the action
        </Button>
        {waits ? (
          <Button name="decision" value="send_now" look="plain">
            Send now
          </Button>
        ) : null}
      </div>
    </PostForm>
  );
}

const REASON_HINT = "Shown in the history and on the receipt.";

/** A retry needs approval again, so approvers can do both in one step. */
function RetryForm({ action, user, role, isUnknown, isRejected, reason }: OperationsProps) {
  const needsApproval = action.approve && mayDo(role, "approve");
  const only = (
    <Button
      name="decision"
      value="retry"
      look={needsApproval && !isRejected ? "plain" : "main"}
      hotkey={{ key: "r", question: `Retry ${callText(action)}?` }}
    >
      {needsApproval ? "Retry only" : "Retry"}
    </Button>
  );
  const andApprove = needsApproval ? (
    <Button name="decision" value="retry_and_approve" look={isRejected ? "plain" : "main"}>
      Retry and approve
    </Button>
  ) : null;
  return (
    <PostForm user={user} action={actionPath(action.id)}>
      <p>
        A retry starts a new run of the same action, with the same Idempotency-Key.
        {action.approve ? " It needs approval again before anything is sent." : ""}
      </p>
      {isUnknown ? (
        <Notice tone="wait">
          The outcome of an attempt is unknown: the target may have received it. If the target does not check the
          Idempotency-Key, it may process the request twice.
        </Notice>
      ) : null}
      <ReasonField value={reason} hint={REASON_HINT} />
      <div class="buttons">{isRejected ? [only, andApprove] : [andApprove, only]}</div>
    </PostForm>
  );
}

/** Request and response with secrets, in the response to a form. */
export function revealedPage({ action, user }: { readonly action: Action; readonly user: PageUser }): string {
  const isHeld = action.status === "awaiting_approval";
  return render(
    <Layout title={`Secrets of ${callText(action)}`} nav="Actions" user={user}>
      <PageHead title={callText(action)} back={{ href: actionPath(action.id), name: "Hide secrets" }} />
      <Notice tone="wait">Secrets are shown in full. They are hidden again when you leave this page.</Notice>
      <RequestView action={{ ...action, url: sentUrl(action.url) }} tellsCallback={isHeld} isWhole={isHeld} />
      <ResponseView action={action} />
      {isHeld ? (
        <Card id="decision" title="Your decision">
          <DecisionForm user={user} run={action.run} path={actionPath(action.id)} about={action} />
        </Card>
      ) : null}
    </Layout>,
  );
}

interface ResendPageProps {
  readonly action: Action;
  readonly user: PageUser;
  /** An attempt has the outcome `unknown`, so the person has to confirm. */
  readonly isUnknown: boolean;
  readonly problem?: string;
}

/** Asks for confirmation before an action is created anew. */
export function resendPage({ user, isUnknown, problem, ...props }: ResendPageProps): string {
  const action = maskForDisplay(props.action, "decider");
  return render(
    <Layout title={`Send again: ${callText(action)}`} nav="Actions" user={user}>
      <PageHead
        title="Send this again as a new action?"
        back={{ href: actionPath(action.id), name: "Back to the action" }}
      >
        <p>
          It gets its own ID and Idempotency-Key, so the target treats it as a new request.
          {action.approve ? " It is held for approval, like the original." : " It is sent immediately."}
        </p>
      </PageHead>
      <RequestView action={action} tellsCallback />
      <PostForm user={user} action={`${actionPath(action.id)}/again`} class="card">
        <Problem text={problem} />
        {isUnknown ? (
          <>
            <Notice tone="wait">
              The outcome of an attempt is unknown: the target may already have processed this request.
            </Notice>
            <label class="check">
              <input type="checkbox" name="sure" value="yes" required />
              <span>Send it even though the target may have received it</span>
            </label>
          </>
        ) : null}
        <div class="buttons">
          <Button>Send as a new action</Button>
        </div>
      </PostForm>
      <SecretsMasked />
    </Layout>,
  );
}
