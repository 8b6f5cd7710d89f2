/** @jsxImportSource hono/jsx */
import type { Counted, FilterValues } from "../../db/store.ts";
import { mayDo, viewerOf } from "../accounts/roles.ts";
import { type Action, awaitsRunAt } from "../actions/action.ts";
import type { ListQuery, StatusCounts } from "../actions/list-schemas.ts";
import { sources } from "../actions/status.ts";
import type { Issue } from "../api/domain-error.ts";
import { BULK_OPERATIONS, type BulkOperation } from "../bulk/job.ts";
import type { PauseOf } from "../pauses/pause.ts";
import { type ActionRow, actionRow, type RowNote } from "./action-row.ts";
import { ActionFilters, StatusChips } from "./action-filters.tsx";
import { BULK_PATH, newBulkPath } from "./bulk.tsx";
import { CodeBlock, EmptyState, Menu } from "./controls.tsx";
import { Button } from "./form.tsx";
import { actionPath, ACTIONS_PATH, EXPORT_PATH, Layout, listPath, queryText, render } from "./layout.tsx";
import {
  Dot,
  LinkButton,
  Problem,
  StatusDot,
  statusLabel,
  Time,
  UntilTime,
  UntrustedText,
  WhenTime,
} from "./parts.tsx";
import { keyHeader } from "./snippets.tsx";
import { counted, duration, number, type PageUser } from "./text.ts";

interface ActionsProps {
  readonly user: PageUser;
  /** The filters; empty if they are invalid. */
  readonly query: ListQuery;
  readonly typed: ReadonlyMap<string, readonly string[]>;
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
  /** Hosts and keys to filter by. */
  readonly values: FilterValues;
  readonly now: Date;
  /** Where programs reach the API. */
  readonly baseUrl: string;
}

/** The list of actions, newest first. Its filters are the query parameters of `GET /v1/actions`. */
export function actionsPage(props: ActionsProps): string {
  const { user, query, actions, problems, now } = props;
  return render(
    <Layout title="Actions" nav="Actions" user={user} width="wide" follows="all" now={now}>
      <div class="head">
        <h1>Actions</h1>
        <ListActions {...props} />
      </div>
      <ActionFilters {...props} />
      <Problem text={problemText(problems)} />
      <div id="list">
        <StatusChips {...props} />
        {actions.length === 0 ? problems.length === 0 ? <Empty {...props} /> : null : <ActionTable {...props} />}
        <Pager query={query} cursor={props.cursor} count={actions.length} />
        {actions.length === 0 ? null : <SelectionBar {...props} />}
      </div>
    </Layout>,
  );
}

function problemText(problems: readonly Issue[]): string | null {
  const named = problems.map(({ field, message }) => `${field}: ${message}`).join(" ");
  return problems.length === 0 ? null : `These filters are not valid. ${named}`;
}

/** The form that the boxes of the rows belong to. */
const SELECTION = "selection";

