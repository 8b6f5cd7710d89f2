import Type, { type Static } from "typebox";
import { ACTION_STATUSES, HTTP_METHODS } from "../domain/action.ts";
import { DomainError, type Issue } from "../domain/errors.ts";
import { ACTION_ID } from "../domain/id.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from "../domain/limits.ts";
import { normalHost } from "../domain/normal-target.ts";
import { Action } from "./action.ts";
import { keyId } from "./key.ts";
import { dateTime, enforced, hostSchema, key, nullable, plainText } from "./kinds.ts";

const CURSOR_EXAMPLE = "YWN0XzAxa2p3YTV2MDBlN3Y4Yzl4Mm00bjZwOHFy";

/** What a list may be asked for (decisions 1). */
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
        ...enforced({ pattern: "^[A-Za-z0-9_-]+$" }),
      }),
    ),
  },
  { additionalProperties: false },
);
export type ListQuery = Static<typeof ListQuery>;

export const ActionPage = Type.Object(
  {
    data: Type.Array(Action, { description: "The actions, newest first." }),
    next_cursor: nullable(plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
  },
  { title: "ActionPage", description: "One page of a list." },
);
export type ActionPage = Static<typeof ActionPage>;

/** What the desk is asked for a page. Throws `invalid_query` for dates that do not exist and cursors that are not ours. */
export function checkList(query: ListQuery) {
  const createdAfter = dateOf(query.created_after);
  const createdBefore = dateOf(query.created_before);
  const before = query.cursor === undefined ? null : readCursor(query.cursor);
  const issues: Issue[] = [
    ...(createdAfter === undefined ? [{ field: "created_after", message: NO_DATE }] : []),
    ...(createdBefore === undefined ? [{ field: "created_before", message: NO_DATE }] : []),
    ...(before === undefined ? [{ field: "cursor", message: "Is not the next_cursor of a page." }] : []),
  ];
  if (createdAfter === undefined || createdBefore === undefined || before === undefined) {
    throw new DomainError("invalid_query", "The query is not valid.", issues);
  }
  return {
    statuses: query.status ?? [],
    method: query.method ?? null,
    // What is no host has no actions: the pattern lets more through than a parser of URLs.
    host: query.host === undefined ? null : (normalHost(query.host) ?? query.host.toLowerCase()),
    dedupe: query.dedupe ?? null,
    createdBy: query.created_by ?? null,
    createdAfter,
    createdBefore,
    before,
    limit: query.limit ?? LIST_LIMIT_DEFAULT,
  };
}

/** Where the next page begins, as an opaque text: callers shall not build it from an id. */
export function cursorOf(actionId: string): string {
  return Buffer.from(actionId).toString("base64url");
}

/** A page as JSON text, of actions that are JSON text already. */
export function pageJson(actions: readonly string[], before: string | null): string {
  return `{"data":[${actions.join(",")}],"next_cursor":${before === null ? "null" : `"${cursorOf(before)}"`}}`;
}

/** The id in a cursor; undefined when it is none of ours. */
function readCursor(cursor: string): string | undefined {
  const id = Buffer.from(cursor, "base64url").toString("latin1");
  // Decoding is lenient: only what encodes to the same text again was ours.
  return ACTION_ID.test(id) && cursorOf(id) === cursor ? id : undefined;
}

const NO_DATE = "Is not a date and time.";

/** The format lets days through that no month has (30 February), and the parser moves them on. */
function dateOf(text: string | undefined): Date | null | undefined {
  if (text === undefined) return null;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
