/** On https, the cookie is never sent in clear, and the prefix `__Host-` keeps other hosts of the domain from setting it. */
export function createOwnCookie(baseUrl: string, bare: string, form: RegExp, lastsMs: number) {
  const isSecure = baseUrl.startsWith("https:");
  const name = isSecure ? `__Host-${bare}` : bare;
  const ending = `; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return {
    /** The value in a request; null: it is missing or malformed. */
    read(headers: Headers): string | null {
      const value = cookieIn(headers, name) ?? "";
      return form.test(value) ? value : null;
    },
    /** Values of `Set-Cookie`. */
    set: (value: string) => `${name}=${value}${ending}; Max-Age=${lastsMs / 1_000}`,
    clear: () => `${name}=${ending}; Max-Age=0`,
  };
}

/** The value of the first cookie with this name; null: there is none. */
export function cookieIn(headers: Headers, name: string): string | null {
  const pairs = (headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
}

export type OwnCookie = ReturnType<typeof createOwnCookie>;
