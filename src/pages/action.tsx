/** @jsxImportSource hono/jsx */
import { maskedEntry } from "../receipts/masked-action.ts";
import { type Action, nextRetryAt } from "../actions/action.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import type { Pause } from "../pauses/pause.ts";
import { mayReveal, type Role } from "../accounts/roles.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import { Act } from "./decide.tsx";
import { Answer, RequestView, shown } from "./request.tsx";
import { Code, UntrustedText } from "./code.tsx";
import { lastDecision, summaryOf, type PageUser, duration } from "./words.ts";
import { WhatIsAsked, HiddenValues, RevealForm } from "./facts.tsx";
import { Who, History } from "./timeline.tsx";
import { Layout, ACTIONS_PATH, listPath, render } from "./layout.tsx";
import { StatusChip, Time, Facts } from "./parts.tsx";
import { PausedNotice } from "./pauses.tsx";
import { Scale } from "./chart.tsx";
import type { Child } from "hono/jsx";

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
  const action = shown(props.action, "decider");
  // A held request is shown above the decision; otherwise the response comes first.
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

/** Whether an attempt has the outcome `unknown`. */
export function hasUnknown(timeline: readonly TimelineEntry[]): boolean {
  return timeline.some(({ event }) => event.type === "attempt" && event.outcome === "unknown");
}

/** A held action shows some of these facts above. */
function rowsOf(action: Action, receiptUrl: string, isHeld: boolean): NonNullable<ActionFactsProps["rows"]> {
  const { createdBy, keyId, dedupe, idempotencyKey, callback, notifyEmail, onUnknown } = action;
  const next = nextRetryAt(action);
  const untrusted = (text: string | null) => (text === null ? null : <UntrustedText text={text} />);
  return [
    ["Requested by", isHeld ? null : <Who actor={createdBy} />],
    [
      "Key",
      keyId === "" ? null : (
        <>
          <code>{keyId}</code> · <a href={listPath({ created_by: keyId })}>All actions of this key</a>
        </>
      ),
    ],
    ["Next attempt", next === null ? null : <Time at={next} />],
    ["After an unknown outcome", onUnknown === "stop" ? "Stop" : null],
    ["Dedupe key", untrusted(dedupe)],
    ["Idempotency-Key of the create", untrusted(idempotencyKey)],
    ["Callback", isHeld ? null : untrusted(callback)],
    ["Approval email", untrusted(notifyEmail)],
    ["Receipt", <a href={receiptUrl}>Open the receipt</a>],
  ];
}

export interface ActionFactsProps {
  readonly action: Action;
  /** Additional rows. */
  readonly rows?: readonly (readonly [name: string, value: Child])[];
}

export function ActionFacts({ action, rows = [] }: ActionFactsProps) {
  const { approve, approvedBy, approvedAt, startedAt, finishedAt, result, attempts, retries } = action;
  const ms = result?.durationMs ?? null;
  const at = (time: Date | null) => (time === null ? null : <Time at={time} />);
  return (
    <section class="card" aria-label="Facts">
      <Facts
        rows={[
          ["Action", <span class="theirs">{action.id}</span>],
          ["Requested", <Time at={action.createdAt} />],
          ["Approval", approve ? null : "Not required"],
          ["Approved by", approvedBy === null ? null : <Who actor={approvedBy} />],
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
