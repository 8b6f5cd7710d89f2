/** @jsxImportSource hono/jsx */
import type { ActionPolicy } from "../core/action-policy.ts";
import { mayDo, type Role } from "../core/roles.ts";
import { awaitsRunAt } from "../core/action.ts";
import type { PastAttempt } from "../core/attempts.ts";
import { pathOf } from "../core/search.ts";
import type { TimelineEntry } from "../core/timeline.ts";
import { type DecisionHistory, risksOfRequest } from "../approvals/facts.ts";
import { isCredentialHeader } from "../receipts/mask-rules.ts";
import { asSent, maskedEntry } from "../receipts/masked-action.ts";
import { visibleText } from "../receipts/visible-text.ts";
import { Controls, type ControlsProps } from "./action-controls.tsx";
import { ActionDetails } from "./action-facts.tsx";
import { Story } from "./action-story.tsx";
import { AttemptResponse, Attempts } from "./attempts.tsx";
import { bodyPath } from "./body-page.tsx";
import { newCredentialPath } from "./credentials.tsx";
import { pageBody } from "../ui/body-view.tsx";
import { CopiedText } from "../ui/controls.tsx";
import { callText, RevealForm, Risks } from "./decide.tsx";
import { DecisionForm } from "./decision-form.tsx";
import { actionPath, ACTIONS_PATH, Layout, render } from "../ui/layout.tsx";
import { Card, Dot, Name, Notice, PageHead, Problem, sentence, StatusDot, UntrustedText } from "../ui/parts.tsx";
import { PausedNotice } from "./pauses.tsx";
import { RequestView, ResponseView, UntrustedUrl } from "./request.tsx";
import { RequestPane } from "./request-pane.tsx";
import { SETTINGS_PATHS } from "./settings-frame.tsx";
import { lastDecision, type PageUser } from "../ui/text.ts";
import { History } from "./timeline.tsx";
import type { MaskedAction, SeenAction } from "../receipts/seen-action.ts";

export interface ActionProps extends Omit<ControlsProps, "action" | "isUnknown" | "isRejected"> {
  readonly action: MaskedAction;
  readonly timeline: readonly TimelineEntry[];
  /** The newest that have ended, oldest first. */
  readonly attempts: readonly PastAttempt[];
  /** The one whose response is shown, masked for the reader; null: none of the run has ended. */
  readonly chosen: PastAttempt | null;
  /** The history of a held action; null if it is not held. */
  readonly history: DecisionHistory | null;
  readonly receiptUrl: string;
}

/** The page of one action. All of it is in one part, so that a list can load it over itself. */
export function actionPage(props: ActionProps): string {
  const { user, now } = props;
  const action = asSent(props.action);
  const timeline = props.timeline.map((entry) => maskedEntry(entry, action.viewer));
  const title = callText(action) + (action.title === null ? "" : `: “${visibleText(action.title)}”`);
  return render(
    <Layout title={title} nav="Actions" user={user} follows={action.id} now={now} width="wide">
      <ActionPart {...props} action={action} timeline={timeline} />
    </Layout>,
  );
}

function ActionPart(props: ActionProps) {
  const { action, problem, attempts, receiptUrl, baseUrl } = props;
  const isHeld = action.status === "awaiting_approval";
  return (
    <div id="action" class="action" data-live="">
      <PageHead
        title={isHeld ? <CallLine action={action} /> : <Headline action={action} />}
        back={{ href: ACTIONS_PATH, name: "Actions" }}
        actions={<ActionControls {...props} />}
      >
        {isHeld ? null : (
          <p class="call-line">
            <CallLine action={action} />
          </p>
        )}
        <State {...props} />
      </PageHead>
      {isHeld ? null : <Problem text={problem} />}
      <TabChoice isHeld={isHeld} hasResponse={attempts.length > 0 || action.status === "active"} />
      <div class="action-columns">
        <div class="action-main">
          {isHeld ? <Held {...props} /> : null}
          <Outcomes {...props} />
          {isHeld ? null : <Asked {...props} />}
          <CredentialAdvice {...props} />
          <div class="part part-timeline">
            <History timeline={props.timeline} />
          </div>
        </div>
        <div class="part part-details">
          <ActionDetails action={action} user={props.user} receiptUrl={receiptUrl} baseUrl={baseUrl} />
        </div>
      </div>
    </div>
  );
}

