import { afterAll } from "bun:test";
import { type Store, StoreUnavailable } from "../../src/core/store.ts";
import { type OpenTestStore, type TestStore, testStore } from "./store.ts";
import { type DbConnection, runStatements } from "../../db/commands/command.ts";

/** A database that the tests of a file use one after another, over connections that stay open. */
interface Kept {
  readonly sql: DbConnection;
  /** For what tests look at besides the store; closed with `sql`. */
  readonly look: DbConnection;
  /** A new store over the connection. */
  readonly over: (sql: DbConnection) => Store;
  /** The store as the service opens it, over connections of its own. */
  readonly open: () => Promise<Store>;
  /** Lists columns by name; SQLite's if it is absent. */
  readonly columns?: string;
  /** Lists the tables by name. */
  readonly tables: string;
  /** Lets what numbers rows begin again, where anything does. */
  readonly begin?: string;
  /** What goes with it. */
  readonly folder?: AsyncDisposable;
}

/**
 * A store for each test, in a database without rows that is opened once: opening takes several times as long as most
 * tests, emptying a fraction. Only `restart` opens the store as the service does.
 */
export function openKept(make: () => Promise<Kept>): OpenTestStore {
  const all: Kept[] = [];
  const idle: (() => TestStore)[] = [];
  afterAll(async () => {
    idle.length = 0;
    for (const { sql, look, folder } of all.splice(0)) {
      await sql.close();
      await look.close();
      await folder?.[Symbol.asyncDispose]();
    }
  });
  const first = async () => {
    const kept = await make();
    all.push(kept);
    const empty = await emptying(kept);
    const { look, open, columns } = kept;
    const begin = (): TestStore =>
      testStore(kept.over(staying(kept.sql)), {
        folder: {
          async [Symbol.asyncDispose]() {
            await empty();
            idle.push(begin);
          },
        },
        look: staying(look),
        open,
        ...(columns === undefined ? {} : { columns }),
      });
    return begin();
  };
  return async () => idle.pop()?.() ?? (await first());
}

/** Deletes the rows that were not there at first. */
async function emptying({ sql, look, tables, begin }: Kept): Promise<() => Promise<void>> {
  const names = (await look.read({ sql: tables, args: [] })).map(({ name }) => String(name));
  const filled = names
    .map((name) => `select '${name}' as name where exists (select 1 from "${name}")`)
    .join(" union all ");
  const findFilled = async () => (await sql.read({ sql: filled, args: [] })).map(({ name }) => String(name));
  const always = new Set(await findFilled());
  return async () => {
    const written = (await findFilled()).filter((name) => !always.has(name));
    if (written.length === 0) return;
    const statements = [...written.map((name) => `delete from "${name}"`), ...(begin === undefined ? [] : [begin])];
    await runStatements(
      sql,
      statements.map((text) => ({ sql: text, args: [] })),
    );
  };
}

/** The connection as a store has it: closed for this store only. */
function staying(sql: DbConnection): DbConnection {
  let isClosed = false;
  const closed = () => Promise.reject(new StoreUnavailable("The database is closed."));
  return {
    dialect: sql.dialect,
    read: (statement) => (isClosed ? closed() : sql.read(statement)),
    transact: (calls) => (isClosed ? closed() : sql.transact(calls)),
    async close() {
      isClosed = true;
    },
  };
}
