/** @jsxImportSource hono/jsx */
import type { Counted } from "../../db/store.ts";
import { describeActor, viewerOf } from "../accounts/roles.ts";
import type { KeyView } from "../accounts/schemas.ts";
import { type Action, type ActionStatus, HTTP_METHODS, awaitsRunAt } from "../actions/action.ts";
import type { ListQuery } from "../actions/list-schemas.ts";
import type { Issue } from "../api/domain-error.ts";
import { REASON_CHARS_MAX, RETRY_BATCH_MAX } from "../config/limits.ts";
import type { PauseOf } from "../pauses/pause.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import { maskText } from "../receipts/masking.ts";
import { Button, Field, type FieldProps, PostForm, Select } from "./form.tsx";
import { actionPath, ACTIONS_PATH, Layout, listPath, render } from "./layout.tsx";
import {
  Ago,
  Chip,
  FilterLinks,
  LinkButton,
  Notice,
  Problem,
  StatusChip,
  statusLabel,
  UntrustedText,
} from "./parts.tsx";
import { maskForDisplay } from "./request.tsx";
import { keyHeader } from "./snippets.tsx";
import { counted, type PageUser } from "./text.ts";

interface ActionsProps {
  readonly user: PageUser;
  /** The filters; empty if they are invalid. */
  readonly query: ListQuery;
  readonly typed: ReadonlyMap<string, string>;
  readonly problems: readonly Issue[];
  /** Newest first. */
  readonly actions: readonly Action[];
  readonly pauseOf: PauseOf;
  /** Where the next page begins; null: there is none. */
  readonly cursor: string | null;
  /** How many actions of the whole list can be retried. */
  readonly retryable: Counted;
  /** The keys of the account, for the filter. */
  readonly keys: readonly KeyView[];
  readonly now: Date;
  /** Where programs reach the API. */
  readonly baseUrl: string;
}

/** The list of actions, newest first. Its filters are the query parameters of `GET /v1/actions`. */
export function actionsPage(props: ActionsProps): string {
  const { user, query, actions, problems, pauseOf, now } = props;
  return render(
    <Layout title="Actions" nav="Actions" user={user} width="wide" follows="all" now={now}>
      <div class="head-row">
        <h1>Actions</h1>
        <Search />
      </div>
      <Filters {...props} />
      <Problem text={problemText(problems)} />
      <div id="bulk" data-live="">
        {props.retryable.count === 0 ? null : <BulkRetry {...props} />}
      </div>
      <ol id="actions" class="rows card" data-live="items">
        {actions.map((action) => (
          <ActionRow
            action={maskForDisplay(action, viewerOf(user.role))}
            isPaused={action.status === "pending" && pauseOf(action) !== null}
            now={now}
          />
        ))}
      </ol>
      <div id="empty" data-live="">
        {actions.length === 0 && problems.length === 0 ? <Empty {...props} /> : null}
      </div>
      <Pager query={query} cursor={props.cursor} />
    </Layout>,
  );
}

function problemText(problems: readonly Issue[]): string | null {
  const named = problems.map(({ field, message }) => `${field}: ${message}`).join(" ");
  return problems.length === 0 ? null : `These filters are not valid. ${named}`;
}

interface ActionRowProps extends Pick<ActionsProps, "now"> {
  readonly action: Action;
  readonly isPaused: boolean;
}

function ActionRow({ action, isPaused, now }: ActionRowProps) {
  const { id, method, host, url, createdBy, status, attempts, retries, createdAt } = action;
  const path = url.slice(url.indexOf("//") + "//".length + host.length);
  return (
    <li class="row action" id={id}>
      <div>
        <a class="row-link" href={actionPath(id)} data-item="">
          {method} <UntrustedText text={host} />
        </a>
        {action.title === null ? null : (
          <p>
            <UntrustedText text={action.title} />
          </p>
        )}
        <p class="glimpse">
          <UntrustedText text={path.slice(0, PATH_CHARS)} />
        </p>
        <span class="quiet small">
          by <UntrustedText text={describeActor(maskedActor(createdBy, "decider")).name} />
        </span>
      </div>
      <div class="meta">
        <StatusChip status={status} />
        {isPaused ? <Chip tone="wait">Paused</Chip> : null}
        {!isPaused && awaitsRunAt(action) ? <Chip tone="still">Delayed</Chip> : null}
        <span class="quiet small">
          {`${attempts} of ${retries}`}
          <span class="word">{retries === 1 ? " attempt" : " attempts"}</span>
        </span>
        <span class="age quiet small">
          <Ago at={createdAt} now={now} />
        </span>
      </div>
    </li>
  );
}

