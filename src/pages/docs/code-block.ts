import { highlighted, languageLabel } from "./highlight.ts";

/** A block of our own code with its language, as HTML. The script adds a copy button; without it the text can be selected. */
export function codeBlock(code: string, language: string, title = languageLabel(language)): string {
  const label = Bun.escapeHTML(title);
  // It may be wider than the screen: it scrolls, and can be focused by keyboard (WCAG 2.1.1).
  return (
    `<figure class="sample"><figcaption>${label}</figcaption>` +
    `<pre class="sample-code" tabindex="0" role="group" aria-label="${label}" data-copy=""><code>` +
    `${highlighted(code, language)}\n</code></pre></figure>\n`
  );
}
