/** @jsxImportSource hono/jsx */
import { type Counted, urlPath } from "../../core/search.ts";
import { type ActionStatus, sources } from "../../core/action.ts";
import { seeAll } from "../../receipts/see.ts";
import { mayDo, roleViewer, describeActor } from "../../core/roles.ts";
import { DomainError } from "../../core/domain-error.ts";
import type { FindPause } from "../../core/pause.ts";
import {
  actionPath,
  ACTIONS_PATH,
  amountText,
  BULK_PATH,
  EXPORT_PATH,
  Layout,
  listPath,
  queryText,
  render,
} from "../../ui/layout.tsx";
import type { Person } from "../../http/session.ts";
import { page, pageHeaders, seeOther } from "../../http/response.ts";
import type { RequestContext } from "../../http/request.ts";
import { ACTIONS_SHOWN_MAX } from "../../core/limits.ts";
import { checkFilters, ExportParameters, type ListParameters, type StatusCounts } from "../../api/list-schemas.ts";
import { queryCheck } from "../../api/check.ts";
import { encodeCursor } from "../../api/cursor.ts";
import type { MaskedAction } from "../../receipts/seen-action.ts";
import { forRow } from "../frame/listed-action.ts";
import { ENTER_KEY, firstActionCall } from "../../api/code-samples.ts";
import { BULK_OPERATIONS, type BulkOperation } from "../../core/bulk-job.ts";
import { actionFilters, filtersIn, type FiltersProps, plainSearch, typedIn } from "./action-filters.tsx";
import { newBulkPath } from "./bulk.tsx";
import { CodeBlock, EmptyState, FilterLinks, Menu } from "../../ui/controls.tsx";
import { GET_STARTED_PATH } from "../entry/first-steps.tsx";
import { Button } from "../../ui/form.tsx";
import {
  LinkButton,
  Problem,
  sentence,
  statusLabel,
  time,
  isSameDay,
  Dot,
  listedTime,
  untrusted,
} from "../../ui/parts.tsx";
import { counted, type PageUser, duration } from "../../ui/text.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { ListedStatus, Note } from "../frame/action-row.tsx";
import { callText } from "../../ui/request.tsx";
import { maskText } from "../../receipts/masking.ts";

type Counts = StatusCounts["counts"];

interface ActionsProps extends FiltersProps {
  readonly user: PageUser;
  /** Newest first, each made by `forRow`. */
  readonly actions: readonly MaskedAction[];
  readonly findPause: FindPause;
  /** Where the next page begins; null if there is none. */
  readonly cursor: string | null;
  /** How far back the page searched, if it stopped early; else null. */
  readonly searchedUntil: Date | null;
  /** How many actions of each status the other filters find. */
  readonly counts: Counts;
  readonly baseUrl: string;
}

/** The list of actions, newest first. Its filters are the query parameters of `GET /v1/actions`. */
function actionsPage(props: ActionsProps): string {
  const { user, query, typed, values, problems, actions, findPause, cursor, counts, now } = props;
  return render(
    <Layout title="Actions" nav="Actions" user={user} width="wide" follows="all" now={now}>
      <div class="head between">
        <h1>Actions</h1>
        {listButtons(query, counts, user)}
      </div>
      {actionFilters({ query, typed, values, problems, now })}
      {problems.length === 0 ? null : (
        <Problem
          text={`These filters are not valid. ${problems.map(({ field, message }) => `${field}: ${message}`).join(" ")}`}
        />
      )}
      <div id="list">
        {statusChips(query, counts)}
        {actions.length === 0 && problems.length === 0 ? nothingFound(props) : null}
        {actions.length === 0 ? (
          pager(query, 0, cursor)
        ) : (
          <form id="selection" method="get" action={`${BULK_PATH}/new`} autocomplete="off">
            {actionTable(actions, findPause, now)}
            {pager(query, actions.length, cursor)}
            {selectionBar(query, counts, user)}
          </form>
        )}
      </div>
    </Layout>,
  );
}

