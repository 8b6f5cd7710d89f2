import { ASSETS } from "../../web/assets.ts";
import type { Route } from "../route.ts";

/** What pages load. A path that names its content never changes, so it may be kept for good. */
export function assetRoutes(): readonly Route[] {
  return ASSETS.map(({ path, type, text }) => ({
    method: "GET",
    path,
    operationId: null,
    answer: () => new Response(text, { headers: { ...HEADERS, "content-type": type } }),
  }));
}

const HEADERS = {
  "cache-control": "public, max-age=31536000, immutable",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;
