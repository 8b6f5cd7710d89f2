/** @jsxImportSource hono/jsx */
import { REQUESTER_LABELS } from "../../core/action.ts";
import type { Child } from "hono/jsx";
import { describeActor, mayDo } from "../../core/roles.ts";
import { type DecisionFactsJson, type DecisionHistory, maskedFacts, NO_HISTORY } from "../../approvals/facts.ts";
import {
  commonTitle,
  type DifferingField,
  groupAlike,
  inReadingOrder,
  isSent,
  numberRange,
  type RequestGroup,
  type SeenRequest,
} from "../../approvals/look-alikes.ts";
import { rejectionReason } from "../../approvals/risks.ts";
import { asSent, maskedEarlier } from "../../receipts/masked-action.ts";
import { maskText } from "../../receipts/masking.ts";
import { visibleText } from "../../receipts/visible-text.ts";
import { RISK_WORDS } from "./decision.tsx";
import { callText } from "../../ui/request.tsx";
import { Icon } from "../../ui/icons.tsx";
import { shownPath, requestTitle } from "../frame/action-row.tsx";
import { ago, sentence, Table, untrusted } from "../../ui/parts.tsx";
import type { PageUser } from "../../ui/text.ts";
import type { MaskedAction, SeenAction } from "../../receipts/seen-action.ts";
import { type InboxQuery, requestPath, reviewPath } from "./inbox-query.ts";

interface ListedRequest extends SeenRequest {
  readonly action: MaskedAction;
  readonly riskMarks: DecisionFactsJson["risks"];
  /** Why this same request was rejected before; null if it was not, or without a reason. */
  readonly rejection: string | null;
}

/** What the rows of the list have in common. */
interface ListState {
  readonly mayDecide: boolean;
  readonly query: InboxQuery;
  /** The request shown beside the list. */
  readonly openId: string | null;
  /** Whether other pages have more requests, so that a row of look-alikes may be incomplete. */
  readonly isPart: boolean;
  /** The requests selected for a common decision. */
  readonly selected: ReadonlySet<string>;
  readonly now: Date;
}

/** The waiting requests, oldest first, with look-alikes in one group. */
export function listedGroups(
  actions: readonly MaskedAction[],
  histories: ReadonlyMap<string, DecisionHistory>,
  user: PageUser,
): readonly RequestGroup<ListedRequest>[] {
  return groupAlike(actions.map((action) => listedRequest(action, histories.get(action.id) ?? NO_HISTORY, user)));
}

/** A request as its approver sees it. */
export function listedRequest(action: MaskedAction, history: DecisionHistory, user: PageUser): ListedRequest {
  const { viewer } = action;
  // People who may not decide see no risks, which also tell about masked values.
  const mayDecide = mayDo(user.role, "approve");
  const { risks } = mayDecide ? maskedFacts(action, history, "") : { risks: [] };
  return {
    action: asSent(action),
    reason: history.reason === null ? null : maskText(history.reason, viewer),
    risks: risks.map(({ text }) => text),
    riskMarks: risks,
    rejection: mayDecide ? rejectionReason(maskedEarlier(history.rejections, viewer)) : null,
    hasHistory: history.rejections.length > 0,
  };
}

export function requestRow({ action, riskMarks, rejection }: ListedRequest, list: ListState) {
  return (
    <li id={action.id} class="inbox-row">
      {checkbox(action, list)}
      <OpenLink id={action.id} list={list}>
        {requestTitle(action)}
        <span class="inbox-age">{ago(action.createdAt, list.now)}</span>
        {requester(action)}
        {worstRisk(riskMarks)}
        {rejection === null ? null : <span class="inbox-rejected">“{untrusted(rejection)}”</span>}
      </OpenLink>
    </li>
  );
}

/** The agent and the call's host. */
function requester(action: SeenAction, before: Child = null) {
  return (
    <span class="inbox-asker">
      {before}
      {untrusted(describeActor(action.createdBy).name)}
      {" · "}
      {action.title === null ? null : sentence`${<span class="method">{action.method}</span>} `}
      {untrusted(action.host)}
    </span>
  );
}

/** The worst risk, which is the first. */
function worstRisk([first, ...others]: DecisionFactsJson["risks"]) {
  if (first === undefined) return null;
  return (
    <span class={`risk-mark risk-${first.level}`}>
      {first.level === "note" ? null : <Icon name="warning" />}
      {`${RISK_WORDS[first.name]}${others.length === 0 ? "" : ` +${others.length}`}`}
    </span>
  );
}

