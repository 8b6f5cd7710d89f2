import { StoreUnavailable } from "../store.ts";

/** What a failed statement means for the store. */
type FaultKind =
  /** Somebody else holds the lock: soon over. */
  | "busy"
  /** The disk is full, the file or the network is away: heals without us. */
  | "unavailable"
  /** A write was accepted and could not be made durable: nothing that this process believes of the file is sure. */
  | "fatal"
  /** The statement itself is wrong, and will be wrong again. */
  | "rejected";

const UNAVAILABLE =
  /SQLITE_(FULL|IOERR|CANTOPEN|READONLY|NOTADB|CORRUPT|PROTOCOL)|HRANA|SERVER_ERROR|CLIENT_CLOSED|connection is not open|ECONN|ENOTFOUND|fetch/i;

/** A server did not answer in time, or not at all. What it was asked to write may be committed, or be so later. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";

  constructor(cause: unknown) {
    super("The database gave no answer.", { cause });
  }
}

/** Whether an error came from the database, which then has done nothing, or from the way there. */
export function isAnswered(error: unknown): boolean {
  const first = error instanceof StoreUnavailable ? error.cause : error;
  return faultOf(first) !== "unavailable" || /SQLITE_/.test(codeOf(first));
}

/** Reads a database error by its code, and by its text where libSQL gives no better. */
export function faultOf(error: unknown): FaultKind {
  if (error instanceof NoAnswer || error instanceof StoreUnavailable) return "unavailable";
  const text = `${codeOf(error)} ${error instanceof Error ? error.message : ""}`;
  if (/SQLITE_BUSY|SQLITE_LOCKED|database is locked/i.test(text)) return "busy";
  if (/IOERR_(DIR_)?FSYNC/i.test(text)) return "fatal";
  if (UNAVAILABLE.test(text) || /ENOSPC|EDQUOT|disk is full|disk I\/O error|unable to open|malformed/i.test(text))
    return "unavailable";
  return "rejected";
}

/** A rule of the tables that the values of a row break. */
export function isConstraint(error: unknown): boolean {
  return /SQLITE_CONSTRAINT|constraint failed/i.test(`${codeOf(error)} ${error instanceof Error ? error.message : ""}`);
}

/** The error that callers of the store see instead of the library's own, which is kept as its cause. */
export function unavailable(cause: unknown): StoreUnavailable {
  return new StoreUnavailable("The store cannot be used now.", { cause });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
