/** The transaction of a command on PostgreSQL. */
import { getTableName } from "drizzle-orm";
import { drizzle } from "drizzle-orm/pg-proxy";
import type { QueryResult } from "pg";
import { columnsOf, type InsertList, type Named, type Tx, type UpdateList, type Values } from "../commands/command.ts";
import { postgresDialect, type SqlValue, type Statement, type StatementResult } from "../sql/dialect.ts";
import { compileSelect, once, type Prepared } from "../sql/read.ts";
import { timeline } from "../tables.ts";
import { claimAll } from "./claim.ts";
import { escapeValue, named, type Query, unprepared, unseen } from "./queries.ts";

/** The transaction for one command. After `end`, it refuses statements, which would be part of another command. */
export function openTx(execute: (query: Query) => Promise<readonly QueryResult[]>): Tx & { end(): void } {
  let isOver = false;
  const send = (query: Query) => {
    if (isOver) throw new Error("The command has ended.");
    return execute(query);
  };
  const rowsOf = async (query: Query): Promise<(readonly unknown[])[]> => {
    const [result] = await send({ ...query, rowMode: "array" });
    // Safe: by `rowMode`, rows are lists.
    return (result?.rows ?? []) as unknown[][];
  };
  // Neither these are prepared nor those of the builder: texts differ by the lengths of lists, and the server would keep each text.
  const run = async ({ sql, args }: Statement): Promise<StatementResult> => {
    const [result] = await send(unprepared(sql, args));
    // Safe: as `PARSERS` of `connection.ts` reads them.
    return { rows: (result?.rows ?? []) as StatementResult["rows"], changes: result?.rowCount ?? 0 };
  };
  // Safe: columns encode their values to these types.
  const db = drizzle(async (text, params) => ({ rows: await rowsOf(unprepared(text, params as SqlValue[])) }));
  return {
    dialect: postgresDialect,
    read: async (statement) => (await run(statement)).rows,
    run,
    // Safe: commands use what the builders of both databases share.
    db: db as unknown as Tx["db"],
    lists: {
      async find<Args extends Named, Row>(query: Prepared<Args, Row>, args: readonly Args[]) {
        if (args.length === 0) return [];
        const { statement, names, decode } = FIND(query);
        const values = names.map((name) => args.map((arg) => arrayItem(arg[name] ?? null)));
        const found: Row[][] = args.map(() => []);
        for (const [number, ...row] of await rowsOf({ ...statement, values })) {
          // Safe: this is the query's type.
          found[Number(number) - 1]?.push(decode(row) as Row);
        }
        return found;
      },
      // Not awaited: the next statement and the commit are sent after it, and fail with it.
      async insert(into, rows) {
        if (rows.length > 0) send({ ...INSERT(into), values: turned(rows) }).catch(ignore);
      },
      async update(what, rows) {
        if (rows.length === 0) return [];
        const written = await rowsOf({ ...UPDATE(what), values: turned(rows) });
        const numbers = new Set(written.map(([number]) => number));
        return rows.map((_, at) => numbers.has(at + 1));
      },
    },
    claim: (claims) => claimAll(rowsOf, claims),
    end: () => void (isOver = true),
  };
}

/** Turns rows of values into columns. */
function turned(rows: readonly Values[]): readonly (readonly (string | null)[])[] {
  return (rows[0] ?? []).map((_, at) => rows.map((row) => arrayItem(row[at] ?? null)));
}

/** A value as an item of an array, which is sent as text. */
function arrayItem(value: SqlValue): string | null {
  return value === null ? null : String(escapeValue(value));
}

/**
 * `offset 0` keeps each look-up apart, with an index and its own arguments. A joined plan that was made while the table was
 * small could read the whole index.
 */
const FIND = once(({ types, build }: Pick<Prepared<never, unknown>, "types" | "build">) => {
  const { text, decode } = compileSelect(build(postgresDialect), (name) => `arg."${name}"`);
  const names = Object.keys(types);
  const arrays = names.map((name, at) => unseen(`${postgresDialect.place(at + 1, types[name] ?? "text")}[]`));
  const listed = names.map((name) => `"${name}"`).join(", ");
  const statement = named(
    `select arg.n, found.* from unnest(${arrays.join(", ")}) with ordinality as arg(${listed}, n)
      cross join lateral (${text} offset 0) found order by arg.n`,
  );
  return { statement, names, decode };
});

/** The columns of rows, and `unnest` over the array of each. */
function unnested(table: InsertList["table"], names: readonly string[]) {
  const columns = columnsOf(table, names);
  const arrays = columns.map((column, at) => `$${at + 1}::${column.getSQLType() === "integer" ? "bigint" : "text"}[]`);
  const rows = `cardinality(${arrays[0]})`;
  return { columns: columns.map(({ name }) => `"${name}"`), source: `unnest(${arrays.join(", ")})`, rows };
}

const INSERT = once(({ table, columns: members, onConflict }: InsertList) => {
  const { columns, source, rows } = unnested(table, members);
  const into = `insert into "${getTableName(table)}"`;
  if (table !== timeline) return named(`${into} (${columns.join(", ")}) select * from ${source} ${onConflict}`);
  const values = columns.map((_, at) => `v${at + 1}`).join(", ");
  return named(
    `with taken as materialized (select next_positions(${rows}) as first)
      ${into} ("seq", ${columns.join(", ")})
      select taken.first + row.n - 1, ${values} from taken, ${source} with ordinality as row(${values}, n) ${onConflict}`,
  );
});

const UPDATE = once(({ table, set, where }: UpdateList) => {
  const { columns, source } = unnested(table, [...set, ...where]);
  const members = columns.map((_, at) => `v${at + 1}`);
  const assigned = set.map((_, at) => `${columns[at]} = row.${members[at]}`);
  const found = where.map((_, at) => `old.${columns[set.length + at]} = row.${members[set.length + at]}`);
  return named(
    `update "${getTableName(table)}" old set ${assigned.join(", ")}
      from ${source} with ordinality as row(${members.join(", ")}, n) where ${found.join(" and ")} returning row.n`,
  );
});

function ignore(): void {
  // The transaction fails with it.
}
