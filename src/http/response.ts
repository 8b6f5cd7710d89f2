import { SHEET_STYLE } from "../ui/sheet-style.ts";

const JSON_TYPE = { "content-type": "application/json" } as const;

/** A response of JSON text. */
export function json(text: string, status = 200, headers?: Readonly<Record<string, string>>): Response {
  return new Response(text, { status, headers: headers === undefined ? JSON_TYPE : { ...JSON_TYPE, ...headers } });
}

/** A response of a value as JSON. */
export function jsonResponse(value: unknown, status = 200, headers?: Readonly<Record<string, string>>): Response {
  return json(JSON.stringify(value), status, headers);
}

const UTF_8 = new TextEncoder();

/**
 * Streams texts, each made when the client has taken the one before, so that memory holds two at most. A client that leaves ends it.
 * The first text is made before the answer, so that an error in it gets a status; a later error breaks off the connection.
 */
export async function toStream(texts: AsyncGenerator<string>): Promise<ReadableStream<Uint8Array>> {
  let first: IteratorResult<string, unknown> | null = await texts.next();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const step = first ?? (await texts.next());
          first = null;
          if (step.done === true) controller.close();
          else controller.enqueue(UTF_8.encode(step.value));
        } catch (error) {
          controller.error(error);
        }
      },
      cancel: async () => void (await texts.return(undefined)),
    },
    { highWaterMark: 0 },
  );
}

/** The response (204) to work without a result, once it is done. */
export async function noContent(work: Promise<unknown>): Promise<Response> {
  await work;
  return new Response(null, { status: 204 });
}

/**
 * Which security headers a page gets. `own`: pages behind the login. The others are opened by a token in their path: the
 * receipt (`live` while it may change), the approval page, and `notice` for errors on either.
 */
export type PageKind = "own" | "receipt" | "live" | "approval" | "notice";

/** A response of HTML with its security headers. */
export function page(
  kind: PageKind,
  html: string | Uint8Array<ArrayBuffer>,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  const own = { "content-type": "text/html; charset=utf-8", "content-security-policy": POLICIES[kind] };
  return new Response(html, { status, headers: { ...own, ...pageHeaders(kind), ...headers } });
}

/** A redirect (303) to a path of this service. */
export function seeOther(kind: PageKind, path: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(null, { status: 303, headers: { location: path, ...pageHeaders(kind), ...headers } });
}

/** The security headers without those that only HTML needs: for redirects, and for JSON at the path of a page. */
export function pageHeaders(kind: PageKind): Readonly<Record<string, string>> {
  return { ...ALL, ...(kind === "receipt" ? {} : OPENER), ...(kind === "own" ? OWN : TOKEN) };
}

const ALL = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "private, no-store",
  "cross-origin-resource-policy": "same-origin",
} as const;

/** Not on the receipt, since browsers refuse to open a sandboxed page with it. */
const OPENER = { "cross-origin-opener-policy": "same-origin" } as const;

/** Not `no-referrer`, with which browsers would send `Origin: null` with our forms (measured). */
const OWN = { "referrer-policy": "same-origin" } as const;

/** For pages whose path contains a token: search engines must not index them. */
export const UNLISTED = { "x-robots-tag": "noindex, nofollow, noarchive" } as const;

/** For paths that are secrets, which must reach neither other sites nor search engines. */
const TOKEN = { "referrer-policy": "no-referrer", ...UNLISTED } as const;

/** These pages load nothing; their style is inline. */
const STANDALONE = `default-src 'none'; style-src 'sha256-${SHEET_STYLE.sha256}'; img-src data:; base-uri 'none'; frame-ancestors 'none'`;

/** The policy of an own page whose form is redirected to this address, which Chromium requires to be listed. */
export function policyWithForm(leadsTo: string): string {
  const url = URL.parse(leadsTo);
  if (url === null) return POLICIES.own;
  // A source can't be an address in brackets.
  const source = /^https?:$/.test(url.protocol) && !url.host.startsWith("[") ? url.origin : url.protocol;
  return POLICIES.own.replace("form-action 'self'", `form-action 'self' ${source}`);
}

const POLICIES: Readonly<Record<PageKind, string>> = {
  own:
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
    "base-uri 'none'; frame-ancestors 'none'",
  receipt: `${STANDALONE}; form-action 'none'; sandbox`,
  // A sandboxed page may not reload itself.
  live: `${STANDALONE}; form-action 'none'`,
  approval: `${STANDALONE}; form-action 'self'`,
  notice: `${STANDALONE}; form-action 'none'`,
};

/** Whether a request prefers JSON to HTML (RFC 9110, 12.5.1): it names JSON, with at least the weight of HTML. */
export function prefersJson(request: Request): boolean {
  return prefers(request, "application/json", "text/html");
}

/** Whether it prefers NDJSON to JSON. */
export function prefersNdjson(request: Request): boolean {
  return prefers(request, "application/x-ndjson", "application/json");
}

function prefers({ headers }: Request, type: string, other: string): boolean {
  const accept = headers.get("accept") ?? "";
  const weight = acceptWeight(accept, type);
  return weight > 0 && weight >= acceptWeight(accept, other);
}

/** Whether it names HTML, as only browsers do. */
export function acceptsHtml({ headers }: Request): boolean {
  return acceptWeight(headers.get("accept") ?? "", "text/html") > 0;
}

/** Whether it names gzip with a weight other than 0 (RFC 9110, 12.5.3). */
export function acceptsGzip({ headers }: Request): boolean {
  return GZIP.test(headers.get("accept-encoding") ?? "");
}

const GZIP = /(?:^|,)\s*gzip\s*(?!;\s*q=0(?:\.0*)?\s*(?:,|$))(?:[,;]|$)/i;

/** The weight of a media type; 0 if it is missing or refused. Ignores wildcards. */
function acceptWeight(accept: string, type: string): number {
  for (const entry of accept.split(",")) {
    const [name, ...parameters] = entry.split(";").map((part) => part.trim().toLowerCase());
    if (name !== type) continue;
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    return weight === undefined ? 1 : Number(weight) || 0;
  }
  return 0;
}
