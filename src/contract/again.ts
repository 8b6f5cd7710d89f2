import type { Action } from "../domain/action.ts";
import type { Hold } from "../domain/roles.ts";
import type { CreateInput } from "./create.ts";

/** Named alike in old and new calls, it would tell the target that both are one. */
const IDENTITY = "idempotency-key";

/**
 * A create of the same call as a new action, to be checked like any other: rules and settings may have changed since. It
 * keeps what is sent and how, a hold included; what made the old one the only one of its kind stays with that.
 */
export function createInputOf(action: Action, hold: Hold): CreateInput {
  const { url, method, body, headers, retries, onUnknown, approve, callback, notifyEmail } = action;
  const kept = Object.entries(headers ?? {}).filter(([name]) => name.toLowerCase() !== IDENTITY);
  const parsed: unknown = body === null ? null : JSON.parse(body);
  const value = {
    url,
    method,
    body: parsed,
    headers: kept.length === 0 ? null : Object.fromEntries(kept),
    retries,
    on_unknown: onUnknown,
    approve,
    callback,
    notify: notifyEmail === null ? null : { email: notifyEmail },
  };
  return { value, bodyText: () => body ?? "", idempotencyKey: null, hold };
}
