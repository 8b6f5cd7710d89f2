/** @jsxImportSource hono/jsx */
import type { Action } from "../domain/action.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import { maskedEntry } from "../contract/masked.ts";
import { lastDecision } from "./decided.ts";
import { ForeignBlock } from "./foreign.tsx";
import { Who } from "./happening.tsx";
import { History } from "./history.tsx";
import { Layout } from "./layout.tsx";
import { Facts, StatusChip, Time } from "./parts.tsx";
import { render } from "./render.ts";
import { RequestView } from "./request.tsx";
import { shown, shownAnswer } from "./shown.ts";
import { summaryOf } from "./summary.ts";
import { duration } from "./words.ts";

export interface ReceiptProps {
  readonly action: Action;
  readonly timeline: readonly TimelineEntry[];
}

/** The page of one action for whoever has its link (spec "Receipt page"): what was asked, done and answered, masked. */
export function receiptPage(props: ReceiptProps): string {
  const action = shown(props.action);
  return render(
    <Layout title={`${action.method} ${action.host}`} isAlone>
      <div class="head">
        <p class="quiet small">Receipt</p>
        <h1>
          {action.method} {action.host}
        </h1>
        <StatusChip status={action.status} />
        <p>{summaryOf(action, lastDecision(props.timeline)?.type === "rejected")}</p>
      </div>
      <Overview action={action} />
      <History timeline={props.timeline.map(maskedEntry)} />
      <RequestView action={action} />
      <Answer action={action} />
      <p class="foot">Secrets in it are shown as ••••.</p>
    </Layout>,
  );
}

function Overview({ action }: { readonly action: Action }) {
  const { approve, approvedBy, approvedAt, startedAt, finishedAt, result, attempts, retries } = action;
  const ms = result?.durationMs ?? null;
  const at = (time: Date | null) => (time === null ? null : <Time at={time} />);
  return (
    <section class="card" aria-label="Overview">
      <Facts
        rows={[
          ["Action", <span class="theirs">{action.id}</span>],
          ["Requested", <Time at={action.createdAt} />],
          ["Approval", approve ? null : "Not needed"],
          ["Approved by", approvedBy === null ? null : <Who actor={approvedBy} />],
          ["Approved at", at(approvedAt)],
          ["First attempt", at(startedAt)],
          ["Ended", at(finishedAt)],
          ["Attempts", `${attempts} of ${retries}`],
          ["Last attempt took", ms === null ? null : duration(ms)],
        ]}
      />
    </section>
  );
}

function Answer({ action }: { readonly action: Action }) {
  const { result } = action;
  if (result === null) return null;
  const { responseCode, responseBody, responseTruncated, lastError } = result;
  const answer = responseBody === null ? null : shownAnswer(responseBody);
  return (
    <section class="card" aria-labelledby="response">
      <h2 id="response">Response</h2>
      <p>{responseCode === null ? (lastError ?? "No answer came.") : `Status ${responseCode}`}</p>
      {answer === null ? (
        <p class="quiet">{responseCode === null ? "There is no answer to show." : "It had no body."}</p>
      ) : (
        <div class="stack">
          <h3>
            Body{" "}
            <span class="aside">
              {answer.kind}
              {responseTruncated ? ", cut: it was longer than what is kept" : ""}
            </span>
          </h3>
          {answer.text === null ? (
            <p class="quiet">Bytes that are no text are not shown.</p>
          ) : (
            <ForeignBlock label="Body of the response" text={answer.text} />
          )}
        </div>
      )}
    </section>
  );
}
