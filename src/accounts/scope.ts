import type { Action } from "../actions/action.ts";
import { type Caller, hasScope } from "./roles.ts";
import { DomainError } from "../api/domain-error.ts";

/** A caller who reads or changes an action. */
export type Reader = Pick<Caller, "role" | "scope" | "keyId" | "actor" | "replaced">;

/** The creator of an action. */
export type Created = Pick<Action, "keyId" | "createdBy">;

/** Which actions of the account a reader sees unmasked. */
function seesWholeOf({ role, scope = "own" }: Pick<Reader, "role" | "scope">): "all" | "own" | "none" {
  if (role === "owner") return "all";
  // Approvers and readers see every action masked.
  if (!hasScope(role)) return "none";
  return scope === "account" ? "all" : "own";
}

/** Whether the reader sees the action unmasked. */
export function seesWhole(reader: Reader, action: Created): boolean {
  const which = seesWholeOf(reader);
  return which === "all" || (which === "own" && isOwn(reader, action));
}

/** Whether the reader may cancel or retry this action, or let its client ask a person about it, if its role allows that. */
export function mayChange(reader: Reader, action: Created): boolean {
  return !hasScope(reader.role) || reader.scope === "account" || isOwn(reader, action);
}

/** Throws `forbidden` unless `mayChange`. */
export function requireMayChange(reader: Reader, action: Created & Pick<Action, "id">): void {
  if (mayChange(reader, action)) return;
  throw new DomainError(
    "forbidden",
    `Action ${action.id} was created by another key, and this key may change only its own actions. Ask an owner to do it, ` +
      'or to create a key with the scope "account" or one that replaces the key that created it.',
  );
}

/** Created by the reader's key, or by one that it replaced; callers without a key are compared by name. */
function isOwn({ keyId, actor, replaced }: Reader, action: Created): boolean {
  if (keyId === null) return action.keyId === "" && action.createdBy === actor;
  return action.keyId === keyId || replaced?.has(action.keyId) === true;
}
