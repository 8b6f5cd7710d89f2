/** @jsxImportSource hono/jsx */
import type { Action } from "../actions/action.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import { APPROVAL_LINK_MS } from "../config/limits.ts";
import { maskedEntry } from "../receipts/masked-action.ts";
import { ActionFacts, RequesterSays } from "./action.tsx";
import { callText } from "./decide.tsx";
import { Layout, render } from "./layout.tsx";
import { PageHead, StatusDot } from "./parts.tsx";
import { maskForDisplay, RequestView, ResponseView } from "./request.tsx";
import { duration, lastDecision, summaryOf } from "./text.ts";
import { History } from "./timeline.tsx";

interface ReceiptPageProps {
  readonly action: Action;
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
}

/** The public page of one action, masked: request, history and response. */
export function receiptPage({ timeline, ...props }: ReceiptPageProps): string {
  const action = maskForDisplay(props.action, "public");
  return render(
    <Layout title={callText(action)} isStandalone>
      <PageHead title={callText(action)} kind="Receipt">
        <RequesterSays action={action} />
        <StatusDot status={action.status} />
        <p>{summaryOf(action, lastDecision(timeline)?.type === "rejected")}</p>
        {action.status === "awaiting_approval" ? <p class="quiet on-screen">{howToDecide(action)}</p> : null}
      </PageHead>
      <ActionFacts action={action} />
      <History timeline={timeline.map((entry) => maskedEntry(entry, "public"))} />
      <RequestView action={action} />
      <ResponseView action={action} />
      <p class="foot">Secrets are masked as ••••.</p>
    </Layout>,
  );
}

/** Expired approval links redirect here, so the page says where to decide. */
function howToDecide({ notifyEmail }: Action): string {
  const links =
    notifyEmail === null
      ? ""
      : `use the links in the approval email, which work for ${duration(APPROVAL_LINK_MS)}, or `;
  return `This page is read-only. To decide, ${links}log in to Outgate and open Approvals.`;
}
