/** @jsxImportSource hono/jsx */
import { FilterParameters } from "../../api/list-schemas.ts";
import { BULK_OPERATIONS, type BulkJob, type BulkOperation } from "../../core/bulk-job.ts";
import { jobFilter, BulkParams } from "../../bulk/routes.ts";
import type { BulkPreview } from "../../bulk/service.ts";
import { mayChange, mayDo, type Viewer, roleViewer } from "../../core/roles.ts";
import { maskedActor } from "../../receipts/masked-action.ts";
import { maskText } from "../../receipts/masking.ts";
import { refusesSame } from "../action/advice.ts";
import { Button, PostForm, ReasonField } from "../../ui/form.tsx";
import { actionPath, ACTIONS_PATH, BULK_PATH, bulkPath, Layout, queryText, render } from "../../ui/layout.tsx";
import {
  Dot,
  type FactRows,
  Facts,
  LinkButton,
  NextPage,
  Notice,
  PageHead,
  Problem,
  time,
  untrusted,
  actorName,
} from "../../ui/parts.tsx";
import { counted, inWords, number } from "../../ui/text.ts";
import { DomainError } from "../../core/domain-error.ts";
import { queryCheck } from "../../api/check.ts";
import { checkListQuery, encodeCursor } from "../../api/cursor.ts";
import { LIST_LIMIT_DEFAULT } from "../../core/limits.ts";
import type { Form } from "../../http/body.ts";
import type { RequestContext } from "../../http/request.ts";
import { seeOther } from "../../http/response.ts";
import type { Person } from "../../http/session.ts";
import { BULK_ID } from "../../core/ids.ts";
import { reasonInForm } from "../decisions/decision-form.tsx";
import type { FormState } from "../frame/forms.ts";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import { List } from "../frame/list.tsx";

export function newBulkPath(operation: BulkOperation, query: FilterParameters): string {
  return `${BULK_PATH}/new${queryText({ ...query, operation })}`;
}

interface Verb {
  readonly name: string;
  readonly done: string;
  /** The statuses that the operation applies to. */
  readonly from: string;
  readonly what: string;
}

const VERBS: Readonly<Record<BulkOperation, Verb>> = {
  retry: {
    name: "Retry",
    done: "retried",
    from: "failed or cancelled",
    what: "Each action starts a new run, with all of its attempts and the same Idempotency-Key as before. Actions that needed approval need it again.",
  },
  cancel: {
    name: "Cancel",
    done: "cancelled",
    from: "pending or awaiting approval",
    what: "Each action is cancelled, and rejected where it awaits approval. What is being sent meanwhile is not cancelled.",
  },
};

/** A job that somebody is about to start. */
interface NewBulk {
  readonly operation: BulkOperation;
  readonly query: FilterParameters;
}

async function newBulkPage(deps: PageDeps, user: Person, bulk: NewBulk, refused?: FormState): Promise<string> {
  const { operation, query } = bulk;
  const found = await deps.bulkService.dryRun(user.caller, { operation, filter: query, reason: null });
  const { name, what } = VERBS[operation];
  const { matching, isMore } = found;
  // How many selected actions the operation does not apply to.
  const { id: ids } = query;
  const left = new Set(ids).size - matching;
  const amount = `${isMore ? "the newest " : ""}${counted(matching, "action")}`;
  const back = { href: `/actions${queryText(query)}`, name: "Actions" };
  const title = matching === 0 ? `No actions to ${operation}` : `${name} ${amount}?`;
  return render(
    <Layout title={title} nav="Actions" user={user}>
      <PageHead title={title} back={back} />
      <Problem text={refused?.problem} />
      <section class="card">
        <Facts rows={filterRows(query, roleViewer(user.role))} />
        {ids === undefined || left <= 0 ? null : (
          <p>{`${left} of the ${counted(ids.length, "action")} that you selected can't be included: only those that are ${VERBS[operation].from} can.`}</p>
        )}
        {matching === 0 ? (
          <p>
            <LinkButton href={back.href}>Back to the list</LinkButton>
          </p>
        ) : (
          <>
            {foundByHost(operation, found)}
            <p>{what}</p>
            {isMore ? <p>More actions match. Start again when this job has ended.</p> : null}
            {repeatWarning(operation, found)}
            <PostForm
              user={user}
              action={`${BULK_PATH}${queryText(query)}`}
              fields={[
                ["operation", operation],
                ["at_most", String(matching)],
              ]}
            >
              <ReasonField value={refused?.values.get("reason")} hint="Shown in the timeline of each action." />
              <div class="buttons">
                <Button
                  look={operation === "cancel" ? "danger" : "main"}
                >{`${name} ${counted(matching, "action")}`}</Button>
                <LinkButton href={back.href}>Back</LinkButton>
              </div>
            </PostForm>
          </>
        )}
      </section>
    </Layout>,
  );
}

