/** @jsxImportSource hono/jsx */
import { describeActor } from "../../core/roles.ts";
import { checkList, ListParameters } from "../../api/list-schemas.ts";
import { queryCheck } from "../../api/check.ts";
import { SEARCHED_TEXTS, type FilterValues } from "../../core/search.ts";
import { ERROR_KINDS, OUTCOMES } from "../../core/outcome.ts";
import { DomainError, type Issue } from "../../core/domain-error.ts";
import { HOUR_MS, MINUTE_MS, SEARCH_CHARS_MAX } from "../../core/limits.ts";
import { FilterMenu, Menu } from "../../ui/controls.tsx";
import { Button, Field } from "../../ui/form.tsx";
import { Icon } from "../../ui/icons.tsx";
import { ACTIONS_PATH, listPath } from "../../ui/layout.tsx";
import { LinkButton, sentence, time, untrusted } from "../../ui/parts.tsx";
import { HTTP_METHODS } from "../../core/target.ts";
import { zoned } from "../frame/schema-form.tsx";

/** The parameters in the address, as typed. */
type Typed = ReadonlyMap<string, readonly string[]>;

export interface FiltersProps {
  /** The filters; empty if they are invalid. */
  readonly query: ListParameters;
  readonly typed: Typed;
  readonly problems: readonly Issue[];
  readonly values: FilterValues;
  readonly now: Date;
}

/** Search and filters above the list. The filters are the query parameters of `GET /v1/actions`. */
export function actionFilters({ query, typed, values, problems, now }: FiltersProps) {
  return (
    <div class="chips filter-bar on-screen">
      {searchField(typed)}
      <div id="filters" class="toolbar">
        {agentMenu(query, values)}
        {hostMenu(query, typed, values)}
        {codeMenu(query)}
        {timeMenu(query, now)}
        {moreMenu(typed, problems)}
      </div>
    </div>
  );
}

/** Hidden fields for the filters that a form keeps. Drops the cursor, since a new filter begins at the newest action. */
function keptFields(typed: Typed, but: readonly string[]) {
  const isKept = (name: string) => name !== "cursor" && Object.hasOwn(ListParameters.properties, name);
  const kept = [...typed].filter(([name]) => isKept(name) && !but.includes(name));
  return kept.flatMap(([name, values]) => values.map((value) => <input type="hidden" name={name} value={value} />));
}

/** Searches as people type. Updates the list, its counts and the other filters, but not the field. */
function searchField(typed: Typed) {
  return (
    <form
      class="search"
      role="search"
      method="get"
      action={ACTIONS_PATH}
      hx-get={ACTIONS_PATH}
      hx-trigger="input changed delay:250ms from:find #search, submit"
      hx-target="#list"
      hx-select="#list"
      hx-select-oob="#filters,#list-actions"
      hx-swap="morph:outerHTML"
      hx-replace-url="true"
      hx-sync="this:replace"
      hx-indicator="#list"
    >
      {keptFields(typed, ["q"])}
      <Icon name="search" />
      <input
        id="search"
        name="q"
        type="search"
        aria-label="Search"
        value={typed.get("q")?.[0]}
        maxlength={SEARCH_CHARS_MAX}
        placeholder="Host, path, title, code or action ID"
        autocomplete="off"
      />
    </form>
  );
}

/** The path of the list's first page with another filter. */
function filtered(query: ListParameters, changes: Parameters<typeof listPath>[1]): string {
  return listPath(query, { ...changes, cursor: undefined });
}

function agentMenu(query: ListParameters, { creators }: FilterValues) {
  const options = creators.map(({ keyId, createdBy }) => {
    return [keyId, untrusted(describeActor(createdBy).name)] as const;
  });
  const chosen = query.created_by ?? null;
  return (
    <FilterMenu
      label={options.find(([keyId]) => keyId === chosen)?.[1] ?? chosen ?? "Agent"}
      all="Any agent"
      options={options}
      chosen={chosen}
      path={(keyId) => filtered(query, { created_by: keyId ?? undefined })}
    />
  );
}

function hostMenu(query: ListParameters, typed: Typed, { hosts }: FilterValues) {
  return (
    <FilterMenu
      label={query.host === undefined ? "Host" : untrusted(query.host)}
      all="Any host"
      options={hosts.map((host) => [host, untrusted(host)])}
      chosen={query.host ?? null}
      path={(host) => filtered(query, { host: host ?? undefined })}
    >
      <li class="menu-form">
        <form method="get" action={ACTIONS_PATH}>
          {keptFields(typed, ["host"])}
          <input name="host" aria-label="Other host" placeholder="Other host, or host:port" autocomplete="off" />
          <Button look="plain">Show</Button>
        </form>
      </li>
    </FilterMenu>
  );
}

/** Filters by response code: classes first, then the most frequent codes. */
const CODES: readonly (readonly [code: string, meaning: string])[] = [
  ["2xx", "success"],
  ["3xx", "redirect"],
  ["4xx", "refused"],
  ["5xx", "target failed"],
  ["400", "bad request"],
  ["401", "unauthorized"],
  ["403", "forbidden"],
  ["404", "not found"],
  ["409", "conflict"],
  ["422", "not valid"],
  ["429", "too many requests"],
  ["500", "server error"],
  ["502", "bad gateway"],
  ["503", "unavailable"],
  ["504", "gateway timeout"],
];

function codeMenu(query: ListParameters) {
  const chosen = query.response_code?.join(", ") ?? null;
  return (
    <FilterMenu
      label={chosen ?? "Code"}
      all="Any code"
      options={CODES.map(([code, meaning]) => [code, sentence`${code} ${<span class="quiet">{meaning}</span>}`])}
      chosen={chosen}
      path={(code) => filtered(query, { response_code: code === null ? undefined : [code] })}
    />
  );
}

