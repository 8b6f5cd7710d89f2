/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { REQUESTER_TEXTS } from "../../core/action.ts";
import { mayBeSentBefore } from "../../core/changes.ts";
import { mayDo } from "../../core/roles.ts";
import {
  type DifferingField,
  type GroupField,
  groupAlike,
  inReadingOrder,
  isSent,
  outliersIn,
  type RequestGroup,
} from "../../approvals/look-alikes.ts";
import { maskedFacts } from "../../approvals/facts.ts";
import { hiddenValuesText } from "../../receipts/masked-action.ts";
import { BEGINNING, type PageBody, pageBody } from "../../ui/body-view.tsx";
import { bodyPath } from "../../ui/request.tsx";
import { DecisionForm, EndOfRequest, type RefusedDecision } from "./decision-form.tsx";
import { commonPath, fieldName, listedRequest } from "./inbox-list.tsx";
import { reviewPath, REVIEW_PATH } from "./inbox-query.ts";
import { shownPath } from "../frame/action-row.tsx";
import { ago, untrusted } from "../../ui/parts.tsx";
import { AskedRequest, FactList, HeldByRules, type HeldRequest, Risks } from "./decision.tsx";
import { counted, number, type PageUser, waitingText } from "../../ui/text.ts";
import type { SeenAction } from "../../receipts/seen-action.ts";

/** Differing fields up to which look-alikes are rows of a table. Beyond it, each is a block. */
const REVIEW_COLUMNS_MAX = 4;

/** Requests that somebody selected to decide together. */
export interface Review {
  readonly requests: readonly HeldRequest[];
  /** Ids of selected requests for the next page. */
  readonly rest: readonly string[];
  /** How many selected requests are left out, because they are no longer waiting or too large to be read together. */
  readonly goneCount: number;
}

interface ReviewPaneProps {
  readonly review: Review;
  readonly refused: RefusedDecision | undefined;
  readonly user: PageUser;
  readonly now: Date;
}

type Reviewed = ReturnType<typeof listedRequest> & { readonly held: HeldRequest };

type Group = RequestGroup<Reviewed>;

/**
 * Several requests to decide together. Each shows everything that its approver must see, what is sent before the requester's
 * words. Look-alikes show once what they share, and then every value in which they differ.
 */
export function ReviewPane({ review: { requests, rest, goneCount }, refused, user, now }: ReviewPaneProps) {
  const groups = groupAlike(
    requests.map((held): Reviewed => ({ ...listedRequest(held.action, held.history, user), held })),
  );
  // Look-alikes show every value instead.
  const bodies = new Map(
    groups.flatMap(({ requests: [one, ...others] }) =>
      others.length > 0 ? [] : [[one.action.id, pageBody(one.action, BEGINNING)]],
    ),
  );
  const values = valuesIn(groups);
  const ids = [...requests.map(({ action }) => action.id), ...rest];
  const foot = ({ id, createdAt }: SeenAction) => (
    <p class="chips reviewed-foot small">
      <a href={`/approvals/${id}`}>{ago(createdAt, now)}</a>
      <a href={reviewPath(ids.filter((one) => one !== id))}>Leave out</a>
    </p>
  );
  return (
    <div id="review" class="request" data-shown={requests.map(({ action }) => `${action.id} ${action.run}`).join(" ")}>
      <div class="request-body">
        <h2>{requests.length === 0 ? "No request is selected" : `Decide on ${counted(requests.length, "request")}`}</h2>
        {goneCount === 0 ? null : (
          <p class="notice notice-wait">
            {`${counted(goneCount, "selected request")} left out: no longer awaiting approval, or too large to be shown with the others.`}
          </p>
        )}
        {groups.map((group) => {
          const [one, ...others] = group.requests;
          if (others.length > 0) return reviewedGroup(group, user, foot);
          const body = bodies.get(one.action.id) ?? null;
          return <ReviewedOne request={one} body={body} user={user} now={now} foot={foot} />;
        })}
        {rest.length === 0 ? null : (
          <p class="notice notice-wait">
            {`${counted(rest.length, "more selected request")} on the next page, which follows this decision. `}
            <a href={reviewPath(rest)}>Skip these</a>
          </p>
        )}
        <EndOfRequest />
        {requests.length > 0 ? null : <p class="quiet">Select requests in the list, then choose to review them.</p>}
      </div>
      {requests.length === 0 || !mayDo(user.role, "approve") ? null : (
        <DecisionForm
          user={user}
          path={REVIEW_PATH}
          asked={requests.map(({ action, digest }) => ({ action, digest, body: bodies.get(action.id) ?? null }))}
          fields={[["rest", rest.join(" ")]]}
          what={String(requests.length)}
          extent={values === null ? undefined : counted(values, "value")}
          isAtEnd
          refused={refused}
        />
      )}
    </div>
  );
}

/** How many values a person must read before the decision; null if one of the requests is too large to count. */
function valuesIn(groups: readonly Group[]): number | null {
  const counts = groups.map(({ fields, requests }) =>
    fields === null
      ? Number.NaN
      : fields
          .filter((field) => isShownShared(field) || !isSent(field))
          .reduce((sum, { value }) => sum + (value === null ? requests.length : Number(value !== "")), 0),
  );
  const total = counts.reduce((sum, count) => sum + count, 0);
  return Number.isNaN(total) ? null : total;
}

/** Leads to the request, and to the review without it. */
type Foot = (action: SeenAction) => Child;

interface ReviewedOneProps {
  readonly request: Reviewed;
  readonly body: PageBody | null;
  readonly user: PageUser;
  readonly now: Date;
  readonly foot: Foot;
}

