/** @jsxImportSource hono/jsx */
import type { Inbox } from "../../approvals/held.ts";
import { COUNTED_MAX, DECISIONS_AT_ONCE_MAX, HELD_COUNTED_MAX, HELD_REQUESTERS_SHOWN_MAX } from "../../core/limits.ts";
import { describeActor, mayDo, roleViewer } from "../../core/roles.ts";
import { maskedActor } from "../../receipts/masked-action.ts";
import type { MaskedAction } from "../../receipts/seen-action.ts";
import { EmptyState, FilterMenu, Skeleton } from "../../ui/controls.tsx";
import { Icon } from "../../ui/icons.tsx";
import { Layout, OVERVIEW_PATH, render } from "../../ui/layout.tsx";
import { LinkButton, untrusted } from "../../ui/parts.tsx";
import { number, type PageUser } from "../../ui/text.ts";
import { CredentialRow, type SeenCredentialRequest } from "../settings/credential-request.tsx";
import { decidedPane, type DecidedRequest, decidedRow, decidedWord } from "./decided.tsx";
import type { RefusedDecision } from "./decision-form.tsx";
import { type HeldRequest, type LookAlikes, RequestPane } from "./decision.tsx";
import { groupRow, listedGroups, requestRow } from "./inbox-list.tsx";
import { ageIn, AGES, inboxPath, type InboxQuery, requestPath, REVIEW_PATH, reviewPath } from "./inbox-query.ts";
import { type Review, ReviewPane } from "./review.tsx";

/** What the inbox shows beside the list. */
export type InboxPane =
  /** `isChosen`: the address names it. Otherwise it is the next one, phones show the list, and a long body is cut. */
  | { readonly kind: "request"; readonly held: HeldRequest; readonly isChosen: boolean }
  | { readonly kind: "decided"; readonly decided: DecidedRequest }
  | { readonly kind: "review"; readonly review: Review }
  | { readonly kind: "none" };

/** The inbox as the person sees it. */
export interface SeenInbox extends Omit<Inbox, "actions"> {
  readonly actions: readonly MaskedAction[];
}

export interface InboxProps {
  readonly user: PageUser;
  readonly inbox: SeenInbox;
  /** All waiting requests for credentials. */
  readonly requests: readonly SeenCredentialRequest[];
  readonly query: InboxQuery;
  readonly pane: InboxPane;
  /** The requests decided just now, shown above the list. */
  readonly decided: readonly DecidedRequest[];
  /** The decision that was refused; left out if none was. */
  readonly refused?: RefusedDecision | undefined;
  readonly now: Date;
}

export function inboxPage(props: InboxProps): string {
  const { user, inbox, requests, query, pane, decided, now } = props;
  const { actions, histories, after, total } = inbox;
  const mayDecide = mayDo(user.role, "approve");
  const groups = listedGroups(actions, histories, user);
  const openId = pane.kind === "request" ? pane.held.action.id : null;
  const isChosen = pane.kind !== "none" && (pane.kind !== "request" || pane.isChosen);
  const selected = new Set(pane.kind === "review" ? pane.review.requests.map(({ action }) => action.id) : []);
  const list = { mayDecide, query, openId, isPart: query.after !== null || after !== null, selected, now };
  const all = total + requests.length;
  const asked = requestsIn(requests, query, now);
  // What a screen reader says first: after a decision, what was decided.
  const done = new Set(decided.map((one) => `${decidedWord(one)} · `));
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
            {all === 0 ? null : filters(inbox, query, user)}
          </div>
          {/* Without: browsers that go back tick the boxes at the same places, where other requests may be by now. */}
          <form class="inbox-form" action={REVIEW_PATH} autocomplete="off">
            <ol id="waiting">
              {decided.map((one) => decidedRow(one, now))}
              {asked.map((request) => (
                <CredentialRow request={request} now={now} />
              ))}
              {groups.map((group) =>
                group.requests.length === 1 ? requestRow(group.requests[0], list) : groupRow(group, list),
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
          {actions.length + asked.length === 0 ? nothingWaits(all > 0) : null}
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
          {shownPane(props, groups)}
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

function shownPane({ pane, query, inbox, user, refused, now }: InboxProps, groups: Groups) {
  if (pane.kind === "none") return null;
  if (pane.kind === "review") return <ReviewPane review={pane.review} refused={refused} user={user} now={now} />;
  if (pane.kind === "decided") {
    const next = nextWaiting(inbox.actions, pane.decided.action.id);
    const nextPath = next === null ? null : requestPath(query, next.id);
    return decidedPane(pane.decided, nextPath, refused, now);
  }
  const { id } = pane.held.action;
  return (
    <RequestPane
      held={pane.held}
      path={requestPath(query, id)}
      isWhole={pane.isChosen}
      alike={alikeIn(groups, id)}
      refused={refused}
      user={user}
      now={now}
    />
  );
}

/** The request after a decided one in a list, oldest first, or else the first. */
export function nextWaiting(actions: SeenInbox["actions"], id: string): MaskedAction | null {
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

function filters({ requesters, hosts, hasMoreHosts }: SeenInbox, query: InboxQuery, user: PageUser) {
  const viewer = roleViewer(user.role);
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

function nothingWaits(isFiltered: boolean) {
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
        They are not sent until a person approves them.
      </p>
      <p>
        New here? <a href={OVERVIEW_PATH}>See the first steps</a>
      </p>
    </EmptyState>
  );
}
