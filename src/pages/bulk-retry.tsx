/** @jsxImportSource hono/jsx */
import type { ListQuery } from "../actions/list-schemas.ts";
import { REASON_CHARS_MAX, RETRY_BATCH_MAX } from "../config/limits.ts";
import { Button, Field, FormToken } from "./form.tsx";
import { Layout, actionPath, listPath, render } from "./layout.tsx";
import { Notice } from "./parts.tsx";
import { type PageUser, counted } from "./words.ts";
import type { Action } from "../actions/action.ts";
import { RequestView, shown } from "./request.tsx";

interface Count {
  readonly count: number;
  readonly isMore: boolean;
}

export interface BulkRetryProps extends Count {
  readonly user: PageUser;
  readonly query: ListQuery;
}

/** Offers to retry every failed or cancelled action of the list. */
export function BulkRetry({ user, query, ...count }: BulkRetryProps) {
  return (
    <details>
      <summary>Retry all of these: {amountOf(count)}</summary>
      <form class="card" method="post" action={listPath(query, { cursor: undefined })} data-batch="">
        <FormToken user={user} />
        <p>
          Each action starts a new run, with all of its attempts and the same Idempotency-Key as before. Actions that
          needed approval need it again.
        </p>
        <Field
          name="reason"
          label="Reason"
          hint="Optional. Shown in the timeline of each action."
          charsMax={REASON_CHARS_MAX}
        />
        <div class="buttons">
          <Button>Retry {amountOf(count)}</Button>
        </div>
      </form>
    </details>
  );
}

function amountOf({ count, isMore }: Count): string {
  return `${isMore ? "more than " : ""}${counted(count, "action")}`;
}

/** Totals of all steps so far. */
export interface BulkProgress {
  readonly retried: number;
  readonly held: number;
  /** Could not be retried. */
  readonly refused: number;
}

export interface BulkStepProps {
  readonly user: PageUser;
  readonly query: ListQuery;
  readonly reason: string;
  readonly progress: BulkProgress;
  /** Of this step. */
  readonly refused: readonly { readonly id: string; readonly message: string }[];
  readonly left: Count;
  /** Where the next step begins; null: it is done. */
  readonly cursor: string | null;
}

/** The result of one step, with the button for the next. `live.js` presses it automatically. */
export function bulkStepPage(props: BulkStepProps): string {
  const { user, query, progress, refused, left, cursor } = props;
  const done = progress.retried + progress.refused;
  const isDone = cursor === null;
  return render(
    <Layout title={isDone ? "Retried" : "Retrying"} place="Actions" user={user}>
      <h1>{isDone ? "Retry complete" : "Retrying"}</h1>
      <section id="batch" class="card" aria-label="Progress">
        <progress aria-label="Done" value={done} max={done + left.count}>
          {done}
        </progress>
        <p role="status">{sentenceOf(progress, left, isDone)}</p>
        {progress.held === 0 ? null : (
          <Notice tone="wait">
            {counted(progress.held, "action")} {progress.held === 1 ? "needs" : "need"} approval again:{" "}
            <a href="/approvals">Approvals</a>
          </Notice>
        )}
        {refused.length === 0 ? null : (
          <ul class="stack">
            {refused.map(({ id, message }) => (
              <li>
                <a href={actionPath(id)}>{id}</a> <span class="quiet">{message}</span>
              </li>
            ))}
          </ul>
        )}
        <div class="buttons">
          {cursor === null ? null : <GoOn {...props} cursor={cursor} />}
          <a class="button button-plain" href={listPath(query, { cursor: undefined })}>
            {isDone ? "Back to the list" : "Stop"}
          </a>
        </div>
      </section>
    </Layout>,
  );
}

function sentenceOf({ retried, refused }: BulkProgress, left: Count, isDone: boolean): string {
  const not = refused === 0 ? "" : `, ${refused} could not be retried`;
  return `${counted(retried, "action")} retried${not}. ${isDone ? "None left." : `${amountOf(left)} left.`}`;
}

function GoOn({ user, query, reason, progress, cursor }: BulkStepProps & { readonly cursor: string }) {
  return (
    <form method="post" action={listPath(query, { cursor })} data-batch="">
      <FormToken user={user} />
      <input type="hidden" name="reason" value={reason} />
      {(["retried", "held", "refused"] as const).map((name) => (
        <input type="hidden" name={name} value={progress[name]} />
      ))}
      <Button>{`Continue with the next ${RETRY_BATCH_MAX}`}</Button>
    </form>
  );
}

export interface ResendPageProps {
  readonly action: Action;
  readonly user: PageUser;
  /** An attempt has the outcome `unknown`, so the person has to confirm. */
  readonly isUnknown: boolean;
  readonly problem?: string;
}

/** Asks for confirmation before an action is created anew. */
export function resendPage({ user, isUnknown, problem, ...props }: ResendPageProps): string {
  const action = shown(props.action, "decider");
  return render(
    <Layout title={`Send again: ${action.method} ${action.host}`} place="Actions" user={user}>
      <div class="head">
        <p class="small on-screen">
          <a href={actionPath(action.id)}>Back to the action</a>
        </p>
        <h1>Send this again as a new action?</h1>
        <p>
          It gets its own ID and Idempotency-Key, so the target treats it as a new request.
          {action.approve ? " It is held for approval, like the original." : " It is sent immediately."}
        </p>
      </div>
      <RequestView action={action} tellsCallback />
      <form class="card" method="post" action={`${actionPath(action.id)}/again`}>
        <FormToken user={user} />
        {problem === undefined ? null : <Notice tone="bad">{problem}</Notice>}
        {isUnknown ? (
          <>
            <Notice tone="wait">
              The outcome of an attempt is unknown: the target may already have processed this request.
            </Notice>
            <label class="check">
              <input type="checkbox" name="sure" value="yes" required />
              <span>Send it even though the target may have received it</span>
            </label>
          </>
        ) : null}
        <div class="buttons">
          <Button>Send as a new action</Button>
        </div>
      </form>
      <p class="foot">Secrets are masked as ••••. The request is sent with the real values.</p>
    </Layout>,
  );
}
