import { DatabaseError } from "pg";
import { DatabaseFault, reasonOf, TOO_MANY_CONNECTIONS } from "../sql/errors.ts";
import { StoreUnavailable } from "../../src/core/store.ts";

/** Serialization failure and deadlock: the same transaction may succeed if it is repeated. */
const REPEATABLE = /^(40001|40P01)$/;

/**
 * Classes of errors that mean that the statement or its values are wrong: data, constraints, syntax, program limits. Not a
 * missing privilege (42501) or table (42P01), since the same statement succeeds once the operator has granted it or restored a backup.
 */
const REJECTED = /^(21|22|23|42(?!501|P01)|54|0A|P0)/;

/** What an error of the driver or the server means. If it has no SQLSTATE, the connection is lost. */
export function faultIn(error: unknown): DatabaseFault | StoreUnavailable {
  if (error instanceof DatabaseFault || error instanceof StoreUnavailable) return error;
  const code = sqlStateOf(error);
  const refused = REJECTED.test(code) ? "rejected" : "unavailable";
  return new DatabaseFault(REPEATABLE.test(code) ? "busy" : refused, code.startsWith("23"), error);
}

/** Whether the prepared statement is missing or another has its name, since a pooler lends connections of others. */
export function isOfPooler(error: unknown): boolean {
  return /^(26000|42P05)$/.test(sqlStateOf(error));
}

/** Whether a prepared statement's result type has changed with the tables. A new connection prepares it anew. */
export function isOutdated(error: unknown): boolean {
  // Not by the message, which is in the server's language.
  return sqlStateOf(error) === "0A000" && error instanceof DatabaseError && error.routine === "RevalidateCachedQuery";
}

/** Whether the server, the database, the role or the pooler has no more connections. */
export function isBeyondConnections(error: unknown): boolean {
  return reasonOf(error) === TOO_MANY_CONNECTIONS;
}

/** Whether it failed only because an earlier statement of its transaction did. */
export function isAftermath(error: unknown): boolean {
  return sqlStateOf(error) === "25P02";
}

/** Whether the server answered, and the connection still works. */
export function isConnectionSound(error: unknown): boolean {
  const code = sqlStateOf(error);
  // Not after a shutdown or crash, or if the server became a standby: another server may have its address by now.
  return code !== "" && !/^(08|57P|58|25006|XX)/.test(code);
}

/** An error for the operator, if the server answered that this role or database can't be used. */
export function refusalIn(error: unknown): Error | null {
  const cause = error instanceof DatabaseFault ? error.cause : error;
  const isRefused = /^(28|3D|42501|3F)/.test(sqlStateOf(cause));
  if (!isRefused || !(cause instanceof Error)) return null;
  return new Error(`The database of DATABASE_URL refuses: ${cause.message}. Check its user, password and name.`, {
    cause,
  });
}

/** The SQLSTATE, or "" unless the server sent the error: codes of the network, such as EPIPE, may look like one. */
function sqlStateOf(error: unknown): string {
  return error instanceof DatabaseError ? (error.code ?? "") : "";
}
