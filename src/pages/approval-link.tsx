/** @jsxImportSource hono/jsx */
import type { Decision } from "../core/action.ts";
import { limitsOnPage, pageBody } from "../ui/body-view.tsx";
import { asSent } from "../receipts/masked-action.ts";
import { DecisionForm } from "./decision-form.tsx";
import { Layout, render } from "../ui/layout.tsx";
import { Time } from "../ui/parts.tsx";
import { AskedRequest, type HeldRequest } from "./request-pane.tsx";
import { waitingText } from "../ui/text.ts";

interface ConfirmProps extends HeldRequest {
  /** What was wrong with the form before. The input is kept. */
  readonly problem?: string;
  readonly reason?: string;
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
  digest,
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
        <AskedRequest action={action} history={history} body={body} bodyPath={bodyPath} user={null} now={null} />
        <footer class="foot">
          <p>{waitingText(action)}</p>
          <p>
            This link expires at <Time at={expiresAt} />. Secrets are masked as ••••. The request is sent with the real
            values.
          </p>
        </footer>
      </article>
      {/* It stays in view. Both buttons are as large: the link says only which one comes first. */}
      <section id="decision" class="decision-bar" aria-label="Your decision">
        <p class="more-below">Read to the end first ↓</p>
        <DecisionForm
          user={null}
          requests={[{ id: action.id, run: action.run, digest }]}
          main={decision}
          unread={body?.rest ?? null}
          folded={body?.folded ?? 0}
          problem={problem}
          reason={reason}
        />
      </section>
    </Layout>,
  );
}