/** What was found by host and status, so that people see what would fail again. */
function foundByHost(operation: BulkOperation, { matching, groups }: BulkPreview) {
  const others = matching - groups.reduce((sum, { count }) => sum + count, 0);
  return (
    <ul class="stack">
      {groups.map(({ host, responseCode, count }) => (
        <li>
          {`${number(count)} × `}
          {responseCode === null ? null : <b>{responseCode}</b>} {untrusted(host)}
          {operation === "retry" && responseCode !== null && refusesSame(responseCode) ? (
            <span class="says">Likely to fail again: the target refused the request. Edit and resend instead.</span>
          ) : null}
        </li>
      ))}
      {others === 0 ? null : <li class="quiet">{`${number(others)} of other hosts and statuses`}</li>}
    </ul>
  );
}

/** Warns that a repeated call may take effect a second time. */
function repeatWarning(operation: BulkOperation, { matching, unknownOutcomes, lateSuccesses }: BulkPreview) {
  if (operation === "cancel" || unknownOutcomes + lateSuccesses === 0) return null;
  if (lateSuccesses > 0) {
    return (
      <Notice tone="bad">
        {`${counted(matching, "action")}, ${number(lateSuccesses)} that the target has done already: it answered with success, but too late for the status. A retry does ${lateSuccesses === 1 ? "it" : "them"} again.`}
        {unknownOutcomes > lateSuccesses ? ` ${number(unknownOutcomes)} had attempts with an unknown outcome.` : ""}
      </Notice>
    );
  }
  return (
    <Notice tone="wait">
      {`${counted(matching, "action")}, ${number(unknownOutcomes)} with unknown outcome: the target may have done ${
        unknownOutcomes === 1 ? "it" : "them"
      } already.`}{" "}
      {unknownOutcomes === 1 ? "It" : "They"} got no answer. Check with the target before you retry.
    </Notice>
  );
}

/** The conditions of a filter. Ids are only counted, since the list is a link away. */
function filterRows(filter: Readonly<Record<string, unknown>>, viewer: Viewer): FactRows {
  return Object.entries(filter).map(([name, value]) => {
    const texts = [value].flat().map((one) => (typeof one === "string" ? maskText(one, viewer) : String(one)));
    const label = FILTER_NAMES.get(name) ?? inWords(name);
    if (name === "id") {
      return [label, <a href={`/actions${queryText({ id: value })}`}>{counted(texts.length, "action")}</a>] as const;
    }
    const text = texts.join(", ");
    return [label, untrusted(name === "status" ? text.replaceAll("_", " ") : text)] as const;
  });
}

const FILTER_NAMES: ReadonlyMap<string, string> = new Map([
  ["id", "Selected"],
  ["q", "Search"],
  ["created_by", "Agent"],
  ["response_code", "Code"],
  ["error", "Failure"],
]);

