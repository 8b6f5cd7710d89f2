import Type, { type Static } from "typebox";
import type { KeyCall, KeyUse } from "../core/account-store.ts";
import { ACTION_STATUSES, HTTP_METHODS } from "../core/action.ts";
import { ActionId } from "../api/action-schemas.ts";
import { dateTime, nullable, plainText, quantity, choice } from "../api/schema-helpers.ts";
import { KEY_ACTIONS_COUNTED_MAX } from "../core/limits.ts";
import { maskUrl } from "../receipts/masking.ts";
import { keyMembers, type KeyView, serializeKey } from "./schemas.ts";

/** Keys with what they have done, as lists show them. */

const LastAction = Type.Object(
  {
    id: ActionId,
    created_at: dateTime("When it was created."),
    method: choice(HTTP_METHODS, "Its method.", "POST"),
    url: plainText("Its URL, masked.", "https://api.example.com/orders"),
    status: choice(ACTION_STATUSES, "Its status.", "completed"),
    response_code: nullable(Type.Integer({ description: "The target's last status code.", examples: [200] })),
  },
  { description: "The newest action that the key created." },
);

const ListedKey = Type.Object(
  {
    ...keyMembers,
    last_action_at: nullable(dateTime("When it created its newest action; null: none is left.")),
    last_action: nullable(LastAction),
    actions_last_day: quantity(
      `Actions that it has created in the last 24 hours, of what is left, counted up to ${KEY_ACTIONS_COUNTED_MAX}.`,
      42,
    ),
    actions_today: quantity(
      `Actions that it has created today (UTC): exact with daily_actions, else counted up to ${KEY_ACTIONS_COUNTED_MAX}.`,
      17,
    ),
  },
  { title: "ListedKey", description: "A key with what it has done." },
);

export const KeyList = Type.Object(
  { data: Type.Array(ListedKey, { description: "The keys, live ones first." }) },
  { title: "KeyList", description: "The keys of the account." },
);

/** A key as pages list it. */
export type ListedKeyView = KeyView & KeyUse;

function serializeCall({ id, createdAt, method, url, status, responseCode }: KeyCall): Static<typeof LastAction> {
  const created_at = createdAt.toISOString();
  return { id, created_at, method, url: maskUrl(url, "decider"), status, response_code: responseCode };
}

/** A key of a list. */
export function serializeListedKey(row: ListedKeyView): Static<typeof ListedKey> {
  return {
    ...serializeKey(row),
    last_action_at: row.lastCall?.createdAt.toISOString() ?? null,
    last_action: row.lastCall === null ? null : serializeCall(row.lastCall),
    actions_last_day: row.actionsLastDay,
    actions_today: row.actionsToday,
  };
}