/** Statuses that need somebody come first. */
const STATUSES: readonly ActionStatus[] = [
  "awaiting_approval",
  "pending",
  "active",
  "failed",
  "completed",
  "cancelled",
];

function statusChips(query: ListParameters, counts: Counts) {
  const chosen = query.status ?? [];
  const link = (name: string, status: readonly ActionStatus[], found: Counted | undefined, isChosen: boolean) => ({
    href: listPath(query, { status: [...status], cursor: undefined }),
    // No number if it is unknown.
    name:
      found === undefined
        ? name
        : sentence`${name} ${<span class={found.count === 0 && !found.isMore ? "amount zero" : "amount"}>{amountText(found)}</span>}`,
    isChosen,
  });
  return (
    <FilterLinks
      label="Status"
      links={[
        link("All", [], counts.length === 0 ? undefined : sumCounts(counts), chosen.length === 0),
        ...STATUSES.map((status) => {
          const found = counts.find((one) => one.status === status);
          return link(statusLabel(status), [status], found, chosen.includes(status));
        }),
      ]}
    />
  );
}

function sumCounts(counts: Counts): Counted {
  return { count: counts.reduce((sum, one) => sum + one.count, 0), isMore: counts.some((one) => one.isMore) };
}

/** Links to the next page. There is no previous one, because it changes with every new action. */
function pager(query: ListParameters, count: number, cursor: string | null) {
  return (
    <nav id="pager" class="chips pager" aria-label="Pages">
      {/* The list says visibly that it is empty. */}
      <span class="small quiet" role="status">
        {count === 0 ? <span class="visually-hidden">No actions</span> : `${counted(count, "action")} on this page`}
      </span>
      {query.cursor === undefined ? null : (
        <LinkButton href={listPath(query, { cursor: undefined })}>Back to newest</LinkButton>
      )}
      {cursor === null ? null : <LinkButton href={listPath(query, { cursor })}>Older</LinkButton>}
      <a class="small" href={BULK_PATH}>
        Bulk jobs
      </a>
    </nav>
  );
}

function nothingFound({ user, query, cursor, searchedUntil, baseUrl }: ActionsProps) {
  if (cursor !== null) {
    return (
      <EmptyState icon="search" title="No match yet">
        <p>
          {searchedUntil === null
            ? "No action on this page matches."
            : sentence`No action since ${time(searchedUntil)} matches.`}{" "}
          Select Older to search further back.
        </p>
      </EmptyState>
    );
  }
  if (Object.entries(query).some(([name, value]) => name !== "limit" && value !== undefined)) {
    return (
      <EmptyState icon="search" title="No actions match these filters">
        <p>Try fewer filters, a longer time, or a part of the host, path or title.</p>
        <p>
          <LinkButton href={ACTIONS_PATH}>Show all actions</LinkButton>
        </p>
      </EmptyState>
    );
  }
  const mayCreateKeys = mayDo(user.role, "manage");
  return (
    <EmptyState icon="send" title="No actions yet">
      <p>
        {mayCreateKeys
          ? "Create a key for an agent, and send a first action with it. It appears here at once."
          : "Ask an owner of this account for a key, and send a first action with it. It appears here at once."}
      </p>
      {mayCreateKeys ? (
        <p>
          <LinkButton href="/keys/new" look="main">
            Create a key
          </LinkButton>
        </p>
      ) : null}
      <p>
        Put the key into <code>OUTGATE_API_KEY</code> with <code>{ENTER_KEY}</code>, then run:
      </p>
      <CodeBlock label="A first action" text={firstActionCall(baseUrl)} />
      <p>
        <a href={GET_STARTED_PATH}>Get started</a>
      </p>
    </EmptyState>
  );
}

const NAMES: Readonly<Record<BulkOperation, string>> = { retry: "Retry", cancel: "Cancel" };

const operationsFor = (user: PageUser) => BULK_OPERATIONS.filter((operation) => mayDo(user.role, operation));

