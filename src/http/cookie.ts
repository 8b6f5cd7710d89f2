import { SESSION_MS_MAX } from "../domain/limits.ts";

/** The session's cookie: how it is read, set and taken back (hostile 7). */
export interface SessionCookie {
  /** The token that a request brings along; null: none that could be one of ours. */
  read(headers: Headers): string | null;
  /** Values of `Set-Cookie`. */
  set(token: string): string;
  clear(): string;
}

/** 256 bits as hex. */
const TOKEN = /^[0-9a-f]{64}$/;

/** With https the cookie never goes out in clear, and its prefix keeps other hosts of the domain from setting it. */
export function createSessionCookie(baseUrl: string): SessionCookie {
  const isSecure = baseUrl.startsWith("https:");
  const name = isSecure ? "__Host-outgate_session" : "outgate_session";
  const ending = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return {
    read(headers) {
      const pairs = (headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
      const token = pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
      return TOKEN.test(token) ? token : null;
    },
    set: (token) => `${name}=${token}${ending}; Max-Age=${SESSION_MS_MAX / 1_000}`,
    clear: () => `${name}=${ending}; Max-Age=0`,
  };
}
