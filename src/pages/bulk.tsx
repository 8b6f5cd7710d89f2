/** @jsxImportSource hono/jsx */
import type { FilterQuery } from "../actions/list-schemas.ts";
import type { BulkJob, BulkOperation, BulkResult } from "../bulk/job.ts";
import { filterOf } from "../bulk/schemas.ts";
import type { DryRun } from "../bulk/service.ts";
import { describeActor, type Viewer, viewerOf } from "../accounts/roles.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import { maskText } from "../receipts/masking.ts";
import { Button, PostForm, ReasonField } from "./form.tsx";
import { actionPath, Layout, queryText, render } from "./layout.tsx";
import {
  Dot,
  FieldRow,
  LinkButton,
  NextPage,
  Notice,
  PageHead,
  Problem,
  Time,
  type Tone,
  UntrustedText,
} from "./parts.tsx";
import { counted, type PageUser } from "./text.ts";

export const BULK_PATH = "/bulk";

export function bulkPath(id: string): string {
  return `${BULK_PATH}/${id}`;
}

/** The page that asks before a job begins. */
export function newBulkPath(operation: BulkOperation, query: FilterQuery): string {
  return `${BULK_PATH}/new${queryText({ ...query, operation })}`;
}

const VERBS: Readonly<Record<BulkOperation, { readonly name: string; readonly done: string; readonly what: string }>> =
  {
    retry: {
      name: "Retry",
      done: "retried",
      what: "Each action starts a new run, with all of its attempts and the same Idempotency-Key as before. Actions that needed approval need it again.",
    },
    cancel: {
      name: "Cancel",
      done: "cancelled",
      what: "Each action is cancelled, and rejected where it awaits approval. What is being sent meanwhile is not cancelled.",
    },
  };

interface NewBulkProps {
  readonly user: PageUser;
  readonly operation: BulkOperation;
  readonly query: FilterQuery;
  readonly found: DryRun;
  readonly problem?: string | null;
  readonly reason?: string;
}