/** More than a wide screen shows; CSS cuts the rest. */
const PATH_CHARS = 240;

/** There is no link to the previous page, because it changes with every new action. */
function Pager({ query, cursor }: Pick<ActionsProps, "query" | "cursor">) {
  if (cursor === null && query.cursor === undefined) return <div id="pager" data-live="" />;
  return (
    <div id="pager" data-live="">
      <nav class="buttons" aria-label="Pages">
        {query.cursor === undefined ? null : (
          <LinkButton href={listPath(query, { cursor: undefined })}>Back to newest</LinkButton>
        )}
        {cursor === null ? null : <LinkButton href={listPath(query, { cursor })}>Older</LinkButton>}
      </nav>
    </div>
  );
}

function Empty({ query, cursor, baseUrl }: ActionsProps) {
  const isFiltered = Object.entries(query).some(([name, value]) => name !== "limit" && value !== undefined);
  if (cursor !== null || isFiltered) {
    return (
      <section class="card">
        {cursor === null ? (
          <>
            <p>No actions match these filters.</p>
            <p>
              <a href={ACTIONS_PATH}>Show all actions</a>
            </p>
          </>
        ) : (
          <p>No matching actions on this page. Select Older to search further back.</p>
        )}
      </section>
    );
  }
  return (
    <section class="card">
      <p>No actions yet. Send your first one with the agent key that the first start printed:</p>
      <pre class="code" data-copy="">
        {`curl -s ${baseUrl}/v1/actions \\
  ${keyHeader("AGENT_KEY")} -H 'Content-Type: application/json' \\
  -d '{"url":"https://example.com/","method":"GET"}'`}
      </pre>
      <p class="quiet">It appears here automatically.</p>
    </section>
  );
}

type FiltersProps = Pick<ActionsProps, "query" | "typed" | "problems" | "keys">;

/** The most useful filters first. */
const STATUSES: readonly ActionStatus[] = [
  "awaiting_approval",
  "pending",
  "active",
  "failed",
  "completed",
  "cancelled",
];

function Search() {
  return (
    <form class="search" role="search" method="get" action="/search">
      <label for="search" class="visually-hidden">
        Action ID or host
      </label>
      <input id="search" name="q" type="search" placeholder="Action ID or host" autocomplete="off" required />
      <Button look="plain">Find</Button>
    </form>
  );
}

function Filters(props: FiltersProps) {
  const { query } = props;
  const chosen = query.status ?? [];
  const pathOf = (status: readonly ActionStatus[]) => listPath(query, { status: [...status], cursor: undefined });
  return (
    <div class="filters">
      <FilterLinks
        label="Status"
        links={[
          { href: pathOf([]), name: "All", isChosen: chosen.length === 0 },
          ...STATUSES.map((status) => ({
            href: pathOf([status]),
            name: statusLabel(status),
            isChosen: chosen.includes(status),
          })),
        ]}
      />
      <MoreFilters {...props} />
    </div>
  );
}

const MORE_FILTERS = ["method", "host", "dedupe", "created_by", "created_after", "created_before"];

