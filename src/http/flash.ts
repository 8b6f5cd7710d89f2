import type { Check } from "../api/check.ts";
import type { Clock } from "../core/clock.ts";
import { isJsonObject } from "../core/json.ts";
import { FLASH_COOKIE_CHARS_MAX, FLASH_COOKIES_MAX, FLASH_MS_MAX } from "../core/limits.ts";
import type { Person } from "../core/session.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { cookieIn } from "./session.ts";
import type { RequestContext } from "./request.ts";
import { seeOther } from "./response.ts";

/** The value doesn't fit into `FLASH_COOKIES_MAX` cookies. */
export class FlashTooLarge extends Error {
  override readonly name = "FlashTooLarge";
}

const NAME = "outgate_flash";

/** The session that a value is for. */
type FlashPerson = Pick<Person, "formToken">;

/**
 * Passes the result of a form to the page to which the browser is redirected, so that a reload repeats nothing and no secret is
 * in a URL. The value is in cookies, encrypted for one path and one session, for `FLASH_MS_MAX`. `kind` is its schema: a cookie of
 * another version of this service may hold something else.
 */
export function createFlash({
  secrets,
  clock,
  baseUrl,
}: {
  readonly baseUrl: string;
  readonly secrets: Pick<Secrets, "open" | "seal">;
  readonly clock: Pick<Clock, "now">;
}) {
  const isSecure = baseUrl.startsWith("https:");
  // `__Host-` allows no Path but "/".
  const cookieName = (at: number) => `${isSecure ? "__Secure-" : ""}${NAME}_${at}`;
  const sealedPlace = (path: string, { formToken }: FlashPerson) => ({ table: "flash", row: path, column: formToken });

  /** A redirect to a path of this service, which can `read` the value. Throws `FlashTooLarge`. */
  const redirect = <Value extends object>(
    person: FlashPerson,
    path: string,
    _kind: Check<Value>,
    value: Value,
  ): Response => {
    const plain = Bun.deflateSync(JSON.stringify({ expiresMs: clock.now().getTime() + FLASH_MS_MAX, value }));
    const parts = cookieParts(secrets.seal(plain, sealedPlace(path, person)));
    const ending = `; Path=${path}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}; Max-Age=${FLASH_MS_MAX / 1_000}`;
    const answer = seeOther("own", path);
    parts.forEach((part, at) => answer.headers.append("set-cookie", `${cookieName(at)}=${part}${ending}`));
    return answer;
  };
  return {
    redirect,
    /**
     * The same for a secret. On plain http, any server on another port of the host gets our cookies, so `show` puts the secret
     * into the response to the form itself.
     */
    showSecretOnce: async <Value extends object>(
      person: FlashPerson,
      path: string,
      kind: Check<Value>,
      value: Value,
      show: () => Response | Promise<Response>,
    ): Promise<Response> => (isSecure ? redirect(person, path, kind, value) : show()),
    /** The value for this page. Null: there is none of this kind, it has expired, or it is another session's. */
    read<Value extends object>(
      { request, path }: Pick<RequestContext, "request" | "path">,
      person: FlashPerson,
      kind: Check<Value>,
    ): Value | null {
      const [count = "", first = ""] = (cookieIn(request.headers, cookieName(0)) ?? "").split("-");
      if (!/^[1-9]$/.test(count)) return null;
      const rest = Array.from(
        { length: Number(count) - 1 },
        (_, at) => cookieIn(request.headers, cookieName(at + 1)) ?? "",
      );
      try {
        const plain = Bun.inflateSync(
          new Uint8Array(secrets.open([first, ...rest].join(""), sealedPlace(path, person))),
        );
        const flash: unknown = JSON.parse(new TextDecoder().decode(plain));
        const { expiresMs, value } = isJsonObject(flash) ? flash : {};
        return Number(expiresMs) > clock.now().getTime() && kind.accepts(value) ? value : null;
      } catch {
        return null;
      }
    },
  };
}

/** Splits a value for several cookies. The first begins with their number, since an earlier flash may have left more. */
function cookieParts(sealed: string): readonly string[] {
  const count = Math.ceil(sealed.length / FLASH_COOKIE_CHARS_MAX);
  if (count > FLASH_COOKIES_MAX) throw new FlashTooLarge(`${sealed.length} characters are too many for cookies.`);
  const at = (part: number) => sealed.slice(part * FLASH_COOKIE_CHARS_MAX, (part + 1) * FLASH_COOKIE_CHARS_MAX);
  return Array.from({ length: count }, (_, part) => (part === 0 ? `${count}-${at(0)}` : at(part)));
}
