/** @jsxImportSource hono/jsx */
import type { Decision } from "../actions/status.ts";
import { DecisionForm, DecisionSummary, type HeldProps, HiddenValues, SecretsMasked } from "./decide.tsx";
import { Layout, render } from "./layout.tsx";
import { Card, PageHead, Problem, Time } from "./parts.tsx";
import { maskForDisplay, RequestView } from "./request.tsx";
import { waitingText } from "./text.ts";

interface ConfirmProps extends HeldProps {
  readonly expiresAt: Date;
  /** Which link of the mail was opened. */
  readonly decision: Decision;
}

/** The page of an approval link: the masked request and two buttons, the one of the link first. */
export function confirmPage({ expiresAt, decision, history, problem, reason, ...props }: ConfirmProps): string {
  const action = maskForDisplay(props.action, "decider");
  const verb = decision === "approve" ? "Approve" : "Reject";
  return render(
    <Layout title={`${verb} a request?`} isStandalone>
      <PageHead title={`${verb} this request?`} kind="Approval">
        <p>{waitingText(action)}</p>
        <HiddenValues action={action} />
      </PageHead>
      <DecisionSummary action={props.action} history={history} rows={[["Link expires", <Time at={expiresAt} />]]} />
      <RequestView action={action} isAsked />
      <Card id="decision" title="Your decision">
        <Problem text={problem} />
        <DecisionForm reason={reason} main={decision} />
      </Card>
      <SecretsMasked />
    </Layout>,
  );
}
