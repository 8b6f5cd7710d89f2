/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { COPY_OF } from "../../actions/edited-copy.ts";
import { type DecisionHistory, risksOfRequest } from "../../approvals/facts.ts";
import { policySource } from "../../core/action-policy.ts";
import { nextRetryAt, requestedRunAt, REQUESTER_LABELS, requesterTexts, unknownExtras } from "../../core/action.ts";
import type { PastAttempt } from "../../core/changes.ts";
import { ACTION_ID } from "../../core/ids.ts";
import { describeActor, mayDo } from "../../core/roles.ts";
import { urlPath } from "../../core/search.ts";
import { isCredentialHeader } from "../../receipts/mask-rules.ts";
import { asSent, maskedTimeline } from "../../receipts/masked-action.ts";
import type { MaskedAction, SeenAction } from "../../receipts/seen-action.ts";
import { visibleText } from "../../receipts/visible-text.ts";
import { pageBody } from "../../ui/body-view.tsx";
import { Copied } from "../../ui/controls.tsx";
import { actionPath, ACTIONS_PATH, Layout, listPath, render } from "../../ui/layout.tsx";
import {
  Card,
  Dot,
  type FactRows,
  Facts,
  Name,
  Notice,
  PageHead,
  Problem,
  sentence,
  time,
  untrustedLines,
  untrusted,
  actorName,
} from "../../ui/parts.tsx";
import { duration, type PageUser } from "../../ui/text.ts";
import { Story } from "./action-story.tsx";
import { ListedStatus } from "../frame/action-row.tsx";
import { Controls, type ControlsProps } from "./action-controls.tsx";
import { Attempts } from "./attempts.tsx";
import { newCredentialPath } from "../settings/credentials.tsx";
import { DecisionForm } from "../decisions/decision-form.tsx";
import { DecidedBy, RequestPane, Risks } from "../decisions/decision.tsx";
import { backoffText, patternsText } from "../settings/hosts.tsx";
import { PausedNotice } from "../settings/pauses.tsx";
import { bodyPath, callLine, callText, RequestParts, RevealForm } from "../../ui/request.tsx";
import { AttemptResponse, ResponseView } from "./response.tsx";
import { SETTINGS_PATHS } from "../frame/settings-frame.tsx";
import { History } from "./timeline.tsx";

interface ActionProps extends ControlsProps {
  readonly action: MaskedAction;
  /** The newest ended attempts, oldest first. */
  readonly attempts: readonly PastAttempt[];
  /** The attempt whose response is shown, masked for the reader; null if none of the run has ended. */
  readonly chosen: PastAttempt | null;
  /** The history of a held action; null if it is not held. */
  readonly history: DecisionHistory | null;
  readonly receiptUrl: string;
}

/** The page of one action, as a single element, so that a list can load it on top. */
export function actionPage(props: ActionProps): string {
  const { attempts, chosen, history, digest, pause, receiptUrl, baseUrl, refused, user, now } = props;
  const action = asSent(props.action);
  const timeline = maskedTimeline(props.timeline, action);
  const title = callText(action) + (action.title === null ? "" : `: “${visibleText(action.title)}”`);
  const isHeld = action.status === "awaiting_approval";
  const last = attempts.at(-1);
  const hasResponse = last !== undefined || action.status === "active";
  const parts = ["request", ...(hasResponse ? ["response"] : []), "timeline", "details"];
  const firstPart = hasResponse && !isHeld ? "response" : "request";
  const isOld = chosen !== null && (chosen.run !== last?.run || chosen.attempt !== last.attempt);
  return render(
    <Layout title={title} nav="Actions" user={user} follows={action.id} now={now} width="wide">
      <div id="action" class="action" data-live="">
        <PageHead
          // For a decision, the requester's words come after what is sent.
          title={isHeld ? callLine(action, { canCopy: true }) : headline(action)}
          back={{ href: ACTIONS_PATH, name: "Actions" }}
          actions={
            <Controls
              action={action}
              timeline={timeline}
              digest={digest}
              pause={pause}
              baseUrl={baseUrl}
              refused={refused}
              user={user}
              now={now}
            />
          }
        >
          {isHeld ? null : <p class="call-line">{callLine(action, { canCopy: true })}</p>}
          <State action={action} timeline={timeline} pause={pause} baseUrl={baseUrl} user={user} now={now} />
        </PageHead>
        {isHeld ? null : <Problem text={refused?.problem} />}
        {/* Choose the visible part in a drawer or on a phone, without script too. Updates find them by their ids. */}
        <div class="part-tabs on-screen" role="radiogroup" aria-label="Parts of the action">
          {parts.map((part) => (
            <label id={`choose-${part}`} class="tab">
              <input id={`part-${part}`} type="radio" name="part" value={part} checked={part === firstPart} />
              {part.charAt(0).toUpperCase() + part.slice(1)}
            </label>
          ))}
        </div>
        <div class="action-columns">
          <div class="action-main">
            {history === null || !isHeld ? null : (
              <section class="card asked-card part part-request" aria-label="Request">
                <RequestPane
                  held={{ action, history, digest }}
                  path={actionPath(action.id)}
                  isWhole
                  refused={refused}
                  user={user}
                  now={now}
                />
              </section>
            )}
            <div class="part part-response">
              <Attempts action={action} timeline={timeline} attempts={attempts} chosen={chosen} now={now} />
              {last === undefined ? null : <AttemptResponse action={action} attempt={chosen} isOld={isOld} />}
            </div>
            {isHeld ? null : (
              <div class="part part-request">
                <Risks risks={risksOfRequest(action, { isReasonRead: true })} />
                <Card
                  id="request"
                  title="Request"
                  aside={mayDo(user.role, "approve") ? <RevealForm user={user} id={action.id} /> : null}
                >
                  <RequestParts action={action} bodyPath={bodyPath(action.id)} canCopy />
                </Card>
              </div>
            )}
            {credentialAdvice(action, user)}
            <div class="part part-timeline">
              <History timeline={timeline} />
            </div>
          </div>
          <div class="part part-details">{details(action, user, receiptUrl, baseUrl)}</div>
        </div>
      </div>
    </Layout>,
  );
}

