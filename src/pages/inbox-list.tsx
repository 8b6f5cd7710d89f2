/** @jsxImportSource hono/jsx */
import { REQUESTER_LABELS } from "../core/action.ts";
import type { Child } from "hono/jsx";
import { describeActor, mayDo } from "../core/roles.ts";
import { type DecisionFacts, type DecisionHistory, maskedFacts, NO_HISTORY } from "../approvals/facts.ts";
import {
  commonTitle,
  type DifferingField,
  groupAlike,
  inReadingOrder,
  isSent,
  rangeOf,
  type RequestGroup,
  type SeenRequest,
} from "../approvals/look-alikes.ts";
import { rejectionReason } from "../approvals/risks.ts";
import { asSent, maskedEarlier } from "../receipts/masked-action.ts";
import { maskText } from "../receipts/masking.ts";
import { visibleText } from "../receipts/visible-text.ts";
import { RISK_WORDS } from "./decision.tsx";
import { callText } from "./request.tsx";
import { Icon } from "../ui/icons.tsx";
import { queryText } from "../ui/layout.tsx";
import { shownPath, requestTitle } from "./action-row.tsx";
import { ago, sentence, Table, untrusted } from "../ui/parts.tsx";
import type { PageUser } from "../ui/text.ts";
import type { MaskedAction, SeenAction } from "../receipts/seen-action.ts";
import { DAY_MS, HELD_CURSOR_CHARS_MAX, HOUR_MS } from "../core/limits.ts";
import { normalHost } from "../core/target.ts";
import { ACTION_ID, KEY_ID } from "../core/ids.ts";
import type { HeldFilter } from "../core/store.ts";

interface ListedRequest extends SeenRequest {
  readonly action: MaskedAction;
  readonly riskMarks: readonly RiskMarkProps[];
  /** Why this same request was rejected before; null if it was not, or without a reason. */
  readonly rejection: string | null;
}

