import Type, { type Static } from "typebox";
import { ACTION_STATUSES, type ActionStatus } from "../core/action.ts";
import { ERROR_KINDS, OUTCOMES } from "../core/outcome.ts";
import type { MetadataFilter, Search } from "../core/search.ts";
import { ACTION_ID } from "../core/ids.ts";
import {
  FILTER_IDS_MAX,
  LIST_LIMIT_DEFAULT,
  METADATA_FILTERS_MAX,
  METADATA_VALUE_CHARS_MAX,
  SEARCH_CHARS_MAX,
  SEARCH_VALUES_MAX,
} from "../core/limits.ts";
import { normalHost, HTTP_METHODS } from "../core/target.ts";
import { actionIdSchema, ActionJson, Status } from "./action-schemas.ts";
import * as t from "./schema-helpers.ts";
import { checkListQuery, encodeCursor } from "./cursor.ts";
import { RESPONSE_CODE } from "./schema-helpers.ts";
import { toJson } from "./serializer.ts";
import { TIMELINE_EVENT_TYPES } from "../core/timeline.ts";

const CURSOR_EXAMPLE = "YWN0XzAxa2p3YTV2MDBlN3Y4Yzl4Mm00bjZwOHFy";

/** Text to search for. Excludes characters that stored text can't contain. */
const searched = (description: string, example: string) =>
  t.storable(t.shortText(SEARCH_CHARS_MAX, description, example));

const METADATA_FILTER_CHARS_MAX = 64 + ":".length + METADATA_VALUE_CHARS_MAX;

/**
 * The filters of lists, counts, exports and bulk jobs. No list may be empty: it would match everything, although a caller who
 * computed no ids means no action.
 */
export const FILTERS = {
  q: Type.Optional(
    searched(
      "Free text: in host, path or title, a status of the target such as 422 or 5xx, or the start of an id. Case doesn't count.",
      "refund 4711",
    ),
  ),
  id: Type.Optional(
    Type.Array(actionIdSchema, {
      minItems: 1,
      maxItems: FILTER_IDS_MAX,
      description: "Only these actions; may repeat.",
      examples: [["act_01kjwa5v00e7v8c9x2m4n6p8qr"]],
    }),
  ),
  status: Type.Optional(
    Type.Array(Type.Enum([...ACTION_STATUSES], { type: "string" }), {
      minItems: 1,
      description: "Any of these; may repeat.",
      examples: [["pending", "active"]],
    }),
  ),
  method: Type.Optional(t.choice(HTTP_METHODS, "HTTP method of the call.", "POST")),
  host: Type.Optional(t.hostSchema("Host name, with a port or for any port.")),
  path: Type.Optional(searched("The start of the target's path.", "/v1/refunds")),
  dedupe: Type.Optional(t.key("The dedupe key of the create.")),
  created_by: Type.Optional(t.idSchema("key", "Id of the key that created it.")),
  created_after: Type.Optional(t.dateTime("Created later than this.")),
  created_before: Type.Optional(t.dateTime("Created earlier than this.")),
  response_code: Type.Optional(
    Type.Array(Type.String({ pattern: RESPONSE_CODE }), {
      minItems: 1,
      maxItems: SEARCH_VALUES_MAX,
      description: "Any of these statuses of the target, or classes of them; may repeat.",
      examples: [["422", "5xx"]],
    }),
  ),
  outcome: Type.Optional(t.choice(OUTCOMES, "How the newest attempt ended, as in the timeline.", "unknown")),
  error: Type.Optional(t.choice(ERROR_KINDS, "Kind of the newest attempt's failure.", "timed_out")),
  title: Type.Optional(searched("Text in the title. Case doesn't count.", "Refund")),
  reason: Type.Optional(searched("Text in the requester's reason. Case doesn't count.", "duplicate")),
  metadata: Type.Optional(
    Type.Array(t.storable(Type.String({ pattern: t.METADATA_FILTER, maxLength: METADATA_FILTER_CHARS_MAX })), {
      minItems: 1,
      maxItems: METADATA_FILTERS_MAX,
      description: "`name:value`, exactly, or a name for any value. May repeat: all of them.",
      examples: [["customer:4711"]],
    }),
  ),
};

export const FilterParameters = t.closedObject(FILTERS);

export type FilterParameters = Static<typeof FilterParameters>;

export const ExportParameters = t.closedObject({
  ...FILTERS,
  format: Type.Optional(
    t.choice(
      ["ndjson", "csv"],
      "ndjson: actions as JSON, one a line; csv: the columns of the list, with a header.",
      "csv",
      { default: "ndjson" },
    ),
  ),
});

export const ListParameters = t.closedObject({
  ...FILTERS,
  limit: Type.Optional(t.pageLimit("Most actions of a page; large ones make it shorter.")),
  cursor: Type.Optional(
    t.plainText(
      "The next_cursor of the page before, as it was given.",
      CURSOR_EXAMPLE,
      t.describedOnly({ pattern: "^[A-Za-z0-9_-]+$" }),
    ),
  ),
});

export type ListParameters = Static<typeof ListParameters>;

