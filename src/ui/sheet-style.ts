import baseCss from "./base.css" with { type: "text" };
import decisionCss from "./styles/decision.css" with { type: "text" };
import decisionFormCss from "./styles/decision-form.css" with { type: "text" };
import formCss from "./form.css" with { type: "text" };
import jsonViewCss from "./json-view.css" with { type: "text" };
import partsCss from "./parts.css" with { type: "text" };
import receiptCss from "./styles/receipt.css" with { type: "text" };
import timelineCss from "./styles/timeline.css" with { type: "text" };
import tokensCss from "./tokens.css" with { type: "text" };

// Not in `assets.ts`, whose scripts take a while: every page's headers need this style, even while the service starts.

/** A file that pages load. Its path contains a hash of its content, so that browsers can cache it forever. */
export interface Asset {
  readonly path: string;
  readonly type: string;
  readonly text: string;
  /** The text, compressed (RFC 1952). */
  readonly gzip: Uint8Array<ArrayBuffer>;
  /** SHA-256 of the text, base64. */
  readonly sha256: string;
}

/** Joins style sheets without comments and indents. */
export function styleAsset(name: string, parts: readonly string[]): Asset {
  const text = parts
    .join("")
    .replaceAll(/\/\*(?:[^*]|\*(?!\/))*\*\//g, "")
    .replaceAll(/\n\s+/g, "\n");
  return textAsset(name, "css", "text/css; charset=utf-8", text);
}

export function textAsset(name: string, extension: string, type: string, text: string): Asset {
  const digest = new Bun.CryptoHasher("sha256").update(text).digest();
  const path = `/assets/${name}-${digest.toString("hex").slice(0, 16)}.${extension}`;
  let gzip: Uint8Array<ArrayBuffer> | null = null;
  return {
    path,
    type,
    text,
    sha256: digest.toString("base64"),
    /** Compressed at its first use, which takes 15 ms for the largest file. Higher levels save 50 bytes, and level 9 costs 1,300. */
    get gzip() {
      return (gzip ??= Bun.gzipSync(text, { library: "libdeflate", level: 10 }));
    },
  };
}

/** The styles of all pages. */
export const SHEET_PARTS = [
  tokensCss,
  baseCss,
  partsCss,
  formCss,
  jsonViewCss,
  timelineCss,
  receiptCss,
  decisionCss,
  decisionFormCss,
];

/** The style of standalone pages, which inline it: receipts, approval links, and their errors. */
export const SHEET_STYLE = styleAsset("sheet", SHEET_PARTS);
