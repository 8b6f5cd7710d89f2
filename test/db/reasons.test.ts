import { expect, test } from "bun:test";
import { Client } from "pg";
import { openStore } from "../../db/open.ts";
import { errorReason } from "../../db/sql/errors.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { NOON } from "../support/factory.ts";
import { freePort } from "../support/free-port.ts";
import { createDatabase, dropDatabase, hasPostgres } from "../support/postgres.ts";
import { testSecrets } from "../support/store.ts";

/** Why a start on this database would wait, as it tells. */
async function whyWaiting(url: string): Promise<string> {
  const settings = { url, authToken: null, seal: testSecrets, now: NOON, onFatal: () => {} };
  const failed = await openStore(settings).catch((error: unknown) => error);
  if (!(failed instanceof StoreUnavailable)) throw new Error("It does not wait.", { cause: failed });
  return failed.reason;
}

const ROLE = "outgate_reasons";
const PASSWORD = "not-to-be-told";

test.skipIf(!hasPostgres)(
  "a start that waits for PostgreSQL says why, and neither who, where nor the password",
  async () => {
    const url = await createDatabase();
    const admin = new Client({ connectionString: url });
    await admin.connect();
    try {
      await admin.query(`drop role if exists ${ROLE}; create role ${ROLE} login password '${PASSWORD}'`);
      const as = (changed: Partial<Record<"username" | "password" | "pathname" | "port", string>>) =>
        Object.assign(new URL(url), { username: ROLE, password: PASSWORD, ...changed }).href;
      expect(await whyWaiting(as({}))).toBe("permission denied");
      expect(await whyWaiting(as({ password: "wrong" }))).toBe("password authentication failed");
      expect(await whyWaiting(as({ username: "nobody_of_that_name" }))).toBe("password authentication failed");
      expect(await whyWaiting(as({ pathname: "/no_such_database" }))).toBe("the database does not exist");
      expect(await whyWaiting(as({ port: String(await freePort()) }))).toBe("it could not be reached");
      await admin.query(`alter role ${ROLE} connection limit 0`);
      expect(await whyWaiting(as({}))).toBe("too many connections");
    } finally {
      await admin.query(`drop role if exists ${ROLE}`);
      await admin.end();
      await dropDatabase(url);
    }
  },
);

test("a start that waits for a libSQL server says why", async () => {
  expect(await whyWaiting(`http://127.0.0.1:${await freePort()}`)).toBe("it could not be reached");
  using server = Bun.serve({ port: 0, fetch: () => new Response("no", { status: 401 }) });
  expect(await whyWaiting(server.url.href)).toBe("permission denied");
});

test.each([
  ["SQLITE_FULL", "database or disk is full", "the disk is full"],
  ["SQLITE_IOERR_SHMSIZE", "disk I/O error", "the disk is full"],
  ["ENOSPC", "no space left on device, write", "the disk is full"],
  ["SQLITE_READONLY", "attempt to write a readonly database", "the file or its disk is read-only"],
  ["SQLITE_CORRUPT", "database disk image is malformed", "its file is damaged"],
  ["SQLITE_IOERR_READ", "disk I/O error", "the disk has an error"],
  ["SQLITE_BUSY", "database is locked", "another process has it locked"],
  ["EPIPE", "write EPIPE", "it could not be reached"],
  ["EAI_AGAIN", "getaddrinfo EAI_AGAIN db.internal", "it could not be reached"],
  ["ETIMEDOUT", "connect ETIMEDOUT 10.0.0.7:5432", "no answer came in time"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "self signed certificate in certificate chain", "the TLS connection failed"],
  // PgBouncer
  ["08P01", "password authentication failed", "password authentication failed"],
  [
    "57P05",
    "terminating connection due to idle-session timeout",
    "a time limit of the server has ended the connection",
  ],
  ["08P01", "SASL authentication failed", "password authentication failed"],
  ["08P01", "no such database: outgate", "the database does not exist"],
  ["08P01", 'database "outgate" does not exist', "the database does not exist"],
  ["08P01", "transaction blocks not allowed in statement pooling mode", "the pooler is in statement mode"],
  ["08P01", "no more connections allowed (max_client_conn)", "too many connections"],
  ["08P01", "query_wait_timeout", "no answer came in time"],
  ["08P01", "server conn crashed?", "it could not be reached"],
  ["", "Connection terminated unexpectedly", "it could not be reached"],
  ["", "something at 10.0.0.7 that nobody knows", "it could not be used"],
])("%s (%s) means: %s", (code, message, reason) => {
  const error = Object.assign(new Error(message), code === "" ? {} : { code });
  expect(errorReason(new Error("The database failed.", { cause: error }))).toBe(reason);
});
