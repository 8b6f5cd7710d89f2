/** @jsxImportSource hono/jsx */
import type { Decision } from "../core/status.ts";
import { limitsOnPage, pageBody } from "../ui/body-view.tsx";
import { bodyKindText } from "../receipts/mask-body.ts";
import { asSent } from "../receipts/masked-action.ts";
import { type HeldProps, HiddenValues } from "./decide.tsx";
import { Folded, Unread } from "./decision-bar.tsx";
import { Button, PostForm, ReasonField } from "../ui/form.tsx";
import { Layout, render } from "../ui/layout.tsx";
import { Problem, Time } from "../ui/parts.tsx";
import { RequestParts } from "./request.tsx";
import { AskedFacts } from "./request-pane.tsx";
import { waitingText } from "../ui/text.ts";

interface ConfirmProps extends HeldProps {
  readonly expiresAt: Date;
  /** Which link of the mail was opened. */
  readonly decision: Decision;
  /** The page of the whole body. */
  readonly bodyPath: string;
}

/**
 * The page of an approval link: who asks for what, what to look at twice, the masked request, and below it two buttons, the
 * one of the link first.
 */
export function confirmPage({
  expiresAt,
  decision,
  bodyPath,
  history,
  problem,
  reason,
  ...props
}: ConfirmProps): string {
  const action = asSent(props.action);
  const body = pageBody(action, limitsOnPage(action));
  const verb = decision === "approve" ? "Approve" : "Reject";
  return render(
    <Layout title={`${verb} a request?`} isStandalone>
      <article class="paper paper-asked">
        <h1>{`${verb} this request?`}</h1>
        <h2 class="visually-hidden">Request</h2>
        <AskedFacts action={action} history={history} now={null} hidden={<HiddenValues action={action} />}>
          <RequestParts action={action} isAsked isWhole bodyKind={bodyKindText(action)} bodyPath={bodyPath} />
        </AskedFacts>
        <footer class="foot">
          <p>{waitingText(action)}</p>
          <p>
            This link expires at <Time at={expiresAt} />. Secrets are masked as ••••. The request is sent with the real
            values.
          </p>
        </footer>
      </article>
      <DecisionBar
        main={decision}
        unread={body?.rest ?? null}
        folded={body?.folded ?? 0}
        problem={problem}
        reason={reason}
      />
    </Layout>,
  );
}

interface DecisionBarProps {
  /** The first button. */
  readonly main: Decision;
  /** What of the body is on another page. */
  readonly unread: string | null;
  readonly folded: number;
  readonly problem: string | undefined;
  readonly reason: string | undefined;
}

/** It stays in view. Both buttons are as large: the link says only which one comes first. */
function DecisionBar({ main, unread, folded, problem, reason }: DecisionBarProps) {
  const approve = (
    <Button name="decision" value="approve" look={main === "approve" ? "main" : "plain"}>
      <span>
        Approve
        <Unread what={unread} />
        <Folded count={folded} />
      </span>
    </Button>
  );
  const reject = (
    <Button name="decision" value="reject" look={main === "reject" ? "danger" : "bad"}>
      Reject
    </Button>
  );
  return (
    <section id="decision" class="decision-bar" aria-label="Your decision">
      <p class="more-below">Read to the end first ↓</p>
      <PostForm>
        <Problem text={problem} />
        <div class="choices">{main === "approve" ? [approve, reject] : [reject, approve]}</div>
        <details open={problem !== undefined || (reason ?? "") !== ""}>
          <summary>Add a reason</summary>
          <ReasonField value={reason} hint="Shown to the requester and on the receipt." />
        </details>
      </PostForm>
    </section>
  );
}
