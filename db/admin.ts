import { existsSync } from "node:fs";
import type { PeopleStore, AccountStore } from "./account-store.ts";
import { createAccountStore } from "./libsql/accounts.ts";
import { openFile } from "./libsql/file.ts";
import { DatabaseUnreadable, inspectFile } from "./libsql/inspect.ts";
import { checkMigrated } from "./libsql/migrate.ts";
import { createPeopleStore } from "./libsql/people.ts";
import { openRemote } from "./libsql/remote.ts";
import type { Sql } from "./libsql/sql.ts";
import { Writer } from "./libsql/writer.ts";
import { filePathOf } from "./open.ts";

/** What an admin command may use of a database that the service may be using. */
interface AdminStore {
  readonly accounts: AccountStore;
  readonly people: PeopleStore;
  close(): Promise<void>;
}

/**
 * Opens a database for a few small writes, whether or not the service uses it. Each is one short transaction; the
 * service waits for it as for any lock. Nothing is created or migrated. Throws an error for the operator when there is
 * no database yet, or one of another version.
 */
export async function openAdminStore(url: string, authToken: string | null): Promise<AdminStore> {
  const path = filePathOf(url);
  const sql = path === null ? openRemote(url, authToken) : openExisting(path);
  try {
    await checkMigrated(sql);
  } catch (error) {
    await sql.close();
    throw error;
  }
  // The caller gets the error of a write that was not durable; nothing is written after it here.
  const writer = new Writer(sql, () => {});
  return {
    accounts: createAccountStore({ sql, writer }),
    people: createPeopleStore({ sql, writer }),
    async close() {
      await writer.drain();
      await sql.close();
    },
  };
}

function openExisting(path: string): Sql {
  if (!existsSync(path)) throw new Error(`There is no database ${path}. Start the service once, or set DATABASE_URL.`);
  try {
    inspectFile(path);
    return openFile(path, "beside");
  } catch (cause) {
    if (cause instanceof DatabaseUnreadable) throw cause;
    throw new Error(`The database ${path} can't be opened. Run this as the user of the service.`, { cause });
  }
}
