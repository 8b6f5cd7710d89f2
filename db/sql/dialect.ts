import { type Column, Param, type Placeholder, type SQL, sql, type SQLWrapper } from "drizzle-orm";
import { byDialect, LIST, onlyPostgres, typed } from "./query.ts";

/** What SQLite and PostgreSQL say differently, each by the name of what it means. */

/** An argument that is a JSON list. PostgreSQL gets an array of texts: U+0000 is a text here, but not in its JSON. */
export function arrayOf(values: Placeholder): SQL {
  return sql`cast(${new Param(values, LIST)} as text[])`;
}

/** Whether a column has one of the values of an argument, which is bound as a JSON list: the text stays the same. */
export function isOneOf(column: Column, values: Placeholder): SQL {
  return byDialect({
    sqlite: sql`${column} in (select j.value from json_each(${values}) j)`,
    postgres: sql`${column} = any(${arrayOf(values)})`,
  });
}

/** Whether there is no value for a column. */
export function isAbsent(value: Placeholder, column: Column): SQL {
  return sql`${typed(value, column)} is null`;
}

/** Whether there is no list. */
export function isNoList(values: Placeholder): SQL {
  return byDialect({ sqlite: sql`${values} is null`, postgres: sql`${arrayOf(values)} is null` });
}

/** The items of a JSON list as rows of one column: `j.value`. */
export function itemsOf(values: Placeholder): SQL {
  return byDialect({ sqlite: sql`json_each(${values}) j`, postgres: sql`unnest(${arrayOf(values)}) as j(value)` });
}

/** A place of the list that an item of `itemsOf` is. */
export function placeIn(at: number): SQL {
  return byDialect({
    sqlite: sql.raw(`json_extract(j.value, '$[${at}]')`),
    postgres: sql.raw(`(cast(j.value as json) ->> ${at})`),
  });
}

/** A condition that holds. */
export const always = byDialect({ sqlite: sql`1`, postgres: sql`true` });

/** How many rows a query has. */
export function countOf(rows: SQLWrapper): SQL {
  return byDialect({
    sqlite: sql`(select count(*) from ${rows})`,
    postgres: sql`(select count(*) from ${rows} counted)`,
  });
}

/** How many rows of a group a condition holds for. */
export function countWhere(condition: SQL): SQL {
  return byDialect({ sqlite: sql`sum(${condition})`, postgres: sql`count(*) filter (where ${condition})` });
}

/** Less than an argument, or any if that is null. In SQLite every text is less than a blob. */
export function isBeforeOrAny(column: Column, value: Placeholder): SQL {
  return byDialect({
    sqlite: sql`${column} < ifnull(${value}, x'')`,
    postgres: sql`(${isAbsent(value, column)} or ${column} < ${value})`,
  });
}

/** Ascending, with null before every value, as SQLite sorts. */
export function nullsFirst(column: Column): SQL {
  return byDialect({ sqlite: sql`${column}`, postgres: sql`${column} nulls first` });
}

/** The order in which the rows of `accounts` were added. */
export const addedOrder = byDialect({ sqlite: sql`rowid`, postgres: sql`seq` });

/** The larger of two values. */
export function largerOf(one: SQLWrapper, other: SQLWrapper): SQL {
  return byDialect({ sqlite: sql`max(${one}, ${other})`, postgres: sql`greatest(${one}, ${other})` });
}

/** Bytes of a column that can be long. It reads only the length, which both databases keep before the value. */
export function bytesOf(column: SQLWrapper): SQL {
  return byDialect({
    sqlite: sql`ifnull(octet_length(${column}), 0)`,
    postgres: sql`coalesce(cast(octet_length(${column}) as bigint), 0)`,
  });
}

/** The table, read by this index. PostgreSQL chooses by itself. */
export function indexedBy(table: SQLWrapper, index: string): SQL {
  return byDialect({ sqlite: sql`${table} indexed by ${sql.raw(index)}`, postgres: sql`${table}` });
}

/**
 * A position of the timeline at which no transaction can add a row any more. In PostgreSQL later positions may be
 * committed before earlier ones: readers stop at the first transaction that is still open. SQLite has one writer.
 */
export function isSettled(position: Column): SQL | undefined {
  return onlyPostgres(sql`${position} < settled_position()`);
}

/** JSON in a text, `{}` if it was altered to something else; a field of it, null if it has none. */
export function validJson(column: Column): SQL {
  return byDialect({
    sqlite: sql`case when json_valid(${column}) then ${column} else '{}' end`,
    postgres: sql`${column}`,
  });
}

/** A field of the JSON object in a text. PostgreSQL's function is one of the migrations: null for what is no JSON. */
export function textField(json: SQLWrapper, name: string): SQL {
  return byDialect({
    sqlite: sql`json_extract(${json}, ${sql.raw(`'$.${name}'`)})`,
    postgres: sql`json_field(${json}, ${sql.raw(`'${name}'`)})`,
  });
}

export function numberField(json: SQLWrapper, name: string): SQL {
  return byDialect({
    sqlite: textField(json, name),
    postgres: sql`cast(cast(${textField(json, name)} as numeric) as bigint)`,
  });
}

/** In a group with `max(by)` over the rows where `value` is not null: the value of the row that has it. */
export function valueOfMax(value: SQL, by: SQLWrapper): SQL {
  return byDialect({
    sqlite: value,
    postgres: sql`(array_agg(${value} order by ${by} desc) filter (where ${value} is not null))[1]`,
  });
}
