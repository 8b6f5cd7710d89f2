/** What the error of a database means for the store, and the reason for the log. */
import { StoreUnavailable } from "../../src/core/store.ts";
import type { DbConnection } from "../commands/command.ts";

/** What a failed statement means for the store. */
type FaultKind =
  /** Another connection holds the lock, briefly. */
  | "busy"
  /** The disk is full, or the file or network is unavailable. It may recover. */
  | "unavailable"
  /** An accepted write could not be made durable, so the state of the file is unknown. */
  | "fatal"
  /** The statement itself is wrong and will always fail. */
  | "rejected";

const UNAVAILABLE =
  /SQLITE_(FULL|IOERR|CANTOPEN|READONLY|NOTADB|CORRUPT|PROTOCOL)|HRANA|SERVER_ERROR|CLIENT_CLOSED|connection is not open|closed database|OUTGATE_LOG_GONE|ECONN|ENOTFOUND|fetch/i;

/** The server did not answer. What was sent may have been committed, or may still be. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";

  constructor(cause: unknown) {
    super("The database gave no answer.", { cause });
  }
}

/** An error that the connection has already classified. */
export class DatabaseFault extends Error {
  /** With the code, which is all that the log may say of it. */
  override readonly name: string;
  readonly kind: FaultKind;
  readonly isConstraint: boolean;

  constructor(kind: FaultKind, isOfConstraint: boolean, cause: unknown) {
    super(cause instanceof Error ? cause.message : "The database failed.", { cause });
    this.name = `DatabaseFault ${errorCode(cause)}`.trimEnd();
    this.kind = kind;
    this.isConstraint = isOfConstraint;
  }
}

/** Whether the error is the database's own answer, which means that it has done nothing. */
export function isAnswered(error: unknown): boolean {
  const first = error instanceof StoreUnavailable ? error.cause : error;
  return faultKind(first) !== "unavailable" || /SQLITE_/.test(errorCode(first));
}

/** Classifies a database error by its code, or by its message, since libSQL doesn't always give a code. */
export function faultKind(error: unknown): FaultKind {
  if (error instanceof DatabaseFault) return error.kind;
  if (error instanceof NoAnswer || error instanceof StoreUnavailable) return "unavailable";
  const text = codeAndText(error);
  if (/SQLITE_BUSY|SQLITE_LOCKED|database is locked/i.test(text)) return "busy";
  if (/IOERR_(DIR_)?FSYNC/i.test(text)) return "fatal";
  if (UNAVAILABLE.test(text) || /ENOSPC|EDQUOT|disk is full|disk I\/O error|unable to open|malformed/i.test(text))
    return "unavailable";
  return "rejected";
}

/** Whether the error says that a value violates a constraint of a table. */
export function isConstraint(error: unknown): boolean {
  if (error instanceof DatabaseFault) return error.isConstraint;
  return /SQLITE_CONSTRAINT|constraint failed/i.test(codeAndText(error));
}

/** The error for callers of the store. Its cause is the error of the library. */
export function unavailable(cause: unknown): StoreUnavailable {
  const reason = cause instanceof StoreUnavailable ? cause.reason : errorReason(cause);
  return new StoreUnavailable(`The store cannot be used now: ${reason}.`, { cause, reason });
}

/** Wraps work that does not go through the writer: rejects with `StoreUnavailable` if the database is unavailable. */
export async function orUnavailable<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw faultKind(error) === "rejected" ? error : unavailable(error);
  }
}

/** The `code` of an error, or "". */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

export function codeAndText(error: unknown): string {
  return `${errorCode(error)} ${error instanceof Error ? error.message : ""}`;
}

/** Called each time that a call finds the database unavailable. */
export type OnAway = (error: StoreUnavailable) => void;

/** Makes a connection report each call that finds the database unavailable. */
export function tellingAway(connection: DbConnection, onAway: OnAway): DbConnection {
  const tell = (error: unknown): never => {
    if (faultKind(error) === "unavailable") onAway(unavailable(error));
    throw error;
  };
  return {
    dialect: connection.dialect,
    read: (statement) => connection.read(statement).catch(tell),
    transact: (calls) => connection.transact(calls).catch(tell),
    close: () => connection.close(),
  };
}

/** Deeper than any library nests its errors. */
const CAUSES_MAX = 6;

export const TOO_MANY_CONNECTIONS = "too many connections";

/**
 * Reasons by SQLSTATE, by codes of SQLite, the system and TLS, and by words of libraries without codes and of PgBouncer, which
 * has one code for everything. The first match counts.
 */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^53300 |too many (connections|clients)|no more connections/i, TOO_MANY_CONNECTIONS],
  [/^28P01 |\bSASL\b|password must be|password authentication failed/, "password authentication failed"],
  [/^(28|42501 )|SERVER_ERROR.*\b40[13]\b/, "permission denied"],
  [/^(3D|08P01 (no such database|database .+ does not exist))/, "the database does not exist"],
  [/statement pooling mode/, "the pooler is in statement mode"],
  [/^3F/, "the schema does not exist"],
  [/^42P01 /, "its tables are missing"],
  [/^(53100|SQLITE_FULL|SQLITE_IOERR_SHMSIZE|ENOSPC|EDQUOT) |disk is full/, "the disk is full"],
  [/^53200 /, "the database is out of memory"],
  [/^(57P05|25P0[34]) /, "a time limit of the server has ended the connection"],
  [/^57P03 /, "the database is starting or stopping"],
  [/^57P/, "the database was stopped"],
  [/^25006 /, "the database takes no writes"],
  [/^55P03 /, "another node is changing the tables, or a backup or another program holds them"],
  [/^(57014|ETIMEDOUT|ETIME) |not answered in time|timeout|timed out/i, "no answer came in time"],
  [/^OUTGATE_LOG_GONE /, "its log was deleted, replaced or cut"],
  [/SQLITE_(BUSY|LOCKED)|database is locked/, "another process has it locked"],
  [/CERT|\bSSL\b|\bTLS\b|self.signed/i, "the TLS connection failed"],
  [/SQLITE_(CORRUPT|NOTADB)/, "its file is damaged"],
  [/SQLITE_READONLY/, "the file or its disk is read-only"],
  [/SQLITE_IOERR|disk I\/O error/, "the disk has an error"],
  [
    /^(EPIPE|ECONN\w+|ENOTFOUND|EAI_\w+|EHOST\w+|ENET\w+|08\w+|ConnectionRefused|ConnectionClosed|FailedToOpenSocket) |Connection (terminated|lost)|connection (to the database )?was (lost|closed)|no answer|Unable to connect|socket connection/i,
    "it could not be reached",
  ],
];

const UNKNOWN_REASON = "it could not be used";

/** Why the database is unavailable, for the operator. It quotes nothing of the error, since messages of libraries contain addresses and names. */
export function errorReason(error: unknown): string {
  const texts: string[] = [];
  let at = error;
  while (at instanceof Error && texts.length < CAUSES_MAX) {
    texts.push(codeAndText(at));
    at = at.cause;
  }
  // The innermost error says most.
  for (const text of texts.toReversed()) {
    const found = REASONS.find(([pattern]) => pattern.test(text));
    if (found !== undefined) return found[1];
  }
  return UNKNOWN_REASON;
}
