/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { type ActionStatus, nextRetryAt } from "../../core/action.ts";
import { pastAttempts } from "../../core/changes.ts";
import type { TimelineEntry } from "../../core/timeline.ts";
import { APPROVAL_LINK_MS, RECEIPT_BODY_BYTES_MAX } from "../../core/limits.ts";
import {
  EARLIER_PARAMETER,
  type ReceiptHistory,
  receiptHistory,
  type ReceiptReload,
  RELOAD_PARAMETER,
} from "../../receipts/receipt.ts";
import { asSent, maskedTimeline } from "../../receipts/masked-action.ts";
import type { MaskedAction, SeenAction } from "../../receipts/seen-action.ts";
import { Story } from "./action-story.tsx";
import { Attempts } from "./attempts.tsx";
import { pageBody } from "../../ui/body-view.tsx";
import { actionPath, Layout, render } from "../../ui/layout.tsx";
import {
  Card,
  type FactRows,
  Facts,
  LinkButton,
  Problem,
  StatusDot,
  time,
  type Tone,
  untrusted,
  actorName,
} from "../../ui/parts.tsx";
import { callLine, callText, RequestParts } from "../../ui/request.tsx";
import { ResponseView } from "./response.tsx";
import { counted, duration, lastDecision } from "../../ui/text.ts";
import { timeAgo } from "../../core/clock.ts";
import { History } from "./timeline.tsx";

interface ReceiptPageProps {
  readonly action: MaskedAction;
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
  /** How many parts are newer than the shown one; default 0. */
  readonly part?: number;
  readonly now: Date;
  /** When the browser reloads it; null if it is final. */
  readonly reload: ReceiptReload | null;
  /** Whether the reader has just pressed a button of the approval mail too late to count. */
  readonly isLate?: boolean;
}

/** The public, masked page of one action: who asked for what, who approved it and when, and what came back. */
export function receiptPage({ part = 0, now, reload, isLate = false, ...props }: ReceiptPageProps): string {
  const timeline = maskedTimeline(props.timeline, props.action);
  const history = receiptHistory(timeline, part);
  const action = asSent(props.action);
  const { title } = action;
  const isRejected = lastDecision(timeline)?.type === "rejected";
  return render(
    <Layout title={`Receipt: ${callText(action)}`} isStandalone>
      <article class="paper">
        {isLate ? (
          <Problem text="Your decision did not count: this request was decided before, or the link is no longer valid." />
        ) : null}
        <header class="paper-head">
          <div class="between">
            <p class="quiet small">Receipt</p>
            <Stamp action={action} isRejected={isRejected} />
          </div>
          {title === null ? (
            <h1 class="paper-call">{callLine(action)}</h1>
          ) : (
            <>
              <p class="quiet small">Requester says:</p>
              <h1>
                <q class="title">{untrusted(title)}</q>
              </h1>
              <p class="paper-call">{callLine(action)}</p>
            </>
          )}
          <Story action={action} timeline={timeline} role="reader" now={now} />
          {reload === null ? null : <Reloading reload={reload} />}
          {action.status === "awaiting_approval" ? <HowToDecide action={action} /> : null}
        </header>
        <Attempts
          action={action}
          timeline={timeline}
          attempts={pastAttempts(action, timeline, [])}
          chosen={null}
          isLinked={false}
          now={now}
        />
        <section aria-label="Facts">
          <Facts rows={receiptFacts(action, timeline, now)} />
        </section>
        <ResponseView action={action} charsMax={RECEIPT_BODY_BYTES_MAX} />
        <ReceiptRequest action={action} />
        <History timeline={history.entries}>
          <Parts history={history} />
        </History>
        <footer class="foot stack">
          <p>
            Action <span class="untrusted">{action.id}</span>, as of {time(now)}. Secrets are masked as ••••.
          </p>
        </footer>
      </article>
    </Layout>,
  );
}

/** Says how and when an action ended, or its status if it has not. */
function Stamp({ action, isRejected }: { readonly action: SeenAction; readonly isRejected: boolean }) {
  const { status, result, finishedAt } = action;
  const code = result?.responseCode ?? null;
  const stamp = STAMPS[isRejected ? "rejected" : status];
  if (finishedAt === null || stamp === undefined) return <StatusDot status={status} />;
  const { tone, word } = stamp;
  return (
    <p class={`stamp stamp-${tone}`}>
      <b>{`${word}${code === null || status === "cancelled" ? "" : ` ${code}`}`}</b>
      {time(finishedAt)}
    </p>
  );
}

