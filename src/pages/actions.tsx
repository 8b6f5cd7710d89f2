/** @jsxImportSource hono/jsx */
import type { ShownKey } from "../accounts/schemas.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import type { ListQuery } from "../actions/list-schemas.ts";
import { actorWords } from "../accounts/roles.ts";
import { type Action, type ActionStatus, HTTP_METHODS } from "../actions/action.ts";
import type { PauseOf } from "../pauses/pause.ts";
import type { Issue } from "../api/domain-error.ts";
import { BulkRetry } from "./bulk-retry.tsx";
import { UntrustedText, Glimpse } from "./code.tsx";
import { EVERYTHING, Layout, ACTIONS_PATH, actionPath, listPath, render } from "./layout.tsx";
import { Ago, Chip, Notice, StatusChip, statusWord } from "./parts.tsx";
import { pathOf, shown } from "./request.tsx";
import { type PageUser, keyHeader } from "./words.ts";
import { maskText } from "../receipts/masking.ts";
import { Button, Field } from "./form.tsx";

export interface ActionsProps {
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
  readonly retryable: { readonly count: number; readonly isMore: boolean };
  /** The keys of the account, for the filter. */
  readonly keys: readonly ShownKey[];
  readonly now: Date;
  /** Where programs reach the API. */
  readonly baseUrl: string;
}

/** The list of actions, newest first. Its filters are the query parameters of `GET /v1/actions`. */
export function actionsPage(props: ActionsProps): string {
  const { user, query, actions, problems, now } = props;
  return render(
    <Layout title="Actions" place="Actions" user={user} width="wide" follows={EVERYTHING} now={now}>
      <div class="head-row">
        <h1>Actions</h1>
        <Search />
      </div>
      <Filters {...props} />
      {problems.length === 0 ? null : <Notice tone="bad">{sentenceOf(problems)}</Notice>}
      <div id="bulk" data-live="">
        {props.retryable.count === 0 ? null : <BulkRetry user={user} query={query} {...props.retryable} />}
      </div>
      <Rows actions={actions} now={now} pauseOf={props.pauseOf} />
      <div id="empty" data-live="">
        {actions.length === 0 && problems.length === 0 ? <Empty {...props} /> : null}
      </div>
      <Pager query={query} cursor={props.cursor} />
    </Layout>,
  );
}

function sentenceOf(problems: readonly Issue[]): string {
  const named = problems.map(({ field, message }) => `${field}: ${message}`).join(" ");
  return `These filters are not valid. ${named}`;
}

function Rows({ actions, now, pauseOf }: Pick<ActionsProps, "actions" | "now" | "pauseOf">) {
  return (
    <ol id="actions" class="rows card" data-live="items">
      {actions
        .map((action) => shown(action, "decider"))
        .map((action) => (
          <li class="row action" id={action.id}>
            <div class="what">
              <a class="row-link" href={actionPath(action.id)} data-item="">
                {action.method} <UntrustedText text={action.host} />
              </a>
              <Glimpse text={pathOf(action)} />
              <span class="quiet small">
                by <UntrustedText text={actorWords(maskedActor(action.createdBy, "decider")).name} />
              </span>
            </div>
            <div class="meta">
              <StatusChip status={action.status} />
              {action.status === "pending" && pauseOf(action) !== null ? <Chip tone="wait">Paused</Chip> : null}
              <span class="quiet small">
                {`${action.attempts} of ${action.retries}`}
                <span class="word">{action.retries === 1 ? " attempt" : " attempts"}</span>
              </span>
              <span class="age quiet small">
                <Ago at={action.createdAt} now={now} />
              </span>
            </div>
          </li>
        ))}
    </ol>
  );
}

/** There is no link to the previous page, because it changes with every new action. */
function Pager({ query, cursor }: Pick<ActionsProps, "query" | "cursor">) {
  if (cursor === null && query.cursor === undefined) return <div id="pager" data-live="" />;
  return (
    <div id="pager" data-live="">
      <nav class="buttons" aria-label="Pages">
        {query.cursor === undefined ? null : (
          <a class="button button-plain" href={listPath(query, { cursor: undefined })}>
            Back to newest
          </a>
        )}
        {cursor === null ? null : (
          <a class="button button-plain" href={listPath(query, { cursor })}>
            Older
          </a>
        )}
      </nav>
    </div>
  );
}

