/** @jsxImportSource hono/jsx */
import type { DecisionPageProps } from "./decision-form.tsx";
import { describeActor, mayDo, viewerOf } from "../core/roles.ts";
import { asSent, maskedActor, maskedTimeline } from "../receipts/masked-action.ts";
import type { Inbox } from "../approvals/held.ts";
import type { MaskedAction, SeenAction } from "../receipts/seen-action.ts";
import type { Grant } from "../core/grant.ts";
import type { TimelineEntry } from "../core/timeline.ts";
import { COUNTED_MAX, DECISIONS_AT_ONCE_MAX, HELD_COUNTED_MAX, HELD_REQUESTERS_SHOWN_MAX } from "../core/limits.ts";
import { CredentialRow, type SeenCredentialRequest } from "./credential-request.tsx";
import { EmptyState, FilterMenu, Skeleton } from "../ui/controls.tsx";
import {
  listedGroups,
  RequestRow,
  GroupRow,
  reviewPath,
  ageIn,
  AGES,
  inboxPath,
  type InboxQuery,
  requestPath,
  REVIEW_PATH,
} from "./inbox-list.tsx";
import { actionPath, Layout, OVERVIEW_PATH, render } from "../ui/layout.tsx";
import { LinkButton, Problem, time, untrusted } from "../ui/parts.tsx";
import { ListedStatus, Note, requestTitle } from "./action-row.tsx";
import { callLine } from "./request.tsx";
import { SETTINGS_PATHS } from "./settings-frame.tsx";
import { actorName } from "./timeline.tsx";
import { type HeldRequest, type LookAlikes, RequestPane } from "./decision.tsx";
import { Icon } from "../ui/icons.tsx";
import { ReviewPane } from "./review.tsx";
import { counted, duration, lastDecision, number } from "../ui/text.ts";

/** What the inbox shows beside the list. */
export type InboxPane =
  /** `isChosen`: the address names it. Otherwise it is the next one, phones show the list, and a long body is cut. */
  | ({ readonly kind: "request"; readonly isChosen: boolean } & HeldRequest)
  | { readonly kind: "decided"; readonly decided: DecidedRequest }
  | {
      readonly kind: "review";
      readonly requests: readonly HeldRequest[];
      readonly rest: readonly string[];
      readonly goneCount: number;
    }
  | { readonly kind: "none" };

/** The inbox as the person sees it. */
export interface SeenInbox extends Omit<Inbox, "actions"> {
  readonly actions: readonly MaskedAction[];
}

export interface InboxProps extends DecisionPageProps {
  readonly inbox: SeenInbox;
  /** All waiting requests for credentials. */
  readonly requests: readonly SeenCredentialRequest[];
  readonly query: InboxQuery;
  readonly pane: InboxPane;
  /** The requests decided just now, shown above the list. */
  readonly decided: readonly DecidedRequest[];
}

export function inboxPage(props: InboxProps): string {
  const { user, inbox, requests, query, pane, decided, now } = props;
  const { actions, histories, after, total } = inbox;
  const mayDecide = mayDo(user.role, "approve");
  const groups = listedGroups(actions, histories, user);
  const openId = pane.kind === "request" ? pane.action.id : null;
  const isChosen = pane.kind !== "none" && (pane.kind !== "request" || pane.isChosen);
  const selected = new Set(pane.kind === "review" ? pane.requests.map(({ action }) => action.id) : []);
  const rowProps = { mayDecide, query, openId, isPart: query.after !== null || after !== null, selected, now };
  const all = total + requests.length;
  const asked = requestsIn(requests, query, now);
  // What a screen reader says first: after a decision, what was decided.
  const done = new Set(decided.map((one) => `${decidedWord(decisionOf(one))} · `));
  const title = `${[...done].join("")}${all === 0 ? "" : `(${totalText(all)}) `}Approvals`;
  return render(
    <Layout title={title} nav="Approvals" width="full" user={user} follows="all" now={now}>
      <div id="inbox" class="inbox" data-open-path={openId === null ? undefined : requestPath(query, openId)}>
        <section class="inbox-list on-screen" aria-labelledby="inbox-title">
          <div class="inbox-head">
            <h1 id="inbox-title">Approvals</h1>
            <p id="count" class="quiet" role="status">
              {countText(props)}
            </p>
            {all === 0 ? null : <Filters {...props} />}
          </div>
          {/* Without: browsers that go back tick the boxes at the same places, where other requests may be by now. */}
          <form class="inbox-form" action={REVIEW_PATH} autocomplete="off">
            <ol id="waiting">
              {decided.map((one) => (
                <DecidedRow decided={one} now={now} />
              ))}
              {asked.map((request) => (
                <CredentialRow request={request} now={now} />
              ))}
              {groups.map((group) =>
                group.requests.length === 1 ? (
                  <RequestRow request={group.requests[0]} {...rowProps} />
                ) : (
                  <GroupRow group={group} {...rowProps} />
                ),
              )}
            </ol>
            <div id="pager" class="buttons inbox-pager">
              {query.after === null ? null : (
                <LinkButton href={inboxPath({ ...query, after: null })}>First page</LinkButton>
              )}
              {after === null ? null : <LinkButton href={inboxPath({ ...query, after })}>Next page</LinkButton>}
            </div>
            {mayDecide && actions.length > 0 ? (
              // Leads to a page that shows the requests. Decides nothing yet.
              <div class="selection">
                <span role="status" data-selected="">
                  Selected
                </span>
                <button type="submit" class="button-plain">
                  Review and decide
                </button>
                <span class="quiet small">{`At most ${DECISIONS_AT_ONCE_MAX}`}</span>
              </div>
            ) : null}
          </form>
          {actions.length + asked.length === 0 ? <NothingWaits isFiltered={all > 0} /> : null}
        </section>
        <section
          id="request"
          class="inbox-pane"
          aria-label="Request"
          tabindex={-1}
          data-chosen={isChosen ? "" : undefined}
        >
          {isChosen ? (
            <a class="back inbox-back on-screen" href={inboxPath(query)}>
              <Icon name="back" />
              All approvals
            </a>
          ) : null}
          <Pane {...props} alike={openId === null ? null : alikeIn(groups, openId)} />
          <Skeleton label="Loading the request" />
        </section>
      </div>
    </Layout>,
  );
}