function ActionControls({ timeline, ...props }: ActionProps) {
  const isRejected = lastDecision(timeline)?.type === "rejected";
  return <Controls {...props} isRejected={isRejected} isUnknown={hasUnknown(timeline)} />;
}

/** The status with its code, and what happened in a sentence. */
function State({ action, timeline, role, now, pause, user }: ActionProps) {
  const isPaused = action.status === "pending" && pause !== null;
  return (
    <div class="state">
      {isPaused ? <Dot tone="wait">Paused</Dot> : <Status action={action} />}
      {isPaused ? (
        <PausedNotice pause={pause} user={user} />
      ) : (
        <Story action={action} timeline={timeline} role={role} now={now} />
      )}
      {action.policy?.by === "grant" ? <AllowedBy policy={action.policy} role={role} /> : null}
    </div>
  );
}

function AllowedBy({ policy: { name, reason }, role }: { readonly policy: ActionPolicy; readonly role: Role }) {
  return (
    <p class="story quiet">
      Allowed by <Name text={name ?? ""} />
      ’s grant
      {reason === null ? "." : sentence`: ${<UntrustedText text={reason} />}`}
      {mayDo(role, "approve") ? sentence` · ${<a href={SETTINGS_PATHS.grants}>All grants</a>}` : null}
    </p>
  );
}

/** In the words of the list. The result of an action that is sent again is that of an earlier attempt. */
function Status({ action }: { readonly action: SeenAction }) {
  const { status, attempts, result } = action;
  const code = result?.responseCode ?? null;
  if (awaitsRunAt(action)) return <Dot tone="still">Scheduled</Dot>;
  if (status === "pending" && attempts > 0)
    return <Dot tone="busy">{`Retrying${code === null ? "" : ` ${code}`}`}</Dot>;
  return <StatusDot status={status} code={status === "completed" || status === "failed" ? code : null} />;
}

/** A held request with its risks, and the decision for whoever may make it. */
function Held({ action, history, digest, user, now, problem, reason, grant }: ActionProps) {
  if (history === null) return null;
  return (
    <section class="card asked-card part part-request" aria-labelledby="request">
      <h2 id="request" class="visually-hidden">
        Request
      </h2>
      <RequestPane
        action={action}
        history={history}
        digest={digest}
        user={user}
        now={now}
        path={actionPath(action.id)}
        isWhole
        problem={problem}
        reason={reason}
        grant={grant}
      />
    </section>
  );
}

function Outcomes({ action, timeline, attempts, chosen, now }: ActionProps) {
  const last = attempts.at(-1);
  const isOld = chosen !== null && (chosen.run !== last?.run || chosen.attempt !== last.attempt);
  return (
    <div class="part part-response">
      <Attempts action={action} timeline={timeline} attempts={attempts} chosen={chosen} now={now} />
      {last === undefined ? null : <AttemptResponse action={action} attempt={chosen} isOld={isOld} />}
    </div>
  );
}

/** The request of an action that nobody has to decide on now. */
function Asked({ action, role, user }: ActionProps) {
  return (
    <div class="part part-request">
      <Risks risks={risksOfRequest(action, { isReasonRead: true })} />
      <RequestView
        action={action}
        bodyPath={bodyPath(action.id)}
        canCopy
        aside={mayDo(role, "approve") ? <RevealForm id={action.id} user={user} /> : null}
      />
    </div>
  );
}

