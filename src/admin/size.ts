import { databaseExists, sizeOfFile } from "../../db/open.ts";
import { type ServerSize, serverSize } from "../accounts/server-size.ts";
import { type Config, readConfig } from "../config/config.ts";

/** The size of the database file. Null: no file, or unusable settings. Throws an error for the operator. */
export async function readLocalSize(
  env: Readonly<Record<string, string | undefined>>,
  now: Date,
): Promise<(ServerSize & { readonly path: string }) | null> {
  const config = configOrNull(env);
  if (config === null || config.database.kind !== "file") return null;
  const { path } = config.database;
  if (!databaseExists(`file:${path}`)) return null;
  return { ...(await serverSize((until) => sizeOfFile(path, until), now, config.retentionDays)), path };
}

function configOrNull(env: Readonly<Record<string, string | undefined>>): Config | null {
  try {
    return readConfig(env);
  } catch {
    // `reportSettings` says what is wrong with them.
    return null;
  }
}
