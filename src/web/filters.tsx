/** @jsxImportSource hono/jsx */
import type { ShownKey } from "../contract/key.ts";
import type { ListQuery } from "../contract/page.ts";
import { type ActionStatus, HTTP_METHODS } from "../domain/action.ts";
import { maskText } from "../domain/mask.ts";
import type { Issue } from "../domain/errors.ts";
import { Button, Field } from "./form.tsx";
import { ACTIONS_PATH, listPath } from "./list-path.ts";
import { statusWord } from "./parts.tsx";

export interface FiltersProps {
  /** What the list is filtered by. */
  readonly query: ListQuery;
  /** What was typed, also where it can't be a filter. */
  readonly typed: ReadonlyMap<string, string>;
  readonly problems: readonly Issue[];
  readonly keys: readonly ShownKey[];
}

/** In the order in which a person asks for them. */
const STATUSES: readonly ActionStatus[] = [
  "awaiting_approval",
  "pending",
  "active",
  "failed",
  "completed",
  "cancelled",
];

/** Leads to one action by its id, or to the actions of a host. */
export function Search() {
  return (
    <form class="search" role="search" method="get" action="/search">
      <label for="search" class="visually-hidden">
        Action id, or host
      </label>
      <input id="search" name="q" type="search" placeholder="Action id, or host" autocomplete="off" required />
      <Button look="plain">Find</Button>
    </form>
  );
}

/** Every filter of the list; each choice is an address that can be kept. */
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
        <option value="">Anybody</option>
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

/** A browser asks for a day and a time; without a zone, as it sends them, they are UTC. */
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
