/** @jsxImportSource hono/jsx */
import { REQUESTER_LABELS } from "../core/extras.ts";
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
import { type InboxQuery, requestPath, REVIEW_PATH } from "./inbox-query.ts";
import { shownPath, RequestTitle } from "./outcome.tsx";
import { Ago, UntrustedText } from "../ui/parts.tsx";
import type { PageUser } from "../ui/text.ts";
import type { MaskedAction, SeenAction } from "../receipts/seen-action.ts";

interface ListedRequest extends SeenRequest {
  readonly action: MaskedAction;
  readonly riskMarks: readonly RiskMarkProps[];
  /** Why this same request was rejected before; null: it was not, or without a reason. */
  readonly rejection: string | null;
}

interface RowsProps {
  readonly groups: readonly RequestGroup<ListedRequest>[];
  readonly user: PageUser;
  readonly query: InboxQuery;
  /** The request that is shown beside the list. */
  readonly openId: string | null;
  /** More requests are on other pages: a row of look-alikes has those of this page only. */
  readonly isPart: boolean;
  /** Selected: those that are shown to be decided at once. */
  readonly selected: ReadonlySet<string>;
  readonly now: Date;
}

/** The waiting requests, with the oldest first. Those that look alike are one group. */
export function listedGroups(
  actions: readonly MaskedAction[],
  histories: ReadonlyMap<string, DecisionHistory>,
  user: PageUser,
): readonly RequestGroup<ListedRequest>[] {
  return groupAlike(actions.map((action) => listedRequest(action, histories.get(action.id) ?? NO_HISTORY, user)));
}

/** Each group is one row, which opens into a table. */
export function RequestRows({ groups, user, ...props }: RowsProps) {
  const mayDecide = mayDo(user.role, "approve");
  return (
    <>
      {groups.map((group) =>
        group.requests.length === 1 ? (
          <RequestRow request={group.requests[0]} mayDecide={mayDecide} {...props} />
        ) : (
          <GroupRow group={group} mayDecide={mayDecide} {...props} />
        ),
      )}
    </>
  );
}

