import { type Column, type SQL, sql } from "drizzle-orm";

/** Tests of a column's value, for the conditions of broken rows. */
export interface ValueTests {
  readonly isText: (column: Column) => SQL;
  readonly isTextOrNull: (column: Column) => SQL;
  /** A safe integer; `bound` is a comparison that it must hold too. */
  readonly isInteger: (column: Column, bound?: SQL) => SQL;
  /** A time that `Date` knows. */
  readonly isTime: (column: Column) => SQL;
  readonly isTimeOrNull: (column: Column) => SQL;
}

export const SQLITE_VALUES: ValueTests = {
  isText: (column) => sql`typeof(${column}) = 'text'`,
  isTextOrNull: (column) => sql`typeof(ifnull(${column}, '')) = 'text'`,
  isInteger(column, bound) {
    const isBounded = bound === undefined ? sql`` : sql` and ${column} ${bound}`;
    return sql`typeof(${column}) = 'integer'${isBounded} and ${column} < 9007199254740991`;
  },
  isTime: (column) => isSqliteTime(sql`${column}`),
  isTimeOrNull: (column) => isSqliteTime(sql`ifnull(${column}, 0)`),
};

function isSqliteTime(value: SQL): SQL {
  return sql`typeof(${value}) = 'integer' and ${value} < 8640000000000001 and ${value} > -8640000000000001`;
}

/** PostgreSQL's columns hold values of their types only, and null only where it is allowed. */
export const POSTGRES_VALUES: ValueTests = {
  isText: () => sql`true`,
  isTextOrNull: () => sql`true`,
  isInteger(column, bound) {
    const isBounded = bound === undefined ? sql`` : sql`${column} ${bound} and `;
    return sql`${isBounded}${column} < 9007199254740991`;
  },
  isTime: (column) => isPostgresTime(sql`${column}`),
  isTimeOrNull: (column) => isPostgresTime(sql`coalesce(${column}, 0)`),
};

function isPostgresTime(value: SQL): SQL {
  return sql`${value} < 8640000000000001 and ${value} > -8640000000000001`;
}
