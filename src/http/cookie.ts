import { DEVICE_MS_MAX, SESSION_MS_MAX } from "../domain/limits.ts";

/** A cookie of ours: how it is read, set and taken back. */
export interface OwnCookie {
  /** The value that a request brings along; null: none that could be one of ours. */
  read(headers: Headers): string | null;
  /** Values of `Set-Cookie`. */
  set(value: string): string;
  clear(): string;
}

/** 256 bits as hex. */
const SESSION = /^[0-9a-f]{64}$/;
const DEVICE = /^[A-Za-z0-9_.-]{1,256}$/;

/** Who is logged in. */
export function createSessionCookie(baseUrl: string): OwnCookie {
  return ownCookie({ baseUrl, name: "outgate_session", form: SESSION, lastsMs: SESSION_MS_MAX });
}

/** Of a browser in which somebody has logged in before. It outlives the session, and lets nobody in. */
export function createDeviceCookie(baseUrl: string): OwnCookie {
  return ownCookie({ baseUrl, name: "outgate_device", form: DEVICE, lastsMs: DEVICE_MS_MAX });
}

interface CookieProps {
  readonly baseUrl: string;
  readonly name: string;
  readonly form: RegExp;
  readonly lastsMs: number;
}

/** With https the cookie never goes out in clear, and its prefix keeps other hosts of the domain from setting it. */
function ownCookie({ baseUrl, name: bare, form, lastsMs }: CookieProps): OwnCookie {
  const isSecure = baseUrl.startsWith("https:");
  const name = isSecure ? `__Host-${bare}` : bare;
  const ending = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return {
    read(headers) {
      const value = cookieIn(headers, name) ?? "";
      return form.test(value) ? value : null;
    },
    set: (value) => `${name}=${value}${ending}; Max-Age=${lastsMs / 1_000}`,
    clear: () => `${name}=${ending}; Max-Age=0`,
  };
}

/** The value of the first cookie with this name; null: there is none. */
export function cookieIn(headers: Headers, name: string): string | null {
  const pairs = (headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}
