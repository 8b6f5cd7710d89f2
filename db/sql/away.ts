import type { StoreUnavailable } from "../../src/core/store.ts";
import { faultOf, unavailable } from "./errors.ts";
import type { Sql } from "./sql.ts";

/** Called whenever the database was found away, however often that is. */
export type OnAway = (error: StoreUnavailable) => void;

/** The same connection, which tells of each call that found the database away. */
export function tellingAway(sql: Sql, onAway: OnAway): Sql {
  const tell = (error: unknown): never => {
    if (faultOf(error) === "unavailable") onAway(unavailable(error));
    throw error;
  };
  return {
    dialect: sql.dialect,
    read: (statement) => sql.read(statement).catch(tell),
    batch: (statements) => sql.batch(statements).catch(tell),
    transact: (work) => sql.transact(work).catch(tell),
    close: () => sql.close(),
  };
}
