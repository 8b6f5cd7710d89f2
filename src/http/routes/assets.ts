import { ASSETS } from "../../web/assets.ts";
import { takesGzip } from "../accept.ts";
import type { Route } from "../route.ts";

/**
 * What pages load. A path that names its content never changes, so it may be kept for good. Compressed where that is
 * understood; pages are not, since they hold secrets beside what
 * others wrote; but for the documentation, in which nobody else writes.
 */
export function assetRoutes(): readonly Route[] {
  return ASSETS.map(({ path, type, text, gzip }) => ({
    method: "GET",
    path,
    operationId: null,
    answer({ request }) {
      const headers = { ...HEADERS, "content-type": type };
      if (!takesGzip(request)) return new Response(text, { headers });
      return new Response(gzip, { headers: { ...headers, "content-encoding": "gzip" } });
    },
  }));
}

const HEADERS = {
  "cache-control": "public, max-age=31536000, immutable",
  vary: "Accept-Encoding",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;
