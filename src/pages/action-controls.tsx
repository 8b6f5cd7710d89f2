/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { mayDo, type Role } from "../core/roles.ts";
import { isTerminal } from "../core/action.ts";
import { operationsOf } from "../core/changes.ts";
import type { Pause } from "../core/pause.ts";
import { needsEdit } from "./action-story.tsx";
import { callText } from "./decide.tsx";
import { type DecisionPageProps, shownField } from "./decision-form.tsx";
import { Icon } from "../ui/icons.tsx";
import { Button, PostForm, ReasonField } from "../ui/form.tsx";
import { actionPath, ResumeForm } from "../ui/layout.tsx";
import { LinkButton, Notice } from "../ui/parts.tsx";
import { AsCode } from "./snippets.tsx";
import type { SeenAction } from "../receipts/seen-action.ts";

export interface ControlsProps extends DecisionPageProps {
  readonly action: SeenAction;
  /** Identifies the request that is shown: the forms are for no other. */
  readonly digest: string;
  readonly role: Role;
  readonly baseUrl: string;
  /** An attempt has the outcome `unknown`. */
  readonly isUnknown: boolean;
  /** What keeps it from being sent; null: nothing. */
  readonly pause: Pause | null;
  /** A person rejected it, so the primary button must not send it. */
  readonly isRejected: boolean;
}

/** What the reader can do with an action now, beside a decision on it: buttons, and panels where there is more to say. */
export function Controls(props: ControlsProps) {
  const { action, role, now } = props;
  const may = new Set(operationsOf(action, now).filter((operation) => mayDo(role, operation)));
  const canResend = isTerminal(action.status) && mayDo(role, "create");
  // The last button is the main one.
  const isEditFirst = canResend && needsEdit(action);
  return (
    <div class="buttons controls">
      <AsCode action={action} baseUrl={props.baseUrl} />
      {canResend && !isEditFirst ? <EditAndResend action={action} look="plain" /> : null}
      {may.has("cancel") && !may.has("approve") && action.status === "pending" ? <Cancel {...props} /> : null}
      {may.has("retry") ? <Retry {...props} isEditFirst={isEditFirst} /> : null}
      {isEditFirst ? <EditAndResend action={action} look="main" /> : null}
    </div>
  );
}

function EditAndResend({ action, look }: { readonly action: SeenAction; readonly look: "main" | "plain" }) {
  return (
    <LinkButton href={`${actionPath(action.id)}/edit`} look={look}>
      Edit and resend
    </LinkButton>
  );
}

const REASON_HINT = "Shown in the timeline and on the receipt.";

function Cancel(props: ControlsProps) {
  const { action, user, role, now, pause, problem, reason } = props;
  // While it is paused, nothing sends it: what it waits for is the end of the pause.
  const waits = pause === null && action.dueAt !== null && action.dueAt > now && mayDo(role, "retry");
  return (
    <>
      <Panel name="Cancel" isOpen={problem !== undefined}>
        <ShownForm {...props}>
          <p class="quiet">No further attempt is made. An attempt that is under way is not stopped.</p>
          <ReasonField value={reason} hint={REASON_HINT} idSuffix="-cancel" />
          <div class="buttons">
            <Button
              name="decision"
              value="cancel"
              look="bad"
              hotkey={{ key: "x", question: `Cancel ${callText(action)}?` }}
            >
              Cancel the action
            </Button>
          </div>
        </ShownForm>
      </Panel>
      {pause === null || pause.kind === "account" ? null : (
        // The banner above the page has the one of the account.
        <ResumeForm user={user} pause={pause} next={actionPath(action.id)} look="main" />
      )}
      {waits ? (
        <ShownForm {...props}>
          <Button name="decision" value="send_now">
            <Icon name="send" />
            Send now
          </Button>
        </ShownForm>
      ) : null}
    </>
  );
}

/** One button where it is clear what happens; otherwise a panel says what to know first. */
function Retry(props: ControlsProps & { readonly isEditFirst: boolean }) {
  const { action, role, isUnknown, isRejected, problem, reason, isEditFirst } = props;
  const needsApproval = action.approve && mayDo(role, "approve");
  const isPlain = !isUnknown && !action.approve && problem === undefined;
  const hotkey = { key: "r", question: `Retry ${callText(action)}?` } as const;
  if (isPlain) {
    return (
      <ShownForm {...props}>
        <Button name="decision" value="retry" look={isEditFirst ? "plain" : "main"} hotkey={hotkey}>
          <Icon name="retry" />
          Retry now
        </Button>
      </ShownForm>
    );
  }
  const only = (
    <Button name="decision" value="retry" look={needsApproval && !isRejected ? "plain" : "main"} hotkey={hotkey}>
      {needsApproval ? "Retry only" : "Retry now"}
    </Button>
  );
  const andApprove = needsApproval ? (
    <Button name="decision" value="retry_and_approve" look={isRejected ? "plain" : "main"}>
      Retry and approve
    </Button>
  ) : null;
  return (
    <Panel name="Retry" isOpen={problem !== undefined} isMain={!isEditFirst}>
      <ShownForm {...props}>
        <p class="quiet">
          A retry starts a new run of the same action, with the same Idempotency-Key.
          {action.approve ? " It needs approval again before anything is sent." : ""}
        </p>
        {isUnknown ? (
          <Notice tone="wait">
            The outcome of an attempt is unknown: the target may have received it. If the target does not check the
            Idempotency-Key, it may process the request twice.
          </Notice>
        ) : null}
        <ReasonField value={reason} hint={REASON_HINT} idSuffix="-retry" />
        <div class="buttons">{isRejected ? [only, andApprove] : [andApprove, only]}</div>
      </ShownForm>
    </Panel>
  );
}

/** A form for the action as it is shown. */
function ShownForm({
  action: { id, run },
  digest,
  user,
  children,
}: Pick<ControlsProps, "action" | "digest" | "user"> & { readonly children?: Child }) {
  return (
    <PostForm user={user} action={actionPath(id)} fields={[shownField([{ id, run, digest }])]}>
      {children}
    </PostForm>
  );
}

interface PanelProps {
  readonly name: string;
  readonly isOpen: boolean;
  readonly isMain?: boolean;
  readonly children?: Child;
}

function Panel({ name, isOpen, isMain = false, children }: PanelProps) {
  return (
    <details class={`menu menu-end panel${isMain ? " panel-main" : ""}`} open={isOpen}>
      <summary>
        {name}
        <Icon name="down" />
      </summary>
      <div class="menu-body">{children}</div>
    </details>
  );
}
