import icon from "./assets/icon.svg" with { type: "text" };
import live from "./assets/live.js" with { type: "text" };
import session from "./assets/session.js" with { type: "text" };
import appStyle from "./assets/app.css" with { type: "text" };
import docsStyle from "./assets/docs.css" with { type: "text" };
import style from "./assets/style.css" with { type: "text" };

/** A file that pages load. Its path contains a hash of its content, so that browsers can cache it forever. */
export interface Asset {
  readonly path: string;
  readonly type: string;
  readonly text: string;
  /** The same, compressed (RFC 1952). */
  readonly gzip: Uint8Array<ArrayBuffer>;
  /** SHA-256 of the text, base64. */
  readonly sha256: string;
}

/** The stylesheet of all pages. Standalone pages inline it. */
export const STYLE = assetOf("style", "css", "text/css; charset=utf-8", style);

/** Additional styles of all pages that are not standalone. */
export const APP_STYLE = assetOf("app", "css", "text/css; charset=utf-8", appStyle);

/** Additional styles of the documentation. */
export const DOCS_STYLE = assetOf("docs", "css", "text/css; charset=utf-8", docsStyle);

/** Live updates and keyboard shortcuts. Every page works without it. */
export const LIVE = assetOf("live", "js", "text/javascript; charset=utf-8", live);

/** Adds the session secret to forms. Without it, forms ask for the password. */
export const SESSION = assetOf("session", "js", "text/javascript; charset=utf-8", session);

export const ICON = assetOf("icon", "svg", "image/svg+xml", icon.trim());

/** Everything that a page may load. */
export const ASSETS: readonly Asset[] = [STYLE, APP_STYLE, DOCS_STYLE, LIVE, SESSION, ICON];

function assetOf(name: string, extension: string, type: string, text: string): Asset {
  const digest = new Bun.CryptoHasher("sha256").update(text).digest();
  const path = `/assets/${name}-${digest.toString("hex").slice(0, 16)}.${extension}`;
  return { path, type, text, gzip: Bun.gzipSync(text), sha256: digest.toString("base64") };
}
