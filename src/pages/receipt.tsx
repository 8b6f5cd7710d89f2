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

export interface ProblemProps {
  /** HTTP status of the answer. */
  readonly status: number;
  /** What went wrong and what to do, for people: never what somebody else wrote. */
  readonly message: string;
  /** Finds the request in the log. */
  readonly requestId: string;
  readonly user?: PageUser | null;
  /** In place of a page that stands alone. */
  readonly isAlone?: boolean;
}

const TITLES: Readonly<Record<number, string>> = {
  403: "Not allowed",
  404: "Page not found",
  405: "Not this way",
  421: "Not at this address",
  409: "Already decided",
  429: "Too many requests",
  500: "Something went wrong",
  503: "Not available just now",
};

/** What was typed goes along when the page is loaded again; back in the form it may be gone. */
const LATER = "Wait a moment and load this page again. If the browser asks whether to send the form again, say yes.";

/** Any error, for people. */
export function problemPage({ status, message, requestId, user = null, isAlone = false }: ProblemProps): string {
  const title = TITLES[status] ?? "That did not work";
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
          <a href="/">Go to the start page</a>
        </p>
      )}
      <p class="foot">{`If you ask for help, name this request: ${requestId}`}</p>
    </Layout>,
  );
}