const STAMPS: Readonly<Partial<Record<ActionStatus | "rejected", { readonly tone: Tone; readonly word: string }>>> = {
  completed: { tone: "good", word: "Delivered" },
  failed: { tone: "bad", word: "Failed" },
  cancelled: { tone: "still", word: "Cancelled" },
  rejected: { tone: "bad", word: "Rejected" },
};

/** Lets readers stop the reloading, which may interrupt them (WCAG 2.2.2). The links keep the secret path. */
function Reloading({ reload: { seconds, isOn } }: { readonly reload: ReceiptReload }) {
  return (
    <p class="on-screen small quiet">
      {isOn
        ? `This page loads again every ${duration(seconds * 1_000)} until the action has ended.`
        : "This page stays as it is. The action has not ended."}{" "}
      <a href={`?${RELOAD_PARAMETER}=${isOn ? "off" : "on"}`}>{isOn ? "Stop reloading" : "Reload automatically"}</a>
    </p>
  );
}

/** The body, or the beginning of a long one and where people with a login see the rest. */
function ReceiptRequest({ action }: { readonly action: SeenAction }) {
  const isLong = (action.body?.length ?? 0) > RECEIPT_BODY_BYTES_MAX;
  const limits = isLong ? { lines: Number.POSITIVE_INFINITY, chars: RECEIPT_BODY_BYTES_MAX } : undefined;
  const more = <a href={actionPath(action.id)}>View the whole request</a>;
  return (
    <Card id="request" title="Request">
      <RequestParts
        action={action}
        isAsked
        isOpen={isLong}
        body={pageBody(action, limits)}
        more={isLong ? more : null}
      />
      {action.body === null ? <p class="quiet">No body is sent.</p> : null}
    </Card>
  );
}

/** Says which part of a long timeline follows, with links to the others. Shows nothing for a short one. */
function Parts({ history: { entries, part, hasEarlier, attempts, isCut } }: { readonly history: ReceiptHistory }) {
  if (part === 0 && !hasEarlier) return null;
  const shown = entries.filter(({ event }) => event.type === "attempt").length;
  const all = `${isCut ? "more than " : ""}${counted(attempts, "attempt")}`;
  return (
    <p class="small quiet">
      {part === 0 ? `The newest ${shown} of ${all}.` : `${shown} earlier ones of ${all}.`}{" "}
      {hasEarlier ? <a href={`?${EARLIER_PARAMETER}=${part + 1}`}>Earlier entries</a> : null}{" "}
      {part === 0 ? null : <a href="?">Newest entries</a>}
    </p>
  );
}

function receiptFacts(action: SeenAction, timeline: readonly TimelineEntry[], now: Date): FactRows {
  const { createdBy, createdAt, approve, approvedBy, approvedAt, startedAt, finishedAt, result } = action;
  const at = (when: Date | null) => (when === null ? null : <Moment at={when} now={now} />);
  const next = nextRetryAt(action);
  const ms = result?.durationMs ?? null;
  const rejected = timeline.findLast(({ event }) => event.type === "rejected");
  return [
    ["Requested by", actorName(createdBy)],
    ["Requested", at(createdAt)],
    ["Approval", approve ? null : "Not required"],
    ["Approved by", approvedBy === null ? null : actorName(approvedBy)],
    ["Approved", at(approvedAt)],
    ["Rejected", approvedBy === null && rejected !== undefined ? at(rejected.at) : null],
    ["First attempt", at(startedAt)],
    ["Ended", at(finishedAt)],
    ["Run", action.run === 1 ? null : String(action.run)],
    ["Next attempt", next === null ? null : <Moment at={next} now={now} />],
    ["Attempts", `${action.attempts} of ${action.retries}`],
    ["Last attempt took", ms === null ? null : duration(ms)],
  ];
}

/** A time in both forms, since no script converts it to the reader's zone. */
function Moment({ at, now }: { readonly at: Date; readonly now: Date }): Child {
  const ms = now.getTime() - at.getTime();
  const apart = ms >= 0 ? timeAgo(ms) : `in ${duration(Math.ceil(-ms / 1_000) * 1_000)}`;
  return (
    <>
      {time(at)} <span class="quiet">({apart})</span>
    </>
  );
}

/** Says where to decide, because expired approval links lead here. */
function HowToDecide({ action: { id, notifyEmail } }: { readonly action: SeenAction }) {
  return (
    <div class="notice notice-wait on-screen">
      <p>
        {notifyEmail === null
          ? "This page is read-only. To decide, log in to Outgate."
          : `This page is read-only. To decide, log in to Outgate, or use the links in the approval email, which work for ${duration(APPROVAL_LINK_MS)}.`}
      </p>
      <LinkButton href={`/approvals/${id}`}>Log in to decide</LinkButton>
    </div>
  );
}
