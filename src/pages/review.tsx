/** @jsxImportSource hono/jsx */
import { mayDo } from "../accounts/roles.ts";
import { groupAlike, type RequestGroup } from "../approvals/look-alikes.ts";
import { hiddenValues } from "../receipts/masked-action.ts";
import { type PageBody, pageBody } from "./body-view.tsx";
import { HiddenValues } from "./decide.tsx";
import { DecisionBar, EndOfRequest } from "./decision-bar.tsx";
import { FieldName, GroupName, listedRequest } from "./inbox-list.tsx";
import { REVIEW_PATH } from "./inbox-query.ts";
import { Ago, Table, UntrustedText } from "./parts.tsx";
import { AskedFor, BEGINNING, type HeldRequest, placeOfHidden } from "./request-pane.tsx";
import { RequestParts } from "./request.tsx";
import { counted, type PageUser, waitingText } from "./text.ts";

/** A request whose decision is for what the page shows of it. */
export interface ReviewedRequest extends HeldRequest {
  readonly digest: string;
}

interface ReviewPaneProps {
  readonly requests: readonly ReviewedRequest[];
  /** How many were chosen that wait no longer, or are too large to be read at once: they are not decided. */
  readonly goneCount: number;
  readonly user: PageUser;
  readonly now: Date;
  readonly problem?: string | undefined;
  readonly reason?: string | undefined;
}

type Reviewed = ReturnType<typeof listedRequest> & { readonly held: ReviewedRequest };

/**
 * Several requests to decide at once: each with everything that its approver has to see. Those that look alike are shown
 * once, with a table of all fields in which they differ.
 */
export function ReviewPane({ requests, goneCount, user, now, problem, reason }: ReviewPaneProps) {
  const groups = groupAlike(
    requests.map((held): Reviewed => ({ ...listedRequest(held.action, held.history, user), held })),
  );
  const shown = groups.map((group) => {
    const body = pageBody(group.requests[0].action, BEGINNING);
    return { group, body, rest: body?.rest ?? null };
  });
  const cutCount = shown.reduce((sum, { group, rest }) => sum + (rest === null ? 0 : group.requests.length), 0);
  const what = counted(requests.length, "request");
  return (
    <div id="review" class="request" data-shown={requests.map(({ action }) => `${action.id} ${action.run}`).join(" ")}>
      <div class="request-body">
        <h2>{requests.length === 0 ? "No request is selected" : `Decide on ${what}`}</h2>
        {goneCount === 0 ? null : (
          <p class="notice notice-wait">
            {`${counted(goneCount, "selected request")} no longer waiting, or too large to be shown with the others.`}
          </p>
        )}
        {shown.map(({ group, body }) => (
          <ReviewedGroup group={group} body={body} user={user} now={now} />
        ))}
        <EndOfRequest />
        {requests.length > 0 ? null : <p class="quiet">Select requests in the list, then choose to review them.</p>}
      </div>
      {requests.length === 0 || !mayDo(user.role, "approve") ? null : (
        <DecisionBar
          user={user}
          id="review"
          path={REVIEW_PATH}
          fields={[["requests", requests.map(shownText).join(" ")]]}
          what={what}
          question={what}
          unread={cutCount < 2 && requests.length < 2 ? (shown[0]?.rest ?? null) : partsOf(cutCount)}
          folded={shown.reduce((sum, { body }) => sum + (body?.folded ?? 0), 0)}
          problem={problem}
          reason={reason}
        />
      )}
    </div>
  );
}

function partsOf(count: number): string | null {
  return count === 0 ? null : `parts of ${count}`;
}

/** A request as the form names it: what was shown, and nothing else, is decided. */
function shownText({ action: { id, run }, digest }: ReviewedRequest): string {
  return `${id},${run},${digest}`;
}

interface ReviewedGroupProps {
  readonly group: RequestGroup<Reviewed>;
  /** Of the first of them. */
  readonly body: PageBody | null;
  readonly user: PageUser;
  readonly now: Date;
}

function ReviewedGroup({ group, body, user, now }: ReviewedGroupProps) {
  const { requests, differing } = group;
  const [{ action, held }] = requests;
  const hidden = placeOfHidden(action);
  return (
    <section class="reviewed" data-asked="">
      {requests.length === 1 ? null : (
        <>
          <h3>
            <GroupName group={group} />
          </h3>
          <Table
            caption="The fields in which they differ"
            heads={[...differing.map((field) => <FieldName field={field} />), "Age"]}
            rows={requests.map((request, at) => [
              ...differing.map(({ values }) => <UntrustedText text={values[at] ?? ""} />),
              <a href={`/approvals/${request.action.id}`}>
                <Ago at={request.action.createdAt} now={now} />
              </a>,
            ])}
            isWide
          />
          <p class="quiet small">
            {`The oldest of the ${requests.length}. The others differ from it only as the table says`}
            {hiddenValues(action) === 0 ? "." : ", and perhaps in the values that are hidden."}
          </p>
        </>
      )}
      {action.run === 1 && action.callback === null ? null : <p class="small">{waitingText(action)}</p>}
      {hidden === "above" ? <HiddenValues action={action} user={user} /> : null}
      <AskedFor {...held} user={user} now={now}>
        {hidden === "inside" ? <HiddenValues action={action} user={user} /> : null}
        <RequestParts
          action={action}
          isAsked
          cut={body === null ? undefined : { body, path: `/approvals/${action.id}` }}
        />
      </AskedFor>
    </section>
  );
}
