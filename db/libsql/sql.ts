/** What goes into a column and comes out of it. Times are integers in milliseconds, booleans 0 and 1. */
export type SqlValue = string | number | null;
export type Row = Readonly<Record<string, SqlValue>>;

export interface Statement {
  readonly sql: string;
  readonly args: readonly SqlValue[];
}

export interface Done {
  /** Rows written; with RETURNING, rows returned. */
  readonly changes: number;
  readonly rows: readonly Row[];
}

/**
 * The little of a database connection that the store needs: reads, and writes in one transaction. There is no way to hold
 * a transaction open across turns of the event loop, because a second one would stop the loop until the first ends.
 * Both throw `StoreUnavailable` when the database can't be reached or written now.
 */
export interface Sql {
  read(statement: Statement): Promise<readonly Row[]>;
  /** All or nothing, durable when it resolves; one `Done` a statement. */
  batch(statements: readonly Statement[]): Promise<readonly Done[]>;
  close(): Promise<void>;
}
