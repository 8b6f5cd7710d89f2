import type { HtmlEscapedString } from "hono/utils/html";

/** A page, or a part of one, before it is text. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** A whole page as HTML text. Throws where a part of it is asynchronous: data is read before a page is written. */
export function render(page: Html): string {
  return `<!doctype html>${renderPart(page)}`;
}

/** The same of a part that stands on pages later. */
export function renderPart(part: Html): string {
  if (part instanceof Promise) throw new Error("A page is made of data that is there.");
  const text: unknown = part.toString();
  if (typeof text !== "string") throw new Error("A part of a page is made of data that is there.");
  return text;
}
