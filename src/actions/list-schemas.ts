import Type, { type Static } from "typebox";
import { ACTION_STATUSES, HTTP_METHODS } from "./action.ts";
import { ACTION_ID } from "../runtime/ids.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from "../config/limits.ts";
import { normalHost } from "../outbound/target.ts";
import { ActionJson, Status } from "./schemas.ts";
import { keyId } from "../accounts/schemas.ts";
import {
  checkListQuery,
  dateTime,
  encodeCursor,
  describedOnly,
  hostSchema,
  key,
  nullable,
  plainText,
} from "../api/schema-helpers.ts";
import { TIMELINE_EVENT_TYPES } from "./timeline.ts";

const CURSOR_EXAMPLE = "YWN0XzAxa2p3YTV2MDBlN3Y4Yzl4Mm00bjZwOHFy";

export const ListQuery = Type.Object(
  {
    status: Type.Optional(
      Type.Array(Type.Enum([...ACTION_STATUSES], { type: "string" }), {
        description: "Any of these; may repeat.",
        examples: [["pending", "active"]],
      }),
    ),
    method: Type.Optional(
      Type.Enum([...HTTP_METHODS], { type: "string", description: "HTTP method of the call.", examples: ["POST"] }),
    ),
    host: Type.Optional(hostSchema("Host name, with a port or for any port.")),
    dedupe: Type.Optional(key("The dedupe key of the create.")),
    created_by: Type.Optional(keyId("Id of the key that created it.")),
    created_after: Type.Optional(dateTime("Created later than this.")),
    created_before: Type.Optional(dateTime("Created earlier than this.")),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIST_LIMIT_MAX,
        default: LIST_LIMIT_DEFAULT,
        description: "Most actions of a page; large ones make it shorter.",
        examples: [50],
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        description: "The next_cursor of the page before, as it was given.",
        examples: [CURSOR_EXAMPLE],
        ...describedOnly({ pattern: "^[A-Za-z0-9_-]+$" }),
      }),
    ),
  },
  { additionalProperties: false },
);

export type ListQuery = Static<typeof ListQuery>;

export const ActionPageJson = Type.Object(
  {
    data: Type.Array(ActionJson, { description: "The actions, newest first." }),
    next_cursor: nullable(plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
  },
  { title: "ActionPage", description: "One page of a list." },
);

export type ActionPageJson = Static<typeof ActionPageJson>;

/** The query of the action service. Throws `invalid_query` for dates that do not exist and invalid cursors. */
export function checkList(query: ListQuery) {
  const dates = { created_after: query.created_after, created_before: query.created_before };
  const { before, ...times } = checkListQuery(dates, query.cursor, ACTION_ID);
  return {
    statuses: query.status ?? [],
    method: query.method ?? null,
    // The schema admits texts that no URL parser accepts as a host. They match no action.
    host: query.host === undefined ? null : (normalHost(query.host) ?? query.host.toLowerCase()),
    dedupe: query.dedupe ?? null,
    createdBy: query.created_by ?? null,
    createdAfter: times.created_after,
    createdBefore: times.created_before,
    before,
    limit: query.limit ?? LIST_LIMIT_DEFAULT,
  };
}

/** A page as JSON text; `actions` are JSON texts. */
export function pageJson(actions: readonly string[], before: string | null): string {
  return `{"data":[${actions.join(",")}],"next_cursor":${before === null ? "null" : `"${encodeCursor(before)}"`}}`;
}

const count = (minimum: number, description: string, example: number) =>
  Type.Integer({ minimum, description, examples: [example] });

/** One entry of a timeline. Its members depend on `type`. */
export const TimelineItem = Type.Object(
  {
    seq: count(
      0,
      "Position in the event stream: increasing, with gaps. An entry of a pause has the number of the entry before it.",
      7,
    ),
    at: dateTime("When it happened."),
    run: count(1, "A manual retry begins the next run.", 1),
    type: Type.Enum([...TIMELINE_EVENT_TYPES], {
      type: "string",
      description: "What happened.",
      examples: ["attempt"],
    }),
    status: Status,
    actor: Type.Optional(plainText("Who decided.", "key:ann")),
    reason: Type.Optional(nullable(plainText("The reason that was given; null: none.", "Agreed with Ann."))),
    via: Type.Optional(
      Type.Literal("elicitation", {
        description: "The actor's MCP client says that it asked its person for the decision.",
        examples: ["elicitation"],
      }),
    ),
    attempt: Type.Optional(count(1, "Number of the attempt in its run.", 1)),
    outcome: Type.Optional(
      Type.Enum(["answered", "not_sent", "unknown"], {
        type: "string",
        description:
          "answered: the target answered with a status; not_sent: the target received nothing; unknown: it may have received the call.",
        examples: ["answered"],
      }),
    ),
    response_code: Type.Optional(
      nullable(Type.Integer({ description: "HTTP status of the target.", examples: [503] })),
    ),
    error: Type.Optional(nullable(plainText("Why it failed.", "The target answered with status 503."))),
    duration_ms: Type.Optional(nullable(count(0, "How long the attempt took.", 41))),
    next_retry_at: Type.Optional(nullable(dateTime("When the next attempt is due."))),
    location: Type.Optional(
      nullable(plainText("Target of a redirect. Redirects are never followed.", "https://api.example.com/moved")),
    ),
    event: Type.Optional(plainText("What the mail or callback was about.", "action.completed")),
    delivered: Type.Optional(
      Type.Boolean({ description: "Whether the mail or callback was delivered.", examples: [true] }),
    ),
    attempts: Type.Optional(count(0, "How often delivery was attempted.", 1)),
  },
  { title: "TimelineItem", description: "One thing that happened to an action." },
);

export const Timeline = Type.Object(
  { data: Type.Array(TimelineItem, { description: "What happened, oldest first." }) },
  { title: "Timeline", description: "Everything that happened to an action." },
);

export type Timeline = Static<typeof Timeline>;

/** The `data` of an event, and the body of a callback. */
export interface ActionEvent {
  /** `action.` and the new status. */
  readonly type: string;
  readonly timestamp: string;
  readonly data: ActionJson;
}

export const EventText = Type.String({
  description:
    "Server-sent events, one for each change of an action's status. `id` is the position for Last-Event-ID; `event` is " +
    "`action.<status>`; `data` is `{ type, timestamp, data }`, where `data` is the Action at that time (without the " +
    "response body if a later attempt has replaced it). Lines that begin with a colon are heartbeats.",
  examples: [
    "id: NDcxMQ\nevent: action.completed\n" +
      'data: {"type":"action.completed","timestamp":"2026-03-04T12:00:00.000Z","data":{"id":"act_01kjwa5v00e7v8c9x2m4n6p8qr"}}\n\n',
  ],
});