/** A request as its approver sees it. */
export function listedRequest(action: MaskedAction, history: DecisionHistory, user: PageUser): ListedRequest {
  const { viewer } = action;
  // Who may not decide is told no risks: they are about what is masked, too.
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

interface RowProps extends Pick<RowsProps, "query" | "openId" | "isPart" | "selected" | "now"> {
  readonly mayDecide: boolean;
}

function RequestRow({
  request,
  mayDecide,
  query,
  openId,
  selected,
  now,
}: RowProps & { readonly request: ListedRequest }) {
  const { action } = request;
  return (
    <li id={action.id} class="inbox-row">
      {mayDecide ? <Chosen action={action} isSelected={selected.has(action.id)} /> : null}
      <OpenLink id={action.id} query={query} openId={openId}>
        <RequestTitle action={action} />
        <span class="inbox-age">
          <Ago at={action.createdAt} now={now} />
        </span>
        <Asker action={action} />
        <RiskMark risks={request.riskMarks} />
        {request.rejection === null ? null : (
          <span class="inbox-rejected">
            “<UntrustedText text={request.rejection} />”
          </span>
        )}
      </OpenLink>
    </li>
  );
}

/** The agent, and where the call goes. */
function Asker({ action, children }: { readonly action: SeenAction; readonly children?: Child }) {
  return (
    <span class="inbox-asker">
      {children}
      <UntrustedText text={describeActor(action.createdBy).name} />
      {" · "}
      {action.title === null ? null : <span class="method">{action.method}</span>}
      <UntrustedText text={action.host} />
    </span>
  );
}

type RiskMarkProps = DecisionFacts["risks"][number];

/** The gravest risk, which comes first. */
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

function Chosen({ action, isSelected }: { readonly action: SeenAction; readonly isSelected: boolean }) {
  return (
    <label class="inbox-choose">
      <input
        type="checkbox"
        name="id"
        value={action.id}
        checked={isSelected}
        aria-label={`Select ${callText(action)}`}
      />
    </label>
  );
}

/** A link to the page of a request. With script the request is shown beside the list. */
function OpenLink(props: Pick<RowsProps, "query" | "openId"> & { readonly id: string; readonly children?: Child }) {
  const { id, query, openId, children } = props;
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

/** The pane is replaced, never morphed: what was typed for one request must not stay for another. */
const OPENS_BESIDE = {
  "hx-boost": "true",
  "hx-target": "#request",
  "hx-select": "#request",
  "hx-select-oob": "#waiting:morph:outerHTML",
  "hx-swap": "outerHTML show:window:top",
  // If several are requested, the last one is shown.
  "hx-sync": "#inbox:replace",
  "data-opens": "",
} as const;

interface GroupRowProps extends RowProps {
  readonly group: RequestGroup<ListedRequest>;
}

function GroupRow({ group, ...props }: GroupRowProps) {
  const { mayDecide, openId, isPart, now } = props;
  const { requests, differing } = group;
  const [{ action, riskMarks }] = requests;
  const ids = requests.map((request) => request.action.id);
  const isOpen = openId !== null && ids.includes(openId);
  return (
    <li id={`group-${action.id}`} class="inbox-group">
      <details open={isOpen}>
        <summary>
          <GroupName group={group} />
          <span class="inbox-age">
            <Ago at={action.createdAt} now={now} />
          </span>
          <Asker action={action}>
            {isPart ? "On this page · " : null}
            <GroupRange differing={differing} />
          </Asker>
          <RiskMark risks={riskMarks} />
        </summary>
        {mayDecide ? (
          <a class="inbox-review" href={reviewPath(ids)}>
            {`Review all ${ids.length}`}
            <Icon name="right" />
          </a>
        ) : null}
        <GroupTable
          requests={requests}
          fields={inReadingOrder(differing).filter(isSent).slice(0, LIST_COLUMNS_MAX)}
          {...props}
        />
      </details>
    </li>
  );
}

/** The column that tells which is which, and an amount: the review has all of them. */
const LIST_COLUMNS_MAX = 2;

interface GroupTableProps extends Omit<GroupRowProps, "group"> {
  readonly requests: RequestGroup<ListedRequest>["requests"];
  readonly fields: readonly DifferingField[];
}

/** The requests of a group, with what tells them apart. */
function GroupTable({ requests, fields, mayDecide, query, openId, selected, now }: GroupTableProps) {
  return (
    <div class="table" role="group" aria-label="Requests that look alike" tabindex={0}>
      <table>
        <caption class="visually-hidden">Requests that look alike, with what tells them apart</caption>
        <thead>
          <tr>
            {mayDecide ? (
              <th scope="col">
                <span class="visually-hidden">Select</span>
              </th>
            ) : null}
            {fields.map((field) => (
              <th scope="col">
                <FieldName field={field} />
              </th>
            ))}
            <th scope="col">Age</th>
          </tr>
        </thead>
        <tbody>
          {requests.map((request, at) => (
            <tr id={request.action.id}>
              {mayDecide ? (
                <td>
                  <Chosen action={request.action} isSelected={selected.has(request.action.id)} />
                </td>
              ) : null}
              {fields.map(({ values }) => (
                <td>
                  <UntrustedText text={values[at] ?? ""} />
                </td>
              ))}
              <td>
                <OpenLink id={request.action.id} query={query} openId={openId}>
                  <Ago at={request.action.createdAt} now={now} />
                </OpenLink>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The page on which these requests are decided together. */
export function reviewPath(ids: readonly string[]): string {
  return `${REVIEW_PATH}?${new URLSearchParams(ids.map((id): [string, string] => ["id", id])).toString()}`;
}

/** What the requests of a group have in common, and how many they are. */
export function GroupName({ group: { requests } }: { readonly group: RequestGroup<SeenRequest> }) {
  const [{ action }] = requests;
  const title = commonTitle(requests.map((request) => request.action.title));
  const isSame = requests.every((request) => shownPath(request.action) === shownPath(action));
  return (
    <span class="request-name">
      <b class="inbox-count">{`${requests.length} ×`}</b>{" "}
      {title === null ? (
        <>
          <b class="method">{action.method}</b>
          <UntrustedText
            text={isSame ? shownPath(action) : commonPath(requests.map((request) => shownPath(request.action)))}
          />
        </>
      ) : (
        <UntrustedText text={title} />
      )}
    </span>
  );
}

/** The path with "…" for the segments in which the requests differ. */
export function commonPath(paths: readonly string[]): string {
  const [first = [], ...others] = paths.map((path) => (path.split("?")[0] ?? "").split("/"));
  return first.map((segment, at) => (others.every((other) => other[at] === segment) ? segment : "…")).join("/");
}

/** "amount 12 to 480". */
export function GroupRange({ differing }: { readonly differing: readonly DifferingField[] }) {
  const range = rangeOf(differing);
  if (range === null) return null;
  return (
    <span class="inbox-range">
      <UntrustedText text={range.name} />
      {` ${range.least} to ${range.most} · `}
    </span>
  );
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

/** The head of a column: the name of a field in the body, else where it stands, too. */
export function FieldName({ field: { place, name } }: { readonly field: Pick<DifferingField, "place" | "name"> }) {
  if (place === "path" || name === "") return <>{PLACES[place]}</>;
  return (
    <>
      {place === "body" ? null : `${PLACES[place]} `}
      <UntrustedText text={visibleText(name)} />
    </>
  );
}
