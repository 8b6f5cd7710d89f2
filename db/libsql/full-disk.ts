import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "../sql/errors.ts";
import type { Sql } from "../sql/sql.ts";
import { openFile } from "./file.ts";

/** More than the shared memory and the first pages of a log take. */
const ROOM_BYTES_MIN = 128 * 1_024;

/** Whether a file could not be opened because there is no room for the files beside it. */
export function isForLackOfRoom(error: unknown): boolean {
  return /^(SQLITE_IOERR_SHMSIZE|SQLITE_FULL|ENOSPC|EDQUOT)$/.test(codeOf(error));
}

/**
 * Opens a file that could not be opened for lack of room: SQLite finds none for the shared memory of the log. Until there is some,
 * this reads the file alone, with that memory in the heap, and refuses writes; then each write tries `open`, which opens it as
 * usual. Throws `cause`, why it could not be opened, if it can't be read either; or that it is damaged.
 */
export function openOnFullDisk(path: string, open: () => Promise<Sql>, cause: unknown): Sql {
  let current = openAlone(path, cause);
  let isAlone = true;
  let opening: Promise<void> | null = null;
  const openAgain = async () => {
    const { bavail, bsize } = statfsSync(dirname(path));
    // As SQLite itself says it.
    if (bavail * bsize < ROOM_BYTES_MIN)
      throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    await current.close();
    try {
      current = await open();
      isAlone = false;
    } catch (error) {
      current = openFile(path, "alone");
      throw error;
    }
  };
  const writable = async (): Promise<Sql> => {
    if (isAlone) await (opening ??= openAgain().finally(() => (opening = null)));
    return current;
  };
  /** While it is opened again nobody may read: one that reads the file alone locks out others. */
  const opened = async (): Promise<Sql> => {
    await opening?.catch(() => {});
    return current;
  };
  return {
    dialect: current.dialect,
    read: async (statement) => (await opened()).read(statement),
    batch: async (statements) => (await writable()).batch(statements),
    transact: async (calls) => (await writable()).transact(calls),
    close: async () => (await opened()).close(),
  };
}

function openAlone(path: string, cause: unknown): Sql {
  try {
    return openFile(path, "alone");
  } catch (error) {
    throw /CORRUPT|NOTADB/.test(codeOf(error)) ? error : cause;
  }
}
