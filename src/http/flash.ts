import { FLASH_COOKIE_CHARS_MAX, FLASH_COOKIES_MAX, FLASH_MS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Secrets } from "../ports/secrets.ts";
import { cookieIn } from "./cookie.ts";
import { seeOther } from "./page.ts";
import type { Person } from "./session.ts";
import type { RequestContext } from "./visit.ts";

export interface FlashDeps {
  readonly secrets: Pick<Secrets, "open" | "seal">;
  readonly clock: Pick<Clock, "now">;
  readonly baseUrl: string;
}

/**
 * What a form has brought about, for the page that the browser is sent to afterwards: so that loading it again repeats
 * nothing, and a secret is shown without being in a URL. It is kept in the browser, sealed for one path and one session,
 * for `FLASH_MS_MAX`.
 */
export interface Flash {
  /** A redirect to a path of ours that is told this value. Throws `FlashTooLarge`. */
  redirect(person: Pick<Person, "formToken">, path: string, value: object): Response;
  /**
   * The same of what is secret, shown by `show`. On plain http whatever listens on another port of the host gets this
   * cookie too, so it stands in the answer to the form itself.
   */
  tellSecret(
    person: Pick<Person, "formToken">,
    path: string,
    value: object,
    show: () => Response | Promise<Response>,
  ): Promise<Response>;
  /** What this page was told; null: nothing, or it is too late, or another session was. */
  read(context: RequestContext, person: Pick<Person, "formToken">): unknown;
}

/** It does not fit into `FLASH_COOKIES_MAX` cookies. */
export class FlashTooLarge extends Error {
  override readonly name = "FlashTooLarge";
}

const NAME = "outgate_flash";

export function createFlash({ secrets, clock, baseUrl }: FlashDeps): Flash {
  const isSecure = baseUrl.startsWith("https:");
  // With a path of its own it can't have the prefix of the session's cookie.
  const nameOf = (at: number) => `${isSecure ? "__Secure-" : ""}${NAME}_${at}`;
  const placeOf = (path: string, { formToken }: Pick<Person, "formToken">) => {
    return { table: "flash", row: path, column: formToken };
  };
  const redirect: Flash["redirect"] = (person, path, value) => {
    const plain = Bun.deflateSync(JSON.stringify({ expiresMs: clock.now().getTime() + FLASH_MS_MAX, value }));
    const parts = partsOf(secrets.seal(plain, placeOf(path, person)));
    const ending = `; Path=${path}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}; Max-Age=${FLASH_MS_MAX / 1_000}`;
    const answer = seeOther("own", path);
    parts.forEach((part, at) => answer.headers.append("set-cookie", `${nameOf(at)}=${part}${ending}`));
    return answer;
  };
  return {
    redirect,
    tellSecret: async (person, path, value, show) => (isSecure ? redirect(person, path, value) : show()),
    read({ request, path }, person) {
      const [count = "", first = ""] = (cookieIn(request.headers, nameOf(0)) ?? "").split("-");
      if (!/^[1-9]$/.test(count) || Number(count) > FLASH_COOKIES_MAX) return null;
      const rest = Array.from(
        { length: Number(count) - 1 },
        (_, at) => cookieIn(request.headers, nameOf(at + 1)) ?? "",
      );
      try {
        const plain = Bun.inflateSync(new Uint8Array(secrets.open([first, ...rest].join(""), placeOf(path, person))));
        // Safe: sealed above.
        const told = JSON.parse(new TextDecoder().decode(plain)) as { expiresMs: number; value: unknown };
        return told.expiresMs > clock.now().getTime() ? told.value : null;
      } catch {
        return null;
      }
    },
  };
}

/** The first tells how many there are, since those of an answer before may be longer. */
function partsOf(sealed: string): readonly string[] {
  const count = Math.ceil(sealed.length / FLASH_COOKIE_CHARS_MAX);
  if (count > FLASH_COOKIES_MAX) throw new FlashTooLarge(`${sealed.length} characters are too many for cookies.`);
  const at = (part: number) => sealed.slice(part * FLASH_COOKIE_CHARS_MAX, (part + 1) * FLASH_COOKIE_CHARS_MAX);
  return Array.from({ length: count }, (_, part) => (part === 0 ? `${count}-${at(0)}` : at(part)));
}
