/** Deeper than any library nests its errors. */
const CAUSES_MAX = 6;

/** By SQLSTATE, by codes of SQLite, of the system and of TLS, and by words of libraries that give no code. The first that fits counts. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^53300 |too many (connections|clients)|no more connections/i, "too many connections"],
  [/^28P01 |\bSASL\b|password must be/, "password authentication failed"],
  [/^(28|42501 )|SERVER_ERROR.*\b40[13]\b/, "permission denied"],
  [/^3D/, "the database does not exist"],
  [/^3F/, "the schema does not exist"],
  [/^(53100|SQLITE_FULL|SQLITE_IOERR_SHMSIZE|ENOSPC|EDQUOT) |disk is full/, "the disk is full"],
  [/^53200 /, "the database is out of memory"],
  [/^57P03 /, "the database is starting or stopping"],
  [/^57P/, "the database was stopped"],
  [/^25006 /, "the database takes no writes"],
  [/^55P03 /, "another node is changing the tables"],
  [/^(57014|ETIMEDOUT|ETIME) |not answered in time|timeout|timed out/i, "no answer came in time"],
  [/SQLITE_(BUSY|LOCKED)|database is locked/, "another process has it locked"],
  [/CERT|\bSSL\b|\bTLS\b|self.signed/i, "the TLS connection failed"],
  [/SQLITE_IOERR|disk I\/O error/, "the disk has an error"],
  [
    /^(EPIPE|ECONN\w+|ENOTFOUND|EAI_\w+|EHOST\w+|ENET\w+|08\w+|ConnectionRefused|ConnectionClosed|FailedToOpenSocket) |Connection (terminated|lost)|connection (to the database )?was (lost|closed)|no answer|Unable to connect|socket connection/i,
    "it could not be reached",
  ],
];

/** Where the words of the error say nothing that is known here. */
const UNKNOWN_REASON = "it could not be used";

/**
 * Why the database is away, in words for the operator. Nothing of the error is repeated: messages of libraries hold
 * addresses and names.
 */
export function reasonOf(error: unknown): string {
  const texts: string[] = [];
  let at = error;
  while (at instanceof Error && texts.length < CAUSES_MAX) {
    texts.push(`${"code" in at ? String(at.code) : ""} ${at.message}`);
    at = at.cause;
  }
  // The innermost error knows best.
  for (const text of texts.toReversed()) {
    const found = REASONS.find(([pattern]) => pattern.test(text));
    if (found !== undefined) return found[1];
  }
  return UNKNOWN_REASON;
}
