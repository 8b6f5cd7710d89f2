import { setImmediate as nextTurn } from "node:timers/promises";
import { Marked, Renderer, type Tokens } from "marked";
import { codeBlock } from "./highlight.ts";
import { docsPath, type Guide } from "./guides.ts";

/** A heading that can be linked to. */
export interface DocsHeading {
  readonly id: string;
  /** Without markup. */
  readonly text: string;
  readonly depth: number;
}

/** A heading with the text below it, for the search. */
export interface DocsSection extends DocsHeading {
  /** Without markup, on one line. */
  readonly body: string;
}

/**
 * Renders a document as trusted HTML, with its sections. Escapes HTML in it. Links to other documents lead to their pages.
 * Links to other files of the repository and images become plain text. Lets other work run after each block of code, since the
 * first in a language makes the highlighter read its grammar.
 */
export async function renderGuide(
  markdown: string,
  guides: readonly Guide[],
  renderCode: (code: string, language: string) => string = codeBlock,
) {
  // A bare address in a sentence is not a link.
  const marked = new Marked({ tokenizer: { url: () => undefined } });
  const renderer = new GuideRenderer(guides, renderCode);
  marked.setOptions({ renderer });
  const sections: { readonly heading: DocsHeading; readonly written: string[] }[] = [];
  const parts: string[] = [];
  for (const token of marked.lexer(markdown)) {
    parts.push(marked.parser([token]));
    if (token.type === "code") await nextTurn();
    const heading = token.type === "heading" ? renderer.headings.at(-1) : undefined;
    if (heading === undefined) sections.at(-1)?.written.push(token.raw);
    else sections.push({ heading, written: [] });
  }
  return {
    html: parts.join(""),
    sections: sections.map(({ heading, written }): DocsSection => ({
      ...heading,
      body: withoutMarkup(written.join(" ")),
    })),
  };
}

/** Markdown without its marks and link targets. */
export function withoutMarkup(markdown: string): string {
  return markdown
    .replaceAll(/\[([^[\]]*)\]\([^()\s]*\)/g, "$1")
    .replaceAll(/[`*]/g, "")
    .replaceAll(/[|#[\]]|-{3,}|^>|(?<=^|\s)-(?=\s)/gm, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}

class GuideRenderer extends Renderer {
  readonly headings: DocsHeading[] = [];
  readonly #guides: readonly Guide[];
  readonly #renderCode: (code: string, language: string) => string;
  /** How many headings have each id. */
  readonly #ids = new Map<string, number>();

  constructor(guides: readonly Guide[], renderCode: (code: string, language: string) => string) {
    super();
    this.#guides = guides;
    this.#renderCode = renderCode;
  }

  override heading({ depth, tokens, text: written }: Tokens.Heading): string {
    const base = written
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-");
    const count = this.#ids.get(base) ?? 0;
    this.#ids.set(base, count + 1);
    const id = count === 0 ? base : `${base}-${count}`;
    this.headings.push({ id, depth, text: withoutMarkup(written) });
    const text = this.parser.parseInline(tokens);
    // The id has no character that would need escaping.
    const anchor = `<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
    return `<h${depth} id="${id}">${text}${depth === 1 ? "" : anchor}</h${depth}>\n`;
  }

  override code({ text, lang = "" }: Tokens.Code): string {
    return this.#renderCode(text, lang);
  }

  /** A wide table scrolls, so keyboards must be able to focus it (WCAG 2.1.1). */
  override table(token: Tokens.Table): string {
    return `<div class="table" role="group" aria-label="Table" tabindex="0">${super.table(token)}</div>\n`;
  }

  override tablecell({ header, tokens }: Tokens.TableCell): string {
    const text = this.parser.parseInline(tokens);
    return header ? `<th scope="col">${text}</th>\n` : `<td>${text}</td>\n`;
  }

  override link({ href, tokens }: Tokens.Link): string {
    const text = this.parser.parseInline(tokens);
    const path = guidePath(href, this.#guides);
    return path === null ? text : `<a href="${Bun.escapeHTML(path)}">${text}</a>`;
  }

  override html({ text }: Tokens.HTML | Tokens.Tag): string {
    return Bun.escapeHTML(text);
  }

  override image({ text }: Tokens.Image): string {
    return Bun.escapeHTML(text);
  }
}

/** The path of a link on our pages; null if the target is not served. */
function guidePath(href: string, guides: readonly Guide[]): string | null {
  if (/^(https:\/\/|\/|#)/.test(href)) return href;
  const [path = "", anchor] = href.split("#");
  const found = guides.find(({ name }) => path === repositoryUrl(name) || path.endsWith(`/${repositoryUrl(name)}`));
  if (found === undefined) return null;
  return docsPath(found.name) + (anchor === undefined ? "" : `#${anchor}`);
}

/** The path by which other documents link to a guide. */
function repositoryUrl(name: string): string {
  return name === "mcp" ? "mcp/README.md" : `${name}.md`;
}