/** A request without look-alikes. */
function ReviewedOne({ request: { action, held }, body, user, now, foot }: ReviewedOneProps) {
  return (
    <article class="reviewed" data-asked="" aria-label={`${action.method} ${shownPath(action)}`}>
      <AskedRequest
        action={action}
        history={held.history}
        body={body}
        bodyPath={bodyPath(action.id)}
        user={user}
        now={now}
      />
      {!mayBeSentBefore(action) && action.callback === null ? null : <p class="small">{waitingText(action)}</p>}
      {foot(action)}
    </article>
  );
}

/** Look-alikes: what they share, then the differences of each, the most unusual first. */
function reviewedGroup({ requests, differing, fields }: Group, user: PageUser, foot: Foot) {
  const [{ action, held, riskMarks }] = requests;
  const ordered = inReadingOrder(differing);
  const outliers = outliersIn(ordered);
  const apart = [...new Set(outliers.map(({ at }) => at))];
  const places = [...apart, ...requests.keys().filter((at) => !apart.includes(at))];
  const said = (fields ?? []).filter((field) => !isSent(field) && field.value !== null && field.value !== "");
  const { facts } = maskedFacts(held.action, held.history, "");
  const common = facts.filter(({ name }) => COMMON_FACTS.has(name));
  return (
    <section class="reviewed" data-asked="">
      <h3>
        <b class="method">{action.method}</b>{" "}
        <span class="address">
          {untrusted(action.url.slice(0, action.url.indexOf("//") + 2))}
          <b>{untrusted(action.host)}</b>
          {untrusted(commonPath(requests.map((request) => shownPath(request.action))))}
        </span>
        {` × ${requests.length}`}
      </h3>
      <Risks risks={riskMarks} />
      <HeldByRules of={requests.map((request) => request.action)} user={user} />
      {outliers.length === 0 ? null : (
        <ul class="outliers" aria-label="Values that stand apart">
          {outliers.map(({ field, at, why }) => (
            <li>
              {fieldName(field)} <b>{untrusted(field.values[at] ?? "")}</b>: {why}
            </li>
          ))}
        </ul>
      )}
      {!mayBeSentBefore(action) && action.callback === null ? null : <p class="small">{waitingText(action)}</p>}
      <Values
        label="What they share"
        rows={(fields ?? []).filter(isShownShared).map((field) => [field, field.value])}
        none={<span class="quiet">{`${counted(requests.length, "value")}, below`}</span>}
      />
      <div
        class={ordered.filter(isSent).length > REVIEW_COLUMNS_MAX ? "reviewed-cards" : "reviewed-cards reviewed-rows"}
      >
        {places.map((at, place) => {
          const request = requests[at];
          if (request === undefined) return null;
          const { id, hiddenValues } = request.action;
          const marks = outliers.filter((outlier) => outlier.at === at).map(({ field }) => field);
          const values = ordered.map((field) => [field, field.values[at] ?? ""] as const);
          const hidden = hiddenValuesText(hiddenValues);
          return (
            <article class="reviewed-card" aria-labelledby={`review-${id}`}>
              <div class="between">
                <h4 id={`review-${id}`} class="small">
                  {`Request ${number(place + 1)}`}
                </h4>
                {foot(request.action)}
              </div>
              <Values look="reviewed-sent" rows={values.filter(([field]) => isSent(field))} marks={marks} />
              {hidden === null ? null : <p class="small quiet">{`${hidden}, which may differ too.`}</p>}
              <Values look="reviewed-said" rows={values.filter(([field]) => !isSent(field))} marks={marks} />
            </article>
          );
        })}
      </div>
      <Values label="The requester says of all" rows={said.map((field) => [field, field.value])} />
      <FactList facts={common} look="asked-facts" action={action} now={null} />
    </section>
  );
}

/** Facts that are equal in look-alikes without being fields of them. */
const COMMON_FACTS: ReadonlySet<string> = new Set([
  "credential",
  "requester",
  "run",
  "callback",
  "attempts",
  "on_unknown",
  "run_at",
  "extras",
]);

/** Whether to list a shared field. The heading already shows the shared parts of the path. */
function isShownShared(field: GroupField): boolean {
  return isSent(field) && (field.place !== "path" || field.value === null);
}

/** Fields in the requester's words, except notes, which have names of their own. */
const IN_WORDS: ReadonlySet<string> = new Set(REQUESTER_TEXTS.filter((name) => name !== "metadata"));

/** Shows a value, quoted if it is the requester's words. */
function saidText({ place }: Pick<GroupField, "place">, value: string): Child {
  if (value === "") return <span class="quiet">None</span>;
  const text = untrusted(value);
  return IN_WORDS.has(place) ? <q>{text}</q> : text;
}

interface ValuesProps {
  readonly label?: string;
  readonly look?: "values" | "reviewed-sent" | "reviewed-said";
  /** A null value means that the requests differ. */
  readonly rows: readonly (readonly [field: GroupField | DifferingField, value: string | null])[];
  readonly marks?: readonly DifferingField[];
  /** Shown in place of null. */
  readonly none?: Child;
}

function Values({ label, look = "values", rows, marks = [], none = null }: ValuesProps) {
  if (rows.length === 0) return null;
  return (
    <dl class={look} aria-label={label}>
      {rows.map(([field, value]) => (
        <div class={marks.some((mark) => mark === field) ? "value-apart" : undefined}>
          <dt>{fieldName(field)}</dt>
          <dd>{value === null ? none : saidText(field, value)}</dd>
        </div>
      ))}
    </dl>
  );
}
