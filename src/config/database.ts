import type { FaultOf } from "./kinds.ts";

/** Where everything is kept. */
export type Database =
  | { readonly kind: "file"; readonly url: string; readonly path: string }
  | { readonly kind: "remote"; readonly url: string; readonly authToken: string | null };

/** Remote libSQL: `libsql:` is https under another name. */
const REMOTE = /^(libsql|https?):\/\//i;

/** What is wrong with a DATABASE_URL. */
export const databaseFault: FaultOf = (value) => {
  if (/^postgres(ql)?:/i.test(value)) return "names a PostgreSQL store, which this version does not have yet";
  if (REMOTE.test(value)) return remoteFault(value);
  if (!/^file:/i.test(value)) return "is no address of a store";
  const path = pathOf(value);
  if (path === null || path.endsWith("/")) return "names no file";
  return path.startsWith(":") ? "names a store in memory, which forgets everything" : null;
};

/** The store that a faultless DATABASE_URL means. */
export function readDatabase(url: string, authToken: string | null): Database {
  const path = REMOTE.test(url) ? null : pathOf(url);
  return path === null ? { kind: "remote", url, authToken } : { kind: "file", url, path };
}

/** How the store is opened: a `file:` URL has its path as it is, without percent codes. */
export function addressOf(database: Database): { readonly url: string; readonly authToken: string | null } {
  return database.kind === "remote" ? database : { url: `file:${database.path}`, authToken: null };
}

/** Whether the database lies on another machine, so that no key file can lie beside it. */
export function isRemote(url: string): boolean {
  return REMOTE.test(url);
}

function remoteFault(value: string): string | null {
  if (!URL.canParse(value)) return "is no address of a store";
  const url = new URL(value);
  // A token in the URL would be shown wherever the database is named.
  const holdsSecret = url.username !== "" || url.password !== "" || url.searchParams.has("authToken");
  if (holdsSecret) return "holds a token: put it into DATABASE_AUTH_TOKEN";
  return url.hostname === "" ? "names no host" : null;
}

/** The path as the driver reads it: percent-decoded, the empty authority and `localhost` being this machine. */
function pathOf(url: string): string | null {
  const path = /^file:(?:\/\/(?:localhost)?(?=\/))?((?!\/\/)[^?#\0]+)$/i.exec(url)?.[1];
  try {
    return path === undefined ? null : decodeURIComponent(path);
  } catch {
    return null;
  }
}
