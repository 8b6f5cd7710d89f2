import type { Action } from "../actions/action.ts";
import { type Caller, hasScope } from "./roles.ts";
import { DomainError } from "../api/domain-error.ts";

/** Who looks at an action, or wants it changed. */
export type Reader = Pick<Caller, "role" | "scope" | "keyId" | "actor" | "replaced">;

/** Whose action it is. */
export type Created = Pick<Action, "keyId" | "createdBy">;

/** Which actions of the account a reader sees whole. `own`: those that it created. */
function seesWholeOf({ role, scope = "own" }: Pick<Reader, "role" | "scope">): "all" | "own" | "none" {
  if (role === "owner") return "all";
  // Approvers decide and readers look on: both see secrets masked.
  if (!hasScope(role)) return "none";
  return scope === "account" ? "all" : "own";
}

/** Whether the reader reads back what was sent as it was; everybody else sees it masked. The one place that decides it. */
export function seesWhole(reader: Reader, action: Created): boolean {
  const which = seesWholeOf(reader);
  return which === "all" || (which === "own" && isOwn(reader, action));
}

/**
 * Whether the reader may cancel or retry this one, or have its client ask a person about it, where its role lets it do so
 * at all. The one place that decides it.
 */
export function mayChange(reader: Reader, action: Created): boolean {
  return !hasScope(reader.role) || reader.scope === "account" || isOwn(reader, action);
}

/** Throws `forbidden` where the reader may not change the action, with what to do about it. */
export function requireMayChange(reader: Reader, action: Created & Pick<Action, "id">): void {
  if (mayChange(reader, action)) return;
  throw new DomainError(
    "forbidden",
    `Action ${action.id} was created by another key, and this key acts only on what it created. An owner can do it, or ` +
      'make a key with the scope "account", or one that replaces the key that created it.',
  );
}

/** By its key, or by one that its key replaced; whoever has no key is told by its name. */
function isOwn({ keyId, actor, replaced }: Reader, action: Created): boolean {
  if (keyId === null) return action.keyId === "" && action.createdBy === actor;
  return action.keyId === keyId || replaced?.has(action.keyId) === true;
}