/** For owners: an agent that sent the secret has it, and can call the host without Outgate. */
function CredentialAdvice({ action, role }: Pick<ActionProps, "action" | "role">) {
  const { keyId, creator, headers, extras, host } = action;
  const name = Object.keys(headers ?? {}).find(isCredentialHeader);
  const isByAgent = keyId !== "" && creator.role === "agent";
  if (!isByAgent || name === undefined || extras.credential !== undefined || !mayDo(role, "manage")) return null;
  return (
    <div class="part part-request">
      <p class="quiet">
        The agent sent <UntrustedText text={name} /> itself, so it can call this host without Outgate.{" "}
        <a href={newCredentialPath(host)}>Store the secret as a credential</a>, and no agent has to hold it.
      </p>
    </div>
  );
}

/** The title is the requester's, in quotation marks and never without them; method and path are ours. */
function Headline({ action }: { readonly action: SeenAction }) {
  if (action.title !== null) {
    return (
      <q class="title">
        <UntrustedText text={action.title} />
      </q>
    );
  }
  return (
    <>
      <span class="method">{action.method}</span> <UntrustedText text={pathOf(action.url).slice(0, HEADLINE_CHARS)} />
    </>
  );
}

/** More than two lines of a headline; the whole URL stands below it. */
const HEADLINE_CHARS = 120;

/** The headline where somebody decides: what the requester says comes after what is sent. */
function CallLine({ action: { method, url, host } }: { readonly action: SeenAction }) {
  return (
    <span>
      <b class="method">{method}</b>
      <CopiedText what="the URL">
        <UntrustedUrl url={url} host={host} />
      </CopiedText>
    </span>
  );
}

/**
 * Where there is room for one part only, a drawer or a phone, these choose it. Without script too. By their ids an update finds
 * them again: it keeps the values of inputs.
 */
function TabChoice({ isHeld, hasResponse }: { readonly isHeld: boolean; readonly hasResponse: boolean }) {
  const first = hasResponse && !isHeld ? "response" : "request";
  return (
    <div class="part-tabs" role="radiogroup" aria-label="Parts of the action">
      {PARTS.filter(([part]) => hasResponse || part !== "response").map(([part, name]) => (
        <label id={`choose-${part}`}>
          <input id={`part-${part}`} type="radio" name="part" value={part} checked={part === first} />
          {name}
        </label>
      ))}
    </div>
  );
}

const PARTS = [
  ["request", "Request"],
  ["response", "Response"],
  ["timeline", "Timeline"],
  ["details", "Details"],
] as const;

/** Whether an attempt has the outcome `unknown`. */
export function hasUnknown(timeline: readonly TimelineEntry[]): boolean {
  return timeline.some(({ event }) => event.type === "attempt" && event.outcome === "unknown");
}

/** Request and response with secrets, in the response to a form. The URL is the one that is sent. */
export function revealedPage({
  action,
  digest,
  user,
}: {
  readonly action: SeenAction;
  readonly digest: string;
  readonly user: PageUser;
}): string {
  const isHeld = action.status === "awaiting_approval";
  return render(
    <Layout title={`Secrets of ${callText(action)}`} nav="Actions" user={user}>
      <PageHead title={callText(action)} back={{ href: actionPath(action.id), name: "Hide secrets" }} />
      <Notice tone="wait">Secrets are shown in full. They are hidden again when you leave this page.</Notice>
      <RequestView action={action} tellsCallback={isHeld} isWhole={isHeld} />
      <ResponseView action={action} />
      {isHeld ? (
        <Card id="decision" title="Your decision">
          <DecisionForm
            user={user}
            path={actionPath(action.id)}
            requests={[{ id: action.id, run: action.run, digest }]}
            question={callText(action)}
            unread={null}
            folded={pageBody(action)?.folded ?? 0}
          />
        </Card>
      ) : null}
    </Layout>,
  );
}
