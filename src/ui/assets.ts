import htmx from "htmx.org/dist/htmx.min.js" with { type: "text" };
import idiomorph from "idiomorph/dist/idiomorph-ext.min.js" with { type: "text" };
import actionCss from "./styles/action.css" with { type: "text" };
import actionsCss from "./styles/actions.css" with { type: "text" };
import baseCss from "./styles/base.css" with { type: "text" };
import decisionCss from "./styles/decision.css" with { type: "text" };
import docsCss from "./styles/docs.css" with { type: "text" };
import frameCss from "./styles/frame.css" with { type: "text" };
import icon from "./assets/icon.svg" with { type: "text" };
import iconWaiting from "./assets/icon-waiting.svg" with { type: "text" };
import inboxCss from "./styles/inbox.css" with { type: "text" };
import overviewCss from "./styles/overview.css" with { type: "text" };
import settingsCss from "./styles/settings.css" with { type: "text" };
import sheetCss from "./styles/sheet.css" with { type: "text" };
import timelineCss from "./styles/timeline.css" with { type: "text" };
import tokensCss from "./styles/tokens.css" with { type: "text" };
import { SCRIPTS } from "./scripts.ts";

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

/** The style of standalone pages, which inline it: receipt, approval link, and errors on either. */
export const SHEET_STYLE = styleOf("sheet", [tokensCss, baseCss, timelineCss, sheetCss, decisionCss]);

export const APP_STYLE = styleOf("app", [
  tokensCss,
  baseCss,
  frameCss,
  sheetCss,
  timelineCss,
  decisionCss,
  inboxCss,
  actionsCss,
  actionCss,
  overviewCss,
  settingsCss,
  docsCss,
]);

/** Live updates, keyboard, palette, copy buttons and local times. Every page works without it. */
export const CONSOLE = assetOf("console", "js", "text/javascript; charset=utf-8", SCRIPTS.console);

/** What the console builds on: htmx loads parts of pages, idiomorph changes only what differs. */
export const LIBRARIES = [
  assetOf("htmx", "js", "text/javascript; charset=utf-8", htmx),
  assetOf("idiomorph", "js", "text/javascript; charset=utf-8", idiomorph),
] as const;

/** Adds the session secret to forms. Without it, forms ask for the password. */
export const SESSION = assetOf("session", "js", "text/javascript; charset=utf-8", SCRIPTS.session);

export const ICON = assetOf("icon", "svg", "image/svg+xml", icon.trim());

/** The icon while a request waits for a decision. */
export const ICON_WAITING = assetOf("icon-waiting", "svg", "image/svg+xml", iconWaiting.trim());

/** Everything that a page may load. */
export const ASSETS: readonly Asset[] = [APP_STYLE, CONSOLE, ...LIBRARIES, SESSION, ICON, ICON_WAITING];

/** Comments and indents are for readers of the source. */
function styleOf(name: string, parts: readonly string[]): Asset {
  const text = parts
    .join("")
    .replaceAll(/\/\*[^*]*\*\//g, "")
    .replaceAll(/\n\s+/g, "\n");
  return assetOf(name, "css", "text/css; charset=utf-8", text);
}

function assetOf(name: string, extension: string, type: string, text: string): Asset {
  const digest = new Bun.CryptoHasher("sha256").update(text).digest();
  const path = `/assets/${name}-${digest.toString("hex").slice(0, 16)}.${extension}`;
  let gzip: Uint8Array<ArrayBuffer> | null = null;
  return {
    path,
    type,
    text,
    sha256: digest.toString("base64"),
    /** At its first use: it takes 15 ms for the largest file. Higher levels save 50 bytes, and level 9 costs 1,300. */
    get gzip() {
      return (gzip ??= Bun.gzipSync(text, { library: "libdeflate", level: 10 }));
    },
  };
}
