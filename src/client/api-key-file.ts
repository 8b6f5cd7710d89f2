import { readFile } from "node:fs/promises";

// Not part of the client, which browsers load too: they have no files.

type Env = Readonly<Record<string, string | undefined>>;

/** The key in `OUTGATE_API_KEY`, or in the file that `OUTGATE_API_KEY_FILE` names; null: neither is set. */
export async function apiKeyFromEnv({ OUTGATE_API_KEY: key = "", OUTGATE_API_KEY_FILE: path = "" }: Env) {
  // Checked here, because a key that no header can hold would fail as if the service were down.
  if (key !== "") return apiKeyIn(key, "OUTGATE_API_KEY");
  if (path === "") return null;
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new Error(`The file ${path} in OUTGATE_API_KEY_FILE can't be read.`, { cause });
  });
  return apiKeyIn(text, `The file ${path}`);
}

/** A key alone, or as a header line in a file for `curl -H @file`. */
const KEY = /^(?:authorization:[ \t]*)?(?:bearer[ \t]+)?([!-~]{1,512})$/i;

/** The API key in a text. Throws a sentence that begins with `where` if there is none. */
export function apiKeyIn(text: string, where: string): string {
  const [, key] = KEY.exec(text.trim()) ?? [];
  if (key === undefined) throw new Error(`${where} must hold one API key and nothing else.`);
  return key;
}
