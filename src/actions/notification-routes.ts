import Type from "typebox";
import type { ListNotifications } from "./service.ts";
import { checkListQuery, encodeCursor } from "../api/cursor.ts";
import { dateTime, nullable, plainText, quantity, choice, pageLimit } from "../api/schema-helpers.ts";
import { LIST_LIMIT_DEFAULT } from "../core/limits.ts";
import { jsonResponse } from "../http/response.ts";
import { createApiRoutes, operation } from "../http/operation.ts";
import { maskText, maskUrl } from "../receipts/masking.ts";
import type { OutboxEntry } from "../core/store.ts";
import { eventName } from "../core/notification-events.ts";

const CURSOR_EXAMPLE = "MDFranZmNXYwMGU3djhjOXgybTRuNnA4cXI";

export const NotificationParameters = Type.Object(
  {
    limit: Type.Optional(pageLimit("Most notifications of a page.")),
    cursor: Type.Optional(plainText("The next_cursor of the page before.", CURSOR_EXAMPLE)),
  },
  { additionalProperties: false },
);

const NotificationJson = Type.Object(
  {
    id: plainText("Identifies it: the webhook-id of a callback.", "01kjwa5v00e7v8c9x2m4n6p8qr"),
    action_id: plainText(
      "The action that it is about; for the email of an invitation, or what is told of a credential or a request for one, the id of that.",
      "act_01kjwa5v00e7v8c9x2m4n6p8qr",
    ),
    run: Type.Integer({ minimum: 1, description: "The run of the action that caused it.", examples: [1] }),
    kind: plainText("What it is: callback, mail, or a message of a channel.", "callback"),
    event: plainText("What it is about.", "action.completed"),
    target: plainText("Where it goes, masked; the id of a channel for a message.", "https://app.example.com/outgate"),
    status: choice(
      ["pending", "active", "delivered", "given_up", "dropped"],
      "dropped: it was no longer needed.",
      "delivered",
    ),
    attempts: quantity("Attempts so far.", 1),
    created_at: dateTime("When it was caused."),
    next_attempt_at: nullable(dateTime("When the next attempt is due; null: none is.")),
    last_error: nullable(plainText("How the last attempt failed, masked.", "The target answered with status 503.")),
  },
  { title: "Notification", description: "A callback, mail or message, and its state." },
);

export const NotificationListJson = Type.Object(
  {
    data: Type.Array(NotificationJson, { description: "The notifications, newest first." }),
    next_cursor: nullable(plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
  },
  { title: "NotificationList", description: "One page of the notifications." },
);

const ROW_ID = /^[0-9a-z]{1,64}$/;

/** /v1/notifications, which the settings page shows, too. */
export function notificationRoutes({ listNotifications }: { readonly listNotifications: ListNotifications }) {
  return createApiRoutes().get(
    "/v1/notifications",
    async ({ caller, query }) => {
      const { before: cursor } = checkListQuery({}, query.cursor, ROW_ID);
      const { entries, before } = await listNotifications(caller, cursor, query.limit ?? LIST_LIMIT_DEFAULT);
      const next = before === null ? null : encodeCursor(before);
      return jsonResponse({ data: entries.map(serializeNotification), next_cursor: next });
    },
    operation({
      operationId: "listNotifications",
      permission: "manage",
      tag: "Actions",
      summary: "List callbacks, mails and messages, newest first",
      description: "Lists callbacks, mails and messages, newest first, each with its state.",
      notes: ["Targets and errors are masked."],
      query: NotificationParameters,
      answers: { 200: { description: "A page of notifications.", schema: NotificationListJson } },
    }),
  );
}

function serializeNotification({ id, actionId, run, message, status, attempts, ...entry }: OutboxEntry) {
  const { kind, event, target } = message;
  return {
    id,
    action_id: actionId,
    run,
    kind,
    event: eventName(event),
    target: kind === "callback" ? maskUrl(target, "decider") : maskText(target, "decider"),
    status,
    attempts,
    created_at: entry.createdAt.toISOString(),
    next_attempt_at: status === "pending" ? (entry.dueAt?.toISOString() ?? null) : null,
    last_error: entry.lastError === null ? null : maskText(entry.lastError, "decider"),
  };
}
