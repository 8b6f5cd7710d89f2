/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import type { DecisionHistory } from "../domain/decision-facts.ts";
import { DecisionForm } from "./confirm.tsx";
import { WhatIsAsked } from "./decision-facts.tsx";
import { HiddenValues } from "./hidden.tsx";
import { Layout } from "./layout.tsx";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import { shown } from "./shown.ts";
import { waitingWords } from "./summary.ts";
import type { PageUser } from "./visitor.ts";

export interface HeldProps {
  readonly action: Action;
  readonly user: PageUser;
  readonly history: DecisionHistory;
  /** What was wrong with what was sent before; what was typed stands there still. */
  readonly problem?: string;
  readonly reason?: string;
}

/** One request of the inbox, whole but for its secrets, and the decision on it. */
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
      <p class="foot">Secrets are shown as ••••; the request is sent with them.</p>
    </Layout>,
  );
}