function Empty({ query, cursor, baseUrl }: ActionsProps) {
  if (cursor !== null) {
    return (
      <section class="card">
        <p>No matching actions on this page. Select Older to search further back.</p>
      </section>
    );
  }
  const isFiltered = Object.entries(query).some(([name, value]) => name !== "limit" && value !== undefined);
  if (isFiltered) {
    return (
      <section class="card">
        <p>No actions match these filters.</p>
        <p>
          <a href={ACTIONS_PATH}>Show all actions</a>
        </p>
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

export interface FiltersProps {
  /** What the list is filtered by. */
  readonly query: ListQuery;
  /** The input, including invalid values. */
  readonly typed: ReadonlyMap<string, string>;
  readonly problems: readonly Issue[];
  readonly keys: readonly ShownKey[];
}

/** The most useful filters first. */
const STATUSES: readonly ActionStatus[] = [
  "awaiting_approval",
  "pending",
  "active",
  "failed",
  "completed",
  "cancelled",
];

export function Search() {
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

export function Filters(props: FiltersProps) {
  const { query } = props;
  const chosen = query.status ?? [];
  return (
    <div class="filters">
      <nav aria-label="Status">
        <ul>
          <li>
            <a
              href={listPath(query, { status: [], cursor: undefined })}
              aria-current={chosen.length === 0 ? "true" : undefined}
            >
              All
            </a>
          </li>
          {STATUSES.map((status) => (
            <li>
              <a
                href={listPath(query, { status: [status], cursor: undefined })}
                aria-current={chosen.includes(status) ? "true" : undefined}
              >
                {statusWord(status)}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <MoreFilters {...props} />
    </div>
  );
}

function MoreFilters({ query, typed, problems, keys }: FiltersProps) {
  const problemOf = (name: string) => problems.find(({ field }) => field === name)?.message ?? null;
  const text = (name: string, label: string) => (
    <Field name={name} label={label} value={typed.get(name) ?? ""} problem={problemOf(name)} autocomplete="off" />
  );
  const isOpen = ["method", "host", "dedupe", "created_by", "created_after", "created_before"].some((name) =>
    typed.has(name),
  );
  return (
    <details open={isOpen}>
      <summary>More filters</summary>
      <form class="card" method="get" action={ACTIONS_PATH}>
        {(query.status ?? []).map((status) => (
          <input type="hidden" name="status" value={status} />
        ))}
        {query.limit === undefined ? null : <input type="hidden" name="limit" value={query.limit} />}
        <div class="columns">
          {text("host", "Host")}
          <div class="field">
            <label for="method">Method</label>
            <select id="method" name="method">
              <option value="">Any</option>
              {HTTP_METHODS.map((method) => (
                <option selected={query.method === method}>{method}</option>
              ))}
            </select>
          </div>
          {text("dedupe", "Dedupe key")}
          <Creator keys={keys} chosen={query.created_by} />
          <Moment name="created_after" label="Created after (UTC)" typed={typed} problem={problemOf("created_after")} />
          <Moment
            name="created_before"
            label="Created before (UTC)"
            typed={typed}
            problem={problemOf("created_before")}
          />
        </div>
        <div class="buttons">
          <Button>Filter</Button>
          <a class="button button-plain" href={ACTIONS_PATH}>
            Clear
          </a>
        </div>
      </form>
    </details>
  );
}

function Creator({ keys, chosen }: Pick<FiltersProps, "keys"> & { readonly chosen: string | undefined }) {
  return (
    <div class="field">
      <label for="created_by">Created by</label>
      <select id="created_by" name="created_by">
        <option value="">Anyone</option>
        {keys.map(({ id, name, last4 }) => (
          <option value={id} selected={chosen === id}>{`${maskText(name, "decider")} (…${last4})`}</option>
        ))}
      </select>
    </div>
  );
}

interface MomentProps {
  readonly name: "created_after" | "created_before";
  readonly label: string;
  readonly typed: ReadonlyMap<string, string>;
  readonly problem: string | null;
}

/** Browsers send `datetime-local` without a time zone; it is read as UTC. */
function Moment({ name, label, typed, problem }: MomentProps) {
  const at = new Date(typed.get(name) ?? "");
  return (
    <Field
      name={name}
      label={label}
      type="datetime-local"
      value={Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, 19)}
      problem={problem}
    />
  );
}
