/** @jsxImportSource hono/jsx */
import type { Action } from "../actions/action.ts";
import { APPROVAL_LINK_MS } from "../config/limits.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import { maskedEntry } from "../receipts/masked-action.ts";
import { Answer, RequestView, shown } from "./request.tsx";
import { lastDecision, summaryOf, duration, type PageUser } from "./words.ts";
import { History } from "./timeline.tsx";
import { Layout, render } from "./layout.tsx";
import { ActionFacts } from "./action.tsx";
import { StatusChip } from "./parts.tsx";

export interface ReceiptProps {
  readonly action: Action;
  readonly timeline: readonly TimelineEntry[];
}

/** The public page of one action, masked: request, history and response. */
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

export interface ProblemProps {
  /** HTTP status of the answer. */
  readonly status: number;
  /** Shown as it is: it must not contain untrusted text. */
  readonly message: string;
  readonly requestId: string;
  readonly user?: PageUser | null;
  /** For routes whose pages load no other files. */
  readonly isAlone?: boolean;
}

const TITLES: Readonly<Record<number, string>> = {
  403: "Not allowed",
  404: "Page not found",
  405: "Method not allowed",
  421: "Wrong address",
  409: "Already decided",
  429: "Too many requests",
  500: "Something went wrong",
  503: "Temporarily unavailable",
};

/** Reloading sends the form again; going back could lose what was typed. */
const LATER = "Wait a moment and reload this page. If your browser asks whether to send the form again, confirm.";

/** The page of any error. */
export function problemPage({ status, message, requestId, user = null, isAlone = false }: ProblemProps): string {
  const title = TITLES[status] ?? "Request failed";
  return render(
    <Layout title={title} user={user} isAlone={isAlone}>
      <div class="head">
        <p class="quiet small">{`Error ${status}`}</p>
        <h1>{title}</h1>
      </div>
      <p>{message}</p>
      {status === 503 ? <p>{LATER}</p> : null}
      {isAlone ? null : (
        <p>
          <a href="/">Go to the home page</a>
        </p>
      )}
      <p class="foot">{`If you ask for help, include this request ID: ${requestId}`}</p>
    </Layout>,
  );
}
