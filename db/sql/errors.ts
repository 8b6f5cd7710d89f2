import { StoreUnavailable } from "../../src/core/store.ts";
import { reasonOf } from "./reasons.ts";
import type { Sql } from "./sql.ts";

/** What a failed statement means for the store. */
export type FaultKind =
  /** Another connection holds the lock, briefly. */
  | "busy"
  /** The disk is full, or the file or network is away: it may recover. */
  | "unavailable"
  /** An accepted write could not be made durable: the state of the file is unknown. */
  | "fatal"
  /** The statement itself is wrong, and always will be. */
  | "rejected";

const UNAVAILABLE =
  /SQLITE_(FULL|IOERR|CANTOPEN|READONLY|NOTADB|CORRUPT|PROTOCOL)|HRANA|SERVER_ERROR|CLIENT_CLOSED|connection is not open|closed database|ECONN|ENOTFOUND|fetch/i;

/** The server did not answer. What it was asked to write may be committed, even later. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";

  constructor(cause: unknown) {
    super("The database gave no answer.", { cause });
  }
}

/** An error whose meaning its connection knows. */
export class DatabaseFault extends Error {
  override readonly name = "DatabaseFault";
  readonly kind: FaultKind;
  readonly isConstraint: boolean;

  constructor(kind: FaultKind, isOfConstraint: boolean, cause: unknown) {
    super(cause instanceof Error ? cause.message : "The database failed.", { cause });
    this.kind = kind;
    this.isConstraint = isOfConstraint;
  }
}

/** Whether the database itself answered with the error, and so did nothing. */
export function isAnswered(error: unknown): boolean {
  const first = error instanceof StoreUnavailable ? error.cause : error;
  return faultOf(first) !== "unavailable" || /SQLITE_/.test(codeOf(first));
}

/** Classifies a database error by its code, or by its message where libSQL gives no code. */
export function faultOf(error: unknown): FaultKind {
  if (error instanceof DatabaseFault) return error.kind;
  if (error instanceof NoAnswer || error instanceof StoreUnavailable) return "unavailable";
  const text = `${codeOf(error)} ${error instanceof Error ? error.message : ""}`;
  if (/SQLITE_BUSY|SQLITE_LOCKED|database is locked/i.test(text)) return "busy";
  if (/IOERR_(DIR_)?FSYNC/i.test(text)) return "fatal";
  if (UNAVAILABLE.test(text) || /ENOSPC|EDQUOT|disk is full|disk I\/O error|unable to open|malformed/i.test(text))
    return "unavailable";
  return "rejected";
}

/** Whether a value violates a constraint of the tables. */
export function isConstraint(error: unknown): boolean {
  if (error instanceof DatabaseFault) return error.isConstraint;
  return /SQLITE_CONSTRAINT|constraint failed/i.test(`${codeOf(error)} ${error instanceof Error ? error.message : ""}`);
}

/** The error that callers of the store get; the library's own is its cause. */
export function unavailable(cause: unknown): StoreUnavailable {
  const reason = cause instanceof StoreUnavailable ? cause.reason : reasonOf(cause);
  return new StoreUnavailable(`The store cannot be used now: ${reason}.`, { cause, reason });
}

/** The `code` of an error; empty when it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

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
    transact: (calls) => sql.transact(calls).catch(tell),
    close: () => sql.close(),
  };
}
