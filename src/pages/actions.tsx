/** @jsxImportSource hono/jsx */
import type { Counted } from "../../db/store.ts";
import { describeActor, mayDo, viewerOf } from "../accounts/roles.ts";
import type { KeyView } from "../accounts/schemas.ts";
import { type Action, type ActionStatus, HTTP_METHODS, awaitsRunAt } from "../actions/action.ts";
import type { ListQuery, StatusCounts } from "../actions/list-schemas.ts";
import { ERROR_KINDS, OUTCOMES } from "../actions/outcome.ts";
import type { Issue } from "../api/domain-error.ts";
import { sources } from "../actions/status.ts";
import { BULK_OPERATIONS } from "../bulk/job.ts";
import type { PauseOf } from "../pauses/pause.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import { maskText } from "../receipts/masking.ts";
import { BULK_PATH, newBulkPath } from "./bulk.tsx";
import { Button, Field, type FieldProps, Select } from "./form.tsx";
import { actionPath, ACTIONS_PATH, EXPORT_PATH, Layout, listPath, queryText, render } from "./layout.tsx";
import { Ago, Dot, LinkButton, Problem, StatusDot, statusLabel, Time, UntrustedText } from "./parts.tsx";
import { FilterLinks } from "./controls.tsx";
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
  /** When the last action that the page looked at was created, if it stopped early; else null. */
  readonly searchedUntil: Date | null;
  /** How many actions the other filters find, by status. */
  readonly counts: StatusCounts["counts"];
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
        <BulkBar {...props} />
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
      <Exports query={query} />
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
        <StatusDot status={status} />
        {isPaused ? <Dot tone="wait">Paused</Dot> : null}
        {!isPaused && awaitsRunAt(action) ? <Dot tone="still">Delayed</Dot> : null}
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

function Empty({ query, cursor, searchedUntil, baseUrl }: ActionsProps) {
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
          <p>
            No matching actions
            {searchedUntil === null ? null : (
              <>
                {" "}
                after <Time at={searchedUntil} />
              </>
            )}
            . Select Older to search further back.
          </p>
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

type FiltersProps = Pick<ActionsProps, "query" | "typed" | "problems" | "keys" | "counts">;

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
        Text in host, path or title, or an action ID
      </label>
      <input
        id="search"
        name="q"
        type="search"
        placeholder="Text in host, path or title, or an action ID"
        autocomplete="off"
        required
      />
      <Button look="plain">Find</Button>
    </form>
  );
}

function Filters(props: FiltersProps) {
  const { query, counts } = props;
  const chosen = query.status ?? [];
  const pathOf = (status: readonly ActionStatus[]) => listPath(query, { status: [...status], cursor: undefined });
  return (
    <div class="filters">
      <div id="statuses" data-live="">
        <FilterLinks
          label="Status"
          links={[
            { href: pathOf([]), name: "All", isChosen: chosen.length === 0 },
            ...STATUSES.map((status) => ({
              href: pathOf([status]),
              name: <StatusName status={status} counts={counts} />,
              isChosen: chosen.includes(status),
            })),
          ]}
        />
      </div>
      <MoreFilters {...props} />
    </div>
  );
}

function StatusName({ status, counts }: Pick<ActionsProps, "counts"> & { readonly status: ActionStatus }) {
  const found = counts.find((one) => one.status === status);
  if (found === undefined) return <>{statusLabel(status)}</>;
  return (
    <>
      {statusLabel(status)} <span class="quiet small">{`${found.count}${found.isMore ? "+" : ""}`}</span>
    </>
  );
}

const MORE_FILTERS = [
  "q",
  "method",
  "host",
  "path",
  "dedupe",
  "created_by",
  "created_after",
  "created_before",
  "response_code",
  "outcome",
  "error",
  "title",
  "reason",
  "metadata",
];

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
          <Field {...fieldOf("q", "Text in host, path or title")} autocomplete="off" />
          <Field {...fieldOf("host", "Host")} autocomplete="off" />
          <Field {...fieldOf("path", "Path begins with")} autocomplete="off" />
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
          <ResultFilters query={query} fieldOf={fieldOf} />
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

interface ResultFiltersProps extends Pick<FiltersProps, "query"> {
  readonly fieldOf: (name: string, label: string) => FieldProps;
}

/** What became of the newest attempt, and the requester's words. */
function ResultFilters({ query, fieldOf }: ResultFiltersProps) {
  return (
    <>
      <Field {...fieldOf("response_code", "Response code, such as 422 or 5xx")} autocomplete="off" />
      <Select
        name="error"
        label="Failure"
        none="Any"
        options={ERROR_KINDS.map((kind) => [kind, kind.replaceAll("_", " ")])}
        chosen={query.error}
      />
      <Select
        name="outcome"
        label="Outcome"
        none="Any"
        options={OUTCOMES.map((outcome) => [outcome, outcome.replaceAll("_", " ")])}
        chosen={query.outcome}
      />
      <Field {...fieldOf("title", "Title")} autocomplete="off" />
      <Field {...fieldOf("reason", "Reason")} autocomplete="off" />
      <Field {...fieldOf("metadata", "Metadata, as name:value")} autocomplete="off" />
    </>
  );
}

/** Browsers send `datetime-local` without a time zone; it is read as UTC. */
function Moment({ value = "", ...field }: Omit<FieldProps, "type">) {
  const at = new Date(value);
  return (
    <Field {...field} type="datetime-local" value={Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, 19)} />
  );
}

/** Offers to retry or cancel all actions of the list, where its statuses say which those are. */
function BulkBar({ user, query, counts }: Pick<ActionsProps, "user" | "query" | "counts">) {
  const { limit: _limit, cursor: _cursor, ...filter } = query;
  const chosen = query.status ?? [];
  const links = BULK_OPERATIONS.filter((operation) => mayDo(user.role, operation)).flatMap((operation) => {
    const statuses = sources(operation).filter((status) => chosen.includes(status));
    const some = counts.filter(({ status }) => statuses.includes(status));
    const count = some.reduce((sum, one) => sum + one.count, 0);
    const isMore = some.some((one) => one.isMore);
    if (count === 0 && !isMore) return [];
    const name = operation === "retry" ? "Retry" : "Cancel";
    const path = newBulkPath(operation, { ...filter, status: [...statuses] });
    return [<LinkButton href={path}>{`${name} all of these: ${amountText({ count, isMore })}`}</LinkButton>];
  });
  return links.length === 0 ? null : <p class="buttons">{links}</p>;
}

function amountText({ count, isMore }: Counted): string {
  return `${isMore ? "more than " : ""}${counted(count, "action")}`;
}

/** Everything that the filters find, as a file. */
function Exports({ query }: Pick<ActionsProps, "query">) {
  const { limit: _limit, cursor: _cursor, ...filter } = query;
  return (
    <p class="small">
      Export: <a href={`${EXPORT_PATH}${queryText({ ...filter, format: "csv" })}`}>CSV</a>{" "}
      <a href={`${EXPORT_PATH}${queryText({ ...filter, format: "ndjson" })}`}>NDJSON</a> ·{" "}
      <a href={BULK_PATH}>Bulk jobs</a>
    </p>
  );
}