/** Says how many actions a job would cover, and asks. */
export function newBulkPage({ user, operation, query, found, problem, reason = "" }: NewBulkProps): string {
  const { name, what } = VERBS[operation];
  const { matching, isMore, unknownOutcomes } = found;
  const amount = `${isMore ? "the newest " : ""}${counted(matching, "action")}`;
  const back = { href: `/actions${queryText(query)}`, name: "Actions" };
  return render(
    <Layout title={`${name} in bulk`} nav="Actions" user={user}>
      <PageHead title={matching === 0 ? `Nothing to ${operation}` : `${name} ${amount}?`} back={back} />
      <Problem text={problem} />
      <section class="card">
        <Filters filter={query} viewer={viewerOf(user.role)} />
        {matching === 0 ? null : (
          <>
            <p>{what}</p>
            {isMore ? <p>There are more: start again when this job has ended.</p> : null}
            {operation === "retry" && unknownOutcomes > 0 ? (
              <Notice tone="bad">
                {`${counted(unknownOutcomes, "action")} may have been carried out already: the target may have received an attempt that got no answer.`}
              </Notice>
            ) : null}
            <PostForm user={user} action={`${BULK_PATH}${queryText(query)}`} fields={[["operation", operation]]}>
              <ReasonField value={reason} hint="Shown in the timeline of each action." />
              <div class="buttons">
                <Button
                  look={operation === "cancel" ? "bad" : "main"}
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

/** The conditions of a filter, as the API names them. */
interface FilterProps {
  readonly filter: Readonly<Record<string, unknown>>;
  readonly viewer: Viewer;
}

function Filters({ filter, viewer }: FilterProps) {
  const conditions = Object.entries(filter).flatMap(([name, value]) =>
    [value].flat().map((one) => `${name}: ${typeof one === "string" ? maskText(one, viewer) : String(one)}`),
  );
  return (
    <p class="quiet small">
      <UntrustedText text={conditions.join(", ")} />
    </p>
  );
}

interface BulkJobProps {
  readonly user: PageUser;
  readonly job: BulkJob;
  /** The newest of those that refused. */
  readonly failures: readonly BulkResult[];
  readonly canStop: boolean;
}

/** How far a job is. It updates with every change of an action. */
export function bulkJobPage({ user, job, failures, canStop }: BulkJobProps): string {
  const { operation, matching, done, failed } = job;
  const isOver = isEnded(job);
  return render(
    <Layout title={`${VERBS[operation].name} in bulk`} nav="Actions" user={user} follows="all">
      <PageHead
        title={`${VERBS[operation].name} ${counted(matching, "action")}`}
        back={{ href: BULK_PATH, name: "Bulk jobs" }}
      />
      <section class="card" aria-label="Progress">
        <div id="progress" data-live="">
          <progress aria-label="Done" value={done + failed} max={Math.max(1, matching)}>
            {done + failed}
          </progress>
          <p role="status">{progressText(job)}</p>
        </div>
        <JobFacts job={job} user={user} />
        <div id="stop" data-live="">
          {isOver || !canStop ? null : (
            <PostForm user={user} action={`${bulkPath(job.id)}/stop`}>
              <Button look="bad">Stop</Button>
            </PostForm>
          )}
        </div>
        {operation === "retry" ? (
          <p class="small">
            Actions that need approval again are among the <a href="/approvals">approvals</a>.
          </p>
        ) : null}
      </section>
      <div id="failures" data-live="">
        {failures.length === 0 ? null : <Failures job={job} failures={failures} />}
      </div>
    </Layout>,
  );
}

/** The last step may be written and its end not yet. */
function isEnded({ status, matching, done, failed }: BulkJob): boolean {
  return status !== "running" || done + failed >= matching;
}

function progressText(job: BulkJob): string {
  const { operation, status, matching, done, failed } = job;
  const not = failed === 0 ? "" : `, ${failed} could not be`;
  const left = matching - done - failed;
  const rest = status === "stopped" ? `Stopped; ${left} left as they were.` : leftText(left);
  return `${counted(done, "action")} ${VERBS[operation].done}${not}. ${rest}`;
}

function leftText(left: number): string {
  return left === 0 ? "None left." : `${left} left.`;
}

function JobFacts({ job, user }: Pick<BulkJobProps, "job" | "user">) {
  const viewer = viewerOf(user.role);
  return (
    <>
      <p class="quiet small">
        <Time at={job.createdAt} /> by <UntrustedText text={describeActor(maskedActor(job.createdBy, viewer)).name} />
        {job.reason === null ? null : (
          <>
            : <UntrustedText text={maskText(job.reason, viewer)} />
          </>
        )}
      </p>
      <Filters filter={filterOf(job, (text) => text)} viewer={viewer} />
    </>
  );
}

function Failures({ job, failures }: Pick<BulkJobProps, "job" | "failures">) {
  return (
    <section class="card">
      <h2>
        {job.failed > failures.length
          ? `The newest ${failures.length} of ${job.failed} that could not be`
          : "Could not be"}
      </h2>
      <ul class="stack">
        {failures.map(({ id, message }) => (
          <li>
            <a href={actionPath(id)}>{id}</a> <span class="quiet">{message}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const STATES: Readonly<Record<BulkJob["status"], { readonly tone: Tone; readonly label: string }>> = {
  running: { tone: "busy", label: "Running" },
  finished: { tone: "good", label: "Finished" },
  stopped: { tone: "still", label: "Stopped" },
};

interface BulkListProps {
  readonly user: PageUser;
  readonly jobs: readonly BulkJob[];
  /** The path of older ones; null: there are none. */
  readonly older: string | null;
}

export function bulkListPage({ user, jobs, older }: BulkListProps): string {
  return render(
    <Layout title="Bulk jobs" nav="Actions" user={user} follows="all">
      <PageHead title="Bulk jobs" back={{ href: "/actions", name: "Actions" }} />
      {jobs.length === 0 ? <p class="quiet">None so far. Filter the actions by a status to begin one.</p> : null}
      <ul id="jobs" class="card rows" data-live="">
        {jobs.map((job) => (
          <FieldRow>
            <p class="chips">
              <a href={bulkPath(job.id)}>{`${VERBS[job.operation].name} ${counted(job.matching, "action")}`}</a>{" "}
              <Dot tone={STATES[job.status].tone}>{STATES[job.status].label}</Dot>
            </p>
            <p class="small">{progressText(job)}</p>
            <JobFacts job={job} user={user} />
          </FieldRow>
        ))}
      </ul>
      <NextPage href={older} name="Older" />
    </Layout>,
  );
}