/** The page of a job's progress. It updates with every change of an action. */
async function bulkJobPage({ bulkService }: PageDeps, user: Person, id: string): Promise<string> {
  const { caller } = user;
  const job = await bulkService.find(caller, id);
  const { operation, matching, done, failed } = job;
  const viewer = roleViewer(user.role);
  // The last step of a job may be stored before its end.
  const isUnderWay = job.status === "running" && done + failed < matching;
  const canStop = isUnderWay && mayDo(caller.role, operation) && mayChange(caller, job);
  const asked = { status: "failed", before: null, limit: FAILURES_SHOWN } as const;
  const failures = failed === 0 ? [] : (await bulkService.results(caller, id, asked)).slice(0, FAILURES_SHOWN);
  const title = `${VERBS[operation].name} ${counted(matching, "action")}`;
  return render(
    <Layout title={title} nav="Actions" user={user} follows="all">
      <PageHead
        title={title}
        back={{ href: BULK_PATH, name: "Bulk jobs" }}
        actions={
          canStop ? (
            <PostForm user={user} action={`${bulkPath(job.id)}/stop`}>
              <Button look="bad">Stop</Button>
            </PostForm>
          ) : undefined
        }
      />
      <section class="card" aria-label="Progress">
        <div class="stack">
          <progress aria-label="Done" value={done + failed} max={Math.max(1, matching)}>
            {done + failed}
          </progress>
          <p role="status">
            <Dot {...STATES[job.status]} /> <span>{progressText(job)}</span>
          </p>
        </div>
        <Facts
          rows={[
            ["Started", time(job.createdAt)],
            ["By", actorName(maskedActor(job.createdBy, viewer))],
            ["Reason", job.reason === null ? null : untrusted(maskText(job.reason, viewer))],
            ...filterRows(
              jobFilter(job, (text) => text),
              viewer,
            ),
          ]}
        />
        {operation === "retry" && done > 0 ? (
          <p class="small quiet">
            Actions that need approval again are among the <a href="/approvals">approvals</a>.
          </p>
        ) : null}
      </section>
      {failures.length === 0 ? null : (
        <section class="card">
          <h2>
            {failed > failures.length ? `Refused: the newest ${failures.length} of ${number(failed)}` : "Refused"}
          </h2>
          <ul class="stack">
            {failures.map((one) => (
              <li>
                <a href={actionPath(one.id)}>
                  <code>{one.id}</code>
                </a>{" "}
                <span class="quiet">{one.message}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </Layout>,
  );
}

function progressText(job: BulkJob): string {
  const { operation, status, matching, done, failed } = job;
  const refused = failed === 0 ? "" : `, ${number(failed)} refused`;
  const left = matching - done - failed;
  const rest = left === 0 ? "" : `, ${number(left)} ${status === "stopped" ? "left as they were" : "to go"}`;
  return `${counted(done, "action")} ${VERBS[operation].done}${refused}${rest}.`;
}

const STATES = {
  running: { tone: "busy", children: "Running" },
  finished: { tone: "good", children: "Finished" },
  stopped: { tone: "still", children: "Stopped" },
} as const satisfies Record<BulkJob["status"], Parameters<typeof Dot>[0]>;

async function bulkListPage({ bulkService }: PageDeps, user: Person, search: string): Promise<string> {
  const viewer = roleViewer(user.role);
  const { before } = checkListQuery({}, new URLSearchParams(search).get("cursor") ?? undefined, BULK_ID);
  const found = await bulkService.list(user.caller, before, LIST_LIMIT_DEFAULT);
  const jobs = found.slice(0, LIST_LIMIT_DEFAULT);
  const last = found.length > LIST_LIMIT_DEFAULT ? jobs.at(-1) : undefined;
  const older = last === undefined ? null : `${BULK_PATH}?cursor=${encodeCursor(last.id)}`;
  return render(
    <Layout title="Bulk jobs" nav="Actions" user={user} width="wide" follows="all">
      <PageHead title="Bulk jobs" back={{ href: "/actions", name: "Actions" }} />
      <List
        title="Bulk jobs"
        rows={jobs}
        columns={[
          [
            "Job",
            (job) => <a href={bulkPath(job.id)}>{`${VERBS[job.operation].name} ${counted(job.matching, "action")}`}</a>,
            "main",
          ],
          ["State", ({ status }) => <Dot {...STATES[status]} />],
          ["Progress", progressText],
          ["By", ({ createdBy }) => actorName(maskedActor(createdBy, viewer))],
          ["Started", ({ createdAt }) => time(createdAt)],
        ]}
        empty={{
          icon: "retry",
          title: "No bulk jobs",
          text: (
            <>
              Select actions, or filter the list by a status, to retry or cancel many at once.{" "}
              <a href="/actions?status=failed">Show failed actions</a>
            </>
          ),
        }}
      />
      <NextPage href={older} name="Older" />
    </Layout>,
  );
}

export function bulkPages(deps: PageDeps) {
  const { bulkService, answer } = deps;
  const begin = answer(
    async ({ context, person, form }) => {
      const { operation, query: filter } = jobIn(context, form);
      const request = { operation, filter, reason: reasonInForm(form) };
      // Without its count the form shows none, so it covers none.
      const shown = Number(form.get("at_most") ?? 0);
      const job = await bulkService.start(person.caller, request, Number.isInteger(shown) ? shown : 0);
      return bulkPath(job.id);
    },
    ({ context, person }, refused) => newBulkPage(deps, person, jobIn(context, refused.values), refused),
  );
  const stop = answer<ById>(async ({ person, params: { id } }) => {
    await bulkService.stop(person.caller, id);
    return bulkPath(id);
  });
  const hooks = { params: BulkParams };
  return personPages(deps)
    .get(BULK_PATH, ({ context, person }) => bulkListPage(deps, person, context.search))
    .post(BULK_PATH, begin)
    .get(`${BULK_PATH}/new`, ({ context, person }) => {
      const operation = operationIn(new URLSearchParams(context.search).get("operation"));
      const query = filterIn(context.search);
      // No selection must not mean all actions.
      if (Object.keys(query).length === 0) return seeOther("own", ACTIONS_PATH);
      return newBulkPage(deps, person, { operation, query });
    })
    .get(`${BULK_PATH}/:id`, ({ person, params }) => bulkJobPage(deps, person, params.id), hooks)
    .post(`${BULK_PATH}/:id/stop`, stop, hooks);
}

/** How many failures the page of a job shows. The API returns all of them. */
const FAILURES_SHOWN = 50;

const readFilter = queryCheck(FilterParameters);

/** The filter in a query; throws `invalid_query`. */
function filterIn(search: string): FilterParameters {
  const query = new URLSearchParams(search);
  query.delete("operation");
  return readFilter(query.toString());
}

function operationIn(text: string | null | undefined): BulkOperation {
  const operation = BULK_OPERATIONS.find((known) => known === text);
  if (operation !== undefined) return operation;
  throw new DomainError("validation_error", "Choose what to do.", [
    { field: "operation", message: `Must be one of ${BULK_OPERATIONS.join(", ")}.` },
  ]);
}

/** The job that a form asks for. Throws `validation_error` and `invalid_query`. */
function jobIn({ search }: RequestContext, form: Form): NewBulk {
  const operation = operationIn(form.get("operation"));
  const query = filterIn(search);
  if (Object.keys(query).length > 0) return { operation, query };
  throw new DomainError("validation_error", "Select actions, or filter the list.");
}