export const ActionPageJson = t.answerObject("ActionPage", "One page of a list.", {
  data: Type.Array(ActionJson, { description: "The actions, newest first." }),
  next_cursor: t.nullable(t.plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
  searched_until: Type.Optional(
    t.dateTime(
      "The page stopped early, at an action that was created then: it looks at a bounded number. next_cursor goes on from there.",
    ),
  ),
});

/** Turns a list's parameters into a query. Throws `invalid_query` for dates that don't exist and invalid cursors. */
export function checkList(query: ListParameters) {
  return { ...checkFilters(query, query.cursor), limit: query.limit ?? LIST_LIMIT_DEFAULT };
}

/** Turns parameters into filters, without a limit. Throws like `checkList`. */
export function checkFilters(query: FilterParameters, cursor?: string) {
  const dates = { created_after: query.created_after, created_before: query.created_before };
  const { before, ...times } = checkListQuery(dates, cursor, ACTION_ID);
  return {
    statuses: query.status ?? [],
    method: query.method ?? null,
    // The schema allows texts that URL parsers don't accept as a host. They match no action.
    host: query.host === undefined ? null : (normalHost(query.host) ?? query.host.toLowerCase()),
    dedupe: query.dedupe ?? null,
    createdBy: query.created_by ?? null,
    createdAfter: times.created_after,
    createdBefore: times.created_before,
    search: toSearch(query),
    before,
  };
}

function toSearch(query: FilterParameters): Search {
  const { id: ids = [], q = null, path = null, title = null, reason = null, outcome = null, error = null } = query;
  const { response_code: responseCodes = [], metadata = [] } = query;
  return { ids, q, path, title, reason, outcome, error, responseCodes, metadata: metadata.map(parseMetadataFilter) };
}

function parseMetadataFilter(text: string): MetadataFilter {
  const colon = text.indexOf(":");
  return colon === -1 ? { name: text, value: null } : { name: text.slice(0, colon), value: text.slice(colon + 1) };
}

/** A page as JSON text, from actions as JSON texts. */
export function pageJson(
  actions: readonly string[],
  { before, searchedUntil }: { readonly before: string | null; readonly searchedUntil: Date | null },
): string {
  const until = searchedUntil === null ? "" : `,"searched_until":"${searchedUntil.toISOString()}"`;
  return `{"data":[${actions.join(",")}],"next_cursor":${before === null ? "null" : `"${encodeCursor(before)}"`}${until}}`;
}

export interface StatusCounts {
  readonly counts: readonly { readonly status: ActionStatus; readonly count: number; readonly isMore: boolean }[];
  /** All actions created after this time are counted; null: all are. */
  readonly countedUntil: Date | null;
}

export const ActionCountsJson = t.answerObject("ActionCounts", "How many actions match, by status.", {
  data: Type.Array(
    t.answerObject("ActionCount", "How many actions have a status.", {
      status: Status,
      count: t.quantity("How many were counted.", 17),
      is_more: t.yesNo("Whether there may be more.", false),
    }),
    { description: "One for each status, or for each that the query names." },
  ),
  counted_until: t.nullable(
    t.dateTime("Counting stopped early, at an action that was created then; null: everything was counted."),
  ),
});

export const serializeCounts = ({ counts: data, countedUntil }: StatusCounts) =>
  toJson(ActionCountsJson, { data, countedUntil });

export const TimelineItemJson = t.answerObject("TimelineItem", "One thing that happened to an action.", {
  seq: t.quantity(
    "Position in the event stream: increasing, with gaps. An entry of a pause has the number of the entry before it.",
    7,
  ),
  at: t.dateTime("When it happened."),
  run: t.positive("A manual retry begins the next run.", 1),
  type: t.choice(TIMELINE_EVENT_TYPES, "What happened.", "attempt"),
  status: Status,
  actor: Type.Optional(t.plainText("Who decided.", "key:ann")),
  reason: Type.Optional(t.nullable(t.plainText("The reason that was given; null: none.", "Agreed with Ann."))),
  via: Type.Optional(
    t.constant("elicitation", "The actor's MCP client says that it asked its person for the decision."),
  ),
  attempt: Type.Optional(t.positive("Number of the attempt in its run.", 1)),
  outcome: Type.Optional(
    t.choice(
      ["answered", "not_sent", "unknown"],
      "answered: the target answered with a status; not_sent: the target received nothing; unknown: it may have received the call.",
      "answered",
    ),
  ),
  response_code: Type.Optional(
    t.nullable(Type.Integer({ description: "HTTP status of the target.", examples: [503] })),
  ),
  error: Type.Optional(t.nullable(t.plainText("Why it failed.", "The target answered with status 503."))),
  duration_ms: Type.Optional(t.nullable(t.quantity("How long the attempt took.", 41))),
  next_retry_at: Type.Optional(t.nullable(t.dateTime("When the next attempt is due."))),
  location: Type.Optional(
    t.nullable(t.plainText("Target of a redirect. Redirects are never followed.", "https://api.example.com/moved")),
  ),
  late: Type.Optional(
    t.constant(
      true,
      "The result came after Outgate had closed the attempt as unknown, which another entry says. It is no further attempt.",
    ),
  ),
  event: Type.Optional(t.plainText("What the mail, callback or message was about.", "action.completed")),
  channel: Type.Optional(t.plainText("The name of the channel that it was for.", "ops")),
  delivered: Type.Optional(t.yesNo("Whether the mail, callback or message was delivered.", true)),
  attempts: Type.Optional(t.quantity("How often delivery was attempted.", 1)),
});

export const TimelineJson = t.answerObject("Timeline", "Everything that happened to an action.", {
  data: Type.Array(TimelineItemJson, { description: "What happened, oldest first." }),
});

export const EventText = t.plainText(
  "Server-sent events, one for each change of an action's status. `id` is the position for Last-Event-ID; `event` is " +
    "`action.<status>`; `data` is `{ type, timestamp, data }`, where `data` is the Action at that time (without the " +
    "response body if a later attempt has replaced it). Lines that begin with a colon are heartbeats.",
  "id: NDcxMQ\nevent: action.completed\n" +
    'data: {"type":"action.completed","timestamp":"2026-03-04T12:00:00.000Z","data":{"id":"act_01kjwa5v00e7v8c9x2m4n6p8qr"}}\n\n',
);
