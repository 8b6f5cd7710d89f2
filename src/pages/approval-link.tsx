/** @jsxImportSource hono/jsx */
import type { Decision } from "../actions/status.ts";
import { maskedFacts } from "../approvals/facts.ts";
import { DecisionFactList, type HeldProps, HiddenValues, Risks, SecretsMasked } from "./decide.tsx";
import { Button, PostForm, ReasonField } from "./form.tsx";
import { Layout, render } from "./layout.tsx";
import { Problem, Time, UntrustedText } from "./parts.tsx";
import { maskForDisplay, RequestView, UntrustedUrl } from "./request.tsx";
import { waitingText } from "./text.ts";
import { ActorName } from "./timeline.tsx";

interface ConfirmProps extends HeldProps {
  readonly expiresAt: Date;
  /** Which link of the mail was opened. */
  readonly decision: Decision;
}

/** What stands in the head of the page already. */
const IN_HEAD: ReadonlySet<string> = new Set(["title", "method", "url", "requester"]);

/**
 * The page of an approval link: who asks for what, what to look at twice, the masked request, and a bar with two buttons
 * that stays in view; the one of the link first.
 */
export function confirmPage({ expiresAt, decision, history, problem, reason, ...props }: ConfirmProps): string {
  const action = maskForDisplay(props.action, "decider");
  const { facts, risks } = maskedFacts(props.action, history, "");
  const verb = decision === "approve" ? "Approve" : "Reject";
  return render(
    <Layout title={`${verb} a request?`} isStandalone>
      <article class="paper paper-asked">
        <header class="paper-head">
          <p class="paper-kind quiet">Approval</p>
          <h1>{`${verb} this request?`}</h1>
          <p>
            <ActorName actor={action.createdBy} /> asks to send this call:
          </p>
          {action.title === null ? null : (
            <p>
              <span class="quiet">Requester says:</span> <UntrustedText text={action.title} />
            </p>
          )}
          <p class="line asked-call">
            <b class="method">{action.method}</b> <UntrustedUrl url={action.url} host={action.host} />
          </p>
          <Risks risks={risks} />
          <p class="quiet">{waitingText(action)}</p>
          <HiddenValues action={action} />
        </header>
        <RequestView action={action} isAsked />
        <section class="card" aria-labelledby="details">
          <h2 id="details">Details</h2>
          <DecisionFactList
            facts={facts.filter(({ name }) => !IN_HEAD.has(name))}
            rows={[["Link expires", <Time at={expiresAt} />]]}
          />
        </section>
        <SecretsMasked />
      </article>
      <DecisionBar main={decision} problem={problem} reason={reason} />
    </Layout>,
  );
}

interface DecisionBarProps {
  /** The first button. */
  readonly main: Decision;
  readonly problem: string | undefined;
  readonly reason: string | undefined;
}

/** Stays at the lower edge of the window. Both buttons are as large: the link says only which one comes first. */
function DecisionBar({ main, problem, reason }: DecisionBarProps) {
  const approve = (
    <Button name="decision" value="approve" look={main === "approve" ? "main" : "plain"}>
      Approve
    </Button>
  );
  const reject = (
    <Button name="decision" value="reject" look={main === "reject" ? "danger" : "bad"}>
      Reject
    </Button>
  );
  return (
    <section id="decision" class="decision-bar" aria-label="Your decision">
      <PostForm>
        <Problem text={problem} />
        <div class="choices">{main === "approve" ? [approve, reject] : [reject, approve]}</div>
        <details open={problem !== undefined}>
          <summary>Add a reason</summary>
          <ReasonField value={reason} hint="Shown to the requester and on the receipt." />
        </details>
      </PostForm>
    </section>
  );
}