function ActionTable({ user, actions, pauseOf, now }: ActionsProps) {
  const viewer = viewerOf(user.role);
  return (
    <table class="actions">
      <caption class="visually-hidden">Actions, newest first</caption>
      <thead>
        <tr>
          <th scope="col" class="select">
            <label>
              <input type="checkbox" aria-label="Select all on this page" form={SELECTION} data-selects="" hidden />
            </label>
          </th>
          <th scope="col">Time</th>
          <th scope="col">Agent</th>
          <th scope="col">Action</th>
          <th scope="col">Status</th>
          <th scope="col" class="number">
            Attempts
          </th>
          <th scope="col" class="number">
            Duration
          </th>
          <th scope="col">Next / error</th>
        </tr>
      </thead>
      <tbody>
        {actions.map((action) => (
          <Row
            row={actionRow(action, viewer)}
            isPaused={action.status === "pending" && pauseOf(action) !== null}
            isScheduled={awaitsRunAt(action)}
            now={now}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly row: ActionRow;
  readonly isPaused: boolean;
  readonly isScheduled: boolean;
  readonly now: Date;
}

function Row({ row, isPaused, isScheduled, now }: RowProps) {
  const { id, createdAt, agent, status, attempts, retries, durationMs, note } = row;
  const operation = BULK_OPERATIONS.find((one) => sources(one).includes(status));
  return (
    <tr id={id} data-can={operation}>
      <td class="select">
        <label>
          <input type="checkbox" name="id" value={id} form={SELECTION} aria-label={`Select ${id}`} />
        </label>
      </td>
      <td class="when">
        <WhenTime at={createdAt} now={now} />
      </td>
      <td class="who">
        <UntrustedText text={agent} />
      </td>
      <td class="what">
        {/* Boosted, and not loaded by click: a click with Ctrl or ⌘ still opens a tab. */}
        <a
          class="row-link"
          href={actionPath(id)}
          data-item=""
          hx-boost="true"
          hx-target="#drawer"
          hx-select="#action"
          hx-swap="innerHTML"
        >
          <What {...row} />
        </a>
      </td>
      <td class="status">
        <RowStatus row={row} isPaused={isPaused} isScheduled={isScheduled} />
      </td>
      <td class="number">{attempts === 0 ? <span class="faint">–</span> : `${attempts} of ${retries}`}</td>
      <td class="number took">{durationMs === null ? <span class="faint">–</span> : duration(durationMs)}</td>
      <td class="note">
        <Note note={note} now={now} />
      </td>
    </tr>
  );
}

/** Method and host are ours; a title is the requester's, in quotation marks, and never without them. */
function What({ method, host, title, path }: ActionRow) {
  return (
    <>
      <span class="method">{method}</span>
      <span class="host">
        <UntrustedText text={host} />
      </span>
      {title === null ? (
        <span class="path">
          <UntrustedText text={path.slice(0, PATH_CHARS)} />
        </span>
      ) : (
        <q class="path">
          <UntrustedText text={title} />
        </q>
      )}
    </>
  );
}

/** More than a wide screen shows; CSS cuts the rest. */
const PATH_CHARS = 240;

function RowStatus({ row: { status, code, attempts }, isPaused, isScheduled }: Omit<RowProps, "now">) {
  if (isPaused) return <Dot tone="wait">Paused</Dot>;
  if (isScheduled) return <Dot tone="still">Scheduled</Dot>;
  if (status === "pending" && attempts > 0)
    return <Dot tone="busy">{`Retrying${code === null ? "" : ` ${code}`}`}</Dot>;
  return <StatusDot status={status} code={status === "active" ? null : code} />;
}

const NOTE_WORDS = { retries: "again", starts: "starts", expires: "expires" } as const;

function Note({ note, now }: { readonly note: RowNote; readonly now: Date }) {
  if (note.kind === "none") return null;
  if (note.kind === "error") return <UntrustedText text={note.text} />;
  return (
    <>
      {NOTE_WORDS[note.kind]} <UntilTime at={note.at} now={now} />
    </>
  );
}

/** There is no link to the previous page, because it changes with every new action. */
function Pager({ query, cursor, count }: Pick<ActionsProps, "query" | "cursor"> & { readonly count: number }) {
  return (
    <nav class="pager" aria-label="Pages">
      <span class="small quiet">{count === 0 ? null : `${counted(count, "action")} on this page`}</span>
      <a class="small" href={BULK_PATH}>
        Bulk jobs
      </a>
      {query.cursor === undefined ? null : (
        <LinkButton href={listPath(query, { cursor: undefined })}>Back to newest</LinkButton>
      )}
      {cursor === null ? null : <LinkButton href={listPath(query, { cursor })}>Older</LinkButton>}
    </nav>
  );
}

function Empty({ user, query, cursor, searchedUntil, baseUrl }: ActionsProps) {
  if (cursor !== null) {
    return (
      <EmptyState icon="search" title="No match yet">
        <p>
          {searchedUntil === null ? (
            "No action of this page matches."
          ) : (
            <>
              No action since <Time at={searchedUntil} /> matches.
            </>
          )}{" "}
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
            Create key
          </LinkButton>
        </p>
      ) : null}
      <CodeBlock
        label="A first action"
        text={`curl -s ${baseUrl}/v1/actions \\
  ${keyHeader("AGENT_KEY")} -H 'Content-Type: application/json' \\
  -d '{"url":"https://example.com/","method":"GET"}'`}
      />
    </EmptyState>
  );
}

const NAMES: Readonly<Record<BulkOperation, string>> = { retry: "Retry", cancel: "Cancel" };

const operationsFor = (user: PageUser) => BULK_OPERATIONS.filter((operation) => mayDo(user.role, operation));

/** What can be done with everything that the filters find. */
function ListActions({ user, query, counts }: ActionsProps) {
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
      <AllOfThese user={user} query={query} counts={counts} />
    </div>
  );
}

/** Offers to retry or cancel all actions of the list, where its statuses say which those are. */
function AllOfThese({ user, query, counts }: Pick<ActionsProps, "user" | "query" | "counts">) {
  const { limit: _limit, cursor: _cursor, ...filter } = query;
  const links = operationsFor(user).flatMap((operation) => {
    const statuses = sources(operation).filter((status) => query.status?.includes(status) === true);
    const some = counts.filter(({ status }) => statuses.includes(status));
    const found = { count: some.reduce((sum, one) => sum + one.count, 0), isMore: some.some((one) => one.isMore) };
    if (found.count === 0 && !found.isMore) return [];
    const path = newBulkPath(operation, { ...filter, status: [...statuses] });
    const kind =
      statuses.length === 1 && statuses[0] !== undefined ? statusLabel(statuses[0]).toLowerCase() : "of these";
    return [<LinkButton href={path}>{`${NAMES[operation]} all ${amountText(found)} ${kind}`}</LinkButton>];
  });
  return <>{links}</>;
}

function amountText({ count, isMore }: Counted): string {
  return `${number(count)}${isMore ? "+" : ""}`;
}

/**
 * What can be done with the selected rows: the boxes belong to its form. CSS shows it while one is checked, counts them, and
 * shows the operations that at least one of them allows.
 */
function SelectionBar({ user, query, counts }: ActionsProps) {
  return (
    <form id={SELECTION} class="selection" method="get" action={`${BULK_PATH}/new`} aria-label="Selected actions">
      <span class="selected-count">selected</span>
      {operationsFor(user).map((operation) => (
        <Button look="plain" name="operation" value={operation}>
          {NAMES[operation]}
        </Button>
      ))}
      <button type="submit" class="button-plain" formaction={EXPORT_PATH} name="format" value="csv">
        Export
      </button>
      <span class="all-of-these">
        <AllOfThese user={user} query={query} counts={counts} />
      </span>
      <button type="reset" class="button-link">
        Clear
      </button>
    </form>
  );
}
