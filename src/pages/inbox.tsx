/** @jsxImportSource hono/jsx */
import type { Requester } from "../../db/store.ts";
import type { Action } from "../actions/action.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import { type DecisionHistory, maskedFacts, NO_HISTORY } from "../approvals/facts.ts";
import { COUNTED_MAX } from "../config/limits.ts";
import { maskedEntry } from "../receipts/masked-action.ts";
import { shownBody } from "./body-view.tsx";
import { callText, DecisionFactList, DecisionForm, type HeldProps, HiddenValues, Risks } from "./decide.tsx";
import { mayDo, type Viewer, viewerOf } from "../accounts/roles.ts";
import { Layout, render } from "./layout.tsx";
import { Ago, LinkButton, Notice, PageHead, UntrustedText } from "./parts.tsx";
import { FilterLinks } from "./controls.tsx";
import { maskForDisplay, RequestParts } from "./request.tsx";
import { lastDecision, type PageUser, waitingText } from "./text.ts";
import { ActorName } from "./timeline.tsx";

/** The result of a decision, shown above the list. */
export interface InboxOutcome {
  readonly action: Action;
  readonly timeline: readonly TimelineEntry[];
  readonly receiptUrl: string;
}

interface InboxProps {
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
    <Layout title={title} nav="Approvals" user={user} follows="all" now={now}>
      <PageHead title="Approvals">
        <p id="count" class="quiet" role="status" data-live="">
          {countText(count, after !== null, by === null && requesters.length > 1)}
        </p>
      </PageHead>
      {outcome === null ? null : <Outcome {...outcome} viewer={viewerOf(user.role)} />}
      <div id="requesters" class="filters" data-live="">
        {requesters.length > 1 || by !== null ? <Requesters requesters={requesters} by={by} /> : null}
      </div>
      <ol id="waiting" class="cards" data-live="items">
        {actions.map((action) => (
          <HeldCard action={action} history={histories.get(action.id) ?? NO_HISTORY} user={user} now={now} />
        ))}
      </ol>
      <div id="empty" data-live="">
        {count === 0 ? (
          <section class="card">
            <p>
              Requests appear here when they are created with <code>"approve": true</code>, or with a key that has a
              hold. They are not sent until you approve them.
            </p>
          </section>
        ) : null}
      </div>
      <div id="pager" data-live="">
        {after === null ? null : <LinkButton href={pagePath(after, by)}>Next page</LinkButton>}
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
  const links = requesters.map(({ keyId, createdBy, count }) => ({
    href: pagePath(null, keyId),
    name: (
      <>
        <UntrustedText text={createdBy.slice(createdBy.indexOf(":") + 1)} />
        {` (${count === COUNTED_MAX ? `${count}+` : count})`}
      </>
    ),
    isChosen: by === keyId,
  }));
  return (
    <FilterLinks
      label="Requested by"
      links={[{ href: "/approvals", name: "Everyone", isChosen: by === null }, ...links]}
    />
  );
}

function countText(count: number, isMore: boolean, isShared: boolean): string {
  if (isMore && isShared) return `${count} requests on this page, the oldest of each requester. There are more.`;
  if (isMore) return `${count} requests on this page, oldest first. There are more.`;
  if (count === 0) return "You're all caught up.";
  return count === 1 ? "1 request is waiting for you." : `${count} requests are waiting for you, oldest first.`;
}

/** How much of a body a card shows. */
const BODY_LIMITS = { lines: 12, chars: 800 };

function HeldCard({ history, user, now, ...props }: HeldProps & { readonly now: Date }) {
  const action = maskForDisplay(props.action, viewerOf(user.role));
  const mayDecide = mayDo(user.role, "approve");
  const { facts, risks } = maskedFacts(props.action, history, "");
  const path = `/approvals/${action.id}`;
  const body = shownBody(action, BODY_LIMITS);
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
        {action.run === 1 && action.callback === null ? null : <p class="small">{waitingText(action)}</p>}
        {mayDecide ? <Risks risks={risks} /> : null}
        {mayDecide ? <HiddenValues action={action} user={user} /> : null}
      </div>
      <div class="asked" data-asked="">
        {mayDecide ? <DecisionFactList facts={facts} /> : null}
        <RequestParts action={action} isAsked cut={body === null ? undefined : { body, path }} />
      </div>
      <p class="notice notice-wait" data-gone="" hidden>
        Someone has already decided on this request.
      </p>
      {mayDecide ? (
        <DecisionForm user={user} run={action.run} path={path} unread={body?.rest} about={action} />
      ) : (
        <p class="quiet small">Your role can’t decide: approvers and owners of the account can.</p>
      )}
    </li>
  );
}

function Outcome({ action, timeline, receiptUrl, viewer }: InboxOutcome & { readonly viewer: Viewer }) {
  const decision = lastDecision(timeline.map((entry) => maskedEntry(entry, viewer)));
  if (decision === null) return null;
  return (
    <Notice tone={decision.type === "approved" ? "good" : "wait"}>
      <b>{callText(action)}</b> {`was ${decision.type} by `}
      <ActorName actor={decision.actor} />. <a href={receiptUrl}>View receipt</a>
    </Notice>
  );
}
