/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { isTerminal } from "../../core/action.ts";
import { allowedOperations } from "../../core/changes.ts";
import type { Pause } from "../../core/pause.ts";
import { mayDo } from "../../core/roles.ts";
import { hasUnknownOutcome, type TimelineEntry } from "../../core/timeline.ts";
import type { SeenAction } from "../../receipts/seen-action.ts";
import { Menu } from "../../ui/controls.tsx";
import { Button, PostForm, ReasonField } from "../../ui/form.tsx";
import { Icon } from "../../ui/icons.tsx";
import { actionPath, ResumeForm } from "../../ui/layout.tsx";
import { LinkButton, Notice, UntrustedBlock } from "../../ui/parts.tsx";
import { lastDecision, type PageUser } from "../../ui/text.ts";
import { needsEdit } from "./advice.ts";
import { type RefusedDecision, shownField } from "../decisions/decision-form.tsx";
import { callText } from "../../ui/request.tsx";
import { createCodeSamples } from "../../actions/as-code.ts";
import { curlSample } from "../../api/code-samples.ts";

export interface ControlsProps {
  readonly action: SeenAction;
  readonly timeline: readonly TimelineEntry[];
  /** Identifies the shown request: its forms apply to no other. */
  readonly digest: string;
  /** The pause that keeps it from being sent, masked; null if there is none. */
  readonly pause: Pause | null;
  readonly baseUrl: string;
  /** The decision that was refused; left out if none was. */
  readonly refused?: RefusedDecision | undefined;
  readonly user: PageUser;
  readonly now: Date;
}

/** What the reader can do with an action besides deciding: buttons, and panels if there is more to say. */
export function Controls(props: ControlsProps) {
  const { action, baseUrl, user, now } = props;
  const may = new Set(allowedOperations(action, now).filter((operation) => mayDo(user.role, operation)));
  const canResend = isTerminal(action.status) && mayDo(user.role, "create");
  // The last button is the main button.
  const isEditFirst = canResend && needsEdit(action);
  const edit = (
    <LinkButton href={`${actionPath(action.id)}/edit`} look={isEditFirst ? "main" : "plain"}>
      Edit and resend
    </LinkButton>
  );
  return (
    <div class="buttons controls">
      <AsCode action={action} baseUrl={baseUrl} />
      {canResend && !isEditFirst ? edit : null}
      {may.has("cancel") && !may.has("approve") && action.status === "pending" ? cancelControls(props) : null}
      {may.has("retry") ? retryControl(props, isEditFirst) : null}
      {isEditFirst ? edit : null}
    </div>
  );
}

const REASON_HINT = "Shown in the timeline and on the receipt.";

/** How to keep an action from being sent, or to have it sent at once. */
function cancelControls({ action, digest, pause, refused, user, now }: ControlsProps) {
  // No "send now" while paused: the action waits for the end of the pause.
  const waits = pause === null && action.dueAt !== null && action.dueAt > now && mayDo(user.role, "retry");
  const hotkey = { key: "x", question: `Cancel ${callText(action)}?` } as const;
  return (
    <>
      <Menu label="Cancel" isAtEnd panel="panel" isOpen={refused !== undefined}>
        <ShownForm action={action} digest={digest} user={user}>
          <p class="quiet">No further attempt is made. An attempt that is under way is not stopped.</p>
          <ReasonField value={refused?.reason} hint={REASON_HINT} idSuffix="-cancel" />
          <div class="buttons">
            <Button name="decision" value="cancel" look="bad" hotkey={hotkey}>
              Cancel the action
            </Button>
          </div>
        </ShownForm>
      </Menu>
      {pause === null || pause.kind === "account" ? null : (
        // The banner above the page resumes a paused account.
        <ResumeForm user={user} pause={pause} next={actionPath(action.id)} look="main" />
      )}
      {waits ? (
        <ShownForm action={action} digest={digest} user={user}>
          <Button name="decision" value="send_now">
            <Icon name="send" />
            Send now
          </Button>
        </ShownForm>
      ) : null}
    </>
  );
}

/** A button if it is clear what happens, otherwise a panel that says what to know first. */
function retryControl({ action, timeline, digest, refused, user }: ControlsProps, isEditFirst: boolean) {
  const isUnknown = hasUnknownOutcome(timeline);
  // If a person rejected it, the main button must not send it.
  const isRejected = lastDecision(timeline)?.type === "rejected";
  const needsApproval = action.approve && mayDo(user.role, "approve");
  const hotkey = { key: "r", question: `Retry ${callText(action)}?` } as const;
  if (!isUnknown && !action.approve && refused === undefined) {
    return (
      <ShownForm action={action} digest={digest} user={user}>
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
    <Menu label="Retry" isAtEnd panel={isEditFirst ? "panel" : "panel panel-main"} isOpen={refused !== undefined}>
      <ShownForm action={action} digest={digest} user={user}>
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
        <ReasonField value={refused?.reason} hint={REASON_HINT} idSuffix="-retry" />
        <div class="buttons">{isRejected ? [only, andApprove] : [andApprove, only]}</div>
      </ShownForm>
    </Menu>
  );
}

interface ShownFormProps extends Pick<ControlsProps, "action" | "digest" | "user"> {
  readonly children?: Child;
}

/** A form that applies only to the request as the page shows it. */
function ShownForm({ action: { id, run }, digest, user, children }: ShownFormProps) {
  return (
    <PostForm user={user} action={actionPath(id)} fields={[shownField([{ id, run, digest }])]}>
      {children}
    </PostForm>
  );
}

/** A menu that shows the call as curl, TypeScript, Python and MCP, and how its target verifies it. */
function AsCode({ action, baseUrl }: { readonly action: SeenAction; readonly baseUrl: string }) {
  const samples = createCodeSamples(action, baseUrl);
  const [scheme] = /^https?:\/\//.exec(action.url) ?? [];
  return (
    <Menu label="As code" isAtEnd panel="panel as-code">
      <p class="quiet small">
        {samples === null
          ? "This request is too long to show as code. Read it from the API and send it from a file."
          : "Creates the same request again. Replace the placeholders with your key and secrets."}
      </p>
      <div class="folds">
        {(samples ?? []).map(({ label, text }, at) => (
          <details name="code" open={at === 0}>
            <summary>{label}</summary>
            <UntrustedCode label={label} text={text} />
          </details>
        ))}
        {scheme === undefined ? null : <Verification origin={scheme + action.host} baseUrl={baseUrl} />}
      </div>
    </Menu>
  );
}

function UntrustedCode({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <div data-copy="">
      <UntrustedBlock label={label} text={text} />
    </div>
  );
}

function Verification({ origin, baseUrl }: { readonly origin: string; readonly baseUrl: string }) {
  const secret = curlSample({ method: "GET", url: `${baseUrl}/v1/signing-secret?origin=${origin}` });
  const verify = `import { Webhook } from "standardwebhooks"; // npm install standardwebhooks

// Throws unless the call came from this Outgate, unchanged, within the last five minutes.
new Webhook(process.env.OUTGATE_SIGNING_SECRET).verify(rawBody, headers);`;
  return (
    <details name="code">
      <summary>Verify its signature</summary>
      <div class="stack">
        <p>
          Calls are signed according to Standard Webhooks, with a separate secret for <b class="untrusted">{origin}</b>.
          Read it with an owner key:
        </p>
        <UntrustedCode label="Read the secret" text={secret} />
        <p>Verify the raw bytes of each call with it:</p>
        <UntrustedCode label="Verify a call" text={verify} />
      </div>
    </details>
  );
}
