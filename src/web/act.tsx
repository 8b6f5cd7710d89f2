/** @jsxImportSource hono/jsx */
import { type Action, isTerminal } from "../domain/action.ts";
import { REASON_CHARS_MAX } from "../domain/limits.ts";
import { mayDo, type Role } from "../domain/roles.ts";
import { type Operation, operationsIn } from "../domain/transition.ts";
import { visibleText } from "../domain/visible.ts";
import { DecisionForm } from "./confirm.tsx";
import { Button, Field, FormToken } from "./form.tsx";
import { actionPath } from "./list-path.ts";
import { Notice } from "./parts.tsx";
import type { PageUser } from "./visitor.ts";

export interface ActProps {
  readonly action: Action;
  readonly user: PageUser;
  readonly role: Role;
  /** An attempt may have been received. */
  readonly isUnknown: boolean;
  /** A person has rejected it: no button that stands out sends it all the same. */
  readonly isRejected: boolean;
  readonly problem?: string;
  readonly reason?: string;
}

/** What a person may do with an action now, each with a reason. */
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
          <span class="quiet">with an Idempotency-Key of its own</span>
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

/** One approval releases one run: whoever may give it is offered to give it along with the retry. */
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
        A retry is a new run of the same action: its target sees the same Idempotency-Key.
        {action.approve ? " It waits for another approval before anything is sent." : ""}
      </p>
      {isUnknown ? (
        <Notice tone="wait">
          Nobody knows how an attempt ended: the target may have received it. Unless it knows a repeat by its
          Idempotency-Key, it may do the same twice.
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
      hint="If you like. It stands in the history and on the receipt."
      charsMax={REASON_CHARS_MAX}
    />
  );
}

function callOf({ method, host }: Action): string {
  return `${method} ${visibleText(host)}`;
}