/** The requests for credentials that the filter finds. They are on the first page. */
function requestsIn(
  requests: readonly SeenCredentialRequest[],
  { by, host, age, after }: InboxQuery,
  now: Date,
): readonly SeenCredentialRequest[] {
  const before = age === null ? now.getTime() : now.getTime() - AGES[age].ms;
  return requests.filter(
    (one) =>
      after === null &&
      (by === null || one.key_id === by) &&
      (host === null || one.host === host) &&
      one.createdAt.getTime() <= before,
  );
}

type Groups = ReturnType<typeof listedGroups>;

/** A request's place among its look-alikes; null if it has none. */
function alikeIn(groups: Groups, id: string): LookAlikes | null {
  for (const { requests } of groups) {
    const at = requests.findIndex(({ action }) => action.id === id);
    if (at === -1) continue;
    const ids = requests.map(({ action }) => action.id);
    return ids.length === 1 ? null : { place: at + 1, count: ids.length, path: reviewPath(ids) };
  }
  return null;
}

function Pane({ alike, ...props }: InboxProps & { readonly alike: LookAlikes | null }) {
  const { pane, query, inbox, user, now, problem, reason, grant } = props;
  const form = { user, now, problem, reason, grant };
  if (pane.kind === "request") {
    const path = requestPath(query, pane.action.id);
    return <RequestPane {...pane} path={path} isWhole={pane.isChosen} alike={alike} {...form} />;
  }
  if (pane.kind === "review") return <ReviewPane {...pane} {...form} />;
  if (pane.kind === "none") return null;
  const next = nextWaiting(inbox.actions, pane.decided.action.id);
  const nextPath = next === null ? null : requestPath(query, next.id);
  return <DecidedPane decided={pane.decided} nextPath={nextPath} problem={problem} now={now} />;
}

/** The request after a decided one in a list, oldest first, or else the first. */
export function nextWaiting<Listed extends { readonly id: string }>(
  actions: readonly Listed[],
  id: string,
): Listed | null {
  return actions.find((action) => action.id > id) ?? actions[0] ?? null;
}

function totalText(total: number): string {
  return total >= HELD_COUNTED_MAX ? `${number(total)}+` : number(total);
}

function countText({ inbox: { total, matching }, requests, query, now }: InboxProps): string {
  const all = totalText(total + requests.length);
  if (query.by === null && query.host === null && query.age === null) return `${all} awaiting approval`;
  const asked = requestsIn(requests, { ...query, after: null }, now).length;
  return `${totalText(matching + asked)} of ${all} awaiting approval`;
}

