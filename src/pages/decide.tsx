/** @jsxImportSource hono/jsx */
import { type Action, isTerminal } from "../actions/action.ts";
import { REASON_CHARS_MAX } from "../config/limits.ts";
import { mayDo, type Role } from "../accounts/roles.ts";
import { type Operation, operationsIn, type Decision } from "../actions/status.ts";
import { visibleText } from "../receipts/visible-text.ts";
import { Button, Field, FormToken } from "./form.tsx";
import { actionPath, Layout, render } from "./layout.tsx";
import { Notice, Time } from "./parts.tsx";
import { type PageUser, waitingWords } from "./words.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import { WhatIsAsked, HiddenValues } from "./facts.tsx";
import { RequestView, shown } from "./request.tsx";

export interface ActProps {
  readonly action: Action;
  readonly user: PageUser;
  readonly role: Role;
  /** An attempt has the outcome `unknown`. */
  readonly isUnknown: boolean;
  /** A person rejected it, so the primary button must not send it. */
  readonly isRejected: boolean;
  readonly problem?: string;
  readonly reason?: string;
}

/** The forms for what a person can do with an action now. */
export function Act(props: ActProps) {
  const { action, role, problem } = props;
  const may = operationsIn(action.status).filter((operation) => mayDo(role, operation));
  const isAgain = isTerminal(action.status) && mayDo(role, "create");
  if (may.length === 0 && !isAgain && problem === undefined) return null;
  return (
    <section class="card" aria-labelledby="decision">
      <h2 id="decision">{may.includes("approve") ? "Your decision" : "What you can do"}</h2>
      {problem === undefined ? null : <Notice tone="bad">{problem}</Notice>}
      <Forms {...props} may={may} />
      {isAgain ? (
        <p>
          <a href={`${actionPath(action.id)}/again`}>Send again as a new action</a>{" "}
          <span class="quiet">with its own Idempotency-Key</span>
        </p>
      ) : null}
    </section>
  );
}

function Forms({ may, ...props }: ActProps & { readonly may: readonly Operation[] }) {
  const { action, user, reason } = props;
  if (may.includes("approve")) {
    return <DecisionForm reason={reason} user={user} run={action.run} path={actionPath(action.id)} about={action} />;
  }
  if (may.includes("cancel")) return <CancelForm {...props} />;
  return may.includes("retry") ? <RetryForm {...props} /> : null;
}

function CancelForm({ action, user, reason = "" }: ActProps) {
  const question = `Cancel ${callOf(action)}?`;
  return (
    <form method="post" action={actionPath(action.id)}>
      <FormToken user={user} />
      <input type="hidden" name="run" value={action.run} />
      <ReasonField reason={reason} />
      <div class="buttons">
        <Button name="decision" value="cancel" look="bad" hotkey={{ key: "x", question }}>
          Cancel the action
        </Button>
      </div>
    </form>
  );
}

/** A retry needs approval again, so approvers can do both in one step. */
function RetryForm({ action, user, role, isUnknown, isRejected, reason = "" }: ActProps) {
  const question = `Retry ${callOf(action)}?`;
  const needsApproval = action.approve && mayDo(role, "approve");
  const only = (
    <Button
      name="decision"
      value="retry"
      look={needsApproval && !isRejected ? "plain" : "main"}
      hotkey={{ key: "r", question }}
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
    <form method="post" action={actionPath(action.id)}>
      <FormToken user={user} />
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
      <ReasonField reason={reason} />
      <div class="buttons">{isRejected ? [only, andApprove] : [andApprove, only]}</div>
    </form>
  );
}

function ReasonField({ reason }: { readonly reason: string }) {
  return (
    <Field
      name="reason"
      label="Reason"
      type="lines"
      value={reason}
      hint="Optional. Shown in the history and on the receipt."
      charsMax={REASON_CHARS_MAX}
    />
  );
}

function callOf({ method, host }: Action): string {
  return `${method} ${visibleText(host)}`;
}

export interface HeldProps {
  readonly action: Action;
  readonly user: PageUser;
  readonly history: DecisionHistory;
  /** What was wrong with the form before. The input is kept. */
  readonly problem?: string;
  readonly reason?: string;
}