/** What people can do with all actions that the filters find. */
function listButtons(query: ListParameters, counts: Counts, user: PageUser) {
  const { limit: _limit, cursor: _cursor, ...filter } = query;
  return (
    <div id="list-actions" class="buttons">
      <Menu label="Export" isAtEnd>
        <li>
          <a href={`${EXPORT_PATH}${queryText({ ...filter, format: "csv" })}`} download="">
            CSV <span class="quiet">the columns of the list</span>
          </a>
        </li>
        <li>
          <a href={`${EXPORT_PATH}${queryText({ ...filter, format: "ndjson" })}`} download="">
            NDJSON <span class="quiet">whole actions</span>
          </a>
        </li>
      </Menu>
      {allOfThese(query, counts, user)}
    </div>
  );
}

/** Offers to retry or cancel all actions of the list, if its statuses allow that. */
function allOfThese(query: ListParameters, counts: Counts, user: PageUser) {
  const { limit: _limit, cursor: _cursor, ...filter } = query;
  return operationsFor(user).flatMap((operation) => {
    const statuses = sources(operation).filter((status) => query.status?.includes(status) === true);
    const found = sumCounts(counts.filter(({ status }) => statuses.includes(status)));
    if (found.count === 0 && !found.isMore) return [];
    const path = newBulkPath(operation, { ...filter, status: [...statuses] });
    const kind =
      statuses.length === 1 && statuses[0] !== undefined ? statusLabel(statuses[0]).toLowerCase() : "of these";
    return <LinkButton href={path}>{`${NAMES[operation]} all ${amountText(found)} ${kind}`}</LinkButton>;
  });
}

/** Appears by CSS while boxes are checked. Shows each operation that at least one row allows. */
function selectionBar(query: ListParameters, counts: Counts, user: PageUser) {
  return (
    <div class="selection" role="group" aria-label="Selected actions">
      <span class="selected-count" role="status" data-selected="">
        Selected
      </span>
      {operationsFor(user).map((operation) => (
        <Button look="plain" name="operation" value={operation}>
          {NAMES[operation]}
        </Button>
      ))}
      <button type="submit" class="button-plain" formaction={EXPORT_PATH} name="format" value="csv">
        Export
      </button>
      <span class="all-of-these">{allOfThese(query, counts, user)}</span>
      <button type="reset" class="button-link">
        Clear
      </button>
    </div>
  );
}

async function actionList(deps: PageDeps, { search }: RequestContext, person: Person): Promise<Response | string> {
  const { actionService, clock, baseUrl, findPause } = deps;
  const plain = plainSearch(search);
  if (plain !== null) return seeOther("own", plain === "" ? ACTIONS_PATH : `${ACTIONS_PATH}?${plain}`);
  const values = await actionService.filterValues(person.caller);
  const shared = { user: person, typed: typedIn(search), values, now: clock.now(), baseUrl, findPause };
  const filters = filtersIn(search);
  if (filters.problems !== undefined) {
    const empty = { query: {}, actions: [], cursor: null, searchedUntil: null, counts: [] };
    return page("own", actionsPage({ ...shared, ...empty, problems: filters.problems }), { status: 400 });
  }
  const { query, asked } = filters;
  const [{ actions, before, searchedUntil }, { counts }] = await Promise.all([
    actionService.list(person.caller, { ...asked, limit: query.limit ?? ACTIONS_SHOWN_MAX }),
    actionService.counts(person.caller, { ...asked, statuses: [] }),
  ]);
  // People who search for a whole id want to see that action.
  const named = actions.find(({ id }) => id === query.q);
  if (named !== undefined) return seeOther("own", actionPath(named.id));
  const cursor = before === null ? null : encodeCursor(before);
  const rows = await seeAll(actions.map(forRow), roleViewer(person.role));
  return actionsPage({ ...shared, query, problems: [], actions: rows, cursor, searchedUntil, counts });
}

const readExport = queryCheck(ExportParameters);

export function actionListRoutes(deps: PageDeps) {
  return personPages(deps)
    .get(ACTIONS_PATH, ({ context, person }) => actionList(deps, context, person))
    .get(EXPORT_PATH, async ({ context }) => {
      const { format = "ndjson", ...query } = readExport(context.search);
      const filter = checkFilters(query);
      // It may take long, and must end with the session.
      const watched = await deps.findWatch(context);
      if (watched === null) throw new DomainError("forbidden", "Your session has ended. Log in again.");
      const answer = await deps.exportActions(context, watched.caller, { format, filter }, watched.release);
      for (const [name, value] of Object.entries(pageHeaders("own"))) answer.headers.set(name, value);
      return answer;
    });
}

