/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import type { EarlierRejection } from "../domain/rejections.ts";
import type { Unusual } from "../domain/unusual.ts";
import { Asked, DecisionForm } from "./confirm.tsx";
import { Earlier } from "./earlier.tsx";
import { Layout } from "./layout.tsx";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import { shown } from "./shown.ts";
import { waitingWords } from "./summary.ts";
import { UnusualChips } from "./unusual.tsx";
import type { Visitor } from "./visitor.ts";

export interface HeldProps {
  readonly action: Action;
  readonly visitor: Visitor;
  readonly unusual: readonly Unusual[];
  /** What was said about the request before. */
  readonly earlier: readonly EarlierRejection[];
  /** What was wrong with what was sent before; what was typed stands there still. */
  readonly problem?: string;
  readonly reason?: string;
}

/** One request of the inbox, whole but for its secrets, and the decision on it. */
export function heldPage({ visitor, unusual, earlier, problem, reason, ...props }: HeldProps): string {
  const action = shown(props.action);
  return render(
    <Layout title={`Approve ${action.method} ${action.host}?`} place="Approvals" visitor={visitor} follows={action.id}>
      <div class="head">
        <p class="small on-screen">
          <a href="/approvals">All approvals</a>
        </p>
        <h1>Approve this request?</h1>
        <p>{waitingWords(action)}</p>
        <UnusualChips unusual={unusual} />
        <Earlier entries={earlier} />
      </div>
      <section class="card" aria-label="What is asked for">
        <Asked action={action} expiresAt={null} />
      </section>
      <RequestView action={action} isAsked />
      <section class="card" aria-labelledby="decision">
        <h2 id="decision">Your decision</h2>
        {problem === undefined ? null : <Notice tone="bad">{problem}</Notice>}
        <DecisionForm reason={reason} visitor={visitor} run={action.run} about={action} />
      </section>
      <p class="foot">Secrets are shown as ••••; the request is sent with them.</p>
    </Layout>,
  );
}
