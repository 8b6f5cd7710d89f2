import { StoreUnavailable } from "../../src/ports/store.ts";

/** What a failed statement means for the store. */
export type FaultKind =
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

/** Reads a database error by its code, and by its text where libSQL gives no better. */
export function faultOf(error: unknown): FaultKind {
  const text = `${codeOf(error)} ${error instanceof Error ? error.message : ""}`;
  if (/SQLITE_BUSY|SQLITE_LOCKED|database is locked/i.test(text)) return "busy";
  if (/IOERR_(DIR_)?FSYNC/i.test(text)) return "fatal";
  if (UNAVAILABLE.test(text) || /ENOSPC|EDQUOT|disk is full|disk I\/O error|unable to open|malformed/i.test(text))
    return "unavailable";
  return "rejected";
}

/** The error that callers of the store see instead of the library's own, which is kept as its cause. */
export function unavailable(cause: unknown): StoreUnavailable {
  return new StoreUnavailable("The store cannot be used now.", { cause });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
