/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import { APPROVAL_LINK_MS } from "../domain/limits.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import { maskedEntry } from "../contract/masked.ts";
import { Answer } from "./answer.tsx";
import { lastDecision } from "./decided.ts";
import { History } from "./history.tsx";
import { Layout } from "./layout.tsx";
import { ActionFacts } from "./action-facts.tsx";
import { StatusChip } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import { shown } from "./shown.ts";
import { summaryOf } from "./summary.ts";
import { duration } from "./words.ts";

export interface ReceiptProps {
  readonly action: Action;
  readonly timeline: readonly TimelineEntry[];
}

/** The page of one action for whoever has its link (spec "Receipt page"): what was asked, done and answered, masked. */
export function receiptPage(props: ReceiptProps): string {
  const action = shown(props.action, "public");
  return render(
    <Layout title={`${action.method} ${action.host}`} isAlone>
      <div class="head">
        <p class="quiet small">Receipt</p>
        <h1>
          {action.method} {action.host}
        </h1>
        <StatusChip status={action.status} />
        <p>{summaryOf(action, lastDecision(props.timeline)?.type === "rejected")}</p>
        {action.status === "awaiting_approval" ? <p class="quiet on-screen">{howToDecide(action)}</p> : null}
      </div>
      <ActionFacts action={action} />
      <History timeline={props.timeline.map((entry) => maskedEntry(entry, "public"))} />
      <RequestView action={action} />
      <Answer action={action} />
      <p class="foot">Secrets in it are shown as ••••.</p>
    </Layout>,
  );
}

/** A link of a mail leads here when its days are over: whoever meant to decide is not left without a way. */
function howToDecide({ notifyEmail }: Action): string {
  const links =
    notifyEmail === null ? "" : `by the links of the approval mail, which work for ${duration(APPROVAL_LINK_MS)}, or `;
  return `This page only shows it. It is decided ${links}under Approvals by somebody who logs in to Outgate.`;
}