interface RowProps {
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

export function RequestRow({ request, ...props }: RowProps & { readonly request: ListedRequest }) {
  const { now } = props;
  const { action } = request;
  return (
    <li id={action.id} class="inbox-row">
      <Chosen action={action} {...props} />
      <OpenLink id={action.id} {...props}>
        {requestTitle(action)}
        <span class="inbox-age">{ago(action.createdAt, now)}</span>
        <Asker action={action} />
        <RiskMark risks={request.riskMarks} />
        {request.rejection === null ? null : <span class="inbox-rejected">“{untrusted(request.rejection)}”</span>}
      </OpenLink>
    </li>
  );
}

/** The agent and the call's host. */
function Asker({ action, children }: { readonly action: SeenAction; readonly children?: Child }) {
  return (
    <span class="inbox-asker">
      {children}
      {untrusted(describeActor(action.createdBy).name)}
      {" · "}
      {action.title === null ? null : sentence`${<span class="method">{action.method}</span>} `}
      {untrusted(action.host)}
    </span>
  );
}

type RiskMarkProps = DecisionFacts["risks"][number];

/** Shows the worst risk, which is the first. */
function RiskMark({ risks }: { readonly risks: readonly RiskMarkProps[] }) {
  const [first, ...others] = risks;
  if (first === undefined) return null;
  return (
    <span class={`risk-mark risk-${first.level}`}>
      {first.level === "note" ? null : <Icon name="warning" />}
      {`${RISK_WORDS[first.name]}${others.length === 0 ? "" : ` +${others.length}`}`}
    </span>
  );
}

/** The checkbox of a request, for people who may decide. */
function Chosen({ action, mayDecide, selected }: RowProps & { readonly action: SeenAction }) {
  if (!mayDecide) return null;
  const { id } = action;
  return (
    <label class="inbox-choose">
      <input
        type="checkbox"
        name="id"
        value={id}
        checked={selected.has(id)}
        aria-label={`Select ${callText(action)}`}
      />
    </label>
  );
}

/** A link to a request. With script, it opens beside the list. */
function OpenLink({ id, query, openId, children }: RowProps & { readonly id: string; readonly children?: Child }) {
  return (
    <a
      class="inbox-open"
      href={requestPath(query, id)}
      data-item=""
      aria-current={id === openId ? "true" : undefined}
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
export function GroupRow({ group, ...props }: RowProps & { readonly group: RequestGroup<ListedRequest> }) {
  const { mayDecide, openId, isPart, now } = props;
  const { requests, differing } = group;
  const [{ action, riskMarks }] = requests;
  const ids = requests.map((request) => request.action.id);
  const isOpen = openId !== null && ids.includes(openId);
  const fields = inReadingOrder(differing).filter(isSent).slice(0, LIST_COLUMNS_MAX);
  // "amount 12 to 480".
  const range = rangeOf(differing);
  return (
    <li id={`group-${action.id}`} class="inbox-group">
      <details open={isOpen}>
        <summary>
          <GroupName group={group} />
          <span class="inbox-age">{ago(action.createdAt, now)}</span>
          <Asker action={action}>
            {isPart ? "On this page · " : null}
            {range === null ? null : sentence`${untrusted(range.name)} ${range.least} to ${range.most} · `}
          </Asker>
          <RiskMark risks={riskMarks} />
        </summary>
        {mayDecide ? (
          <a class="inbox-review" href={reviewPath(ids)}>
            {`Review all ${ids.length}`}
          </a>
        ) : null}
        <Table
          caption="Requests that look alike, with what tells them apart"
          heads={[
            ...(mayDecide ? [<span class="visually-hidden">Select</span>] : []),
            ...fields.map((field) => <FieldName field={field} />),
            "Age",
          ]}
          rows={requests.map((request, at) => [
            ...(mayDecide ? [<Chosen action={request.action} {...props} />] : []),
            ...fields.map(({ values }) => untrusted(values[at] ?? "")),
            <OpenLink id={request.action.id} {...props}>
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

/** The page on which these requests are decided together. `decided`: an id of those decided on the page before. */
export function reviewPath(ids: readonly string[], decided?: string): string {
  return REVIEW_PATH + queryText({ id: ids, decided });
}

/** What a group's requests have in common, and their number. */
function GroupName({ group: { requests } }: { readonly group: RequestGroup<SeenRequest> }) {
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
export function FieldName({ field: { place, name } }: { readonly field: Pick<DifferingField, "place" | "name"> }) {
  if (place === "path" || name === "") return <>{PLACES[place]}</>;
  return (
    <>
      {place === "body" ? null : `${PLACES[place]} `}
      {untrusted(visibleText(name))}
    </>
  );
}

/** Filters by how long a request has waited at least. */
export const AGES = {
  hour: { label: "Over 1 hour", ms: HOUR_MS },
  day: { label: "Over 1 day", ms: DAY_MS },
  week: { label: "Over 1 week", ms: 7 * DAY_MS },
} as const;

export type Age = keyof typeof AGES;

export function ageIn(text: string | null): Age | null {
  return text === "hour" || text === "day" || text === "week" ? text : null;
}

/** The filters of the inbox. Null: no filter. */
export interface InboxQuery {
  /** The key to filter by; empty for requests without a key. */
  readonly by: string | null;
  readonly host: string | null;
  readonly age: Age | null;
  /** The page's cursor: an action id or `turns`, and each key's position if several have requests. */
  readonly after: string | null;
}

/** The value of `by` for requests without a key. */
const NO_KEY = "none";

/** Reads the query of a page. Ignores everything else in it. */
export function inboxQueryIn(query: URLSearchParams): InboxQuery {
  const by = query.get("by") ?? "";
  const after = query.get("after") ?? "";
  return {
    by: by === NO_KEY ? "" : (KEY_ID.exec(by)?.[0] ?? null),
    host: normalHost(query.get("host") ?? ""),
    age: ageIn(query.get("age")),
    after: isCursor(after) ? after : null,
  };
}

function isCursor(after: string): boolean {
  if (after === "" || after.length > HELD_CURSOR_CHARS_MAX) return false;
  const [start = "", ...places] = after.split("~");
  const isStart = start === "" || start === "turns" || ACTION_ID.test(start);
  // Alternates between a key, or none, and an action.
  return isStart && places.every((id, at) => (at % 2 === 0 ? id === "" || KEY_ID.test(id) : ACTION_ID.test(id)));
}

/** The query as a filter for the service. */
export function filterOf({ by, host, age }: InboxQuery, now: Date): HeldFilter {
  return { keyId: by, host, before: age === null ? null : new Date(now.getTime() - AGES[age].ms) };
}

/** The path of a page of the inbox with the same filters. */
export function inboxPath(query: InboxQuery, path = "/approvals", more: Readonly<Record<string, string>> = {}): string {
  return path + queryText({ ...more, ...query, by: query.by === "" ? NO_KEY : query.by });
}

export function requestPath(query: InboxQuery, id: string): string {
  return inboxPath(query, `/approvals/${id}`);
}

export const REVIEW_PATH = "/approvals/review";