/** One held request, with secrets masked, and the form to decide. */
export function heldPage({ user, history, problem, reason, ...props }: HeldProps): string {
  const action = shown(props.action, "decider");
  return render(
    <Layout title={`Approve ${action.method} ${action.host}?`} place="Approvals" user={user} follows={action.id}>
      <div class="head">
        <p class="small on-screen">
          <a href="/approvals">All approvals</a>
        </p>
        <h1>Approve this request?</h1>
        <p>{waitingWords(action)}</p>
        <HiddenValues action={action} user={user} />
      </div>
      <WhatIsAsked action={props.action} history={history} />
      <RequestView action={action} isAsked />
      <section class="card" aria-labelledby="decision">
        <h2 id="decision">Your decision</h2>
        {problem === undefined ? null : <Notice tone="bad">{problem}</Notice>}
        <DecisionForm reason={reason} user={user} run={action.run} about={action} />
      </section>
      <p class="foot">Secrets are masked as ••••. The request is sent with the real values.</p>
    </Layout>,
  );
}

export interface ConfirmProps {
  readonly action: Action;
  readonly expiresAt: Date;
  readonly history: DecisionHistory;
  /** Which link of the mail was opened. */
  readonly decision: Decision;
  /** What was wrong with the form before. The input is kept. */
  readonly problem?: string;
  readonly reason?: string;
}

/** The page of an approval link: the masked request and two buttons, the one of the link first. */
export function confirmPage(props: ConfirmProps): string {
  const { expiresAt, decision } = props;
  const action = shown(props.action, "decider");
  const verb = decision === "approve" ? "Approve" : "Reject";
  return render(
    <Layout title={`${verb} a request?`} isAlone>
      <div class="head">
        <p class="quiet small">Approval</p>
        <h1>{verb} this request?</h1>
        <p>{waitingWords(action)}</p>
        <HiddenValues action={action} />
      </div>
      <WhatIsAsked action={props.action} history={props.history} rows={[["Link expires", <Time at={expiresAt} />]]} />
      <RequestView action={action} isAsked />
      <section class="card" aria-labelledby="decision">
        <h2 id="decision">Your decision</h2>
        {props.problem === undefined ? null : <Notice tone="bad">{props.problem}</Notice>}
        <DecisionForm reason={props.reason} main={decision} />
      </section>
      <p class="foot">Secrets are masked as ••••. The request is sent with the real values.</p>
    </Layout>,
  );
}

export interface DecisionFormProps {
  readonly reason?: string | undefined;
  /** The first, primary button; approve by default. */
  readonly main?: Decision;
  /** Left out on the page of an approval link, which has no session. */
  readonly user?: PageUser;
  /** The run that the page shows. A link contains its run. */
  readonly run?: number;
  /** Where the form is sent; the same page by default. */
  readonly path?: string;
  /** What of the request is not shown above the buttons; left out: all of it is. */
  readonly unread?: string | null | undefined;
  /** The action, for keyboard shortcuts and unique IDs on pages with several forms. */
  readonly about?: Pick<Action, "id" | "method" | "host">;
}

/** The form with both buttons and a reason. */
export function DecisionForm(props: DecisionFormProps) {
  const { reason = "", main = "approve", user, run, path, unread = null, about } = props;
  const call = about === undefined ? "" : `${about.method} ${visibleText(about.host)}`;
  const hotkeyOf = (key: "a" | "x", verb: string) =>
    about === undefined ? {} : { hotkey: { key, question: `${verb} ${call}?` } };
  const approve = (
    <Button name="decision" value="approve" look={main === "approve" ? "main" : "plain"} {...hotkeyOf("a", "Approve")}>
      {unread === null ? "Approve" : `Approve, with ${unread} not shown`}
    </Button>
  );
  const reject = (
    <Button name="decision" value="reject" look={main === "reject" ? "danger" : "bad"} {...hotkeyOf("x", "Reject")}>
      Reject
    </Button>
  );
  return (
    <form method="post" action={path}>
      {user === undefined ? null : <FormToken user={user} />}
      {run === undefined ? null : <input type="hidden" name="run" value={run} />}
      <Field
        name="reason"
        label="Reason"
        type="lines"
        value={reason}
        hint="Optional. Shown to the requester and on the receipt."
        charsMax={REASON_CHARS_MAX}
        idSuffix={about === undefined ? "" : `-${about.id.slice(-8)}`}
      />
      <div class="choices">{main === "approve" ? [approve, reject] : [reject, approve]}</div>
    </form>
  );
}
