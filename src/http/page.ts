import { STYLE } from "../pages/assets.ts";

/**
 * Which rules a page lives under (hostile 7). `own`: the pages of whoever may sign in. The others are opened by a token
 * in their path: the receipt, the approval page, and `notice` for what goes wrong on either.
 */
export type PageKind = "own" | "receipt" | "approval" | "notice";

interface PageOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer of HTML with every header that keeps the page to itself. */
export function page(
  kind: PageKind,
  html: string | Uint8Array<ArrayBuffer>,
  { status = 200, headers = {} }: PageOptions = {},
): Response {
  const own = { "content-type": "text/html; charset=utf-8", "content-security-policy": POLICIES[kind] };
  return new Response(html, { status, headers: { ...own, ...pageHeaders(kind), ...headers } });
}

/** 303: the browser gets the page at this path of ours, whatever the method was. */
export function seeOther(kind: PageKind, path: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(null, { status: 303, headers: { location: path, ...pageHeaders(kind), ...headers } });
}

/** The same without what only HTML needs: for redirects, and for the JSON of a page. */
export function pageHeaders(kind: PageKind): Readonly<Record<string, string>> {
  return { ...ALL, ...(kind === "receipt" ? {} : UNOPENED), ...(kind === "own" ? OWN : TOKEN) };
}

const ALL = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "private, no-store",
  "cross-origin-resource-policy": "same-origin",
} as const;

/** Not for the receipt: a browser refuses to open a sandboxed page with it. */
const UNOPENED = { "cross-origin-opener-policy": "same-origin" } as const;

/** With `no-referrer` browsers would send `Origin: null` along with our forms (measured). */
const OWN = { "referrer-policy": "same-origin" } as const;

/** The path is the secret: nobody is told where a reader came from, and nobody looks it up. */
const TOKEN = {
  "referrer-policy": "no-referrer",
  "x-robots-tag": "noindex, nofollow, noarchive",
} as const;

const ALONE = `default-src 'none'; style-src 'sha256-${STYLE.sha256}'; img-src data:; base-uri 'none'; frame-ancestors 'none'`;

const POLICIES: Readonly<Record<PageKind, string>> = {
  own:
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
    "base-uri 'none'; frame-ancestors 'none'",
  receipt: `${ALONE}; form-action 'none'; sandbox`,
  approval: `${ALONE}; form-action 'self'`,
  notice: `${ALONE}; form-action 'none'`,
};