function MoreFilters({ query, typed, problems, keys }: FiltersProps) {
  const fieldOf = (name: string, label: string) => {
    const problem = problems.find(({ field }) => field === name)?.message ?? null;
    return { name, label, problem, value: typed.get(name) ?? "" };
  };
  return (
    <details open={MORE_FILTERS.some((name) => typed.has(name))}>
      <summary>More filters</summary>
      <form class="card" method="get" action={ACTIONS_PATH}>
        {(query.status ?? []).map((status) => (
          <input type="hidden" name="status" value={status} />
        ))}
        {query.limit === undefined ? null : <input type="hidden" name="limit" value={query.limit} />}
        <div class="columns">
          <Field {...fieldOf("host", "Host")} autocomplete="off" />
          <Select
            name="method"
            label="Method"
            none="Any"
            options={HTTP_METHODS.map((method) => [method, method])}
            chosen={query.method}
          />
          <Field {...fieldOf("dedupe", "Dedupe key")} autocomplete="off" />
          <Select
            name="created_by"
            label="Created by"
            none="Anyone"
            options={keys.map(({ id, name, last4 }) => [id, `${maskText(name, "decider")} (…${last4})`])}
            chosen={query.created_by}
          />
          <Moment {...fieldOf("created_after", "Created after (UTC)")} />
          <Moment {...fieldOf("created_before", "Created before (UTC)")} />
        </div>
        <div class="buttons">
          <Button>Filter</Button>
          <LinkButton href={ACTIONS_PATH}>Clear</LinkButton>
        </div>
      </form>
    </details>
  );
}

/** Browsers send `datetime-local` without a time zone; it is read as UTC. */
function Moment({ value = "", ...field }: Omit<FieldProps, "type">) {
  const at = new Date(value);
  return (
    <Field {...field} type="datetime-local" value={Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, 19)} />
  );
}

/** Offers to retry every failed or cancelled action of the list. */
function BulkRetry({ user, query, retryable }: Pick<ActionsProps, "user" | "query" | "retryable">) {
  return (
    <details>
      <summary>Retry all of these: {amountText(retryable)}</summary>
      <PostForm user={user} action={listPath(query, { cursor: undefined })} class="card" isBatch>
        <p>
          Each action starts a new run, with all of its attempts and the same Idempotency-Key as before. Actions that
          needed approval need it again.
        </p>
        <Field
          name="reason"
          label="Reason"
          hint="Optional. Shown in the timeline of each action."
          maxlength={REASON_CHARS_MAX}
        />
        <div class="buttons">
          <Button>Retry {amountText(retryable)}</Button>
        </div>
      </PostForm>
    </details>
  );
}

function amountText({ count, isMore }: Counted): string {
  return `${isMore ? "more than " : ""}${counted(count, "action")}`;
}

/** Totals of all steps so far. `refused` could not be retried. */
type BulkProgress = Readonly<Record<"retried" | "held" | "refused", number>>;

export interface BulkStepProps {
  readonly user: PageUser;
  readonly query: ListQuery;
  readonly reason: string;
  readonly progress: BulkProgress;
  /** Of this step. */
  readonly refused: readonly { readonly id: string; readonly message: string }[];
  readonly left: Counted;
  /** Where the next step begins; null: it is done. */
  readonly cursor: string | null;
}

/** The result of one step, with the button for the next. `live.js` presses it automatically. */
export function bulkStepPage(props: BulkStepProps): string {
  const { user, query, progress, refused, left, cursor } = props;
  const done = progress.retried + progress.refused;
  const isDone = cursor === null;
  return render(
    <Layout title={isDone ? "Retried" : "Retrying"} nav="Actions" user={user}>
      <h1>{isDone ? "Retry complete" : "Retrying"}</h1>
      <section id="batch" class="card" aria-label="Progress">
        <progress aria-label="Done" value={done} max={done + left.count}>
          {done}
        </progress>
        <p role="status">{progressText(progress, left, isDone)}</p>
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
          {cursor === null ? null : <NextStep {...props} cursor={cursor} />}
          <LinkButton href={listPath(query, { cursor: undefined })}>{isDone ? "Back to the list" : "Stop"}</LinkButton>
        </div>
      </section>
    </Layout>,
  );
}

function progressText({ retried, refused }: BulkProgress, left: Counted, isDone: boolean): string {
  const not = refused === 0 ? "" : `, ${refused} could not be retried`;
  return `${counted(retried, "action")} retried${not}. ${isDone ? "None left." : `${amountText(left)} left.`}`;
}

function NextStep({ user, query, reason, progress, cursor }: BulkStepProps & { readonly cursor: string }) {
  const fields = [["reason", reason], ...Object.entries(progress)] as const;
  return (
    <PostForm user={user} action={listPath(query, { cursor })} isBatch fields={fields}>
      <Button>{`Continue with the next ${RETRY_BATCH_MAX}`}</Button>
    </PostForm>
  );
}
