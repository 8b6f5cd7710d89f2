/** @jsxImportSource hono/jsx */
import { maskedEntry } from "../contract/masked.ts";
import { type Action, nextRetryAt } from "../domain/action.ts";
import type { Pause } from "../domain/pause.ts";
import type { EarlierRejection } from "../domain/rejections.ts";
import { type Role, seesSecrets } from "../domain/roles.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import { Act } from "./act.tsx";
import { Answer } from "./answer.tsx";
import { Code } from "./code.tsx";
import { lastDecision } from "./decided.ts";
import { Earlier } from "./earlier.tsx";
import { Foreign } from "./foreign.tsx";
import { Button, FormToken } from "./form.tsx";
import { Who } from "./happening.tsx";
import { History } from "./history.tsx";
import { Layout } from "./layout.tsx";
import { ACTIONS_PATH, actionPath } from "./list-path.ts";
import { ActionFacts, type ActionFactsProps } from "./action-facts.tsx";
import { StatusChip, Time } from "./parts.tsx";
import { PausedNotice } from "./pauses.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import { Scale } from "./scale.tsx";
import { shown } from "./shown.ts";
import { summaryOf } from "./summary.ts";
import type { Visitor } from "./visitor.ts";

export interface ActionProps {
  readonly action: Action;
  readonly timeline: readonly TimelineEntry[];
  /** What was said about the request before. */
  readonly earlier: readonly EarlierRejection[];
  readonly visitor: Visitor;
  readonly role: Role;
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
  const { timeline, visitor, role, now, receiptUrl } = props;
  const action = shown(props.action);
  // Nobody decides on what they have not come past: a held request comes first, else what was answered.
  const isHeld = action.status === "awaiting_approval";
  const isPaused = action.status === "pending" && props.pause !== null;
  const request = (
    <RequestView action={action} tellsCallback={isHeld}>
      {seesSecrets(role) ? <RevealForm {...props} /> : null}
    </RequestView>
  );
  const answer = (
    <div id="answer" data-live="">
      <Answer action={action} />
    </div>
  );
  return render(
    <Layout title={`${action.method} ${action.host}`} place="Actions" visitor={visitor} follows={action.id}>
      <div class="head">
        <p class="small on-screen">
          <a href={ACTIONS_PATH}>All actions</a>
        </p>
        <h1>
          {action.method} {action.host}
        </h1>
        <div id="state" class="head" data-live="">
          <StatusChip status={action.status} />
          {isPaused ? null : <p>{summaryOf(action, lastDecision(timeline)?.type === "rejected")}</p>}
          {isPaused && props.pause !== null ? <PausedNotice pause={props.pause} /> : null}
          <Earlier entries={props.earlier} />
        </div>
      </div>
      {isHeld ? request : answer}
      <div id="act" data-live="">
        <Act {...props} action={action} isUnknown={hasUnknown(timeline)} />
      </div>
      <div id="drawn" data-live="">
        <Scale timeline={timeline} now={now} />
      </div>
      <div id="told" data-live="">
        <History timeline={timeline.map(maskedEntry)} />
      </div>
      {isHeld ? answer : request}
      <div id="facts" data-live="">
        <ActionFacts action={action} rows={rowsOf(action, receiptUrl)} />
      </div>
      <Code action={props.action} baseUrl={props.baseUrl} />
    </Layout>,
  );
}

/** Whether an attempt may have been received without anybody knowing. */
export function hasUnknown(timeline: readonly TimelineEntry[]): boolean {
  return timeline.some(({ happening }) => happening.type === "attempt" && happening.outcome === "unknown");
}

/** A page of its own: what is secret never stands in this one. */
function RevealForm({ action, visitor }: Pick<ActionProps, "action" | "visitor">) {
  return (
    <form method="post" action={`${actionPath(action.id)}/reveal`}>
      <FormToken visitor={visitor} />
      <div class="buttons">
        <Button look="plain">Show secrets</Button>
      </div>
    </form>
  );
}

function rowsOf(action: Action, receiptUrl: string): NonNullable<ActionFactsProps["rows"]> {
  const { createdBy, dedupe, idempotencyKey, callback, notifyEmail, onUnknown } = action;
  const next = nextRetryAt(action);
  const theirs = (text: string | null) => (text === null ? null : <Foreign text={text} />);
  return [
    ["Asked by", <Who actor={createdBy} />],
    ["Next attempt", next === null ? null : <Time at={next} />],
    ["After an unknown outcome", onUnknown === "stop" ? "It stops" : null],
    ["Dedupe key", theirs(dedupe)],
    ["Idempotency-Key of its creation", theirs(idempotencyKey)],
    ["Callback", theirs(callback)],
    ["Approval mail", theirs(notifyEmail)],
    ["Receipt", <a href={receiptUrl}>Open the receipt</a>],
  ];
}
