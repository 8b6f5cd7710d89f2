import type { Action } from "../../src/domain/action.ts";
import type { KeyKind } from "../../src/domain/dedupe.ts";
import { DEDUPE_WINDOW_MS } from "../../src/domain/limits.ts";
import { CHANGED, type Guard } from "./guard.ts";
import type { Statement } from "./sql.ts";

/** One key of one action. */
export interface KeyOf {
  readonly accountId: string;
  readonly kind: KeyKind;
  readonly key: string;
}

/** The keys that an action was created with. */
export function keysOf({ accountId, idempotencyKey, dedupe }: Action): readonly KeyOf[] {
  const keys: KeyOf[] = [];
  if (idempotencyKey !== null) keys.push({ accountId, kind: "idempotency", key: idempotencyKey });
  if (dedupe !== null) keys.push({ accountId, kind: "dedupe", key: dedupe });
  return keys;
}

/**
 * The action that answers for a key: inside its 24 h and, for `dedupe`, not failed (`domain/dedupe.ts` says the same of
 * one action; here it is a condition on rows `k` and `a`).
 */
export const LIVE = `k.created_at > ? AND (k.kind = 'idempotency' OR a.status <> 'failed')`;

/** The oldest `created_at` that is still inside the window, exclusive. */
export function windowStart(now: Date): number {
  return now.getTime() - DEDUPE_WINDOW_MS;
}

/** True while no live action holds the key. */
export function free({ accountId, kind, key }: KeyOf, now: Date): Guard {
  return {
    sql: `NOT EXISTS (SELECT 1 FROM action_keys k JOIN actions a ON a.id = k.action_id
      WHERE k.account_id = ? AND k.kind = ? AND k.key = ? AND ${LIVE})`,
    args: [accountId, kind, key, windowStart(now)],
  };
}

/** True while the key names this very action. */
export function heldBy({ accountId, kind, key }: KeyOf, actionId: string): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM action_keys WHERE account_id = ? AND kind = ? AND key = ? AND action_id = ?)`,
    args: [accountId, kind, key, actionId],
  };
}

const REPLACE = `ON CONFLICT (account_id, kind, key)
  DO UPDATE SET action_id = excluded.action_id, created_at = excluded.created_at`;
const TAKE = `INSERT INTO action_keys (account_id, kind, key, action_id, created_at)
  SELECT ?, ?, ?, ?, ? WHERE ${CHANGED.sql} ${REPLACE}`;

/** Makes the key name the action, where the statement before wrote the action's row. */
export function take({ accountId, kind, key }: KeyOf, action: Action): Statement {
  return { sql: TAKE, args: [accountId, kind, key, action.id, action.createdAt.getTime()] };
}

const BIND = `INSERT INTO action_keys (account_id, kind, key, action_id, created_at)
  SELECT ?, 'idempotency', ?, k.action_id, ? FROM action_keys k JOIN actions a ON a.id = k.action_id
  WHERE k.account_id = ? AND k.kind = 'dedupe' AND k.key = ? AND ${LIVE}`;

/**
 * Makes the idempotency key of a create name the live action that its dedupe key means, for 24 h from now; writes nothing
 * while the idempotency key names a live action. Null for a create that has not both.
 */
export function bind({ accountId, idempotencyKey, dedupe }: Action, now: Date): Statement | null {
  if (idempotencyKey === null || dedupe === null) return null;
  const isFree = free({ accountId, kind: "idempotency", key: idempotencyKey }, now);
  return {
    sql: `${BIND} AND ${isFree.sql} ${REPLACE}`,
    args: [accountId, idempotencyKey, now.getTime(), accountId, dedupe, windowStart(now), ...isFree.args],
  };
}