interface StateProps extends Pick<ActionProps, "timeline" | "pause" | "baseUrl" | "user" | "now"> {
  readonly action: SeenAction;
}

/** The status, and what happened in a sentence. */
function State({ action, timeline, pause, baseUrl, user, now }: StateProps) {
  const { policy, status } = action;
  const isPaused = status === "pending" && pause !== null;
  return (
    <div class="state">
      {isPaused ? <Dot tone="wait">Paused</Dot> : <ListedStatus action={action} />}
      {isPaused ? (
        <PausedNotice pause={pause} user={user} />
      ) : (
        <Story action={action} timeline={timeline} role={user.role} now={now} baseUrl={baseUrl} />
      )}
      {policy?.by === "grant" ? (
        <p class="story quiet">
          Allowed by <Name text={policy.name ?? ""} />
          ’s grant
          {policy.reason === null ? "." : sentence`: ${untrusted(policy.reason)}`}
          {mayDo(user.role, "approve") ? sentence` · ${<a href={SETTINGS_PATHS.grants}>All grants</a>}` : null}
        </p>
      ) : null}
    </div>
  );
}

/** Tells owners to store the secret: an agent that sends it itself could also call the host without Outgate. */
function credentialAdvice(action: SeenAction, user: PageUser) {
  const { keyId, creator, headers, extras, host } = action;
  const name = Object.keys(headers ?? {}).find(isCredentialHeader);
  const isByAgent = keyId !== "" && creator.role === "agent";
  if (!isByAgent || name === undefined || extras.credential !== undefined || !mayDo(user.role, "manage")) return null;
  return (
    <div class="part part-request">
      <p class="quiet">
        The agent sent {untrusted(name)} itself, so it can call this host without Outgate.{" "}
        <a href={newCredentialPath(host)}>Store the secret as a credential</a>, and no agent has to hold it.
      </p>
    </div>
  );
}

/** Quotes the title, which is the requester's text. Method and path are ours. */
function headline({ title, method, url }: SeenAction) {
  if (title !== null) {
    return <q class="title">{untrusted(title)}</q>;
  }
  return (
    <>
      {/* Enough for two lines. The whole URL is below. */}
      <span class="method">{method}</span> {untrusted(urlPath(url).slice(0, 120))}
    </>
  );
}

/** Request and response with secrets, in the response to a form. Shows the URL as it is sent. */
export function revealedPage(action: SeenAction, digest: string, user: PageUser): string {
  const isHeld = action.status === "awaiting_approval";
  return render(
    <Layout title={`Secrets of ${callText(action)}`} nav="Actions" user={user}>
      <PageHead title={callText(action)} back={{ href: actionPath(action.id), name: "Hide secrets" }} />
      <Notice tone="wait">Secrets are shown in full. They are hidden again when you leave this page.</Notice>
      <Card id="request" title="Request">
        <RequestParts action={action} isOpen={isHeld} />
        {action.callback === null || !isHeld ? null : <p>Callback: {untrusted(action.callback)}</p>}
      </Card>
      <ResponseView action={action} />
      {isHeld ? (
        <Card id="decision" title="Your decision">
          <DecisionForm
            user={user}
            path={actionPath(action.id)}
            asked={[{ action, digest, body: { rest: null, folded: pageBody(action)?.folded ?? 0 } }]}
          />
        </Card>
      ) : null}
    </Layout>,
  );
}

