import { readFile } from "node:fs/promises";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The API key that `OUTGATE_API_KEY` holds, or the file that `OUTGATE_API_KEY_FILE` names; null: neither is set. Throws a
 * sentence where the file can't be read or holds no key.
 */
export async function apiKeyOf({ OUTGATE_API_KEY: key = "", OUTGATE_API_KEY_FILE: path = "" }: Env) {
  if (key !== "" || path === "") return key === "" ? null : key;
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new Error(`The file ${path}, which OUTGATE_API_KEY_FILE names, can't be read.`, { cause });
  });
  return apiKeyIn(text, `The file ${path}`);
}

/** Alone, or in the header that `curl -H @file` sends: one file serves both. */
const KEY = /^(?:authorization:[ \t]*)?(?:bearer[ \t]+)?([!-~]{1,512})$/i;

/** The API key that a file holds; `where` begins the sentence that says that it holds none. */
export function apiKeyIn(text: string, where: string): string {
  const [, key] = KEY.exec(text.trim()) ?? [];
  if (key === undefined) throw new Error(`${where} has to hold one API key and nothing else.`);
  return key;
}
