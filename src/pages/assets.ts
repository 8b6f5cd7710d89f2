import icon from "./assets/icon.svg" with { type: "text" };
import live from "./assets/live.js" with { type: "text" };
import session from "./assets/session.js" with { type: "text" };
import appStyle from "./assets/app.css" with { type: "text" };
import docsStyle from "./assets/docs.css" with { type: "text" };
import style from "./assets/style.css" with { type: "text" };

/** A file that pages load. Its path names its content, so that a browser may keep it for good. */
export interface Asset {
  readonly path: string;
  readonly type: string;
  readonly text: string;
  /** The same, compressed (RFC 1952). */
  readonly gzip: Uint8Array<ArrayBuffer>;
  /** SHA-256 of the text, base64. */
  readonly sha256: string;
}

/** The stylesheet of all pages; those that stand alone hold it. */
export const STYLE = assetOf("style", "css", "text/css; charset=utf-8", style);

/** What pages need beside it that do not stand alone. */
export const APP_STYLE = assetOf("app", "css", "text/css; charset=utf-8", appStyle);

/** What the documentation needs beside both. */
export const DOCS_STYLE = assetOf("docs", "css", "text/css; charset=utf-8", docsStyle);

/** What these pages do by themselves where a browser runs scripts; all of it works without. */
export const LIVE = assetOf("live", "js", "text/javascript; charset=utf-8", live);

/** What proves that a form was sent by one of these pages; without it the password does. */
export const SESSION = assetOf("session", "js", "text/javascript; charset=utf-8", session);

/** What a tab shows. */
export const ICON = assetOf("icon", "svg", "image/svg+xml", icon.trim());

/** Everything that a page may load. */
export const ASSETS: readonly Asset[] = [STYLE, APP_STYLE, DOCS_STYLE, LIVE, SESSION, ICON];

function assetOf(name: string, extension: string, type: string, text: string): Asset {
  const digest = new Bun.CryptoHasher("sha256").update(text).digest();
  const path = `/assets/${name}-${digest.toString("hex").slice(0, 16)}.${extension}`;
  return { path, type, text, gzip: Bun.gzipSync(text), sha256: digest.toString("base64") };
}
