/** @jsxImportSource hono/jsx */
import { maskedEntry } from "../receipts/masked-action.ts";
import type { Action } from "../actions/action.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import { COUNTED_MAX } from "../config/limits.ts";
import { type DecisionHistory, maskedFacts, NO_HISTORY } from "../approvals/facts.ts";
import type { Requester } from "../../db/store.ts";
import { type Decided, lastDecision, cutText, waitingWords, type PageUser } from "./words.ts";
import { DecisionForm } from "./decide.tsx";
import { DecisionFactList, Risks, HiddenValues } from "./facts.tsx";
import { UntrustedText } from "./code.tsx";
import { By } from "./timeline.tsx";
import { EVERYTHING, Layout, render } from "./layout.tsx";
import { prettyPrint } from "../json/json.ts";
import { Ago, Notice } from "./parts.tsx";
import { RequestParts, shown } from "./request.tsx";

/** The result of a decision, shown above the list. */
export interface InboxOutcome {
  readonly action: Action;
  readonly timeline: readonly TimelineEntry[];
  readonly receiptUrl: string;
}

export interface InboxProps {
  readonly user: PageUser;
  /** Oldest first. */
  readonly actions: readonly Action[];
  /** The history of each, by its ID. */
  readonly histories: ReadonlyMap<string, DecisionHistory>;
  /** The cursor of the next page; null if there is none. */
  readonly after: string | null;
  readonly requesters: readonly Requester[];
  /** The key to filter by; null: all keys. */
  readonly by: string | null;
  readonly outcome: InboxOutcome | null;
  readonly now: Date;
}

/** The inbox: held requests, each with a form to decide. */
export function inboxPage({ user, actions, histories, after, requesters, by, outcome, now }: InboxProps): string {
  const count = actions.length;
  const title = count === 0 ? "Approvals" : `(${count}${after === null ? "" : "+"}) Approvals`;
  return render(
    <Layout title={title} place="Approvals" user={user} follows={EVERYTHING} now={now}>
      <div class="head">
        <h1>Approvals</h1>
        <p id="count" class="quiet" role="status" data-live="">
          {countOf(count, after !== null, by === null && requesters.length > 1)}
        </p>
      </div>
      {outcome === null ? null : <Outcome outcome={outcome} />}
      <div id="requesters" class="filters" data-live="">
        {requesters.length > 1 || by !== null ? <Requesters requesters={requesters} by={by} /> : null}
      </div>
      <ol id="waiting" class="cards" data-live="items">
        {actions.map((action) => (
          <Held action={action} history={histories.get(action.id) ?? NO_HISTORY} user={user} now={now} />
        ))}
      </ol>
      <div id="empty" data-live="">
        {count === 0 ? <Empty /> : null}
      </div>
      <div id="pager" data-live="">
        {after === null ? null : (
          <a class="button button-plain" href={pagePath(after, by)}>
            Next page
          </a>
        )}
      </div>
      <p class="foot">Secrets are masked as ••••. The requests are sent with the real values.</p>
    </Layout>,
  );
}

/** The value of `by` for requests without a key. */
export const NO_KEY = "none";

function pagePath(after: string | null, by: string | null): string {
  const query = new URLSearchParams();
  if (after !== null) query.set("after", after);
  if (by !== null) query.set("by", by === "" ? NO_KEY : by);
  return query.size === 0 ? "/approvals" : `/approvals?${query.toString()}`;
}

/** The requesters with their number of requests, as filters. */
function Requesters({ requesters, by }: Pick<InboxProps, "requesters" | "by">) {
  return (
    <nav aria-label="Requested by">
      <ul>
        <li>
          <a href="/approvals" aria-current={by === null ? "true" : undefined}>
            Everyone
          </a>
        </li>
        {requesters.map(({ keyId, createdBy, count }) => (
          <li>
            <a href={pagePath(null, keyId)} aria-current={by === keyId ? "true" : undefined}>
              <UntrustedText text={createdBy.slice(createdBy.indexOf(":") + 1)} /> (
              {count === COUNTED_MAX ? `${count}+` : count})
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function countOf(count: number, isMore: boolean, isShared: boolean): string {
  if (isMore && isShared) return `${count} requests on this page, the oldest of each requester. There are more.`;
  if (isMore) return `${count} requests on this page, oldest first. There are more.`;
  if (count === 0) return "You're all caught up.";
  return count === 1 ? "1 request is waiting for you." : `${count} requests are waiting for you, oldest first.`;
}

interface HeldProps {
  readonly action: Action;
  readonly history: DecisionHistory;
  readonly user: PageUser;
  readonly now: Date;
}

/** How much of a body a card shows. */
const BODY_SHOWN = { lines: 12, chars: 800 };

function Held({ history, user, now, ...props }: HeldProps) {
  const action = shown(props.action, "decider");
  const { facts, risks } = maskedFacts(props.action, history, "");
  const path = `/approvals/${action.id}`;
  const cut = action.body === null ? null : cutText(prettyPrint(action.body), BODY_SHOWN);
  return (
    <li id={action.id} class="card held">
      <div class="stack">
        <h2>
          <a href={path} data-item="">
            {action.method} <UntrustedText text={action.host} />
          </a>
        </h2>
        <p class="quiet small">
          <Ago at={action.createdAt} now={now} />
        </p>
        {action.run === 1 && action.callback === null ? null : <p class="small">{waitingWords(action)}</p>}
        <Risks risks={risks} />
        <HiddenValues action={action} user={user} />
      </div>
      <div class="asked" data-asked="">
        <DecisionFactList facts={facts} />
        <RequestParts action={action} isAsked cut={cut === null ? undefined : { ...cut, path }} />
      </div>
      <p class="notice notice-wait" data-gone="" hidden>
        Someone has already decided on this request.
      </p>
      <DecisionForm user={user} run={action.run} path={path} unread={cut?.rest} about={action} />
    </li>
  );
}

function Empty() {
  return (
    <section class="card empty">
      <p>
        Requests appear here when they are created with <code>"approve": true</code>, or with a key that has a hold.
        They are not sent until you approve them.
      </p>
    </section>
  );
}

function Outcome({ outcome }: { readonly outcome: InboxOutcome }) {
  const { action, timeline, receiptUrl } = outcome;
  const decided = lastDecision(timeline.map((entry) => maskedEntry(entry, "decider")));
  if (decided === null) return null;
  return (
    <Notice tone={decided.type === "approved" ? "good" : "wait"}>
      <b>
        {action.method} {action.host}
      </b>{" "}
      <By verb={VERBS[decided.type]} actor={decided.actor} />. <a href={receiptUrl}>View receipt</a>
    </Notice>
  );
}

const VERBS: Readonly<Record<Decided["type"], string>> = {
  created: "was requested",
  approved: "was approved",
  rejected: "was rejected",
  cancelled: "was cancelled",
  retried: "was retried",
  paused: "was paused",
  resumed: "was resumed",
};
