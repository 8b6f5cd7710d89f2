/** A document for users, as it is written. */
export interface Guide {
  /** Its page is /docs/<name>. */
  readonly name: string;
  /** By which path other documents link to it. */
  readonly file: string;
  readonly title: string;
  /** What it is about, in a few words. */
  readonly about: string;
  /** Markdown. */
  readonly text: string;
}

/** Where the documents say that the service is. */
const WRITTEN_BASE_URL = "http://127.0.0.1:3000";

/** The document with the service's own address in its examples, to be pasted as they stand. */
export function guideText({ text }: Pick<Guide, "text">, baseUrl: string): string {
  return text.replaceAll(WRITTEN_BASE_URL, () => baseUrl);
}

/**
 * The document as HTML. What is written there is ours; markup in it is shown and not obeyed all the same. Links to other
 * documents lead to their pages, and those to files of the repository are none here.
 */
export function guideHtml(guide: Guide, guides: readonly Guide[], baseUrl: string): string {
  const options = { tables: true, headings: { ids: true }, noHtmlBlocks: true, noHtmlSpans: true };
  return Bun.markdown
    .html(guideText(guide, baseUrl), options)
    .replaceAll("<pre>", '<pre class="code">')
    .replaceAll("<table>", '<div class="table" role="group" aria-label="Table" tabindex="0"><table>')
    .replaceAll("</table>", "</table></div>")
    .replaceAll("<th>", '<th scope="col">')
    .replaceAll(/<a href="([^"]*)">(.*?)<\/a>/gs, (_link, href: string, words: string) => {
      const path = pathOf(href, guides);
      return path === null ? words : `<a href="${path}">${words}</a>`;
    });
}

/** Where a link of a document leads on our pages; null: nowhere. */
function pathOf(href: string, guides: readonly Guide[]): string | null {
  if (/^(https:\/\/|\/|#)/.test(href)) return href;
  const [path = "", anchor] = href.split("#");
  const found = guides.find(({ file }) => path === file || path.endsWith(`/${file}`));
  if (found === undefined) return null;
  return docsPath(found.name) + (anchor === undefined ? "" : `#${anchor}`);
}

/** The page of a document; the first one is that of all of them. */
export function docsPath(name: string): string {
  return name === "start" ? "/docs" : `/docs/${name}`;
}
