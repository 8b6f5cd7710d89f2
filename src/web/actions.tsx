/** @jsxImportSource hono/jsx */
import type { ShownKey } from "../contract/key.ts";
import { maskedActor } from "../contract/masked.ts";
import type { ListQuery } from "../contract/page.ts";
import { actorWords } from "../domain/actor.ts";
import type { Action } from "../domain/action.ts";
import type { PauseOf } from "../domain/pause.ts";
import type { Issue } from "../domain/errors.ts";
import { BulkRetry } from "./bulk-retry.tsx";
import { Filters, Search } from "./filters.tsx";
import { UntrustedText, Glimpse } from "./foreign.tsx";
import { EVERYTHING, Layout } from "./layout.tsx";
import { ACTIONS_PATH, actionPath, listPath } from "./list-path.ts";
import { Ago, Chip, Notice, StatusChip } from "./parts.tsx";
import { render } from "./render.ts";
import { pathOf, shown } from "./shown.ts";
import type { PageUser } from "./visitor.ts";
import { keyHeader } from "./key-words.ts";

export interface ActionsProps {
  readonly user: PageUser;
  /** What the list is filtered by; nothing, where what was asked for can't be. */
  readonly query: ListQuery;
  readonly typed: ReadonlyMap<string, string>;
  readonly problems: readonly Issue[];
  /** Newest first. */
  readonly actions: readonly Action[];
  readonly pauseOf: PauseOf;
  /** Where the next page begins; null: there is none. */
  readonly cursor: string | null;
  /** Of the whole list: what could be begun again. */
  readonly retryable: { readonly count: number; readonly isMore: boolean };
  /** Of the account: the list may be filtered by one of them. */
  readonly keys: readonly ShownKey[];
  readonly now: Date;
  /** Where programs reach the API. */
  readonly baseUrl: string;
}

/** Every action of the account, newest first, filtered as the API's list is and by the same parameters. */
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
  return `Nothing can be filtered by this. ${named}`;
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

/** Newer pages move with every new action, so the way back leads to the newest. */
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
        <p>Nothing fits among those that were looked at. Older ones may: look further back.</p>
      </section>
    );
  }
  const isFiltered = Object.entries(query).some(([name, value]) => name !== "limit" && value !== undefined);
  if (isFiltered) {
    return (
      <section class="card">
        <p>No action fits these filters.</p>
        <p>
          <a href={ACTIONS_PATH}>Show all actions</a>
        </p>
      </section>
    );
  }
  return (
    <section class="card">
      <p>Nothing was sent yet. Send a first action with the agent key that the first start printed:</p>
      <pre class="code" data-copy="">
        {`curl -s ${baseUrl}/v1/actions \\
  ${keyHeader("AGENT_KEY")} -H 'Content-Type: application/json' \\
  -d '{"url":"https://example.com/","method":"GET"}'`}
      </pre>
      <p class="quiet">It appears here by itself.</p>
    </section>
  );
}
