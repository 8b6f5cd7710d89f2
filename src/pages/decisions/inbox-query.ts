import { DAY_MS, HELD_CURSOR_CHARS_MAX, HOUR_MS } from "../../core/limits.ts";
import { ACTION_ID, KEY_ID } from "../../core/ids.ts";
import type { HeldFilter } from "../../core/store.ts";
import { normalHost } from "../../core/target.ts";
import { queryText } from "../../ui/layout.tsx";

/** Filters by how long a request has waited at least. */
export const AGES = {
  hour: { label: "Over 1 hour", ms: HOUR_MS },
  day: { label: "Over 1 day", ms: DAY_MS },
  week: { label: "Over 1 week", ms: 7 * DAY_MS },
} as const;

export type Age = keyof typeof AGES;

export function ageIn(text: string | null): Age | null {
  return text === "hour" || text === "day" || text === "week" ? text : null;
}

/** The filters of the inbox. Null: no filter. */
export interface InboxQuery {
  /** The key to filter by; empty for requests without a key. */
  readonly by: string | null;
  readonly host: string | null;
  readonly age: Age | null;
  /** The page's cursor: an action id or `turns`, and each key's position if several have requests. */
  readonly after: string | null;
}

/** The value of `by` for requests without a key. */
const NO_KEY = "none";

/** Reads the query of a page. Ignores everything else in it. */
export function inboxQueryIn(query: URLSearchParams): InboxQuery {
  const by = query.get("by") ?? "";
  const after = query.get("after") ?? "";
  return {
    by: by === NO_KEY ? "" : (KEY_ID.exec(by)?.[0] ?? null),
    host: normalHost(query.get("host") ?? ""),
    age: ageIn(query.get("age")),
    after: isCursor(after) ? after : null,
  };
}

function isCursor(after: string): boolean {
  if (after === "" || after.length > HELD_CURSOR_CHARS_MAX) return false;
  const [start = "", ...places] = after.split("~");
  const isStart = start === "" || start === "turns" || ACTION_ID.test(start);
  // Alternates between a key, or none, and an action.
  return isStart && places.every((id, at) => (at % 2 === 0 ? id === "" || KEY_ID.test(id) : ACTION_ID.test(id)));
}

/** The query as a filter for the service. */
export function heldFilter({ by, host, age }: InboxQuery, now: Date): HeldFilter {
  return { keyId: by, host, before: age === null ? null : new Date(now.getTime() - AGES[age].ms) };
}

/** The path of a page of the inbox with the same filters. */
export function inboxPath(query: InboxQuery, path = "/approvals", more: Readonly<Record<string, string>> = {}): string {
  return path + queryText({ ...more, ...query, by: query.by === "" ? NO_KEY : query.by });
}

export function requestPath(query: InboxQuery, id: string): string {
  return inboxPath(query, `/approvals/${id}`);
}

export const REVIEW_PATH = "/approvals/review";

/** The page on which these requests are decided together. `decided`: an id of those decided on the page before. */
export function reviewPath(ids: readonly string[], decided?: string): string {
  return REVIEW_PATH + queryText({ id: ids, decided });
}
