import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { LOGIN_FILE_BYTES_MAX } from "../core/limits.ts";
import { apiKeyIn } from "../client/api-key-file.ts";
import type { Io } from "./io.ts";
import { jsonIn } from "../core/json.ts";

/** What `outgate login` stores: a service, and a key that is sent only there. */
interface Login {
  readonly url: string;
  readonly key: string;
}

/** The path of the stored login; null if this machine has no place for it. */
export function loginFile({ XDG_CONFIG_HOME: config = "", HOME: home = "", USERPROFILE: profile = "" }: Io["env"]) {
  const folder = home === "" ? profile : home;
  // The XDG Base Directory Specification says to ignore relative paths.
  if (isAbsolute(config)) return join(config, "outgate", "login.json");
  return isAbsolute(folder) ? join(folder, ".config", "outgate", "login.json") : null;
}

/** Reads the stored login; null if nobody is logged in. Throws if others could read or write the file. */
export async function readLogin(env: Io["env"]): Promise<Login | null> {
  const path = loginFile(env);
  const file = path === null ? null : await open(path, "r").catch(nullIfAbsent);
  if (path === null || file === null) return null;
  try {
    const text = await privateText(file, path);
    const { url, key } = parseMembers(text);
    if (typeof url !== "string" || typeof key !== "string" || !/^https?:\/\//.test(url)) throw unreadable(path);
    return { url, key: apiKeyIn(key, `The file ${path}`) };
  } finally {
    await file.close();
  }
}

/** Checks and reads an open file, so that nobody can replace it in between. */
async function privateText(file: FileHandle, path: string): Promise<string> {
  const { mode, uid, size } = await file.stat();
  const own = process.getuid?.();
  // Windows has no such modes.
  if (own !== undefined && uid !== own && uid !== 0) throw new Error(`The file ${path} belongs to another user.`);
  if (own !== undefined && (mode & 0o077) !== 0) {
    throw new Error(
      `Other users can read the key in ${path}. Run \`chmod 600 ${path}\`, and replace the key if they may have read it.`,
    );
  }
  if (size > LOGIN_FILE_BYTES_MAX) throw unreadable(path);
  return file.readFile("utf8");
}

function unreadable(path: string): Error {
  return new Error(`The file ${path} holds no login. Run \`outgate login\` again.`);
}

function parseMembers(text: string): Readonly<Record<string, unknown>> {
  const value = jsonIn(text);
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Writes a file with mode 0600 atomically, in a folder that only this user can open. Returns its path. */
export async function writeLogin(env: Io["env"], login: Login): Promise<string> {
  const path = loginFile(env);
  if (path === null) throw new Error("There is no place for a login: set HOME or XDG_CONFIG_HOME.");
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const partial = `${path}.partial`;
  // An earlier file may be readable by others, or be a link.
  await rm(partial, { force: true });
  const file = await open(partial, "wx", 0o600);
  try {
    await file.writeFile(`${JSON.stringify(login)}\n`);
  } finally {
    await file.close();
  }
  await rename(partial, path);
  return path;
}

/** Deletes the login. Returns false if nobody was logged in. */
export async function removeLogin(env: Io["env"]): Promise<boolean> {
  const path = loginFile(env);
  if (path === null) return false;
  return rm(path).then(
    () => true,
    (error: unknown) => nullIfAbsent(error) !== null,
  );
}

function nullIfAbsent(error: unknown): null {
  if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")) return null;
  throw error;
}
