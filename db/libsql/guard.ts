import type { SqlValue } from "./sql.ts";

/** A condition of a statement, and its arguments. */
export interface Guard {
  readonly sql: string;
  readonly args: readonly SqlValue[];
}

export const ALWAYS: Guard = { sql: "1", args: [] };

/**
 * True when the statement before this one wrote a row. A change is a chain: the row of the action first, under its
 * revision, and each statement after it only where the one before wrote; so a change that lost leaves nothing behind,
 * and nothing is looked up twice.
 */
export const CHANGED: Guard = { sql: "changes() > 0", args: [] };

/** All of several conditions. */
export function allOf(guards: readonly Guard[]): Guard {
  return { sql: guards.map(({ sql }) => sql).join(" AND "), args: guards.flatMap(({ args }) => args) };
}

/** One of two conditions. */
export function eitherOf(one: Guard, other: Guard): Guard {
  return { sql: `(${one.sql} OR ${other.sql})`, args: [...one.args, ...other.args] };
}
