import { Column, is, SQL, type SQLWrapper } from "drizzle-orm";
import type { Row } from "./sql.ts";

/** From a row of the database to one of the builder's types; `sql` has no columns, so its rows stay as they are. */
export function decoderOf(built: SQLWrapper): (row: Row) => unknown {
  if (!("_" in built) || is(built, SQL)) return (row) => row;
  const { selectedFields = {} } = built._ as { readonly selectedFields?: Readonly<Record<string, unknown>> };
  const fields = Object.entries(selectedFields).map(([key, field]) => {
    if (is(field, Column))
      return { key, name: field.name, decode: (value: unknown) => field.mapFromDriverValue(value) };
    if (!is(field, SQL.Aliased)) throw new Error(`The column ${key} of a query has no name.`);
    const { decoder } = field.sql as { readonly decoder?: { mapFromDriverValue(value: unknown): unknown } };
    return { key, name: field.fieldAlias, decode: (value: unknown) => decoder?.mapFromDriverValue(value) ?? value };
  });
  if (new Set(fields.map(({ name }) => name)).size < fields.length) throw new Error("Two columns have one name.");
  return (row) => {
    const selected: Record<string, unknown> = {};
    for (const { key, name, decode } of fields) {
      const value = row[name] ?? null;
      selected[key] = value === null ? null : decode(value);
    }
    return selected;
  };
}
