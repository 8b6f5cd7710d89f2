/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import type { Decision } from "../domain/approval-link.ts";
import type { DecisionHistory } from "../domain/decision-facts.ts";
import { REASON_CHARS_MAX } from "../domain/limits.ts";
import { visibleText } from "../domain/visible.ts";
import { WhatIsAsked } from "./decision-facts.tsx";
import { Button, Field, FormToken } from "./form.tsx";
import { HiddenValues } from "./hidden.tsx";
import { Layout } from "./layout.tsx";
import { Notice, Time } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import { shown } from "./shown.ts";
import { waitingWords } from "./summary.ts";
import type { PageUser } from "./visitor.ts";

export interface ConfirmProps {
  readonly action: Action;
  readonly expiresAt: Date;
  readonly history: DecisionHistory;
  /** Which of the two links of the mail was followed. */
  readonly decision: Decision;
  /** What was wrong with what was sent before; what was typed stands there still. */
  readonly problem?: string;
  readonly reason?: string;
}

/** What an approval link opens: the exact request, masked, and two buttons of one size, first the one of the link. */
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
      <WhatIsAsked
        action={props.action}
        history={props.history}
        rows={[["Link works until", <Time at={expiresAt} />]]}
      />
      <RequestView action={action} isAsked />
      <section class="card" aria-labelledby="decision">
        <h2 id="decision">Your decision</h2>
        {props.problem === undefined ? null : <Notice tone="bad">{props.problem}</Notice>}
        <DecisionForm reason={props.reason} main={decision} />
      </section>
      <p class="foot">Secrets are shown as ••••; the request is sent with them.</p>
    </Layout>,
  );
}

export interface DecisionFormProps {
  readonly reason?: string | undefined;
  /** The first button, and the one that stands out; approve unless it is said. */
  readonly main?: Decision;
  /** Of a page of the inbox: whose session it is. */
  readonly user?: PageUser;
  /** Which run was looked at; a link knows its own. */
  readonly run?: number;
  /** Where it is sent; to the page that it stands on unless it is said. */
  readonly path?: string;
  /** What of the request does not stand above the buttons; left out: all of it does. */
  readonly unread?: string | null | undefined;
  /** What is decided on, for the questions of the keys, and where one page has several such forms. */
  readonly about?: Pick<Action, "id" | "method" | "host">;
}

/** The two buttons, and a word with them. */
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