function details(action: SeenAction, user: PageUser, receiptUrl: string, baseUrl: string) {
  const { id, createdBy, keyId, hostname, host, extras, run, approve, approvedBy } = action;
  const { dedupe, idempotencyKey } = action;
  const { name, way } = describeActor(createdBy);
  const copied = (text: string | null, what: string): Child =>
    text === null ? null : <Copied what={what}>{untrusted(text)}</Copied>;
  return (
    <Card id="details" title="Details" look="details">
      <Facts
        rows={[
          ["Action", <Copied text={id} what="the action's ID" />],
          [
            keyId === "" ? "Created by" : "Agent",
            <>
              {keyId === "" ? (
                <Name text={name} />
              ) : (
                <a href={listPath({ created_by: keyId })} title="All actions of this key">
                  <Name text={name} />
                </a>
              )}{" "}
              <span class="quiet">{way}</span>
            </>,
          ],
          ["Key", keyId === "" ? null : <Copied text={keyId} what="the key's ID" />],
          ["Host", <a href={listPath({ host: hostname })}>{untrusted(host)}</a>],
          ...requesterTexts({ title: null, extras }, extras.reason ?? null).map(({ name: said, note, text }) => {
            const shown = note === "" ? untrustedLines(text ?? "") : <Metadata name={note} value={text ?? ""} />;
            return [REQUESTER_LABELS[said], text === null ? null : <span class="reason">{shown}</span>] as const;
          }),
          ...Object.entries(unknownExtras(extras) ?? {}).map(
            ([member, value]) =>
              ["Only for another version", <Metadata name={member} value={JSON.stringify(value)} />] as const,
          ),
        ]}
      />
      <Facts
        rows={[
          ["Created", time(action.createdAt)],
          ["Approval", approve ? null : "Not required"],
          policyRow(action, user),
          ["Approved by", approvedBy === null ? null : actorName(approvedBy)],
          ["Approved at", time(action.approvedAt)],
          ["Not before", time(requestedRunAt(action))],
          [run === 1 ? "First attempt" : `First attempt of run ${run}`, time(action.startedAt)],
          ["Next attempt", time(nextRetryAt(action))],
          ["Ended", time(action.finishedAt)],
          ["Expires", time(action.expiresAt)],
        ]}
      />
      <Facts
        rows={[
          ["Run", run === 1 ? null : String(run)],
          ["Attempts", `${action.attempts} of ${action.retries}`],
          ["Timeout", extras.timeoutMs === undefined ? null : `${duration(extras.timeoutMs)} for an attempt`],
          ["Delay between attempts", backoffText(extras.backoff)],
          ["Gives up on", extras.giveUpOn === undefined ? null : patternsText(extras.giveUpOn)],
          ["After an unknown outcome", action.onUnknown === "stop" ? "Stop" : null],
          ["Dedupe key", copied(dedupe, "the dedupe key")],
          ["Idempotency-Key received", copied(idempotencyKey, "the Idempotency-Key received")],
          ["Idempotency-Key sent", copied(sentKey(action), "the Idempotency-Key sent")],
          ["Callback", untrusted(action.callback)],
          ["Approval email", untrusted(action.notifyEmail)],
          ["Signature", sentence`Standard Webhooks, ${<code>webhook-id</code>} is the action’s ID`],
          [
            "Receipt",
            <Copied text={new URL(receiptUrl, baseUrl).href} what="the link of the receipt">
              <a href={receiptUrl}>Open the receipt</a>
            </Copied>,
          ],
        ]}
      />
    </Card>
  );
}

/** A metadata entry. The id of a copied action is a link; anybody may write it, so it is among the requester's words. */
function Metadata({ name, value }: { readonly name: string; readonly value: string }) {
  const text = untrusted(`${name}: ${value}`);
  return name === COPY_OF && ACTION_ID.test(value) ? <a href={actionPath(value)}>{text}</a> : text;
}

/** The row on the rule that decided. A held action says so above the decision, and one that a grant let pass beside its status. */
function policyRow({ policy, status }: SeenAction, user: PageUser): FactRows[number] {
  if (policy === null || policy.by === "grant" || status === "awaiting_approval") return ["Held by", null];
  const { effect, by } = policy;
  const name = effect === "allow" ? "Allowed by" : "Held by";
  if (policy.name === null) return [name, policySource(policy).label];
  return [`${name} the ${by}`, <DecidedBy policy={policy} user={user} />];
}

/** The `Idempotency-Key` that the target gets in all attempts. */
function sentKey({ id, headers }: SeenAction): string {
  return Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === "idempotency-key")?.[1] ?? id;
}
