import { DomainError } from "../core/domain-error.ts";

/** The dates and cursor of a query, null where absent. Throws `invalid_query` for impossible dates and foreign cursors. */
export function checkListQuery<Name extends string>(
  dates: Readonly<Record<Name, string | undefined>>,
  cursor: string | undefined,
  position: RegExp,
): Readonly<Record<Name, Date | null>> & { readonly before: string | null } {
  const times = Object.entries<string | undefined>(dates).map(
    ([name, text]) => [name, text === undefined ? null : new Date(text)] as const,
  );
  const before = cursor === undefined ? null : decodeCursor(cursor, position);
  const issues = times.flatMap(([field, at]) =>
    at !== null && Number.isNaN(at.getTime()) ? [{ field, message: "Is not a date and time." }] : [],
  );
  if (cursor !== undefined && before === null) {
    issues.push({ field: "cursor", message: "Is not the next_cursor of a page." });
  }
  if (issues.length > 0) throw new DomainError("invalid_query", "The query is not valid.", issues);
  // Safe: these are the names of `dates`.
  return { ...(Object.fromEntries(times) as Record<Name, Date | null>), before };
}

/** An opaque cursor, so that callers don't build cursors from ids. */
export function encodeCursor(position: string): string {
  return Buffer.from(position).toString("base64url");
}

/** A page of rows with the cursor of the next page. `found` has one row more than fits if there is a next page. */
export function cutPage<Row extends { readonly id: string }>(found: readonly Row[], limit: number) {
  const data = found.slice(0, limit);
  const last = found.length > limit ? data.at(-1) : undefined;
  return { data, next_cursor: last === undefined ? null : encodeCursor(last.id) };
}

/** The position in a cursor; null if the cursor is not ours. */
export function decodeCursor(cursor: string, position: RegExp): string | null {
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  // Decoding is lenient, so accept only a cursor that encodes to the same text again.
  return position.test(text) && encodeCursor(text) === cursor ? text : null;
}
