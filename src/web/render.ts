import type { HtmlEscapedString } from "hono/utils/html";

/** A page, or a part of one, before it is text. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

/** A whole page as HTML text. Throws where a part of it is asynchronous: data is read before a page is written. */
export function render(page: Html): string {
  if (page instanceof Promise) throw new Error("A page is made of data that is there.");
  const text: unknown = page.toString();
  if (typeof text !== "string") throw new Error("A part of a page is made of data that is there.");
  return `<!doctype html>${text}`;
}