const RANGES: Readonly<Record<string, number>> = {
  "Last hour": HOUR_MS,
  "Last 24 h": 24 * HOUR_MS,
  "Last 7 d": 7 * 24 * HOUR_MS,
  "Last 30 d": 30 * 24 * HOUR_MS,
};

/** A link names a fixed time, in whole minutes. For this long, the page still calls it "the last …". */
const STILL_MS = 10 * MINUTE_MS;

/** The start of a range such as "the last 24 h", as links write it. */
function rangeStart(now: Date, ms: number): string {
  return new Date(Math.floor((now.getTime() - ms) / MINUTE_MS) * MINUTE_MS).toISOString();
}

/** The range that begins at this time; null if none does. */
function chosenRange(after: Date, now: Date): string | null {
  const age = now.getTime() - after.getTime();
  return Object.entries(RANGES).find(([, ms]) => age >= ms && age < ms + STILL_MS)?.[0] ?? null;
}

function timeMenu(query: ListParameters, now: Date) {
  const { created_after: after, created_before: before } = query;
  const range = after === undefined || before !== undefined ? null : chosenRange(new Date(after), now);
  const [from, to] = [after, before].map((at) => (at === undefined ? null : time(new Date(at))));
  const since = to === null ? sentence`Since ${from}` : [from, " – ", to];
  const isAny = from === null && to === null;
  const label = from === null ? sentence`Until ${to}` : since;
  return (
    <FilterMenu
      label={range ?? (isAny ? "Time" : label)}
      all="Any time"
      options={Object.keys(RANGES).map((name) => [name, name])}
      chosen={isAny ? null : (range ?? "")}
      path={(name) => {
        const ms = RANGES[name ?? ""];
        const start = ms === undefined ? undefined : rangeStart(now, ms);
        return filtered(query, { created_after: start, created_before: undefined });
      }}
    />
  );
}

/** The filters that have no menu of their own. */
const MORE = ["method", "path", ...SEARCHED_TEXTS, "metadata", "dedupe", "outcome", "error"] as const;

const FORM = [...MORE, "created_after", "created_before"] as const;

function moreMenu(typed: Typed, problems: readonly Issue[]) {
  const chosen = MORE.filter((name) => typed.has(name)).length;
  const filterField = (name: (typeof FORM)[number], label: string) => {
    const problem = problems.find(({ field }) => field === name)?.message ?? null;
    return { name, label, problem, value: typed.get(name)?.[0] ?? "", autocomplete: "off" };
  };
  // Browsers send `datetime-local` without a time zone. We read it as UTC.
  const timeField = (name: (typeof FORM)[number], label: string) => {
    const { value, ...field } = filterField(name, label);
    const at = new Date(value);
    const shown = Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, 19);
    return { ...field, type: "datetime-local", value: shown } as const;
  };
  return (
    <Menu label={chosen === 0 ? "More" : `More · ${chosen}`} isChosen={chosen > 0} isAtEnd>
      <li class="menu-form">
        <form method="get" action={ACTIONS_PATH}>
          {keptFields(typed, FORM)}
          <div class="columns">
            <Field {...filterField("path", "Path begins with")} />
            <Field {...filterField("method", "Method")} none="Any" options={nameOptions(HTTP_METHODS)} />
            {SEARCHED_TEXTS.map((name) => (
              <Field {...filterField(name, `${name.charAt(0).toUpperCase()}${name.slice(1)} contains`)} />
            ))}
            <Field {...filterField("error", "Failure")} none="Any" options={nameOptions(ERROR_KINDS)} />
            <Field {...filterField("outcome", "Outcome")} none="Any" options={nameOptions(OUTCOMES)} />
            <Field {...filterField("metadata", "Metadata, as name:value")} />
            <Field {...filterField("dedupe", "Dedupe key")} />
            <Field {...timeField("created_after", "Created after (UTC)")} />
            <Field {...timeField("created_before", "Created before (UTC)")} />
          </div>
          <div class="buttons">
            <Button>Show actions</Button>
            <LinkButton href={ACTIONS_PATH}>Clear all filters</LinkButton>
          </div>
        </form>
      </li>
    </Menu>
  );
}

function nameOptions(names: readonly string[]) {
  return names.map((name) => [name, name.replaceAll("_", " ")] as const);
}

const readQuery = queryCheck(ListParameters);

/** Reads the parameters of `GET /v1/actions`. Returns issues for the page to show beside the filters. */
export function filtersIn(search: string) {
  try {
    const query = readQuery(search);
    return { query, asked: checkList(query) };
  } catch (error) {
    if (error instanceof DomainError && error.code === "invalid_query") return { problems: error.issues };
    throw error;
  }
}

/** The parameters as typed. Some may repeat. */
export function typedIn(search: string): Typed {
  const given = Map.groupBy(new URLSearchParams(search), ([name]) => name);
  return new Map([...given].map(([name, pairs]) => [name, pairs.map(([, text]) => text)]));
}

/** A date and time without a time zone, as browsers send it. */
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?$/;

/**
 * A form's query in the API's terms: without empty fields, and with times in UTC, so that each list has one address. Null
 * if nothing has to change.
 */
export function plainSearch(search: string): string | null {
  const given = [...new URLSearchParams(search)];
  const plain = given
    .filter(([, text]) => text !== "")
    .map(([name, text]): [string, string] => [
      name,
      name.startsWith("created_") && LOCAL_TIME.test(text) ? zoned(text) : text,
    ]);
  const isPlain = plain.length === given.length && plain.every(([, text], at) => text === given[at]?.[1]);
  return isPlain ? null : new URLSearchParams(plain).toString();
}
