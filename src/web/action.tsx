/** @jsxImportSource hono/jsx */
import { maskedEntry } from "../contract/masked.ts";
import { type Action, nextRetryAt } from "../domain/action.ts";
import type { DecisionHistory } from "../domain/decision-facts.ts";
import type { Pause } from "../domain/pause.ts";
import { mayReveal, type Role } from "../domain/roles.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import { Act } from "./act.tsx";
import { Answer } from "./answer.tsx";
import { Code } from "./code.tsx";
import { lastDecision } from "./decided.ts";
import { WhatIsAsked } from "./decision-facts.tsx";
import { UntrustedText } from "./foreign.tsx";
import { Who } from "./happening.tsx";
import { HiddenValues, RevealForm } from "./hidden.tsx";
import { History } from "./history.tsx";
import { Layout } from "./layout.tsx";
import { ACTIONS_PATH, listPath } from "./list-path.ts";
import { ActionFacts, type ActionFactsProps } from "./action-facts.tsx";
import { StatusChip, Time } from "./parts.tsx";
import { PausedNotice } from "./pauses.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import { Scale } from "./scale.tsx";
import { shown } from "./shown.ts";
import { summaryOf } from "./summary.ts";
import type { PageUser } from "./visitor.ts";

export interface ActionProps {
  readonly action: Action;
  readonly timeline: readonly TimelineEntry[];
  readonly user: PageUser;
  readonly role: Role;
  /** What is to be known of a held one; null: there is nothing to decide. */
  readonly history: DecisionHistory | null;
  /** What keeps it from being sent now, if it waits to be. */
  readonly pause: Pause | null;
  /** Path of the receipt page. */
  readonly receiptUrl: string;
  readonly now: Date;
  readonly baseUrl: string;
  /** What was wrong with what was sent before; what was typed stands there still. */
  readonly problem?: string;
  readonly reason?: string;
}

/** Everything about one action, masked, and what can be done with it. What may change is a part that scripts reload. */
export function actionPage(props: ActionProps): string {
  const { timeline, user, role, now, receiptUrl } = props;
  const action = shown(props.action, "decider");
  // Nobody decides on what they have not come past: a held request comes first, else what was answered.
  const isHeld = action.status === "awaiting_approval";
  const isRejected = lastDecision(timeline)?.type === "rejected";
  const isPaused = action.status === "pending" && props.pause !== null;
  const request = (
    <RequestView action={action} isAsked={isHeld}>
      {mayReveal(role) && !isHeld ? <RevealForm id={action.id} user={user} /> : null}
    </RequestView>
  );
  const answer = (
    <div id="answer" data-live="">
      <Answer action={action} />
    </div>
  );
  return render(
    <Layout title={`${action.method} ${action.host}`} place="Actions" user={user} follows={action.id}>
      <div class="head">
        <p class="small on-screen">
          <a href={ACTIONS_PATH}>All actions</a>
        </p>
        <h1>
          {action.method} {action.host}
        </h1>
        <div id="state" class="head" data-live="">
          <StatusChip status={action.status} />
          {isPaused ? null : <p>{summaryOf(action, isRejected)}</p>}
          {isPaused && props.pause !== null ? <PausedNotice pause={props.pause} /> : null}
        </div>
      </div>
      {isHeld ? <HiddenValues action={action} user={user} /> : null}
      {props.history === null ? null : <WhatIsAsked action={props.action} history={props.history} />}
      {isHeld ? request : answer}
      <div id="act" data-live="">
        <Act {...props} action={action} isUnknown={hasUnknown(timeline)} isRejected={isRejected} />
      </div>
      <div id="drawn" data-live="">
        <Scale timeline={timeline} now={now} />
      </div>
      <div id="told" data-live="">
        <History timeline={timeline.map((entry) => maskedEntry(entry, "decider"))} />
      </div>
      {isHeld ? answer : request}
      <div id="facts" data-live="">
        <ActionFacts action={action} rows={rowsOf(action, receiptUrl, isHeld)} />
      </div>
      <Code action={props.action} baseUrl={props.baseUrl} />
    </Layout>,
  );
}

/** Whether an attempt may have been received without anybody knowing. */
export function hasUnknown(timeline: readonly TimelineEntry[]): boolean {
  return timeline.some(({ event }) => event.type === "attempt" && event.outcome === "unknown");
}

/** Of a held one the facts are told above. */
function rowsOf(action: Action, receiptUrl: string, isHeld: boolean): NonNullable<ActionFactsProps["rows"]> {
  const { createdBy, keyId, dedupe, idempotencyKey, callback, notifyEmail, onUnknown } = action;
  const next = nextRetryAt(action);
  const theirs = (text: string | null) => (text === null ? null : <UntrustedText text={text} />);
  return [
    ["Requested by", isHeld ? null : <Who actor={createdBy} />],
    [
      "Key",
      keyId === "" ? null : (
        <>
          <code>{keyId}</code> · <a href={listPath({ created_by: keyId })}>All it created</a>
        </>
      ),
    ],
    ["Next attempt", next === null ? null : <Time at={next} />],
    ["After an unknown outcome", onUnknown === "stop" ? "It stops" : null],
    ["Dedupe key", theirs(dedupe)],
    ["Idempotency-Key of its creation", theirs(idempotencyKey)],
    ["Callback", isHeld ? null : theirs(callback)],
    ["Approval mail", theirs(notifyEmail)],
    ["Receipt", <a href={receiptUrl}>Open the receipt</a>],
  ];
}