/** The checkbox of a request, for people who may decide. */
function checkbox(action: SeenAction, { mayDecide, selected }: ListState) {
  if (!mayDecide) return null;
  return (
    <label class="inbox-choose">
      <input
        type="checkbox"
        name="id"
        value={action.id}
        checked={selected.has(action.id)}
        aria-label={`Select ${callText(action)}`}
      />
    </label>
  );
}

interface OpenLinkProps {
  readonly id: string;
  readonly list: ListState;
  readonly children?: Child;
}

/** A link to a request. With script, it opens beside the list. */
function OpenLink({ id, list, children }: OpenLinkProps) {
  return (
    <a
      class="inbox-open"
      href={requestPath(list.query, id)}
      data-item=""
      aria-current={id === list.openId ? "true" : undefined}
      {...OPENS_BESIDE}
    >
      {children}
    </a>
  );
}

/** Replaces the pane instead of morphing it: text typed for one request must not stay for another. */
const OPENS_BESIDE = {
  "hx-boost": "true",
  "hx-target": "#request",
  "hx-select": "#request",
  "hx-select-oob": "#waiting:morph:outerHTML",
  "hx-swap": "outerHTML show:window:top",
  // If several are requested, shows the last one.
  "hx-sync": "#inbox:replace",
  "data-opens": "",
} as const;

/** A row of look-alikes, which unfolds into a table. */
export function groupRow({ requests, differing }: RequestGroup<ListedRequest>, list: ListState) {
  const { mayDecide, openId, isPart, now } = list;
  const [{ action, riskMarks }] = requests;
  const ids = requests.map((request) => request.action.id);
  const isOpen = openId !== null && ids.includes(openId);
  const fields = inReadingOrder(differing).filter(isSent).slice(0, LIST_COLUMNS_MAX);
  // "amount 12 to 480".
  const range = numberRange(differing);
  return (
    <li id={`group-${action.id}`} class="inbox-group">
      <details open={isOpen}>
        <summary>
          {groupName(requests)}
          <span class="inbox-age">{ago(action.createdAt, now)}</span>
          {requester(action, [
            isPart ? "On this page · " : null,
            range === null ? null : sentence`${untrusted(range.name)} ${range.least} to ${range.most} · `,
          ])}
          {worstRisk(riskMarks)}
        </summary>
        {mayDecide ? (
          <a class="inbox-review" href={reviewPath(ids)}>
            {`Review all ${ids.length}`}
          </a>
        ) : null}
        <Table
          caption="Requests that look alike, with what tells them apart"
          heads={[...(mayDecide ? [<span class="visually-hidden">Select</span>] : []), ...fields.map(fieldName), "Age"]}
          rows={requests.map((request, at) => [
            ...(mayDecide ? [checkbox(request.action, list)] : []),
            ...fields.map(({ values }) => untrusted(values[at] ?? "")),
            <OpenLink id={request.action.id} list={list}>
              {ago(request.action.createdAt, now)}
            </OpenLink>,
          ])}
          ids={ids}
          isWide
        />
      </details>
    </li>
  );
}

/** How many columns a list shows: one that tells requests apart, and an amount. The review shows all. */
const LIST_COLUMNS_MAX = 2;

/** What a group's requests have in common, and their number. */
function groupName(requests: RequestGroup<SeenRequest>["requests"]) {
  const [{ action }] = requests;
  const title = commonTitle(requests.map((request) => request.action.title));
  const [path = "", ...others] = requests.map((request) => shownPath(request.action));
  return (
    <span class="request-name">
      <b>{`${requests.length} ×`}</b>{" "}
      {title === null ? (
        <>
          <b class="method">{action.method}</b>{" "}
          {untrusted(others.every((other) => other === path) ? path : commonPath([path, ...others]))}
        </>
      ) : (
        untrusted(title)
      )}
    </span>
  );
}

/** The common path, with "…" for segments that differ. */
export function commonPath(paths: readonly string[]): string {
  const [first = [], ...others] = paths.map((path) => (path.split("?")[0] ?? "").split("/"));
  return first.map((segment, at) => (others.every((other) => other[at] === segment) ? segment : "…")).join("/");
}

const PLACES: Readonly<Record<DifferingField["place"], string>> = {
  ...REQUESTER_LABELS,
  metadata: "Note",
  expires: "Expires at",
  path: "Path",
  query: "Query",
  header: "Header",
  body: "Body",
};

/** The head of a column: the field's name, and its place unless it is in the body. */
export function fieldName({ place, name }: Pick<DifferingField, "place" | "name">) {
  if (place === "path" || name === "") return <>{PLACES[place]}</>;
  return (
    <>
      {place === "body" ? null : `${PLACES[place]} `}
      {untrusted(visibleText(name))}
    </>
  );
}