/** A row for each action. Its link opens the action's page; with script, on top of the list. */
export function actionTable(actions: readonly MaskedAction[], findPause: FindPause, now: Date) {
  return (
    <table class="actions">
      <caption class="visually-hidden">Actions, newest first</caption>
      <thead>
        <tr>
          <th scope="col" class="select">
            <label>
              <input type="checkbox" aria-label="Select all on this page" data-selects="" />
            </label>
          </th>
          <th scope="col">Time</th>
          <th scope="col">Agent</th>
          <th scope="col">Action</th>
          <th scope="col">Status</th>
          <th scope="col" class="tries">
            <span>Attempts</span> <span>Duration</span>
          </th>
          <th scope="col">Next / error</th>
        </tr>
      </thead>
      {/* `hx-boost` and not a click handler, so that a click with Ctrl or ⌘ still opens a tab. */}
      <tbody data-days="" hx-boost="true" hx-target="#drawer" hx-select="#action" hx-swap="innerHTML" hx-inherit="*">
        {actions.map((action, at) => (
          <>
            {isSameDay(action.createdAt, actions[at - 1]?.createdAt ?? now) ? null : (
              <tr class="day">
                <th scope="rowgroup" colspan={7}>
                  {listedTime(action.createdAt, "weekday")}
                </th>
              </tr>
            )}
            {actionRow(action, action.status === "pending" && findPause(action) !== null, now)}
          </>
        ))}
      </tbody>
    </table>
  );
}

function actionRow(action: MaskedAction, isPaused: boolean, now: Date) {
  const { id, method, host, createdAt, createdBy, status, viewer } = action;
  return (
    <tr id={id} data-can={BULK_OPERATIONS.find((one) => sources(one).includes(status))}>
      <td class="select">
        <label>
          <input
            type="checkbox"
            name="id"
            value={id}
            aria-label={`Select ${callText({ method, host: maskText(host, viewer) })}`}
          />
        </label>
      </td>
      <td class="when">{listedTime(createdAt, "clock")}</td>
      <td class="who">{untrusted(describeActor(createdBy).name)}</td>
      <td class="what">
        <a class="row-link" href={actionPath(id)}>
          {requestSummary(action)}
        </a>
      </td>
      <td class="status">{isPaused ? <Dot tone="wait">Paused</Dot> : <ListedStatus action={action} isQuiet />}</td>
      <td class="tries">{attemptsText(action)}</td>
      <td class="note">
        <Note action={action} now={now} />
      </td>
    </tr>
  );
}

/** The title and the call below it. A title is the requester's text, so it never appears without method, host and path. */
function requestSummary({ method, url, host, title, viewer }: MaskedAction) {
  const path = urlPath(url);
  // More than a wide screen shows. CSS cuts the rest.
  const shownPath = untrusted(path.slice(0, 240));
  const shownHost = untrusted(maskText(host, viewer));
  // The host says more than a lone slash.
  const isBare = title === null && path === "/";
  const called = isBare ? shownHost : shownPath;
  return (
    <>
      <span>{title === null ? called : untrusted(title)}</span>
      <small>
        <span class="method">{method}</span> {isBare ? null : shownHost}
        {title === null ? null : shownPath}
      </small>
    </>
  );
}

/** The number of attempts and the duration of the newest. A single attempt is usual, so it is shown faintly. */
function attemptsText({ status, attempts, retries, result }: MaskedAction) {
  if (attempts === 0) return <span class="faint">–</span>;
  const ms = result?.durationMs ?? null;
  return (
    <>
      <span class={attempts === 1 && status === "completed" ? "usual" : undefined}>{`${attempts} of ${retries}`}</span>{" "}
      <span class="took">{ms === null ? "–" : duration(ms)}</span>
    </>
  );
}