function Filters({ inbox: { requesters, hosts, hasMoreHosts }, query, user }: InboxProps) {
  const viewer = viewerOf(user.role);
  const path = (changes: Partial<InboxQuery>) => inboxPath({ ...query, after: null, ...changes });
  const named = (name: string, count: number) => (
    <>
      {untrusted(name)}
      <span class="quiet">{` ${number(count)}${count === COUNTED_MAX ? "+" : ""}`}</span>
    </>
  );
  return (
    <div class="toolbar">
      <FilterMenu
        label="Agent"
        all="Everyone"
        options={requesters.map(({ keyId, createdBy, count }) => [
          keyId,
          named(describeActor(maskedActor(createdBy, viewer)).name, count),
        ])}
        chosen={query.by}
        path={(by) => path({ by })}
        note={
          requesters.length < HELD_REQUESTERS_SHOWN_MAX
            ? undefined
            : `At most ${requesters.length} are listed: those that have waited longest.`
        }
      />
      <FilterMenu
        label="Host"
        all="Every host"
        options={hosts.map(({ host, count }) => [host, named(host, count)])}
        chosen={query.host}
        path={(host) => path({ host })}
        note={hasMoreHosts ? `Only ${hosts.length} hosts are listed.` : undefined}
      />
      <FilterMenu
        label="Age"
        all="Any age"
        options={Object.entries(AGES).map(([age, { label }]) => [age, label])}
        chosen={query.age}
        path={(age) => path({ age: ageIn(age) })}
      />
    </div>
  );
}

function NothingWaits({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <EmptyState icon="search" title="No request matches">
        <p>
          <a href="/approvals">Show all that await approval</a>
        </p>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon="approvals" title="You’re all caught up">
      <p>
        Requests appear here when they are created with <code>"approve": true</code>, or with a key that has a hold.
        They are not sent until you approve them.
      </p>
      <p>
        New here? <a href={OVERVIEW_PATH}>See the first steps</a>
      </p>
    </EmptyState>
  );
}

export interface DecidedRequest {
  readonly action: MaskedAction;
  readonly timeline: readonly TimelineEntry[];
  /** The grant that came with the approval and is in force; null if there is none. */
  readonly grant: Grant | null;
  readonly receiptUrl: string;
}

/** The outcome of a decided request. */
export function DecidedOutcome({ action, now }: { readonly action: SeenAction; readonly now: Date }) {
  const isPlain = action.status === "completed" && action.lateResult === null;
  const ms = isPlain ? (action.result?.durationMs ?? null) : null;
  return (
    <span class="chips outcome">
      <ListedStatus action={action} />
      <span class="quiet">{ms === null ? <Note action={action} now={now} /> : `in ${duration(ms)}`}</span>
    </span>
  );
}

export function DecidedRow({ decided, now }: { readonly decided: DecidedRequest; readonly now: Date }) {
  const action = asSent(decided.action);
  return (
    <li id={`decided-${action.id}`} class="inbox-decided">
      <a href={actionPath(action.id)}>{requestTitle(action)}</a>
      <p class="small">{decidedBy(decided)}</p>
      <p class="between">
        <DecidedOutcome action={action} now={now} />
        <a class="small" href={decided.receiptUrl}>
          View receipt
        </a>
      </p>
    </li>
  );
}

/** "Approved by ann@example.com in the console". */
function decidedBy(decided: DecidedRequest) {
  const { grant } = decided;
  const decision = decisionOf(decided);
  if (decision === null) return null;
  return (
    <>
      {`${decidedWord(decision)} by `}
      {actorName(decision.actor)}
      {grant === null ? null : (
        <>
          {`, with ${counted(grant.calls, "more call")} like it until `}
          {time(grant.expiresAt)} · <a href={SETTINGS_PATHS.grants}>All grants</a>
        </>
      )}
    </>
  );
}

function decisionOf({ action, timeline }: DecidedRequest) {
  return lastDecision(maskedTimeline(timeline, action));
}

function decidedWord(decision: ReturnType<typeof decisionOf>): string {
  return DECIDED[decision?.type ?? ""] ?? "Changed";
}

const DECIDED: Readonly<Record<string, string>> = {
  approved: "Approved",
  rejected: "Rejected",
  cancelled: "Cancelled",
  retried: "Retried",
};

interface DecidedPaneProps {
  readonly decided: DecidedRequest;
  /** The path of the next waiting request; null if there is none. */
  readonly nextPath: string | null;
  readonly problem: string | undefined;
  readonly now: Date;
}

function DecidedPane({ decided, nextPath, problem, now }: DecidedPaneProps) {
  const action = asSent(decided.action);
  return (
    <div id={`of-${action.id}`} class="request">
      <div class="request-body decided">
        <Problem text={problem} />
        <h2>{requestTitle(action)}</h2>
        <p class="line">{callLine(action)}</p>
        <p>{decidedBy(decided)}</p>
        <DecidedOutcome action={action} now={now} />
        <div class="buttons">
          {nextPath === null ? null : (
            <LinkButton href={nextPath} look="main">
              Next request
              <Icon name="right" />
            </LinkButton>
          )}
          <LinkButton href={actionPath(action.id)}>View action</LinkButton>
          <LinkButton href={decided.receiptUrl}>View receipt</LinkButton>
        </div>
      </div>
    </div>
  );
}
